/* tests/strategy/test_messages.c - messages of errors of public functions, mostly of values, reductions,
 * merge_call, update and contexts. A message says what the caller asked for, what was found, and what to
 * do. */
#include "support/support.h"

#include <stdatomic.h>

static ditto_tensor scalar_of(double *number)
{
    return (ditto_tensor){ .data = number, .dtype = DITTO_F64 };
}

static ditto_value *value_of(ditto_strategy *s, double number)
{
    ditto_tensor t = scalar_of(&number);
    ditto_value *value;
    assert_ok(ditto_strategy_value(s, &t, &value));
    return value;
}

static ditto_variable *variable_named(ditto_strategy *s, const char *name,
                                      ditto_synchronization synchronization, ditto_aggregation aggregation)
{
    ditto_tensor spec = { .dtype = DITTO_F64 };
    ditto_variable *v;
    ditto_variable_options o = OPTIONS(variable, .name = name, .synchronization = synchronization,
                                       .aggregation = aggregation);
    assert_ok(ditto_variable_create(s, &spec, &o, &v));
    return v;
}

/* -- merge_call and update -- */

static ditto_status merge(ditto_strategy *s, ditto_value *const *arguments, uint32_t count, void *user,
                          ditto_value **result)
{
    return DITTO_OK;
}

static ditto_status merges_with_id(ditto_replica *self, void *unused)
{
    double x[2] = { 1, 2 };
    ditto_tensor t[2] = { scalar_of(&x[0]), scalar_of(&x[1]) };
    return ditto_merge_call(self, merge, NULL, t, 1 + ditto_replica_id(self), NULL);
}
static ditto_status merge_counts(ditto_strategy *s)
{
    return ditto_strategy_run(s, merges_with_id, NULL);
}

static ditto_status merges_with_null(ditto_replica *self, void *unused)
{
    double x = 1;
    ditto_tensor t[2] = { scalar_of(&x), scalar_of(NULL) };
    return ditto_merge_call(self, merge, NULL, t, 2, NULL);
}
static ditto_status merge_null(ditto_strategy *s)
{
    return ditto_strategy_run(s, merges_with_null, NULL);
}

static ditto_status failing_merge(ditto_strategy *s, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    return ditto_fail(NULL, 3, "no agreement");
}
static ditto_status merges_and_fails(ditto_replica *self, void *peer)
{
    ditto_status status = ditto_merge_call(self, failing_merge, NULL, NULL, 0, NULL);
    if (ditto_replica_id(self) == 1)
        snprintf(peer, 512, "%s", ditto_last_error()->message);
    return status;
}
static ditto_status merge_fails(ditto_strategy *s)
{
    char peer[512] = "";
    ditto_status status = ditto_strategy_run(s, merges_and_fails, peer);
    bool is_expected = strcmp(peer, "replica 0 stopped the run with DITTO_ERR_USER: no agreement") == 0;
    return is_expected && ditto_last_error()->replica == 0 ? status : DITTO_OK;
}

static ditto_status update_fn(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                              void *user, ditto_tensor *result)
{
    return DITTO_OK;
}
static ditto_status updates_one_each(ditto_replica *self, void *variables)
{
    ditto_variable **v = variables;
    return ditto_update(self, v[ditto_replica_id(self)], update_fn, NULL, NULL, 0, NULL);
}
static ditto_status update_variables(ditto_strategy *s)
{
    ditto_variable *v[2] = { variable_named(s, "a", 0, 0), variable_named(s, "b", 0, 0) };
    ditto_status status = ditto_strategy_run(s, updates_one_each, v);
    assert_ok(ditto_variable_destroy(v[0]));
    assert_ok(ditto_variable_destroy(v[1]));
    return status;
}
static ditto_status update_namesakes(ditto_strategy *s)
{
    ditto_variable *v[2] = { variable_named(s, "w", 0, DITTO_AGGREGATE_SUM),
                             variable_named(s, "w", 0, DITTO_AGGREGATE_SUM) };
    ditto_status status = ditto_strategy_run(s, updates_one_each, v);
    assert_ok(ditto_variable_destroy(v[0]));
    assert_ok(ditto_variable_destroy(v[1]));
    return status;
}
static ditto_status update_null(ditto_strategy *s)
{
    ditto_variable *v = variable_named(s, "a", 0, 0);
    ditto_value *one = value_of(s, 1);
    const ditto_value *arguments[2] = { one, NULL };
    ditto_status status = ditto_variable_update(v, update_fn, NULL, arguments, 2, NULL, NULL);
    assert_ok(ditto_value_destroy(one));
    assert_ok(ditto_variable_destroy(v));
    return status;
}

