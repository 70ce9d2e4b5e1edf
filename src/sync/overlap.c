/* src/sync/overlap.c - checks that buffers do not overlap. */
#include "sync/overlap.h"
#include "base/errors/status.h"
#include "replicas/memory/arena.h"
#include "sync/meeting/sync_state.h"

#include <stdlib.h>

static bool share_bytes(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes != 0 && b_bytes != 0 && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

ditto_status dti_check_apart(const struct dti_named_buffer *one, const struct dti_named_buffer *other)
{
    if (!share_bytes(one->data, one->bytes, other->data, other->bytes))
        return DITTO_OK;
    uintptr_t x = (uintptr_t)one->data, y = (uintptr_t)other->data;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "%s and %s overlap (%zu and %zu bytes, %zu apart): give each its own buffer", one->name,
                    other->name, one->bytes, other->bytes, (size_t)(x < y ? y - x : x - y));
}

ditto_status dti_check_overlap(const void *outer, size_t outer_bytes, const void *inner, size_t inner_bytes,
                               const void *allowed)
{
    if (inner == allowed || !share_bytes(outer, outer_bytes, inner, inner_bytes))
        return DITTO_OK;
    uintptr_t x = (uintptr_t)outer, y = (uintptr_t)inner;
    return DTI_FAIL(
        DITTO_ERR_INVALID,
        "src and dst overlap partly (%zu and %zu bytes, %zu apart): use separate buffers, or the same buffer "
        "where the function allows it",
        outer_bytes, inner_bytes, (size_t)(x < y ? y - x : x - y));
}

/* -- lists -- */

struct buffer {
    uintptr_t first, end;
    size_t item;
    bool written;
};

static int by_address(const void *left, const void *right)
{
    const struct buffer *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Stores the buffers of all items. An item in place has one buffer, and an empty item has none. */
static size_t collect(const ditto_list_item *list, size_t length, struct buffer *out)
{
    size_t found = 0;
    for (size_t i = 0; i < length; i++) {
        size_t bytes = list[i].count * ditto_dtype_bytes(list[i].dtype);
        uintptr_t src = (uintptr_t)list[i].src, dst = (uintptr_t)list[i].dst;
        if (bytes == 0)
            continue;
        out[found++] = (struct buffer){ dst, dst + bytes, i, true };
        if (src != dst)
            out[found++] = (struct buffer){ src, src + bytes, i, false };
    }
    return found;
}

/* Stores the buffers of all parts. */
static size_t collect_parts(const ditto_exchange_part *parts, size_t count, bool may_be_in_place,
                            struct buffer *out)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t element_bytes = ditto_dtype_bytes(parts[i].dtype);
        uintptr_t src = (uintptr_t)parts[i].src, dst = (uintptr_t)parts[i].dst;
        bool one_buffer = may_be_in_place && src == dst && parts[i].src_count == parts[i].dst_count;
        if (parts[i].src_count != 0 && !one_buffer)
            out[found++] = (struct buffer){ src, src + parts[i].src_count * element_bytes, i, false };
        if (parts[i].dst_count != 0)
            out[found++] = (struct buffer){ dst, dst + parts[i].dst_count * element_bytes, i, true };
    }
    return found;
}

/* Checks buffers that are sorted by address. A buffer that begins before the furthest end so far overlaps the
 * buffer with that end. */
static ditto_status sweep(const struct buffer *buffer, size_t count, const char *what)
{
    const struct buffer *furthest = NULL, *furthest_written = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct buffer *b = &buffer[i], *before = b->written ? furthest : furthest_written;
        if (before != NULL && b->first < before->end)
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "%s %zu: a buffer of %zu bytes at %p overlaps one of %s %zu, %zu bytes at %p, and one of "
                "them is a destination: give each %s its own",
                what, b->item, (size_t)(b->end - b->first), (void *)b->first, what, before->item,
                (size_t)(before->end - before->first), (void *)before->first, what);
        if (furthest == NULL || b->end > furthest->end)
            furthest = b;
        if (b->written && (furthest_written == NULL || b->end > furthest_written->end))
            furthest_written = b;
    }
    return DITTO_OK;
}

ditto_status dti_check_list(struct dti_replica *self, const ditto_list_item *list, size_t length)
{
    void *memory;
    if (length < 2)
        return DITTO_OK;
    DTI_TRY(dti_replica_alloc(self, 2 * length * sizeof(struct buffer), alignof(struct buffer), &memory));
    size_t count = collect(list, length, memory);
    qsort(memory, count, sizeof(struct buffer), by_address);
    ditto_status status = sweep(memory, count, "item");
    dti_arena_free(self->arena, memory);
    return status;
}

ditto_status dti_check_exchange(struct dti_replica *self, const ditto_exchange_part *parts, size_t count,
                                bool may_be_in_place)
{
    void *memory;
    if (count == 0)
        return DITTO_OK;
    DTI_TRY(dti_replica_alloc(self, 2 * count * sizeof(struct buffer), alignof(struct buffer), &memory));
    size_t buffers = collect_parts(parts, count, may_be_in_place, memory);
    qsort(memory, buffers, sizeof(struct buffer), by_address);
    ditto_status status = sweep(memory, buffers, "part");
    dti_arena_free(self->arena, memory);
    return status;
}
