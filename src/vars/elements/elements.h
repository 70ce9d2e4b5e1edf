/* src/vars/elements/elements.h - elementwise arithmetic of variables. All functions are pure. They must be
 * called in the default floating-point environment. */
#ifndef DTI_ELEMENTS_H
#define DTI_ELEMENTS_H

#include <ditto/dtype.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dti_rule {
    DTI_RULE_ASSIGN,
    DTI_RULE_ADD,
    DTI_RULE_SUB,
    DTI_RULE_MUL,
    DTI_RULE_DIV,
    DTI_RULE_MIN,
    DTI_RULE_MAX
};

/* Returns DITTO_ERR_UNSUPPORTED if the dtype does not have this arithmetic. */
ditto_status dti_rule_check(enum dti_rule rule, ditto_dtype dtype);

/* Computes new[i] = rule(old[i], value[i]). `new` may be `old` or `value`. The rule and the dtype must have
 * passed dti_rule_check. Integers wrap. An integer divided by 0 gives 0, so a caller that must refuse such a
 * division calls dti_has_integer_zero first. */
void dti_rule_apply(enum dti_rule rule, ditto_dtype dtype, void *new, const void *old, const void *value,
                    size_t count);

/* Returns true if one of the values is an integer zero. Returns false if the dtype is floating or complex. */
bool dti_has_integer_zero(ditto_dtype dtype, const void *value, size_t count);

/* Computes part i of n of each value, so that the n parts of a value add up to it. A floating-point part is
 * value[k] / n, so the sum may differ from the value in the last place. Integer parts are equal, but the
 * magnitude of each of the first parts is larger by one until the remainder is used up, so the sum is exact.
 * The dtype must have a SUM. `part` must not overlap `value`. */
void dti_spread_part(ditto_dtype dtype, const void *value, uint32_t i, uint32_t n, void *part, size_t count);

/* Compute new[i] = old[i] / given[i] for `count` complex numbers. Each number has two parts, of f32 (c64) or
 * f64 (c128). `new` may be `old` or `given`. */
void dti_quotient_c64(void *new, const void *old, const void *given, size_t count);
void dti_quotient_c128(void *new, const void *old, const void *given, size_t count);

#endif
