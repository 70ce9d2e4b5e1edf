/* src/sync/algorithms/staged.h - an all-reduce of two replicas by way of staging memory. See staged.c. The
 * functions are called on the replica's own thread. */
#ifndef DTI_STAGED_H
#define DTI_STAGED_H

#include "sync/algorithms/choose_algorithm.h"

/* Returns true if a replica stages the first chunk of this call before it meets the other one. The other one
 * may have a call to which this does not apply, and then neither combines what was staged. */
bool dti_is_staged(const struct dti_call *call);

/* Copies a chunk, from element `first` of the source on, to the memory for the meeting `seq`, to which the
 * replica comes next. */
void dti_stage(struct dti_replica *self, const struct dti_call *call, uint32_t seq, size_t first);

/* Called after meeting `seq`, for which both replicas have staged their first chunks. Combines it, and
 * everything after it. Returns DITTO_OK, or the error of a meeting. */
ditto_status dti_combine_staged(struct dti_replica *self, const struct dti_prepared_call *prepared,
                                uint32_t seq, struct dti_deadline *deadline);

#endif
