/* src/sync/algorithms/in_mailboxes.c - small collectives, whose payloads are in the mailboxes of one meeting.
 *
 * An all-reduce by a kernel is combined during the meeting. In a meeting of several rounds, after every round
 * but the last each replica passes on the largest subtrees that its block's ids form, so that a replica reads
 * only what its siblings have (rounds.h). In a meeting by counter the last replica to arrive combines once
 * for all. In every other collective, each replica reads the mailboxes of the first round after the
 * meeting. */
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/meeting/meeting.h"

#include <string.h>

/* -- all-reduce by a kernel -- */

struct small_all_reduce {
    struct dti_reduction reduction;
    size_t count;
    void *dst;
};

/* Returns where a mailbox of a round > 0 holds subtree `part` of a block that has `parts` subtrees. */
static unsigned char *partial_in_mailbox(struct dti_mailbox *mailbox, const struct dti_call *call,
                                         const struct small_all_reduce *c, uint32_t part, uint32_t parts)
{
    size_t bytes = c->count * c->reduction.accumulator_bytes;
    return parts == 1 ? dti_mailbox_payload(mailbox, call, bytes)
                      : mailbox->payload + part * dti_partials_bytes(bytes, 1);
}

/* Stores the values of a round's siblings in order, and returns their number. */
static uint32_t values_of_round(struct dti_replica *self, const struct dti_round_view *view, uint32_t seq,
                                uint32_t round, const struct dti_call *call, const struct small_all_reduce *c,
                                struct dti_tree_value *value)
{
    struct dti_sync *sync = self->sync;
    uint32_t values = 0, b = 0;
    do { /* there is at least the replica's own block */
        struct dti_mailbox *mailbox = dti_mailbox_of(sync, dti_round_representative(view, b), seq, round);
        struct dti_span part[DTI_TREE_PARTS] = { { view->start[b], view->start[b + 1] } };
        uint32_t parts = round > 0 ? dti_tree_subtrees(sync->num_replicas, part[0], part) : 1;
        for (uint32_t p = 0; p < parts; p++) {
            const void *data = round > 0 ? partial_in_mailbox(mailbox, call, c, p, parts)
                                         : dti_mailbox_payload(mailbox, call,
                                                               c->count * c->reduction.element_bytes);
            value[values++] = (struct dti_tree_value){ part[p].first, part[p].end, data };
        }
    } while (++b < view->count);
    return values;
}

/* Stores the subtrees of the block that this round makes in the replica's mailbox of the next round. The
 * elements of a single replica are not widened. */
static void fill_next_mailbox(struct dti_replica *self, const struct dti_round_view *view, uint32_t seq,
                              uint32_t round, const struct dti_call *call, struct small_all_reduce *c,
                              const struct dti_tree_value *value)
{
    struct dti_sync *sync = self->sync;
    struct dti_mailbox *mailbox = dti_mailbox_of(sync, self->id, seq, round + 1);
    struct dti_span part[DTI_TREE_PARTS];
    uint32_t parts = dti_tree_subtrees(sync->num_replicas,
                                       (struct dti_span){ view->start[0], view->start[view->count] }, part);
    char *scratch = sync->state[self->id].workspace.scratch;
    for (uint32_t p = 0; p < parts; p++) {
        unsigned char *out = partial_in_mailbox(mailbox, call, c, p, parts);
        bool single = part[p].end - part[p].first == 1;
        /* `value` is never uninitialized, because a block has subtrees and there is a value for each. */
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
        const void *result = single ? (value++)->data
                                    : dti_fold(&c->reduction, part[p], &value, c->count, out, scratch);
        if (result != out)
            memcpy(out, result,
                   c->count * (single ? c->reduction.element_bytes : c->reduction.accumulator_bytes));
    }
}

static void finish_local(struct dti_replica *self, struct small_all_reduce *c,
                         const struct dti_tree_value *value, void *dst)
{
    struct dti_sync *sync = self->sync;
    /* The result has as many accumulators as a payload has elements. */
    char *tile = sync->state[self->id].workspace.scratch,
         *scratch = tile + DTI_MOST_WIDENING * DTI_TILE_BYTES;
    uint32_t n = sync->num_replicas;
    const void *sum = dti_fold(&c->reduction, (struct dti_span){ 0, n }, &value, c->count, tile, scratch);
    dti_finish(&c->reduction, n, sum, tile, c->count, dst);
}

/* Combines two values that need no conversion or division directly into the destination. Returns false if
 * this is not possible. The destination is not a mailbox. */
