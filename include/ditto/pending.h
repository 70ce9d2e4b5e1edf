/* include/ditto/pending.h - collectives that are started now and waited for later. */
#ifndef DITTO_PENDING_H
#define DITTO_PENDING_H

#include <ditto/collective.h>

DITTO_BEGIN

/** @defgroup ditto_pending_operations Pending operations
 *
 *  The functions are called in replica context, on the replica's own thread, with the rules of
 *  ditto/collective.h. Every replica starts and calls the same collectives in the same order, whether it
 *  waits at once or later. There is no background thread. A replica that waits in any collective works on all
 *  operations that every replica has started, also on the parts of replicas that compute meanwhile. After a
 *  wait for an operation, memory that any replica wrote before starting that operation is visible.
 *
 *  The replica that started an operation must wait for it, in the same run. If its function returns without
 *  an error before that, the run fails with DITTO_ERR_INVALID, and the message names the operation.
 *  Operations may be waited for in any order.
 *
 *  Over several hosts (ditto/cluster.h) only one thread of a host may use the wire. With
 *  DITTO_CALLER_WAITS it is the caller of the run, and an operation moves as soon as every replica of the
 *  host has started it, while they compute. Without it, it is the host's first replica, and an operation
 *  moves only while that replica is in ditto_wait, ditto_test or another collective. Its ditto_test then
 *  waits for the other hosts. @{ */

/** Largest number of operations that a replica can start from the oldest pending one on. That one is counted,
 *  and so are operations that have been waited for since. */
#define DITTO_MAX_PENDING 32

/** The handle of a started operation. It may be copied, but the operation is waited for only once. The fields
 *  belong to the library. */
typedef struct ditto_pending {
    uint64_t number;     /**< number of the operation; 0: no operation */
    const void *replica; /**< the replica that started it */
    uint32_t run;        /**< the run in which it was started */
} ditto_pending;

/** @name Starting operations
 *
 *  Until an operation has been waited for, its source must not be written, its destination must be neither
 *  read nor written, and neither may be freed. After an error this holds until the run or ditto_abandon has
 *  returned. If a buffer is a local array, the function that fails must therefore return
 *  ditto_abandon(self, status). DITTO_TRY must not be used there, because it ends the stack frame while other
 *  replicas still access the array.
 *  @{ */

/** Starts an all-reduce (see ditto_all_reduce). With count 0 it is a barrier in two phases: the replica says
 *  that it has arrived, works on, and waits for all others in ditto_wait, or asks in ditto_test.
 *
 *  @param self     the calling replica
 *  @param src      as for ditto_all_reduce
 *  @param dst      as for ditto_all_reduce
 *  @param count    as for ditto_all_reduce
 *  @param dtype    as for ditto_all_reduce
 *  @param op       as for ditto_all_reduce
 *  @param options  as for ditto_all_reduce. timeout_ms limits only the wait for a replica that is
 *                  DITTO_MAX_PENDING operations behind. The time limit for the result is given to ditto_wait
 *  @param out      [out] the handle; set only on DITTO_OK
 *  @return DITTO_OK, an error of ditto_all_reduce, or:
 *  @retval DITTO_ERR_RANGE  DITTO_MAX_PENDING operations have been started from the oldest pending one on,
 *                           which must be waited for first
 *  @par Cost
 *  One cache line is written, and small messages are copied. The call waits only for a replica that is
 *  DITTO_MAX_PENDING operations behind. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_start(ditto_replica *self, const void *src, void *dst,
                                                              size_t count, ditto_dtype dtype, ditto_op op,
                                                              const ditto_reduce_options *options,
                                                              ditto_pending *out);

/** Starts a reduce-scatter (see ditto_reduce_scatter). Time limit, errors and cost are those of
 *  ditto_all_reduce_start.
 *
 *  @param self     the calling replica
 *  @param src      as for ditto_reduce_scatter
 *  @param dst      as for ditto_reduce_scatter
 *  @param count    as for ditto_reduce_scatter
 *  @param dtype    as for ditto_reduce_scatter
 *  @param op       as for ditto_reduce_scatter
 *  @param options  as for ditto_all_reduce_start
 *  @param out      [out] the handle; set only on DITTO_OK
 *  @return DITTO_OK, or an error of ditto_all_reduce_start
 *  @par Cost
 *  That of ditto_all_reduce_start. */