/* -- results of runs -- */

static ditto_status returns_one_each(ditto_replica *self, void *variables)
{
    ditto_variable **v = variables;
    return ditto_return_variable(self, "w", v[ditto_replica_id(self)]);
}
static ditto_status returned_variables(ditto_strategy *s)
{
    ditto_variable *v[2] = { variable_named(s, "a", 0, 0), variable_named(s, "b", 0, 0) };
    ditto_value *result;
    ditto_status status = ditto_strategy_run_values(s, returns_one_each, v, NULL, NULL, &result);
    assert_ok(ditto_variable_destroy(v[0]));
    assert_ok(ditto_variable_destroy(v[1]));
    return status;
}

static ditto_status returns_slices(ditto_replica *self, void *unused)
{
    float values[8] = { 0 };
    int64_t index = 0;
    ditto_slices slices = {
        .indices = &index, .values = values, .rows = 1, .row_count = 4, .dtype = DITTO_F32
    };
    slices.row_count += ditto_replica_id(self);
    return ditto_return_slices(self, "g", &slices, 10);
}
static ditto_status returned_slices(ditto_strategy *s)
{
    ditto_value *result;
    return ditto_strategy_run_values(s, returns_slices, NULL, NULL, NULL, &result);
}

/* -- values -- */

static ditto_status regroup_variables(ditto_strategy *s)
{
    ditto_variable *v[2] = { variable_named(s, "a", 0, 0), variable_named(s, "b", 0, 0) };
    ditto_value *values[2], *out;
    for (int i = 0; i < 2; i++)
        assert_ok(ditto_variable_value(v[i], &values[i]));
    ditto_status status = ditto_strategy_regroup(s, (const ditto_value *const[]){ values[0], values[1] }, 0,
                                                 &out);
    for (int i = 0; i < 2; i++) {
        assert_ok(ditto_value_destroy(values[i]));
        assert_ok(ditto_variable_destroy(v[i]));
    }
    return status;
}

static ditto_status regroup_null(ditto_strategy *s)
{
    ditto_value *one = value_of(s, 1), *out;
    ditto_status status = ditto_strategy_regroup(s, (const ditto_value *const[]){ one, NULL }, 0, &out);
    assert_ok(ditto_value_destroy(one));
    return status;
}

static ditto_status nest_null(ditto_strategy *s)
{
    ditto_value *one = value_of(s, 1), *out;
    ditto_status status = ditto_strategy_nest(s, (const char *const[]){ "x", "y" },
                                              (const ditto_value *const[]){ one, NULL }, 2, &out);
    assert_ok(ditto_value_destroy(one));
    return status;
}

static ditto_status axis_of_scalar(ditto_strategy *s)
{
    ditto_value *one = value_of(s, 1), *out;
    ditto_status status = ditto_strategy_reduce(s, DITTO_MEAN, one, (int32_t[]){ 0 }, 1, &out);
    assert_ok(ditto_value_destroy(one));
    return status;
}

static ditto_status batch_null(ditto_strategy *s)
{
    ditto_value *one = value_of(s, 1), *out[2];
    ditto_destination places[2] = { { .replica = 0 }, { .replica = 0 } };
    ditto_status status = ditto_strategy_reduce_to(s, DITTO_MEAN, (const ditto_value *const[]){ one, NULL },
                                                   places, 2, out);
    assert_ok(ditto_value_destroy(one));
    return status;
}

static ditto_status batch_destination(ditto_strategy *s)
{
    ditto_value *one = value_of(s, 1), *out[2];
    ditto_destination places[2] = { { .replica = 0 }, { .replica = 9 } };
    ditto_status status = ditto_strategy_reduce_to(s, DITTO_MEAN, (const ditto_value *const[]){ one, one },
                                                   places, 2, out);
    assert_ok(ditto_value_destroy(one));
    return status;
}

static ditto_status add_to_one_replica(ditto_strategy *unused)
{
    ditto_strategy *s = make_strategy(1, NULL);
    ditto_variable *v = variable_named(s, "total", DITTO_ON_READ, DITTO_AGGREGATE_SUM);
    double one = 1;
    ditto_status status = ditto_variable_assign(v, DITTO_ASSIGN_ADD, &one, sizeof one);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
    return status;
}

