/* include/ditto/optimizer.h - many variables updated from the replicas' gradients, in one pass over memory.
 *
 * ditto_apply adds up the replicas' gradients and updates the variables with the result: the replica that reduces an element also
 * updates it, and writes it to every copy. So nobody keeps a reduced gradient, no replica repeats the arithmetic, and what a rule
 * remembers for an element (its *slots*: momentum, moments) exists once in the host, near the replica that updates the element.
 * Slots are variables called "<optimizer>/<slot>/<variable>", the number of steps is "<optimizer>/iterations" (i64): they are
 * saved and restored like all others (ditto/checkpoint.h), with any number of replicas. docs/semantics.md. */
#ifndef DITTO_OPTIMIZER_H
#define DITTO_OPTIMIZER_H

#include <ditto/collective.h>
#include <ditto/variable.h>

DITTO_BEGIN

typedef struct ditto_optimizer ditto_optimizer;

/** What becomes of a value x whose gradient, over all replicas, is g. In the variable's dtype, each operation rounded, nothing
 *  fused: the same bits for any placement, and after a restore. */
typedef enum ditto_rule {
    DITTO_RULE_ASSIGN = 1, /**< x = g */
    DITTO_RULE_ADD = 2,    /**< x = x + g */
    DITTO_RULE_SUB = 3,    /**< x = x - g */
    /** m = momentum m - rate g;  x = x + m, with Nesterov's variant x = x + (momentum m - rate g); before that x = x - rate decay x.
     *  Slot "momentum", none if that is 0. Sutskever, Martens, Dahl, Hinton, ICML 2013; f32 and f64 */
    DITTO_RULE_SGD = 4,
    /** m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g g;  x = x - rate decay x - rate / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + epsilon),
     *  t counting steps from 1. Slots "m", "v". Kingma, Ba, ICLR 2015; decay: Loshchilov, Hutter, ICLR 2019; f32 and f64 */
    DITTO_RULE_ADAM = 5,
    DITTO_RULE_FUNCTION = 6, /**< options->function */
} ditto_rule;

#define DITTO_MAX_SLOTS 4

/** A range of one variable's elements, for a rule of one's own. */
typedef struct ditto_rule_range {
    uint32_t variable;           /**< its number in the optimizer's list */
    ditto_dtype dtype;           /**< of all arrays */
    size_t first, count;         /**< elements of the variable */
    const void *gradient;        /**< [count] over all replicas, clipped */
    void *value;                 /**< [count] in: the old one, out: the new one */
    void *slot[DITTO_MAX_SLOTS]; /**< [count] each, in and out; zeros at first */
    double learning_rate;
    int64_t step; /**< 1 in the first call */
} ditto_rule_range;

/** Called on the thread of any replica, not of a helper, several times at once on different ranges. How the
 *  elements are cut into ranges is not specified, so each element must be updated by itself. A variable whose
 *  components may differ is updated copy by copy: the function is called for each copy, with that copy's values
 *  and the same gradient, and finds the slots as they were before the step. The slots that the call for
 *  replica 0's copy leaves are kept. The function calls nothing of ditto: a collective gives CONTEXT in it. If
 *  it takes longer than the limits, the other replicas return with TIMED_OUT. */
typedef void (*ditto_rule_fn)(const ditto_rule_range *range, void *user);

typedef struct ditto_optimizer_options {
    size_t struct_size; /**< set by DITTO_OPTIMIZER_OPTIONS_INIT */
    const char *name;   /**< copied; NULL: "optimizer". No other optimizer of the strategy has it */
    ditto_rule rule;
    ditto_op aggregation; /**< of the replicas' gradients: DITTO_SUM (default) or DITTO_MEAN */
    /** SGD, ADAM, FUNCTION. 0 means the default, 0.01 for SGD and 0.001 for the others, unless
     *  has_learning_rate is set. */
    double learning_rate;
    double momentum; /**< SGD; 0: none */
    int nesterov;    /**< SGD with momentum */
    /** ADAM. 0 means the default, 0.9 and 0.999, unless has_beta1 or has_beta2 is set. */
    double beta1, beta2;
    /** ADAM. 0 means the default, 1e-8, unless has_epsilon is set. */
    double epsilon;
    double weight_decay; /**< SGD, ADAM: decoupled from the gradient; 0: none */
    /** Not 0: gradients are scaled by clip_norm / norm where the norm over all elements of all variables, the root of the sum of the
     *  squares of the aggregated gradient, is larger. Pascanu, Mikolov, Bengio, ICML 2013 */
    double clip_norm;
    ditto_rule_fn function;
    void *user;
    uint32_t slots; /**< FUNCTION: how many, at most DITTO_MAX_SLOTS, called "slot0" and so on */
    /** Not 0: the number is meant as it stands, also if it is 0. */
    int has_learning_rate, has_beta1, has_beta2, has_epsilon;
} ditto_optimizer_options;
#define DITTO_OPTIMIZER_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_optimizer_options)

