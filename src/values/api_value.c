/* src/values/api_value.c - the functions of include/ditto/value.h, which check their arguments and
 * context. */
#include "base/types/convert.h"
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "values/make_value.h"
#include "values/values.h"
#include "vars/vars.h"

/* -- making -- */

static ditto_status check_making(const ditto_strategy *strategy, const void *input, const char *name,
                                 ditto_value **out)
{
    DTI_TRY(dti_not_null(input, name));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_context_check_cross(dti_team_of(strategy)));
    return dti_team_check_usable(dti_team_of(strategy));
}

ditto_status ditto_strategy_value(ditto_strategy *strategy, const ditto_tensor *tensor, ditto_value **out)
{
    size_t bytes;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(check_making(strategy, tensor, "tensor", out));
    DTI_TRY(dti_tensor_check(tensor, &bytes));
    DTI_TRY(dti_buffer_check(tensor->data, bytes, tensor->dtype, "data"));
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_PLAIN, out));
    (*out)->plain = *tensor;
    return DITTO_OK;
}

ditto_status ditto_strategy_value_from_function(ditto_strategy *strategy, ditto_value_fn function, void *user,
                                                ditto_value **out)
{
    ditto_value *value;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(check_making(strategy, strategy, "strategy", out));
    if (function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "function is NULL: give the function that makes each replica's component");
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_PER_REPLICA, &value));
    return dti_value_finish(value, dti_make_from_function(value, function, user), out);
}

ditto_status ditto_strategy_value_from_tensors(ditto_strategy *strategy, const ditto_tensor *tensors,
                                               uint32_t each, ditto_value **out)
{
    ditto_value *value;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(check_making(strategy, tensors, "tensors", out));
    if (each == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "each = 0: give at least one array for every replica");
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_PER_REPLICA, &value));
    return dti_value_finish(value, dti_make_from_tensors(value, tensors, each), out);
}

ditto_status ditto_strategy_value_from_slices(ditto_strategy *strategy, const ditto_slices *slices,
                                              size_t dense_rows, ditto_value **out)
{
    ditto_value *value;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(check_making(strategy, slices, "slices", out));
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_SLICES, &value));
    return dti_value_finish(value, dti_make_from_slices(value, slices, dense_rows), out);
}

ditto_status ditto_variable_value(ditto_variable *variable, ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_VARIABLE(variable);
    DTI_TRY(dti_variable_check_whole(variable, "the value of"));
    DTI_TRY(dti_team_check_in_step(variable->team));
    DTI_TRY(check_making(dti_team_strategy(variable->team), variable, "variable", out));
    return dti_value_make_variable(dti_team_strategy(variable->team), variable, out);
}

static ditto_status assign_value(ditto_variable *v, ditto_assign_op op, const ditto_value *value)
{
    enum dti_rule rule;
    DTI_LEAVES_GATES(held);
    DTI_TRY(dti_value_hold_own(value, dti_team_strategy(v->team), "the value", &held));
    DTI_TRY(dti_context_check_cross(v->team));
    DTI_TRY(dti_assign_rule(op, v->spec.dtype, &rule));
    return dti_assign_value(v, rule, value);
}

ditto_status ditto_variable_assign_value(ditto_variable *v, ditto_assign_op op, const ditto_value *value)
{
    DTI_ENTER();
    DTI_HOLD_VARIABLE(v);
    uint64_t begin = dti_cross_begin(v->team);
    return dti_cross_tell(v->team, begin, assign_value(v, op, value));
}

ditto_status ditto_strategy_nest(ditto_strategy *strategy, const char *const *names,
                                 const ditto_value *const *members, uint32_t num_members, ditto_value **out)
{
    ditto_value *nest;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(check_making(strategy, num_members != 0 ? (const void *)members : strategy, "members", out));
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_NEST, &nest));
    return dti_value_finish(nest, dti_make_nest(nest, names, members, num_members), out);
}

ditto_status ditto_strategy_regroup(ditto_strategy *strategy, const ditto_value *const *values,
                                    int always_wrap, ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(check_making(strategy, values, "values", out));
    DTI_LEAVES_GATES(held);
    for (uint32_t i = 0; i < dti_base_of(strategy)->num_replicas; i++)
        DTI_TRY(dti_value_hold_item(values[i], strategy, "values", i, &held));
    return dti_regroup(strategy, values, always_wrap != 0, out);
}

