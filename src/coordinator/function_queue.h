/* src/coordinator/function_queue.h - the bounded queue of scheduled functions, from any thread to any worker.
 *
 * It is a ring of slots, each with a sequence number. Sequence `t` means that the slot is free for the push
 * with ticket t, and t + 1 that this push has filled it. The pop of ticket t sets it to t + slots, the next
 * ticket of the same slot.
 *
 * Invariants  I1  Each ticket is taken once by a push (compare-and-swap of tail) and once by a pop (of head).
 *             I2  A slot is written only between the compare-and-swap of its push and the store of t + 1, and
 *                 read only between that of its pop and the store of t + slots.
 * Edges       F0 -> F1  A push stores t + 1 (F0). A pop that reads it (F1) sees the item.
 *             E0 -> E1  A pop stores t + slots (E0). A push that reads it (E1) may overwrite the slot.
 *             F0 is sequentially consistent, and so is the load in dti_function_queue_has_one: a worker that
 *             has said it is idle, and then finds the queue empty, is seen to be idle by every push that
 *             comes later (worker.c).
 * Source      D. Vyukov, "Bounded MPMC queue".
 * Model       tests/model/functions.pml */
#ifndef DTI_FUNCTION_QUEUE_H
#define DTI_FUNCTION_QUEUE_H

#include "coordinator/functions.h"

#include <stddef.h>
#include <string.h>

struct dti_copied;
struct ditto_remote;

/* A function that is to be executed. */
struct dti_scheduled {
    struct dti_copied *arguments; /* a reference, or NULL */
    struct ditto_remote *remote;  /* a reference, or NULL if nobody wants the results */
    uint32_t attempts;            /* how often it has been begun */

    /* It is the last member, and its name is copied only up to its end, so that a function with a short name
     * needs only one cache line of its slot. */
    struct dti_function function;
};

static inline void dti_scheduled_copy(struct dti_scheduled *to, const struct dti_scheduled *from)
{
    memcpy(to, from, offsetof(struct dti_scheduled, function.name) + strlen(from->function.name) + 1);
}

struct dti_function_slot {
    alignas(DTI_CACHE_LINE) _Atomic uint64_t sequence;
    struct dti_scheduled item;
};

struct dti_function_queue {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t tail; /* the number of functions that were ever pushed */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t head;
    alignas(DTI_CACHE_LINE_PAIR) uint64_t mask; /* constant, as the next one */
    struct dti_function_slot *slot;
};

/* `capacity` is a power of two. Returns false if there is no memory. */
bool dti_function_queue_make(struct dti_function_queue *q, uint32_t capacity);
void dti_function_queue_free(struct dti_function_queue *q);

/* Any thread. They return false if the queue is full, or empty. The first sets *ticket to the number of
 * functions that were pushed before. */
bool dti_function_queue_push(struct dti_function_queue *q, const struct dti_scheduled *item,
                             uint64_t *ticket);
bool dti_function_queue_pop(struct dti_function_queue *q, struct dti_scheduled *item);
bool dti_function_queue_is_full(const struct dti_function_queue *q);
bool dti_function_queue_has_one(const struct dti_function_queue *q);

/* Returns the number of functions that were ever popped. */
static inline uint64_t dti_function_queue_popped(const struct dti_function_queue *q)
{
    return atomic_load_explicit(&q->head, memory_order_relaxed);
}

/* Returns the number of functions that were ever pushed. */
static inline uint64_t dti_function_queue_pushed(const struct dti_function_queue *q)
{
    return atomic_load_explicit(&q->tail, memory_order_acquire);
}

#endif
