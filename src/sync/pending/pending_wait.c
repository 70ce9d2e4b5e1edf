/* src/sync/pending/pending_wait.c - waits for started operations, and ends them. See pending.h. */
#include "base/waiting/stop.h"
#include "replicas/team/recorder.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/meeting/access.h"
#include "sync/meeting/circle.h"
#include "sync/meeting/failure.h"
#include "sync/pending/pending.h"

#include <string.h>

/* -- errors -- */

/* Describes the operation that `replica` has started as operation `number`. */
static void describe(const struct dti_replica *self, uint32_t replica, uint64_t number, char *description)
{
    struct dti_text text = { description, DTI_CALL_TEXT_BYTES, 0 };
    dti_call_describe(&dti_pending_operation_of(self->sync, replica, number)->call,
                      dti_number_in_run(self, number), &text);
    dti_text_add(&text, "%s", self->sync->group_text);
}

void dti_pending_name(const struct dti_replica *self, uint64_t number, char name[DTI_CALL_TEXT_BYTES])
{
    const struct dti_call *call = &dti_pending_operation_of(self->sync, self->index, number)->call;
    struct dti_text text = { name, DTI_CALL_TEXT_BYTES, 0 };
    dti_text_add_name(&text, call->name, call->label);
    dti_text_add(&text, " #%llu%s", (unsigned long long)dti_number_in_run(self, number),
                 self->sync->group_text);
}

/* Returns the first replica that has not started operation `number`, or that has started another operation
 * under this number (*different). Returns n if there is none. */
static uint32_t find_missing(const struct dti_replica *self, uint64_t number, bool *different)
{
    const struct dti_sync *sync = self->sync;
    *different = false;
    for (uint32_t i = 0; i < self->num_replicas; i++) {
        if (!dti_has_started(sync, i, number))
            return i;
        *different = !dti_pending_is_same(self, i, number);
        if (*different)
            return i;
    }
    return self->num_replicas;
}

bool dti_is_ahead_in_meeting(const struct dti_replica *self, uint32_t other)
{
    const struct dti_sync *sync = self->sync;
    uint32_t next = (uint32_t)sync->state[self->index].seq + 1;
    return atomic_load_explicit(&dti_mailbox_of(sync, other, next, 0)->word, memory_order_acquire) >> 32 ==
           next;
}

/* Returns DITTO_OK if the operation can still finish. Otherwise stops the run and returns its error. */
static ditto_status check_can_finish(struct dti_replica *self, uint64_t number)
{
    const struct dti_sync *sync = self->sync;
    bool different;
    uint32_t other = find_missing(self, number, &different);
    char mine[DTI_CALL_TEXT_BYTES], theirs[DTI_CALL_TEXT_BYTES + 100];
    struct dti_text text = { theirs, sizeof theirs, 0 };
    if (other == self->num_replicas)
        return DITTO_OK;
    bool returned = dti_replica_returned(dti_replica_peer(self, other)),
         ahead = dti_is_ahead_in_meeting(self, other);
    /* dti_has_started is called again, because the replica may have started the operation and continued
     * between the checks. */
    if (!different && ((!returned && !ahead) || dti_has_started(sync, other, number)))
        return DITTO_OK;
    describe(self, self->index, number, mine);
    if (different) {
        describe(self, other, number, theirs);
        text.length = strlen(theirs);
        dti_call_difference(&dti_pending_operation_of(sync, self->index, number)->call,
                            &dti_pending_operation_of(sync, other, number)->call, self->num_replicas, &text);
        DTI_FAIL(DITTO_ERR_DIVERGED,
                 "replica %u started %s, but replica %u started %s: every %s must make the same calls",
                 self->id, mine, dti_replica_peer(self, other)->id, theirs, dti_participant(sync));
        dti_replica_stop(self);
        return dti_team_stop_status(self->team);
    }
    dti_describe_replica(sync, other, &text);
    dti_text_add(&text, ", which has not started it");
    return dti_fail_left(self, mine, theirs);
}

bool dti_has_not_started(const struct dti_sync *sync, uint32_t replica, uint64_t number)
{
    const struct dti_pending_operation *operation = dti_pending_operation_of(sync, replica, number);
    uint64_t word = atomic_load_explicit(&operation->word, memory_order_acquire); /* P1 */
    return dti_number_is_before(word >> 32, number);
}

static ditto_status fail_late(struct dti_replica *self, uint64_t number, const struct dti_deadline *deadline)
{
    const struct dti_sync *sync = self->sync;
    char mine[DTI_CALL_TEXT_BYTES], missing[DTI_MISSING_TEXT_BYTES] = "";
    struct dti_text text = { missing, sizeof missing, 0 };
    describe(self, self->index, number, mine);
    if (dti_describe_missing(sync, dti_has_not_started, number, &text) == 0) {
        if (sync->hosts == NULL) {
            dti_text_add(&text, "its last pieces");
        } else {
            dti_describe_replica(sync, 0, &text);
            dti_text_add(&text, ", which exchanges messages with other hosts when it waits");
        }
    }
    return dti_fail_late(self, deadline, mine, missing);
}

/* -- waiting -- */

