/* src/sync/meeting/access.h - nobody touches a buffer after its owner has left.
 *
 * Invariants  N1  a replica touches others' buffers only while its inside word is 1.
 *             N2  a replica whose buffers peers know leaves a stopped collective only when every inside word
 *                 is 0.
 * Edges       I0 -> I1  inside = 1, then (dti_fence_light) a look at the stop word | the stop word seen, then
 *             I2 -> I3  (dti_fence_heavy) a look at every inside word: of the two looks at least one sees the
 *                       other side. So either the worker sees the stop and touches nothing, or the leaver
 *                       sees it inside and waits.
 *             O0 -> O1  inside = 0 (release, after the last touch) -> the leaver's acquire.
 * Progress    the wait for a replica that is inside is bounded, so it has no timeout: a replica that waits
 *             while it is inside looks at the stop word, and functions of the user's are called outside
 *             (dti_flow_suspend_access). There is one exception, which ditto/merge.h tells the user: the function
 *             of ditto_update works inside if it is given replica 0's arguments on another node.
 * Model       tests/model/access.pml */
#ifndef DTI_ACCESS_H
#define DTI_ACCESS_H

#include "replicas/replicas.h"

/* -- The replica's own thread -- */
/* False: the run is stopping, nothing may be touched. */
bool dti_access_begin(struct dti_replica *self);
void dti_access_end(struct dti_replica *self);
/* Out of a stopped collective, `status` in hand, once no peer can still be at this replica's buffers (N2). */
ditto_status dti_leave_collective(struct dti_replica *self, ditto_status status);

#endif
