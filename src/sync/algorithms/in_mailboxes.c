/* src/sync/algorithms/in_mailboxes.c - small collectives, whose payloads are in the mailboxes of one meeting.
 *
 * An all-reduce by a kernel is combined during the meeting. In a meeting of several rounds, after every round
 * but the last each replica passes on the largest subtrees that its block's ids form, so that a replica reads
 * only what its siblings have (rounds.h). In a meeting by counter the last replica to arrive combines once
 * for all. In every other collective, each replica reads the mailboxes of the first round after the meeting.
 * It does this directly if all parts have one size and no function of the user's combines them. A flow does
 * it for lists, for parts that differ, for scans of more than two replicas, and for functions of the user's,
 * with more instructions.
 *
 * A replica does not read its own mailbox. Peers have read it, and the processor may have moved its lines to
 * them. Two replicas that exchanged 8 bytes took 195 ns on two cores, and 320 ns if each read its own bytes
 * back. The replica reads its own elements from a buffer that no other replica writes. */
#include "replicas/team/team.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/meeting/meeting.h"

#include <string.h>

/* -- the payloads of the first round -- */

/* Must be called before the meeting, with what is put into the mailbox. Returns where the replica reads it
 * after the meeting. This is a copy, because replicas may share a source, and a peer that has returned may
 * write it. A destination is never shared, so the source of a call in place needs no copy. */
static const char *keep_payload(const struct dti_replica *self, const struct dti_arrival *arrival)
{
    unsigned char *own = self->sync->state[self->index].own_payload;
    if (arrival->payload == arrival->call->dst)
        return arrival->payload;
    if (arrival->payload_bytes != 0)
        memcpy(own, arrival->payload, arrival->payload_bytes);
    return (const char *)own;
}

/* Moves the part that a replica has for itself, in a call that moves parts, before the meeting. No other
 * replica writes its place, and the source may be shared. */
static void place_own_part(const struct dti_replica *self, const struct dti_call *call)
{
    size_t bytes = call->count * call->element_bytes, before = self->index * bytes;
    if (bytes == 0 || (call->root != DTI_NO_ROOT && call->root != self->index))
        return;
    const char *from = (const char *)call->src + (dti_flow_shape(call)->cuts_src ? before : 0);
    char *to = (char *)call->dst + (dti_flow_shape(call)->cuts_dst ? before : 0);
    if (to != from)
        memcpy(to, from, bytes);
}

/* A call whose payloads can be read: after the meeting, or while it joins them. */
struct payloads {
    const struct dti_call *call;

    /* The number of bytes of each replica. */
    size_t bytes;

    /* Of this replica (keep_payload). NULL if its part for itself is in its place (place_own_part). */
    const char *own;
};

static const char *payload_of(const struct dti_replica *self, const struct payloads *p, uint32_t i,
                              uint32_t seq)
{
    return i == self->index
               ? p->own
               : (const char *)dti_mailbox_payload(dti_mailbox_of(self->sync, i, seq, 0), p->call, p->bytes);
}

/* A reduction by a kernel. */
struct small_reduction {
    struct payloads payloads;
    struct dti_reduction reduction;
    size_t count;
    void *dst;
};

static void finish_local(struct dti_replica *self, struct small_reduction *c,
                         const struct dti_tree_value *value)
{
    struct dti_sync *sync = self->sync;
    /* The result has as many accumulators as a payload has elements. */
    char *tile = sync->state[self->index].workspace.scratch,
         *scratch = tile + DTI_MOST_WIDENING * DTI_TILE_BYTES;
    size_t n = sync->tree.n;
    const void *sum = dti_fold(&c->reduction, (struct dti_span){ 0, n }, &value, c->count, tile, scratch);
    dti_finish(&c->reduction, n, sum, tile, c->count, c->dst);
}

