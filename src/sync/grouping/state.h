/* src/sync/grouping/state.h - makes the state of the collectives of some replicas: those of a team, or those
 * of a group. */
#ifndef DTI_STATE_H
#define DTI_STATE_H

#include "sync/meeting/sync_state.h"

/* -- Cross-replica context, or a pause, in which no replica uses the state -- */

/* Makes the state of `n` replicas, which are in one array, without plans and without what the replicas have
 * in their own memory. It is the state of a whole team. Settings that do not depend on the replicas are those
 * of `like`, which may be NULL. Fails with NO_MEMORY. */
ditto_status dti_sync_state_make(struct dti_team *team, struct dti_replica *replica, uint32_t n,
                                 const struct dti_sync *like, struct dti_sync **out);

/* Makes the plans. The shape, the tree and the tuning must be set. Fails with NO_MEMORY. */
ditto_status dti_sync_state_plan(struct dti_sync *sync);

/* Resets what runs leave behind. */
void dti_sync_state_reset(struct dti_sync *sync);

/* Frees everything but what the replicas have in their own memory. */
void dti_sync_state_release(struct dti_sync *sync);

/* -- The replica's own thread -- */
/* Makes what a replica of a planned state has in its own memory. Fails with NO_MEMORY. */
ditto_status dti_sync_state_allocate(struct dti_replica *r, struct dti_sync *sync);

/* -- Any thread, if the replica does not use the state -- */
/* Frees what dti_sync_state_allocate has allocated, also if that has failed. */
void dti_sync_state_free(struct dti_replica *r, struct dti_sync *sync);

#endif
