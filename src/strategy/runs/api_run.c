/* src/strategy/runs/api_run.c - the functions of include/ditto/run.h, which check their arguments and
 * context. */
#include "input/input.h"
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "strategy/runs/result.h"
#include "values/make_value.h"
#include "values/values.h"
#include "vars/vars.h"

#include <string.h>

/* -- cross-replica context -- */

/* Checks that each operator can reduce values, and that no result is named twice. */
static ditto_status check_requests(const ditto_run_options *options)
{
    DTI_TRY(dti_not_null(options->reduce, "reduce"));
    for (uint32_t i = 0; i < options->num_reduce; i++) {
        const char *name = options->reduce[i].name != NULL ? options->reduce[i].name : "";
        if (options->reduce[i].op < DITTO_SUM || options->reduce[i].op > DITTO_PROD)
            return DTI_FAIL(
                DITTO_ERR_RANGE,
                "reduce[%u].op = %d: use DITTO_SUM, DITTO_MEAN, DITTO_MIN, DITTO_MAX or DITTO_PROD", i,
                (int)options->reduce[i].op);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(options->reduce[k].name != NULL ? options->reduce[k].name : "", name) == 0)
                return DTI_FAIL(DITTO_ERR_INVALID, "reduce names the result \"%s\" twice", name);
    }
    return DITTO_OK;
}

static ditto_status read_options(const ditto_run_options *given, ditto_run_options *known)
{
    DTI_TRY(dti_options_copy(known, sizeof *known, given, "ditto_run_options"));
    if ((unsigned)known->dynamic_batch > DITTO_SWITCH_OFF)
        return DTI_FAIL(DITTO_ERR_RANGE, "dynamic_batch = %d is not a value of its enum",
                        (int)known->dynamic_batch);
    return known->num_reduce != 0 ? check_requests(known) : DITTO_OK;
}

ditto_status ditto_strategy_run_values(ditto_strategy *strategy, ditto_replica_fn function, void *user,
                                       const ditto_value *arguments, const ditto_run_options *options,
                                       ditto_value **result)
{
    ditto_run_options known;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    if (function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "function is NULL: give the function that every replica calls");
    DTI_TRY(read_options(options, &known));
    struct dti_run_call request = {
        .function = function, .argument = user, .values = arguments, .returns = true, .wanted = result != NULL
    };
    return dti_strategy_run_values(strategy, &request, &known, NULL, result);
}

ditto_status ditto_strategy_run_steps(ditto_strategy *strategy, ditto_step_fn function, void *user,
                                      ditto_iterator *iterator, uint64_t num_steps,
                                      const ditto_run_options *options, uint64_t *num_done,
                                      ditto_value **result)
{
    ditto_run_options known;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_HOLD_ITERATOR(iterator);
    if (function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "function is NULL: give the function that every replica calls with every batch");
    DTI_TRY(read_options(options, &known));
    struct dti_run_call request = { .argument = user,
                                    .returns = true,
                                    .wanted = result != NULL,
                                    .step = function,
                                    .iterator = iterator,
                                    .steps = num_steps,
                                    .same_batches = known.dynamic_batch == DITTO_SWITCH_OFF };
    return dti_strategy_run_values(strategy, &request, &known, num_done, result);
}

/* -- replica context -- */

ditto_status ditto_argument(ditto_replica *self, const char *path, ditto_tensor *out)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_not_null(out, "out"));
    const struct dti_run_call *call = dti_current_run_call();
    if (call == NULL || call->values == NULL) {
        bool is_scheduled = call != NULL && call->level == 0 && dti_team_strategy(r->team)->worker != NULL;
        return DTI_FAIL(DITTO_ERR_NOT_FOUND, "this %s was given no arguments: pass them to %s",
                        is_scheduled ? "function" : "run",
                        is_scheduled ? "ditto_coordinator_schedule" : "ditto_strategy_run_values");
    }
    const ditto_value *found = dti_value_find(call->values, path);
    if (found == NULL)
        return dti_fail_no_member(call->values, path, "argument");
    return dti_inspect_component(found, r->index, out);
}

/* `data` may be the memory of an earlier result of the same name. */
static ditto_status return_tensor(ditto_replica *self, const char *name, ditto_tensor *tensor)
{
    struct dti_results *results;
    struct dti_result *result, made = { .kind = DITTO_VALUE_PER_REPLICA };
    struct dti_replica *r;
    size_t bytes;
    void *data;
    DTI_TRY(dti_not_null(tensor, "tensor"));
    DTI_TRY(dti_tensor_check(tensor, &bytes));
    if (tensor->data != NULL)
        DTI_TRY(dti_buffer_check(tensor->data, bytes, tensor->dtype, "data"));
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_result_find(r, name, &results, &result));
    DTI_TRY(dti_value_buffer_take(results->pool, bytes, &made.component, &data));
    if (tensor->data == NULL)
        tensor->data = data;
    else if (bytes != 0)
        memcpy(data, tensor->data, bytes);
    made.tensor = *tensor;
    made.tensor.data = data;
    made.tensor.device = 0;
    dti_result_set(results, result, &made);
    return DITTO_OK;
}

ditto_status ditto_return(ditto_replica *self, const char *name, ditto_tensor *tensor)
{
    DTI_ENTER_QUICKLY();
    return return_tensor(self, name, tensor);
}

ditto_status ditto_return_f64(ditto_replica *self, const char *name, double number)
{
    DTI_ENTER_QUICKLY();
    return return_tensor(self, name, &(ditto_tensor){ .data = &number, .dtype = DITTO_F64 });
}

ditto_status ditto_return_variable(ditto_replica *self, const char *name, ditto_variable *variable)
{
    struct dti_results *results;
    struct dti_result *result, made = { .kind = DITTO_VALUE_VARIABLE, .variable = variable };
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_HOLD_OWN_VARIABLE(r, variable);
    DTI_TRY(dti_variable_check_whole(variable, "the value of"));
    DTI_TRY(dti_result_find(r, name, &results, &result));
    dti_result_set(results, result, &made);
    return DITTO_OK;
}

ditto_status ditto_return_slices(ditto_replica *self, const char *name, const ditto_slices *slices,
                                 size_t dense_rows)
{
    struct dti_results *results;
    struct dti_result *result, made = { .kind = DITTO_VALUE_SLICES, .dense_rows = dense_rows };
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_not_null(slices, "slices"));
    DTI_TRY(dti_slices_check(slices, dense_rows, r->id));
    DTI_TRY(dti_result_find(r, name, &results, &result));
    DTI_TRY(dti_slices_copy(results->pool, slices, &made.component, &made.tensor, &made.index));
    dti_result_set(results, result, &made);
    return DITTO_OK;
}
