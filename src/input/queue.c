/* src/input/queue.c - the ring. Argued in queue.h. */
#include "input/queue.h"

bool dti_queue_bytes(uint32_t slots, size_t payload_bytes, size_t *bytes)
{
    size_t each;
    return !__builtin_add_overflow(payload_bytes, sizeof(struct dti_slot), &each) &&
           !__builtin_mul_overflow(each, (size_t)slots, bytes);
}

void dti_queue_init(struct dti_queue *q, uint32_t slots, size_t payload_bytes, void *memory)
{
    q->next = 0;
    q->holding = false;
    q->slots = slots;
    q->slot = memory;
    for (uint32_t i = 0; i < slots; i++) {
        q->slot[i] = (struct dti_slot){ .payload = (char *)(q->slot + slots) + i * payload_bytes };
        atomic_init(&q->slot[i].turn, i);
    }
}

struct dti_slot *dti_queue_slot(struct dti_queue *q, uint64_t ticket)
{
    return &q->slot[ticket % q->slots];
}

bool dti_queue_is_free(const struct dti_queue *q, uint64_t ticket)
{
    return atomic_load_explicit(&q->slot[ticket % q->slots].turn, memory_order_acquire) == ticket; /* F1 */
}

void dti_queue_publish(struct dti_queue *q, uint64_t ticket)
{
    atomic_store_explicit(&dti_queue_slot(q, ticket)->turn, ticket + 1, memory_order_release); /* P0 */
}

struct dti_slot *dti_queue_peek(struct dti_queue *q)
{
    struct dti_slot *slot = dti_queue_slot(q, q->next);
    return atomic_load_explicit(&slot->turn, memory_order_acquire) == q->next + 1 ? slot : NULL; /* P1 */
}

void dti_queue_take(struct dti_queue *q)
{
    q->next++;
    q->holding = true;
}

bool dti_queue_release(struct dti_queue *q)
{
    if (!q->holding)
        return false;
    q->holding = false;
    uint64_t ticket = q->next - 1;
    atomic_store_explicit(&dti_queue_slot(q, ticket)->turn, ticket + q->slots, memory_order_release); /* F0 */
    return true;
}
