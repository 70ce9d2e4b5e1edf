/* include/ditto/pending.h - collectives that are started now and waited for later.
 *
 * A started operation belongs to the same order as all other collectives: every replica starts and calls the same things in
 * the same order, whether it waits at once or later. Nobody works in the background: whoever waits in a collective works on all
 * operations that every replica has started, also on the parts of replicas that compute meanwhile. So a replica that waits
 * last finds most of the work done, and an operation that is started by all is finished by any.
 *
 * Until an operation has been waited for, its buffers belong to it: the source is not written, the destination not looked at,
 * neither is freed or, if it is a local array, returned from. That holds on the way out after an error too: a function that
 * fails with operations open either leaves their buffers alone (they are its caller's again when run has returned), or
 * returns ditto_abandon(self, status). Local arrays need the latter: where DITTO_TRY leaves a function, its frame is gone
 * while others read.
 * Every operation is waited for, by the replica that started it, in the same run: returning from the replica's function before
 * that is DITTO_ERR_INVALID, and the message names the operation. The order of waiting is free. At most DITTO_MAX_PENDING
 * operations may have been started since the oldest that has not been waited for. */
#ifndef DITTO_PENDING_H
#define DITTO_PENDING_H

#include <ditto/collective.h>

DITTO_BEGIN

#define DITTO_MAX_PENDING 32

/** A started operation. A plain value: copying it is allowed, the operation is waited for once. The fields are the library's. */
typedef struct ditto_pending {
    uint64_t number;     /**< 0: none */
    const void *replica; /**< whose it is */
    uint32_t run;
} ditto_pending;

/** As ditto_all_reduce, ditto_reduce_scatter and ditto_all_gather.
 *  @param options  as there; its timeout_ms limits only the wait for a replica that is DITTO_MAX_PENDING operations behind; that
 *                  for the result is ditto_wait's
 *  @param out      the caller's; set only on DITTO_OK
 *  @retval DITTO_ERR_RANGE  also: DITTO_MAX_PENDING operations have been started since the oldest open one; wait for that first
 *  Cost  one cache line written, small messages copied; it waits only for a replica that is DITTO_MAX_PENDING operations behind. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_start(ditto_replica *self, const void *src, void *dst,
                                                              size_t count, ditto_dtype dtype, ditto_op op,
                                                              const ditto_reduce_options *options,
                                                              ditto_pending *out);
DITTO_API DITTO_NODISCARD ditto_status ditto_reduce_scatter_start(ditto_replica *self, const void *src,
                                                                  void *dst, size_t count, ditto_dtype dtype,
                                                                  ditto_op op,
                                                                  const ditto_reduce_options *options,
                                                                  ditto_pending *out);
DITTO_API DITTO_NODISCARD ditto_status ditto_all_gather_start(ditto_replica *self, const void *src, void *dst,
                                                              size_t count, ditto_dtype dtype,
                                                              const ditto_reduce_options *options,
                                                              ditto_pending *out);

/** Returns when the operation is complete; works on all started operations meanwhile.
 *  @param pending  the caller's; its number is 0 afterwards
 *  @param options  NULL, or a timeout
 *  @retval DITTO_ERR_INVALID   waited for already, or never started
 *  @retval DITTO_ERR_CONTEXT   another replica's, or of an earlier run
 *  @retval DITTO_ERR_DIVERGED, DITTO_ERR_TIMED_OUT, DITTO_ERR_PEER_STOPPED  as ditto/collective.h */
DITTO_API DITTO_NODISCARD ditto_status ditto_wait(ditto_replica *self, ditto_pending *pending,
                                                  const ditto_reduce_options *options);
/** DITTO_OK as ditto_wait, or DITTO_PENDING if it is not complete yet: then it is still open. Works on what it finds, but waits
 *  for nobody. Errors as ditto_wait. */
DITTO_API DITTO_NODISCARD ditto_status ditto_test(ditto_replica *self, ditto_pending *pending);

/** Gives up all operations that this replica has started and not waited for, on its way out after an error. Stops the run if there
 *  are any; returns when no replica can be at their buffers any more, which are the caller's then. Their handles are void.
 *  @param status  what went wrong
 *  @return        status; where that is no error (DITTO_OK, or news) and operations are open, DITTO_ERR_INVALID;
 *                 DITTO_ERR_CONTEXT as everywhere */
DITTO_API ditto_status ditto_abandon(ditto_replica *self, ditto_status status);

DITTO_END
#endif
