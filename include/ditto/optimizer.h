/* include/ditto/optimizer.h - many variables updated from gradients, in one pass over memory. */
#ifndef DITTO_OPTIMIZER_H
#define DITTO_OPTIMIZER_H

#include <ditto/collective.h>
#include <ditto/variable.h>

DITTO_BEGIN

/** @defgroup ditto_optimizers Optimizers
 *
 *  ditto_apply aggregates the replicas' gradients and updates the variables. The replica that reduces an
 *  element also updates it, and writes it to every copy. Without clipping no reduced gradient is stored.
 *
 *  A rule may keep numbers for each element, such as momentum or moments. They are called slots. There is one
 *  copy of them, in parts that are near the replicas that update the elements. Slots are variables called
 *  "<optimizer>/<slot>/<variable>". The number of steps is the variable "<optimizer>/iterations" (i64). Both
 *  are saved and restored as other variables are (ditto/checkpoint.h), also into a strategy with another
 *  number of replicas. See docs/semantics.md.
 *  @{ */

/** An optimizer of several variables. */
typedef struct ditto_optimizer ditto_optimizer;

/** How an optimizer computes the new value of an element x from its gradient g, which is aggregated over the
 *  replicas.
 *
 *  The arithmetic is that of the variable's dtype, from left to right. Each operation is rounded, and none
 *  are fused. Terms in brackets are computed in f64 and then rounded to the dtype. `rate` is the learning
 *  rate of the step, times the factor of the variable if there is one. It is an f64, and rounded to the dtype
 *  where it is not in brackets. The bits are therefore the same for every placement, and after a restore. */
typedef enum ditto_rule {
    DITTO_RULE_ASSIGN = 1, /**< x = g */
    DITTO_RULE_ADD = 2,    /**< x = x + g */
    DITTO_RULE_SUB = 3,    /**< x = x - g */

    /** Gradient descent with momentum, for f32 and f64.
     *
     *      x = x - [rate decay] x             without decay this is left out
     *      m = momentum m - rate g
     *      x = x + m                          or, in Nesterov's variant, x + (momentum m - rate g)
     *
     *  The slot is "momentum". There is none if momentum is 0. Source: Sutskever, Martens, Dahl, Hinton, ICML
     *  2013. */
    DITTO_RULE_SGD = 4,

    /** Adam with decoupled weight decay, for f32 and f64. t counts steps from 1.
     *
     *      x = x - [rate decay] x             without decay this is left out
     *      m = b1 m + [1 - b1] g
     *      v = b2 v + [1 - b2] g g
     *      x = x - [rate / (1 - b1^t)] m / (sqrt(v) [1 / sqrt(1 - b2^t)] + epsilon)
     *
     *  The slots are "m" and "v". Sources: Kingma, Ba, ICLR 2015, and for the decay Loshchilov, Hutter, ICLR
     *  2019. */
    DITTO_RULE_ADAM = 5,

    DITTO_RULE_FUNCTION = 6, /**< ditto_optimizer_options.function */
} ditto_rule;

/** Largest number of slots of a DITTO_RULE_FUNCTION. */
#define DITTO_MAX_OPTIMIZER_SLOTS 4

/** A range of one variable's elements, as a ditto_rule_fn receives it. */
typedef struct ditto_rule_range {
    uint32_t variable; /**< its index in the optimizer's list */
    ditto_dtype dtype; /**< dtype of all arrays */

    /** The first element of the range in the variable. Of a sliced variable, elements are counted slice by
     *  slice, in the order of a slice's own tensor. */
    size_t first;

    size_t count;         /**< number of elements */
    const void *gradient; /**< [count] aggregated over the replicas, and clipped */
    void *value;          /**< [count] [in] old values, [out] new values */

    /** [count] each, [in] the old slots, [out] the new slots. They are 0 at first. slot[i] is NULL for
     *  i >= num_slots. */
    void *slot[DITTO_MAX_OPTIMIZER_SLOTS];

    double learning_rate; /**< learning rate of this step and variable */
    int64_t step;         /**< number of this step, counted from 1 */
} ditto_rule_range;

