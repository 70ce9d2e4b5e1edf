/* src/replicas/elsewhere.h - memory for the devices of a replica that is wider than a NUMA node.
 *
 * The replica's own arena is on its leader's node. For devices on other nodes there is one arena more per node, made when it
 * is first needed, by a helper there: so that pages are right also where only first touch places them. */
#ifndef DTI_ELSEWHERE_H
#define DTI_ELSEWHERE_H

#include "replicas/team.h"

/* -- The leader, in its function -- */

/* Memory on the node of one of the replica's devices. NO_MEMORY, SYSTEM, or why the run was stopped. */
ditto_status dti_device_alloc(struct dti_replica *replica, uint32_t device, size_t bytes, size_t alignment, void **out);
/* Gives back what the replica allocated, on whichever node. NULL is allowed. */
void dti_replica_free(struct dti_replica *replica, void *memory);

/* -- Any thread, when the leader is parked for good -- */
void dti_elsewhere_free(struct dti_elsewhere *list); /* NULL is allowed */

#endif
