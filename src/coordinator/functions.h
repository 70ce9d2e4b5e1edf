/* src/coordinator/functions.h - the functions that are registered under names, in this process. */
#ifndef DTI_FUNCTIONS_H
#define DTI_FUNCTIONS_H

#include <ditto/coordinator.h>

#include "base/platform.h"

/* An entry of the registry. It is never freed and its function never changes, so that functions in queues may
 * refer to it. */
struct dti_function {
    struct dti_function *next;
    ditto_replica_fn call;
    void *user;
    _Atomic bool is_registered;
    char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1];
};

/* Returns the registered function of this name, or NULL. Any thread. */
const struct dti_function *dti_function_find(const char *name);

ditto_status dti_function_register(const char *name, ditto_replica_fn call, void *user);
ditto_status dti_function_unregister(const char *name);

/* Returns NOT_FOUND, and lists the names of the registered functions. */
ditto_status dti_fail_no_function(const char *name);

#endif
