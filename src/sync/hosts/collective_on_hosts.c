/* src/sync/hosts/collective_on_hosts.c - a collective over several hosts, from the first meeting of the
 * replicas of this host to the last. See hosts.h. */
#include "base/numbers/checksum.h"
#include "base/waiting/stop.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/algorithms/neighbours.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/hosts/gather.h"
#include "sync/hosts/started.h"
#include "sync/meeting/access.h"
#include "sync/meeting/failure.h"
#include "sync/meeting/meeting.h"
#include "sync/pending/pending.h"

#include <string.h>

/* -- errors -- */

static void describe(const struct dti_hosts_call *c, char text[DTI_CALL_TEXT_BYTES])
{
    struct dti_text out = { text, DTI_CALL_TEXT_BYTES, 0 };
    text[0] = '\0';
    dti_call_describe(c->call, c->number, &out);
}

/* Stops the run with the error of this thread's record. */
static ditto_status stop(const struct dti_hosts_call *c, ditto_status status, bool is_known)
{
    ditto_error own = *dti_error_get();
    if (is_known)
        dti_hosts_error_is_known(c->hosts);
    dti_replica_stop(c->self);
    dti_error_set(&own);
    return status;
}

static ditto_status fail_wait(const struct dti_hosts_call *c, enum dti_wait_end end)
{
    switch (end) {
    case DTI_WAIT_STOPPED:
        return dti_team_stop_status(c->self->team);
    case DTI_WAIT_HOLDS: /* another host has ended the epoch */
        return stop(c, dti_headers_fail_last(c->hosts->cluster), true);
    case DTI_WAIT_LATE:
    case DTI_WAIT_FAILED:
        break;
    }
    return stop(c, dti_error_get()->status, false);
}

ditto_status dti_hosts_fail_wait(const struct dti_hosts_call *c, enum dti_wait_end end)
{
    ditto_status status = fail_wait(c, end);
    /* The run may be inside a merge function that does not return the error. */
    dti_headers_break(c->hosts->cluster);
    return status;
}

ditto_status dti_hosts_fail_late(const struct dti_hosts_call *c, const struct dti_limits *limits,
                                 const bool *late)
{
    char call[DTI_CALL_TEXT_BYTES], hosts[300] = "";
    struct dti_text text = { hosts, sizeof hosts, 0 };
    describe(c, call);
    dti_headers_describe(c->hosts->cluster, late, &text);
    struct dti_deadline deadline = limits->deadline;
    struct dti_replica *waiter = c->started != 0 ? dti_started_waiter(c, &deadline) : c->self;
    int32_t outer_replica = dti_this_thread()->replica;
    dti_this_thread()->replica = (int32_t)waiter->id;
    ditto_status status = dti_fail_late(waiter, &deadline, call, hosts);
    dti_this_thread()->replica = outer_replica;
    dti_headers_break(c->hosts->cluster);
    return status;
}

/* -- headers -- */

/* The digest of a call, which is equal in all processes. Unlike dti_call_digest it depends on no address. */
static uint64_t digest_of(const struct dti_call *call)
{
    uint64_t digest = dti_hash_bytes(DTI_HASH_SEED, call->name, strlen(call->name));
    if (call->object != NULL)
        digest = dti_hash_bytes(digest, call->object, strlen(call->object));
    const uint64_t words[] = { call->count,
                               call->element_bytes,
                               call->whole,
                               call->root,
                               call->hash,
                               (uint64_t)call->pattern << 24 | (uint64_t)call->dtype << 16 |
                                   (uint64_t)call->op << 8 | call->implementation };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        digest = dti_hash_word(digest, words[i]);
    return digest;
}

struct dti_intent dti_hosts_intent(const struct dti_hosts_call *c)
{
    return (struct dti_intent){ .kind = DTI_HEADER_CALL,
                                .digest = digest_of(c->call),
                                .name = c->call->name,
                                .label = c->call->label,
                                .number = c->number };
}

struct dti_limits dti_hosts_limits(const struct dti_hosts_call *c)
{
    struct dti_limits limits = { .deadline = dti_replica_deadline(c->self, c->timeout_ms),
                                 .stop = c->self->stop };
    if (c->started != 0)
        dti_started_set_limits(c, &limits);
    return limits;
}

ditto_status dti_hosts_fail_verdict(const struct dti_hosts_call *c, enum dti_verdict verdict,
                                    const struct dti_limits *limits, const bool *late)
{
    char call[DTI_CALL_TEXT_BYTES];
    switch (verdict) {
    case DTI_HEADERS_EQUAL:
        return DITTO_OK;
    case DTI_HEADERS_DIFFER:
        describe(c, call);
        (void)dti_headers_fail_differ(c->hosts->cluster, call);
        dti_hosts_error_is_known(c->hosts);
        return dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
    case DTI_HEADERS_LAST:
        return dti_hosts_fail_wait(c, DTI_WAIT_HOLDS);
    case DTI_HEADERS_LATE:
        return dti_hosts_fail_late(c, limits, late);
    case DTI_HEADERS_STOPPED:
        return dti_hosts_fail_wait(c, DTI_WAIT_STOPPED);
    case DTI_HEADERS_FAILED:
        break;
    }
    return dti_hosts_fail_wait(c, DTI_WAIT_FAILED);
}