struct consumed_wait {
    struct dti_replica *self;
    uint64_t number;
    ditto_status failure;
};
static bool consumed_ready(void *argument)
{
    struct consumed_wait *w = argument;
    const struct dti_replica_state *me = dti_replica_state_of(w->self);
    dti_pending_advance(w->self);
    if (me->consumed >= w->number || dti_stopped(w->self->stop))
        return true;
    w->failure = check_can_finish(w->self, me->consumed + 1);
    return w->failure != DITTO_OK;
}

/* Called when the limit has passed. Over several hosts the driver may be in the operation. Then it knows
 * which host is missing, and stops the run, unless it carries out the operation at this moment. */
static bool driver_ends_wait(struct dti_replica *self, uint64_t number, const struct dti_deadline *deadline)
{
    if (!dti_started_give_up(self, number, deadline))
        return false;
    struct consumed_wait w = { self, number, DITTO_OK };
    struct dti_deadline none = { .timeout_ms = DITTO_FOREVER };
    dti_wait(self->wait_queue, self->place, DTI_EVERYONE, &self->wait_policy, &none, consumed_ready, &w);
    return true;
}

/* Waits until the operation is consumed. If deadline is NULL, it does not wait, and returns DITTO_PENDING.
 * Otherwise all operations before it must be consumed, because the wait is only for replicas that have not
 * started this one (dti_await). */
static ditto_status consume(struct dti_replica *self, uint64_t number, struct dti_deadline *deadline)
{
    struct dti_replica_state *me = dti_replica_state_of(self);
    struct consumed_wait w = { self, number, DITTO_OK };
    bool ended;
    if (dti_replica_is_forked(self))
        return dti_fail_forked();
    me->pending->deadline = deadline;
    do
        ended = deadline != NULL ? dti_await(self, DTI_EVERYONE, deadline, consumed_ready, &w,
                                             dti_has_not_started, me->consumed + 1)
                                 : consumed_ready(&w);
    while (!ended && deadline != NULL && driver_ends_wait(self, me->consumed + 1, deadline));
    me->pending->deadline = NULL;
    if (me->consumed >= number)
        return DITTO_OK;
    if (w.failure != DITTO_OK)
        return dti_leave_collective(self, w.failure);
    if (dti_stopped(self->stop))
        return dti_leave_collective(self, dti_replica_stop_status(self));
    return ended || deadline == NULL
               ? DITTO_PENDING
               : dti_leave_collective(self, fail_late(self, me->consumed + 1, deadline));
}

ditto_status dti_pending_finish_all(struct dti_replica *self, struct dti_deadline *deadline)
{
    const struct dti_replica_state *me = dti_replica_state_of(self);
    if (me->consumed == me->started)
        return DITTO_OK;
    while (me->consumed != me->started) {
        struct dti_deadline own = dti_replica_deadline(self, deadline->timeout_ms);
        DTI_TRY(consume(self, me->consumed + 1, &own));
    }
    *deadline = dti_replica_deadline(self, deadline->timeout_ms);
    return DITTO_OK;
}

ditto_status dti_pending_wait(struct dti_replica *self, uint64_t number, struct dti_deadline *deadline)
{
    struct dti_pending_ring *ring = dti_replica_state_of(self)->pending;
    dti_trace_begin(self, DTI_TRACE_COLLECTIVE, deadline != NULL ? "ditto_wait" : "ditto_test",
                    dti_pending_operation_of(self->sync, self->index, number)->call.label);
    const struct dti_replica_state *me = dti_replica_state_of(self);
    ditto_status status = DITTO_OK;
    while (status == DITTO_OK && me->consumed < number)
        status = consume(self, deadline != NULL ? me->consumed + 1 : number, deadline);
    if (status == DITTO_OK) {
        ring->open[number % DITTO_MAX_PENDING] = 0;
        ring->num_open--;
    }
    dti_trace_end(self, 0);
    return status;
}

/* Returns the number of the oldest open operation, or 0 if there is none. */
static uint64_t oldest_open(const struct dti_replica *self)
{
    const struct dti_pending_ring *ring = dti_replica_state_of(self)->pending;
    uint64_t oldest = 0;
    for (uint32_t i = 0; ring->num_open != 0 && i < DITTO_MAX_PENDING; i++)
        if (ring->open[i] != 0 && (oldest == 0 || ring->open[i] < oldest))
            oldest = ring->open[i];
    return oldest;
}

uint32_t dti_pending_open(const struct dti_replica *self, char name[DTI_CALL_TEXT_BYTES], const char **wait)
{
    uint32_t open = 0;
    for (const struct dti_replica *r = self; r != NULL; r = dti_replica_state_of(r)->next_started) {
        uint64_t number = oldest_open(r);
        if (number != 0 && open == 0) {
            dti_pending_name(r, number, name);
            *wait = dti_pending_wait_function(r, number);
        }
        open += dti_replica_state_of(r)->pending->num_open;
    }
    return open;
}

ditto_status dti_pending_abandon(struct dti_replica *self, ditto_status status)
{
    dti_replica_stop(self);
    for (struct dti_replica *r = self; r != NULL; r = dti_replica_state_of(r)->next_started) {
        struct dti_pending_ring *ring = dti_replica_state_of(r)->pending;
        status = dti_leave_collective(r, status);
        for (uint32_t i = 0; i < DITTO_MAX_PENDING; i++)
            ring->open[i] = 0;
        ring->num_open = 0;
    }
    return status;
}
