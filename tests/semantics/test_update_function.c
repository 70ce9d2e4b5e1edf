/* tests/semantics/test_update_function.c - docs/semantics.md, rules 7.3 to 7.5: update outside of runs and
 * inside. */
#include "support/as_hosts.h"
#include "support/support.h"

static ditto_variable *make_variable(ditto_strategy *strategy, double start, ditto_copies copies)
{
    ditto_tensor t = { .data = &start, .dtype = DITTO_F64 };
    ditto_variable *variable;
    assert_ok(ditto_variable_create(
        strategy, &t, &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM, .copies = copies), &variable));
    return variable;
}

struct updating {
    struct report report;
    ditto_strategy *strategy;
    ditto_variable *variable;
    _Atomic int calls;
    bool silent_on_one; /* the update of replica 1 returns no result */
};

static ditto_status do_nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

static ditto_status add_argument(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                 void *user, ditto_tensor *result)
{
    static _Thread_local double given;
    struct updating *u = user;
    double seen, more = *(const double *)arguments[0].data;
    double *own_copy = copy->data;
    EXPECT(&u->report, count == 1 && context_here().update_replica != DITTO_NO_REPLICA);
    EXPECT(&u->report, ditto_variable_read(u->variable, &seen, sizeof seen) == DITTO_OK && seen == *own_copy);
    EXPECT(&u->report, ditto_variable_assign(u->variable, DITTO_ASSIGN_ADD, &more, sizeof more) == DITTO_OK);
    EXPECT(&u->report, *own_copy == seen + more); /* the two calls read and write this copy */
    EXPECT(&u->report, ditto_strategy_run(u->strategy, do_nothing, NULL) == DITTO_ERR_CONTEXT);
    EXPECT(&u->report, ditto_get_replica_context() == NULL && context_here().kind == DITTO_CONTEXT_UPDATE);
    given = *own_copy;
    if (!(u->silent_on_one && context_here().update_replica == 1))
        *result = (ditto_tensor){ .data = &given, .dtype = DITTO_F64 };
    u->calls++;
    return DITTO_OK;
}

/* Checks the components of the replicas of this host. */
static void expect_components(const ditto_strategy *strategy, ditto_variable *variable, double first,
                              double step)
{
    for (uint32_t r = first_local(strategy); r < end_local(strategy); r++) {
        const void *data;
        assert_ok(component_of(variable, r, &data));
        assert_true(*(const double *)data == first + step * r);
    }
}