/** A function of the program that updates a range of elements.
 *
 *  It runs on the threads of all replicas, not of their helpers, and several times at once on different
 *  ranges. How elements are cut into ranges is not specified, so it must update each element independently of
 *  the others. It must not call anything of ditto. A collective in it returns DITTO_ERR_CONTEXT. If it takes
 *  longer than the time limits, the other replicas return with DITTO_ERR_TIMED_OUT, and so do other calls
 *  that use the same shard of a parameter (ditto/parameter.h).
 *
 *  If the components of a variable may differ, the function is called for each copy, with that copy's values,
 *  the same gradient, and the slots as they were before the step. The slots that the call for replica 0's
 *  copy leaves are kept. Over several hosts each host keeps those of its first replica's copy, so they must
 *  not depend on the values.
 *
 *  @param range  the elements
 *  @param user   the pointer ditto_optimizer_options.user */
typedef void (*ditto_rule_fn)(const ditto_rule_range *range, void *user);

/** How an optimizer works. Start from DITTO_OPTIMIZER_OPTIONS_INIT, and set rule. Other fields that are 0
 *  mean their default. */
typedef struct ditto_optimizer_options {
    size_t struct_size; /**< set by DITTO_OPTIMIZER_OPTIONS_INIT */

    /** The name, which is copied. NULL means "optimizer". No other optimizer of the strategy may have it. */
    const char *name;

    ditto_rule rule; /**< how elements are updated; must be set */

    /** How the replicas' gradients are combined: DITTO_SUM (the default) or DITTO_MEAN. The aggregation of
     *  the variables makes no difference. */
    ditto_op op;

    /** The learning rate of SGD, ADAM and FUNCTION. 0 means the default, 0.01 for SGD and 0.001 for the
     *  others, unless has_learning_rate is set. */
    double learning_rate;

    int has_learning_rate; /**< if not 0, learning_rate is used even if it is 0 */

    double momentum; /**< for SGD; 0 means none */
    int nesterov;    /**< for SGD with momentum: Nesterov's variant if not 0 */

    /** b1 of ADAM. 0 means the default, 0.9, unless has_beta1 is set. */
    double beta1;

    int has_beta1; /**< if not 0, beta1 is used even if it is 0 */

    /** b2 of ADAM. 0 means the default, 0.999, unless has_beta2 is set. */
    double beta2;

    int has_beta2; /**< if not 0, beta2 is used even if it is 0 */

    /** epsilon of ADAM. 0 means the default, 1e-8, unless has_epsilon is set. */
    double epsilon;

    int has_epsilon; /**< if not 0, epsilon is used even if it is 0 */

    /** The decay of SGD and ADAM, which is decoupled from the gradient. 0 means none. */
    double weight_decay;

    /** If not 0, and if the norm of the gradients is larger, gradients are scaled by clip_norm / norm. The
     *  norm is the root of the sum of squares of the aggregated gradients of all variables. If it is NaN, all
     *  gradients become NaN. Source: Pascanu, Mikolov, Bengio, ICML 2013. */
    double clip_norm;

    ditto_rule_fn function; /**< for FUNCTION */
    void *user;             /**< passed to function */

    /** The number of slots of FUNCTION, at most DITTO_MAX_OPTIMIZER_SLOTS. They are called "slot0", "slot1",
     *  and so on. */
    uint32_t num_slots;

    /** [num_variables] For SGD, ADAM and FUNCTION: the learning rate of variable i is the step's learning
     *  rate times rate_factors[i]. With a factor of 0, gradients do not move the variable. Its slots still
     *  change, and a momentum that it had before still moves it. NULL means 1 for all. The array is
     *  copied. */
    const double *rate_factors;

    /** [num_variables] For SGD and ADAM: the decay of variable i is weight_decays[i]. Models usually have
     *  none for biases and for the scales of normalizations. NULL means weight_decay for all. If it is set,
     *  weight_decay must be 0. The array is copied. */
    const double *weight_decays;

    /* -- Only for parameters (ditto/parameter.h) -- */

    /** If it is k > 1, the gradients of k calls of ditto_apply are gathered before a shard is updated. They
     *  are added, or with op DITTO_MEAN averaged, in the dtype of the variable. k calls are one step. Each
     *  call clips its own gradients, and the learning rate is that of the call which completes a shard. Calls
     *  of several workers may be gathered in another order in each shard. Gradients that are gathered and not
     *  applied are not in checkpoints, and stay when a checkpoint is restored. 0 and 1 mean that each call is
     *  a step. */
    uint32_t accumulate;

    /** If has_max_staleness is set: a gradient is dropped if more than this number of steps have begun since
     *  the number of steps was read (ditto_apply_options.read_steps). A step counts when it begins, so shards
     *  may be pulled before the steps that were read have reached them. Source: bounded staleness, Ho et al.,
     *  NIPS 2013. */
    int64_t max_staleness;

    int has_max_staleness; /**< if not 0, max_staleness is used, and ditto_apply needs read_steps */
} ditto_optimizer_options;

