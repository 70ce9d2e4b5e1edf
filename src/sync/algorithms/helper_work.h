/* src/sync/algorithms/helper_work.h - helpers of a replica join its part of a large collective, if they are idle; nobody waits for them.
 *
 * The leader cuts its part into pieces, offers them to helpers that have nothing to do, and works on pieces itself. A helper that
 * comes in time claims pieces too; one that comes late, when all are claimed or another collective has begun, does nothing.
 * The leader goes on when all pieces are done: it waits for a helper only if that is in the middle of one.
 *
 * Invariants  I1  a piece is claimed once: claim is (pieces, next piece), changed by compare-and-swap alone. One who comes with
 *                 an earlier part's claim in hand claims a piece of the present part, if it has as many, or none.
 *             I2  the part's description changes only when all pieces of the last part are done, and is read only after a piece
 *                 of it has been claimed.
 * Edges       A0 -> A1  the description -> who claims a piece of it;  B0 -> B1  a piece's results -> the leader
 * Inside      helpers work while their leader is inside (access.h), which it is until all pieces are done.
 * Model       tests/model/helper_work.pml */
#ifndef DTI_HELPER_WORK_H
#define DTI_HELPER_WORK_H

#include "sync/algorithms/flow.h"

/* The replica's own thread. */
ditto_status dti_helper_work_make(struct dti_replica *self,
                                  struct dti_sync *sync); /* when the team is made; NO_MEMORY */
/* As dti_flow_range, with helpers. False: it is not worth it, or there are none; nothing was done. */
bool dti_helper_work_range(struct dti_flow *flow, size_t from, size_t to, uint32_t first, uint32_t end);

#endif
