/* src/sync/algorithms/in_mailboxes.c - small collectives, whose payloads are in the mailboxes of one meeting.
 *
 * An all-reduce by a kernel is combined during the meeting. In a meeting of several rounds, after every round
 * but the last each replica passes on the largest subtrees that its block's ids form, so that a replica reads
 * only what its siblings have (rounds.h). In a meeting by counter the last replica to arrive combines once
 * for all. In every other collective, each replica reads the mailboxes of the first round after the meeting.
 * It does this directly if all parts have one size and a kernel combines them. A flow does it for lists, for
 * parts that differ, and for functions of the user's, with more instructions. */
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/meeting/meeting.h"

#include <string.h>

struct small_reduction {
    struct dti_reduction reduction;
    size_t count;
    void *dst;
};

/* -- the mailboxes of the first round -- */

/* Returns the elements that replica `i` has contributed, of which each replica has `payload_bytes` bytes. A
 * replica reads its own from its source, because peers have read its mailbox, and the processor may have
 * moved the lines to them. To read them again cost as much as a whole meeting (docs/adr/0026). */
static const char *contribution(const struct dti_replica *self, uint32_t i, uint32_t seq,
                                const struct dti_call *call, size_t payload_bytes)
{
    return i == self->id ? call->src
                         : (const char *)dti_mailbox_payload(dti_mailbox_of(self->sync, i, seq, 0), call,
                                                             payload_bytes);
}

static void finish_local(struct dti_replica *self, struct small_reduction *c,
                         const struct dti_tree_value *value)
{
    struct dti_sync *sync = self->sync;
    /* The result has as many accumulators as a payload has elements. */
    char *tile = sync->state[self->id].workspace.scratch,
         *scratch = tile + DTI_MOST_WIDENING * DTI_TILE_BYTES;
    uint32_t n = sync->num_replicas;
    const void *sum = dti_fold(&c->reduction, (struct dti_span){ 0, n }, &value, c->count, tile, scratch);
    dti_finish(&c->reduction, n, sum, tile, c->count, c->dst);
}

/* Combines the payloads of all replicas, from byte `offset` of each. The destination is not a mailbox. */
static void combine_first(struct dti_replica *self, uint32_t seq, const struct dti_call *call,
                          size_t payload_bytes, size_t offset, struct small_reduction *c)
{
    const struct dti_sync *sync = self->sync;
    const struct dti_kernel *kernel = c->reduction.kernel;
    struct dti_tree_value value[DITTO_MAX_REPLICAS];
    if (sync->num_replicas == 2 && kernel->widen == NULL && kernel->divide == NULL) {
        kernel->combine(c->dst, contribution(self, 0, seq, call, payload_bytes) + offset,
                        contribution(self, 1, seq, call, payload_bytes) + offset, c->count);
        return;
    }
    for (uint32_t i = 0; i < sync->num_replicas; i++)
        value[i] = (struct dti_tree_value){ i, i + 1,
                                            contribution(self, i, seq, call, payload_bytes) + offset };
    finish_local(self, c, value);
}

/* -- all-reduce by a kernel -- */

static size_t partial_bytes(const struct small_reduction *c)
{
    return c->count * c->reduction.accumulator_bytes;
}

/* Returns where a mailbox of a round > 0 holds subtree `part` of a block that has `parts` subtrees. */
static unsigned char *partial_in_mailbox(struct dti_mailbox *mailbox, const struct dti_call *call,
                                         const struct small_reduction *c, uint32_t part, uint32_t parts)
{
    return parts == 1 ? dti_mailbox_payload(mailbox, call, partial_bytes(c))
                      : mailbox->payload + part * dti_partials_bytes(partial_bytes(c), 1);
}

/* Returns where a replica keeps what it has written there, for the same reason as in `contribution`. */
static char *own_partial(const struct dti_replica *self, const struct small_reduction *c, uint32_t part)
{
    return (char *)self->sync->state[self->id].partials + part * dti_partials_bytes(partial_bytes(c), 1);
}