static ditto_status averages_losses(ditto_replica *self, void *unused)
{
    double losses[4] = { 0 }, weights[3] = { 0 }, out;
    ditto_tensor l = { .data = losses, .dtype = DITTO_F64, .rank = 2, .shape = { 2, 2 } };
    ditto_tensor w = { .data = weights, .dtype = DITTO_F64, .rank = 1, .shape = { 3 } };
    return ditto_average_loss(self, &l, &w, 0, &out);
}
static ditto_status weights_of_another_shape(ditto_strategy *s)
{
    return ditto_strategy_run(s, averages_losses, NULL);
}

/* -- contexts -- */

struct handles {
    ditto_strategy *other;

    /* The handle of replica 0 of the other strategy, after its run. */
    const ditto_replica *kept;
};
static ditto_status passes_kept_handle(ditto_replica *self, void *argument)
{
    struct handles *h = argument;
    void *memory;
    return ditto_alloc((ditto_replica *)(uintptr_t)h->kept, 8, 0, &memory);
}
static ditto_status keeps_handle(ditto_replica *self, void *argument)
{
    struct handles *h = argument;
    if (ditto_replica_id(self) == 0)
        h->kept = self;
    return DITTO_OK;
}
static ditto_status other_strategys_self(ditto_strategy *s)
{
    struct handles h = { .other = make_strategy(2, NULL) };
    assert_ok(ditto_strategy_run(h.other, keeps_handle, &h));
    ditto_status status = ditto_strategy_run(s, passes_kept_handle, &h);
    assert_ok(ditto_strategy_destroy(h.other));
    return status;
}

static ditto_status passes_neighbours(ditto_replica *self, void *argument)
{
    _Atomic(const ditto_replica *) *first = argument;
    void *memory;
    if (ditto_replica_id(self) == 0)
        atomic_store(first, self);
    DITTO_TRY(ditto_barrier(self, NULL));
    return ditto_replica_id(self) == 0
               ? DITTO_OK
               : ditto_alloc((ditto_replica *)(uintptr_t)atomic_load(first), 8, 0, &memory);
}
static ditto_status neighbours_self(ditto_strategy *s)
{
    _Atomic(const ditto_replica *) first;
    return ditto_strategy_run(s, passes_neighbours, &first);
}

static ditto_status default_of_another(ditto_strategy *s)
{
    ditto_strategy *other = make_strategy(2, NULL);
    ditto_value *value;
    double x = 1;
    ditto_tensor t = scalar_of(&x);
    assert_ok(ditto_set_default(other));
    ditto_status status = ditto_strategy_value(s, &t, &value);
    assert_ok(ditto_set_default(NULL));
    assert_ok(ditto_strategy_destroy(other));
    return status;
}
static ditto_status scope_of_another(ditto_strategy *s)
{
    ditto_strategy *other = make_strategy(2, NULL);
    ditto_value *value;
    double x = 1;
    ditto_tensor t = scalar_of(&x);
    assert_ok(ditto_strategy_scope_enter(other));
    ditto_status status = ditto_strategy_value(s, &t, &value);
    assert_ok(ditto_strategy_scope_leave(other));
    assert_ok(ditto_strategy_destroy(other));
    return status;
}
static ditto_status destroy_default(ditto_strategy *s)
{
    assert_ok(ditto_set_default(s));
    ditto_status status = ditto_strategy_destroy(s);
    assert_ok(ditto_set_default(NULL));
    return status;
}
static ditto_status enter_default_inside(ditto_strategy *s)
{
    ditto_strategy *plain = ditto_get_strategy();
    assert_ok(ditto_strategy_scope_enter(s));
    ditto_status status = ditto_strategy_scope_enter(plain);
    assert_ok(ditto_strategy_scope_leave(s));
    return status;
}
static ditto_status set_default_in_scope(ditto_strategy *s)
{
    assert_ok(ditto_strategy_scope_enter(s));
    ditto_status status = ditto_set_default(NULL);
    assert_ok(ditto_strategy_scope_leave(s));
    return status;
}

