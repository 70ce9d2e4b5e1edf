/* src/cluster/cluster.c - makes and destroys clusters: the greetings of the hosts, and their names. */
#include "cluster/cluster.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "base/types/types.h"
#include "base/waiting/fork.h"
#include "cluster/header.h"
#include "cluster/life_line.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 60000u
#define VERSION_BYTES      16
#define BYTE_ORDER_WORD    UINT32_C(0x01020304)

/* The first message of each host. Its form is the same in all versions of ditto. */
struct greeting {
    char magic[8];       /* "ditto" */
    uint32_t byte_order; /* BYTE_ORDER_WORD, in the host's own order */
    uint32_t num_hosts;
    uint32_t host;
    char version[VERSION_BYTES];
    char name[DTI_HOST_NAME_BYTES];
    uint32_t life_line; /* 1 if the host wants one */
    uint32_t no_memory; /* 1 if the host has no memory for the headers */
    unsigned char unused[148];
};
_Static_assert(sizeof(struct greeting) == 256, "all versions have greetings of this size");

/* -- greetings -- */

/* A greeting has the memory of the cluster, because the wire may write it after a timeout. */
struct greetings {
    struct dti_kept kept; /* first */
    ditto_cluster *cluster;
    struct greeting own;
    struct meeting {
        struct greeting theirs;
        struct dti_transfer send, receive;
    } with[]; /* [hosts] */
};

static bool all_have_greeted(void *argument)
{
    const struct greetings *g = argument;
    for (uint32_t h = 0; h < g->cluster->wire.num_hosts; h++)
        if (g->with[h].send.is_unfinished || g->with[h].receive.is_unfinished)
            return false;
    return true;
}

static ditto_status fail_silent(const struct greetings *g, uint32_t timeout_ms)
{
    uint32_t hosts = g->cluster->wire.num_hosts;
    bool silent[DTI_MAX_HOSTS] = { false };
    char set[200];
    struct dti_text text = { set, sizeof set, 0 };
    for (uint32_t h = 0; h < hosts; h++)
        silent[h] = g->with[h].receive.is_unfinished;
    dti_text_add_set(&text, silent, hosts, 0);
    return DTI_FAIL(DITTO_ERR_TIMED_OUT,
                    "host %u of %u (%s) waited %u ms for the cluster, and these hosts have not answered: %s. "
                    "Every host must make the cluster",
                    g->cluster->wire.host, hosts, g->own.name, timeout_ms, set);
}

static ditto_status check_greeting(const struct greetings *g, uint32_t host)
{
    const struct greeting *own = &g->own, *theirs = &g->with[host].theirs;
    if (g->with[host].receive.status != DITTO_OK || g->with[host].send.status != DITTO_OK)
        return DTI_FAIL(DITTO_ERR_SYSTEM, "the wire could not exchange greetings with host %u", host);
    if (g->with[host].receive.bytes != sizeof *theirs ||
        memcmp(theirs->magic, own->magic, sizeof own->magic) != 0)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "host %u has sent something else than a greeting of ditto",
                        host);
    if (theirs->byte_order != own->byte_order)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "host %u (%.*s) has another byte order than host %u (%s): all hosts need the same one", host,
            (int)sizeof theirs->name, theirs->name, own->host, own->name);
    if (strncmp(theirs->version, own->version, sizeof own->version) != 0)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "host %u (%.*s) has ditto %.*s, and host %u (%s) has %s: install one version on all hosts", host,
            (int)sizeof theirs->name, theirs->name, (int)sizeof theirs->version, theirs->version, own->host,
            own->name, own->version);
    if (theirs->num_hosts != own->num_hosts || theirs->host != host)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "host %u (%.*s) says that it is host %u of %u, and host %u (%s) has %u hosts: the wires "
            "do not belong together",
            host, (int)sizeof theirs->name, theirs->name, theirs->host, theirs->num_hosts, own->host,
            own->name, own->num_hosts);
    return DITTO_OK;
}

