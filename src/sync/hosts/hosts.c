/* src/sync/hosts/hosts.c - begins and ends the work of a strategy with other hosts. See hosts.h. */
#include "sync/hosts/hosts.h"
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "base/text/text.h"
#include "cluster/life_line.h"
#include "sync/hosts/gather.h"
#include "sync/hosts/transfers.h"

#include <stdlib.h>
#include <string.h>

/* -- agreement -- */

ditto_status dti_hosts_close(ditto_cluster *cluster, uint32_t timeout_ms)
{
    ditto_error error = *dti_error_get();
    struct dti_limits limits = { .deadline = { .timeout_ms = timeout_ms } };
    if (!cluster->is_poisoned)
        (void)dti_headers_close(cluster, &error, &limits);
    dti_error_set(&error);
    return error.status;
}

static ditto_status record(const struct dti_hosts *hosts, enum dti_verdict verdict, const char *call)
{
    switch (verdict) {
    case DTI_HEADERS_EQUAL:
        return DITTO_OK;
    case DTI_HEADERS_DIFFER:
        return dti_headers_fail_differ(hosts->cluster, call);
    case DTI_HEADERS_LAST:
        return dti_headers_fail_last(hosts->cluster);
    case DTI_HEADERS_LATE:
        return dti_headers_fail_late(hosts->cluster, call, hosts->timeout_ms);
    case DTI_HEADERS_STOPPED:
    case DTI_HEADERS_FAILED:
        break;
    }
    return dti_error_get()->status;
}

ditto_status dti_hosts_record(const struct dti_hosts *hosts, enum dti_verdict verdict, const char *call)
{
    ditto_status status = record(hosts, verdict, call);
    if (status != DITTO_OK)
        dti_headers_break(hosts->cluster);
    return status;
}

ditto_status dti_hosts_record_late(const struct dti_hosts *hosts, const bool *late, const char *call)
{
    char awaited[300] = "";
    struct dti_text text = { awaited, sizeof awaited, 0 };
    dti_headers_describe(hosts->cluster, late, &text);
    DTI_FAIL(DITTO_ERR_TIMED_OUT, "host %u waited %u ms in %s for %s", dti_hosts_own(hosts),
             hosts->timeout_ms, call, awaited);
    dti_headers_break(hosts->cluster);
    return DITTO_ERR_TIMED_OUT;
}

ditto_status dti_hosts_exchange(const struct dti_hosts *hosts, const struct dti_intent *intent)
{
    struct dti_limits limits = { .deadline = { .timeout_ms = hosts->timeout_ms } };
    enum dti_verdict verdict = dti_headers_exchange(hosts->cluster, intent, &limits);
    if (verdict == DTI_HEADERS_EQUAL)
        verdict = dti_headers_confirm(hosts->cluster);
    if (verdict == DTI_HEADERS_EQUAL)
        return DITTO_OK;
    (void)dti_hosts_record(hosts, verdict, intent->name);
    return dti_hosts_close(hosts->cluster, hosts->timeout_ms);
}

/* What a host gives to all when they agree. The note is behind it. */
struct run_ending {
    int32_t status;
    uint32_t bytes; /* of the note */
    uint64_t none;  /* aligns the note */
};

static struct run_ending ending_of(const struct dti_hosts *hosts, uint32_t host)
{
    struct run_ending ending;
    memcpy(&ending, dti_header_in(hosts->cluster, host), sizeof ending);
    return ending;
}

const void *dti_hosts_note(const struct dti_hosts *hosts, uint32_t host, size_t *bytes)
{
    *bytes = ending_of(hosts, host).bytes;
    return (const char *)dti_header_in(hosts->cluster, host) + sizeof(struct run_ending);
}

static ditto_status agree(const struct dti_hosts *hosts, const char *what, ditto_status status,
                          const void *note, size_t bytes)
{
    if (status < 0)
        return dti_hosts_close(hosts->cluster, hosts->timeout_ms);
    struct run_ending own = { .status = status, .bytes = (uint32_t)bytes };
    struct dti_intent intent = { .kind = DTI_HEADER_END,
                                 .digest = dti_hash_bytes(DTI_HASH_SEED, what, strlen(what)),
                                 .name = what,
                                 .payload_bytes = sizeof own + bytes };
    char *out = dti_header_out(hosts->cluster);
    memcpy(out, &own, sizeof own);
    if (bytes > 0)
        memcpy(out + sizeof own, note, bytes);
    DTI_TRY(dti_hosts_exchange(hosts, &intent));
    for (uint32_t h = 0; h < dti_hosts_count(hosts) && status == DITTO_OK; h++)
        status = (ditto_status)ending_of(hosts, h).status;
    return status;
}

ditto_status dti_hosts_agree(struct dti_hosts *hosts, const char *what, ditto_status status)
{
    return agree(hosts, what, status, NULL, 0);
}

