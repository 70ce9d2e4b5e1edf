/* include/ditto/run.h - running functions with arguments and results.
 *
 *     static ditto_status mean(ditto_replica *self, void *unused)
 *     {
 *         ditto_tensor x;
 *         double sum = 0;
 *         (void)unused;
 *         DITTO_TRY(ditto_argument(self, NULL, &x));
 *         for (size_t i = 0; i < x.shape[0]; i++)
 *             sum += ((const double *)x.data)[i];
 *         return ditto_return_f64(self, NULL, sum / (double)x.shape[0]);
 *     }
 *
 *     static ditto_status means_of(ditto_strategy *strategy, const ditto_value *x, ditto_value **means)
 *     {
 *         return ditto_strategy_run_values(strategy, mean, NULL, x, NULL, means);
 *     } */
#ifndef DITTO_RUN_H
#define DITTO_RUN_H

#include <ditto/distribute.h>
#include <ditto/value.h>

DITTO_BEGIN

/** @defgroup ditto_runs Runs with values
 *
 *  An argument or a result may be the only one (its name is NULL), have a name, or be numbered ("0", "1", and
 *  so on).
 *
 *  Functions run with rounding to nearest, and with FTZ and DAZ off, even if the program has them on (as
 *  -ffast-math does). ditto_strategy_options.floating can select the program's own environment instead.
 *  @{ */

#define DITTO_MAX_RESULTS 32 /**< largest number of results of a function */

/** Says that a result is reduced over the replicas. */
typedef struct ditto_result_op {
    const char *name; /**< name of the result; NULL for the only one */
    ditto_op op;      /**< SUM, MEAN, MIN, MAX or PROD */
} ditto_result_op;

/** How a run with values behaves. Start from DITTO_RUN_OPTIONS_INIT. A field that is 0 means its default. */
typedef struct ditto_run_options {
    size_t struct_size; /**< set by DITTO_RUN_OPTIONS_INIT */

    /** Whether the components of a per-replica argument may differ in shape, and whether a batch of
     *  ditto_strategy_run_steps may have fewer rows than a full one. DITTO_SWITCH_ON is the default. With
     *  DITTO_SWITCH_OFF the run fails with DITTO_ERR_SHAPE in these cases. Slices are not checked. */
    ditto_switch dynamic_batch;

    /** [num_reduce] the results that are reduced. They become plain values, or slices if they are slices. The
     *  other results are not reduced. */
    const ditto_result_op *reduce;

    uint32_t num_reduce; /**< number of elements of reduce */
} ditto_run_options;

/** Initial value of ditto_run_options: the defaults. */
#define DITTO_RUN_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_run_options)

/** Runs a function on every replica with arguments and results, in cross-replica context. In all other
 *  respects it works as ditto_strategy_run does. An error of the results does not undo what the function did.
 *
 *  @param strategy   the strategy
 *  @param function   reads its arguments with ditto_argument, and gives results with ditto_return and similar
 *                    functions
 *  @param user       passed to the function
 *  @param arguments  NULL for none. Each replica receives its component of a per-replica value. Plain and
 *                    mirrored values are the same for all replicas. For a nest this holds for each leaf. The
 *                    arguments must not be destroyed before the run has returned
 *  @param options    NULL for the defaults
 *  @param result     [out] the results, given to the caller. NULL if there were none; the result without a
 *                    name; a nest of results with names, in replica 0's order; or a nest of numbered
 *                    results, in ascending order. A tensor becomes a per-replica value, even if there is one
 *                    replica. A variable that all replicas returned comes back as that variable. If result
 *                    is NULL, the results are discarded, and not compared
 *  @return DITTO_OK, a status of ditto_strategy_run, an error of ditto_strategy_reduce for a result of
 *          options->reduce, or one of:
 *  @retval DITTO_ERR_DIVERGED     results differ between replicas in number, name, kind, dtype or rank;
 *                                 slices differ in the length of rows or in dense_rows; the replicas returned
 *                                 different variables. The message names the first such result
 *  @retval DITTO_ERR_INVALID      numbered results with a gap; options->reduce names a result that no replica
 *                                 returned, or names a result twice, or is NULL although num_reduce is not 0;
 *                                 options was not initialised
 *  @retval DITTO_ERR_UNSUPPORTED  options is of a newer version
 *  @retval DITTO_ERR_RANGE        options->reduce has an operator other than SUM, MEAN, MIN, MAX and PROD; an
 *                                 unknown dynamic_batch
 *  @retval DITTO_ERR_SHAPE        dynamic_batch is OFF, and components differ in shape; a result of
 *                                 options->reduce differs in shape between replicas
 *  @retval DITTO_ERR_CONTEXT      an argument of another strategy, or of one that was destroyed; an argument
 *                                 refers to a variable that was destroyed
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for the results
 *  @par Cost
 *  With 2 replicas, three arguments and one scalar result take 0.7 to 0.85 us more than ditto_strategy_run
 *  (docs/performance.md). About four cache lines move for each result of each replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_run_values(ditto_strategy *strategy,
                                                                 ditto_replica_fn function, void *user,
                                                                 const ditto_value *arguments,
                                                                 const ditto_run_options *options,
                                                                 ditto_value **result);

/** One step of ditto_strategy_run_steps, on one replica.
 *
 *  @param self   the replica
 *  @param batch  its batch, valid until the function returns
 *  @param user   the pointer given to ditto_strategy_run_steps
 *  @return DITTO_OK, or an error that ends the run */
