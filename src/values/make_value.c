/* src/values/make_value.c - making distributed values from functions, tensors, slices, and other values. */
#include "values/make_value.h"
#include "base/errors/user_call.h"
#include "replicas/jobs/jobs.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

/* -- components, each copied by its replica -- */

/* The job in which replicas copy their components. */
struct value_copy {
    ditto_value *value;
    uint32_t replica; /* the one that copies, or DTI_EVERY_REPLICA */

    /* [each] for one replica, or [replicas * each] for all. */
    const ditto_tensor *from;
    uint32_t each;

    /* [replicas]. If it is not NULL, these are copied instead of tensors. */
    const ditto_slices *slices;
};
#define DTI_EVERY_REPLICA UINT32_MAX

static ditto_status copy_tensors(struct dti_buffer_pool *pool, const struct value_copy *c, uint32_t replica)
{
    const ditto_tensor *from = c->replica == replica ? c->from : c->from + (size_t)replica * c->each;
    ditto_tensor *part = &c->value->part[replica];
    size_t bytes = ditto_tensor_bytes(from);
    void *data;
    DTI_TRY(dti_value_buffer_take(pool, bytes * c->each, &c->value->component[replica], &data));
    *part = *from;
    part->data = data;
    part->device = 0;
    if (c->each != 1) {
        part->rank++;
        memmove(part->shape + 1, part->shape, from->rank * sizeof *part->shape);
        part->shape[0] = c->each;
    }
    for (uint32_t i = 0; i < c->each && bytes != 0; i++)
        memcpy((char *)data + i * bytes, from[i].data, bytes);
    return DITTO_OK;
}

ditto_status dti_slices_copy(struct dti_buffer_pool *pool, const ditto_slices *from,
                             struct dti_value_buffer **component, ditto_tensor *part, int64_t **index)
{
    size_t row_bytes = from->row_count * ditto_dtype_bytes(from->dtype), bytes = from->rows * row_bytes;
    /* The indices begin on a new cache line. */
    size_t aligned = (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
    void *data;
    DTI_TRY(dti_value_buffer_take(pool, aligned + from->rows * sizeof **index + DTI_CACHE_LINE, component,
                                  &data));
    *part = (ditto_tensor){
        .data = data, .dtype = from->dtype, .rank = 2, .shape = { from->rows, from->row_count }
    };
    *index = (int64_t *)(void *)((char *)data + aligned);
    if (bytes != 0)
        memcpy(data, from->values, bytes);
    if (from->rows != 0)
        memcpy(*index, from->indices, from->rows * sizeof **index);
    return DITTO_OK;
}

static ditto_status copy_component(struct dti_replica *r, void *argument)
{
    const struct value_copy *c = argument;
    struct dti_buffer_pool *pool = dti_pool_of(c->value->strategy, r->index);
    if (c->slices != NULL)
        return dti_slices_copy(pool, &c->slices[r->index], &c->value->component[r->index],
                               &c->value->part[r->index], &c->value->index[r->index]);
    return c->replica == DTI_EVERY_REPLICA || c->replica == r->index ? copy_tensors(pool, c, r->index)
                                                                     : DITTO_OK;
}

static ditto_status copy_components(struct value_copy *c)
{
    struct dti_team *team = dti_team_of(c->value->strategy);
    ditto_status status = dti_team_run(team, copy_component, c, false);
    dti_team_renew(team); /* the job uses no collectives, so nothing else must be renewed */
    return status;
}

/* -- checks -- */

static ditto_status check_tensor(const ditto_tensor *t, uint32_t replica)
{
    size_t bytes;
    ditto_status status = dti_tensor_check(t, &bytes);
    if (status == DITTO_OK)
        status = dti_buffer_check(t->data, bytes, t->dtype, "data");
    return status == DITTO_OK ? status : dti_where(status, "the component of replica %u", replica);
}

static ditto_status fail_regroup(const ditto_value *const *values)
{
    if (values[0]->kind == DITTO_VALUE_SLICES)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "regroup of slices, of each replica or on several hosts: values of slices are made "
                        "by ditto_strategy_value_from_slices, or returned by ditto_return_slices");
    uint32_t i = 1; /* The loop ends: not all variables are the same. */
    while (values[i]->variable == values[0]->variable)
        i++;
    return DTI_FAIL(
        DITTO_ERR_INVALID,
        "regroup of different variables: values[0] is \"%s\", values[%u] is \"%s\": give one variable, or "
        "what is read from them",
        values[0]->variable->name, i, values[i]->variable->name);
}

