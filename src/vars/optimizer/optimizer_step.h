/* src/vars/optimizer/optimizer_step.h - one step of a rule on a range of elements. Pure; runs in the default floating-point environment. */
#ifndef DTI_OPTIMIZER_STEP_H
#define DTI_OPTIMIZER_STEP_H

#include <ditto/optimizer.h>
#include <ditto/strategy.h> /* ditto_kernels */

struct dti_optimizer_step;
/* new = the rule's value of old and range->gradient; of decay: of old. `new` may be `old` or the gradient. */
typedef void dti_optimizer_loop(const struct dti_optimizer_step *step, const ditto_rule_range *range,
                                const void *old, void *new);
struct dti_optimizer_loops { /* of f32, f64 */
    dti_optimizer_loop *descend[2], *momentum[2], *nesterov[2], *adapt[2], *decay[2];
};
/* NULL: this build does not have them. The processor is not asked. */
const struct dti_optimizer_loops *dti_optimizer_loops_of(ditto_kernels which);

/* A rule with its numbers, for one step. */
struct dti_optimizer_step {
    const ditto_optimizer_options *options;
    const struct dti_optimizer_loops *loops;
    double learning_rate;
    int64_t number;       /* 1 in the first step */
    double rate1, scale2; /* ADAM: learning_rate / (1 - beta1^t), 1 / sqrt(1 - beta2^t) */
};
struct dti_optimizer_step dti_optimizer_step_of(const ditto_optimizer_options *options, double learning_rate,
                                                int64_t number);

/* UNSUPPORTED. */
ditto_status dti_optimizer_rule_check(ditto_rule rule, ditto_dtype dtype);
/* Names of the rule's slots, NULL after the last one. */
#define DTI_OPTIMIZER_SLOT_NAMES (DITTO_MAX_SLOTS + 1)
void dti_optimizer_rule_slots(const ditto_optimizer_options *options,
                              const char *name[DTI_OPTIMIZER_SLOT_NAMES]);

/* new = the rule's value. `new` may be `old` or range->gradient. */
void dti_optimizer_step_apply(const struct dti_optimizer_step *step, const ditto_rule_range *range,
                              const void *old, void *new);

#endif
