/* tests/semantics/test_distributed_values.c - docs/semantics.md, "Distributed values": rules 3.1 to 3.6. */
#include "support/as_hosts.h"
#include "support/support.h"

#include "values/values.h"

/* Gives component r the elements r and r + 0.5. Each call overwrites the array that the call before it gave,
 * so the library must copy the elements at once. */
static ditto_status pair_of(uint32_t replica, uint32_t num_replicas, void *user, ditto_tensor *component)
{
    static double pair[2];
    uint32_t *next = user;
    assert_int_equal(*next, replica); /* called once for each replica of this host, in the order of ids */
    ++*next;
    assert_true(num_replicas > replica);
    pair[0] = replica;
    pair[1] = replica + 0.5;
    *component = (ditto_tensor){ .data = pair, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } };
    return DITTO_OK;
}

static ditto_value *make_pairs(ditto_strategy *strategy)
{
    uint32_t next = first_local(strategy);
    ditto_value *value;
    assert_ok(ditto_strategy_value_from_function(strategy, pair_of, &next, &value));
    assert_int_equal(next, end_local(strategy));
    return value;
}

static ditto_tensor scalar(double *number)
{
    return (ditto_tensor){ .data = number, .dtype = DITTO_F64 };
}

static void rule_3_1_a_function_gives_each_replica_its_component(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        ditto_value *value = make_pairs(strategy);
        assert_int_equal(properties_of_value(value).kind,
                         DITTO_VALUE_PER_REPLICA); /* also with one replica */
        for (uint32_t r = first_local(strategy); r < end_local(strategy); r++) {
            ditto_tensor t;
            assert_ok(ditto_value_component(value, r, &t));
            assert_int_equal(t.shape[0], 2);
            assert_true(((double *)t.data)[0] == r && ((double *)t.data)[1] == r + 0.5);
        }
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_3_1_arrays_of_one_shape_are_stacked(void **state)
{
    ditto_strategy *strategy = make_strategy(2 * test_hosts(), NULL);
    uint32_t first = first_local(strategy);
    float a[4][3] = { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 }, { 10, 11, 12 } };
    ditto_tensor arrays[4], t;
    ditto_value *value;
    for (int i = 0; i < 4; i++)
        arrays[i] = (ditto_tensor){ .data = a[i], .dtype = DITTO_F32, .rank = 1, .shape = { 3 } };
    assert_ok(ditto_strategy_value_from_tensors(strategy, arrays, 2, &value));
    assert_ok(ditto_value_component(value, first + 1, &t));
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.shape[0], 2);
    assert_int_equal(t.shape[1], 3);
    assert_memory_equal(t.data, a[2], 6 * sizeof(float));
    assert_ok(ditto_value_destroy(value));
    arrays[3].shape[0] = 2;
    assert_status(ditto_strategy_value_from_tensors(strategy, arrays, 2, &value), DITTO_ERR_SHAPE);
    assert_message("stacked");
    /* With one array for each replica nothing is stacked. The call reads only the first two arrays. */
    arrays[1].shape[0] = 2; /* without stacking the shapes of the replicas may differ */
    assert_ok(ditto_strategy_value_from_tensors(strategy, arrays, 1, &value));
    for (uint32_t r = 0; r < 2; r++) {
        assert_ok(ditto_value_component(value, first + r, &t));
        assert_int_equal(t.rank, 1);
        assert_int_equal(t.shape[0], arrays[r].shape[0]);
        assert_memory_equal(t.data, a[r], arrays[r].shape[0] * sizeof(float));
    }
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_3_2_local_results_are_the_components_in_replica_order(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_value *value = make_pairs(strategy), *plain, *nest, *results[3];
    double seven = 7;
    uint32_t count, first = first_local(strategy), n = num_local(strategy);
    ditto_tensor t = scalar(&seven);
    assert_ok(ditto_strategy_local_results(strategy, value, results, &count));
    assert_int_equal(count, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_ok(ditto_value_tensor(results[i], &t));
        assert_true(((double *)t.data)[0] == first + i);
        assert_ptr_equal(properties_of_value(results[i]).container, value);
        assert_ok(ditto_value_destroy(results[i]));
    }
    t = scalar(&seven);
    assert_ok(ditto_strategy_value(strategy, &t, &plain));
    assert_ok(ditto_strategy_local_results(strategy, plain, results, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(results[0], plain);
    for (uint32_t i = 1; i < n; i++)
        assert_null(results[i]); /* outputs beyond the count are NULL */
    assert_ok(ditto_value_destroy(results[0]));
    const ditto_value *members[] = { value, plain };
    assert_ok(ditto_strategy_nest(strategy, (const char *[]){ "pair", "seven" }, members, 2, &nest));
    assert_ok(ditto_strategy_local_results(strategy, nest, results, &count));
    assert_int_equal(count, n);
    for (uint32_t i = 0; i < n; i++) { /* one nest for each replica, with the plain leaf in each */
        const ditto_value *member;
        double number;
        assert_ok(ditto_value_member(results[i], "pair", &member));
        assert_ok(ditto_value_tensor(member, &t));
        assert_true(((double *)t.data)[1] == first + i + 0.5);
        assert_ok(ditto_value_member(results[i], "seven", &member));
        assert_ok(ditto_value_f64(member, &number));
        assert_true(number == 7);
        assert_ptr_equal(properties_of_value(results[i]).container, nest);
        assert_ok(ditto_value_destroy(results[i]));
    }
    assert_ok(ditto_value_destroy(nest));
    assert_ok(ditto_value_destroy(plain));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status assign_own_id(ditto_replica *self, void *variable)
{
    double id = ditto_replica_id(self);
    return ditto_assign(self, variable, DITTO_ASSIGN, &id);
}

static void rule_3_2_a_variable_gives_its_components(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    double one = 1, number;
    ditto_tensor t = scalar(&one);
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_variable *variable;
    ditto_value *value, *results[3], *selected;
    uint32_t count, first = first_local(strategy), n = num_local(strategy);
    options.synchronization = DITTO_ON_READ; /* so that the components can differ */
    assert_ok(ditto_variable_create(strategy, &t, &options, &variable));
    assert_ok(ditto_strategy_run(strategy, assign_own_id, variable));
    assert_ok(ditto_variable_value(variable, &value));
    assert_ok(ditto_strategy_local_results(strategy, value, results, &count));
    assert_int_equal(count, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_ok(ditto_value_f64(results[i], &number));
        assert_true(number == first + i);
        assert_ptr_equal(properties_of_value(results[i]).container, value);
        assert_ok(ditto_value_destroy(results[i]));
    }
    /* Selecting the part of a replica gives the variable itself. */
    assert_ok(ditto_value_select(value, end_local(strategy) - 1, &selected));
    assert_ptr_equal(properties_of_value(selected).variable, variable);
    assert_ok(ditto_value_destroy(selected));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_3_3_a_per_replica_value_is_not_one_tensor(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *value = make_pairs(strategy), *first;
    uint32_t id = first_local(strategy);
    ditto_tensor t;
    assert_status(ditto_value_tensor(value, &t), DITTO_ERR_INVALID);
    assert_message("choose a replica");
    assert_message("reduce it");
    assert_ok(ditto_value_select(value, id, &first));
    assert_ok(ditto_value_tensor(first, &t));
    assert_ok(ditto_value_destroy(value)); /* the selected component keeps the value in memory */
    assert_true(((double *)t.data)[1] == id + 0.5);
    assert_ok(ditto_value_destroy(first));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_3_4_a_mirrored_value_stands_for_its_first_component(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    double seven = 7, number;
    ditto_tensor t = scalar(&seven), a, b;
    ditto_value *like = make_pairs(strategy), *mirrored;
    assert_ok(ditto_strategy_broadcast_to(strategy, &t, (ditto_destination){ .of = like }, &mirrored));
    assert_int_equal(properties_of_value(mirrored).kind, DITTO_VALUE_MIRRORED);
    assert_ok(ditto_value_f64(mirrored, &number));
    assert_true(number == 7);
    assert_ok(ditto_value_tensor(mirrored, &a));
    assert_ok(ditto_value_component(mirrored, first_local(strategy), &b));
    assert_ptr_equal(a.data, b.data);
    assert_ok(ditto_value_destroy(mirrored));
    assert_ok(ditto_value_destroy(like));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_3_5_a_value_without_a_container_is_its_own_container(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *value = make_pairs(strategy);
    assert_ptr_equal(properties_of_value(value).container, value);
    assert_status(ditto_value_info(NULL, &(ditto_value_properties)DITTO_VALUE_PROPERTIES_INIT),
                  DITTO_ERR_INVALID);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Gives replica r a component of r % 3 + 1 rows of two numbers. `user` is NULL, or says what is wrong for
 * replicas with odd ids: the dtype or the rank of their components, or the call, which fails. */
static ditto_status rows_of(uint32_t replica, uint32_t num_replicas, void *user, ditto_tensor *component)
{
    static float rows[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
    const char *wrong = replica % 2 == 1 && user != NULL ? user : "";
    *component = (ditto_tensor){
        .data = rows, .dtype = DITTO_F32, .rank = 2, .shape = { replica % 3 + 1, 2 }
    };
    if (strcmp(wrong, "dtype") == 0)
        component->dtype = DITTO_I32;
    if (strcmp(wrong, "rank") == 0)
        component->rank = 1;
    return strcmp(wrong, "fails") == 0 ? ditto_fail(NULL, 5, "no rows today") : DITTO_OK;
}

static void rule_3_6_components_may_differ_in_shape_alone(void **state)
{
    ditto_strategy *strategy = make_strategy(2 * test_hosts(), NULL);
    uint32_t first = first_local(strategy);
    char expected[100];
    ditto_value *value;
    assert_ok(ditto_strategy_value_from_function(strategy, rows_of, NULL, &value));
    ditto_tensor spec = properties_of_value(value).spec;
    assert_int_equal(spec.dtype, DITTO_F32);
    assert_int_equal(spec.rank, 2);
    assert_true(spec.shape[0] == DITTO_ANY_SIZE && spec.shape[1] == 2 && spec.data == NULL);
    assert_ok(ditto_value_destroy(value));
    assert_status(ditto_strategy_value_from_function(strategy, rows_of, "dtype", &value), DITTO_ERR_INVALID);
    snprintf(expected, sizeof expected,
             "replica %u's component is i32 of rank 2, but replica %u's is f32 of rank 2", first + 1, first);
    assert_message(expected);
    assert_status(ditto_strategy_value_from_function(strategy, rows_of, "rank", &value), DITTO_ERR_INVALID);
    assert_status(ditto_strategy_value_from_function(strategy, rows_of, "fails", &value), DITTO_ERR_USER);
    assert_message("no rows today");
    assert_int_equal(ditto_last_error()->user_code, 5);
    assert_ok(ditto_strategy_destroy(strategy));
}

static void regroup_is_the_inverse_of_local_results(void **state)
{
    ditto_strategy *strategy = make_strategy(3 * test_hosts(), NULL);
    ditto_value *value = make_pairs(strategy), *results[3], *again, *same;
    uint32_t count, first = first_local(strategy);
    ditto_tensor t;
    assert_ok(ditto_strategy_local_results(strategy, value, results, &count));
    assert_ok(ditto_strategy_regroup(strategy, (const ditto_value *const *)results, 0, &again));
    assert_int_equal(properties_of_value(again).kind, DITTO_VALUE_PER_REPLICA);
    for (uint32_t r = first; r < first + 3; r++) {
        assert_ok(ditto_value_component(again, r, &t));
        assert_int_equal(t.shape[0], 2);
        assert_true(((double *)t.data)[0] == r && ((double *)t.data)[1] == r + 0.5);
    }
    assert_ok(ditto_value_destroy(again));
    /* Regrouping the same value for every replica gives that value, unless `always_wrap` is set, or there are
     * other hosts. */
    const ditto_value *one[3] = { results[0], results[0], results[0] };
    assert_ok(ditto_strategy_regroup(strategy, one, 0, &same));
    if (test_hosts() == 1)
        assert_ptr_equal(same, results[0]);
    else
        assert_int_equal(properties_of_value(same).kind, DITTO_VALUE_PER_REPLICA);
    assert_ok(ditto_value_destroy(same));
    assert_ok(ditto_strategy_regroup(strategy, one, 1, &same));
    assert_int_equal(properties_of_value(same).kind, DITTO_VALUE_PER_REPLICA);
    assert_ok(ditto_value_destroy(same));
    for (int i = 0; i < 3; i++)
        assert_ok(ditto_value_destroy(results[i]));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void components_are_regrouped_to_a_per_replica_value_on_every_host(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL); /* a host may have only one of the replicas */
    ditto_value *value = make_pairs(strategy), *results[3], *again, *sum;
    uint32_t count;
    ditto_tensor t;
    assert_ok(ditto_strategy_local_results(strategy, value, results, &count));
    assert_ok(ditto_strategy_regroup(strategy, (const ditto_value *const *)results, 0, &again));
    assert_int_equal(properties_of_value(again).kind, DITTO_VALUE_PER_REPLICA);
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, again, NULL, 0, &sum));
    assert_ok(ditto_value_tensor(sum, &t));
    assert_true(((double *)t.data)[0] == 3 && ((double *)t.data)[1] == 4.5);
    assert_ok(ditto_value_destroy(sum));
    assert_ok(ditto_value_destroy(again));
    for (uint32_t i = 0; i < count; i++)
        assert_ok(ditto_value_destroy(results[i]));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void a_variables_components_are_regrouped_to_the_variable(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        uint32_t n = num_local(strategy), count;
        double one = 1;
        ditto_tensor t = scalar(&one);
        ditto_variable *variable;
        ditto_value *value, *part[64], *nest, *of_nest[64], *again;
        const ditto_value *found;
        assert_ok(ditto_variable_create(
            strategy, &t, &OPTIONS(variable, .synchronization = k % 2 ? DITTO_ON_READ : DITTO_ON_WRITE),
            &variable));
        assert_ok(ditto_variable_value(variable, &value));
        assert_ok(ditto_strategy_local_results(strategy, value, part, &count));
        assert_int_equal(count, n);
        for (int wrap = 0; wrap < 2; wrap++) {
            assert_ok(ditto_strategy_regroup(strategy, (const ditto_value *const *)part, wrap, &again));
            assert_int_equal(properties_of_value(again).kind, DITTO_VALUE_VARIABLE);
            assert_ptr_equal(again, value);
            assert_ok(ditto_value_destroy(again));
        }
        if (n > 1) { /* in another order they are components and not the variable */
            ditto_value *first = part[0];
            part[0] = part[1];
            part[1] = first;
            assert_ok(ditto_strategy_regroup(strategy, (const ditto_value *const *)part, 0, &again));
            assert_int_equal(properties_of_value(again).kind, DITTO_VALUE_PER_REPLICA);
            assert_ok(ditto_value_destroy(again));
        }
        for (uint32_t r = 0; r < n; r++)
            assert_ok(ditto_value_destroy(part[r]));
        assert_ok(ditto_strategy_nest(strategy, NULL, (const ditto_value *[]){ value }, 1, &nest));
        assert_ok(ditto_strategy_local_results(strategy, nest, of_nest, &count)); /* leaf by leaf */
        assert_ok(ditto_strategy_regroup(strategy, (const ditto_value *const *)of_nest, 0, &again));
        assert_ok(ditto_value_member(again, "0", &found));
        assert_int_equal(properties_of_value(found).kind, DITTO_VALUE_VARIABLE);
        assert_ok(ditto_value_destroy(again));
        for (uint32_t r = 0; r < n; r++)
            assert_ok(ditto_value_destroy(of_nest[r]));
        assert_ok(ditto_value_destroy(nest));
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_variable_destroy(variable));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void nests_have_members_by_path(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    double one = 1, two = 2, number;
    ditto_tensor a = scalar(&one), b = scalar(&two);
    ditto_value *first, *second, *inner, *outer;
    const ditto_value *found;
    assert_ok(ditto_strategy_value(strategy, &a, &first));
    assert_ok(ditto_strategy_value(strategy, &b, &second));
    assert_ok(ditto_strategy_nest(strategy, NULL, (const ditto_value *[]){ first, second }, 2, &inner));
    assert_ok(ditto_strategy_nest(strategy, (const char *[]){ "batch" }, (const ditto_value *[]){ inner }, 1,
                                  &outer));
    assert_ok(ditto_value_destroy(first)); /* nests keep their members */
    assert_ok(ditto_value_destroy(second));
    assert_ok(ditto_value_destroy(inner));
    assert_int_equal(properties_of_value(outer).num_members, 1);
    assert_string_equal(properties_of_value(outer).members[0].name, "batch");
    assert_ok(ditto_value_member(outer, "batch/1", &found));
    assert_ok(ditto_value_f64(found, &number));
    assert_true(number == 2);
    assert_status(ditto_value_member(outer, "batch/2", &found), DITTO_ERR_NOT_FOUND);
    assert_status(ditto_value_member(outer, "rows", &found), DITTO_ERR_NOT_FOUND);
    assert_message("\"batch\"");
    assert_status(
        ditto_strategy_nest(strategy, (const char *[]){ "a/b" }, (const ditto_value *[]){ outer }, 1, &inner),
        DITTO_ERR_INVALID);
    assert_status(ditto_strategy_nest(strategy, (const char *[]){ "a", "a" },
                                      (const ditto_value *[]){ outer, outer }, 2, &inner),
                  DITTO_ERR_INVALID);
    assert_message("twice");
    assert_ok(ditto_value_destroy(outer));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void values_of_a_destroyed_or_another_strategy_are_refused(void **state)
{
    ditto_strategy *one = make_strategy(2, NULL), *other = make_strategy(2, NULL);
    ditto_value *value = make_pairs(one), *result;
    ditto_tensor t;
    uint32_t count;
    ditto_value *results[2];
    assert_status(ditto_strategy_reduce(other, DITTO_SUM, value, NULL, 0, &result), DITTO_ERR_CONTEXT);
    assert_message("mixing strategies");
    assert_status(ditto_strategy_local_results(other, value, results, &count), DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_destroy(one));
    assert_status(ditto_value_component(value, 0, &t), DITTO_ERR_CONTEXT);
    assert_message("destroyed");
    assert_status(ditto_value_select(value, 0, &result), DITTO_ERR_CONTEXT);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(other));
}

static void nests_have_a_limit(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *value = make_pairs(strategy), *outer;
    ditto_status status;
    int depth = 0;
    while ((status = ditto_strategy_nest(strategy, NULL, (const ditto_value *[]){ value }, 1, &outer)) ==
           DITTO_OK) {
        assert_ok(ditto_value_destroy(value));
        value = outer;
        depth++;
    }
    assert_int_equal(status, DITTO_ERR_RANGE);
    assert_int_equal(depth, 64);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Replica 1 never returns. */
static ditto_status stay_away(ditto_replica *self, void *unused)
{
    while (ditto_replica_id(self) == 1)
        sleep_ms(1000);
    return DITTO_OK;
}

/* Runs in a child process, because replica 1 and the poisoned strategy stay until the process ends. */
static int use_poisoned_values(void *unused)
{
    ditto_strategy *strategy;
    double one = 1;
    ditto_tensor t = { .data = &one, .dtype = DITTO_F64 }, parts[2] = { t, t };
    ditto_value *value, *other;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 2, .run_timeout_ms = 50),
                                  &strategy) == DITTO_OK);
    REQUIRE(ditto_strategy_value_from_tensors(strategy, parts, 1, &value) == DITTO_OK);
    REQUIRE(ditto_strategy_run(strategy, stay_away, NULL) == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_strategy_value(strategy, &t, &other) == DITTO_ERR_POISONED);
    REQUIRE(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &other) == DITTO_ERR_POISONED);
    REQUIRE(ditto_value_select(value, 0, &other) == DITTO_ERR_POISONED);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    REQUIRE(ditto_value_component(value, 0, &t) == DITTO_ERR_CONTEXT);
    REQUIRE(ditto_value_destroy(value) == DITTO_OK);
    return 0;
}

static int use_values_after_fork(void *argument)
{
    ditto_value *value = argument, *other;
    ditto_tensor t;
    double one = 1;
    t = (ditto_tensor){ .data = &one, .dtype = DITTO_F64 };
    ditto_strategy *strategy = value->strategy;
    REQUIRE(ditto_strategy_value(strategy, &t, &other) == DITTO_ERR_FORKED);
    REQUIRE(ditto_value_select(value, 0, &other) == DITTO_ERR_FORKED);
    REQUIRE(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &other) == DITTO_ERR_FORKED);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    REQUIRE(ditto_value_component(value, 0, &t) == DITTO_ERR_CONTEXT);
    REQUIRE(ditto_value_destroy(value) == DITTO_OK);
    return 0;
}

static void values_of_a_poisoned_strategy_or_of_before_a_fork_are_refused(void **state)
{
    assert_int_equal(in_child(use_poisoned_values, NULL, 60), 0);
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *value = make_pairs(strategy);
    assert_int_equal(in_child(use_values_after_fork, value, 60), 0);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status echo(ditto_replica *self, void *unused)
{
    ditto_tensor t;
    DITTO_TRY(ditto_argument(self, NULL, &t));
    return ditto_return(self, NULL, &t);
}

static uint64_t allocations(const ditto_strategy *strategy)
{
    uint64_t sum = dti_base_of(strategy)->values->allocations;
    for (uint32_t i = 0; i < num_local(strategy); i++)
        sum += dti_pool_of(strategy, i)->allocations;
    return sum;
}

static void creating_and_destroying_values_allocates_nothing_in_a_steady_state(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        uint64_t before = 0;
        int trials = test_trials(200);
        assert_ok(ditto_strategy_scope_enter(strategy));
        for (int i = 0; i < trials; i++) {
            ditto_value *value = make_pairs(strategy), *back, *sum;
            assert_ok(ditto_strategy_run_values(strategy, echo, NULL, value, NULL, &back));
            assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, back, NULL, 0, &sum));
            assert_ok(ditto_value_destroy(value));
            assert_ok(ditto_value_destroy(back));
            assert_ok(ditto_value_destroy(sum));
            if (i == trials / 2)
                before = allocations(strategy);
        }
        assert_int_equal(allocations(strategy), before);
        assert_ok(ditto_strategy_scope_leave(strategy));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_3_1_a_function_gives_each_replica_its_component),
        cmocka_unit_test(rule_3_1_arrays_of_one_shape_are_stacked),
        cmocka_unit_test(rule_3_2_local_results_are_the_components_in_replica_order),
        cmocka_unit_test(rule_3_2_a_variable_gives_its_components),
        cmocka_unit_test(rule_3_3_a_per_replica_value_is_not_one_tensor),
        cmocka_unit_test(rule_3_4_a_mirrored_value_stands_for_its_first_component),
        cmocka_unit_test(rule_3_5_a_value_without_a_container_is_its_own_container),
        cmocka_unit_test(rule_3_6_components_may_differ_in_shape_alone),
        cmocka_unit_test(regroup_is_the_inverse_of_local_results),
        cmocka_unit_test(components_are_regrouped_to_a_per_replica_value_on_every_host),
        cmocka_unit_test(a_variables_components_are_regrouped_to_the_variable),
        cmocka_unit_test(nests_have_members_by_path),
        cmocka_unit_test(values_of_a_destroyed_or_another_strategy_are_refused),
        cmocka_unit_test(nests_have_a_limit),
        one_host_test(values_of_a_poisoned_strategy_or_of_before_a_fork_are_refused,
                      "a fork, and a replica that never returns, concern their process alone"),
        cmocka_unit_test(creating_and_destroying_values_allocates_nothing_in_a_steady_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
