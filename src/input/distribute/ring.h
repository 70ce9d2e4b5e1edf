/* src/input/distribute/ring.h - a bounded ring of batches with any number of producers and one consumer. The
 * order of the batches is fixed by tickets.
 *
 * Tickets 0, 1, 2, ... are given out before the batches are made (sequencer.h). The order of a ring therefore
 * does not depend on the speed of the producers. Ticket t uses slot t mod slots. The slot's turn says which
 * thread may use it:
 *     turn == 2 t        free; it belongs to the producer that holds ticket t
 *     turn == 2 t + 1    filled; it belongs to the consumer, which takes tickets in order
 * Invariants  Q1  While turn == 2 t, only the holder of ticket t writes the slot, and then the producer that
 *                 hands the slot over under the lock of order.h. While turn == 2 t + 1, only the consumer
 *                 does.
 *             Q2  turn takes the values 2 t, 2 t + 1, 2 (t + slots), 2 (t + slots) + 1, ... in this order,
 *                 also in a ring of one slot.
 * Edges       P0 -> P1  the filled slot -> the consumer that sees turn == 2 t + 1
 *             F0 -> F1  the consumer's last access to the slot -> the producer that sees
 *                       turn == 2 (t + slots)
 * Progress    There is no compare-and-swap. A producer waits only for its own slot, and the consumer waits
 *             only for its next slot. (order.h adds waits for other pipelines.)
 * Source      Sequence numbers per slot as in D. Vyukov's bounded MPMC queue, with tickets from the
 *             sequencer.
 * Beside      In src/input/queue the consumer frees slots through `head`, and writes no slot. With such
 *             slots the input was slower (docs/performance.md, Input and the queue).
 * Model       tests/model/queue.pml */
#ifndef DTI_RING_H
#define DTI_RING_H

#include <ditto/status.h>

#include "base/platform.h"

struct dti_batch_slot {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t turn;
    uint64_t rows, step;
    ditto_status status; /* if it is not DITTO_OK, nothing follows these rows */
    bool by_others;      /* as in the ticket, see sequencer.h */

    /* For traces: the producer that has filled the slot, by its number in the team, and the time of
     * filling. */
    uint32_t producer;
    uint64_t begin_ns, end_ns;
    char *payload;
};

struct dti_ring {
    /* Written by the consumer only, or between two of its jobs by the thread that posts them. Other threads
     * read `next` only when no run is active. */
    alignas(DTI_CACHE_LINE_PAIR) uint64_t next; /* ticket that it takes next */

    /* The consumer has taken ticket next - 1 and not released it. */
    bool holding;

    /* Constant. */
    alignas(DTI_CACHE_LINE_PAIR) uint32_t slots;
    struct dti_batch_slot *slot;
};

/* Computes the bytes of memory for a ring whose payloads have payload_bytes, a multiple of DTI_CACHE_LINE.
 * Returns false if that is more than size_t can count. */
static inline bool dti_ring_bytes(uint32_t slots, size_t payload_bytes, size_t *bytes)
{
    size_t each;
    return !__builtin_add_overflow(payload_bytes, sizeof(struct dti_batch_slot), &each) &&
           !__builtin_mul_overflow(each, (size_t)slots, bytes);
}

/* Lays out the ring in `memory`, which is aligned to DTI_CACHE_LINE_PAIR. */
static inline void dti_ring_init(struct dti_ring *ring, uint32_t slots, size_t payload_bytes, void *memory)
{
    ring->next = 0;
    ring->holding = false;
    ring->slots = slots;
    ring->slot = memory;
    for (uint32_t i = 0; i < slots; i++) {
        ring->slot[i] = (struct dti_batch_slot){ .payload = (char *)(ring->slot + slots) +
                                                            i * payload_bytes };
        atomic_init(&ring->slot[i].turn, 2 * (uint64_t)i);
    }
}

static inline struct dti_batch_slot *dti_ring_slot(const struct dti_ring *ring, uint64_t ticket)
{
    return &ring->slot[ticket % ring->slots];
}

/* -- Producers. The holder of a ticket may fill dti_ring_slot(ring, ticket) -- */

/* Returns true if the slot is free for `ticket` and not yet filled. Called before the ticket is given out. */
static inline bool dti_ring_is_free(const struct dti_ring *ring, uint64_t ticket)
{
    /* acquire: F1 */
    return atomic_load_explicit(&dti_ring_slot(ring, ticket)->turn, memory_order_acquire) == 2 * ticket;
}

/* Returns true once the slot has become free for `ticket`, and also after it was filled. Any thread may call
 * it. */
static inline bool dti_ring_reached(const struct dti_ring *ring, uint64_t ticket)
{
    /* acquire: F1 */
    return atomic_load_explicit(&dti_ring_slot(ring, ticket)->turn, memory_order_acquire) >= 2 * ticket;
}

static inline void dti_ring_publish(struct dti_ring *ring, uint64_t ticket)
{
    /* release: P0 */
    atomic_store_explicit(&dti_ring_slot(ring, ticket)->turn, 2 * ticket + 1, memory_order_release);
}

/* -- Any thread; the answer may be out of date at once -- */
static inline bool dti_ring_is_filled(const struct dti_ring *ring, uint64_t ticket)
{
    /* relaxed: for statistics, the slot is not read */
    return atomic_load_explicit(&dti_ring_slot(ring, ticket)->turn, memory_order_relaxed) == 2 * ticket + 1;
}

/* -- The consumer -- */

/* Returns the next slot, or NULL while it is not filled. */
static inline struct dti_batch_slot *dti_ring_peek(const struct dti_ring *ring)
{
    struct dti_batch_slot *slot = dti_ring_slot(ring, ring->next);
    /* acquire: P1 */
    bool is_filled = atomic_load_explicit(&slot->turn, memory_order_acquire) == 2 * ring->next + 1;
    return is_filled ? slot : NULL;
}

/* Takes the next slot. dti_ring_peek must have returned it. */
static inline void dti_ring_take(struct dti_ring *ring)
{
    ring->next++;
    ring->holding = true;
}

/* Releases the slot that was taken last. Returns false if no slot is taken. */
static inline bool dti_ring_release(struct dti_ring *ring)
{
    if (!ring->holding)
        return false;
    ring->holding = false;
    uint64_t ticket = ring->next - 1;
    /* release: F0 */
    atomic_store_explicit(&dti_ring_slot(ring, ticket)->turn, 2 * (ticket + ring->slots),
                          memory_order_release);
    return true;
}

#endif