static void rule_7_3_update_works_on_each_copy_once_with_matching_arguments(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        struct updating u = { .strategy = strategy };
        double parts[64], ten = 10;
        ditto_tensor t[64], plain = { .data = &ten, .dtype = DITTO_F64 };
        for (uint32_t r = 0; r < n; r++) {
            parts[r] = r;
            t[r] = (ditto_tensor){ .data = &parts[r], .dtype = DITTO_F64 };
        }
        ditto_value *each, *one, *results;
        assert_ok(ditto_strategy_value_from_tensors(strategy, t + first_local(strategy), 1, &each));
        assert_ok(ditto_strategy_value(strategy, &plain, &one));
        u.variable = make_variable(strategy, 1, DITTO_COPIES_PER_REPLICA);
        assert_ok(ditto_variable_update(u.variable, add_argument, &u, (const ditto_value *[]){ one }, 1, NULL,
                                        NULL));
        assert_string_equal(u.report.first_failure, "");
        assert_int_equal(u.calls, num_local(strategy));
        expect_components(strategy, u.variable, 11, 0); /* the argument is neither summed nor divided */
        assert_ok(ditto_variable_update(u.variable, add_argument, &u, (const ditto_value *[]){ each }, 1,
                                        &OPTIONS(update, .ungrouped = 1), &results));
        expect_components(strategy, u.variable, 11, 1); /* now the components differ */
        for (uint32_t r = first_local(strategy); r < end_local(strategy); r++) {
            ditto_tensor found;
            assert_ok(ditto_value_component(results, r, &found));
            assert_true(*(double *)found.data == 11.0 + r);
        }
        assert_ok(ditto_value_destroy(results));
        assert_ok(ditto_variable_destroy(u.variable));
        assert_ok(ditto_value_destroy(each));
        assert_ok(ditto_value_destroy(one));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void need_a_copy_for_each(uint32_t n)
{
    ditto_strategy *strategy = make_strategy(n, NULL);
    struct updating u = { .strategy = strategy };
    double parts[3] = { 1, 2, 3 };
    ditto_tensor t[3];
    for (int r = 0; r < 3; r++)
        t[r] = (ditto_tensor){ .data = &parts[r], .dtype = DITTO_F64 };
    ditto_value *each, *results;
    assert_ok(ditto_strategy_value_from_tensors(strategy, t, 1, &each));
    u.variable = make_variable(strategy, 0, DITTO_COPIES_DEFAULT);
    assert_status(
        ditto_variable_update(u.variable, add_argument, &u, (const ditto_value *[]){ each }, 1, NULL, NULL),
        DITTO_ERR_INVALID);
    assert_message("DITTO_COPIES_PER_REPLICA");
    assert_int_equal(u.calls, 0);
    assert_ok(ditto_variable_destroy(u.variable));
    u.variable = make_variable(strategy, 0, DITTO_COPIES_PER_REPLICA);
    u.silent_on_one = true;
    assert_status(ditto_variable_update(u.variable, add_argument, &u, (const ditto_value *[]){ each }, 1,
                                        &OPTIONS(update, .ungrouped = 1), &results),
                  DITTO_ERR_INVALID);
    assert_message("for all copies, or for none");
    assert_ok(ditto_variable_destroy(u.variable));
    assert_ok(ditto_value_destroy(each));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_7_3_per_replica_arguments_need_a_copy_for_each_replica(void **state)
{
    need_a_copy_for_each(3 * test_hosts());
}

/* Over several hosts, there are hosts with one replica. */
static void rule_7_3_holds_where_no_other_replica_of_the_host_shares_the_copy(void **state)
{
    need_a_copy_for_each(3);
}

static ditto_status update_inside(ditto_replica *self, void *argument)
{
    struct updating *u = argument;
    double mine = ditto_replica_id(self) + 1.0;
    ditto_tensor t = { .data = &mine, .dtype = DITTO_F64 }, result;
    const void *own_copy;
    EXPECT(&u->report, ditto_update(self, u->variable, add_argument, u, &t, 1, &result) == DITTO_OK);
    mine = -1; /* after the update no replica reads it */
    EXPECT(&u->report, ditto_read(self, u->variable, &own_copy) == DITTO_OK);
    EXPECT(&u->report, *(const double *)own_copy == *(double *)result.data);
    return ditto_free(self, result.data);
}

static void rule_7_4_replicas_may_update_a_variable_in_a_run(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        struct updating u = { .strategy = strategy };
        u.variable = make_variable(strategy, 100, DITTO_COPIES_PER_REPLICA);
        run_all(strategy, update_inside, &u, &u.report);
        expect_components(strategy, u.variable, 101, 1);
        assert_ok(ditto_variable_destroy(u.variable));
        /* The replicas of a node share a copy, so the arguments of replica 0 are used for all copies. */
        u.variable = make_variable(strategy, 100, DITTO_COPIES_DEFAULT);
        run_all(strategy, update_inside, &u, &u.report);
        expect_components(strategy, u.variable, 101, 0);
        assert_ok(ditto_variable_destroy(u.variable));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static ditto_status fail_update(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                void *user, ditto_tensor *result)
{
    return context_here().update_replica == 1 ? ditto_fail(NULL, 8, "no update") : DITTO_OK;
}
static ditto_status call_fail_update(ditto_replica *self, void *variable)
{
    return ditto_update(self, variable, fail_update, NULL, NULL, 0, NULL);
}

static void an_update_returns_the_error_of_its_function(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_variable *variable = make_variable(strategy, 0, DITTO_COPIES_PER_REPLICA);
    assert_status(ditto_variable_update(variable, fail_update, NULL, NULL, 0, NULL, NULL), DITTO_ERR_USER);
    assert_message("no update");
    assert_int_equal(ditto_last_error()->replica, 1);
    assert_status(ditto_strategy_run(strategy, call_fail_update, variable), DITTO_ERR_USER);
    assert_message("no update");
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Doubles the copy and returns it as the result. If `user` is not NULL, it does nothing. */
static ditto_status double_it(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                              void *user, ditto_tensor *result)
{
    if (user != NULL)
        return DITTO_OK;
    *(double *)copy->data *= 2;
    if (ditto_strategy_value(ditto_get_strategy(), copy, (ditto_value **)&(void *){ NULL }) !=
        DITTO_ERR_CONTEXT)
        return DITTO_ERR_USER;
    *result = *copy; /* refers to the copy itself, whose contents are copied at once */
    return DITTO_OK;
}

static uint32_t node_of(ditto_strategy *strategy, uint32_t replica)
{
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    assert_ok(ditto_strategy_replica_info(strategy, replica, 0, &info));
    return info.planned.pu.memory_node;
}

static void rule_7_5_ungrouped_gives_one_result_for_each_copy(void **state)
{
    ditto_strategy *strategy = make_strategy(3 * test_hosts(), NULL);
    uint32_t r = first_local(strategy);
    ditto_update_options ungrouped = OPTIONS(update, .ungrouped = 1);
    for (int copies = DITTO_COPIES_DEFAULT; copies <= DITTO_COPIES_PER_REPLICA; copies++) {
        ditto_variable *variable = make_variable(strategy, 4, (ditto_copies)copies);
        ditto_value *results = NULL;
        ditto_tensor first, last;
        assert_ok(ditto_variable_update(variable, double_it, NULL, NULL, 0, &ungrouped, &results));
        assert_ok(ditto_value_component(results, r, &first));
        assert_ok(ditto_value_component(results, r + 2, &last));
        assert_true(*(double *)first.data == 8 && *(double *)last.data == 8);
        /* There is one result for each copy, and all replicas of a node share a copy by default. */
        bool are_shared = copies == DITTO_COPIES_DEFAULT && node_of(strategy, r) == node_of(strategy, r + 2);
        assert_true((first.data == last.data) == are_shared);
        ditto_value *grouped = results; /* anything but NULL */
        /* Without `ungrouped` the results are dropped. */
        assert_ok(ditto_variable_update(variable, double_it, NULL, NULL, 0, NULL, &grouped));
        assert_null(grouped);
        assert_true(*(double *)first.data == 8);
        assert_ok(ditto_value_destroy(results));
        assert_ok(ditto_variable_update(variable, double_it, &ungrouped, NULL, 0, &ungrouped, &results));
        assert_null(results); /* the function set none */
        assert_status(ditto_variable_update(variable, double_it, NULL, NULL, 0, &ungrouped, NULL),
                      DITTO_ERR_INVALID);
        assert_ok(ditto_variable_destroy(variable));
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_7_3_update_works_on_each_copy_once_with_matching_arguments),
        cmocka_unit_test(rule_7_3_per_replica_arguments_need_a_copy_for_each_replica),
        cmocka_unit_test(rule_7_3_holds_where_no_other_replica_of_the_host_shares_the_copy),
        cmocka_unit_test(rule_7_4_replicas_may_update_a_variable_in_a_run),
        cmocka_unit_test(rule_7_5_ungrouped_gives_one_result_for_each_copy),
        cmocka_unit_test(an_update_returns_the_error_of_its_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
