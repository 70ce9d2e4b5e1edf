/* src/sync/algorithms/staged.h - collectives of two replicas by way of staging memory. See staged.c. The
 * functions are called on the replica's own thread. */
#ifndef DTI_STAGED_H
#define DTI_STAGED_H

#include "sync/algorithms/choose_algorithm.h"

/* Returns true if a replica stages the first chunk of this call before it meets the other one. */
bool dti_stages(const struct dti_call *call);

/* Called after meeting `seq`. Returns true if both replicas have staged their first chunks, and neither has
 * its result, or its source, where the source of the other one is. Such a source may be written while this
 * replica still reads it. Both replicas get the same answer. If it is false, what was staged is not used. */
bool dti_both_stage(const struct dti_replica *self, uint32_t seq);

/* Copies a chunk of what the other replica needs, from element `first` on, to the memory for the meeting
 * `seq`, to which the replica comes next. */
void dti_stage(struct dti_replica *self, const struct dti_call *call, uint32_t seq, size_t first);

/* Called after meeting `seq`, if dti_both_stage. Makes the result from the first chunk, and from all after
 * it. Returns DITTO_OK, or the error of a meeting. */
ditto_status dti_use_staged(struct dti_replica *self, const struct dti_prepared_call *prepared, uint32_t seq,
                            struct dti_deadline *deadline);

#endif