static ditto_status check_life_line(const struct greetings *g, uint32_t host)
{
    const struct greeting *own = &g->own, *theirs = &g->with[host].theirs;
    if (theirs->life_line != own->life_line)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the option life_line is %s on host %u (%.*s), but %s on host %u (%s): it must be equal "
            "on all hosts",
            theirs->life_line ? "on" : "off", host, (int)sizeof theirs->name, theirs->name,
            own->life_line ? "on" : "off", own->host, own->name);
    return DITTO_OK;
}

static ditto_status greet_all(struct greetings *g, bool life_line, uint32_t timeout_ms)
{
    ditto_cluster *cluster = g->cluster;
    struct dti_limits limits = { .deadline = { .timeout_ms = timeout_ms } };
    uint32_t hosts = cluster->wire.num_hosts;
    g->own = (struct greeting){ .magic = "ditto",
                                .byte_order = BYTE_ORDER_WORD,
                                .num_hosts = cluster->wire.num_hosts,
                                .host = cluster->wire.host,
                                .life_line = life_line,
                                .no_memory = cluster->headers == NULL };
    strncpy(g->own.version, ditto_version(), sizeof g->own.version - 1);
    memcpy(g->own.name, cluster->name[cluster->wire.host], sizeof g->own.name);
    for (uint32_t step = 1; step < hosts; step++) {
        uint32_t h = (cluster->wire.host + step) % hosts;
        DTI_TRY(dti_receive_header(cluster, h, &g->with[h].theirs, sizeof g->own, &g->with[h].receive));
        DTI_TRY(dti_send_header(cluster, h, &g->own, sizeof g->own, &g->with[h].send));
    }
    enum dti_wait_end end = dti_cluster_wait(cluster, &limits, all_have_greeted, g);
    if (end != DTI_WAIT_HOLDS)
        return end == DTI_WAIT_LATE ? fail_silent(g, timeout_ms) : dti_error_get()->status;
    for (uint32_t h = 0; h < hosts; h++) {
        if (h == cluster->wire.host)
            continue;
        DTI_TRY(check_greeting(g, h));
        memcpy(cluster->name[h], g->with[h].theirs.name, sizeof cluster->name[h]);
        cluster->name[h][DTI_HOST_NAME_BYTES - 1] = '\0';
    }
    /* Checked last, so that all hosts find the same error. */
    for (uint32_t h = 0; h < hosts; h++) {
        if (h != cluster->wire.host)
            DTI_TRY(check_life_line(g, h));
        if (h != cluster->wire.host ? g->with[h].theirs.no_memory != 0 : g->own.no_memory != 0)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "host %u (%s) has no memory for the headers of %u hosts", h,
                            cluster->name[h], hosts);
    }
    return DITTO_OK;
}

static ditto_status greet(ditto_cluster *cluster, bool life_line, uint32_t timeout_ms)
{
    struct greetings *g = calloc(1, sizeof *g + cluster->wire.num_hosts * sizeof g->with[0]);
    if (g == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the greetings of %u hosts",
                        cluster->wire.num_hosts);
    g->cluster = cluster;
    ditto_status status = greet_all(g, life_line, timeout_ms);
    for (uint32_t h = 0; h < cluster->wire.num_hosts; h++)
        (void)dti_withdraw(cluster, &g->with[h].receive);
    if (cluster->unfinished == 0)
        free(g);
    else
        dti_cluster_keep_memory(cluster, &g->kept);
    return status;
}

/* -- life -- */

static void release(ditto_cluster *cluster)
{
    dti_headers_free(cluster);
    free(cluster->name);
    free(cluster->names);
    free(cluster->traffic);
    free(cluster->measured);
    free(cluster);
}