/** Initial value of ditto_optimizer_options: the defaults, without a rule. */
#define DITTO_OPTIMIZER_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_optimizer_options)

/** Creates an optimizer. The call is made in cross-replica context.
 *
 *  @param variables      [num_variables] mirrored variables of one strategy, each once. Until the optimizer
 *                        or the strategy is destroyed, ditto_variable_destroy returns DITTO_ERR_BUSY for
 *                        them. They need not be trainable
 *  @param num_variables  number of variables
 *  @param options        how the optimizer works
 *  @param out            [out] the optimizer; set only on DITTO_OK
 *  @return DITTO_OK, an error of ditto/strategy.h, or one of:
 *  @retval DITTO_ERR_INVALID      a NULL pointer; no variables; a variable that is given twice, is
 *                                 sync-on-read, or is a slot of an optimizer; FUNCTION without a function;
 *                                 the strategy has an optimizer of this name; a value that was restored for a
 *                                 slot has another dtype (ditto_checkpoint_restore); rate_factors or
 *                                 weight_decays for a rule that has none; both weight_decay and
 *                                 weight_decays
 *  @retval DITTO_ERR_SHAPE        a value that was restored for a slot has another shape
 *  @retval DITTO_ERR_RANGE        an unknown rule; an op other than SUM and MEAN; a number that is negative
 *                                 or not finite; momentum or a beta that is 1 or more; more than
 *                                 DITTO_MAX_OPTIMIZER_SLOTS slots
 *  @retval DITTO_ERR_UNSUPPORTED  a dtype that the rule or op does not have; clipping of a dtype other than
 *                                 f32 and f64; options is of a newer version
 *  @retval DITTO_ERR_CONTEXT      variables of more than one strategy, or of one that was destroyed
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for the slots. Clipping needs one more array of the size
 *                                 of the gradients, stored as slots are
 *  @retval DITTO_ERR_SYSTEM       the calling thread cannot be pinned
 *  @par Ownership
 *  The caller gives the optimizer to ditto_optimizer_destroy. The variables stay the caller's.
 *  @par Cost
 *  Allocates the slots and writes zeros to them, on the nodes of the replicas that update the elements. */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_create(ditto_variable *const *variables,
                                                              uint32_t num_variables,
                                                              const ditto_optimizer_options *options,
                                                              ditto_optimizer **out);

/** Destroys an optimizer and its slots. The call is made in cross-replica context. It is also allowed after
 *  the strategy was destroyed. If another thread is in a run of the strategy, the call waits for the end of
 *  the run.
 *
 *  @param optimizer  the optimizer; NULL is allowed
 *  @retval DITTO_OK           the optimizer is destroyed
 *  @retval DITTO_ERR_CONTEXT  called on a replica's thread, or in a function of a dataset; nothing was done
 *  @retval DITTO_ERR_BUSY     a call on the optimizer or on one of its slots has not returned, for
 *                             example one that saves or restores the slot; nothing was done
 *  @par Cost
 *  Frees the slots. */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_destroy(ditto_optimizer *optimizer);