struct objects {
    ditto_strategy *strategy;
    ditto_value *value;
    ditto_variable *variable;
};
static ditto_status gathers(ditto_replica *self, void *argument)
{
    struct objects *g = argument;
    ditto_value *out;
    return ditto_strategy_gather(g->strategy, g->value, 0, &out);
}
static ditto_status gather_on_replica(ditto_strategy *s)
{
    struct objects g = { .strategy = s, .value = value_of(s, 1) };
    ditto_status status = ditto_strategy_run(s, gathers, &g);
    assert_ok(ditto_value_destroy(g.value));
    return status;
}
static ditto_status assigns(ditto_replica *self, void *argument)
{
    struct objects *g = argument;
    double x = 1;
    return ditto_variable_assign(g->variable, DITTO_ASSIGN, &x, sizeof x);
}
static ditto_status assign_on_replica(ditto_strategy *s)
{
    struct objects g = { .variable = variable_named(s, "a", 0, 0) };
    ditto_status status = ditto_strategy_run(s, assigns, &g);
    assert_ok(ditto_variable_destroy(g.variable));
    return status;
}

/* -- tensors -- */

static ditto_status merge_of_local(ditto_strategy *s, ditto_value *const *arguments, uint32_t count,
                                   void *user, ditto_value **result)
{
    double local[4] = { 1, 2, 3, 4 };
    ditto_tensor t = { .data = local, .dtype = DITTO_F64, .rank = 1, .shape = { 4 } };
    return ditto_strategy_value(s, &t, result);
}
static ditto_status merges_local(ditto_replica *self, void *unused)
{
    return ditto_merge_call(self, merge_of_local, NULL, NULL, 0, NULL);
}
static ditto_status merge_gives_local(ditto_strategy *s)
{
    return ditto_strategy_run(s, merges_local, NULL);
}

static ditto_status component_of_local(uint32_t replica, uint32_t num_replicas, void *user,
                                       ditto_tensor *component)
{
    double local[4] = { replica, num_replicas, 0, 0 };
    *component = (ditto_tensor){ .data = local, .dtype = DITTO_F64, .rank = 1, .shape = { 4 } };
    return DITTO_OK;
}
static ditto_status value_of_local(ditto_strategy *s)
{
    ditto_value *out;
    return ditto_strategy_value_from_function(s, component_of_local, NULL, &out);
}

static ditto_status update_of_local(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                    void *user, ditto_tensor *result)
{
    double local = 1;
    *result = scalar_of(&local);
    return DITTO_OK;
}
static ditto_status update_gives_local(ditto_strategy *s)
{
    ditto_variable *v = variable_named(s, "a", 0, 0);
    ditto_value *results;
    ditto_status status = ditto_variable_update(v, update_of_local, NULL, NULL, 0,
                                                &OPTIONS(update, .ungrouped = 1), &results);
    assert_ok(ditto_variable_destroy(v));
    return status;
}

static ditto_tensor without_rank(double *data)
{
    return (ditto_tensor){ .data = data, .dtype = DITTO_F64, .shape = { 3 } };
}
static ditto_status value_without_rank(ditto_strategy *s)
{
    double x[3] = { 0 };
    ditto_tensor t = without_rank(x);
    ditto_value *out;
    return ditto_strategy_value(s, &t, &out);
}
static ditto_status variable_without_rank(ditto_strategy *s)
{
    ditto_tensor t = without_rank(NULL);
    ditto_variable *v;
    return ditto_variable_create(s, &t, NULL, &v);
}
static ditto_status array_without_rank(ditto_strategy *s)
{
    double x[3] = { 0 };
    ditto_tensor t = without_rank(x);
    ditto_dataset *d;
    return ditto_dataset_from_arrays(&t, 1, &d);
}
static ditto_status row_without_rank(ditto_strategy *s)
{
    ditto_tensor t = without_rank(NULL);
    ditto_generator g = DITTO_GENERATOR_INIT;
    ditto_dataset *d;
    g.next = (ditto_status(*)(void *, void *, const ditto_tensor *))1; /* it is not called */
    return ditto_dataset_from_generator(&g, &t, 1, &d);
}
static ditto_status returns_without_rank(ditto_replica *self, void *unused)
{
    double x[3] = { 0 };
    ditto_tensor t = without_rank(x);
    return ditto_return(self, "x", &t);
}
static ditto_status result_without_rank(ditto_strategy *s)
{
    ditto_value *result;
    return ditto_strategy_run_values(s, returns_without_rank, NULL, NULL, NULL, &result);
}
static ditto_status applies_without_rank(ditto_replica *self, void *optimizer)
{
    double x[3] = { 0 };
    ditto_tensor t = without_rank(x);
    return ditto_apply(self, optimizer, &t, NULL);
}
static ditto_status gradient_without_rank(ditto_strategy *s)
{
    ditto_variable *v = variable_named(s, "a", 0, 0);
    ditto_optimizer *optimizer;
    assert_ok(ditto_optimizer_create(&v, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .learning_rate = 0.1),
                                     &optimizer));
    ditto_status status = ditto_strategy_run(s, applies_without_rank, optimizer);
    assert_ok(ditto_optimizer_destroy(optimizer));
    assert_ok(ditto_variable_destroy(v));
    return status;
}

