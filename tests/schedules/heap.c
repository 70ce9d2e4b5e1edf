/* tests/schedules/heap.c - the heap of the program under test. Memory is never given out twice in a schedule,
 * so each use of freed memory is found. */
#include "engine.h"

struct block_head {
    size_t bytes;
    struct block_head *next; /* of the same arena */
};

static void mark(size_t first_byte, size_t bytes, bool allocated)
{
    size_t first = first_byte / 16, end = (first_byte + bytes + 15) / 16;
    for (size_t i = first; i < end;) {
        if (i % 64 == 0 && end - i >= 64) {
            W->allocated[i / 64] = allocated ? UINT64_MAX : 0;
            i += 64;
            continue;
        }
        uint64_t bit = (uint64_t)1 << i % 64;
        W->allocated[i / 64] = allocated ? W->allocated[i / 64] | bit : W->allocated[i / 64] & ~bit;
        i++;
    }
}

static bool is_allocated(size_t at)
{
    return (W->allocated[at / 16 / 64] >> at / 16 % 64 & 1) != 0;
}

bool is_refused(void)
{
    return W->now.is_free && ++W->now.requests == W->policy.refuse;
}

void *heap_allocate_in(uint32_t arena, size_t bytes, size_t alignment)
{
    alignment = alignment < 16 ? 16 : alignment;
    size_t at = (W->now.heap_end + sizeof(struct block_head) + alignment - 1) / alignment * alignment;
    if (is_refused() || bytes > HEAP_BYTES || at + bytes + 16 > HEAP_BYTES)
        return NULL;
    struct block_head *head = (struct block_head *)(MEMORY + at) - 1;
    world_touch(head, sizeof *head);
    *head = (struct block_head){ bytes, W->now.arena[arena] };
    W->now.arena[arena] = head;
    W->now.heap_end = (at + bytes + 16) / 16 * 16;
    W->now.blocks++;
    mark(at, bytes != 0 ? bytes : 1, true);
    return MEMORY + at;
}

void *heap_allocate(size_t bytes, size_t alignment)
{
    return heap_allocate_in(0, bytes, alignment);
}

size_t heap_block_bytes(const void *block)
{
    return ((const struct block_head *)block - 1)->bytes;
}

void heap_free(void *block, void *place)
{
    size_t at = (size_t)((char *)block - MEMORY), bytes = heap_block_bytes(block);
    if (!is_allocated(at))
        fail("heap + %#zx is freed, and not allocated", at);
    memory_is_freed(block, bytes, place);
    W->now.blocks--;
    mark(at, bytes != 0 ? bytes : 1, false);
}

void heap_free_arena(uint32_t arena)
{
    for (struct block_head *head = W->now.arena[arena]; head != NULL; head = head->next)
        if (is_allocated((size_t)((char *)(head + 1) - MEMORY)))
            heap_free(head + 1, __builtin_return_address(0));
    W->now.arena[arena] = NULL;
}
