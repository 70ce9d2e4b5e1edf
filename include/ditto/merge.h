/* include/ditto/merge.h - lets replicas of a run execute one function in cross-replica context, and update
 * copies of variables.
 *
 *     static ditto_status total(ditto_strategy *strategy, ditto_value *const *arguments,
 *                               uint32_t num_arguments, void *user, ditto_value **result)
 *     {
 *         (void)num_arguments, (void)user;
 *         return ditto_strategy_reduce(strategy, DITTO_SUM, arguments[0], NULL, 0, result);
 *     }
 *
 *     static ditto_status sum_over_replicas(ditto_replica *self, const ditto_tensor *mine, ditto_tensor *sum)
 *     {
 *         const ditto_value *merged;
 *         DITTO_TRY(ditto_merge_call(self, total, NULL, mine, 1, &merged));
 *         return ditto_local(self, merged, sum);
 *     } */
#ifndef DITTO_MERGE_H
#define DITTO_MERGE_H

#include <ditto/value.h>

DITTO_BEGIN

/** @defgroup ditto_merge Merge calls and updates
 *
 *  A merge call pauses all replicas of a run and calls a function once, in cross-replica context. An update
 *  calls a function on each physical copy of a variable. An update passes its arguments on as they are; it
 *  does not reduce them.
 *
 *  Merge calls and ditto_update are called on the replica's own thread. ditto_variable_update is called in
 *  cross-replica context, and several threads may call it, as in ditto/strategy.h. Arguments stay the
 *  caller's.
 *  @{ */

/** Largest number of arguments of a merge call or an update. */
#define DITTO_MAX_MERGE_ARGUMENTS 16

/** A function that a merge call runs once, in cross-replica context, while all replicas pause. It may reduce,
 *  gather, read and assign variables, create values, and run functions on the strategy.
 *
 *  @param strategy       the strategy of the run
 *  @param arguments      [num_arguments] per-replica values, views of what each replica gave. They are valid
 *                        until the function returns
 *  @param num_arguments  number of arguments
 *  @param user           the pointer that replica 0 gave to ditto_merge_call
 *  @param result         [out] NULL, or a value, which belongs to the call afterwards. It must be an
 *                        argument, or a value that the function received through an `out` parameter. *result
 *                        is NULL when the function is called, and `result` is never NULL
 *  @return DITTO_OK, or an error that ends the run. An error of a nested run need not be returned */
typedef ditto_status (*ditto_merge_fn)(ditto_strategy *strategy, ditto_value *const *arguments,
                                       uint32_t num_arguments, void *user, ditto_value **result);

/** Pauses all replicas, calls a function once, and gives its result to all replicas. The call is collective,
 *  and is made in replica context, with the rules of ditto/collective.h.
 *
 *  Functions that were given to logical devices are joined first. While the function runs, replicas wait
 *  without a time limit. If the function fails, the caller of run gets its error, and the replicas get
 *  DITTO_ERR_PEER_STOPPED.
 *
 *  @param self           the calling replica
 *  @param function       the function; the same one on all replicas
 *  @param user           passed to the function. The pointer of replica 0 is used
 *  @param arguments      [num_arguments] this replica's tensors, which are not copied
 *  @param num_arguments  number of arguments; equal on all replicas
 *  @param result         [out] set to the function's value, or to NULL if there is none. The pointer itself
 *                        may be NULL. ditto_local returns this replica's component of a per-replica value.
 *                        Other values are the same for all replicas. The value is valid until the next
 *                        ditto_merge_call or ditto_create_variable of this run, or the end of the run
 *  @return DITTO_OK, an error of ditto_barrier, or one of:
 *  @retval DITTO_ERR_DIVERGED  another replica has another function or number of arguments
 *  @retval DITTO_ERR_INVALID   arguments differ in dtype or rank between replicas; function is NULL
 *  @retval DITTO_ERR_RANGE     num_arguments is above DITTO_MAX_MERGE_ARGUMENTS
 *  @par Cost
 *  The call costs a barrier, and one cache line that all replicas read. */
DITTO_API DITTO_NODISCARD ditto_status ditto_merge_call(ditto_replica *self, ditto_merge_fn function,
                                                        void *user, const ditto_tensor *arguments,
                                                        uint32_t num_arguments, const ditto_value **result);

/** A function that updates one physical copy of a variable.
 *
 *  It runs in update context, once for each copy, on a thread of the copy's replica, near its memory. It may
 *  call ditto_get_update_replica and ditto_fail(NULL, ...), and read and write the variable that is updated.
 *  Reads and writes access this copy alone. It must not call anything else of ditto.
 *
 *  @param copy           the copy, whose elements may be read and written
 *  @param arguments      [num_arguments] this replica's part of each argument
 *  @param num_arguments  number of arguments
 *  @param user           the pointer given to the update
 *  @param result         [out] dtype, rank, shape and data of a result. It is copied when the function has
 *                        returned, so data must not be a local array of the function (DITTO_ERR_INVALID).
 *                        dtype 0 means no result. All fields are 0 when the function is called, and `result`
 *                        is never NULL
 *  @return DITTO_OK, or an error. Other copies may have been updated by then */