size_t dti_hosts_combine_nothing(void *context, uint32_t first, uint32_t hosts, const void *low,
                                 const void *high, void *out)
{
    (void)context, (void)first, (void)hosts, (void)low, (void)high, (void)out;
    return 0;
}

ditto_status dti_hosts_begin(const struct dti_hosts_call *c, size_t payload_bytes,
                             dti_header_combine_fn *combine)
{
    struct dti_limits limits = dti_hosts_limits(c);
    struct dti_intent intent = dti_hosts_intent(c);
    bool late[DTI_MAX_HOSTS];
    intent.payload_bytes = payload_bytes;
    intent.combine = combine;
    intent.context = (void *)c;
    enum dti_verdict verdict = dti_headers_exchange(c->hosts->cluster, &intent, &limits);
    if (verdict == DTI_HEADERS_EQUAL)
        return DITTO_OK;
    dti_headers_list_missing(c->hosts->cluster, late);
    return dti_hosts_fail_verdict(c, verdict, &limits, late);
}

ditto_status dti_hosts_gather_call(const struct dti_hosts_call *c, const void *own, size_t bytes,
                                   const struct dti_gathered **out)
{
    struct dti_limits limits = dti_hosts_limits(c);
    struct dti_intent intent = dti_hosts_intent(c);
    bool late[DTI_MAX_HOSTS];
    return dti_hosts_fail_verdict(c, dti_hosts_gather(c->hosts, &intent, own, bytes, &limits, late, out),
                                  &limits, late);
}

/* -- arithmetic -- */

void dti_hosts_combine_parts(const struct dti_hosts_call *c, const struct dti_segment *segment, size_t first,
                             size_t count, unsigned char *const *out)
{
    struct dti_flow *flow = c->flow;
    struct dti_reduction *r = &flow->reduction;
    const struct dti_hosts *hosts = c->hosts;
    const struct dti_span *part = &hosts->part[hosts->part_start[dti_hosts_own(hosts)]];
    struct dti_tree_value value[DITTO_MAX_REPLICAS];
    char *scratch = (char *)flow->workspace->scratch + DTI_TILE_BYTES;
    size_t step = dti_tile_count(r);
    for (size_t at = 0; at < count; at += step) {
        size_t tile = count - at < step ? count - at : step;
        const struct dti_tree_value *next = value;
        uint32_t i = 0;
        do /* there is at least one replica */
            value[i] = (struct dti_tree_value){ hosts->first + i, hosts->first + i + 1,
                                                dti_flow_source(flow, segment, i) +
                                                    (first + at) * r->element_bytes };
        while (++i < c->self->num_replicas);
        for (uint32_t p = 0; p < dti_hosts_parts(hosts, dti_hosts_own(hosts)); p++) {
            if (out[p] == NULL) {
                next++;
                continue;
            }
            unsigned char *to = out[p] + at * dti_part_bytes(part[p], r);
            if (part[p].end - part[p].first == 1) {
                memcpy(to, next->data, tile * r->element_bytes);
                next++;
                continue;
            }
            const void *result = dti_fold(r, part[p], &next, tile, to, scratch);
            if (r->failed != DITTO_OK)
                return;
            if (result != to)
                memcpy(to, result, tile * r->accumulator_bytes);
        }
    }
}

void dti_hosts_finish(const struct dti_hosts_call *c, size_t count, const struct dti_tree_value *value,
                      unsigned char *dst)
{
    struct dti_flow *flow = c->flow;
    struct dti_reduction *r = &flow->reduction;
    uint32_t parts = c->hosts->part_start[dti_hosts_count(c->hosts)];
    size_t step = dti_tile_count(r);
    char *tile = flow->workspace->scratch, *scratch = tile + DTI_TILE_BYTES;
    struct dti_tree_value *at_tile = dti_hosts_values(c->hosts, c->slot) + parts;
    for (size_t at = 0; at < count; at += step) {
        size_t length = count - at < step ? count - at : step;
        const struct dti_tree_value *next = at_tile;
        for (uint32_t p = 0; p < parts; p++)
            at_tile[p] = (struct dti_tree_value){ value[p].first, value[p].end,
                                                  (const char *)value[p].data +
                                                      at * dti_part_bytes(c->hosts->part[p], r) };
        unsigned char *out = dst + at * r->element_bytes;
        const void *sum = dti_fold(r, (struct dti_span){ 0, r->tree.n }, &next, length, tile, scratch);
        if (r->failed != DITTO_OK)
            return;
        dti_finish(r, r->tree.n, sum, tile, length, out);
    }
}