/* -- names and lists that are too long -- */

static ditto_status long_name(ditto_strategy *s)
{
    char name[700];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ditto_variable *v = variable_named(s, name, 0, 0);
    double x = 1;
    ditto_status status = ditto_variable_assign(v, DITTO_ASSIGN, &x, 3);
    assert_ok(ditto_variable_destroy(v));
    return status;
}
static ditto_status many_members(ditto_strategy *s)
{
    char names[60][48];
    const char *name[60];
    const ditto_value *member[60], *found;
    ditto_value *one = value_of(s, 1), *nest;
    for (int i = 0; i < 60; i++) {
        snprintf(names[i], sizeof names[i], "a-member-with-a-name-of-some-length-%d", i);
        name[i] = names[i];
        member[i] = one;
    }
    assert_ok(ditto_strategy_nest(s, name, member, 60, &nest));
    ditto_status status = ditto_value_member(nest, "none", &found);
    assert_ok(ditto_value_destroy(nest));
    assert_ok(ditto_value_destroy(one));
    return status;
}
static ditto_status fails_at_length(ditto_replica *self, void *text)
{
    if (ditto_replica_id(self) == 1)
        return ditto_fail(self, 1, "%s, and this is what to do", (const char *)text);
    return ditto_barrier(self, NULL);
}
static ditto_status long_failure(ditto_strategy *s)
{
    char text[900];
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 2); /* a character of two bytes */
    text[sizeof text - 2] = '\0';
    return ditto_strategy_run(s, fails_at_length, text);
}

static ditto_status broadcasts_null(ditto_replica *self, void *argument)
{
    return ditto_broadcast_from_root(self, NULL, 2, DITTO_F32, 0, NULL);
}
static ditto_status broadcast_null(ditto_strategy *s)
{
    return ditto_strategy_run(s, broadcasts_null, NULL);
}

