/* src/strategy/look.h - what can be seen of a value. The value is checked already, and the variables that it
 * refers to are held wherever its contents are looked at (dti_value_hold_variables). */
#ifndef DTI_LOOK_H
#define DTI_LOOK_H

#include "strategy/strategy.h"

/* -- Any context -- */
ditto_status dti_look_component(const ditto_value *value, uint32_t replica, ditto_tensor *out);
ditto_status dti_look_tensor(const ditto_value *value, ditto_tensor *out);
ditto_status dti_look_spec(const ditto_value *value, ditto_tensor *out);

/* -- Cross context -- */
ditto_status dti_look_select(ditto_value *value, uint32_t replica, ditto_value **out);
/* A plain value that is `part` of a container. */
ditto_status dti_look_taken(ditto_value *container, uint32_t replica, const ditto_tensor *part, ditto_value **out);
ditto_status dti_look_local_results(ditto_value *value, ditto_value **out, uint32_t *count);

#endif
