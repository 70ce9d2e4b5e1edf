/* src/replicas/memory/remote_memory.h - memory for the devices of a replica that is wider than a NUMA node.
 *
 * The replica's own arena is on its leader's node. For devices on other nodes there is one arena more per node, made
 * when it is first needed, by a helper there: so that pages are right also where only first touch places them. */
#ifndef DTI_REMOTE_MEMORY_H
#define DTI_REMOTE_MEMORY_H

#include "replicas/team/team.h"

/* -- The leader, in its function -- */

/* Memory on the node of one of the replica's devices; waits for functions given to that device before. Errors:
 * NO_MEMORY, SYSTEM (strict memory where mbind is refused), or why the run was stopped; then nothing has been
 * allocated. */
ditto_status dti_device_alloc(struct dti_replica *replica, uint32_t device, size_t bytes, size_t alignment,
                              void **out);
/* Memory on any node, by the leader itself: where only first touch places pages, they lie on its own. NO_MEMORY,
 * SYSTEM. */
ditto_status dti_node_alloc(struct dti_replica *replica, uint32_t node, size_t bytes, size_t alignment,
                            void **out);
/* Gives back what the replica allocated, on whichever node. NULL is allowed. */
void dti_replica_free(struct dti_replica *replica, void *memory);

/* -- Any thread, when no run is going on -- */
void dti_replica_free_remote(struct dti_replica *replica, void *memory); /* NULL is allowed */
void dti_remote_memory_inspect(const struct dti_remote_memory *list,
                               struct dti_arena_report *sum); /* adds to sum */
/* -- Any thread, when the leader is parked for good -- */
void dti_remote_memory_free(struct dti_remote_memory *list); /* NULL is allowed */

#endif
