/* src/input/distribute/consumer.c - how replicas take batches from their rings. */
#include "base/waiting/stop.h"
#include "input/distribute/iterator.h"
#include "input/input.h"
#include "replicas/jobs/jobs.h"
#include "replicas/team/recorder.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"

#include <string.h>

/* -- before a batch is taken -- */

ditto_status dti_iterator_hold(const ditto_iterator *it, struct dti_gate **held)
{
    DTI_TRY(dti_not_null(it, "iterator"));
    return dti_dependent_hold(&it->dependent, held)
               ? DITTO_OK
               : DTI_FAIL(DITTO_ERR_CONTEXT, "the iterator's strategy was destroyed");
}

void dti_iterator_hold_alone(const ditto_iterator *it, struct dti_gate **held)
{
    (void)dti_dependent_hold(&it->dependent, held);
}

ditto_status dti_iterator_claim(ditto_iterator *it, enum dti_use use)
{
    uint32_t found = DTI_USE_NONE;
    /* relaxed: a mark that publishes no data */
    if (atomic_load_explicit(&it->use, memory_order_relaxed) == use ||
        atomic_compare_exchange_strong_explicit(&it->use, &found, use, memory_order_relaxed,
                                                memory_order_relaxed) ||
        found == use)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_CONTEXT, "mixing contexts: batches of this iterator are taken %s, so not also %s",
        use == DTI_USE_CROSS ? "by replicas with ditto_next" : "across replicas with ditto_iterator_next",
        use == DTI_USE_CROSS ? "across replicas" : "by replicas");
}

/* -- detecting that no batch can come -- */

/* Returns true if the group's next ticket cannot be given out because a replica has returned from its
 * function and does not empty its ring. Sets *left to this replica. */
static bool stuck(const struct ditto_iterator *it, const struct dti_pipeline *p,
                  const struct dti_producer_group *group, uint32_t *left)
{
    /* acquire: pairs with block() in sequencer.c */
    uint32_t blocked = atomic_load_explicit(&group->blocked_on, memory_order_acquire);
    if (blocked == DTI_NOT_BLOCKED || blocked == DTI_BLOCKED_BY_PROGRESS)
        return false;
    uint32_t replica = p->first_replica + blocked;
    /* If the slot has become free meanwhile, the producers have only not woken up yet. relaxed: the store of
     * blocked_on has published the ticket. */
    uint64_t ticket = atomic_load_explicit(&group->blocked_ticket, memory_order_relaxed);
    if (!dti_replica_returned(dti_team_replica(it->team, replica)) ||
        dti_ring_reached(it->ring[replica], ticket))
        return false;
    *left = replica;
    return true;
}

/* Returns true if a pipeline of this host has not reached `step` and cannot continue. Sets *left to the
 * replica that has returned. The functions below set it too. */
static bool held_up(const struct ditto_iterator *it, uint64_t step, uint32_t *left)
{
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++) {
        const struct dti_pipeline *p = &it->pipeline[i];
        const struct dti_pipeline_progress *n = &it->progress.pipeline_progress[dti_pipeline_number(p)];
        /* acquire: both loads pair with publish() in sequencer.c */
        if (atomic_load_explicit(&n->ended, memory_order_acquire) ||
            atomic_load_explicit(&n->steps, memory_order_acquire) > step)
            continue;
        for (uint32_t c = 0; c < p->groups; c++)
            if (stuck(it, p, &p->group[c], left))
                return true;
    }
    return false;
}

/* Returns true if a producer has taken this ticket of the replica, so that its slot is or will be filled. */
static bool is_given(const struct dti_pipeline *p, uint32_t replica, uint64_t ticket)
{
    /* acquire: pairs with take() in sequencer.c */
    return atomic_load_explicit(&p->sequencer.given[replica - p->first_replica], memory_order_acquire) >
           ticket;
}