/* Each row is a call that fails, its status, and one or two parts of its message. */
static const struct {
    ditto_status (*fails)(ditto_strategy *s);
    ditto_status status;
    const char *says[2];
} rows[] = {
    { merge_counts,
      DITTO_ERR_DIVERGED,
      { "replica 0 calls ditto_merge_call #1 (1 argument), but replica 1 calls ditto_merge_call #1 (2 "
        "arguments)" } },
    { merge_null, DITTO_ERR_INVALID, { "arguments[1]: data is NULL but should hold 8 bytes" } },
    { broadcast_null, DITTO_ERR_INVALID, { "buffer is NULL but should hold 8 bytes" } },
    { merge_fails, DITTO_ERR_USER, { "no agreement" } },
    { update_variables,
      DITTO_ERR_DIVERGED,
      { "replica 0 calls ditto_update #1 on \"a\", but replica 1 calls ditto_update #1 on \"b\"" } },
    { update_namesakes, DITTO_ERR_DIVERGED, { "(two variables of that name)" } },
    { update_null, DITTO_ERR_INVALID, { "arguments[1] is NULL" } },
    { returned_variables,
      DITTO_ERR_DIVERGED,
      { "the result w is the variable \"a\" from replica 0, but the variable \"b\" from replica 1: every "
        "replica must return the same variable" } },
    { returned_slices,
      DITTO_ERR_DIVERGED,
      { "slices of f32 with rows of 4 elements, dense_rows = 10 from replica 0, but slices of f32 with rows "
        "of 5" } },
    { regroup_variables,
      DITTO_ERR_INVALID,
      { "regroup of different variables: values[0] is \"a\", values[1] is \"b\": give one variable, or" } },
    { regroup_null, DITTO_ERR_INVALID, { "values[1] is NULL" } },
    { nest_null, DITTO_ERR_INVALID, { "members[1] is NULL" } },
    { axis_of_scalar,
      DITTO_ERR_RANGE,
      { "axis 0 of a scalar: it has no axes, so give none (num_axes = 0)" } },
    { batch_null, DITTO_ERR_INVALID, { "values[1] is NULL" } },
    { batch_destination,
      DITTO_ERR_RANGE,
      { "destinations[1]: replica 9 as a destination: the strategy has 2" } },
    { add_to_one_replica,
      DITTO_ERR_INVALID,
      { "aggregates by SUM, so only a plain assign is defined across replicas: assign the sum, or update it "
        "inside run" } },
    { weights_of_another_shape,
      DITTO_ERR_SHAPE,
      { "weights are f64 [3], losses f64 [2, 2]: weights have the shape of the losses, or one" } },
    { other_strategys_self, DITTO_ERR_CONTEXT, { "the handle belongs to another strategy" } },
    { neighbours_self,
      DITTO_ERR_CONTEXT,
      { "the handle is another replica's (replica 0's): this thread is replica 1" } },
    { default_of_another, DITTO_ERR_CONTEXT, { "another strategy; ditto_set_default(NULL) ends it" } },
    { scope_of_another,
      DITTO_ERR_CONTEXT,
      { "another strategy; leave it first (ditto_strategy_scope_leave)" } },
    { destroy_default,
      DITTO_ERR_CONTEXT,
      { "still entered as this thread's default: ditto_set_default(NULL) ends it" } },
    { enter_default_inside,
      DITTO_ERR_CONTEXT,
      { "the default strategy's scope cannot be entered inside another strategy's: leave it first" } },
    { set_default_in_scope,
      DITTO_ERR_CONTEXT,
      { "the default can only be set outside of scopes and runs: leave it first" } },
    { gather_on_replica, DITTO_ERR_CONTEXT, { "ditto_all_gather_tensor is the form for replicas" } },
    { assign_on_replica, DITTO_ERR_CONTEXT, { "ditto_assign is the form for replicas" } },
    { merge_gives_local,
      DITTO_ERR_INVALID,
      { "the result of the merge function refers to a local array of that function" } },
    { value_of_local, DITTO_ERR_INVALID, { "the component of replica 0 is a local array of the function" } },
    { update_gives_local,
      DITTO_ERR_INVALID,
      { "the result of the update of \"a\" is a local array of the function" } },
    { value_without_rank, DITTO_ERR_INVALID, { "rank is 0, which makes a scalar, but shape[0] is 3" } },
    { variable_without_rank, DITTO_ERR_INVALID, { "rank is 0, which makes a scalar, but shape[0] is 3" } },
    { array_without_rank, DITTO_ERR_INVALID, { "rank 0: rows are its first dimension" } },
    { row_without_rank, DITTO_ERR_INVALID, { "rank is 0, which makes a scalar, but shape[0] is 3" } },
    { result_without_rank, DITTO_ERR_INVALID, { "rank is 0, which makes a scalar, but shape[0] is 3" } },
    { gradient_without_rank, DITTO_ERR_INVALID, { "rank is 0, which makes a scalar, but shape[0] is 3" } },
    { long_name, DITTO_ERR_SHAPE, { "nnn...\"", "has 8 bytes, but value has 3" } },
    { many_members,
      DITTO_ERR_NOT_FOUND,
      { "no member \"none\": it is a nest of \"a-member-with-a-name-of-some-length-0\"", " more" } },
    { long_failure, DITTO_ERR_USER, { "\xc3\xa4...", "..., and this is what to do" } },
};

static void a_message_says_what_was_asked_and_found_and_what_to_do(void **state)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ditto_strategy *s = make_strategy(2, NULL);
        ditto_status status = rows[i].fails(s);
        const char *found = ditto_last_error()->message;
        if (status != rows[i].status || strstr(found, rows[i].says[0]) == NULL ||
            (rows[i].says[1] != NULL && strstr(found, rows[i].says[1]) == NULL)) {
            wrong++;
            print_error("row %zu: %s: \"%s\", not %s: \"%s\"\n", i, ditto_status_name(status), found,
                        ditto_status_name(rows[i].status), rows[i].says[0]);
        }
        assert_ok(ditto_strategy_destroy(s));
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_says_what_was_asked_and_found_and_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