/* Stores the values of a round's siblings in order. */
static void values_of_round(struct dti_replica *self, const struct dti_round_view *view, uint32_t seq,
                            uint32_t round, const struct dti_call *call, const struct small_reduction *c,
                            struct dti_tree_value *value)
{
    struct dti_sync *sync = self->sync;
    uint32_t values = 0, b = 0;
    do { /* there is at least the replica's own block */
        uint32_t from = dti_round_representative(view, b);
        struct dti_mailbox *mailbox = dti_mailbox_of(sync, from, seq, round);
        struct dti_span part[DTI_TREE_PARTS] = { { view->start[b], view->start[b + 1] } };
        uint32_t parts = round > 0 ? dti_tree_subtrees(sync->num_replicas, part[0], part) : 1;
        for (uint32_t p = 0; p < parts; p++) {
            const void *data = round == 0
                                   ? contribution(self, from, seq, call, call->count * call->element_bytes)
                               : b == view->own ? own_partial(self, c, p)
                                                : (char *)partial_in_mailbox(mailbox, call, c, p, parts);
            value[values++] = (struct dti_tree_value){ part[p].first, part[p].end, data };
        }
    } while (++b < view->count);
}

/* Stores the subtrees of the block that this round makes in the replica's mailbox of the next round. The
 * elements of a single replica are not widened. The values of this round may be the own partial results, so
 * these are replaced at the end. */
static void fill_next_mailbox(struct dti_replica *self, const struct dti_round_view *view, uint32_t seq,
                              uint32_t round, const struct dti_call *call, struct small_reduction *c,
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
    for (uint32_t p = 0; p < parts; p++)
        memcpy(own_partial(self, c, p), partial_in_mailbox(mailbox, call, c, p, parts), partial_bytes(c));
}

static void join_round(struct dti_replica *self, uint32_t seq, uint32_t round,
                       const struct dti_arrival *arrival)
{
    struct dti_replica_state *me = &self->sync->state[self->id];
    const struct dti_rounds_view *route = &me->route[arrival->call->implementation];
    struct small_reduction *c = arrival->context;
    if (route->rounds == 1) {
        combine_first(self, seq, arrival->call, arrival->payload_bytes, 0, c);
        return;
    }
    struct dti_tree_value value[DITTO_MAX_REPLICAS];
    values_of_round(self, &route->view[round], seq, round, arrival->call, c, value);
    if (round + 1 < route->rounds)
        fill_next_mailbox(self, &route->view[round], seq, round, arrival->call, c, value);
    else
        finish_local(self, c, value);
}

/* Called in a meeting by counter, on the last replica to arrive. Combines the values once for all
 * replicas. */
static void join_once(struct dti_replica *self, uint32_t seq, uint32_t round,
                      const struct dti_arrival *arrival)
{
    (void)round;
    combine_first(self, seq, arrival->call, arrival->payload_bytes, 0, arrival->context);
}