/* Called when a ticket of the replica has not been given out. Returns true if it cannot be given out. */
static bool is_cut_off(const struct ditto_iterator *it, uint32_t replica, uint32_t *left)
{
    const struct dti_consumer *c = &it->consumer[replica];
    /* Then blocked_ticket is a step, see sequencer.h. */
    if (atomic_load_explicit(&c->group->blocked_on, memory_order_acquire) == DTI_BLOCKED_BY_PROGRESS)
        return held_up(it, atomic_load_explicit(&c->group->blocked_ticket, memory_order_relaxed), left);
    return stuck(it, c->pipeline, c->group, left);
}

/* Returns true if the batch that the pipeline hands over next cannot come. */
static bool next_is_cut_off(const struct ditto_iterator *it, const struct dti_pipeline *p, uint32_t *left)
{
    uint32_t other;
    uint64_t ticket;
    if (!dti_order_awaits(p, &other, &ticket))
        return false;
    other += p->first_replica;
    return !is_given(p, other, ticket) && is_cut_off(it, other, left);
}

/* Returns true if no further batch can reach this replica. Its next ticket cannot be given out; or the batch
 * was not handed over, because an earlier one of its pipeline cannot come; or it was, but another pipeline
 * cannot come to the limit up to which all must have handed over theirs. */
static bool starved(struct ditto_iterator *it, uint32_t replica, uint32_t *left)
{
    struct dti_consumer *c = &it->consumer[replica];
    if (!is_given(c->pipeline, replica, c->ring.next))
        return is_cut_off(it, replica, left);
    if (dti_ring_peek(&c->ring) == NULL)
        return next_is_cut_off(it, c->pipeline, left);
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++)
        if (dti_order_reached(&it->pipeline[i]) < c->limit && next_is_cut_off(it, &it->pipeline[i], left))
            return true;
    return false;
}

/* -- waiting -- */

struct batch_wait {
    struct ditto_iterator *iterator;
    uint32_t replica;
};
static bool batch_ready(void *argument)
{
    const struct batch_wait *w = argument;
    uint32_t left;
    return dti_order_next_delivery(w->iterator, w->replica) != DTI_NEXT_DELIVERY_NONE ||
           dti_team_is_stopped(w->iterator->team) || starved(w->iterator, w->replica, &left);
}

