/* src/vars/rule.h - how a value changes an old one, elementwise. Pure; runs in the default floating-point environment. */
#ifndef DTI_RULE_H
#define DTI_RULE_H

#include <ditto/dtype.h>

#include <stdbool.h>

enum dti_rule { DTI_ASSIGN, DTI_ADD, DTI_SUB, DTI_MUL, DTI_DIV, DTI_MIN, DTI_MAX };

const char *dti_rule_name(enum dti_rule rule); /* "addition" */
/* UNSUPPORTED when the dtype has no such arithmetic. */
ditto_status dti_rule_check(enum dti_rule rule, ditto_dtype dtype);
/* new[i] = rule(old[i], value[i]); `new` may be `old` or `value`. The pair must have passed dti_rule_check. Integers wrap; an integer
 * divided by 0 is 0: who calls looks for those before (dti_has_integer_zero). */
void dti_rule_apply(enum dti_rule rule, ditto_dtype dtype, void *new, const void *old, const void *value, size_t count);
bool dti_has_integer_zero(ditto_dtype dtype, const void *value, size_t count); /* false for what is no integer */

#endif
