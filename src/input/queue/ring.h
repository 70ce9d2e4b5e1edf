/* src/input/queue/ring.h - a bounded ring of batches: any number of producers, one consumer, order fixed by tickets.
 *
 * Tickets 0, 1, 2, ... are given out before the batches are made (sequencer.h), so the order of a ring never depends on
 * which producer is faster. Ticket t uses slot t mod slots. A slot's turn says whose it is:
 *     turn == 2 t        free for the producer that holds ticket t
 *     turn == 2 t + 1    filled; the consumer's, when it comes to t
 * Invariants  Q1  only the holder of ticket t writes the slot while turn == 2 t; only the consumer while turn == 2 t + 1.
 *             Q2  turn takes the values 2 t, 2 t + 1, 2 (t + slots), 2 (t + slots) + 1, ... in this order: also of one slot.
 * Edges       P0 -> P1  the filled slot -> the consumer that sees turn == 2 t + 1
 *             F0 -> F1  the consumer's last look at the slot -> the producer that sees turn == 2 (t + slots)
 * Progress    no compare-and-swap anywhere; a producer waits for its own slot alone, the consumer for its next alone.
 * Source      per-slot sequence numbers as in D. Vyukov's bounded MPMC queue, with tickets given out by the sequencer.
 * Model       tests/model/queue.pml */
#ifndef DTI_RING_H
#define DTI_RING_H

#include "base/base.h"

struct dti_batch_slot {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t turn;
    uint64_t rows, step;
    ditto_status status; /* not OK: nothing follows these rows */
    bool by_others;      /* as of its ticket: sequencer.h */
    uint32_t producer;   /* the team's number of the one that filled it, and when: for traces */
    uint64_t begin_ns, end_ns;
    char *payload;
};

struct dti_ring {
    /* The consumer's own. */
    alignas(DTI_CACHE_LINE_PAIR) uint64_t next; /* ticket that it takes next */
    bool holding;                               /* it has taken ticket next - 1 and not released it */
    /* Constant. */
    alignas(DTI_CACHE_LINE_PAIR) uint32_t slots;
    struct dti_batch_slot *slot;
};

/* Bytes of memory for a ring whose payloads have payload_bytes (a multiple of DTI_CACHE_LINE); false: more than size_t counts. */
bool dti_ring_bytes(uint32_t slots, size_t payload_bytes, size_t *bytes);
/* Lays the ring out in `memory`, aligned to DTI_CACHE_LINE_PAIR. */
void dti_ring_init(struct dti_ring *ring, uint32_t slots, size_t payload_bytes, void *memory);

/* -- The producer that holds `ticket` -- */
bool dti_ring_is_free(const struct dti_ring *ring, uint64_t ticket);
/* It has been free: the one before it in the same slot was released. */
bool dti_ring_reached(const struct dti_ring *ring, uint64_t ticket);
struct dti_batch_slot *dti_ring_slot(struct dti_ring *ring,
                                     uint64_t ticket); /* to be filled once it is free */
void dti_ring_publish(struct dti_ring *ring, uint64_t ticket);
/* -- Any thread: of about now -- */
bool dti_ring_is_filled(const struct dti_ring *ring, uint64_t ticket);
/* -- The consumer -- */
struct dti_batch_slot *dti_ring_peek(struct dti_ring *ring); /* the next slot, NULL while it is not filled */
void dti_ring_take(struct dti_ring *ring);                   /* after a peek that was not NULL */
bool dti_ring_release(struct dti_ring *ring);                /* what was taken last; false: nothing was */

#endif