/* -- Cross-replica context: errors as in strategy.h -- */

/** @param variables  [count] mirrored ones of one strategy, each once; they stay the caller's, and until the optimizer is destroyed
 *                    ditto_variable_destroy of them is BUSY. Trainable or not does not matter here
 *  @param out        the caller's, to be given to ditto_optimizer_destroy; set only on DITTO_OK
 *  @retval DITTO_ERR_INVALID      NULL; no variables; one twice; a sync-on-read one; FUNCTION without a
 *                                 function; the strategy has an optimizer of this name
 *  @retval DITTO_ERR_RANGE        an unknown rule or aggregation; a number that is negative, not finite, or 1 or more where that has
 *                                 no meaning (momentum, betas); more than DITTO_MAX_SLOTS
 *  @retval DITTO_ERR_UNSUPPORTED  a dtype that the rule, or MEAN, or clipping does not have; variables of more than one dtype with
 *                                 clipping
 *  @retval DITTO_ERR_CONTEXT      variables of more than one strategy
 *  @retval DITTO_ERR_NO_MEMORY    Clipping keeps one more array of the gradients' size, as slots are kept */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_create(ditto_variable *const *variables,
                                                              uint32_t count,
                                                              const ditto_optimizer_options *options,
                                                              ditto_optimizer **out);
/** With its slots. NULL is allowed; also after its strategy was destroyed.
 *  @retval DITTO_ERR_CONTEXT  on a replica's thread; nothing was done
 *  @retval DITTO_ERR_BUSY     another thread is in a call on it or on one of its slots, such as a save or a restore
 *                             of the slot; nothing was done */
DITTO_API ditto_status ditto_optimizer_destroy(ditto_optimizer *optimizer);
/** A slot of the k-th variable, as a variable: to be read, assigned, saved. It stays the optimizer's.
 *  @retval DITTO_ERR_NOT_FOUND  no such slot: the message lists those that there are. RANGE: no such variable */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_slot(ditto_optimizer *optimizer, uint32_t variable,
                                                            const char *slot, ditto_variable **out);
/** The number of steps so far, as a variable: i64, a scalar (steps of variables that have no elements are not counted). It stays the optimizer's. @retval DITTO_ERR_INVALID  NULL */
DITTO_API DITTO_NODISCARD ditto_status ditto_optimizer_iterations(ditto_optimizer *optimizer,
                                                                  ditto_variable **out);

/* -- Replica context -- */

typedef struct ditto_apply_options {
    size_t struct_size; /**< set by DITTO_APPLY_OPTIONS_INIT */
    /** Of this step, equal on all replicas. 0 means the optimizer's, unless has_learning_rate is set. */
    double learning_rate;
    /** [out] The norm of the aggregated gradients of all variables, before clipping: the same bits on all
     *  replicas, with and without clip_norm. NULL if it is not wanted. Without clip_norm either all replicas
     *  ask for it or none does. */
    double *norm;
    /** Not 0: learning_rate is meant as it stands, also if it is 0. */
    int has_learning_rate;
} ditto_apply_options;
#define DITTO_APPLY_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_apply_options)

/** One step: collective. When it returns DITTO_OK every copy of every variable has its new value, and all replicas see it.
 *  @param gradients  [count of variables] this replica's, each of its variable's dtype and shape; no overlap with variables
 *  @param options    NULL: the optimizer's
 *  @retval DITTO_ERR_SHAPE    a gradient's shape is not its variable's; INVALID: its dtype, NULL
 *  @retval DITTO_ERR_CONTEXT  an optimizer of another strategy; its strategy was destroyed
 *  @retval DITTO_ERR_DIVERGED other optimizers, or other learning rates; without clip_norm: some replicas ask
 *                             for the norm, and others do not
 *  @retval DITTO_ERR_UNSUPPORTED  the norm of gradients that are neither f32 nor f64
 *  @retval as ditto_all_reduce; then the variables' values are unspecified
 *  Cost    two meetings for all variables together; each gradient is read once, each value and slot read once
 *          and written once (values once per copy). With clipping six meetings, and the aggregated gradient
 *          is written and read twice more. For the norm without clipping four meetings, and all gradients are
 *          read once more. */
DITTO_API DITTO_NODISCARD ditto_status ditto_apply(ditto_replica *self, ditto_optimizer *optimizer,
                                                   const ditto_tensor *gradients,
                                                   const ditto_apply_options *options);

DITTO_END
#endif