/* -- a collective -- */

ditto_status dti_hosts_meet(const struct dti_hosts_call *c)
{
    struct dti_arrival arrival = { .call = c->call, .goes_on = true };
    struct dti_deadline deadline = { .timeout_ms = DITTO_FOREVER };
    uint32_t seq;
    if (c->self->index == 0)
        deadline = dti_replica_deadline(c->self, c->timeout_ms);
    return dti_meet(c->self, &arrival, &deadline, &seq);
}

/* The user's function that combines, and the replica that calls it. */
struct hosts_combining {
    struct dti_replica *self;
    const struct dti_combine_call *function;
};

/* A ditto_combine_fn, as combine_outside in collective.c. */
static ditto_status combine_outside(void *out, const void *left, const void *right, size_t count, void *user)
{
    const struct hosts_combining *c = user;
    dti_access_end(c->self);
    ditto_status status = c->function->combine(out, left, right, count, c->function->user);
    if (dti_access_begin(c->self) || status != DITTO_OK)
        return status;
    return dti_team_stop_status(c->self->team);
}

static ditto_status driven_small(const struct dti_hosts_call *c)
{
    uint32_t serial = dti_this_thread()->errors;
    if (!dti_access_begin(c->self))
        return dti_leave_collective(c->self, dti_team_stop_status(c->self->team));
    ditto_status status = dti_hosts_small(c);
    dti_access_end(c->self);
    if (status == DITTO_OK)
        return DITTO_OK;
    if (!dti_stopped(c->self->stop))
        status = dti_fail_function(c->self, c->call, status, serial);
    return dti_leave_collective(c->self, status);
}

static ditto_status small_barrier(const struct dti_hosts_call *c)
{
    return dti_hosts_begin(c, 0, dti_hosts_combine_nothing);
}

void dti_hosts_call_begin(struct dti_hosts_call *c, struct dti_replica *self, const struct dti_call *call,
                          const struct dti_deadline *deadline)
{
    *c = (struct dti_hosts_call){ .self = self,
                                  .hosts = self->sync->hosts,
                                  .call = call,
                                  .timeout_ms = deadline->timeout_ms,
                                  .slot = self->index };
    c->number = atomic_load_explicit(&self->sync->state[self->index].number, memory_order_relaxed);
}

/* Executes a collective. Operations that were started before it have been carried out. */
ditto_status dti_hosts_execute(struct dti_replica *self, const struct dti_prepared_call *prepared,
                               const struct dti_target *target, struct dti_deadline *deadline)
{
    struct dti_sync *sync = self->sync;
    struct dti_arrival arrival = { .call = prepared->call };
    struct dti_hosts_call c;
    uint32_t seq;
    DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    DTI_TRY(dti_meeting_compare(self, seq));
    dti_hosts_call_begin(&c, self, prepared->call, deadline);
    if (prepared->call->pattern == DTI_PATTERN_NOTHING) {
        DTI_TRY(dti_hosts_drive(&c, small_barrier));
        return dti_hosts_meet(&c);
    }
    struct dti_flow flow = { .self = self,
                             .sync = sync,
                             .me = &sync->state[self->index],
                             .workspace = &sync->state[self->index].workspace,
                             .call = prepared->call,
                             .target = target,
                             .seq = seq,
                             .reduction = prepared->reduction };
    struct hosts_combining combining = { self, prepared->call->more };
    if (flow.reduction.function != NULL) {
        flow.reduction.function = combine_outside;
        flow.reduction.user = &combining;
    }
    c.flow = &flow;
    if (!dti_hosts_is_small(&c))
        return dti_hosts_large(&c);
    DTI_TRY(dti_hosts_drive(&c, driven_small));
    DTI_TRY(dti_hosts_meet(&c));
    dti_hosts_small_results(&c);
    return DITTO_OK;
}

/* Executes a call that moves equal parts, as an exchange. */
static ditto_status move_parts(struct dti_replica *self, const struct dti_call *given,
                               struct dti_deadline *deadline)
{
    ditto_exchange_part parts[DITTO_MAX_REPLICAS];
    struct dti_exchange_list list = { .part = parts, .name = given->name };
    struct dti_call call = *given;
    DTI_TRY(dti_exchange_list_parts(self, given, NULL, parts, &list.parts));
    call.more = &list;
    call.known_number = 0; /* the list is a part of the call, too */
    return dti_exchange_on_hosts(self, &call, &list, deadline);
}

ditto_status dti_collective_on_hosts(struct dti_replica *self, const struct dti_prepared_call *prepared,
                                     const struct dti_target *target, struct dti_deadline *deadline)
{
    if (dti_call_moves_parts(prepared->call))
        return move_parts(self, prepared->call, deadline);
    DTI_TRY(dti_pending_finish_all(self, deadline));
    return dti_hosts_execute(self, prepared, target, deadline);
}
