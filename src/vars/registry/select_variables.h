/* src/vars/registry/select_variables.h - selects the variables that a call of the companion library works
 * on. */
#ifndef DTI_SELECT_VARIABLES_H
#define DTI_SELECT_VARIABLES_H

#include <ditto/variable.h>

#include "base/platform.h"
#include "base/waiting/gate.h"

/* Lists the chosen variables, or all variables of the strategy if `chosen` is NULL. None of them can be
 * destroyed before the caller leaves the gates in `held`. The caller frees *out, an array of *count pointers.
 * Returns DITTO_ERR_CONTEXT if a variable belongs to another strategy, or if the calling thread may not wait
 * for the turn. Other errors are DITTO_ERR_NO_MEMORY, DITTO_ERR_FORKED and DITTO_ERR_POISONED. */
DTI_COMPANION ditto_status dti_select_variables(ditto_strategy *strategy, ditto_variable *const *chosen,
                                                size_t chosen_count, ditto_variable ***out, size_t *count,
                                                struct dti_gates *held);

#endif
