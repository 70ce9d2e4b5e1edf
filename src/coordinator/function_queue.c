/* src/coordinator/function_queue.c - the queue of scheduled functions; see function_queue.h. */
#include "coordinator/function_queue.h"

#include <stdlib.h>

bool dti_function_queue_make(struct dti_function_queue *q, uint32_t capacity)
{
    q->slot = aligned_alloc(DTI_CACHE_LINE, capacity * sizeof *q->slot);
    if (q->slot == NULL)
        return false;
    for (uint32_t i = 0; i < capacity; i++)
        atomic_init(&q->slot[i].sequence, i);
    q->mask = capacity - 1;
    atomic_init(&q->tail, 0);
    atomic_init(&q->head, 0);
    return true;
}

void dti_function_queue_free(struct dti_function_queue *q)
{
    free(q->slot);
    q->slot = NULL;
}

bool dti_function_queue_push(struct dti_function_queue *q, const struct dti_scheduled *item, uint64_t *out)
{
    /* relaxed, also in the pop: the sequence numbers order the accesses to the slots. */
    uint64_t ticket = atomic_load_explicit(&q->tail, memory_order_relaxed);
    for (;;) {
        struct dti_function_slot *slot = &q->slot[ticket & q->mask];
        uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire); /* E1 */
        if ((int64_t)(sequence - ticket) < 0)
            return false;
        if (sequence != ticket) {
            ticket = atomic_load_explicit(&q->tail, memory_order_relaxed);
            continue;
        }
        if (!atomic_compare_exchange_weak_explicit(&q->tail, &ticket, ticket + 1, memory_order_release,
                                                   memory_order_relaxed))
            continue; /* a failed exchange has set `ticket` to the tail */
        dti_scheduled_copy(&slot->item, item);
        atomic_store_explicit(&slot->sequence, ticket + 1, memory_order_seq_cst); /* F0 */
        *out = ticket;
        return true;
    }
}

bool dti_function_queue_pop(struct dti_function_queue *q, struct dti_scheduled *item)
{
    uint64_t ticket = atomic_load_explicit(&q->head, memory_order_relaxed);
    for (;;) {
        struct dti_function_slot *slot = &q->slot[ticket & q->mask];
        uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire); /* F1 */
        if ((int64_t)(sequence - (ticket + 1)) < 0)
            return false;
        if (sequence != ticket + 1) {
            ticket = atomic_load_explicit(&q->head, memory_order_relaxed);
            continue;
        }
        if (!atomic_compare_exchange_weak_explicit(&q->head, &ticket, ticket + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        dti_scheduled_copy(item, &slot->item);
        atomic_store_explicit(&slot->sequence, ticket + q->mask + 1, memory_order_release); /* E0 */
        return true;
    }
}

bool dti_function_queue_is_full(const struct dti_function_queue *q)
{
    uint64_t ticket = atomic_load_explicit(&q->tail, memory_order_relaxed);
    uint64_t sequence = atomic_load_explicit(&q->slot[ticket & q->mask].sequence, memory_order_acquire);
    return (int64_t)(sequence - ticket) < 0;
}

bool dti_function_queue_has_one(const struct dti_function_queue *q)
{
    /* The ticket is at most as old as the last pop of this thread. If another worker has popped it since, the
     * slot has a later sequence, and the answer is true: the caller then tries again. */
    uint64_t ticket = atomic_load_explicit(&q->head, memory_order_relaxed);
    uint64_t sequence = atomic_load_explicit(&q->slot[ticket & q->mask].sequence, memory_order_seq_cst);
    return (int64_t)(sequence - (ticket + 1)) >= 0;
}
