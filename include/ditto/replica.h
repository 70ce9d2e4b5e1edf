/* include/ditto/replica.h - what a replica's function can ask of its replica.
 *
 * `self` is given to the function that ditto_strategy_run runs and is good on that thread until the function returns.
 * All functions here: replica context, the replica's own thread; anything else is DITTO_ERR_CONTEXT. */
#ifndef DITTO_REPLICA_H
#define DITTO_REPLICA_H

#include <ditto/dtype.h>

DITTO_BEGIN

/** One copy of the computation: a thread pinned to a PU and an arena of memory on that PU's NUMA node. */
typedef struct ditto_replica ditto_replica;

/** Runs once on every replica, at the same time on different threads. Any negative value stops the run: the other
 *  replicas get DITTO_ERR_PEER_STOPPED where they meet, and ditto_strategy_run returns it. */
typedef ditto_status (*ditto_replica_fn)(ditto_replica *self, void *argument);

/** 0 .. ditto_num_replicas - 1, also the order of reduction; UINT32_MAX when self is not the calling thread's own. */
DITTO_API uint32_t ditto_replica_id(const ditto_replica *self);
/** Replicas of the strategy; 0 when self is not the calling thread's own. */
DITTO_API uint32_t ditto_num_replicas(const ditto_replica *self);

/** Memory from the replica's own arena, on its NUMA node, uninitialised.
 *  @param bytes      0 gives a pointer that can be freed
 *  @param alignment  a power of two; 0: that of malloc
 *  @param out        freed with ditto_free, or with the strategy; other replicas may read and write it
 *  @retval DITTO_ERR_INVALID    alignment is no power of two
 *  @retval DITTO_ERR_NO_MEMORY  the operating system gives no more (RLIMIT_AS, cgroup, a strict node that is full)
 *  Cost  a small block: tens of nanoseconds, no lock, no system call. */
DITTO_API DITTO_NODISCARD ditto_status ditto_alloc(ditto_replica *self, size_t bytes, size_t alignment,
                                                   void **out);
/** Gives back what this replica allocated. NULL is allowed. */
DITTO_API ditto_status ditto_free(ditto_replica *self, void *memory);

/** Records why the caller's own function fails and gives the status to return: `return ditto_fail(self, 7, "...")`.
 *  @param code  any number of the caller's; found again in ditto_error.user_code
 *  @return DITTO_ERR_USER, also when self is not valid: the message is kept all the same. */
DITTO_API ditto_status ditto_fail(ditto_replica *self, int32_t code, const char *format, ...)
    DITTO_PRINTF(3, 4);

DITTO_END
#endif