typedef ditto_status (*ditto_update_fn)(const ditto_tensor *copy, const ditto_tensor *arguments,
                                        uint32_t num_arguments, void *user, ditto_tensor *result);

/** How an update behaves. Start from DITTO_UPDATE_OPTIONS_INIT. */
typedef struct ditto_update_options {
    size_t struct_size; /**< set by DITTO_UPDATE_OPTIONS_INIT */

    /** If not 0, the results of the copies are returned as a per-replica value. If 0, they are discarded. */
    int ungrouped;
} ditto_update_options;

/** Initial value of ditto_update_options: the results are discarded. */
#define DITTO_UPDATE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_update_options)

/** Calls a function on every copy of a variable, in parallel. The call is made in cross-replica context.
 *
 *  Plain and mirrored arguments are equal for all copies. Per-replica values, sync-on-read variables and
 *  variables whose components may differ are arguments with a component for each replica. They can be given,
 *  on every machine, if the updated variable is one of these:
 *   - It is sync-on-read, or was created with DITTO_COPIES_PER_REPLICA.
 *   - It has no aggregation. Shared copies are split before the function is called (see ditto_copies), and
 *     the components may differ afterwards.
 *
 *  @param variable       the variable
 *  @param function       called for each copy
 *  @param user           passed to the function
 *  @param arguments      [num_arguments] values
 *  @param num_arguments  number of arguments
 *  @param options        NULL for the defaults
 *  @param results        [out] with options->ungrouped, a per-replica value for the caller, or NULL if the
 *                        function gave no results. Replicas that share a copy have the result of that copy.
 *                        Otherwise results may be NULL, and is set to NULL if it is not
 *  @return DITTO_OK, an error of ditto/strategy.h, an error of the function, or one of:
 *  @retval DITTO_ERR_INVALID      one of these:
 *      - An argument has a component for each replica, and the variable's copies are shared and never split:
 *        it aggregates, is cut into shards, is in central storage, or is a slot of an optimizer.
 *      - Only some copies have a result.
 *      - Results differ in dtype or rank.
 *      - An argument is a nest or slices.
 *  @retval DITTO_ERR_UNSUPPORTED  the variable is cut into shards, and no argument has a component for each
 *                                 replica
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for a split. The function was not called, and nothing
 *                                 has changed
 *  @retval DITTO_ERR_RANGE        num_arguments is above DITTO_MAX_MERGE_ARGUMENTS
 *  @retval DITTO_ERR_CONTEXT      an argument of another strategy */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_update(
    ditto_variable *variable, ditto_update_fn function, void *user, const ditto_value *const *arguments,
    uint32_t num_arguments, const ditto_update_options *options, ditto_value **results);

/** Calls a function on every copy of a variable from inside a run. The call is collective, and is made in
 *  replica context.
 *
 *  If there is a copy for each replica, each replica updates its own copy with its own arguments. The shared
 *  copies of a variable without aggregation are split first, whatever the arguments are. All replicas pause
 *  for that, once.
 *
 *  The shared copies of a variable with aggregation are updated with the arguments of replica 0. Until the
 *  function has returned on all NUMA nodes, replica 0 cannot return. If a replica exceeds its time limit in
 *  the function, the error of replica 0 says so. The function must not start a collective
 *  (DITTO_ERR_CONTEXT).
 *
 *  @param self           the calling replica
 *  @param variable       the variable
 *  @param function       called for each copy
 *  @param user           passed to the function
 *  @param arguments      [num_arguments] this replica's tensors, which must be valid until the call returns
 *  @param num_arguments  number of arguments
 *  @param result         [out] the function's result for this replica's copy, with dtype 0 if it gave none;
 *                        may be NULL. The caller frees its data with ditto_free
 *  @return DITTO_OK, an error of ditto_barrier, an error of the function (which ends the run), or one of:
 *  @retval DITTO_ERR_INVALID      a variable without aggregation whose copies are never split: in shards, in
 *                                 central storage, or a slot of an optimizer
 *  @retval DITTO_ERR_UNSUPPORTED  a variable with aggregation that is cut into shards
 *  @retval DITTO_ERR_RANGE        num_arguments is above DITTO_MAX_MERGE_ARGUMENTS
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for a split. All replicas get this error. The function
 *                                 was not called, nothing has changed, and the run goes on */
DITTO_API DITTO_NODISCARD ditto_status ditto_update(ditto_replica *self, ditto_variable *variable,
                                                    ditto_update_fn function, void *user,
                                                    const ditto_tensor *arguments, uint32_t num_arguments,
                                                    ditto_tensor *result);

/** @} */

DITTO_END
#endif
