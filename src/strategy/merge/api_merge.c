/* src/strategy/merge/api_merge.c - the functions of include/ditto/merge.h, which check their arguments and
 * context. */
#include "replicas/team/servers.h"
#include "strategy/merge/merge.h"
#include "sync/hosts/cross.h"
#include "values/values.h"
#include "vars/vars.h"

static ditto_status check_function(bool given, const char *what)
{
    if (given)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID, "function is NULL: give the function that is called %s", what);
}

static ditto_status check_tensors(const ditto_tensor *arguments, uint32_t count)
{
    size_t bytes;
    if (count > DITTO_MAX_MERGE_ARGUMENTS)
        return DTI_FAIL(DITTO_ERR_RANGE, "num_arguments = %u: the most is %d", count,
                        DITTO_MAX_MERGE_ARGUMENTS);
    if (count != 0)
        DTI_TRY(dti_not_null(arguments, "arguments"));
    for (uint32_t k = 0; k < count; k++) {
        ditto_status status = dti_tensor_check(&arguments[k], &bytes);
        if (status == DITTO_OK)
            status = dti_buffer_check(arguments[k].data, bytes, arguments[k].dtype, "data");
        DTI_TRY_OF(status, "arguments[%u]", k);
    }
    return DITTO_OK;
}

ditto_status ditto_merge_call(ditto_replica *self, ditto_merge_fn function, void *user,
                              const ditto_tensor *arguments, uint32_t num_arguments,
                              const ditto_value **result)
{
    DTI_ENTER();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(check_function(function != NULL, "once, in cross-replica context"));
    DTI_TRY(check_tensors(arguments, num_arguments));
    DTI_TRY(dti_step_check_no_step(r, "ditto_merge_call"));
    return dti_merge_call(
        r, &(struct dti_merge){ "ditto_merge_call", function, user, num_arguments, false, NULL }, arguments,
        result);
}

static ditto_status update(ditto_variable *variable, ditto_update_fn function, void *user,
                           const ditto_value *const *arguments, uint32_t num_arguments,
                           const ditto_update_options *options, ditto_value **results)
{
    ditto_update_options known;
    DTI_TRY(dti_context_check_cross(variable->team));
    DTI_TRY(check_function(function != NULL, "on every copy"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_update_options"));
    if (num_arguments > DITTO_MAX_MERGE_ARGUMENTS)
        return DTI_FAIL(DITTO_ERR_RANGE, "num_arguments = %u: the most is %d", num_arguments,
                        DITTO_MAX_MERGE_ARGUMENTS);
    if (num_arguments != 0)
        DTI_TRY(dti_not_null(arguments, "arguments"));
    if (known.ungrouped)
        DTI_TRY(dti_not_null(results, "results"));
    DTI_TRY(dti_update_cross(variable, &(struct dti_update_request){ function, user, num_arguments },
                             arguments, known.ungrouped ? results : NULL));
    if (results != NULL && !known.ungrouped)
        *results = NULL;
    return DITTO_OK;
}

ditto_status ditto_variable_update(ditto_variable *variable, ditto_update_fn function, void *user,
                                   const ditto_value *const *arguments, uint32_t num_arguments,
                                   const ditto_update_options *options, ditto_value **results)
{
    DTI_ENTER();
    DTI_HOLD_VARIABLE(variable);
    DTI_TRY(dti_team_check_in_step(variable->team));
    uint64_t begin = dti_cross_begin(variable->team);
    return dti_cross_tell(variable->team, begin,
                          update(variable, function, user, arguments, num_arguments, options, results));
}

ditto_status ditto_update(ditto_replica *self, ditto_variable *variable, ditto_update_fn function, void *user,
                          const ditto_tensor *arguments, uint32_t num_arguments, ditto_tensor *result)
{
    DTI_ENTER();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_USE_OWN_VARIABLE(r, variable);
    DTI_TRY(dti_team_check_in_step(variable->team));
    DTI_TRY(check_function(function != NULL, "on every copy"));
    DTI_TRY(check_tensors(arguments, num_arguments));
    return dti_update_in_replica(r, variable, &(struct dti_update_request){ function, user, num_arguments },
                                 arguments, result);
}
