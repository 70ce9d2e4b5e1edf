/* src/input/queue/ring.c - the ring. Argued in ring.h. */
#include "input/queue/ring.h"

bool dti_ring_bytes(uint32_t slots, size_t payload_bytes, size_t *bytes)
{
    size_t each;
    return !__builtin_add_overflow(payload_bytes, sizeof(struct dti_slot), &each) &&
           !__builtin_mul_overflow(each, (size_t)slots, bytes);
}

void dti_ring_init(struct dti_ring *q, uint32_t slots, size_t payload_bytes, void *memory)
{
    q->next = 0;
    q->holding = false;
    q->slots = slots;
    q->slot = memory;
    for (uint32_t i = 0; i < slots; i++) {
        q->slot[i] = (struct dti_slot){ .payload = (char *)(q->slot + slots) + i * payload_bytes };
        atomic_init(&q->slot[i].turn, 2 * (uint64_t)i);
    }
}

struct dti_slot *dti_ring_slot(struct dti_ring *q, uint64_t ticket)
{
    return &q->slot[ticket % q->slots];
}

bool dti_ring_is_free(const struct dti_ring *q, uint64_t ticket)
{
    return atomic_load_explicit(&q->slot[ticket % q->slots].turn, memory_order_acquire) == 2 * ticket; /* F1 */
}

bool dti_ring_reached(const struct dti_ring *q, uint64_t ticket)
{
    return atomic_load_explicit(&q->slot[ticket % q->slots].turn, memory_order_acquire) >= 2 * ticket; /* F1 */
}

bool dti_ring_is_filled(const struct dti_ring *q, uint64_t ticket)
{
    return atomic_load_explicit(&q->slot[ticket % q->slots].turn, memory_order_relaxed) ==
           2 * ticket + 1; /* for reports: nothing is read */
}

void dti_ring_publish(struct dti_ring *q, uint64_t ticket)
{
    atomic_store_explicit(&dti_ring_slot(q, ticket)->turn, 2 * ticket + 1, memory_order_release); /* P0 */
}

struct dti_slot *dti_ring_peek(struct dti_ring *q)
{
    struct dti_slot *slot = dti_ring_slot(q, q->next);
    return atomic_load_explicit(&slot->turn, memory_order_acquire) == 2 * q->next + 1 ? slot : NULL; /* P1 */
}

void dti_ring_take(struct dti_ring *q)
{
    q->next++;
    q->holding = true;
}

bool dti_ring_release(struct dti_ring *q)
{
    if (!q->holding)
        return false;
    q->holding = false;
    uint64_t ticket = q->next - 1;
    atomic_store_explicit(&dti_ring_slot(q, ticket)->turn, 2 * (ticket + q->slots), memory_order_release); /* F0 */
    return true;
}
