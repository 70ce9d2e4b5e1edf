/* src/vars/optimizer/optimizer_step.c - steps of ditto/optimizer.h's rules. The loops over elements are in
 * optimizer_loops.c. */
#include "vars/optimizer/optimizer_step.h"
#include "base/errors/user_call.h"
#include "base/numbers/elementary.h"
#include "sync/kernels/kernel.h"
#include "vars/elements/elements.h"

#include <math.h>
#include <stdalign.h>
#include <string.h>

extern const struct dti_optimizer_loops dti_optimizer_loops_portable;
#if defined(DTI_HAVE_X86_KERNELS)
extern const struct dti_optimizer_loops dti_optimizer_loops_avx2, dti_optimizer_loops_avx512;
#endif

const struct dti_optimizer_loops *dti_optimizer_loops_of(ditto_kernels which)
{
#if defined(DTI_HAVE_X86_KERNELS)
    if (which == DITTO_KERNELS_AVX2)
        return &dti_optimizer_loops_avx2;
    if (which == DITTO_KERNELS_AVX512)
        return &dti_optimizer_loops_avx512;
#endif
    return which == DITTO_KERNELS_PORTABLE ? &dti_optimizer_loops_portable : NULL;
}

struct dti_optimizer_step dti_optimizer_step_of(const ditto_optimizer_options *options, double learning_rate,
                                                int64_t number)
{
    struct dti_optimizer_step step = { .options = options,
                                       .loops = dti_optimizer_loops_of(dti_kernels_best_set()),
                                       .learning_rate = learning_rate,
                                       .number = number,
                                       .correction1 = 1 };
    if (options->rule == DITTO_RULE_ADAM) {
        step.correction1 = 1 - dti_power(options->beta1, (uint64_t)number);
        step.scale2 = 1 / sqrt(1 - dti_power(options->beta2, (uint64_t)number));
    }
    return dti_optimizer_step_with(&step, 1, options->weight_decay);
}

struct dti_optimizer_step dti_optimizer_step_with(const struct dti_optimizer_step *step, double rate_factor,
                                                  double weight_decay)
{
    struct dti_optimizer_step own = *step;
    own.learning_rate = step->learning_rate * rate_factor;
    own.rate1 = own.learning_rate / step->correction1;
    own.weight_decay = weight_decay;
    return own;
}

ditto_status dti_optimizer_rule_check(ditto_rule rule, ditto_dtype dtype)
{
    if (rule == DITTO_RULE_ADD || rule == DITTO_RULE_SUB)
        return dti_rule_check(rule == DITTO_RULE_ADD ? DTI_RULE_ADD : DTI_RULE_SUB, dtype);
    if ((rule == DITTO_RULE_SGD || rule == DITTO_RULE_ADAM) && dtype != DITTO_F32 && dtype != DITTO_F64)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s of variables of %s: it supports only f32 and f64",
                        rule == DITTO_RULE_SGD ? "SGD" : "Adam", ditto_dtype_name(dtype));
    return DITTO_OK;
}

void dti_optimizer_rule_slots(const ditto_optimizer_options *o, const char *name[DTI_OPTIMIZER_SLOT_NAMES])
{
    static const char *const slot_name[DITTO_MAX_OPTIMIZER_SLOTS] = { "slot0", "slot1", "slot2", "slot3" };
    uint32_t slots = 0;
    if (o->rule == DITTO_RULE_SGD && o->momentum != 0)
        name[slots++] = "momentum";
    if (o->rule == DITTO_RULE_ADAM) {
        name[slots++] = "m";
        name[slots++] = "v";
    }
    for (uint32_t i = 0; o->rule == DITTO_RULE_FUNCTION && i < o->num_slots; i++)
        name[slots++] = slot_name[i];
    name[slots] = NULL;
}