typedef ditto_status (*ditto_step_fn)(ditto_replica *self, const ditto_batch *batch, void *user);

/** Runs up to `num_steps` steps inside one run, each with the next batch of the replica. All steps together
 *  need one start and one end of a run.
 *
 *  @param strategy   the strategy
 *  @param function   called for each step
 *  @param user       passed to the function
 *  @param iterator   the source of the batches
 *  @param num_steps  largest number of steps
 *  @param options    NULL for the defaults
 *  @param num_done   [out] the number of steps done; may be NULL. Not set after an error of the run
 *  @param result     [out] the results of the last step, as for ditto_strategy_run_values; NULL if no step
 *                    was done
 *  @return DITTO_OK, an error of ditto_strategy_run_values or ditto_next, or one of:
 *  @retval DITTO_END_OF_INPUT  the input ended before `num_steps` steps. result and num_done are set
 *  @retval DITTO_ERR_SHAPE     dynamic_batch is OFF, and a batch has fewer rows than the replica gets in a
 *                              full step
 *  @retval DITTO_ERR_USER      the function returned a status that is neither DITTO_OK nor an error
 *  @par Cost
 *  That of ditto_strategy_run_values once, and of ditto_next for each step. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_run_steps(ditto_strategy *strategy,
                                                                ditto_step_fn function, void *user,
                                                                ditto_iterator *iterator, uint64_t num_steps,
                                                                const ditto_run_options *options,
                                                                uint64_t *num_done, ditto_value **result);

/** @name Arguments and results
 *
 *  These functions are called in replica context, in the function of a run with values. If self is not the
 *  calling thread's replica, they return DITTO_ERR_CONTEXT. If a pointer is NULL, they return
 *  DITTO_ERR_INVALID.
 *  @{ */

/** Returns an argument of this replica. Slices are read with ditto_value_slices instead, from a value that
 *  the function was given by its user pointer.
 *
 *  @param self  the calling replica
 *  @param path  path of a member of a nest (see ditto_value_member); NULL for the only argument
 *  @param out   [out] a view, valid until the function of the run returns. It must not be written if replicas
 *               share it
 *  @retval DITTO_OK             out is set
 *  @retval DITTO_ERR_NOT_FOUND  there is no argument of this name, or no argument at all
 *  @retval DITTO_ERR_INVALID    the argument is a nest, or slices; out is NULL */
DITTO_API DITTO_NODISCARD ditto_status ditto_argument(ditto_replica *self, const char *path,
                                                      ditto_tensor *out);

/** Gives a result. The tensor is copied into memory on this replica's node. If its data is NULL, the memory
 *  is allocated, uninitialised, and tensor->data is set to it, so that the function writes the result there
 *  without a copy.
 *
 *  @param self    the calling replica
 *  @param name    name of the result; NULL if it is the only one. If a name is given twice, the last result
 *                 counts
 *  @param tensor  the result; only `data` is changed, and only if it is NULL
 *  @retval DITTO_OK             the result was copied
 *  @retval DITTO_ERR_INVALID    some results have names and others not, or names and numbers are mixed; a
 *                               name is empty or contains '/'; an invalid tensor
 *  @retval DITTO_ERR_RANGE      more than DITTO_MAX_RESULTS results; a name longer than
 *                               DITTO_MAX_RESULT_NAME_BYTES; the size of the tensor overflows
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the copy
 *  @retval DITTO_ERR_CONTEXT    not called in a run with values
 *  @par Cost
 *  One copy of the tensor. */
DITTO_API DITTO_NODISCARD ditto_status ditto_return(ditto_replica *self, const char *name,
                                                    ditto_tensor *tensor);

/** Gives a number as a result: a scalar of f64.
 *
 *  @param self    the calling replica
 *  @param name    as for ditto_return
 *  @param number  the result
 *  @return DITTO_OK, or an error of ditto_return
 *  @par Cost
 *  That of ditto_return, for one number. */
DITTO_API DITTO_NODISCARD ditto_status ditto_return_f64(ditto_replica *self, const char *name, double number);

/** Gives a reference to a variable as a result.
 *
 *  @param self      the calling replica
 *  @param name      as for ditto_return
 *  @param variable  the variable
 *  @return DITTO_OK, an error of ditto_return, or one of:
 *  @retval DITTO_ERR_UNSUPPORTED  the variable is cut into shards
 *  @retval DITTO_ERR_CONTEXT      the variable is of another strategy, or was destroyed */
DITTO_API DITTO_NODISCARD ditto_status ditto_return_variable(ditto_replica *self, const char *name,
                                                             ditto_variable *variable);

/** Gives slices as a result. They are copied.
 *
 *  @param self        the calling replica
 *  @param name        as for ditto_return
 *  @param slices      the slices
 *  @param dense_rows  number of rows of the array that the rows belong to; 0 if it is not known
 *  @return DITTO_OK, an error of ditto_return, or one of:
 *  @retval DITTO_ERR_INVALID  a pointer is NULL or misaligned; an unknown dtype
 *  @retval DITTO_ERR_RANGE    an index is negative, or not below dense_rows; the size overflows
 *  @par Cost
 *  One copy of the slices. */
DITTO_API DITTO_NODISCARD ditto_status ditto_return_slices(ditto_replica *self, const char *name,
                                                           const ditto_slices *slices, size_t dense_rows);

/** @} */
/** @} */

DITTO_END
#endif