static ditto_status allocate(const ditto_wire *wire, const char *name, ditto_cluster **out)
{
    ditto_cluster *cluster = calloc(1, sizeof *cluster);
    if (cluster != NULL) {
        cluster->wire = *wire;
        cluster->thread = pthread_self();
        cluster->process = dti_process_number();
        cluster->name = calloc(wire->num_hosts, sizeof *cluster->name);
        cluster->names = calloc(wire->num_hosts, sizeof *cluster->names);
        cluster->traffic = calloc(wire->num_hosts, sizeof *cluster->traffic);
        if (cluster->name != NULL && cluster->names != NULL && cluster->traffic != NULL) {
            for (uint32_t h = 0; h < wire->num_hosts; h++)
                cluster->names[h] = cluster->name[h];
            char *own = cluster->name[wire->host];
            if (name != NULL)
                strncpy(own, name, DTI_HOST_NAME_BYTES - 1);
            else if (gethostname(own, DTI_HOST_NAME_BYTES - 1) != 0)
                memcpy(own, "unknown", sizeof "unknown");
            *out = cluster;
            return DITTO_OK;
        }
        release(cluster);
    }
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a cluster of %u hosts", wire->num_hosts);
}

ditto_status ditto_cluster_create(const ditto_wire *given, const ditto_cluster_options *options,
                                  ditto_cluster **out)
{
    ditto_wire wire;
    ditto_cluster_options known;
    ditto_cluster *cluster;
    DTI_ENTER();
    DTI_TRY(dti_not_null(given, "wire"));
    DTI_TRY(dti_options_copy(&wire, sizeof wire, given, "ditto_wire"));
    if (wire.send == NULL || wire.receive == NULL || wire.cancel == NULL || wire.progress == NULL ||
        wire.name == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "a wire needs a name and the functions send, receive, cancel and progress");
    DTI_TRY(
        dti_flags_check(wire.flags, DITTO_WIRE_ONE_THREAD | DITTO_WIRE_ENDS_TRANSFERS, "ditto_wire.flags"));
    if (wire.num_hosts == 0 || wire.num_hosts > DTI_MAX_HOSTS || wire.host >= wire.num_hosts)
        return DTI_FAIL(DITTO_ERR_RANGE, "a wire of host %u of %u: a cluster has 1 to %u hosts", wire.host,
                        wire.num_hosts, DTI_MAX_HOSTS);
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_cluster_options"));
    if ((int)known.life_line < 0 || known.life_line > DITTO_SWITCH_OFF)
        return DTI_FAIL(DITTO_ERR_RANGE, "life_line = %d is not a value of its enum", (int)known.life_line);
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(allocate(&wire, known.name, &cluster));
    uint32_t timeout_ms = known.timeout_ms != 0 ? known.timeout_ms : DEFAULT_TIMEOUT_MS;
    bool life_line = known.life_line != DITTO_SWITCH_OFF;
    dti_headers_allocate(cluster);
    ditto_status status = greet(cluster, life_line, timeout_ms);
    if (status == DITTO_OK)
        status = dti_headers_begin(cluster);
    if (status == DITTO_OK && life_line && wire.num_hosts > 1) {
        status = dti_life_line_make(cluster, timeout_ms);
        ditto_error error = *dti_error_get();
        if (status != DITTO_OK && dti_headers_withdraw(cluster) != DITTO_OK)
            dti_error_set(&error);
    }
    if (status != DITTO_OK) {
        if (cluster->unfinished == 0)
            release(cluster);
        else
            dti_cluster_keep(cluster);
        return status;
    }
    *out = cluster;
    return DITTO_OK;
}

/* Clusters whose memory the wire may still use. The list keeps them reachable for leak checkers. */
static _Atomic(ditto_cluster *) kept;

void dti_cluster_keep(ditto_cluster *cluster)
{
    /* relaxed, also below: no thread reads the clusters in the list. */
    cluster->next_kept = atomic_load_explicit(&kept, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&kept, &cluster->next_kept, cluster, memory_order_relaxed,
                                                  memory_order_relaxed))
        ; /* a failed exchange has set next_kept to the head */
}

