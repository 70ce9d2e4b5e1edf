/* src/sync/pending/pending.c - works on started operations and consumes them in order. See pending.h. */
#include "sync/pending/pending.h"
#include "base/waiting/stop.h"
#include "replicas/team/team.h"
#include "sync/algorithms/choose_algorithm.h"
#include "sync/algorithms/flow.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/meeting/access.h"

#include <string.h>

/* The number of bytes that a piece writes, over all destinations, or a little more. Working on a piece takes
 * long in comparison with a claim, and is short in comparison with the time that a replica spins. */
#define PIECE_BYTES ((size_t)64 << 10)

/* The largest number of pieces in a share. */
#define MOST_PIECES 64u

ditto_status dti_pending_make(struct dti_replica *self, struct dti_sync *sync)
{
    struct dti_pending_ring *ring = dti_allocate_zeroed(self, sizeof *ring);
    void *payload;
    if (ring == NULL)
        return DITTO_ERR_NO_MEMORY;
    sync->state[self->index].pending = ring;
    /* The payloads are not zeroed, so that no pages are touched before they are used. Most strategies start
     * few operations, and there may be a thousand replicas. */
    DTI_TRY(dti_replica_alloc(self, DITTO_MAX_PENDING * (size_t)DTI_PAYLOAD_BYTES, DTI_CACHE_LINE_PAIR,
                              &payload));
    sync->state[self->index].payloads = payload;
    return DITTO_OK;
}

void dti_pending_renew(struct dti_replica_state *state)
{
    struct dti_pending_ring *ring = state->pending;
    state->started = state->consumed = 0;
    state->unconsumed = 0;
    ring->known_consumed = ring->ready = ring->num_open = 0;
    /* relaxed, here and below: the go word of the next run publishes the stores. */
    atomic_store_explicit(&ring->consumed, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < DITTO_MAX_PENDING; i++) {
        ring->open[i] = 0;
        atomic_store_explicit(&ring->operation[i].word, 0, memory_order_relaxed);
    }
}

/* -- working on an operation -- */

/* Returns where this replica finds its own elements of a small operation. The elements of an operation in
 * place are in the destination, which is never shared. Replicas may share another source, and a replica that
 * has consumed the operation may write it. So this replica reads the copy that it made at the start. */
static const void *own_elements(const struct dti_replica *self, uint64_t number)
{
    const struct dti_pending_operation *operation = dti_pending_operation_of(self->sync, self->index, number);
    return operation->call.src == operation->call.dst
               ? operation->call.src
               : dti_pending_payload(self->sync, self->index, number, operation->bytes);
}

/* Combines a small all-reduce of two replicas without a flow. Returns false if the operation is of another
 * kind. */
static bool combine_pair(struct dti_replica *self, uint64_t number)
{
    struct dti_sync *sync = self->sync;
    const struct dti_call *call = &dti_pending_operation_of(sync, self->index, number)->call;
    const struct dti_kernel *kernel = &(*sync->kernels)[call->dtype][call->op];
    if (self->num_replicas != 2 || call->pattern != DTI_PATTERN_ALL_REDUCE || kernel->widen != NULL ||
        kernel->divide != NULL)
        return false;
    const void *mine = own_elements(self, number),
               *theirs = dti_pending_payload(sync, 1 - self->index, number,
                                             call->count * call->element_bytes);
    kernel->combine(call->dst, self->index == 0 ? mine : theirs, self->index == 0 ? theirs : mine,
                    call->count);
    return true;
}

/* Claims pieces of one share and works on them until none is left. This replica has access (access.h).
 * Returns true if it has worked on one. */