DITTO_API DITTO_NODISCARD ditto_status ditto_reduce_scatter_start(ditto_replica *self, const void *src,
                                                                  void *dst, size_t count, ditto_dtype dtype,
                                                                  ditto_op op,
                                                                  const ditto_reduce_options *options,
                                                                  ditto_pending *out);

/** Starts an all-gather (see ditto_all_gather). Time limit, errors and cost are those of
 *  ditto_all_reduce_start.
 *
 *  @param self     the calling replica
 *  @param src      as for ditto_all_gather
 *  @param dst      as for ditto_all_gather
 *  @param count    as for ditto_all_gather
 *  @param dtype    as for ditto_all_gather
 *  @param options  as for ditto_all_reduce_start
 *  @param out      [out] the handle; set only on DITTO_OK
 *  @return DITTO_OK, or an error of ditto_all_reduce_start
 *  @par Cost
 *  That of ditto_all_reduce_start. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_gather_start(ditto_replica *self, const void *src, void *dst,
                                                              size_t count, ditto_dtype dtype,
                                                              const ditto_reduce_options *options,
                                                              ditto_pending *out);

/** Starts an all-to-all of equal parts (see ditto_all_to_all). Time limit, errors and cost are those of
 *  ditto_all_reduce_start.
 *
 *  @param self     the calling replica
 *  @param src      as for ditto_all_to_all
 *  @param dst      as for ditto_all_to_all
 *  @param count    as for ditto_all_to_all
 *  @param dtype    as for ditto_all_to_all
 *  @param options  as for ditto_all_reduce_start
 *  @param out      [out] the handle; set only on DITTO_OK
 *  @return DITTO_OK, or an error of ditto_all_reduce_start
 *  @par Cost
 *  That of ditto_all_reduce_start. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_to_all_start(ditto_replica *self, const void *src, void *dst,
                                                              size_t count, ditto_dtype dtype,
                                                              const ditto_reduce_options *options,
                                                              ditto_pending *out);

/** @} */

/** Waits until an operation is complete, and works on all started operations meanwhile.
 *
 *  @param self     the calling replica
 *  @param pending  [in, out] the handle. After DITTO_OK its number is 0
 *  @param options  NULL, or options with a timeout_ms
 *  @return DITTO_OK, an error of ditto_barrier, or one of:
 *  @retval DITTO_ERR_INVALID  pending is NULL; the operation has been waited for already, was given up, or
 *                             was never started
 *  @retval DITTO_ERR_CONTEXT  another replica or an earlier run started the operation
 *  @par Cost
 *  The work on the operation that no replica has done yet, which the replicas that wait divide among
 *  themselves. */
DITTO_API DITTO_NODISCARD ditto_status ditto_wait(ditto_replica *self, ditto_pending *pending,
                                                  const ditto_reduce_options *options);

/** Checks whether an operation is complete. It works on the started operations, but does not wait for other
 *  replicas. Over several hosts, without DITTO_CALLER_WAITS, the first replica of a host waits for the other
 *  hosts, in each operation that all replicas of its host have started.
 *
 *  @param self     the calling replica
 *  @param pending  [in, out] the handle. After DITTO_OK its number is 0
 *  @return an error of ditto_wait, which is DITTO_ERR_TIMED_OUT only in that exception, or one of:
 *  @retval DITTO_OK       the operation is complete, and counts as waited for
 *  @retval DITTO_PENDING  the operation is not complete, and is still pending
 *  @par Cost
 *  One look at each replica, and a share of the work on the operation. */
DITTO_API DITTO_NODISCARD ditto_status ditto_test(ditto_replica *self, ditto_pending *pending);

/** Gives up all pending operations of this replica, because its function fails. If there are any, the call
 *  stops the run, and returns when no replica can access their buffers any more. The program may then use the
 *  buffers again. The handles are no longer valid.
 *
 *  @param self    the calling replica
 *  @param status  the error with which the function fails
 *  @return status, or one of:
 *  @retval DITTO_ERR_INVALID  self is NULL; status is not an error, and operations were pending, which are
 *                             given up all the same
 *  @retval DITTO_ERR_CONTEXT  self is not the calling thread's replica
 *  @par Cost
 *  Waits until no replica accesses buffers of this one. */
DITTO_API DITTO_NODISCARD ditto_status ditto_abandon(ditto_replica *self, ditto_status status);

/** @} */

DITTO_END
#endif
