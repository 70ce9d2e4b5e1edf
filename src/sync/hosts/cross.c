/* src/sync/hosts/cross.c - cross calls that all hosts make. See cross.h. */
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "base/text/text.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "sync/hosts/gather.h"
#include "sync/meeting/sync_state.h"

#include <string.h>

/* A gather that the driver executes. In a merge function that is the caller of the run. */
struct gathering {
    const struct dti_cross_request *request;
    const void *own;
    size_t bytes;
    struct dti_replica *first; /* in a merge function: the replica whose run it is. Otherwise NULL */
    const struct dti_gathered *out;
};

static ditto_status gather(struct dti_hosts *hosts, struct gathering *g)
{
    const struct dti_cross_request *r = g->request;
    struct dti_limits limits = { .deadline = { .timeout_ms = hosts->timeout_ms } };
    if (g->first != NULL)
        limits = (struct dti_limits){ .deadline = dti_replica_deadline(g->first, hosts->timeout_ms),
                                      .stop = g->first->stop };
    struct dti_intent intent = { .kind = DTI_HEADER_CALL,
                                 .digest = dti_hash_bytes(DTI_HASH_SEED, r->name, strlen(r->name)),
                                 .name = r->name };
    bool late[DTI_MAX_HOSTS];
    char call[200];
    if (r->object != NULL)
        intent.digest = dti_hash_bytes(intent.digest, r->object, strlen(r->object));
    intent.digest = dti_hash_word(intent.digest, r->digest);
    enum dti_verdict verdict = dti_hosts_gather(hosts, &intent, g->own, g->bytes, &limits, late, &g->out);
    /* In a merge function, the end of the run finds out. */
    if (verdict == DTI_HEADERS_EQUAL && g->first == NULL)
        verdict = dti_headers_confirm(hosts->cluster);
    struct dti_text text = { call, sizeof call, 0 };
    dti_text_add(&text, "%s", r->name);
    if (r->object != NULL)
        dti_text_add(&text, " of \"%s\"", r->object);
    dti_text_add(&text, " (checksum of the arguments %08x)", (uint32_t)(r->digest ^ r->digest >> 32));
    return verdict == DTI_HEADERS_LATE ? dti_hosts_record_late(hosts, late, call)
                                       : dti_hosts_record(hosts, verdict, call);
}

static ditto_status gather_on_driver(const struct dti_hosts_call *c)
{
    return gather(c->hosts, c->step);
}

/* In a merge function, which replica 0 calls while the others pause. */
static ditto_status gather_in_pause(struct dti_replica *first, struct dti_hosts *hosts, struct gathering *g)
{
    struct dti_hosts_call c = { .self = first, .hosts = hosts, .step = g };
    g->first = first;
    DTI_TRY(dti_hosts_drive(&c, gather_on_driver));
    /* The replica has withdrawn the function, because the run was stopped. */
    return g->out != NULL ? DITTO_OK : dti_team_stop_status(first->team);
}

ditto_status dti_cross_gather(struct dti_team *team, const struct dti_cross_request *request, const void *own,
                              size_t bytes, const struct dti_gathered **out)
{
    struct dti_hosts *hosts = dti_team_sync(team)->hosts;
    struct gathering g = { .request = request, .own = own, .bytes = bytes };
    ditto_status status;
    DTI_TRY(dti_context_check_cross(team));
    DTI_TRY(dti_team_check_usable(team)); /* in a child process, the lock of the turn may have no owner */
    bool taken = dti_team_take_turn(team);
    if (dti_team_pauses(team) != 0) {
        status = gather_in_pause(dti_team_replica(team, 0), hosts, &g);
    } else {
        status = dti_cluster_check_usable(hosts->cluster);
        if (status == DITTO_OK)
            status = gather(hosts, &g);
    }
    dti_team_give_turn(team, taken);
    *out = g.out;
    return status;
}

static bool is_spread(const struct dti_team *team)
{
    return dti_team_all_replicas(team) != dti_team_num_replicas(team);
}

/* Returns NULL if the team has one host, and while the strategy is being made. */
static struct dti_hosts *hosts_of(const struct dti_team *team)
{
    return is_spread(team) && dti_team_sync(team) != NULL ? dti_team_sync(team)->hosts : NULL;
}

