/* src/vars/checkpoint/nested.h - public functions that are called on behalf of another public function. */
#ifndef DTI_NESTED_H
#define DTI_NESTED_H

#include "base/base.h"

/* After such a call: errors to come, and the one that it may have left, name `function` again. */
static inline ditto_status dti_on_behalf_of(const char *function, ditto_status status)
{
    dti_public_function = function;
    if (status != DITTO_OK) {
        ditto_error error = *dti_error_get();
        error.function = function;
        dti_error_set(&error);
    }
    return status;
}

#endif
