/* src/strategy/merge/merge.h - merge_call, which calls a function in cross-replica context from inside a run,
 * and updates, which call functions on the copies of variables. */
#ifndef DTI_MERGE_H
#define DTI_MERGE_H

#include <ditto/merge.h>

#include "replicas/team/replica.h"

struct dti_merge {
    const char *name; /* of the public function */
    ditto_merge_fn function;
    void *user;
    uint32_t count; /* of arguments */

    /* The call has no result, and the result of the previous merge_call stays valid. */
    bool no_result;

    /* The name of the variable that the call is for, or NULL. Replicas compare it as a pointer. */
    const char *object;
};

struct dti_update_request {
    ditto_update_fn function;
    void *user;
    uint32_t count; /* of arguments */
};

/* -- The replica's own thread, collective -- */
/* All replicas pause, and replica 0 calls merge->function. If result is not NULL, *result is set to the
 * function's result. */
ditto_status dti_merge_call(struct dti_replica *r, const struct dti_merge *merge,
                            const ditto_tensor *arguments, const ditto_value **result);
/* Each replica that owns a copy of the variable calls request->function on it. If result is not NULL, *result
 * is set to the result for the copy that the replica uses, in memory of the replica. Its dtype is 0 if there
 * is none. */
ditto_status dti_update_in_replica(struct dti_replica *r, ditto_variable *variable,
                                   const struct dti_update_request *request, const ditto_tensor *arguments,
                                   ditto_tensor *result);

/* -- Cross-replica context -- */
/* Calls request->function on each copy of the variable, on the thread of the copy's owner. *results is set to
 * a value of the results, or to NULL if there are none. If results is NULL, the results of the function are
 * ignored. */
ditto_status dti_update_cross(ditto_variable *variable, const struct dti_update_request *request,
                              const ditto_value *const *arguments, ditto_value **results);

#endif
