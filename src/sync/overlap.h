/* src/sync/overlap.h - checks that the buffers of a call overlap only where this is allowed. */
#ifndef DTI_OVERLAP_H
#define DTI_OVERLAP_H

#include <ditto/exchange.h>

#include <stdbool.h>

struct dti_replica;

struct dti_named_buffer {
    const char *name; /* for the message */
    const void *data;
    size_t bytes;
};

/* Fails with INVALID if the two buffers overlap. */
ditto_status dti_check_apart(const struct dti_named_buffer *one, const struct dti_named_buffer *other);

/* Checks src and dst of a collective. Fails with INVALID if they overlap, unless the inner buffer begins at
 * `allowed`. */
ditto_status dti_check_overlap(const void *outer, size_t outer_bytes, const void *inner, size_t inner_bytes,
                               const void *allowed);

/* Fails with INVALID if the destination of an item overlaps a buffer of another item. Must be called on the
 * replica's own thread. The addresses are sorted in the replica's arena (NO_MEMORY). */
ditto_status dti_check_list(struct dti_replica *self, const ditto_list_item *list, size_t length);

/* Fails with INVALID if the destination of a part overlaps another buffer of any part. With may_be_in_place,
 * a part may have one buffer as its source and destination. As dti_check_list otherwise. */
ditto_status dti_check_exchange(struct dti_replica *self, const ditto_exchange_part *parts, size_t count,
                                bool may_be_in_place);

#endif
