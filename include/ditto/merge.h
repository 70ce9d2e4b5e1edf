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

/** A function that a merge call runs once, in cross-replica context, while all replicas pause. It may create,
 *  reduce and gather values, read and assign variables, and run functions on the strategy.
 *
 *  @param strategy       the strategy of the run
 *  @param arguments      [num_arguments] per-replica values, views of what each replica gave. They are valid
 *                        until the function returns
 *  @param num_arguments  number of arguments
 *  @param user           the pointer that replica 0 gave to ditto_merge_call; over several hosts, where the
 *                        function runs once on each, that of the host's first replica
 *  @param result         [out] NULL, or a value, which belongs to the call afterwards, also after an error.
 *                        It must be an argument, or a value that the function received through an `out`
 *                        parameter. The data of a plain value must still exist after the function has
 *                        returned, so it must not be a local array (DITTO_ERR_INVALID). *result is NULL when
 *                        the function is called, and `result` is never NULL
 *  @return DITTO_OK, or an error, which ends the run. If a run that this function made has failed, the
 *          function may still return DITTO_OK. Over several hosts the run ends all the same. A positive
 *          status ends the run with DITTO_ERR_USER */
typedef ditto_status (*ditto_merge_fn)(ditto_strategy *strategy, ditto_value *const *arguments,
                                       uint32_t num_arguments, void *user, ditto_value **result);

/** Pauses all replicas, calls a function once, and gives its result to all replicas. The call is collective,
 *  and is made in replica context, with the rules of ditto/collective.h.
 *
 *  Functions that were given to logical devices are joined first. While the function runs, the other replicas
 *  wait without a time limit of their own. If the function fails, replica 0 and the caller of run get its
 *  error, and the other replicas get DITTO_ERR_PEER_STOPPED.
 *
 *  @param self           the calling replica
 *  @param function       the function; the same one on all replicas
 *  @param user           passed to the function. The pointer of replica 0 is used, over several hosts that
 *                        of each host's first replica
 *  @param arguments      [num_arguments] this replica's tensors, which are not copied
 *  @param num_arguments  number of arguments; equal on all replicas
 *  @param result         [out] set to the function's value, or to NULL if there is none. The pointer itself
 *                        may be NULL. ditto_local returns this replica's component of a per-replica value.
 *                        Other values are the same for all replicas. The value is valid until the next
 *                        ditto_merge_call or ditto_create_variable of this run, or the end of the run
 *  @return DITTO_OK, an error of ditto_barrier, ditto_join or the function, or one of:
 *  @retval DITTO_ERR_DIVERGED   another replica has another function or number of arguments
 *  @retval DITTO_ERR_INVALID    function is NULL; a step was started with ditto_apply_start and not finished;
 *                               an argument is not a valid tensor. Or arguments differ in
 *                               dtype or rank between replicas, which is treated as a failure of the function
 *  @retval DITTO_ERR_RANGE      num_arguments is above DITTO_MAX_MERGE_ARGUMENTS; the size of an argument
 *                               overflows
 *  @retval DITTO_ERR_CONTEXT    the result is a value of another strategy
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the values of the arguments
 *  @par Cost
 *  With 2 replicas the call takes 1.9 to 2.7 barriers, with 8 about 1.2 (docs/performance.md). */
DITTO_API DITTO_NODISCARD ditto_status ditto_merge_call(ditto_replica *self, ditto_merge_fn function,
                                                        void *user, const ditto_tensor *arguments,
                                                        uint32_t num_arguments, const ditto_value **result);

