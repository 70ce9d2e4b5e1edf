/* src/sync/algorithms/slices.h - all-reduce of indexed rows. */
#ifndef DTI_SLICES_H
#define DTI_SLICES_H

#include <ditto/slices.h>

#include "base/waiting/deadline.h"
#include "sync/meeting/call.h"

struct dti_replica;

/* The input of one replica, and where it wants the result. */
struct dti_slices {
    ditto_slices in; /* a copy, made when the call began */

    /* Receives the result. Only its own replica writes it. NULL if the result is dense. */
    ditto_slices *out;

    /* The number of rows that `out` can hold. All replicas read it. */
    size_t capacity;

    /* The rows to which the result is added, and their number. */
    void *dense;
    size_t dense_rows;

    /* True if rows with equal indices are merged. Always true with `dense`. */
    bool merge;
};

/* The collective of ditto_all_reduce_slices. The call has name, dtype, op,
 * element_bytes, and in count the number of elements of a row. Must be called on the replica's own thread. */
ditto_status dti_reduce_slices(struct dti_replica *self, struct dti_call *call,
                               const struct dti_slices *own_slices, struct dti_deadline *deadline);

#endif