ditto_status dti_check_alike(const ditto_tensor *first, uint32_t first_replica, const ditto_tensor *t,
                             uint32_t replica)
{
    if (first->dtype == t->dtype && first->rank == t->rank)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "replica %u's component is %s of rank %u, but replica %u's is %s of rank %u: the "
                    "components of one value must agree in both",
                    replica, ditto_dtype_name(t->dtype), t->rank, first_replica,
                    ditto_dtype_name(first->dtype), first->rank);
}

static ditto_status check_stack(const ditto_tensor *t, uint32_t each, uint32_t replica)
{
    size_t bytes;
    for (uint32_t i = 1; i < each; i++) {
        DTI_TRY(dti_check_alike(t, replica, &t[i], replica));
        if (memcmp(t->shape, t[i].shape, t->rank * sizeof *t->shape) != 0)
            return DTI_FAIL(DITTO_ERR_SHAPE,
                            "arrays 0 and %u of replica %u differ in shape: they can't be stacked", i,
                            replica);
    }
    if (each != 1 && t->rank == DITTO_MAX_RANK)
        return DTI_FAIL(DITTO_ERR_SHAPE,
                        "%u arrays of rank %u would be stacked to one of rank %u: the most is %u", each,
                        t->rank, t->rank + 1, DITTO_MAX_RANK);
    if (!dti_multiply(ditto_tensor_bytes(t), each, &bytes))
        return DTI_FAIL(DITTO_ERR_RANGE, "%u arrays of %zu bytes have more bytes than size_t can count", each,
                        ditto_tensor_bytes(t));
    return DITTO_OK;
}

/* -- per-replica -- */

/* Calls the function for each replica. Each component is copied before the next call, because the function
 * may return the same memory each time. */
static DTI_GUARDED ditto_status call_for_each_replica(ditto_value *value, ditto_value_fn function, void *user)
{
    struct dti_team *team = dti_team_of(value->strategy);
    uint32_t n = dti_team_num_replicas(team), first = dti_team_first_replica(team);
    for (uint32_t i = 0; i < n; i++) {
        ditto_tensor component = { .data = NULL };
        uint32_t serial = dti_this_thread()->errors;
        DTI_GUARD("a function that makes components (ditto_strategy_value_from_function)");
        ditto_status status = function(first + i, dti_team_all_replicas(team), user, &component);
        DTI_GUARD_END();
        DTI_TRY(dti_function_status(status, serial, "the function for replica %u's component", first + i));
        if (DTI_IS_BELOW_FRAME(component.data))
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "the component of replica %u is a local array of the function: give memory that stays valid "
                "until the next call",
                first + i);
        DTI_TRY(check_tensor(&component, first + i));
        DTI_TRY(dti_check_alike(i == 0 ? &component : &value->part[0], first, &component, first + i));
        DTI_TRY(copy_components(
            &(struct value_copy){ .value = value, .replica = i, .from = &component, .each = 1 }));
    }
    return DITTO_OK;
}

ditto_status dti_make_from_function(ditto_value *value, ditto_value_fn function, void *user)
{
    struct dti_team *team = dti_team_of(value->strategy);
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    ditto_status status = call_for_each_replica(value, function, user);
    dti_cross_leave(team, &frame);
    return status;
}

static ditto_status enter_and_copy(struct value_copy *c)
{
    struct dti_team *team = dti_team_of(c->value->strategy);
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    ditto_status status = copy_components(c);
    dti_cross_leave(team, &frame);
    return status;
}

