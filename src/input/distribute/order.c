/* src/input/distribute/order.c - the order in which a pipeline's batches are handed over to their replicas: that of rows.
 *
 * Producers finish batches in any order. A batch is handed over only when all batches before it have been read without an error, because
 * rows behind an error are given to nobody, and whether there is one is known only then. The producer that closes a gap hands over what
 * the others have finished behind it. One producer alone finishes batches in this order anyway.
 *
 * With static shapes the batches of a step are handed over together: an error in one of them takes the whole step away. */
#include "input/distribute/iterator.h"

#include <stdlib.h>

static uint32_t replicas_of(const struct dti_pipeline *p)
{
    return p->sequencer.o.cut.replicas;
}

ditto_status dti_order_init(struct dti_pipeline *p, bool several_producers, bool whole_steps)
{
    struct dti_order *o = &p->order;
    pthread_mutex_init(&o->lock, NULL);
    atomic_init(&o->next, p->sequencer.first * replicas_of(p));
    o->whole_steps = whole_steps;
    o->finished = calloc((size_t)replicas_of(p) * p->sequencer.o.slots, sizeof *o->finished);
    if (o->finished == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to hand over batches to %u replicas", replicas_of(p));
    o->needed = several_producers || whole_steps;
    return DITTO_OK;
}

void dti_order_free(struct dti_pipeline *p)
{
    if (p->order.finished == NULL)
        return;
    free(p->order.finished);
    pthread_mutex_destroy(&p->order.lock);
}

/* Places that are handed over at a time. */
static uint32_t together(const struct dti_pipeline *p)
{
    return p->order.whole_steps ? replicas_of(p) : 1;
}

/* The ticket of a place, which is step * replicas + replica. False: there is none, because the replica has gone on behind this step
 * when the position was restored. */
static bool ticket_of(const struct dti_pipeline *p, uint64_t place, uint32_t *replica, uint64_t *ticket)
{
    uint64_t step = place / replicas_of(p), begins;
    *replica = (uint32_t)(place % replicas_of(p));
    begins = p->sequencer.begins[*replica];
    *ticket = step - begins;
    return step >= begins;
}

/* All under the lock from here on. */

static uint64_t *finished_of(const struct dti_pipeline *p, uint32_t replica, uint64_t ticket)
{
    uint32_t slots = p->sequencer.o.slots;
    return &p->order.finished[(size_t)replica * slots + ticket % slots];
}

static bool are_finished(const struct dti_pipeline *p, uint64_t first)
{
    uint32_t replica;
    uint64_t ticket;
    for (uint64_t place = first; place < first + together(p); place++)
        if (ticket_of(p, place, &replica, &ticket) && *finished_of(p, replica, ticket) != ticket + 1)
            return false;
    return true;
}

static void publish(struct dti_pipeline *p, uint32_t replica, uint64_t ticket)
{
    *finished_of(p, replica, ticket) = 0;
    dti_ring_publish(p->sequencer.o.ring[replica], ticket);
}

/* Behind the end: what is finished and not handed over is the end, whatever was read. */
static void end_rest(struct dti_pipeline *p)
{
    uint32_t slots = p->sequencer.o.slots;
    for (uint32_t r = 0; r < replicas_of(p); r++)
        for (uint32_t i = 0; i < slots; i++) {
            uint64_t ticket = *finished_of(p, r, i) - 1;
            if (*finished_of(p, r, i) == 0)
                continue;
            struct dti_slot *slot = dti_ring_slot(p->sequencer.o.ring[r], ticket);
            slot->rows = 0;
            slot->status = p->order.end;
            publish(p, r, ticket);
        }
}

/* Those of the places from `first` on that belong together. */
static void hand_over(struct dti_pipeline *p, uint64_t first)
{
    struct dti_order *o = &p->order;
    uint64_t past = first + together(p), ticket;
    uint32_t replica;
    for (uint64_t place = first; place < past && o->end == DITTO_OK; place++)
        if (ticket_of(p, place, &replica, &ticket))
            o->end = dti_ring_slot(p->sequencer.o.ring[replica], ticket)->status;
    for (uint64_t place = first; place < past && (o->end == DITTO_OK || !o->whole_steps); place++)
        if (ticket_of(p, place, &replica, &ticket)) /* with the rows in front of its error */
            publish(p, replica, ticket);
    if (o->end != DITTO_OK)
        end_rest(p);
    atomic_store_explicit(&o->next, past, memory_order_release); /* pairs with dti_order_awaits */
}

bool dti_order_finish(struct dti_pipeline *p, const struct dti_ticket *ticket)
{
    struct dti_order *o = &p->order;
    if (!o->needed) {
        dti_ring_publish(p->sequencer.o.ring[ticket->replica], ticket->number);
        return true;
    }
    pthread_mutex_lock(&o->lock);
    *finished_of(p, ticket->replica, ticket->number) = ticket->number + 1;
    uint64_t first = atomic_load_explicit(&o->next, memory_order_relaxed), next = first; /* written under the lock */
    bool ended = o->end != DITTO_OK;
    if (ended)
        end_rest(p);
    for (; o->end == DITTO_OK && are_finished(p, next); next += together(p))
        hand_over(p, next);
    pthread_mutex_unlock(&o->lock);
    return ended || next != first;
}

bool dti_order_awaits(const struct dti_pipeline *p, uint32_t replica, uint64_t *ticket)
{
    const struct dti_order *o = &p->order;
    uint64_t next = atomic_load_explicit(&o->next, memory_order_acquire); /* pairs with hand_over */
    uint64_t place = o->whole_steps ? next + replica : next;
    uint32_t own;
    return o->needed && ticket_of(p, place, &own, ticket) && own == replica;
}
