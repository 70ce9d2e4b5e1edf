/* src/strategy/assign.h - a variable written from a distributed value. */
#ifndef DTI_ASSIGN_VALUE_H
#define DTI_ASSIGN_VALUE_H

#include "strategy/strategy.h"

/* Cross context; the variable and those of the value are held, and all are of one strategy. */
ditto_status dti_assign_value(ditto_variable *v, enum dti_rule rule, const ditto_value *value);

#endif
