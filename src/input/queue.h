/* src/input/queue.h - a bounded ring of batches: any number of producers, one consumer, order fixed by tickets.
 *
 * Tickets 0, 1, 2, ... are given out before the batches are made (sequencer.h), so the order of a queue never depends on
 * which producer is faster. Ticket t uses slot t mod slots. A slot's turn says whose it is:
 *     turn == t          free for the producer that holds ticket t
 *     turn == t + 1      filled; the consumer's, when it comes to t
 * Invariants  Q1  only the holder of ticket t writes the slot while turn == t; only the consumer while turn == t + 1.
 *             Q2  turn takes the values t, t + 1, t + slots, t + slots + 1, ... in this order.
 * Edges       P0 -> P1  the filled slot -> the consumer that sees turn == t + 1
 *             F0 -> F1  the consumer's last look at the slot -> the producer that sees turn == t + slots
 * Progress    no compare-and-swap anywhere; a producer waits for its own slot alone, the consumer for its next alone.
 * Source      per-slot sequence numbers as in D. Vyukov's bounded MPMC queue, with tickets given out by the sequencer.
 * Model       tests/model/queue.pml */
#ifndef DTI_QUEUE_H
#define DTI_QUEUE_H

#include "base/base.h"

struct dti_slot {
    alignas(DTI_LINE_PAIR) _Atomic uint64_t turn;
    uint64_t rows, step;
    ditto_status status; /* not OK: nothing follows; the slot is never released */
    char *payload;
};

struct dti_queue {
    /* The consumer's own. */
    alignas(DTI_LINE_PAIR) uint64_t next; /* ticket that it takes next */
    bool holding;                         /* it has taken ticket next - 1 and not released it */
    /* Constant. */
    alignas(DTI_LINE_PAIR) uint32_t slots;
    struct dti_slot *slot;
};

/* Bytes of memory for a queue whose payloads have payload_bytes (a multiple of DTI_LINE); false: more than size_t counts. */
bool dti_queue_bytes(uint32_t slots, size_t payload_bytes, size_t *bytes);
/* Lays the queue out in `memory`, aligned to DTI_LINE_PAIR. */
void dti_queue_init(struct dti_queue *queue, uint32_t slots, size_t payload_bytes, void *memory);

/* -- The producer that holds `ticket` -- */
bool dti_queue_is_free(const struct dti_queue *queue, uint64_t ticket);
struct dti_slot *dti_queue_slot(struct dti_queue *queue, uint64_t ticket); /* to be filled once it is free */
void dti_queue_publish(struct dti_queue *queue, uint64_t ticket);
/* -- The consumer -- */
struct dti_slot *dti_queue_peek(struct dti_queue *queue); /* the next slot, NULL while it is not filled */
void dti_queue_take(struct dti_queue *queue);             /* after a peek that was not NULL */
bool dti_queue_release(struct dti_queue *queue);          /* what was taken last; false: nothing was */

#endif
