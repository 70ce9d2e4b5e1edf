/* src/input/distribute/order.c - hands over batches in the order of rows. order.h has the argument. */
#include "input/distribute/order.h"
#include "base/errors/status.h"
#include "input/distribute/iterator.h"

#include <stdlib.h>

static uint32_t replicas_of(const struct dti_pipeline *p)
{
    return p->sequencer.o.served;
}

/* Sets the replica and the ticket of a position, which is step * replicas + replica. Returns false if the
 * position has no ticket, because the iterator was restored and the replica began with a later step. */
static bool ticket_of(const struct dti_pipeline *p, uint64_t position, uint32_t *replica, uint64_t *ticket)
{
    uint64_t step = position / replicas_of(p), begins;
    *replica = (uint32_t)(position % replicas_of(p));
    begins = p->sequencer.begins[*replica];
    *ticket = step - begins;
    return step >= begins;
}

ditto_status dti_order_init(struct dti_pipeline *p, bool is_ordered)
{
    struct dti_order *o = &p->order;
    uint32_t replica;
    uint64_t ticket, next = p->sequencer.first * replicas_of(p);
    pthread_mutex_init(&o->lock, NULL);
    while (!ticket_of(p, next, &replica, &ticket))
        next++;
    atomic_init(&o->next, next);
    o->finished = calloc((size_t)replicas_of(p) * p->sequencer.o.slots, sizeof *o->finished);
    if (o->finished == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to hand over batches to %u replicas", replicas_of(p));
    o->is_ordered = is_ordered;
    return DITTO_OK;
}

void dti_order_free(struct dti_pipeline *p)
{
    if (p->order.finished == NULL)
        return;
    free(p->order.finished);
    pthread_mutex_destroy(&p->order.lock);
}

/* -- producers. dti_order_finish takes the lock, and the functions above it are called under the lock. -- */

static uint64_t *finished_of(const struct dti_pipeline *p, uint32_t replica, uint64_t ticket)
{
    uint32_t slots = p->sequencer.o.slots;
    return &p->order.finished[(size_t)replica * slots + ticket % slots];
}

static void publish(struct dti_pipeline *p, uint32_t replica, uint64_t ticket)
{
    *finished_of(p, replica, ticket) = 0;
    dti_ring_publish(p->sequencer.o.ring[replica], ticket);
}

/* Called when the end has been handed over. Hands over the end, without rows, instead of each finished batch
 * that comes after it. */
static void end_rest(struct dti_pipeline *p)
{
    uint32_t slots = p->sequencer.o.slots;
    for (uint32_t r = 0; r < replicas_of(p); r++)
        for (uint32_t i = 0; i < slots; i++) {
            uint64_t ticket = *finished_of(p, r, i) - 1;
            if (*finished_of(p, r, i) == 0)
                continue;
            struct dti_batch_slot *slot = dti_ring_slot(p->sequencer.o.ring[r], ticket);
            slot->rows = 0;
            slot->status = p->order.last_status;
            publish(p, r, ticket);
        }
}

/* Hands over the next batch if it is finished. Returns false if it is not. */
static bool hand_over_next(struct dti_pipeline *p)
{
    struct dti_order *o = &p->order;
    uint32_t replica;
    /* relaxed: it is written under the lock */
    uint64_t ticket, position = atomic_load_explicit(&o->next, memory_order_relaxed);
    if (ticket_of(p, position, &replica, &ticket)) {
        if (*finished_of(p, replica, ticket) != ticket + 1)
            return false;
        o->last_status = dti_ring_slot(p->sequencer.o.ring[replica], ticket)->status;
        publish(p, replica, ticket); /* a batch with an error has the rows before the error */
    }
    /* N0, also pairs with dti_order_awaits */
    atomic_store_explicit(&o->next, position + 1, memory_order_release);
    return true;
}

bool dti_order_finish(struct dti_pipeline *p, const struct dti_ticket *ticket)
{
    struct dti_order *o = &p->order;
    if (!o->is_ordered) {
        dti_ring_publish(p->sequencer.o.ring[ticket->replica], ticket->number);
        return true;
    }
    bool any = false;
    pthread_mutex_lock(&o->lock);
    *finished_of(p, ticket->replica, ticket->number) = ticket->number + 1;
    while (o->last_status == DITTO_OK && hand_over_next(p))
        any = true;
    if (o->last_status != DITTO_OK) {
        end_rest(p);
        atomic_store_explicit(&o->next, DTI_ORDER_ENDED, memory_order_release); /* N0 */
    }
    any |= o->last_status != DITTO_OK;
    pthread_mutex_unlock(&o->lock);
    return any;
}

/* -- consumers -- */

bool dti_order_awaits(const struct dti_pipeline *p, uint32_t *replica, uint64_t *ticket)
{
    if (!p->order.is_ordered)
        return false;
    /* acquire: pairs with dti_order_finish */
    uint64_t next = atomic_load_explicit(&p->order.next, memory_order_acquire);
    return next != DTI_ORDER_ENDED && ticket_of(p, next, replica, ticket);
}

#define NO_POSITION (DTI_NO_POINT / 2)

uint64_t dti_order_reached(const struct dti_pipeline *p)
{
    uint64_t next = atomic_load_explicit(&p->order.next, memory_order_acquire); /* N1 */
    return next == DTI_ORDER_ENDED ? NO_POSITION
                                   : dti_sequencer_position(&p->sequencer, next / replicas_of(p),
                                                            (uint32_t)(next % replicas_of(p)));
}

/* Returns the position up to which all pipelines of this host have handed over their batches. An error in a
 * pipeline of another host ends the run there, and so on all hosts. */
static uint64_t reached_by_all(const struct ditto_iterator *it)
{
    uint64_t least = NO_POSITION;
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++) {
        uint64_t reached = dti_order_reached(&it->pipeline[i]);
        least = reached < least ? reached : least;
    }
    return least;
}

