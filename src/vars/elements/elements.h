/* src/vars/elements/elements.h - how a value changes an old one, elementwise. Pure; runs in the default floating-point environment. */
#ifndef DTI_ELEMENTS_H
#define DTI_ELEMENTS_H

#include <ditto/dtype.h>

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

enum dti_rule {
    DTI_RULE_ASSIGN,
    DTI_RULE_ADD,
    DTI_RULE_SUB,
    DTI_RULE_MUL,
    DTI_RULE_DIV,
    DTI_RULE_MIN,
    DTI_RULE_MAX
};

const char *dti_rule_name(enum dti_rule rule); /* "addition" */
/* UNSUPPORTED when the dtype has no such arithmetic. */
ditto_status dti_rule_check(enum dti_rule rule, ditto_dtype dtype);
/* new[i] = rule(old[i], value[i]); `new` may be `old` or `value`. The pair must have passed dti_rule_check. Integers wrap; an integer
 * divided by 0 is 0: who calls looks for those before (dti_has_integer_zero). */
void dti_rule_apply(enum dti_rule rule, ditto_dtype dtype, void *new, const void *old, const void *value,
                    size_t count);
bool dti_has_integer_zero(ditto_dtype dtype, const void *value,
                          size_t count); /* false for what is no integer */

/* One value in n parts that add up to it. Pure; runs in the default floating-point environment. */

/* part[k] = part i of value[k]: floating value / n (the sum may differ in the last place); integers in equal parts, the
 * remainder one each to the first, so that the sum is exact. Of a dtype that has a SUM; `part` does not overlap `value`. */
void dti_spread_part(ditto_dtype dtype, const void *value, uint32_t i, uint32_t n, void *part, size_t count);

/* Quotients of complex numbers. Pure; runs in the default floating-point
 * environment. */

/* new[i] = old[i] / given[i] for `count` complex numbers, each two parts of f32 (c64) or f64 (c128). `new`
 * may be `old` or `given`. */
void dti_quotient_c64(void *new, const void *old, const void *given, size_t count);
void dti_quotient_c128(void *new, const void *old, const void *given, size_t count);

#endif
