/* src/sync/algorithms/slices.h - all-reduce of indexed rows. */
#ifndef DTI_SLICES_H
#define DTI_SLICES_H

#include <ditto/slices.h>

#include "base/waiting/futex.h"
#include "sync/meeting/call.h"

struct dti_replica;

/* The input of one replica, and where it wants the result. One of `out` and `dense` is set. */
struct dti_slices {
    ditto_slices in; /* a copy, made when the call began */

    /* Written by its own replica only. */
    ditto_slices *out;

    /* The number of rows that `out` can hold. Read by all replicas. */
    size_t capacity;

    void *dense;
    size_t dense_rows;
    bool merge;
};

/* The collective of ditto_all_reduce_slices and ditto_all_reduce_slices_into. The call has name, dtype, op,
 * element_bytes, and in count the number of elements of a row. Must be called on the replica's own thread. */
ditto_status dti_reduce_slices(struct dti_replica *self, struct dti_call *call, const struct dti_slices *own,
                               struct dti_deadline *deadline);

#endif