static bool combine_pair(struct small_all_reduce *c, const struct dti_tree_value *value, uint32_t values)
{
    const struct dti_kernel *kernel = c->reduction.kernel;
    if (values != 2 || kernel == NULL || kernel->widen != NULL || kernel->divide != NULL)
        return false;
    kernel->combine(c->dst, value[0].data, value[1].data, c->count);
    return true;
}

static void join_round(struct dti_replica *self, uint32_t seq, uint32_t round,
                       const struct dti_arrival *arrival)
{
    struct dti_replica_state *me = &self->sync->state[self->id];
    const struct dti_rounds_view *route = &me->route[arrival->call->implementation];
    struct small_all_reduce *c = arrival->context;
    struct dti_tree_value value[DITTO_MAX_REPLICAS];
    uint32_t values = values_of_round(self, &route->view[round], seq, round, arrival->call, c, value);
    if (round + 1 < route->rounds)
        fill_next_mailbox(self, &route->view[round], seq, round, arrival->call, c, value);
    else if (route->rounds > 1 || !combine_pair(c, value, values))
        finish_local(self, c, value, c->dst);
}

/* Called in a meeting by counter, on the last replica to arrive. Combines the values once for all
 * replicas. */
static void join_once(struct dti_replica *self, uint32_t seq, uint32_t round,
                      const struct dti_arrival *arrival)
{
    struct dti_sync *sync = self->sync;
    struct small_all_reduce *c = arrival->context;
    struct dti_tree_value value[DITTO_MAX_REPLICAS];
    (void)round;
    for (uint32_t i = 0; i < sync->num_replicas; i++)
        value[i] = (struct dti_tree_value){ i, i + 1,
                                            dti_mailbox_payload(dti_mailbox_of(sync, i, seq, 0),
                                                                arrival->call, arrival->payload_bytes) };
    finish_local(self, c, value, sync->result);
}

static ditto_status all_reduce(struct dti_replica *self, const struct dti_call *call,
                               struct dti_deadline *deadline)
{
    struct dti_sync *sync = self->sync;
    bool counted = dti_meets_by_counter(self->sync, call);
    struct small_all_reduce c = { dti_flow_reduction(sync, call), call->count, call->dst };
    struct dti_arrival arrival = { .call = call,
                                   .payload = call->src,
                                   .payload_bytes = call->count * call->element_bytes,
                                   .join = call->count == 0 ? NULL
                                           : counted        ? join_once
                                                            : join_round,
                                   .context = &c };
    uint32_t seq;
    DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    if (counted && call->count != 0)
        memcpy(call->dst, sync->result, arrival.payload_bytes);
    return DITTO_OK;
}

/* -- the other collectives -- */

/* Copies the items of a list into a payload, one after the other (dti_item_bytes). */
static const void *pack(const struct dti_call *call, char *payload)
{
    char *to = payload;
    for (size_t i = 0; i < call->count; i++) {
        if (call->list[i].count != 0)
            memcpy(to, call->list[i].src, call->list[i].count * ditto_dtype_bytes(call->list[i].dtype));
        to += dti_item_bytes(&call->list[i]);
    }
    return payload;
}

static size_t own_bytes(const struct dti_replica *self, const struct dti_call *call,
                        const struct dti_call_size *size)
{
    if (call->pattern == DTI_PATTERN_BROADCAST)
        return self->id == call->root ? size->own : 0;
    if (call->pattern == DTI_PATTERN_ALL_GATHER && call->counts != NULL)
        return call->counts[self->id] * call->element_bytes;
    return size->own;
}

ditto_status dti_collective_in_mailboxes(struct dti_replica *self, const struct dti_call *call,
                                         const struct dti_call_size *size, struct dti_deadline *deadline)
{
    struct dti_sync *sync = self->sync;
    struct dti_replica_state *me = &sync->state[self->id];
    struct dti_flow flow = { .self = self,
                             .sync = sync,
                             .me = me,
                             .workspace = &me->workspace,
                             .call = call,
                             .from_mailboxes = true };
    if (call->pattern == DTI_PATTERN_ALL_REDUCE && call->dtype != 0)
        return all_reduce(self, call, deadline);
    struct dti_arrival arrival = { .call = call,
                                   .payload = call->pattern == DTI_PATTERN_LIST
                                                  ? pack(call, me->workspace.scratch)
                                                  : call->src,
                                   .payload_bytes = own_bytes(self, call, size) };
    DTI_TRY(dti_meet(self, &arrival, deadline, &flow.seq));
    flow.payload_bytes = size->own;
    flow.reduction = dti_flow_reduction(sync, call);
    uint32_t serial = dti_error_serial;
    dti_flow_whole(&flow, self->id, self->id + 1);
    ditto_status status = flow.reduction.failed;
    return status == DITTO_OK ? status : dti_fail_function(self, call, status, serial);
}
