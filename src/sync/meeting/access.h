/* src/sync/meeting/access.h - makes sure that no replica touches a buffer after the buffer's owner has left.
 *
 * Invariants  N1  A replica touches the buffers of other replicas only while its `accessing` word is 1.
 *             N2  A replica whose buffers are known to its peers leaves a stopped collective only when every
 *                 `accessing` word is 0.
 * Edges       I0 -> I1  The worker stores accessing = 1 (I0), executes dti_fence_light, and looks at the stop
 *                       word (I1).
 *             I2 -> I3  The leaving replica has seen the stop word. It executes dti_fence_heavy (I2) and
 *                       looks at every `accessing` word (I3). At least one of the two looks sees the store of
 *                       the other side. Either the worker sees the stop and touches nothing, or the leaving
 *                       replica sees that the worker has access and waits.
 *             O0 -> O1  The worker stores accessing = 0 (release) after its last access. The leaving replica
 *                       reads it (acquire).
 * Progress    The wait for a replica that has access is bounded, so it has no timeout. A replica that waits
 *             for a peer while it has access polls the stop word. It gives up its access around calls of the
 *             user's functions (for example in dti_flow_suspend_access). There is one exception, which
 *             ditto/merge.h documents: the function of ditto_update runs with access if it is given replica
 *             0's arguments on another node.
 *             A caller that works on started operations of a run over several hosts (hosts/started.h) has an
 *             `accessing` word too.
 * Model       tests/model/access.pml */
#ifndef DTI_ACCESS_H
#define DTI_ACCESS_H

#include "replicas/team/replica.h"

/* -- The replica's own thread -- */
/* Gives this replica access to the buffers of other replicas. Returns false if the run is stopping. Then no
 * such buffer may be touched. */
bool dti_access_begin(struct dti_replica *self);
void dti_access_end(struct dti_replica *self);
/* The same for the thread to which an `accessing` word belongs. */
bool dti_access_begin_on(_Atomic uint32_t *accessing, const struct dti_stop *stop);
void dti_access_end_on(_Atomic uint32_t *accessing);
/* Called by a replica that leaves a stopped collective. Waits until no peer can still access this replica's
 * buffers (N2), and returns `status`. */
ditto_status dti_leave_collective(struct dti_replica *self, ditto_status status);

#endif
