/* src/strategy/merge/merge.h - from inside a run to cross-replica context, and to variables' copies. */
#ifndef DTI_MERGE_H
#define DTI_MERGE_H

#include <ditto/merge.h>

#include "strategy/strategy.h"

struct dti_merge {
    const char *name; /* the public function's */
    ditto_merge_fn function;
    void *user;
    uint32_t count;
    bool silent;        /* the call has no result, and the result of the merge_call before stays valid */
    const char *object; /* the name of the variable that the call is for, or NULL; compared as a pointer */
};

struct dti_update_request {
    ditto_update_fn function;
    void *user;
    uint32_t count; /* of arguments */
};

/* -- The replica's own thread, collective -- */
ditto_status dti_merge_call(struct dti_replica *r, const struct dti_merge *merge,
                            const ditto_tensor *arguments, const ditto_value **result);
ditto_status dti_update_in_replica(struct dti_replica *r, ditto_variable *variable,
                                   const struct dti_update_request *request, const ditto_tensor *arguments,
                                   ditto_tensor *result);

/* -- Cross context -- */
/* results NULL: grouped. */
ditto_status dti_update_cross(ditto_variable *variable, const struct dti_update_request *request,
                              const ditto_value *const *arguments, ditto_value **results);

#endif