ditto_status ditto_cluster_destroy(ditto_cluster *cluster)
{
    DTI_ENTER();
    if (cluster == NULL)
        return DITTO_OK;
    if (cluster->ranges != NULL)
        return DTI_FAIL(DITTO_ERR_BUSY, "a strategy uses the cluster: destroy the strategy first");
    if (dti_cluster_is_forked(cluster)) {
        dti_life_line_end(cluster, dti_headers_number(cluster));
        release(cluster); /* the wire belongs to the parent process */
        return DITTO_OK;
    }
    DTI_TRY(dti_cluster_check_thread(cluster));
    if (dti_life_line_has_lost(cluster))
        dti_cluster_poison(cluster);
    dti_life_line_end(cluster, dti_headers_number(cluster));
    ditto_status status = cluster->is_poisoned ? DITTO_OK : dti_headers_withdraw(cluster);
    if (cluster->is_poisoned || cluster->unfinished != 0) {
        dti_cluster_keep(cluster); /* a replica that never returned may look at it */
        if ((cluster->wire.flags & DITTO_WIRE_ENDS_TRANSFERS) != 0 && cluster->wire.destroy != NULL) {
            cluster->wire.destroy(cluster->wire.user);
            return DITTO_OK;
        }
        if (status == DITTO_ERR_INVALID)
            return status;
        return DTI_FAIL(
            DITTO_ERR_POISONED,
            "destroyed, but a host has not answered, and messages to or from it are unfinished: end "
            "the program without finalizing its network");
    }
    if (cluster->wire.destroy != NULL)
        cluster->wire.destroy(cluster->wire.user);
    release(cluster);
    return DITTO_OK;
}

/* -- queries -- */

ditto_status ditto_cluster_info(const ditto_cluster *cluster, ditto_cluster_properties *out)
{
    ditto_cluster_properties found = { .num_hosts = 1 };
    DTI_ENTER();
    DTI_TRY(dti_result_check(out, "ditto_cluster_properties"));
    if (cluster != NULL)
        found = (ditto_cluster_properties){ .num_hosts = cluster->wire.num_hosts,
                                            .host = cluster->wire.host,
                                            .names = cluster->names,
                                            .has_life_line = cluster->life_line != NULL };
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

uint32_t ditto_cluster_share(const ditto_cluster *cluster, uint32_t num_replicas)
{
    return cluster != NULL ? dti_ranges_share(num_replicas, cluster->wire.num_hosts, cluster->wire.host)
                           : num_replicas;
}

void dti_describe_host(const ditto_cluster *cluster, uint32_t host, struct dti_text *text)
{
    const struct dti_ranges *ranges = cluster->ranges;
    dti_text_add(text, "host %u (%s", host, cluster->name[host]);
    if (ranges != NULL && ranges->start[host + 1] - ranges->start[host] == 1)
        dti_text_add(text, ", replica %u", ranges->start[host]);
    else if (ranges != NULL)
        dti_text_add(text, ", replicas %u-%u", ranges->start[host], ranges->start[host + 1] - 1);
    dti_text_add(text, ")");
}

bool dti_cluster_is_forked(const ditto_cluster *cluster)
{
    return dti_process_differs(cluster->process);
}

ditto_status dti_cluster_check_thread(const ditto_cluster *cluster)
{
    if (dti_cluster_is_forked(cluster))
        return DTI_FAIL(
            DITTO_ERR_FORKED,
            "the cluster was made before fork, and its network (%s) belongs to the parent process",
            cluster->wire.name);
    if ((cluster->wire.flags & DITTO_WIRE_ONE_THREAD) != 0 && !pthread_equal(cluster->thread, pthread_self()))
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "called on another thread than the one that made the cluster, which alone may use its "
            "network (%s)",
            cluster->wire.name);
    return DITTO_OK;
}

ditto_status dti_cluster_check_usable(const ditto_cluster *cluster)
{
    DTI_TRY(dti_cluster_check_thread(cluster));
    if (dti_life_line_has_lost(cluster))
        return dti_life_line_fail(cluster);
    return cluster->is_poisoned ? dti_fail_cluster_poisoned(cluster) : DITTO_OK;
}