static void add_to(_Atomic uint64_t *total, uint64_t more)
{
    /* relaxed: other threads read it for statistics. Only the replica writes it, or between two of its jobs
     * the thread that posts them (dti_iterator_take_peeked). */
    atomic_store_explicit(total, atomic_load_explicit(total, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

static ditto_status wait_for_batch(struct dti_replica *self, struct ditto_iterator *it)
{
    struct dti_consumer *c = &it->consumer[self->index];
    struct batch_wait w = { it, self->index };
    struct dti_deadline deadline = dti_replica_deadline(self, self->timeout_ms);
    uint64_t begin = dti_now_ns();
    uint32_t left = 0;
    bool ready = dti_wait(self->wait_queue, self->index, DTI_EVERYONE, &self->wait_policy, &deadline,
                          batch_ready, &w);
    add_to(&c->wait_ns, dti_now_ns() - begin);
    dti_trace_waited(self, begin);
    if (!ready) {
        bool of_run = dti_deadline_is_of_run(self, &deadline);
        DTI_FAIL(DITTO_ERR_TIMED_OUT,
                 "replica %u waited in ditto_next for batch %llu until %s = %u passed: the producers are too "
                 "slow, or another replica does not take its batches%s",
                 self->id, (unsigned long long)c->ring.next, of_run ? "run_timeout_ms" : "timeout_ms",
                 of_run ? dti_team_options(self->team)->run_timeout_ms : deadline.timeout_ms,
                 it->progress.hosts != NULL ? ", or has left its run on another host, whose steps decide"
                                            : "");
        dti_replica_stop_late(self, &deadline);
        return DITTO_ERR_TIMED_OUT;
    }
    if (dti_order_next_delivery(it, self->index) != DTI_NEXT_DELIVERY_NONE)
        return DITTO_OK;
    if (dti_stopped(self->stop))
        return dti_team_stop_status(self->team);
    /* A batch may have arrived after the check above and before `starved` became true. Therefore it is
     * checked once more after `starved`. */
    if (!starved(it, self->index, &left) ||
        dti_order_next_delivery(it, self->index) != DTI_NEXT_DELIVERY_NONE)
        return DITTO_OK;
    DTI_FAIL(DITTO_ERR_DIVERGED,
             "replica %u waits in ditto_next, but replica %u has returned from its function and does not "
             "empty its queue, so no row can come: every replica must take the same number of batches",
             self->id, left);
    dti_replica_stop(self);
    return dti_team_stop_status(self->team);
}

/* -- taking -- */

/* Sets *out to a view of the slot, and returns the bytes of its rows. */
static uint64_t describe_batch(const struct ditto_iterator *it, const struct dti_batch_slot *slot,
                               ditto_batch *out)
{
    const ditto_dataset *dataset = dti_iterator_dataset(it);
    uint64_t bytes = 0;
    out->rows = slot->rows;
    out->step = slot->step;
    out->num_components = dataset->components;
    for (uint32_t k = 0; k < out->num_components; k++) {
        const struct dti_row_component_spec *spec = &dataset->component[k];
        ditto_tensor *t = &out->component[k];
        *t = (ditto_tensor){ .data = slot->payload != NULL ? slot->payload + it->offset[k] : NULL,
                             .dtype = spec->dtype,
                             .rank = spec->rank + 1 };
        t->shape[0] = slot->rows;
        memcpy(&t->shape[1], spec->shape, spec->rank * sizeof spec->shape[0]);
        bytes += slot->rows * spec->bytes;
    }
    return bytes;
}

void dti_iterator_describe_empty(const ditto_iterator *it, ditto_batch *out)
{
    struct dti_batch_slot none = { .rows = 0 };
    describe_batch(it, &none, out);
}

bool dti_iterator_has_ended(const ditto_iterator *it, uint32_t replica)
{
    return it->consumer[replica].end_status != DITTO_OK;
}

/* Makes the error with which a pipeline has ended the thread's record, with this replica. */
static void record_error(struct dti_pipeline *failed, uint32_t replica)
{
    ditto_error error;
    dti_sequencer_error(&failed->sequencer, &error);
    error.replica = (int32_t)replica;
    error.function = dti_this_thread()->function;
    dti_error_set(&error);
}

/* Returns the status that has ended the replica's input. If it is an error, makes it the thread's record
 * again. */
static ditto_status return_end(const struct dti_replica *self, const struct dti_consumer *c)
{
    if (c->end_status < 0)
        record_error(c->failed_pipeline, self->id);
    return c->end_status;
}

bool dti_iterator_has_failed_in_order(const ditto_iterator *it)
{
    bool failed = false;
    for (uint32_t r = 0; r < it->num_replicas; r++)
        failed |= it->consumer[r].end_status < 0;
    return failed && (it->plan.pipelines == 1 || it->progress.end_at_error);
}

ditto_status dti_iterator_end(ditto_iterator *it)
{
    struct dti_pipeline *failed = NULL;
    uint64_t first = DTI_NO_POINT;
    for (uint32_t r = 0; r < it->num_replicas; r++) {
        const struct dti_consumer *c = &it->consumer[r];
        if (c->end_status >= 0)
            continue;
        /* relaxed: the replica has found the error in a job that has ended */
        uint64_t point = atomic_load_explicit(
            &it->progress.pipeline_progress[dti_pipeline_number(c->failed_pipeline)].error_point,
            memory_order_relaxed);
        if (point < first) {
            first = point;
            failed = c->failed_pipeline;
        }
    }
    if (failed == NULL)
        return DITTO_END_OF_INPUT;
    /* A position has two points (sequencer.h), and the positions go round the replicas. */
    record_error(failed, (uint32_t)(first / 2 % it->all_replicas));
    return dti_own(dti_error_get()->status);
}

/* Waits for the replica's next batch. Does not take it, so that it stays the next one. Sets *found only if it
 * returns DITTO_OK. */
static ditto_status find_next(struct dti_replica *self, ditto_iterator *it,
                              const struct dti_batch_slot **found)
{
    struct dti_consumer *c = &it->consumer[self->index];
    enum dti_next_delivery delivery;
    if (c->end_status != DITTO_OK)
        return return_end(self, c);
    if (dti_ring_release(&c->ring))
        dti_wait_queue_signal(&it->wait_queue, self->index);
    if (dti_replica_is_forked(self))
        return dti_fail_forked();
    for (; (delivery = dti_order_next_delivery(it, self->index)) == DTI_NEXT_DELIVERY_NONE; c->waited = true)
        DTI_TRY(wait_for_batch(self, it));
    if (delivery == DTI_NEXT_DELIVERY_ERROR) {
        ditto_error error;
        dti_sequencer_error(&c->failed_pipeline->sequencer, &error);
        c->end_status = error.status;
        return return_end(self, c);
    }
    const struct dti_batch_slot *slot = dti_ring_peek(&c->ring);
    if (slot->status != DITTO_OK && (slot->status == DITTO_END_OF_INPUT || slot->rows == 0)) {
        c->end_status = slot->status;
        return return_end(self, c);
    }
    *found = slot;
    return DITTO_OK;
}

/* Takes the batch that is in the slot. */
static void take(struct dti_consumer *c, const struct dti_batch_slot *slot, uint64_t bytes)
{
    c->end_status = slot->status;
    dti_ring_take(&c->ring);
    add_to(&c->taken, 1);
    add_to(&c->ready, !c->waited);
    c->waited = c->traced = false;
    add_to(&c->rows, slot->rows);
    add_to(&c->bytes, bytes);
}

ditto_status dti_iterator_next(struct dti_replica *self, ditto_iterator *it, ditto_batch *out, bool takes)
{
    const struct dti_batch_slot *slot = NULL;
    uint64_t bytes, traced_bytes = 0;
    DTI_PROBE1(queue_get_begin, self->id);
    dti_trace_begin(self, DTI_TRACE_INPUT, "ditto_next", NULL);
    ditto_status status = find_next(self, it, &slot);
    if (slot != NULL) {
        struct dti_consumer *c = &it->consumer[self->index];
        bytes = describe_batch(it, slot, out);
        if (!c->traced)
            dti_trace_filled(self, slot->producer, slot->begin_ns, slot->end_ns, bytes);
        traced_bytes = c->traced ? 0 : bytes;
        c->traced = c->traced || self->tracer != NULL;
        if (takes)
            take(c, slot, bytes);
    }
    dti_trace_end(self, traced_bytes);
    DTI_PROBE1(queue_get_end, self->id);
    return status;
}

void dti_iterator_take_peeked(ditto_iterator *it, uint32_t replica)
{
    struct dti_consumer *c = &it->consumer[replica];
    ditto_batch batch;
    if (c->end_status != DITTO_OK)
        return;
    const struct dti_batch_slot *slot = dti_ring_peek(&c->ring);
    take(c, slot, describe_batch(it, slot, &batch));
}

/* -- outside of runs -- */

struct outside_take {
    ditto_iterator *iterator;
    ditto_batch *out;
};
static ditto_status take_one(struct dti_replica *r, void *argument)
{
    const struct outside_take *t = argument;
    return dti_iterator_next(r, t->iterator, t->out, true);
}

ditto_status dti_iterator_next_outside(ditto_iterator *it, ditto_batch *out)
{
    struct dti_team *team = it->team;
    struct outside_take taking = { it, out };
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    ditto_status status = dti_team_run(team, take_one, &taking, false);
    dti_team_renew(team); /* the job uses no collective, so nothing else has to be renewed */
    dti_cross_leave(team, &frame);
    return status;
}