/** What an optimizer has. */
typedef struct ditto_optimizer_properties {
    size_t struct_size;     /**< set by DITTO_OPTIMIZER_PROPERTIES_INIT */
    uint32_t num_variables; /**< the number of variables, and of gradients of a step */

    /** The number of steps so far as a variable: a scalar of i64, which belongs to the optimizer. The number
     *  stays 0 if none of the optimizer's variables has elements. */
    ditto_variable *iterations;
} ditto_optimizer_properties;

/** Initial value of ditto_optimizer_properties. */
#define DITTO_OPTIMIZER_PROPERTIES_INIT DITTO_OPTIONS_INIT(ditto_optimizer_properties)

/** Says what an optimizer has.
 *
 *  @param optimizer  the optimizer
 *  @param out        [out] start from DITTO_OPTIMIZER_PROPERTIES_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  a NULL pointer, or struct_size is not set
 *  @par Thread safety
 *  Any thread may call it, in any context, also after the strategy was destroyed. */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_info(const ditto_optimizer *optimizer,
                                                            ditto_optimizer_properties *out);

/** Returns a slot of a variable as a variable, which can be read, assigned and saved.
 *
 *  @param optimizer  the optimizer
 *  @param variable   index of the variable in the optimizer's list
 *  @param slot       name of the slot
 *  @param out        [out] the slot, which still belongs to the optimizer
 *  @retval DITTO_OK             out is set
 *  @retval DITTO_ERR_INVALID    a NULL pointer
 *  @retval DITTO_ERR_RANGE      there is no such variable
 *  @retval DITTO_ERR_NOT_FOUND  there is no such slot; the message lists the slots
 *  @par Thread safety
 *  Any thread may call it, also after the strategy was destroyed. */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_slot(ditto_optimizer *optimizer, uint32_t variable,
                                                            const char *slot, ditto_variable **out);

/** How one step works. Start from DITTO_APPLY_OPTIONS_INIT. */
typedef struct ditto_apply_options {
    size_t struct_size; /**< set by DITTO_APPLY_OPTIONS_INIT */

    /** The learning rate of this step, equal on all replicas. 0 means that of the optimizer, unless
     *  has_learning_rate is set. */
    double learning_rate;

    int has_learning_rate; /**< if not 0, learning_rate is used even if it is 0 */

    /** [out] The norm of the aggregated gradients of all variables before clipping. It has the same bits on
     *  all replicas, with and without clip_norm. NULL if it is not needed. Without clip_norm, it must be NULL
     *  on all replicas or on none. */
    double *norm;

    /* -- Only for parameters (ditto/parameter.h) -- */

    /** For optimizers with max_staleness: what ditto_optimizer_steps returned before the parameters were
     *  pulled. If a worker has several replicas, that of its replica 0 is used. */
    int64_t read_steps;

    int has_read_steps; /**< not 0 if read_steps is set */

    /** [out] 1 if the gradients were dropped because they were too old, otherwise 0. NULL if it is not
     *  needed. */
    int *dropped;
} ditto_apply_options;

/** Initial value of ditto_apply_options: the optimizer's learning rate, no norm. */
#define DITTO_APPLY_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_apply_options)

/** Returns the number of steps that have begun. The call is made in replica context, and not between
 *  ditto_apply_start and ditto_apply_finish. Other workers may begin steps on parameters meanwhile.
 *
 *  @param self       the calling replica
 *  @param optimizer  the optimizer
 *  @param steps      [out] the number
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID  a pointer is NULL
 *  @retval DITTO_ERR_CONTEXT  the optimizer is of another strategy, or of one that was destroyed; self is not
 *                             the calling thread's replica
 *  @par Cost
 *  For parameters one lock. */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_steps(ditto_replica *self, ditto_optimizer *optimizer,
                                                             int64_t *steps);

/** How old the gradients of an optimizer of parameters were. The age of a gradient is the number of steps
 *  that have begun between read_steps and its own step. */