/** A function that updates one physical copy of a variable.
 *
 *  It runs in update context, once for each copy, on a thread of the copy's replica, near its memory. It may
 *  call ditto_get_context and ditto_fail(NULL, ...), and access the updated variable with
 *  ditto_variable_read, ditto_variable_assign and similar functions, which then access this copy alone. It
 *  must not call anything else of ditto.
 *
 *  @param copy           the copy, whose elements may be read and written
 *  @param arguments      [num_arguments] the part of each argument that belongs to the copy's replica
 *  @param num_arguments  number of arguments
 *  @param user           the pointer given to the update
 *  @param result         [out] dtype, rank, shape and data of a result. It is copied when the function has
 *                        returned, so data must not be a local array of the function (DITTO_ERR_INVALID).
 *                        dtype 0 means no result. All fields are 0 when the function is called, and `result`
 *                        is never NULL
 *  @return DITTO_OK, or an error. Other copies may have been updated by then. A positive status fails with
 *          DITTO_ERR_USER */
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
 *  Plain values, mirrored values and mirrored variables are equal for all copies. Per-replica values,
 *  sync-on-read variables, and mirrored variables whose components may differ are arguments with a component
 *  for each replica. With more than one replica, they can be given if the updated variable is neither in
 *  shards, nor in central storage, nor a slot of an optimizer, and one of these holds:
 *   - It is sync-on-read, was created with DITTO_COPIES_PER_REPLICA, or is colocated with a variable that has
 *     a copy for each replica.
 *   - It has no aggregation. Shared copies are split before the function is called (see ditto_copies), and
 *     the components may differ afterwards.
 *
 *  A sliced variable (DITTO_PARTITION_BY_REPLICA) takes all of these arguments. `copy` is a copy of a slice,
 *  and all copies of a slice get the components of the first replica that has it.
 *
 *  A plain value that was taken from `variable` by ditto_strategy_local_results is copied before the function
 *  is called.
 *
 *  @param variable       the variable
 *  @param function       called for each copy
 *  @param user           passed to the function
 *  @param arguments      [num_arguments] values
 *  @param num_arguments  number of arguments
 *  @param options        NULL for the defaults
 *  @param results        [out] with options->ungrouped, a per-replica value for the caller, or NULL if the
 *                        function gave no results. Replicas that share a copy have the result of that copy.
 *                        Without options->ungrouped results may be NULL, and *results is set to NULL
 *  @return DITTO_OK, an error of the group "Strategies" (ditto/strategy.h), an error of the function, or one
 *          of:
 *  @retval DITTO_ERR_INVALID      one of these:
 *      - An argument has a component for each replica, and the variable cannot take it.
 *      - Only some copies have a result.
 *      - Results differ in dtype or rank, or a result is not a valid tensor.
 *      - An argument is a nest or slices.
 *      - A pointer is NULL, or options was not initialised.
 *  @retval DITTO_ERR_UNSUPPORTED  the variable is cut into shards, and no argument has a component for each
 *                                 replica; it is sliced in another dimension than 0; options is of a newer
 *                                 version
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for a split, or for the copy of a component. The
 *                                 function was not called, and nothing has changed. Or there is none for the
 *                                 results
 *  @retval DITTO_ERR_SYSTEM       the calling thread could not be pinned; nothing has changed
 *  @retval DITTO_ERR_RANGE        num_arguments is above DITTO_MAX_MERGE_ARGUMENTS; the size of a result
 *                                 overflows
 *  @retval DITTO_ERR_CONTEXT      an argument of another strategy, or of a variable that was destroyed
 *  @par Cost
 *  One call of the function for each physical copy, by the replicas that own the copies, and about as much
 *  as a run. */
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
 *  The shared copies of a variable with aggregation are updated with the arguments of replica 0, and the
 *  copies of a slice with those of the first replica that has it. The call of the replica that gives the
 *  arguments does not return before the function has returned for all copies, even if the call has failed.
 *  After a long wait the message of its error names a replica whose function it waited for.
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
 *                                 central storage, or a slot of an optimizer. With one replica only shards
 *                                 are refused, as UNSUPPORTED. Or a pointer is NULL, or an argument or a
 *                                 result is not a valid tensor
 *  @retval DITTO_ERR_UNSUPPORTED  a variable with aggregation that is cut into shards, or one that is sliced
 *                                 in another dimension than 0
 *  @retval DITTO_ERR_RANGE        num_arguments is above DITTO_MAX_MERGE_ARGUMENTS; the size of an argument
 *                                 or a result overflows
 *  @retval DITTO_ERR_CONTEXT      a variable of another strategy, or one that was destroyed
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for a split. All replicas get this error. The function
 *                                 was not called, nothing has changed, and the run goes on. Or there is no
 *                                 memory for the result, which ends the run
 *  @par Cost
 *  A meeting before and after the calls of the function, of which there is one for each physical copy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_update(ditto_replica *self, ditto_variable *variable,
                                                    ditto_update_fn function, void *user,
                                                    const ditto_tensor *arguments, uint32_t num_arguments,
                                                    ditto_tensor *result);

/** @} */

DITTO_END
#endif
