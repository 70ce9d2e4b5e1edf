/* src/sync/pending/pending_start.c - starts operations in a free entry of the ring. See pending.h. */
#include "base/waiting/stop.h"
#include "replicas/team/recorder.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "sync/algorithms/choose_algorithm.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/meeting/access.h"
#include "sync/meeting/circle.h"
#include "sync/meeting/failure.h"
#include "sync/pending/pending.h"

#include <string.h>

/* Returns true if the data of an operation goes through the payloads. When two replicas read it one after the
 * other, this is faster for every size that fits into a payload. For 2 KiB, an operation takes 0.73 times as
 * long as the blocking call, against 1.4 times with the callers' buffers. */
static bool is_small(const struct dti_sync *sync, const struct dti_call_size *size)
{
    return size->own <= DTI_PAYLOAD_BYTES && size->read <= sync->small_started;
}

/* A wait until all replicas have consumed `number`, so that its entry can be used again. */
struct ring_space_wait {
    struct dti_replica *self;
    uint64_t number;

    /* A replica that will not start the operation that this replica wants to start. n if there is none. */
    uint32_t absent;
};
static uint64_t least_consumed(const struct dti_replica *self)
{
    const struct dti_sync *sync = self->sync;
    uint64_t least = sync->state[self->index].started;
    for (uint32_t i = 0; i < self->num_replicas; i++) {
        /* U1 */
        uint64_t consumed = atomic_load_explicit(&sync->state[i].pending->consumed, memory_order_acquire);
        least = consumed < least ? consumed : least;
    }
    return least;
}
static bool ring_entry_is_free(struct dti_replica *self, uint64_t number)
{
    struct dti_pending_ring *ring = dti_replica_state_of(self)->pending;
    if (ring->known_consumed >= number)
        return true;
    /* The result is kept, so that the cache lines of the other replicas are read rarely, and not at each
     * start. */
    ring->known_consumed = least_consumed(self);
    return ring->known_consumed >= number;
}
static bool ring_space_ready(void *argument)
{
    struct ring_space_wait *w = argument;
    if (ring_entry_is_free(w->self, w->number) || dti_stopped(w->self->stop))
        return true;
    dti_pending_help(w->self);
    uint64_t next = dti_replica_state_of(w->self)->started + 1;
    /* dti_has_started is called last, because the replica may start the operation and continue between the
     * checks. */
    for (uint32_t i = 0; i < w->self->num_replicas; i++)
        if ((dti_replica_returned(dti_replica_peer(w->self, i)) || dti_is_ahead_in_meeting(w->self, i)) &&
            !dti_has_started(w->self->sync, i, next)) {
            w->absent = i;
            return true;
        }
    return false;
}

static bool has_not_consumed(const struct dti_sync *sync, uint32_t replica, uint64_t number)
{
    return atomic_load_explicit(&sync->state[replica].pending->consumed, memory_order_relaxed) < number;
}

/* Describes the replicas because of which operation `number` is not consumed by all. These are the replicas
 * that have not started the oldest operation that some replica has not consumed. If all have started it,
 * these are the replicas that have not consumed it. */
static void describe_slow(const struct dti_replica *self, uint64_t number, struct dti_text *text)
{
    const struct dti_sync *sync = self->sync;
    uint64_t next = least_consumed(self) + 1;
    uint32_t found = 0;
    if (next <= number)
        found = dti_describe_missing(sync, dti_has_not_started, next, text);
    if (next <= number && found == 0)
        found = dti_describe_missing(sync, has_not_consumed, next, text);
    if (found == 0)
        dti_text_add(text, "a replica that has caught up since");
}

/* Waits until all replicas have consumed `number`, whose entry the next operation uses. */
static ditto_status await_ring_space(struct dti_replica *self, uint64_t number, struct dti_deadline *deadline)
{
    struct ring_space_wait w = { self, number, self->num_replicas };
    struct dti_pending_ring *ring = dti_replica_state_of(self)->pending;
    ring->deadline = deadline;
    bool ended = dti_await(self, DTI_EVERYONE, deadline, ring_space_ready, &w, dti_has_not_started, number);
    ring->deadline = NULL;
    if (ring_entry_is_free(self, number))
        return DITTO_OK;
    if (dti_stopped(self->stop))
        return dti_leave_collective(self, dti_replica_stop_status(self));
    char description[DTI_CALL_TEXT_BYTES], awaited[DTI_MISSING_TEXT_BYTES] = "";
    struct dti_text mine = { description, sizeof description, 0 }, text = { awaited, sizeof awaited, 0 };
    dti_text_add(&mine, "the start of an operation (%d operations have been started since #%llu)",
                 DITTO_MAX_PENDING, (unsigned long long)dti_number_in_run(self, number));
    if (!ended)
        describe_slow(self, number, &text);
    else
        dti_describe_replica(self->sync, w.absent, &text);
    return dti_leave_collective(self, ended ? dti_fail_left(self, description, awaited)
                                            : dti_fail_late(self, deadline, description, awaited));
}

