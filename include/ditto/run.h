/* include/ditto/run.h - running functions with values: what they are given, and what they give back.
 *
 *     static ditto_status mean(ditto_replica *self, void *unused)
 *     {
 *         ditto_tensor x;
 *         double sum = 0;
 *         DITTO_TRY(ditto_argument(self, NULL, &x));
 *         for (size_t i = 0; i < x.shape[0]; i++)
 *             sum += ((const double *)x.data)[i];
 *         return ditto_return_f64(self, NULL, sum / (double)x.shape[0]);
 *     }
 *     ...
 *     ditto_strategy_run_values(strategy, mean, NULL, x, NULL, &means);
 *
 * Functions run with rounding to nearest and with FTZ and DAZ off, also in a program that has set them (-ffast-math does):
 * ditto_strategy_options.floating keeps the program's own.
 *
 * Names: an argument or a result may be the only one (NULL), have a name, or be numbered ("0", "1", ...). */
#ifndef DITTO_RUN_H
#define DITTO_RUN_H

#include <ditto/distribute.h>
#include <ditto/value.h>

DITTO_BEGIN

#define DITTO_MAX_RESULTS     32 /**< of a replica's function */
#define DITTO_MAX_RESULT_NAME 47 /**< characters */

/** Reduces a result of ditto_strategy_run_steps. */
typedef struct ditto_result_op {
    const char *name; /**< of the result; NULL: the only one */
    ditto_op op;
} ditto_result_op;

typedef enum ditto_switch { DITTO_SWITCH_DEFAULT = 0, DITTO_ON = 1, DITTO_OFF = 2 } ditto_switch;

typedef struct ditto_run_options {
    size_t struct_size; /**< set by DITTO_RUN_OPTIONS_INIT */
    ditto_switch
        dynamic_batch; /**< ON (the default): components of an argument may differ in shape; OFF: SHAPE */
    const ditto_result_op
        *reduce; /**< results that come back reduced, in plain values; the others come as they are */
    uint32_t num_reduce;
} ditto_run_options;
#define DITTO_RUN_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_run_options)

/* -- Cross-replica context -- */

/** ditto_strategy_run with arguments and results.
 *
 *  @param function  finds its arguments with ditto_argument, gives results with ditto_return; `user` as it is
 *  @param arguments NULL: none. Per-replica values give each replica its component; plain and mirrored ones are the same
 *                   for all; of a nest this is so for every leaf. They live until the run has returned
 *  @param options   NULL for the defaults
 *  @param result    NULL: results are dropped. Else the caller's: NULL when there was none; the one without name; or a
 *                   nest of those with names, in replica 0's order. Each is a per-replica value, also for one replica;
 *                   a variable that all returned comes back as that variable
 *  @retval as ditto_strategy_run, and
 *  @retval DITTO_ERR_DIVERGED  results differ in number, name, kind, dtype or rank between replicas: the message names
 *                              them
 *  @retval DITTO_ERR_INVALID   numbered results with one left out; a result of `reduce` that was never returned
 *  @retval DITTO_ERR_RANGE     an op of `reduce` that values do not have. INVALID: a result that stands there twice
 *  @retval DITTO_ERR_SHAPE     dynamic_batch is OFF, and components differ
 *  @retval DITTO_ERR_CONTEXT   an argument of another strategy, or of one that was destroyed
 *  After an error of the results the function has run all the same.
 *  Cost  a few tens of nanoseconds more than ditto_strategy_run, and a line per replica and result. */
DITTO_API ditto_status ditto_strategy_run_values(ditto_strategy *strategy, ditto_replica_fn function,
                                                 void *user, const ditto_value *arguments,
                                                 const ditto_run_options *options, ditto_value **result);

/** One step of ditto_strategy_run_steps. `batch` is valid until the function returns. */
typedef ditto_status (*ditto_step_fn)(ditto_replica *self, const ditto_batch *batch, void *user);
/** Up to `steps` steps inside one run, each with the replica's next batch: one fork and join for all of them.
 *  @param steps_done  [out] steps that were done. May be NULL
 *  @param result      of the last step, as ditto_strategy_run_values; NULL when no step was done
 *  @retval DITTO_END_OF_INPUT  news: the input ended before `steps`; result and steps_done are set
 *  @retval DITTO_ERR_SHAPE     dynamic_batch is OFF, and a step has not all its rows
 *  @retval DITTO_ERR_USER      the function returned news
 *  @retval as ditto_strategy_run_values and ditto_next */
DITTO_API ditto_status ditto_strategy_run_steps(ditto_strategy *strategy, ditto_iterator *iterator,
                                                uint64_t steps, ditto_step_fn function, void *user,
                                                const ditto_run_options *options, uint64_t *steps_done,
                                                ditto_value **result);

/* -- Replica context, inside the function of one of these -- */

/** What this replica was given.
 *  @param path  of a nest's member (ditto_value_member); NULL: the only argument
 *  @param out   a view, valid until the function returns. Read only where replicas share it
 *  @retval DITTO_ERR_NOT_FOUND  no argument of this name, or none at all
 *  @retval DITTO_ERR_INVALID    a nest, or slices */
DITTO_API DITTO_NODISCARD ditto_status ditto_argument(ditto_replica *self, const char *path,
                                                      ditto_tensor *out);
/** All arguments as they were given to run; NULL: none. Their leaves: ditto_local, ditto_value_slices. */
DITTO_API const ditto_value *ditto_arguments(const ditto_replica *self);

/** Gives back a result: copies the tensor, into memory on this replica's node.
 *  @param name  NULL: it is the only one. Given twice, the last one counts
 *  @retval DITTO_ERR_INVALID  results with and without names, with names and with numbers; a name that is empty or has
 *                             a '/'
 *  @retval DITTO_ERR_RANGE    more than DITTO_MAX_RESULTS; a name longer than DITTO_MAX_RESULT_NAME
 *  @retval DITTO_ERR_CONTEXT  not inside a run with values */
DITTO_API DITTO_NODISCARD ditto_status ditto_return(ditto_replica *self, const char *name,
                                                    const ditto_tensor *tensor);
/** A scalar of f64. */
DITTO_API DITTO_NODISCARD ditto_status ditto_return_f64(ditto_replica *self, const char *name, double number);
/** Room for a result, uninitialised, so that the function can write it where it will be read.
 *  @param tensor  [in] dtype, rank and shape; [out] data */
DITTO_API DITTO_NODISCARD ditto_status ditto_return_buffer(ditto_replica *self, const char *name,
                                                           ditto_tensor *tensor);
/** A variable, by reference. */
DITTO_API DITTO_NODISCARD ditto_status ditto_return_variable(ditto_replica *self, const char *name,
                                                             ditto_variable *variable);
/** Slices, copied. dense_rows as in ditto_strategy_value_from_slices. */
DITTO_API DITTO_NODISCARD ditto_status ditto_return_slices(ditto_replica *self, const char *name,
                                                           const ditto_slices *slices, size_t dense_rows);

DITTO_END
#endif
