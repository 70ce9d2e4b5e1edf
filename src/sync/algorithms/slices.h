/* src/sync/algorithms/slices.h - all-reduce of indexed rows. */
#ifndef DTI_SLICES_H
#define DTI_SLICES_H

#include <ditto/slices.h>

#include "sync/meeting/call.h"

struct dti_replica;

/* What a replica brings, and where it wants the result: one of out and dense. */
struct dti_slices {
    ditto_slices in;   /* as they were when the call began */
    ditto_slices *out; /* written by its replica alone, */
    size_t capacity;   /* in rows: read by all */
    void *dense;
    size_t dense_rows;
    bool merge;
};

/* The replica's own thread: the collective behind ditto_all_reduce_slices and _into. call: name, dtype, op, count (of a row). */
ditto_status dti_reduce_slices(struct dti_replica *self, struct dti_call *call, const struct dti_slices *own,
                               struct dti_deadline *deadline);

#endif
