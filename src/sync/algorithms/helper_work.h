/* src/sync/algorithms/helper_work.h - idle helpers of a replica join its part of a large collective.
 *
 * The leader cuts its part into pieces, offers them to idle helpers, and works on pieces itself. A helper
 * that comes in time claims pieces too. A helper that comes too late, because all pieces are claimed or
 * another collective has begun, does nothing. The leader continues when all pieces are done. It waits for a
 * helper only if that helper has claimed a piece and not finished it.
 *
 * Invariants  I1  A piece is claimed once, because `claim`, which is (pieces, next piece), is changed by
 *                 compare-and-swap only. A helper may hold the claim of an earlier part. It then claims a
 *                 piece of the present part if that has the same claim, and no piece otherwise.
 *             I2  The description of the part changes only when all pieces of the last part are done. It is
 *                 read only by threads that have claimed a piece of it.
 * Edges       A0 -> A1  the description of the part -> a thread that claims a piece of it
 *             B0 -> B1  the results of a piece -> the leader
 * Access      While helpers work, their leader has access to other replicas' buffers (access.h). It keeps the
 *             access until all pieces are done.
 * Model       tests/model/helper_work.pml */
#ifndef DTI_HELPER_WORK_H
#define DTI_HELPER_WORK_H

#include "sync/algorithms/flow.h"

/* -- The replica's own thread -- */

/* Allocates the state, if the replica has helpers. Called when the state of the collectives is made (sync.c).
 * Fails with NO_MEMORY. */
ditto_status dti_helper_work_make(struct dti_replica *self, struct dti_sync *sync);

/* Frees what dti_helper_work_make has allocated, also if that has failed. Any thread, when neither the
 * replica nor its helpers use it. */
void dti_helper_work_free(struct dti_replica *replica, struct dti_sync *sync);

/* As dti_flow_range, with helpers. Returns false, without doing anything, if the replica has no helpers, if
 * the sources are in mailboxes, if a function of the user's has to be called, or if the range has less than
 * helper_bytes of the tuning. */
bool dti_helper_work_range(struct dti_flow *flow, size_t from, size_t to, uint32_t group_first,
                           uint32_t group_end);

#endif
