/* src/vars/registry/select_variables.h - selects the variables that a call of libditto-hdf5 works on. */
#ifndef DTI_SELECT_VARIABLES_H
#define DTI_SELECT_VARIABLES_H

#include <ditto/variable.h>

#include "base/platform.h"
#include "base/waiting/gate.h"

/* Lists the chosen variables, or all variables of the strategy if `chosen` is NULL. If this call or the cross
 * call directly around it took the turn, it enters the gates of the variables, and none of them can be
 * destroyed before the caller leaves the gates in `held`. Inside a run it enters none, and the turn of the
 * run protects the variables. After an error, `held` may contain gates, which the caller leaves too. The
 * caller frees *out, an array of *count pointers. Returns DITTO_ERR_CONTEXT if a variable belongs to another
 * strategy, or if the calling thread may not make a cross call. Other errors are DITTO_ERR_NO_MEMORY,
 * DITTO_ERR_FORKED and DITTO_ERR_POISONED. */
DTI_COMPANION ditto_status dti_select_variables(ditto_strategy *strategy, ditto_variable *const *chosen,
                                                size_t chosen_count, ditto_variable ***out, size_t *count,
                                                struct dti_gates *held);

#endif
