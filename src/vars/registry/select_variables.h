/* src/vars/registry/select_variables.h - the variables that a call of the library beside this one works on. */
#ifndef DTI_SELECT_VARIABLES_H
#define DTI_SELECT_VARIABLES_H

#include <ditto/variable.h>

#include "base/base.h"

/* The variables that were chosen, or, if `chosen` is NULL, all that the strategy has. None of them is
 * destroyed before the caller leaves the gates. *out [count] is the caller's, to be freed.
 * CONTEXT: one is of another strategy, or the calling thread may not wait for the turn. NO_MEMORY, FORKED,
 * POISONED. */
DTI_COMPANION ditto_status dti_select_variables(ditto_strategy *strategy, ditto_variable *const *chosen,
                                                size_t chosen_count, ditto_variable ***out, size_t *count,
                                                struct dti_gates *held);

#endif