static ditto_status start(struct dti_replica *self, const struct dti_call *call,
                          const struct dti_target *target, struct dti_deadline *deadline, uint64_t *out)
{
    struct dti_team *team = self->team;
    struct dti_sync *sync = self->sync;
    struct dti_replica_state *me = dti_replica_state_of(self);
    uint64_t number = me->started + 1, before = number - DITTO_MAX_PENDING;
    struct dti_pending_operation *operation = dti_pending_operation_of(sync, self->index, number);
    struct dti_call_size size = dti_call_size_of(call, self->num_replicas);
    if (dti_stopped(self->stop))
        return dti_leave_collective(self, dti_team_stop_status(team));
    /* A function has forked, and this is the child process. The replica has no peers in it. */
    if (dti_replica_is_forked(self))
        return dti_fail_forked();
    if (me->pending->open[number % DITTO_MAX_PENDING] != 0) {
        char open[DTI_CALL_TEXT_BYTES];
        dti_pending_name(self, before, open);
        return DTI_FAIL(
            DITTO_ERR_RANGE,
            "%s: %d operations have been started since %s, which is still open: wait for it first",
            call->name, DITTO_MAX_PENDING, open);
    }
    if (number > DITTO_MAX_PENDING)
        DTI_TRY(await_ring_space(self, before, deadline));
    dti_number_call(dti_reported_state(self), call);
    /* Each element goes through a target once, and not once on each replica. */
    bool small = target == NULL && sync->hosts == NULL && is_small(sync, &size);
    /* An equal call is not written again, so the cache line stays with the peers. */
    if (!dti_call_identical(&operation->call, call) || operation->small != small) {
        operation->call = *call;
        operation->bytes = size.own;
        operation->small = small;
        operation->call.digest = dti_call_digest(call);
        if (call->label != NULL) /* the length has been checked */
            operation->call.label = memcpy(operation->label, call->label, strlen(call->label) + 1);
    }
    operation->target = target;
    if (small && size.own != 0)
        memcpy(dti_pending_payload(sync, self->index, number, size.own), call->src, size.own);
    if (!small) {
        /* relaxed: the word publishes them */
        atomic_store_explicit(&operation->claim, (uint64_t)number << 32, memory_order_relaxed);
        atomic_store_explicit(&operation->done, (uint64_t)number << 32, memory_order_relaxed);
    }
    /* P0 */
    atomic_store_explicit(&operation->word, (uint64_t)number << 32 | operation->call.digest,
                          memory_order_release);
    dti_wait_queue_signal(self->wait_queue, self->place);
    me->started = number;
    me->reported->unconsumed++;
    if (sync != sync->whole)
        dti_pending_keep_started(self);
    if (sync->hosts != NULL)
        dti_started_announced(self, number);
    /* Prefetches the word, and the payload, of the next operation's entry. Peers have had the cache lines
     * since the entry was used last. The next payload is likely to have the same size as this one. */
    dti_fetch_to_write(dti_pending_operation_of(sync, self->index, number + 1), DTI_CACHE_LINE);
    if (small && size.own > DTI_INLINE_PAYLOAD_BYTES)
        dti_fetch_to_write(dti_pending_payload(sync, self->index, number + 1, size.own), size.own);
    me->pending->open[number % DITTO_MAX_PENDING] = number;
    me->pending->num_open++;
    dti_finish_call(dti_reported_state(self));
    *out = number;
    return DITTO_OK;
}

ditto_status dti_pending_start(struct dti_replica *self, const struct dti_call *call,
                               const struct dti_target *target, struct dti_deadline *deadline, uint64_t *out)
{
    uint64_t number = dti_replica_state_of(self)->started + 1;
    /* The program has no handle of an operation with a target, so it cannot make room by waiting for it. */
    if (dti_replica_state_of(self)->pending->open[number % DITTO_MAX_PENDING] != 0 &&
        dti_pending_operation_of(self->sync, self->index, number)->target != NULL)
        DTI_TRY(dti_pending_wait(self, number - DITTO_MAX_PENDING, deadline));
    dti_trace_begin(self, DTI_TRACE_COLLECTIVE, call->name, call->label);
    ditto_status status = start(self, call, target, deadline, out);
    dti_trace_end(self, 0); /* no bytes, because the replicas that wait move them */
    return status;
}