ditto_status dti_hosts_end_run(struct dti_hosts *hosts, ditto_status status, const void *note, size_t bytes)
{
    ditto_cluster *cluster = hosts->cluster;
    /* A merge function may not have returned an error that other hosts know of. */
    if (hosts->agrees || status < 0 || dti_headers_are_broken(cluster))
        return agree(hosts, "the end of the run", status, note, bytes);
    /* Runs without collectives would not learn of the failure of another host, which waits for this one. */
    bool fails = dti_cluster_progress(cluster) != DITTO_OK;
    if (fails || dti_headers_end_early(cluster)) {
        if (!fails)
            (void)dti_headers_fail_last(cluster);
        return dti_hosts_close(cluster, hosts->timeout_ms);
    }
    dti_headers_run_ends(cluster);
    return status;
}

/* -- making -- */

static ditto_status check_request(const struct dti_hosts *hosts, uint32_t host)
{
    struct dti_hosts_request own, theirs;
    struct dti_text text;
    char name[DTI_HOST_NAME_BYTES + 32];
    memcpy(&own, dti_header_in(hosts->cluster, 0), sizeof own);
    memcpy(&theirs, dti_header_in(hosts->cluster, host), sizeof theirs);
    text = (struct dti_text){ name, sizeof name, 0 };
    dti_describe_host(hosts->cluster, host, &text);
    if (theirs.order_blocks != own.order_blocks)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "order_blocks is %u on host 0, but %u on %s: it must be equal on all hosts",
                        own.order_blocks, theirs.order_blocks, name);
    if (theirs.timeout_ms != own.timeout_ms)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "timeout_ms is %u on host 0, but %u on %s (an option, or DITTO_TIMEOUT_MS): it must be equal "
            "on all hosts",
            own.timeout_ms, theirs.timeout_ms, name);
    if (theirs.agrees != own.agrees)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "run_agreement is %s on host 0, but %s on %s: it must be equal on all hosts",
                        own.agrees ? "on" : "off", theirs.agrees ? "on" : "off", name);
    if (theirs.options != own.options)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the kind, bytes_per_pack or implementation of the strategy differ between host 0 "
                        "and %s: they must be equal on all hosts",
                        name);
    return DITTO_OK;
}

/* Reads the requests of all hosts, which are behind their headers. All hosts get the same result. */
static ditto_status read_requests(struct dti_hosts *hosts, uint32_t *start)
{
    uint64_t all = 0;
    for (uint32_t h = 0; h < dti_hosts_count(hosts); h++) {
        struct dti_hosts_request request;
        DTI_TRY(check_request(hosts, h));
        memcpy(&request, dti_header_in(hosts->cluster, h), sizeof request);
        start[h] = (uint32_t)all;
        hosts->is_measured |= request.is_measured;
        hosts->most_replicas = request.replicas > hosts->most_replicas ? request.replicas
                                                                       : hosts->most_replicas;
        all += request.replicas;
        if (all > DTI_MAX_CLUSTER_REPLICAS)
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "the hosts have more than %u replicas: a cluster has at most so many",
                            DTI_MAX_CLUSTER_REPLICAS);
        if (h + 1 == dti_hosts_count(hosts) && request.order_blocks > all)
            return DTI_FAIL(
                DITTO_ERR_RANGE,
                "order_blocks = %u, but the strategy has %u replicas on all hosts: a block has at least "
                "one, so give at most %u",
                request.order_blocks, (uint32_t)all, (uint32_t)all);
    }
    start[dti_hosts_count(hosts)] = (uint32_t)all;
    return DITTO_OK;
}

