/* include/ditto/merge.h - from inside a run to cross-replica context: merge_call; and functions on variables' copies:
 * update.
 *
 *     static ditto_status total(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count, void *user,
 *                               ditto_value **result)
 *     {
 *         return ditto_strategy_reduce(strategy, DITTO_SUM, arguments[0], NULL, 0, result);
 *     }
 *     ...
 *     DITTO_TRY(ditto_merge_call(self, total, NULL, &mine, 1, &merged));
 *     DITTO_TRY(ditto_local(self, merged, &sum)); */
#ifndef DITTO_MERGE_H
#define DITTO_MERGE_H

#include <ditto/value.h>

DITTO_BEGIN

#define DITTO_MAX_MERGE_ARGUMENTS 16

/** Runs once, while all replicas pause, in cross-replica context: it may reduce, gather, read and assign variables,
 *  create values, and run functions on the strategy.
 *  @param arguments  [count] per-replica values of what each replica gave; they are views, and the call's own
 *  @param user       replica 0's
 *  @param result     [out] NULL, or a value that becomes the call's own: one that the function was handed through an
 *                    `out`
 *  @return DITTO_OK, or an error that ends the run; it may handle an inner run's error, and go on */
typedef ditto_status (*ditto_merge_fn)(ditto_strategy *strategy, ditto_value *const *arguments,
                                       uint32_t count, void *user, ditto_value **result);

/** All replicas pause, the function runs once, and all get what it gives. Replica context, collective: the rules and
 *  errors of ditto/collective.h, and
 *  @param function   the same on all replicas
 *  @param arguments  [count] this replica's tensors: not copied. count is equal on all replicas
 *  @param result     [out] may be NULL. The function's value, or NULL: ditto_local gives this replica its component of
 *                    a per-replica value, and anything else to all. Valid until the next merge_call or
 *                    ditto_create_variable of this run, or the end of the run
 *  @retval DITTO_ERR_DIVERGED  another function or count
 *  @retval DITTO_ERR_INVALID   arguments of different dtypes or ranks; function is NULL
 *  @retval DITTO_ERR_RANGE     more than DITTO_MAX_MERGE_ARGUMENTS
 *  @retval (the function's)    on the caller of run; PEER_STOPPED on the replicas
 *  Functions given to logical devices are joined first. While the function runs, replicas wait without a time limit.
 *  Cost      a barrier, and a line that all read. */
DITTO_API DITTO_NODISCARD ditto_status ditto_merge_call(ditto_replica *self, ditto_merge_fn function,
                                                        void *user, const ditto_tensor *arguments,
                                                        uint32_t count, const ditto_value **result);

/** Runs in update context, once for each physical copy of a variable, on a thread of that copy's replica, near its
 *  memory: nothing of ditto may be called but ditto_get_update_replica, and reads and writes of the variable at hand,
 *  which see this copy alone.
 *  @param copy       the copy: its elements may be read and written
 *  @param arguments  [count] this replica's part of each
 *  @param result     [out] dtype, rank, shape and data of a result, which is copied when the function has
 *                    returned: data is not a local array of the function (INVALID). dtype 0: none
 *  @return DITTO_OK, or an error: other copies may have been updated by then */
typedef ditto_status (*ditto_update_fn)(const ditto_tensor *copy, const ditto_tensor *arguments,
                                        uint32_t count, void *user, ditto_tensor *result);

typedef struct ditto_update_options {
    size_t struct_size; /**< set by DITTO_UPDATE_OPTIONS_INIT */
    int ungrouped;      /**< not 0: results come back one for each copy; 0: they are dropped */
} ditto_update_options;
#define DITTO_UPDATE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_update_options)

/** Calls the function on every copy of a variable, in parallel. Nothing is summed over replicas or divided by their
 *  number. Cross-replica context.
 *
 *  Plain and mirrored arguments are equal for all copies. An argument with a component for each replica (a
 *  per-replica value, a sync-on-read variable, a variable whose components may differ) needs a copy for each
 *  replica, whatever the machine. It can be given for variables that are sync-on-read, that were created with
 *  DITTO_COPIES_PER_REPLICA, or that have no aggregation. The shared copies of the last kind are split before
 *  the function is called (ditto/variable.h). Components may differ then.
 *  @param arguments  [count] values
 *  @param options    NULL: grouped
 *  @param results    [out] grouped: may be NULL, else it is set to NULL. Ungrouped: a per-replica value, or
 *                    NULL if the function gave none. A replica that shares a copy has its copy's result
 *  @retval DITTO_ERR_INVALID      an argument with a component for each replica, and copies that are never
 *                                 split: the variable aggregates, is cut into shards, is in central storage,
 *                                 or is an optimizer's slot; results of some copies alone, or of different
 *                                 dtypes or ranks; a nest or slices
 *  @retval DITTO_ERR_UNSUPPORTED  a variable that is cut into shards, with any other arguments
 *  @retval DITTO_ERR_NO_MEMORY    for a split: nothing was called, and nothing has changed
 *  @retval DITTO_ERR_RANGE        more than DITTO_MAX_MERGE_ARGUMENTS
 *  @retval DITTO_ERR_CONTEXT      an argument of another strategy
 *  @retval (the function's) */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_update(
    ditto_variable *variable, ditto_update_fn function, void *user, const ditto_value *const *arguments,
    uint32_t count, const ditto_update_options *options, ditto_value **results);

/** The same from inside a run: collective. Replica context. Where there is a copy for each replica, each
 *  replica updates its own with its own arguments. The shared copies of a variable without aggregation are
 *  split first, whatever the arguments are; all replicas pause for that, once. The shared copies of a
 *  variable with aggregation are updated with replica 0's arguments: if the function takes longer than the
 *  time limits on another NUMA node, replica 0 cannot return before the function does, and its error says so.
 *  The function starts no collective (DITTO_ERR_CONTEXT).
 *  @param arguments  [count] this replica's tensors, good until the call returns
 *  @param result     [out] may be NULL. What the function gave for this replica's copy; its data is freed with
 *                    ditto_free; dtype 0: none
 *  @retval DITTO_ERR_INVALID      no aggregation, and copies that are never split: of a variable in shards or
 *                                 in central storage, of an optimizer's slot
 *  @retval DITTO_ERR_UNSUPPORTED  a variable with aggregation that is cut into shards
 *  @retval DITTO_ERR_NO_MEMORY    for a split, on all replicas: nothing was called, nothing has changed, and
 *                                 the run goes on
 *  @retval as ditto_barrier, and the function's, which ends the run */
DITTO_API DITTO_NODISCARD ditto_status ditto_update(ditto_replica *self, ditto_variable *variable,
                                                    ditto_update_fn function, void *user,
                                                    const ditto_tensor *arguments, uint32_t count,
                                                    ditto_tensor *result);

DITTO_END
#endif