ditto_status ditto_value_destroy(ditto_value *value)
{
    DTI_ENTER();
    if (value == NULL)
        return DITTO_OK;
    DTI_TRY(dti_context_check_outside("value"));
    dti_value_drop(value);
    return DITTO_OK;
}

/* -- reading -- */

ditto_status ditto_value_info(const ditto_value *value, ditto_value_properties *out)
{
    DTI_ENTER_QUICKLY();
    DTI_HOLD_VALUE(value, held);
    DTI_TRY(dti_result_check(out, "ditto_value_properties"));
    DTI_TRY(dti_value_hold_variables(value, &held));
    ditto_value_properties found = { .kind = value->kind,
                                     .container = value->container != NULL ? value->container : value };
    if (value->kind == DITTO_VALUE_VARIABLE)
        found.variable = value->variable;
    if (value->kind == DITTO_VALUE_NEST) {
        found.num_members = value->members;
        found.members = value->member;
    }
    dti_inspect_spec(value, &found.spec);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_value_tensor(const ditto_value *value, ditto_tensor *out)
{
    DTI_ENTER_QUICKLY();
    DTI_HOLD_VALUE(value, held);
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_value_hold_variables(value, &held));
    return dti_inspect_tensor(value, out);
}

ditto_status ditto_value_f64(const ditto_value *value, double *out)
{
    DTI_ENTER_QUICKLY();
    DTI_HOLD_VALUE(value, held);
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_value_hold_variables(value, &held));
    return dti_inspect_number(value, out);
}

ditto_status ditto_value_component(const ditto_value *value, uint32_t replica, ditto_tensor *out)
{
    DTI_ENTER_QUICKLY();
    DTI_HOLD_VALUE(value, held);
    uint32_t index;
    DTI_TRY(dti_team_index(dti_team_of(value->strategy), replica, &index));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_value_hold_variables(value, &held));
    return dti_inspect_component(value, index, out);
}

ditto_status ditto_value_slices(const ditto_value *value, uint32_t replica, ditto_slices *out,
                                size_t *dense_rows)
{
    DTI_ENTER_QUICKLY();
    DTI_HOLD_VALUE(value, held);
    uint32_t index;
    DTI_TRY(dti_team_index(dti_team_of(value->strategy), replica, &index));
    DTI_TRY(dti_not_null(out, "out"));
    if (value->kind != DITTO_VALUE_SLICES)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s has no slices", dti_value_kind_text(value->kind));
    *out = dti_slices_of(value, index);
    if (dense_rows != NULL)
        *dense_rows = value->dense_rows;
    return DITTO_OK;
}

ditto_status ditto_value_member(const ditto_value *value, const char *path, const ditto_value **out)
{
    DTI_ENTER_QUICKLY();
    DTI_HOLD_VALUE(value, held);
    DTI_TRY(dti_not_null(out, "out"));
    const ditto_value *found = dti_value_find(value, path);
    if (found == NULL)
        return dti_fail_no_member(value, path, "member");
    *out = found;
    return DITTO_OK;
}

ditto_status ditto_value_select(const ditto_value *value, uint32_t replica, ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_VALUE(value, held);
    uint32_t index;
    DTI_TRY(dti_team_index(dti_team_of(value->strategy), replica, &index));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_context_check_cross(dti_team_of(value->strategy)));
    DTI_TRY(dti_team_check_usable(dti_team_of(value->strategy)));
    return dti_inspect_select(value, index, out);
}

ditto_status ditto_strategy_local_results(ditto_strategy *strategy, const ditto_value *value,
                                          ditto_value **out, uint32_t *num_results)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_not_null(num_results, "num_results"));
    DTI_LEAVES_GATES(held);
    DTI_TRY(dti_value_hold_own(value, strategy, "value", &held));
    DTI_TRY(dti_context_check_cross(dti_team_of(strategy)));
    DTI_TRY(dti_team_check_usable(dti_team_of(strategy)));
    return dti_inspect_local_results(value, out, num_results);
}

ditto_status ditto_local(ditto_replica *self, const ditto_value *value, ditto_tensor *out)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_LEAVES_GATES(held);
    DTI_TRY(dti_value_hold_own(value, dti_team_strategy(r->team), "value", &held));
    DTI_TRY(dti_not_null(out, "out"));
    return dti_inspect_component(value, r->index, out);
}
