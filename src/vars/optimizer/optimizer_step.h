/* src/vars/optimizer/optimizer_step.h - one step of a rule on a range of elements. All functions are pure,
 * and must be called in the default floating-point environment. */
#ifndef DTI_OPTIMIZER_STEP_H
#define DTI_OPTIMIZER_STEP_H

#include <ditto/optimizer.h>

struct dti_optimizer_step;

/* Computes `new` from `old` and range->gradient by the rule, and updates the rule's slots. The loop for
 * weight decay uses only `old`. `new` may be `old` or the gradient. */
typedef void dti_optimizer_loop(const struct dti_optimizer_step *step, const ditto_rule_range *range,
                                const void *old, void *new);

/* The loops of one instruction set. Index 0 is for f32, index 1 for f64. */
struct dti_optimizer_loops {
    dti_optimizer_loop *descend[2], *momentum[2], *nesterov[2], *adapt[2], *decay[2];
};

/* Returns the loops of an instruction set, or NULL if this build does not contain them. Does not check
 * whether the processor supports the instructions. */
const struct dti_optimizer_loops *dti_optimizer_loops_of(ditto_kernels which);

/* A rule and its parameters for one step. */
struct dti_optimizer_step {
    const ditto_optimizer_options *options;
    const struct dti_optimizer_loops *loops;
    double learning_rate, weight_decay;
    int64_t number;     /* 1 in the first step */
    double correction1; /* for Adam: 1 - beta1^number, otherwise 1 */
    double rate1;       /* learning_rate / correction1 */
    double scale2;      /* for Adam: 1 / sqrt(1 - beta2^number) */
};

/* Computes the parameters of step `number`. */
struct dti_optimizer_step dti_optimizer_step_of(const ditto_optimizer_options *options, double learning_rate,
                                                int64_t number);

/* Returns the same step with the learning rate and decay of one variable. */
struct dti_optimizer_step dti_optimizer_step_with(const struct dti_optimizer_step *step, double rate_factor,
                                                  double weight_decay);

/* Returns DITTO_ERR_UNSUPPORTED if the rule cannot update variables of the dtype. */
ditto_status dti_optimizer_rule_check(ditto_rule rule, ditto_dtype dtype);

#define DTI_OPTIMIZER_SLOT_NAMES (DITTO_MAX_OPTIMIZER_SLOTS + 1)

/* Stores the names of the rule's slots, followed by NULL. */
void dti_optimizer_rule_slots(const ditto_optimizer_options *options,
                              const char *name[DTI_OPTIMIZER_SLOT_NAMES]);

/* Returns the part of a range that begins at its element `at` and has at most `most` elements. */
ditto_rule_range dti_rule_range_part(const ditto_rule_range *range, size_t at, size_t most);

/* Computes `new` from `old` and range->gradient by the rule, and updates the slots. `new` may be `old` or
 * range->gradient. */
void dti_optimizer_step_apply(const struct dti_optimizer_step *step, const ditto_rule_range *range,
                              const void *old, void *new);

#endif
