/* src/vars/variables/variable.h - single rows of a variable: indexed updates, and lookup. */
#ifndef DTI_VARIABLE_H
#define DTI_VARIABLE_H

#include <ditto/slices.h>

#include "vars/vars.h"

/* Slices that change a variable; `rule` is one that has passed dti_rule_check. Arguments are checked by whoever calls. */
ditto_status dti_scatter_in_replica(struct dti_replica *self, ditto_variable *v, enum dti_rule rule,
                                    const ditto_slices *slices);
ditto_status dti_scatter_cross(ditto_variable *v, enum dti_rule rule, const ditto_slices *slices);
/* In the function of an update: the copy of that replica alone. */
ditto_status dti_scatter_copy(ditto_variable *v, uint32_t replica, enum dti_rule rule,
                              const ditto_slices *slices);

/* rows[k] = row indices[k] of the copy nearest to `replica`. RANGE: an index; nothing is written then. */
ditto_status dti_lookup(const ditto_variable *v, uint32_t replica, const int64_t *indices, size_t count,
                        void *rows);

#endif