typedef struct ditto_staleness_counters {
    size_t struct_size; /**< set by DITTO_STALENESS_COUNTERS_INIT */

    uint64_t calls;   /**< calls of ditto_apply with read_steps; one for each worker, not for each replica */
    uint64_t dropped; /**< calls whose gradients were dropped (max_staleness) */
    uint64_t sum;     /**< of the ages of all these calls; divided by calls it is the mean */
    uint64_t largest; /**< age */

    /** Calls by age. Range 0 is the age 0, range k the ages from 2^(k-1) to 2^k - 1, and the last range all
     *  that are larger. */
    uint64_t histogram[DITTO_HISTOGRAM_LENGTH];
} ditto_staleness_counters;

/** Initial value of ditto_staleness_counters. */
#define DITTO_STALENESS_COUNTERS_INIT DITTO_OPTIONS_INIT(ditto_staleness_counters)

/** Reads how old the gradients were since the optimizer was created. All numbers are 0 for an optimizer of
 *  variables that are no parameters, and if no call of ditto_apply gives read_steps. While workers make
 *  steps, the numbers may belong to different calls.
 *
 *  @param optimizer  the optimizer
 *  @param out        [out] the numbers. Start from DITTO_STALENESS_COUNTERS_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  a pointer is NULL, or struct_size is not set
 *  @par Thread safety
 *  Any thread may call it, in any context, also after the strategy was destroyed.
 *  @par Cost
 *  Reads five cache lines. Calls of ditto_apply count only if they give read_steps, under a lock that they
 *  take anyway. */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_staleness(const ditto_optimizer *optimizer,
                                                                 ditto_staleness_counters *out);

/** Makes one step. On parameters (ditto/parameter.h) only the replicas of one worker take part, and the step
 *  is applied to one shard after the other, while other workers make steps of theirs. The following holds for
 *  mirrored variables.
 *
 *  The call is collective, and is made in replica context. When it returns DITTO_OK, every copy of every
 *  variable has its new value, and all replicas see it. After an error of a collective the values of the
 *  variables are unspecified.
 *
 *  @param self       the calling replica
 *  @param optimizer  the optimizer
 *  @param gradients  [number of variables] this replica's gradients, each of its variable's dtype and shape,
 *                    or, if the variable is sliced, of the shape of the replica's slice; no overlap with
 *                    variables. They are dense: rows are added with ditto_scatter instead
 *  @param options    NULL for the defaults
 *  @return DITTO_OK, an error of ditto_all_reduce, or one of:
 *  @retval DITTO_ERR_INVALID      a NULL or misaligned pointer; a gradient has another dtype than its
 *                                 variable, or an invalid rank; a step of this optimizer, or one that
 *                                 updates the same variables, was started with ditto_apply_start and not
 *                                 finished
 *  @retval DITTO_ERR_RANGE        a learning rate that is negative or not finite, also when it is multiplied
 *                                 by a variable's factor
 *  @retval DITTO_ERR_SHAPE        a gradient has another shape than its variable
 *  @retval DITTO_ERR_CONTEXT      an optimizer of another strategy, or of one that was destroyed
 *  @retval DITTO_ERR_DIVERGED     optimizers or learning rates differ between replicas; without clip_norm,
 *                                 only some replicas ask for the norm
 *  @retval DITTO_ERR_UNSUPPORTED  the norm of gradients that are neither f32 nor f64
 *  @retval DITTO_ERR_NO_MEMORY    the replica's arena has no memory for the list of gradients, which is
 *                                 allocated if there are more than 64 variables or shards, or for a gradient
 *                                 whose norm is taken over several hosts
 *  @par Cost
 *  All variables together take two meetings. Each gradient is read once. Each value and slot is read once and
 *  written once, the values once per copy. With clipping there are six meetings, and the aggregated gradient
 *  is also written once and read twice. For the norm without clipping there are four meetings, and all
 *  gradients are read once more. Over several hosts that norm takes an all-reduce of each variable, and
 *  memory for its gradient, and the hosts exchange the sums of the gradients in any case. */
