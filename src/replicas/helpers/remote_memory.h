/* src/replicas/helpers/remote_memory.h - memory of a replica on other NUMA nodes than its leader's.
 *
 * The replica's own arena is on its leader's node. Another node gets an arena when memory on it is first
 * needed. For its devices (dti_device_alloc) a helper on that node allocates, so the pages are on the right
 * node even if only first touch places them. */
#ifndef DTI_REMOTE_MEMORY_H
#define DTI_REMOTE_MEMORY_H

#include "replicas/memory/arena.h"
#include "replicas/team/replica.h"

/* -- The leader, in its function -- */

/* Allocates memory on the node of one of the replica's devices. If that is not the leader's node, the device
 * allocates, after the functions that it was given before.
 *   DITTO_ERR_NO_MEMORY
 *   DITTO_ERR_SYSTEM     memory is strict and the kernel refuses mbind
 * If the run has been stopped, the device may skip the allocation. The call then returns the status of the
 * stop. */
ditto_status dti_device_alloc(struct dti_replica *replica, uint32_t device, size_t bytes, size_t alignment,
                              void **out);

/* Allocates memory on any node. The leader does this itself. If only first touch places pages, they are on
 * the leader's node. The errors are DITTO_ERR_NO_MEMORY and DITTO_ERR_SYSTEM, as above. */
ditto_status dti_node_alloc(struct dti_replica *replica, uint32_t node, size_t bytes, size_t alignment,
                            void **out);

/* Places the pages of [memory, memory + bytes) on a node. They belong to a mapping of the caller's, and have
 * not been touched. A page that begins before `memory` is left as it is. If only first touch places pages,
 * nothing is done. The errors are DITTO_ERR_NO_MEMORY and DITTO_ERR_SYSTEM, as above. */
ditto_status dti_node_bind(struct dti_replica *replica, uint32_t node, void *memory, size_t bytes);

/* Frees memory that the replica allocated on any node. `memory` may be NULL. */
void dti_replica_free(struct dti_replica *replica, void *memory);

/* -- Any thread, while the leader executes nothing (it is parked, or pauses) -- */

/* Frees memory that the replica allocated on any node. `memory` may be NULL. */
void dti_replica_free_remote(struct dti_replica *replica, void *memory);

/* Adds the numbers of all arenas of the list to *sum. */
void dti_remote_memory_inspect(const struct dti_remote_memory *list, struct dti_arena_report *sum);

/* -- Any thread, when the leader will execute nothing more -- */

/* `list` may be NULL. */
void dti_remote_memory_free(struct dti_remote_memory *list);

#endif
