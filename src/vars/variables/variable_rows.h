/* src/vars/variables/variable_rows.h - indexed updates and lookup of single rows of a variable. The callers
 * have checked the arguments. */
#ifndef DTI_VARIABLE_ROWS_H
#define DTI_VARIABLE_ROWS_H

#include <ditto/slices.h>
#include <ditto/variable.h>

#include "replicas/team/replica.h"
#include "vars/elements/elements.h"

/* Changes rows of a variable by the slices of all replicas, or of replica 0 if the variable aggregates by
 * ONLY_FIRST_REPLICA. Collective. `rule` has passed dti_rule_check. */
ditto_status dti_scatter_in_replica(struct dti_replica *self, ditto_variable *v, enum dti_rule rule,
                                    const ditto_slices *slices);

/* Changes rows of all copies of a variable by one list of slices. Cross context. */
ditto_status dti_scatter_cross(ditto_variable *v, enum dti_rule rule, const ditto_slices *slices);

/* Changes rows of the copy of one replica only. Called in the user's function of an update. */
ditto_status dti_scatter_copy(ditto_variable *v, uint32_t replica, enum dti_rule rule,
                              const ditto_slices *slices);

/* Returns DITTO_ERR_RANGE if an index is not a row of the variable. */
ditto_status dti_rows_check(const ditto_variable *v, const int64_t *indices, size_t count);

/* Copies row indices[k] of the copy nearest to `replica` to rows[k]. Returns DITTO_ERR_RANGE, and writes
 * nothing, if an index is not a row of the variable. */
ditto_status dti_lookup(const ditto_variable *v, uint32_t replica, const int64_t *indices, size_t count,
                        void *rows);

#endif