static ditto_status all_reduce(struct dti_replica *self, const struct dti_prepared *prepared,
                               struct dti_deadline *deadline)
{
    const struct dti_call *call = prepared->call;
    unsigned char *once = dti_meets_by_counter(self->sync, call) ? self->sync->result : NULL;
    struct small_reduction c = { prepared->reduction, call->count, once != NULL ? once : call->dst };
    struct dti_arrival arrival = { .call = call,
                                   .payload = call->src,
                                   .payload_bytes = prepared->size.own,
                                   .join = call->count == 0 ? NULL
                                           : once != NULL   ? join_once
                                                            : join_round,
                                   .context = &c };
    uint32_t seq;
    DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    if (once != NULL && call->count != 0)
        memcpy(call->dst, once, arrival.payload_bytes);
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

static size_t own_bytes(const struct dti_replica *self, const struct dti_prepared *prepared)
{
    const struct dti_call *call = prepared->call;
    if (call->pattern == DTI_PATTERN_BROADCAST)
        return self->id == call->root ? prepared->size.own : 0;
    if (call->pattern == DTI_PATTERN_ALL_GATHER && call->counts != NULL)
        return call->counts[self->id] * call->element_bytes;
    return prepared->size.own;
}

/* Adds to the counters that this replica has read `bytes` bytes from the mailbox of another one. */
static void count_read(struct dti_replica *self, uint32_t replica, size_t bytes)
{
    struct dti_counters *counters = &self->sync->state[self->id].workspace.counters;
    if (dti_is_far(self->sync, self->id, replica))
        counters->read_far += bytes;
    else
        counters->read_near += bytes;
}

/* Copies the payloads of replicas [first, end) to the destination, one after the other. */
static void copy_first(struct dti_replica *self, uint32_t seq, const struct dti_call *call, uint32_t first,
                       uint32_t end)
{
    size_t bytes = call->count * call->element_bytes;
    char *to = call->dst;
    for (uint32_t i = first; i < end; i++, to += bytes) {
        const char *from = contribution(self, i, seq, call, bytes);
        if (to != from) /* they are equal if the own part is in its place */
            memcpy(to, from, bytes);
        count_read(self, i, bytes);
    }
    self->sync->state[self->id].workspace.counters.written_near += (end - first) * bytes;
}

/* Combines the own part of all payloads, which is the whole if the call has a root. */
static void combine_own(struct dti_replica *self, uint32_t seq, const struct dti_prepared *prepared)
{
    const struct dti_call *call = prepared->call;
    size_t bytes = call->count * call->element_bytes,
           offset = call->pattern == DTI_PATTERN_REDUCE_SCATTER ? self->id * bytes : 0;
    struct small_reduction c = { prepared->reduction, call->count, call->dst };
    combine_first(self, seq, call, prepared->size.own, offset, &c);
    for (uint32_t i = 0; i < self->num_replicas; i++)
        count_read(self, i, bytes);
    self->sync->state[self->id].workspace.counters.written_near += bytes;
}

/* Reads the mailboxes after the meeting, without a flow. Returns false if the call needs one. */
static bool read_directly(struct dti_replica *self, uint32_t seq, const struct dti_prepared *prepared)
{
    const struct dti_call *call = prepared->call;
    uint32_t root = call->root;
    if (call->count == 0 || call->dtype == 0 || call->counts != NULL)
        return false;
    switch (call->pattern) {
    case DTI_PATTERN_BROADCAST: /* the root has its data already */
        copy_first(self, seq, call, root, root + (root != self->id));
        return true;
    case DTI_PATTERN_ALL_GATHER:
        copy_first(self, seq, call, 0, self->num_replicas);
        return true;
    case DTI_PATTERN_REDUCE_SCATTER:
        combine_own(self, seq, prepared);
        return true;
    case DTI_PATTERN_REDUCE:
        if (root == self->id)
            combine_own(self, seq, prepared);
        return true;
    default:
        return false;
    }
}

ditto_status dti_collective_in_mailboxes(struct dti_replica *self, const struct dti_prepared *prepared,
                                         struct dti_deadline *deadline)
{
    struct dti_sync *sync = self->sync;
    struct dti_replica_state *me = &sync->state[self->id];
    const struct dti_call *call = prepared->call;
    uint32_t seq;
    if (call->pattern == DTI_PATTERN_ALL_REDUCE && call->dtype != 0)
        return all_reduce(self, prepared, deadline);
    struct dti_arrival arrival = { .call = call,
                                   .payload = call->pattern == DTI_PATTERN_LIST
                                                  ? pack(call, me->workspace.scratch)
                                                  : call->src,
                                   .payload_bytes = own_bytes(self, prepared) };
    DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    if (read_directly(self, seq, prepared))
        return DITTO_OK;
    struct dti_flow flow = { .self = self,
                             .sync = sync,
                             .me = me,
                             .workspace = &me->workspace,
                             .call = call,
                             .seq = seq,
                             .from_mailboxes = true,
                             .payload_bytes = prepared->size.own,
                             .reduction = prepared->reduction };
    uint32_t serial = dti_error_serial;
    dti_flow_whole(&flow, self->id, self->id + 1);
    ditto_status status = flow.reduction.failed;
    return status == DITTO_OK ? status : dti_fail_function(self, call, status, serial);
}