ditto_status dti_make_from_tensors(ditto_value *value, const ditto_tensor *tensors, uint32_t each)
{
    uint32_t n = dti_base_of(value->strategy)->num_replicas,
             first = dti_team_first_replica(dti_team_of(value->strategy));
    if (each > UINT32_MAX / n)
        return DTI_FAIL(DITTO_ERR_RANGE, "each = %u arrays for each of %u replicas are too many", each, n);
    for (uint32_t i = 0; i < n * each; i++)
        DTI_TRY(check_tensor(&tensors[i], first + i / each));
    for (uint32_t i = 0; i < n; i++) {
        DTI_TRY(dti_check_alike(&tensors[0], first, &tensors[(size_t)i * each], first + i));
        DTI_TRY(check_stack(&tensors[(size_t)i * each], each, first + i));
    }
    return enter_and_copy(
        &(struct value_copy){ .value = value, .replica = DTI_EVERY_REPLICA, .from = tensors, .each = each });
}

/* -- slices -- */

ditto_status dti_slices_check(const ditto_slices *s, size_t dense_rows, uint32_t replica)
{
    size_t count, bytes;
    if (!dti_multiply(s->rows, s->row_count, &count))
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu slices of %zu elements have more bytes than size_t can count",
                        s->rows, s->row_count);
    DTI_TRY(dti_buffer_bytes(count, s->dtype, &bytes));
    DTI_TRY(dti_buffer_check(s->values, bytes, s->dtype, "values"));
    DTI_TRY(dti_buffer_check(s->indices, s->rows, DITTO_I64, "indices"));
    for (size_t k = 0; k < s->rows; k++)
        if (s->indices[k] < 0 || (dense_rows != 0 && (uint64_t)s->indices[k] >= dense_rows))
            return DTI_FAIL(DITTO_ERR_RANGE, "index %lld of slice %zu of replica %u: rows are 0 to %zu",
                            (long long)s->indices[k], k, replica,
                            dense_rows != 0 ? dense_rows - 1 : (size_t)INT64_MAX);
    return DITTO_OK;
}

ditto_status dti_make_from_slices(ditto_value *value, const ditto_slices *slices, size_t dense_rows)
{
    uint32_t n = dti_base_of(value->strategy)->num_replicas,
             first = dti_team_first_replica(dti_team_of(value->strategy));
    for (uint32_t i = 0; i < n; i++) {
        DTI_TRY(dti_slices_check(&slices[i], dense_rows, first + i));
        if (slices[i].dtype != slices[0].dtype || slices[i].row_count != slices[0].row_count)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "slices of replica %u are rows of %zu x %s, those of replica %u of %zu x %s",
                            first + i, slices[i].row_count, ditto_dtype_name(slices[i].dtype), first,
                            slices[0].row_count, ditto_dtype_name(slices[0].dtype));
    }
    value->dense_rows = dense_rows;
    return enter_and_copy(&(struct value_copy){ .value = value, .slices = slices });
}

/* -- nests -- */

ditto_status dti_make_nest(ditto_value *nest, const char *const *names, const ditto_value *const *members,
                           uint32_t count)
{
    char number[16];
    for (uint32_t i = 0; names != NULL && i < count; i++) {
        DTI_TRY_OF(dti_not_null(names[i], "the name"), "names[%u]", i);
        DTI_TRY_OF(dti_name_check(names[i]), "names[%u]", i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(names[k], names[i]) == 0)
                return DTI_FAIL(DITTO_ERR_INVALID, "the name \"%s\" is given twice, to members %u and %u",
                                names[i], k, i);
    }
    for (uint32_t i = 0; i < count; i++)
        DTI_TRY(dti_value_check_item(members[i], nest->strategy, "members", i));
    for (uint32_t i = 0; i < count; i++) {
        dti_number_name(number, i);
        DTI_TRY(dti_nest_add(nest, names != NULL ? names[i] : number, dti_value_keep(members[i])));
    }
    return DITTO_OK;
}

/* -- regroup -- */

/* Returns the value of a variable if, for each i, values[i] was taken from that variable for replica i.
 * Returns NULL otherwise. */
static ditto_value *variable_of(const ditto_value *const *values, uint32_t n)
{
    ditto_value *variable_value = values[0]->container;
    for (uint32_t i = 0; i < n; i++) {
        const ditto_value *container = values[i]->container;
        if (container == NULL || container->kind != DITTO_VALUE_VARIABLE ||
            container->variable != variable_value->variable || values[i]->replica != i)
            return NULL;
    }
    return variable_value;
}

