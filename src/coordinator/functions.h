/* src/coordinator/functions.h - the functions that are registered under names, in this process. */
#ifndef DTI_FUNCTIONS_H
#define DTI_FUNCTIONS_H

#include <ditto/coordinator.h>

#include "base/platform.h"

/* A registered function. Functions in queues are copies, so the registry keeps nothing of a function that was
 * unregistered. */
struct dti_function {
    ditto_replica_fn call;
    void *user;
    char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1];
};

/* Any thread. A fork waits for these calls of other threads. */

/* Copies the registered function of this name. Returns NOT_FOUND, and lists the names of the registered
 * functions. */
ditto_status dti_function_find(const char *name, struct dti_function *out);
ditto_status dti_function_register(const char *name, ditto_replica_fn call, void *user);
ditto_status dti_function_unregister(const char *name);

#endif
