/* src/input/distribute/order.c - the order in which a pipeline's batches are handed over to their replicas: that of rows.
 *
 * Producers finish batches in any order. A batch is handed over only when all batches before it have been read without an error, because
 * rows behind an error are given to nobody, and whether there is one is known only then. The producer that closes a gap hands over what
 * the others have finished behind it. One producer alone finishes batches in this order anyway.
 *
 * With static shapes the batches of a step are handed over together: an error in one of them takes the whole step away. */
#include "input/distribute/iterator.h"

static uint32_t replicas_of(const struct dti_pipeline *p)
{
    return p->sequencer.o.cut.replicas;
}

void dti_order_init(struct dti_pipeline *p, bool several_producers, bool whole_steps)
{
    struct dti_order *o = &p->order;
    o->needed = several_producers || whole_steps;
    o->whole_steps = whole_steps;
    atomic_init(&o->next, p->sequencer.first * replicas_of(p));
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

static struct dti_slot *slot_at(const struct dti_pipeline *p, uint64_t place, uint32_t *replica, uint64_t *ticket)
{
    return ticket_of(p, place, replica, ticket) ? dti_ring_slot(p->sequencer.o.ring[*replica], *ticket) : NULL;
}

static bool are_finished(const struct dti_pipeline *p, uint64_t first)
{
    uint32_t replica;
    uint64_t ticket;
    for (uint64_t place = first; place < first + together(p); place++) {
        const struct dti_slot *slot = slot_at(p, place, &replica, &ticket);
        if (slot != NULL && slot->finished != ticket + 1)
            return false;
    }
    return true;
}

static void end_slot(struct dti_slot *slot, ditto_status status)
{
    slot->rows = 0;
    slot->status = status;
}

/* Behind the end: what is finished and not handed over is the end, whatever was read. */
static void end_rest(struct dti_pipeline *p)
{
    for (uint32_t r = 0; r < replicas_of(p); r++) {
        struct dti_ring *ring = p->sequencer.o.ring[r];
        for (uint32_t i = 0; i < ring->slots; i++) {
            struct dti_slot *slot = &ring->slot[i];
            if (slot->finished == 0 || !dti_ring_is_free(ring, slot->finished - 1))
                continue;
            end_slot(slot, p->order.end);
            dti_ring_publish(ring, slot->finished - 1);
        }
    }
}

/* Those of the places from `first` on that belong together. */
static void hand_over(struct dti_pipeline *p, uint64_t first)
{
    struct dti_order *o = &p->order;
    uint64_t past = first + together(p), ticket;
    uint32_t replica;
    for (uint64_t place = first; place < past && o->end == DITTO_OK; place++) {
        const struct dti_slot *slot = slot_at(p, place, &replica, &ticket);
        if (slot != NULL)
            o->end = slot->status;
    }
    for (uint64_t place = first; place < past && (o->end == DITTO_OK || !o->whole_steps); place++)
        if (slot_at(p, place, &replica, &ticket) != NULL) /* with the rows in front of its error */
            dti_ring_publish(p->sequencer.o.ring[replica], ticket);
    if (o->end != DITTO_OK)
        end_rest(p);
    atomic_store_explicit(&o->next, past, memory_order_release); /* pairs with dti_order_awaits */
}

bool dti_order_finish(struct dti_pipeline *p, const struct dti_ticket *ticket)
{
    struct dti_order *o = &p->order;
    struct dti_ring *ring = p->sequencer.o.ring[ticket->replica];
    if (!o->needed) {
        dti_ring_publish(ring, ticket->number);
        return true;
    }
    pthread_mutex_lock(&o->lock);
    dti_ring_slot(ring, ticket->number)->finished = ticket->number + 1;
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