static ditto_status regroup_leaf(ditto_strategy *strategy, const ditto_value *const *values, uint32_t n,
                                 ditto_value **out)
{
    ditto_tensor one;
    ditto_value *value;
    uint32_t first = dti_team_first_replica(dti_team_of(strategy));
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_PER_REPLICA, &value));
    struct value_copy copying = { .value = value, .each = 1 };
    ditto_status status = DITTO_OK;
    for (uint32_t i = 0; i < n && status == DITTO_OK; i++) {
        status = dti_inspect_tensor(values[i], &one);
        if (status == DITTO_OK)
            status = dti_check_alike(i == 0 ? &one : &value->part[0], first, &one, first + i);
        copying.replica = i;
        copying.from = &one;
        if (status == DITTO_OK)
            status = enter_and_copy(&copying);
    }
    return dti_value_finish(value, status, out);
}

static ditto_status regroup(ditto_strategy *strategy, const ditto_value *const *values, uint32_t n, bool wrap,
                            ditto_value **out);

static ditto_status regroup_nest(ditto_strategy *strategy, const ditto_value *const *values, uint32_t n,
                                 bool wrap, ditto_value *nest)
{
    const ditto_value **member = malloc(n * sizeof(void *));
    ditto_status status = DITTO_OK;
    if (member == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to regroup the nests of %u replicas", n);
    for (uint32_t m = 0; m < values[0]->members && status == DITTO_OK; m++) {
        ditto_value *regrouped = NULL;
        uint32_t i = 0;
        do /* n is at least 1 */
            member[i] = values[i]->member[m].value;
        while (++i < n);
        status = regroup(strategy, member, n, wrap, &regrouped);
        if (status == DITTO_OK)
            status = dti_nest_add(nest, values[0]->member[m].name, regrouped);
    }
    free(member);
    return status;
}

static ditto_status regroup(ditto_strategy *strategy, const ditto_value *const *values, uint32_t n, bool wrap,
                            ditto_value **out)
{
    ditto_value *nest, *variable;
    uint32_t first = dti_team_first_replica(dti_team_of(strategy));
    bool all_same = true;
    for (uint32_t i = 1; i < n; i++) {
        bool alike = values[i]->kind == values[0]->kind && values[i]->members == values[0]->members;
        for (uint32_t m = 0; alike && m < values[0]->members; m++)
            alike = strcmp(values[i]->member[m].name, values[0]->member[m].name) == 0;
        if (!alike)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "replica %u's is %s of %u members, replica %u's %s of %u, or their names differ: "
                            "only values of one structure can be regrouped",
                            first + i, dti_value_kind_text(values[i]->kind), values[i]->members, first,
                            dti_value_kind_text(values[0]->kind), values[0]->members);
        all_same = all_same && (values[i] == values[0] || (values[0]->kind == DITTO_VALUE_VARIABLE &&
                                                           values[i]->variable == values[0]->variable));
    }
    variable = variable_of(values, n);
    if (variable != NULL) {
        *out = dti_value_keep(variable);
        return DITTO_OK;
    }
    /* The plain values and slices of other hosts may differ. */
    bool same_on_hosts = values[0]->kind == DITTO_VALUE_MIRRORED ||
                         dti_team_all_replicas(dti_team_of(strategy)) == n;
    if (all_same && (values[0]->kind == DITTO_VALUE_VARIABLE || (!wrap && same_on_hosts))) {
        *out = dti_value_keep(values[0]);
        return DITTO_OK;
    }
    if (values[0]->kind == DITTO_VALUE_VARIABLE || values[0]->kind == DITTO_VALUE_SLICES)
        return fail_regroup(values);
    if (values[0]->kind != DITTO_VALUE_NEST)
        return regroup_leaf(strategy, values, n, out);
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_NEST, &nest));
    return dti_value_finish(nest, regroup_nest(strategy, values, n, wrap, nest), out);
}

ditto_status dti_regroup(ditto_strategy *strategy, const ditto_value *const *values, bool wrap,
                         ditto_value **out)
{
    return regroup(strategy, values, dti_base_of(strategy)->num_replicas, wrap, out);
}
