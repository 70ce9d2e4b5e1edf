/* src/input/distribute/ring.c - the operations of the ring. ring.h has the argument. */
#include "input/distribute/ring.h"

bool dti_ring_bytes(uint32_t slots, size_t payload_bytes, size_t *bytes)
{
    size_t each;
    return !__builtin_add_overflow(payload_bytes, sizeof(struct dti_batch_slot), &each) &&
           !__builtin_mul_overflow(each, (size_t)slots, bytes);
}

void dti_ring_init(struct dti_ring *ring, uint32_t slots, size_t payload_bytes, void *memory)
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

struct dti_batch_slot *dti_ring_slot(struct dti_ring *ring, uint64_t ticket)
{
    return &ring->slot[ticket % ring->slots];
}

bool dti_ring_is_free(const struct dti_ring *ring, uint64_t ticket)
{
    /* acquire: F1 */
    return atomic_load_explicit(&ring->slot[ticket % ring->slots].turn, memory_order_acquire) == 2 * ticket;
}

bool dti_ring_reached(const struct dti_ring *ring, uint64_t ticket)
{
    /* acquire: F1 */
    return atomic_load_explicit(&ring->slot[ticket % ring->slots].turn, memory_order_acquire) >= 2 * ticket;
}

bool dti_ring_is_filled(const struct dti_ring *ring, uint64_t ticket)
{
    /* relaxed: for statistics, the slot is not read */
    return atomic_load_explicit(&ring->slot[ticket % ring->slots].turn, memory_order_relaxed) ==
           2 * ticket + 1;
}

void dti_ring_publish(struct dti_ring *ring, uint64_t ticket)
{
    atomic_store_explicit(&dti_ring_slot(ring, ticket)->turn, 2 * ticket + 1, memory_order_release); /* P0 */
}

struct dti_batch_slot *dti_ring_peek(struct dti_ring *ring)
{
    struct dti_batch_slot *slot = dti_ring_slot(ring, ring->next);
    /* acquire: P1 */
    return atomic_load_explicit(&slot->turn, memory_order_acquire) == 2 * ring->next + 1 ? slot : NULL;
}

void dti_ring_take(struct dti_ring *ring)
{
    ring->next++;
    ring->holding = true;
}

bool dti_ring_release(struct dti_ring *ring)
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