ditto_rule_range dti_rule_range_part(const ditto_rule_range *range, size_t at, size_t most)
{
    ditto_rule_range part = *range;
    size_t offset = at * ditto_dtype_bytes(range->dtype);
    part.first += at;
    part.count = range->count - at < most ? range->count - at : most;
    part.gradient = (const char *)range->gradient + offset;
    for (uint32_t k = 0; k < DITTO_MAX_OPTIMIZER_SLOTS && part.slot[k] != NULL; k++)
        part.slot[k] = (char *)part.slot[k] + offset;
    return part;
}

/* The bytes of values that are processed at once, so that they stay in the cache together with the
 * gradient. */
#define PART_BYTES 1024

/* Calls the user's function on each part of the range. The function changes values in place, so they are
 * copied to a buffer first. `new` may be the gradient. */
static DTI_GUARDED void call_function(const struct dti_optimizer_step *s, const ditto_rule_range *range,
                                      const void *old, void *new)
{
    alignas(DTI_CACHE_LINE) char value[PART_BYTES];
    size_t element_bytes = ditto_dtype_bytes(range->dtype), part_count = sizeof value / element_bytes;
    for (size_t at = 0; at < range->count; at += part_count) {
        ditto_rule_range part = dti_rule_range_part(range, at, part_count);
        part.value = value;
        part.learning_rate = s->learning_rate;
        memcpy(value, (const char *)old + at * element_bytes, part.count * element_bytes);
        DTI_GUARD("the function of an optimizer's own rule");
        s->options->function(&part, s->options->user);
        DTI_GUARD_END();
        memcpy((char *)new + at *element_bytes, value, part.count * element_bytes);
    }
}

static dti_optimizer_loop *loop_of(const struct dti_optimizer_step *s, ditto_dtype dtype)
{
    const ditto_optimizer_options *o = s->options;
    dti_optimizer_loop *const *loops = o->rule == DITTO_RULE_ADAM ? s->loops->adapt
                                       : o->momentum == 0         ? s->loops->descend
                                       : o->nesterov              ? s->loops->nesterov
                                                                  : s->loops->momentum;
    return loops[dtype == DITTO_F64];
}

/* Applies weight decay and then the rule to the decayed values, in parts that stay in the cache together with
 * the gradient. */
static void decay_and_step(const struct dti_optimizer_step *s, const ditto_rule_range *range, const void *old,
                           void *new)
{
    alignas(DTI_CACHE_LINE) char decayed[PART_BYTES];
    size_t element_bytes = ditto_dtype_bytes(range->dtype), part_count = sizeof decayed / element_bytes;
    for (size_t at = 0; at < range->count; at += part_count) {
        ditto_rule_range part = dti_rule_range_part(range, at, part_count);
        s->loops->decay[range->dtype == DITTO_F64](s, &part, (const char *)old + at * element_bytes, decayed);
        loop_of(s, range->dtype)(s, &part, decayed, (char *)new + at *element_bytes);
    }
}

void dti_optimizer_step_apply(const struct dti_optimizer_step *s, const ditto_rule_range *range,
                              const void *old, void *new)
{
    switch (s->options->rule) {
    case DITTO_RULE_ASSIGN:
        dti_rule_apply(DTI_RULE_ASSIGN, range->dtype, new, old, range->gradient, range->count);
        break;
    case DITTO_RULE_ADD:
        dti_rule_apply(DTI_RULE_ADD, range->dtype, new, old, range->gradient, range->count);
        break;
    case DITTO_RULE_SUB:
        dti_rule_apply(DTI_RULE_SUB, range->dtype, new, old, range->gradient, range->count);
        break;
    case DITTO_RULE_SGD:
    case DITTO_RULE_ADAM:
        if (s->weight_decay != 0)
            decay_and_step(s, range, old, new);
        else
            loop_of(s, range->dtype)(s, range, old, new);
        break;
    case DITTO_RULE_FUNCTION:
        call_function(s, range, old, new);
        break;
    }
}
