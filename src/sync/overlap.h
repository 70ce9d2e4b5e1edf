/* src/sync/overlap.h - which of a call's buffers have addresses in common that must not. */
#ifndef DTI_OVERLAP_H
#define DTI_OVERLAP_H

#include "sync/meeting/call.h"

struct dti_replica;

struct dti_named_buffer {
    const char *name; /* for the message */
    const void *data;
    size_t bytes;
};

/* INVALID if the two have an address in common. */
ditto_status dti_check_apart(const struct dti_named_buffer *one, const struct dti_named_buffer *other);
/* src and dst: INVALID unless the inner buffer stands at `allowed`, or the two are apart. */
ditto_status dti_check_overlap(const void *outer, size_t outer_bytes, const void *inner, size_t inner_bytes,
                               const void *allowed);
/* INVALID if a destination overlaps another item's buffers. The replica's own thread; a list whose addresses it has seen the last
 * time is not looked at again. NO_MEMORY: the addresses are sorted in its arena. */
ditto_status dti_check_list(struct dti_replica *self, const ditto_list_item *list, size_t length);

#endif
