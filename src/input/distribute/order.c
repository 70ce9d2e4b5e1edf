/* src/input/distribute/order.c - the order in which a pipeline's batches are handed over to their replicas: that of rows.
 *
 * Producers finish batches in any order. A batch is handed over only when all batches before it have been read without an error, because
 * rows behind an error are given to nobody, and whether there is one is known only then. The producer that closes a gap hands over what
 * the others have finished behind it. One producer alone finishes batches in this order anyway. */
#include "input/distribute/iterator.h"

#include <stdlib.h>

static uint32_t replicas_of(const struct dti_pipeline *p)
{
    return p->sequencer.o.cut.replicas;
}

ditto_status dti_order_init(struct dti_pipeline *p, bool several_producers)
{
    struct dti_order *o = &p->order;
    pthread_mutex_init(&o->lock, NULL);
    atomic_init(&o->next, p->sequencer.first * replicas_of(p));
    o->finished = calloc((size_t)replicas_of(p) * p->sequencer.o.slots, sizeof *o->finished);
    if (o->finished == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to hand over batches to %u replicas", replicas_of(p));
    o->needed = several_producers;
    return DITTO_OK;
}

void dti_order_free(struct dti_pipeline *p)
{
    if (p->order.finished == NULL)
        return;
    free(p->order.finished);
    pthread_mutex_destroy(&p->order.lock);
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

/* The batch that comes next, if it is finished. */
static bool hand_over_next(struct dti_pipeline *p)
{
    struct dti_order *o = &p->order;
    uint32_t replica;
    uint64_t ticket, place = atomic_load_explicit(&o->next, memory_order_relaxed); /* written under the lock */
    if (ticket_of(p, place, &replica, &ticket)) {
        if (*finished_of(p, replica, ticket) != ticket + 1)
            return false;
        o->end = dti_ring_slot(p->sequencer.o.ring[replica], ticket)->status;
        publish(p, replica, ticket); /* with the rows in front of its error */
    }
    atomic_store_explicit(&o->next, place + 1, memory_order_release); /* pairs with dti_order_awaits */
    return true;
}

bool dti_order_finish(struct dti_pipeline *p, const struct dti_ticket *ticket)
{
    struct dti_order *o = &p->order;
    if (!o->needed) {
        dti_ring_publish(p->sequencer.o.ring[ticket->replica], ticket->number);
        return true;
    }
    bool any = false;
    pthread_mutex_lock(&o->lock);
    *finished_of(p, ticket->replica, ticket->number) = ticket->number + 1;
    while (o->end == DITTO_OK && hand_over_next(p))
        any = true;
    if (o->end != DITTO_OK)
        end_rest(p);
    any |= o->end != DITTO_OK;
    pthread_mutex_unlock(&o->lock);
    return any;
}

bool dti_order_awaits(const struct dti_pipeline *p, uint32_t *replica, uint64_t *ticket)
{
    /* acquire: pairs with hand_over_next */
    return p->order.needed && ticket_of(p, atomic_load_explicit(&p->order.next, memory_order_acquire), replica, ticket);
}