/* Returns the point of the first error that is known, and sets *failed to its pipeline. */
static uint64_t first_error(const struct ditto_iterator *it, struct dti_pipeline **failed)
{
    uint64_t first = DTI_NO_POINT;
    *failed = NULL;
    for (uint32_t i = 0; i < it->plan.local_pipelines; i++) {
        uint32_t w = dti_pipeline_number(&it->pipeline[i]);
        /* acquire: pairs with publish() in sequencer.c */
        uint64_t point = atomic_load_explicit(&it->progress.pipeline_progress[w].error_point,
                                              memory_order_acquire);
        if (point < first) {
            first = point;
            *failed = &it->pipeline[i];
        }
    }
    return first;
}

enum dti_next_delivery dti_order_next_delivery(struct ditto_iterator *it, uint32_t replica)
{
    struct dti_consumer *c = &it->consumer[replica];
    const struct dti_sequencer *s = &c->pipeline->sequencer;
    const struct dti_batch_slot *slot = dti_ring_peek(&c->ring);
    enum dti_next_delivery in_slot = slot != NULL ? DTI_NEXT_DELIVERY_BATCH : DTI_NEXT_DELIVERY_NONE;
    bool waits_for_others = it->plan.local_pipelines > 1 &&
                            (it->progress.end_at_error ||
                             (slot != NULL && slot->by_others && slot->status >= 0));
    if (!waits_for_others)
        return in_slot;
    /* All pipelines end in the same step. The end comes after all batches of earlier steps, and after an
     * error of any pipeline. */
    bool at_end = slot != NULL && slot->status == DITTO_END_OF_INPUT;
    uint32_t j = replica - c->pipeline->first_replica;
    uint64_t step = s->begins[j] + c->ring.next;
    uint64_t position = at_end ? step * it->all_replicas : dti_sequencer_position(s, step, j);
    if (position < c->safe && !at_end)
        return in_slot;
    uint64_t reached = reached_by_all(it); /* before the errors: N1 */
    struct dti_pipeline *failed;
    /* `behind` is the position of the first batch that comes after the error. */
    uint64_t error_point = first_error(it, &failed), behind = error_point / 2 + error_point % 2;
    bool fails = failed != NULL && (at_end || behind <= position);
    c->safe = reached < behind ? reached : behind;
    c->limit = position < behind ? position : behind;
    if (c->limit > reached)
        return DTI_NEXT_DELIVERY_NONE;
    if (!fails)
        return in_slot;
    c->failed_pipeline = failed;
    return DTI_NEXT_DELIVERY_ERROR;
}