DITTO_API DITTO_NODISCARD ditto_status ditto_apply(ditto_replica *self, ditto_optimizer *optimizer,
                                                   const ditto_tensor *gradients,
                                                   const ditto_apply_options *options);

/** Starts a part of a step, with the gradients of some of the optimizer's variables. In this way the
 *  gradients of the last layers are aggregated while those of the first layers are still computed. Each
 *  variable is given once in a step, in parts of any size and in any order, and then ditto_apply_finish ends
 *  the step. The variables then have the same bits as after one ditto_apply with all gradients. The call is
 *  collective, and is made in replica context: every replica starts the same parts in the same order.
 *
 *  There is no background thread. The replicas work on the parts that all of them have started while they
 *  wait in any collective, as for the operations of ditto/pending.h. With clip_norm the gradients are
 *  aggregated then, and the variables are updated in ditto_apply_finish. With DITTO_RULE_FUNCTION everything
 *  is done in ditto_apply_finish. In the default strategy a part is done when the call returns, and all
 *  threads share the step.
 *
 *  Until ditto_apply_finish has returned, the gradients must be neither written nor freed, and the variables
 *  of the part, their slots and the number of steps must be neither read nor written. In replica context,
 *  functions that write or look up elements of these variables and slots return DITTO_ERR_INVALID, and so do
 *  ditto_merge_call and steps of other optimizers with these variables. ditto_read still returns the address.
 *
 *  A function that returns without an error before it has called ditto_apply_finish fails with
 *  DITTO_ERR_INVALID. A function that fails while a step is open must return ditto_abandon(self, status) if
 *  its gradients are local arrays. After a run that failed, the step is given up, and the values of its
 *  variables are unspecified.
 *
 *  @param self           the calling replica
 *  @param optimizer      the optimizer
 *  @param first          index of the first variable of the part in the optimizer's list
 *  @param num_variables  number of variables of the part, at least 1
 *  @param gradients      [num_variables] this replica's gradients. The array itself is copied
 *  @param options        NULL for the defaults. The learning rate must be the same for all parts of a step.
 *                        norm must be NULL
 *  @return DITTO_OK, an error of ditto_apply or of ditto_all_reduce_start, or one of:
 *  @retval DITTO_ERR_INVALID    a variable was given to this step before, or to an open step of another
 *                               optimizer; the learning rate is not that of the step; options->norm is set
 *  @retval DITTO_ERR_RANGE      the optimizer has no such variables; DITTO_MAX_PENDING operations have been
 *                               started from the oldest pending one on that is not a part of a step
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the list of parts, which is kept until the optimizer
 *                               is destroyed
 *  @par Cost
 *  As ditto_all_reduce_start. If the replica has started DITTO_MAX_PENDING operations since its oldest part,
 *  the next start of any operation waits for this part first. */
DITTO_API DITTO_NODISCARD ditto_status ditto_apply_start(ditto_replica *self, ditto_optimizer *optimizer,
                                                         uint32_t first, uint32_t num_variables,
                                                         const ditto_tensor *gradients,
                                                         const ditto_apply_options *options);

/** Finishes a step whose parts were started with ditto_apply_start. When it returns DITTO_OK, the step is
 *  made as by ditto_apply. The call is collective, and is made in replica context.
 *
 *  @param self       the calling replica
 *  @param optimizer  the optimizer
 *  @param options    NULL, or options with `norm`. The learning rate must not be set
 *  @return DITTO_OK, an error of ditto_apply, or:
 *  @retval DITTO_ERR_INVALID  no step was started in this run, or not all variables were given to it;
 *                             options->learning_rate is set
 *  @par Cost
 *  Waits for the parts, and works on them. With DITTO_RULE_FUNCTION it costs as much as ditto_apply. With
 *  clip_norm there are four more meetings, and for the norm without clipping two. */
DITTO_API DITTO_NODISCARD ditto_status ditto_apply_finish(ditto_replica *self, ditto_optimizer *optimizer,
                                                          const ditto_apply_options *options);

/** @} */

DITTO_END
#endif
