/* include/ditto/replica.h - what a replica's function can ask its replica for. */
#ifndef DITTO_REPLICA_H
#define DITTO_REPLICA_H

#include <ditto/dtype.h>

DITTO_BEGIN

/** @defgroup ditto_replicas Replicas
 *
 *  A function that a run calls receives a handle `self` of its replica. The handle is valid on that thread
 *  until the function returns. Outside of runs, ditto_get_replica_context returns a handle. Except for
 *  ditto_fail, the functions of this group are called in replica context (ditto/context.h) with the handle of
 *  the calling thread. Otherwise they fail with DITTO_ERR_CONTEXT. If `self` is NULL, they fail with
 *  DITTO_ERR_INVALID, or with DITTO_ERR_CONTEXT in cross-replica context and in functions of datasets.
 *  @{ */

/** One copy of the computation: a thread that is pinned to a PU, and an arena of memory on that PU's NUMA
 *  node. */
typedef struct ditto_replica ditto_replica;

/** The id of no replica. Signed ids are -1 instead: ditto_error.replica. */
#define DITTO_NO_REPLICA UINT32_MAX

/** A function that runs once on every replica, at the same time on different threads.
 *
 *  @param self  the replica
 *  @param user  the pointer given to the run
 *  @return DITTO_OK, or an error, which stops the run. The other replicas then get DITTO_ERR_PEER_STOPPED in
 *          their collectives, and ditto_strategy_run returns the error. For a positive status see
 *          ditto_user_functions (ditto/status.h) */
typedef ditto_status (*ditto_replica_fn)(ditto_replica *self, void *user);

/** Returns the id of a replica. Reductions combine replicas in the order of their ids.
 *
 *  @param self  the calling replica
 *  @return 0 to ditto_num_replicas - 1; DITTO_NO_REPLICA if self is not the calling thread's replica */
DITTO_API uint32_t ditto_replica_id(const ditto_replica *self);

/** Returns the number of replicas of the strategy.
 *
 *  @param self  the calling replica
 *  @return the number; 0 if self is not the calling thread's replica */
DITTO_API uint32_t ditto_num_replicas(const ditto_replica *self);

/** Tells whether a replica is the first one of its host, which is the process that it runs in. What the main
 *  thread of each host needs is written by this replica, and not by replica 0, so that a program works on
 *  several hosts too. On one host it is replica 0.
 *
 *  @param self  the calling replica
 *  @return 1 if it is, otherwise 0; also 0 if self is not the calling thread's replica */
DITTO_API int ditto_replica_is_first_of_host(const ditto_replica *self);

/** Allocates memory from the replica's arena, on its NUMA node. It is not initialised. Other replicas may
 *  read and write it.
 *
 *  The parameter `out` needs a variable of type void *. It must not be a cast such as (void **)&x, which
 *  breaks the aliasing rules of C. The same holds for ditto_read and ditto_component.
 *
 *      static ditto_status make_array(ditto_replica *self, size_t count, double **array)
 *      {
 *          void *memory;
 *          DITTO_TRY(ditto_alloc(self, count * sizeof **array, 0, &memory));
 *          *array = memory;
 *          return DITTO_OK;
 *      }
 *
 *  @param self       the calling replica
 *  @param bytes      size of the memory; 0 gives a pointer that can be freed
 *  @param alignment  a power of two; 0 means that of malloc
 *  @param out        [out] the memory; set only on DITTO_OK
 *  @retval DITTO_OK             out is set
 *  @retval DITTO_ERR_INVALID    alignment is not a power of two; out is NULL
 *  @retval DITTO_ERR_NO_MEMORY  the operating system refuses more address space (RLIMIT_AS). A memory
 *                               cgroup or a node that is full is not reported: the kernel may kill the
 *                               process when pages are first touched
 *  @par Ownership
 *  The memory is freed by ditto_free, or with the strategy. Memory of the default strategy's replica is freed
 *  at the end of its thread.
 *  @par Cost
 *  A small block takes tens of nanoseconds, without a lock or a system call. */
DITTO_API DITTO_NODISCARD ditto_status ditto_alloc(ditto_replica *self, size_t bytes, size_t alignment,
                                                   void **out);

/** Frees memory that this replica allocated, in this run or an earlier one.
 *
 *  @param self    the calling replica
 *  @param memory  the memory; NULL is allowed
 *  @retval DITTO_OK  the memory is free
 *  @par Cost
 *  Gives memory back to the arena of the replica, without a lock that other replicas take. */
DITTO_API DITTO_NODISCARD ditto_status ditto_free(ditto_replica *self, void *memory);

/** Records why a function of the program fails, and returns the status that it should return: `return
 *  ditto_fail(self, 7, "...")`.
 *
 *  The error record of the calling thread (ditto_last_error) then has the status DITTO_ERR_USER, the code,
 *  the message, and the replica for which the thread executes a function, or -1. If a function of a dataset
 *  fails in this way, the error that the program gets has the message, but its user_code is 0.
 *
 *  @param self    the calling replica, or NULL if there is none; it is not read
 *  @param code    a number of the program's choice, which is stored in ditto_error.user_code
 *  @param format  the message, as for printf, followed by its arguments
 *  @return DITTO_ERR_USER always
 *  @par Thread safety
 *  Any thread may call it, in any context.
 *  @par Cost
 *  Writes the message, and nothing else. */
DITTO_API DITTO_NODISCARD ditto_status ditto_fail(ditto_replica *self, int32_t code, const char *format, ...)
    DITTO_PRINTF(3, 4);

/** @} */

DITTO_END
#endif
