/* src/vars/rule.h - how a value changes an old one: assign, add, subtract. Pure. */
#ifndef DTI_RULE_H
#define DTI_RULE_H

#include <ditto/dtype.h>

enum dti_rule { DTI_ASSIGN, DTI_ADD, DTI_SUB };

/* UNSUPPORTED when the dtype has no such arithmetic. */
ditto_status dti_rule_check(enum dti_rule rule, ditto_dtype dtype);
/* new[i] = rule(old[i], value[i]); `new` may be `old`. The pair must have passed dti_rule_check. */
void dti_rule_apply(enum dti_rule rule, ditto_dtype dtype, void *new, const void *old, const void *value, size_t count);

#endif