static bool work_on_share(struct dti_flow *flow, uint32_t share, uint32_t pieces)
{
    bool has_worked = false;
    struct dti_pending_operation *operation = dti_pending_operation_of(flow->sync, share,
                                                                       flow->pending_number);
    uint64_t none_left = (uint64_t)flow->pending_number << 32 | pieces;
    /* relaxed: the claim only decides which replica works. The data was published by the word of the
     * entry. */
    uint64_t claim = atomic_load_explicit(&operation->claim, memory_order_relaxed);
    while (claim >> 32 == (uint32_t)flow->pending_number && claim != none_left) {
        if (!atomic_compare_exchange_weak_explicit(&operation->claim, &claim, claim + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        size_t all = dti_flow_all_grains(flow), first, end, from, to;
        dti_tree_part(all, flow->sync->num_replicas, share, 1, &first, &end);
        dti_tree_part(end - first, pieces, (uint32_t)claim, 1, &from, &to);
        dti_flow_range(flow, first + from, first + to, 0, flow->sync->num_replicas);
        atomic_fetch_add_explicit(&operation->done, 1, memory_order_release); /* W0 */
        has_worked = true;
        claim = atomic_load_explicit(&operation->claim, memory_order_relaxed);
    }
    return has_worked;
}

static bool all_pieces_done(const struct dti_flow *flow, uint32_t pieces)
{
    for (uint32_t i = 0; i < flow->sync->num_replicas; i++)
        /* W1 */
        if (atomic_load_explicit(&dti_pending_operation_of(flow->sync, i, flow->pending_number)->done,
                                 memory_order_acquire) != ((uint64_t)flow->pending_number << 32 | pieces))
            return false;
    return true;
}

/* Works on a ready operation as far as possible. Returns true if this replica's result is complete. */
static bool work_on(struct dti_replica *self, uint64_t number)
{
    struct dti_sync *sync = self->sync;
    const struct dti_pending_operation *operation = dti_pending_operation_of(sync, self->index, number);
    uint32_t n = self->num_replicas;
    if (sync->hosts != NULL)
        return dti_started_work_on(self, number);
    if (operation->small && combine_pair(self, number))
        return true;
    struct dti_flow flow = { .self = self,
                             .sync = sync,
                             .me = &sync->state[self->index],
                             .workspace = &sync->state[self->index].workspace,
                             .call = &operation->call,
                             .target = operation->target,
                             .pending_number = number,
                             .from_mailboxes = operation->small,
                             .own_payload = own_elements(self, number),
                             .payload_bytes = operation->bytes,
                             .reduction = dti_flow_reduction(sync, &operation->call) };
    if (flow.from_mailboxes) {
        dti_flow_whole(&flow, self->index, self->index + 1);
        return true;
    }
    size_t all_bytes = dti_call_size_of(flow.call, n).all, wanted = all_bytes / n / PIECE_BYTES;
    uint32_t pieces = wanted < 1 ? 1 : wanted > MOST_PIECES ? MOST_PIECES : (uint32_t)wanted;
    flow.streams = all_bytes >= sync->tuning.given.stream_bytes;
    flow.fetches = all_bytes >= sync->tuning.given.fetch_bytes;
    if (!dti_access_begin(self))
        return false;
    bool has_worked = false;
    for (uint32_t k = 0; k < n; k++)
        has_worked |= work_on_share(&flow, (self->index + k) % n, pieces);
    dti_access_end(self);
    bool done = all_pieces_done(&flow, pieces);
    /* A peer may wait for the last piece. Without work there is nothing to tell, and a replica that is about
     * to sleep would wake itself, again and again. */
    if (has_worked)
        dti_wait_queue_signal(self->wait_queue, self->place);
    return done;
}

/* For a small operation it is enough to compare the digests in the words, which have been read anyway. It is
 * not enough before a replica touches the buffers of another one. */
bool dti_pending_is_same(const struct dti_replica *self, uint32_t replica, uint64_t number)
{
    const struct dti_pending_operation *mine = dti_pending_operation_of(self->sync, self->index, number);
    const struct dti_pending_operation *theirs = dti_pending_operation_of(self->sync, replica, number);
    return atomic_load_explicit(&mine->word, memory_order_relaxed) ==
               atomic_load_explicit(&theirs->word, memory_order_relaxed) &&
           (mine->small || dti_call_same(&mine->call, &theirs->call));
}

/* Returns true if all replicas have announced the same operation. Once this is known, this function reads no
 * entry again. */
static bool is_ready(struct dti_replica *self, uint64_t number)
{
    struct dti_pending_ring *ring = dti_replica_state_of(self)->pending;
    if (ring->ready >= number)
        return true;
    for (uint32_t i = 0; i < self->num_replicas; i++)
        if (!dti_has_started(self->sync, i, number) || !dti_pending_is_same(self, i, number))
            return false;
    ring->ready = number;
    return true;
}

static void advance(struct dti_replica *self)
{
    struct dti_replica_state *me = dti_replica_state_of(self);
    if (me->consumed == me->started)
        return;
    struct dti_fenv saved = dti_fenv_enter();
    while (me->consumed != me->started && is_ready(self, me->consumed + 1) &&
           work_on(self, me->consumed + 1)) {
        me->consumed++;
        me->reported->unconsumed--;
        atomic_store_explicit(&me->pending->consumed, me->consumed, memory_order_release); /* U0 */
        dti_wait_queue_signal(self->wait_queue, self->place);
    }
    dti_fenv_leave(saved);
}

void dti_pending_keep_started(struct dti_replica *self)
{
    struct dti_replica_state *all = dti_reported_state(self);
    const struct dti_replica *r = all->next_started;
    while (r != NULL && r != self)
        r = dti_replica_state_of(r)->next_started;
    if (r == self)
        return;
    dti_replica_state_of(self)->next_started = all->next_started;
    all->next_started = self;
}

void dti_pending_advance(struct dti_replica *self)
{
    struct dti_replica_state *state = dti_reported_state(self);
    if (dti_stopped(self->stop))
        return;
    advance(self->of_team);
    for (struct dti_replica *r; (r = state->next_started) != NULL;) {
        struct dti_replica_state *of_group = dti_replica_state_of(r);
        advance(r);
        if (of_group->pending->num_open != 0)
            state = of_group;
        else
            state->next_started = of_group->next_started;
    }
}