/* Finds the parts of all hosts, and allocates what depends on their number. */
static ditto_status make_parts(struct dti_hosts *hosts, uint32_t order_blocks)
{
    struct dti_tree tree = { dti_ranges_replicas(&hosts->ranges), order_blocks };
    struct dti_span found[DTI_TREE_PARTS];
    uint32_t count = dti_hosts_count(hosts), own = dti_hosts_own(hosts), total = 0;
    hosts->part = calloc(((size_t)count + 1) * DTI_TREE_PARTS, sizeof *hosts->part);
    hosts->part_start = calloc((size_t)count + 1, sizeof *hosts->part_start);
    hosts->data = calloc((size_t)count + 1, sizeof *hosts->data);
    hosts->small_results = aligned_alloc(DTI_CACHE_LINE, DTI_SMALL_ROW_BYTES);
    if (hosts->part == NULL || hosts->part_start == NULL || hosts->data == NULL ||
        hosts->small_results == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a strategy on %u hosts", count);
    for (uint32_t h = 0; h < count; h++) {
        struct dti_span range = { hosts->ranges.start[h], hosts->ranges.start[h + 1] };
        uint32_t parts = dti_tree_subtrees(&tree, range, found);
        hosts->part_start[h] = total;
        memcpy(hosts->part + total, found, parts * sizeof *found);
        total += parts;
    }
    hosts->part_start[count] = total;
    hosts->most_block_parts = dti_hosts_block_parts(hosts, &tree);
    size_t slots = hosts->ranges.start[own + 1] - hosts->ranges.start[own] + 1;
    hosts->values = calloc(2 * slots * total + 1, sizeof *hosts->values);
    hosts->offsets = calloc(slots * DTI_LARGE_OFFSETS((size_t)count), sizeof *hosts->offsets);
    if (hosts->values == NULL || hosts->offsets == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a strategy on %u hosts", count);
    return DITTO_OK;
}

static ditto_status join(struct dti_hosts *hosts, const struct dti_hosts_request *request, uint32_t *start)
{
    struct dti_intent intent = { .kind = DTI_HEADER_CALL,
                                 .digest = dti_hash_bytes(DTI_HASH_SEED, "create", 6),
                                 .name = "ditto_strategy_create",
                                 .payload_bytes = sizeof *request };
    struct dti_hosts_request own = *request;
    own.is_measured = hosts->cluster->measured != NULL;
    memcpy(dti_header_out(hosts->cluster), &own, sizeof own);
    DTI_TRY(dti_hosts_exchange(hosts, &intent));
    ditto_status status = read_requests(hosts, start);
    if (status == DITTO_OK) {
        hosts->ranges = (struct dti_ranges){ dti_hosts_count(hosts), start };
        hosts->first = start[dti_hosts_own(hosts)];
        dti_life_line_set_ranges(hosts->cluster, &hosts->ranges);
        status = make_parts(hosts, request->order_blocks);
    }
    return status == DITTO_OK ? dti_hosts_measure(hosts) : dti_hosts_close(hosts->cluster, hosts->timeout_ms);
}

static ditto_status allocate(ditto_cluster *cluster, const struct dti_hosts_request *request,
                             struct dti_hosts **out)
{
    uint32_t count = cluster->wire.num_hosts;
    struct dti_hosts *hosts = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *hosts);
    uint32_t *start = calloc((size_t)count + 1, sizeof *start);
    if (hosts == NULL || start == NULL) {
        free(hosts);
        free(start);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a strategy on %u hosts", count);
    }
    memset(hosts, 0, sizeof *hosts);
    hosts->cluster = cluster;
    hosts->timeout_ms = request->timeout_ms;
    hosts->agrees = request->agrees;
    hosts->ranges.hosts = count;
    hosts->ranges.start = start;
    pthread_mutex_init(&hosts->failures.lock, NULL);
    *out = hosts;
    return DITTO_OK;
}

ditto_status dti_hosts_make(ditto_cluster *cluster, const struct dti_hosts_request *request,
                            ditto_status status, struct dti_hosts **out)
{
    struct dti_hosts *hosts = NULL;
    DTI_TRY(dti_cluster_check_usable(cluster));
    if (status == DITTO_OK && cluster->ranges != NULL)
        status = DTI_FAIL(DITTO_ERR_BUSY,
                          "another strategy uses the cluster: destroy it first, or make another cluster");
    if (status == DITTO_OK)
        status = allocate(cluster, request, &hosts);
    if (status == DITTO_OK)
        status = dti_hosts_prepare_measuring(hosts);
    status = status == DITTO_OK ? join(hosts, request, (uint32_t *)hosts->ranges.start)
                                : dti_hosts_close(cluster, request->timeout_ms);
    if (status != DITTO_OK) {
        dti_hosts_free(hosts);
        return status;
    }
    *out = hosts;
    return DITTO_OK;
}

void dti_hosts_leave(struct dti_hosts *hosts)
{
    if (hosts == NULL)
        return;
    dti_failure_notices_end(hosts);
    dti_life_line_set_ranges(hosts->cluster, NULL);
}

void dti_hosts_free(struct dti_hosts *hosts)
{
    if (hosts == NULL)
        return;
    dti_hosts_leave(hosts);
    /* The wire may still write to the buffers of a cluster that does not answer. */
    if (hosts->cluster->is_poisoned)
        dti_large_buffers_keep(hosts->cluster, hosts->large);
    else
        dti_large_buffers_free(hosts->large);
    dti_transfers_free(hosts->cluster, hosts->gathering);
    dti_transfers_free(hosts->cluster, hosts->measuring);
    free(hosts->measured);
    dti_hosts_exchange_free(hosts->cluster, hosts->exchange);
    free(hosts->gathered);
    free(hosts->offsets);
    free(hosts->part);
    free(hosts->part_start);
    free(hosts->data);
    free(hosts->values);
    free(hosts->small_results);
    free((uint32_t *)hosts->ranges.start);
    pthread_mutex_destroy(&hosts->failures.lock);
    free(hosts);
}
