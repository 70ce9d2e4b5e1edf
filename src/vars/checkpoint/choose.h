/* src/vars/checkpoint/choose.h - which variables are meant. */
#ifndef DTI_CHOOSE_VARIABLES_H
#define DTI_CHOOSE_VARIABLES_H

#include <ditto/variable.h>

/* Those that were chosen, or, of NULL, all that the strategy has. *out [count]: free it.
 * CONTEXT: one of another strategy. NO_MEMORY; and what ditto_strategy_variables gives. */
ditto_status dti_choose_variables(ditto_strategy *strategy, ditto_variable *const *chosen, size_t chosen_count,
                                  ditto_variable ***out, size_t *count);

#endif