bool dti_cross_has_hosts(const struct dti_team *team)
{
    return hosts_of(team) != NULL;
}

bool dti_cross_agrees_on_runs(const struct dti_team *team)
{
    const struct dti_hosts *hosts = hosts_of(team);
    return hosts != NULL && hosts->agrees;
}

uint32_t dti_cross_hosts(const struct dti_team *team)
{
    const struct dti_hosts *hosts = hosts_of(team);
    return hosts != NULL ? dti_hosts_count(hosts) : 1;
}

uint32_t dti_cross_host(const struct dti_team *team)
{
    const struct dti_hosts *hosts = hosts_of(team);
    return hosts != NULL ? dti_hosts_own(hosts) : 0;
}

struct ditto_cluster *dti_cross_cluster(const struct dti_team *team)
{
    const struct dti_hosts *hosts = hosts_of(team);
    return hosts != NULL ? hosts->cluster : NULL;
}

bool dti_cross_has_life_line(const struct dti_team *team)
{
    const struct dti_hosts *hosts = hosts_of(team);
    return hosts != NULL && hosts->cluster->life_line != NULL;
}

/* The number of the last exchange of headers, with its epoch. */
static uint64_t last_exchange(const struct dti_hosts *hosts)
{
    return (uint64_t)dti_cluster_epoch(hosts->cluster) << 32 | (uint32_t)dti_headers_number(hosts->cluster);
}

uint64_t dti_cross_begin(const struct dti_team *team)
{
    /* A function of a dataset may not call hosts_of, because its strategy may be destroyed meanwhile. */
    const struct dti_hosts *hosts = is_spread(team) && dti_context_may_cross(team) ? hosts_of(team) : NULL;
    return hosts != NULL ? last_exchange(hosts) : 0;
}

uint64_t dti_cross_stamp(const struct dti_team *team)
{
    const struct dti_hosts *hosts = hosts_of(team);
    return hosts != NULL ? last_exchange(hosts) : 0;
}

void dti_cross_inner_run_failed(struct dti_team *team)
{
    const struct dti_hosts *hosts = hosts_of(team);
    if (hosts != NULL)
        dti_headers_break(hosts->cluster);
}

/* Tells the other hosts of the error of this thread, which has the turn. */
static ditto_status tell(struct dti_team *team, const struct dti_hosts *hosts, uint64_t begin,
                         ditto_status status)
{
    bool same_epoch = dti_cluster_epoch(hosts->cluster) == begin >> 32;
    if (dti_team_pauses(team) != 0) {
        /* The end of the run tells the others. If this call has met them, they have completed another part of
         * it, so the run ends even if the merge function handles the error. */
        if (same_epoch && last_exchange(hosts) != begin)
            dti_headers_break(hosts->cluster);
        return status;
    }
    ditto_error error = *dti_error_get();
    bool tells = same_epoch && dti_cluster_check_usable(hosts->cluster) == DITTO_OK;
    dti_error_set(&error);
    return tells ? dti_hosts_close(hosts->cluster, hosts->timeout_ms) : status;
}

ditto_status dti_cross_tell(struct dti_team *team, uint64_t begin, ditto_status status)
{
    /* On the thread of a replica, in the scope of another strategy, or in a child process, no cross call has
     * begun. */
    if (status >= 0 || !is_spread(team) || !dti_context_may_cross(team) || dti_team_forked(team))
        return status;
    bool taken = dti_team_take_turn(team);
    status = tell(team, hosts_of(team), begin, status);
    dti_team_give_turn(team, taken);
    return status;
}

ditto_status dti_cross_agree(struct dti_team *team, const char *name, ditto_status status)
{
    struct dti_cross_request request = { .name = name };
    const struct dti_gathered *all;
    if (status < 0 || hosts_of(team) == NULL)
        return status; /* dti_cross_tell tells the others of an error */
    DTI_TRY(dti_cross_gather(team, &request, NULL, 0, &all));
    return status;
}

ditto_status dti_cross_compare(struct dti_team *team, const char *name, const char *object, uint64_t digest)
{
    struct dti_cross_request request = { name, object, digest };
    const struct dti_gathered *all;
    return hosts_of(team) == NULL ? DITTO_OK : dti_cross_gather(team, &request, NULL, 0, &all);
}