/* Combines the payloads of all replicas, from byte `offset` of each. The destination is not a mailbox. */
static void combine_payloads(struct dti_replica *self, uint32_t seq, size_t offset, struct small_reduction *c)
{
    const struct dti_sync *sync = self->sync;
    const struct dti_kernel *kernel = c->reduction.kernel;
    struct dti_tree_value value[DITTO_MAX_REPLICAS];
    if (sync->num_replicas == 2 && kernel->widen == NULL && kernel->divide == NULL) {
        kernel->combine(c->dst, payload_of(self, &c->payloads, 0, seq) + offset,
                        payload_of(self, &c->payloads, 1, seq) + offset, c->count);
        return;
    }
    for (uint32_t i = 0; i < sync->num_replicas; i++)
        value[i] = (struct dti_tree_value){ i, i + 1, payload_of(self, &c->payloads, i, seq) + offset };
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

/* Returns this replica's copy of subtree `part` that it has passed on. It reads this copy, and not its
 * mailbox. */
static char *own_partial(const struct dti_replica *self, const struct small_reduction *c, uint32_t part)
{
    return (char *)self->sync->state[self->index].partials + part * dti_partials_bytes(partial_bytes(c), 1);
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
        uint32_t parts = round > 0 ? dti_tree_subtrees(&sync->tree, part[0], part) : 1;
        for (uint32_t p = 0; p < parts; p++) {
            const void *data = round == 0       ? payload_of(self, &c->payloads, from, seq)
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
    struct dti_mailbox *mailbox = dti_mailbox_of(sync, self->index, seq, round + 1);
    struct dti_span part[DTI_TREE_PARTS];
    uint32_t parts = dti_tree_subtrees(&sync->tree,
                                       (struct dti_span){ view->start[0], view->start[view->count] }, part);
    char *scratch = sync->state[self->index].workspace.scratch;
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
    struct dti_replica_state *me = &self->sync->state[self->index];
    const struct dti_rounds_view *route = &me->route[arrival->call->implementation];
    struct small_reduction *c = arrival->context;
    if (route->rounds == 1) {
        combine_payloads(self, seq, 0, c);
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
    combine_payloads(self, seq, 0, arrival->context);
}

static ditto_status all_reduce(struct dti_replica *self, const struct dti_prepared_call *prepared,
                               struct dti_deadline *deadline)
{
    const struct dti_call *call = prepared->call;
    unsigned char *shared_result = dti_meets_by_counter(self->sync, call) ? self->sync->result : NULL;
    struct small_reduction c = { .reduction = prepared->reduction,
                                 .count = call->count,
                                 .dst = shared_result != NULL ? shared_result : call->dst };
    struct dti_arrival arrival = { .call = call,
                                   .payload = call->src,
                                   .payload_bytes = prepared->size.own,
                                   .next_bytes = prepared->size.own,
                                   .join = call->count == 0        ? NULL
                                           : shared_result != NULL ? join_once
                                                                   : join_round,
                                   .context = &c };
    uint32_t seq;
    c.payloads = (struct payloads){ call, arrival.payload_bytes, keep_payload(self, &arrival) };
    DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    if (shared_result != NULL && call->count != 0)
        memcpy(call->dst, shared_result, arrival.payload_bytes);
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

static size_t own_bytes(const struct dti_replica *self, const struct dti_prepared_call *prepared)
{
    const struct dti_call *call = prepared->call;
    if (dti_flow_shape(call)->from == DTI_END_ROOT)
        return self->index == call->root ? prepared->size.own : 0;
    if (call->pattern == DTI_PATTERN_GATHER)
        return self->index == call->root ? 0 : prepared->size.own;
    if (call->pattern == DTI_PATTERN_ALL_GATHER && call->counts != NULL)
        return call->counts[self->index] * call->element_bytes;
    return prepared->size.own;
}

/* Adds to the counters that this replica has read `bytes` bytes of a replica, which may be itself. */
static void count_read(struct dti_replica *self, uint32_t replica, size_t bytes)
{
    struct dti_counters *counters = &self->sync->state[self->index].workspace.counters;
    if (dti_is_far(self->sync, self->index, replica))
        counters->read_far += bytes;
    else
        counters->read_near += bytes;
}

/* Copies what the payloads of replicas [first, end) have for this replica to the destination, one after the
 * other. */
static void copy_payloads(struct dti_replica *self, uint32_t seq, const struct payloads *p, uint32_t first,
                          uint32_t end)
{
    size_t bytes = p->call->count * p->call->element_bytes,
           before = p->bytes > bytes ? self->index * bytes : 0; /* a payload has a part for each replica */
    char *to = p->call->dst;
    for (uint32_t i = first; i < end; i++, to += bytes) {
        if (i == self->index && p->own == NULL)
            continue;
        const char *from = payload_of(self, p, i, seq) + before;
        if (to != from) /* they are equal if the own part is in its place */
            memcpy(to, from, bytes);
        count_read(self, i, bytes);
    }
    self->sync->state[self->index].workspace.counters.written_near += (end - first) * bytes;
}

/* Combines the own part of all payloads, which is the whole if the call has a root. */
static void combine_own(struct dti_replica *self, uint32_t seq, const struct dti_prepared_call *prepared,
                        const struct payloads *p)
{
    const struct dti_call *call = p->call;
    size_t bytes = call->count * call->element_bytes,
           offset = call->pattern == DTI_PATTERN_REDUCE_SCATTER ? self->index * bytes : 0;
    struct small_reduction c = { *p, prepared->reduction, call->count, call->dst };
    combine_payloads(self, seq, offset, &c);
    for (uint32_t i = 0; i < self->num_replicas; i++)
        count_read(self, i, bytes);
    self->sync->state[self->index].workspace.counters.written_near += bytes;
}

/* Makes the result of a scan if it is a copy or the reduction of all values. Returns false otherwise. */
static bool scan_directly(struct dti_replica *self, uint32_t seq, const struct dti_prepared_call *prepared,
                          const struct payloads *p)
{
    uint32_t values = self->index + (p->call->pattern == DTI_PATTERN_SCAN);
    if (values <= 1)
        copy_payloads(self, seq, p, 0, values);
    else if (values == self->num_replicas)
        combine_own(self, seq, prepared, p);
    else
        return false;
    return true;
}

/* Reads the payloads after the meeting, without a flow. Returns false if the call needs one. */
static bool read_directly(struct dti_replica *self, uint32_t seq, const struct dti_prepared_call *prepared,
                          const struct payloads *p)
{
    const struct dti_call *call = p->call;
    uint32_t root = call->root;
    if (call->count == 0 || call->dtype == 0 || call->counts != NULL)
        return false;
    switch (call->pattern) {
    case DTI_PATTERN_BROADCAST: /* the root has its data already */
    case DTI_PATTERN_SCATTER:
        copy_payloads(self, seq, p, root, root + (root != self->index));
        return true;
    case DTI_PATTERN_ALL_GATHER:
    case DTI_PATTERN_ALL_TO_ALL:
        copy_payloads(self, seq, p, 0, self->num_replicas);
        return true;
    case DTI_PATTERN_GATHER:
        if (root == self->index)
            copy_payloads(self, seq, p, 0, self->num_replicas);
        return true;
    case DTI_PATTERN_REDUCE_SCATTER:
        combine_own(self, seq, prepared, p);
        return true;
    case DTI_PATTERN_REDUCE:
        if (root == self->index)
            combine_own(self, seq, prepared, p);
        return true;
    case DTI_PATTERN_SCAN:
    case DTI_PATTERN_SCAN_EXCLUSIVE:
        return scan_directly(self, seq, prepared, p);
    default:
        return false;
    }
}

/* Two replicas put only the part for the other one into their mailboxes. */
static void send_one_part(const struct dti_replica *self, struct dti_arrival *arrival,
                          struct payloads *payloads)
{
    const struct dti_call *call = payloads->call;
    size_t part = call->count * call->element_bytes;
    if (arrival->payload_bytes != 0) {
        arrival->payload = (const char *)call->src + !self->index * part;
        arrival->payload_bytes = part;
    }
    arrival->next_bytes = payloads->bytes = part;
}

ditto_status dti_collective_in_mailboxes(struct dti_replica *self, const struct dti_prepared_call *prepared,
                                         struct dti_deadline *deadline)
{
    struct dti_sync *sync = self->sync;
    struct dti_replica_state *me = &sync->state[self->index];
    const struct dti_call *call = prepared->call;
    uint32_t seq;
    if (call->pattern == DTI_PATTERN_ALL_REDUCE && call->dtype != 0)
        return all_reduce(self, prepared, deadline);
    struct dti_arrival arrival = { .call = call,
                                   .payload = call->pattern == DTI_PATTERN_LIST
                                                  ? pack(call, me->workspace.scratch)
                                                  : call->src,
                                   .payload_bytes = own_bytes(self, prepared),
                                   /* Also of a replica that is not the root: it may be the next root. */
                                   .next_bytes = prepared->size.own };
    struct payloads payloads = { .call = call, .bytes = prepared->size.own };
    if (dti_call_moves_parts(call)) {
        place_own_part(self, call);
        if (self->num_replicas == 2 && dti_flow_shape(call)->cuts_src)
            send_one_part(self, &arrival, &payloads);
    } else {
        payloads.own = keep_payload(self, &arrival);
    }
    DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    if (read_directly(self, seq, prepared, &payloads))
        return DITTO_OK;
    struct dti_flow flow = { .self = self,
                             .sync = sync,
                             .me = me,
                             .workspace = &me->workspace,
                             .call = call,
                             .seq = seq,
                             .from_mailboxes = true,
                             .own_payload = payloads.own,
                             .payload_bytes = prepared->size.own,
                             .reduction = prepared->reduction };
    uint32_t serial = dti_this_thread()->errors;
    dti_flow_whole(&flow, self->index, self->index + 1);
    ditto_status status = flow.reduction.failed;
    return status == DITTO_OK ? status : dti_fail_function(self, call, status, serial);
}
