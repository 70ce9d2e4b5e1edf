/* tests/semantics/test_merge.c - docs/semantics.md, rules 7.1 and 7.2: merge_call and runs inside it.
 * Also tests what rules 2.3 and 2.4 say about merge calls. */
#include "support/as_hosts.h"
#include "support/support.h"

#include "values/values.h"

#include <unistd.h>

/* -- merge_call -- */

struct merging {
    struct report report;
    _Atomic int calls;
    ditto_strategy *strategy;
    ditto_status returned; /* what the merge function returns */
};

static ditto_status add_up(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                           void *user, ditto_value **result)
{
    struct merging *m = user;
    m->calls++;
    EXPECT(&m->report, strategy == m->strategy && count == 2);
    EXPECT(&m->report,
           context_here().kind == DITTO_CONTEXT_CROSS_REPLICA && ditto_get_strategy() == strategy);
    EXPECT(&m->report, ditto_get_replica_context() == NULL);
    EXPECT(&m->report, properties_of_value(arguments[0]).kind == DITTO_VALUE_PER_REPLICA);
    return ditto_strategy_reduce(strategy, DITTO_SUM, arguments[0], NULL, 0, result);
}

static ditto_status call_add_up(ditto_replica *self, void *argument)
{
    struct merging *m = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    const ditto_value *result;
    for (int i = 0; i < 20; i++) {
        double mine = (double)id + i, other[2] = { 1, 2 }, sum;
        ditto_tensor arguments[] = { { .data = &mine, .dtype = DITTO_F64 },
                                     { .data = other, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } } };
        ditto_tensor t;
        EXPECT(&m->report, ditto_merge_call(self, add_up, m, arguments, 2, &result) == DITTO_OK);
        EXPECT(&m->report, ditto_local(self, result, &t) == DITTO_OK);
        sum = *(double *)t.data;
        EXPECT(&m->report, sum == n * (n - 1) / 2.0 + (double)n * i); /* on every replica */
        EXPECT(&m->report, ditto_merge_call(self, add_up, m, arguments, 2, NULL) == DITTO_OK);
        EXPECT(&m->report, ditto_barrier(self, NULL) == DITTO_OK);
    }
    return DITTO_OK;
}

/* Creates a strategy in which the thread that calls ditto_strategy_run waits, or is replica 0. */
static ditto_strategy *make_with_caller(uint32_t n, bool waits)
{
    return make_strategy(n, &OPTIONS(strategy, .caller = waits ? DITTO_CALLER_WAITS : DITTO_CALLER_DEFAULT));
}

static void rule_7_1_the_merge_function_runs_once_in_cross_context(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (int waits = 0; waits < 2; waits++) {
            ditto_strategy *strategy = make_with_caller(replica_counts[k], waits);
            struct merging m = { .strategy = strategy };
            run_all(strategy, call_add_up, &m, &m.report);
            run_all(strategy, call_add_up, &m, &m.report);
            assert_int_equal(m.calls, 80);
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

/* Makes the component of each replica ten times the component that the replica passed to merge_call. */
static ditto_status times_ten(uint32_t replica, uint32_t num_replicas, void *user, ditto_tensor *component)
{
    static double number;
    ditto_tensor t;
    DITTO_TRY(ditto_value_component(user, replica, &t));
    number = 10 * *(double *)t.data;
    *component = (ditto_tensor){ .data = &number, .dtype = DITTO_F64 };
    return DITTO_OK;
}
static ditto_status give_each(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                              void *user, ditto_value **result)
{
    if (user != NULL) { /* returns the argument itself */
        *result = arguments[0];
        return DITTO_OK;
    }
    return ditto_strategy_value_from_function(strategy, times_ten, arguments[0], result);
}

static ditto_status take_each(ditto_replica *self, void *report)
{
    const ditto_value *result;
    double mine = ditto_replica_id(self);
    ditto_tensor argument = { .data = &mine, .dtype = DITTO_F64 }, t;
    for (int itself = 0; itself < 2; itself++) {
        EXPECT((struct report *)report,
               ditto_merge_call(self, give_each, itself ? report : NULL, &argument, 1, &result) == DITTO_OK);
        EXPECT((struct report *)report, ditto_local(self, result, &t) == DITTO_OK);
        EXPECT((struct report *)report, *(double *)t.data == (itself ? 1 : 10) * mine);
        EXPECT((struct report *)report, result->references == 1); /* only merge_call holds it */
    }
    return DITTO_OK;
}

static void rule_7_1_each_replica_gets_its_component_of_a_per_replica_result(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct report report = { 0 };
        run_once(replica_counts[k], NULL, take_each, &report, &report);
    }
}

/* -- runs inside -- */

struct nesting {
    struct merging m;
    uint32_t runs_inside; /* how many more runs begin inside the present one */
    _Atomic int innermost;
};

static ditto_status nest(ditto_replica *self, void *argument);

static ditto_status run_again(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                              void *user, ditto_value **result)
{
    struct nesting *n = user;
    n->runs_inside--;
    ditto_status status = ditto_strategy_run(strategy, nest, n);
    n->runs_inside++;
    return status;
}

static ditto_status nest(ditto_replica *self, void *argument)
{
    struct nesting *n = argument;
    uint32_t runs_inside = n->runs_inside, replicas = ditto_num_replicas(self), id = ditto_replica_id(self);
    double one = 1, sum;
    ditto_pending pending;
    uint32_t started = id, total = 0;
    /* An operation that is pending here is not disturbed by the runs inside. */
    EXPECT(&n->m.report, ditto_all_reduce_start(self, &started, &total, 1, DITTO_U32, DITTO_SUM, NULL,
                                                &pending) == DITTO_OK);
    if (runs_inside == 0)
        n->innermost++;
    else {
        ditto_replica *outer = self;
        EXPECT(&n->m.report, ditto_merge_call(self, run_again, n, NULL, 0, NULL) == DITTO_OK);
        EXPECT(&n->m.report, ditto_replica_id(outer) == id); /* the handle is valid again */
    }
    EXPECT(&n->m.report, ditto_wait(self, &pending, NULL) == DITTO_OK);
    EXPECT(&n->m.report, total == replicas * (replicas - 1) / 2);
    EXPECT(&n->m.report, ditto_all_reduce(self, &one, &sum, 1, DITTO_F64, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&n->m.report, sum == replicas);
    return DITTO_OK;
}

static void rule_7_2_merge_functions_may_run_functions_that_make_merge_calls(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (int waits = 0; waits < 2; waits++) {
            ditto_strategy *strategy = make_with_caller(replica_counts[k], waits);
            struct nesting n = { .runs_inside = 4 };
            run_all(strategy, nest, &n, &n.m.report);
            run_all(strategy, nest, &n, &n.m.report);
            assert_int_equal(n.innermost, 2 * num_local(strategy));
            n.runs_inside = 8; /* nine runs, which is one too many */
            assert_status(ditto_strategy_run(strategy, nest, &n), DITTO_ERR_RANGE);
            assert_message("a run inside 8 runs");
            memset(&n.m.report, 0, sizeof n.m.report);
            n.runs_inside = 7;
            run_all(strategy, nest, &n, &n.m.report); /* eight runs are allowed, also after that error */
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

static ditto_status nest_with_values(ditto_replica *self, void *argument);

static ditto_status run_values_again(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                     void *user, ditto_value **result)
{
    ditto_status status = ditto_strategy_run_values(strategy, nest_with_values, user, arguments[0], NULL,
                                                    result);
    *(ditto_status *)user = status != DITTO_OK ? status : *(ditto_status *)user;
    return DITTO_OK; /* the error is handled */
}

/* Makes another run of this function inside, until one is refused. *error becomes the error of that run. */
static ditto_status nest_with_values(ditto_replica *self, void *error)
{
    double id = ditto_replica_id(self);
    ditto_tensor t = { .data = &id, .dtype = DITTO_F64 }, found;
    const ditto_value *merged;
    DITTO_TRY(ditto_merge_call(self, run_values_again, error, &t, 1, &merged));
    if (merged != NULL) {
        DITTO_TRY(ditto_local(self, merged, &found));
        if (*(double *)found.data != id)
            return ditto_fail(self, 1, "another replica's component");
    }
    return ditto_return_f64(self, NULL, id);
}

static void rule_7_2_too_many_runs_with_values_are_an_error_that_can_be_handled(void **state)
{
    for (size_t k = 0; k < replica_counts_length - 1; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        ditto_status error = DITTO_OK;
        ditto_value *result;
        assert_ok(ditto_strategy_run_values(strategy, nest_with_values, &error, NULL, NULL, &result));
        assert_int_equal(error, DITTO_ERR_RANGE);
        assert_ok(ditto_value_destroy(result));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static ditto_status fail_inside(ditto_replica *self, void *unused)
{
    if (ditto_replica_id(self) == ditto_num_replicas(self) - 1)
        return ditto_fail(self, 6, "the inner function fails");
    return ditto_barrier(self, NULL);
}
static ditto_status merge_inner_failure(ditto_strategy *strategy, ditto_value *const *arguments,
                                        uint32_t count, void *user, ditto_value **result)
{
    ditto_status status = ditto_strategy_run(strategy, fail_inside, NULL);
    return user != NULL ? DITTO_OK : status; /* handles the error, or returns it */
}
static ditto_status call_inner_failure(ditto_replica *self, void *handles)
{
    double one = 1, sum;
    for (int i = 0; i < 5; i++) {
        ditto_error before = *ditto_last_error();
        DITTO_TRY(ditto_merge_call(self, merge_inner_failure, handles, NULL, 0, NULL));
        /* The merge function has run on the first replica, and its calls have failed there. */
        if (!ditto_replica_is_first_of_host(self) && strcmp(ditto_last_error()->message, before.message) != 0)
            return ditto_fail(self, 7, "a call that succeeds has changed the last error");
        DITTO_TRY(ditto_all_reduce(self, &one, &sum, 1, DITTO_F64, DITTO_SUM, NULL));
    }
    return DITTO_OK;
}

static void rule_2_3_a_merge_function_may_handle_or_return_an_inner_runs_error(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (int waits = 0; waits < 2; waits++) {
            int yes = 1;
            ditto_strategy *strategy = make_with_caller(replica_counts[k], waits);
            /* Over several hosts the outer run ends, too. */
            ditto_status handled = is_spread(strategy) ? DITTO_ERR_USER : DITTO_OK;
            assert_status(ditto_strategy_run(strategy, call_inner_failure, &yes), handled);
            for (int i = 0; i < 2; i++) {
                assert_status(ditto_strategy_run(strategy, call_inner_failure, NULL), DITTO_ERR_USER);
                assert_message("the inner function fails");
                assert_int_equal(ditto_last_error()->replica, replica_counts[k] - 1);
                assert_int_equal(ditto_last_error()->user_code, 6);
            }
            assert_status(ditto_strategy_run(strategy, call_inner_failure, &yes), handled);
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

static ditto_status fail_to_merge(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    return *(ditto_status *)user == DITTO_ERR_USER ? ditto_fail(NULL, 3, "nothing to merge")
                                                   : *(ditto_status *)user;
}
static ditto_status call_failure(ditto_replica *self, void *argument)
{
    struct merging *m = argument;
    ditto_status status = ditto_merge_call(self, fail_to_merge, &m->returned, NULL, 0, NULL);
    EXPECT(&m->report, ditto_replica_is_first_of_host(self) || status == DITTO_ERR_PEER_STOPPED);
    return status;
}

static void rule_2_3_the_merge_functions_own_error_reaches_the_caller_of_run(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    struct merging m = { .returned = DITTO_ERR_USER };
    assert_status(ditto_strategy_run(strategy, call_failure, &m), DITTO_ERR_USER);
    assert_string_equal(m.report.first_failure, "");
    assert_message("nothing to merge");
    assert_int_equal(ditto_last_error()->user_code, 3);
    m.returned = DITTO_ERR_NOT_FOUND;
    assert_status(ditto_strategy_run(strategy, call_failure, &m), DITTO_ERR_NOT_FOUND);
    assert_message(
        "the merge function returned DITTO_ERR_NOT_FOUND (-13) without a message: set one with ditto_fail");
    m.returned = DITTO_END_OF_INPUT;
    assert_status(ditto_strategy_run(strategy, call_failure, &m), DITTO_ERR_USER);
    assert_message("DITTO_END_OF_INPUT");
    assert_ok(ditto_strategy_destroy(strategy));
}

/* How replica 1 differs from the other replicas. */
enum difference { RETURNS, FAILS, CALLS_BARRIER, OTHER_FUNCTION, FEWER_ARGUMENTS, OTHER_DTYPE, NONE };

static ditto_status differ_on_1(ditto_replica *self, void *argument)
{
    enum difference difference = ditto_replica_id(self) == 1 ? *(enum difference *)argument : NONE;
    double one = 1;
    ditto_tensor t = { .data = &one, .dtype = difference == OTHER_DTYPE ? DITTO_I64 : DITTO_F64 };
    if (difference == RETURNS)
        return DITTO_OK;
    if (difference == FAILS)
        return ditto_fail(self, 2, "not today");
    if (difference == CALLS_BARRIER)
        return ditto_barrier(self, NULL);
    return ditto_merge_call(self, difference == OTHER_FUNCTION ? fail_to_merge : merge_inner_failure,
                            argument, &t, difference == FEWER_ARGUMENTS ? 0 : 1, NULL);
}

static const uint32_t several[] = { 2, 3, 8, 64 };

static void rule_2_4_a_replica_that_does_not_make_the_same_merge_call_ends_the_run(void **state)
{
    for (size_t k = 0; k < sizeof several / sizeof several[0]; k++) {
        ditto_strategy *strategy = make_strategy(several[k], NULL);
        for (enum difference difference = RETURNS; difference < OTHER_DTYPE; difference++) {
            assert_status(ditto_strategy_run(strategy, differ_on_1, &difference),
                          difference == FAILS ? DITTO_ERR_USER : DITTO_ERR_DIVERGED);
            assert_message(difference == FAILS ? "not today" : "ditto_merge_call");
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void differ_in_dtype(uint32_t n)
{
    ditto_strategy *strategy = make_strategy(n, NULL);
    enum difference difference = OTHER_DTYPE;
    assert_status(ditto_strategy_run(strategy, differ_on_1, &difference), DITTO_ERR_INVALID);
    assert_message("replica 1's component is i64");
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_2_4_arguments_of_a_merge_call_that_differ_in_dtype_end_the_run(void **state)
{
    for (size_t k = 0; k < sizeof several / sizeof several[0]; k++)
        differ_in_dtype(several[k] * test_hosts()); /* replica 1 is on host 0 */
}

static void rule_2_4_arguments_of_different_hosts_that_differ_in_dtype_end_the_run(void **state)
{
    differ_in_dtype(test_hosts() > 1 ? test_hosts() : 2);
}

static ditto_status do_everything(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    struct merging *m = user;
    double number = 5;
    ditto_tensor t = { .data = &number, .dtype = DITTO_F64 };
    ditto_variable *variable;
    EXPECT(&m->report, ditto_variable_create(strategy, &t, NULL, &variable) == DITTO_OK);
    number = 7;
    EXPECT(&m->report, ditto_variable_assign(variable, DITTO_ASSIGN, &number, sizeof number) == DITTO_OK);
    EXPECT(&m->report, ditto_variable_read(variable, &number, sizeof number) == DITTO_OK && number == 7);
    EXPECT(&m->report, ditto_variable_destroy(variable) == DITTO_OK);
    EXPECT(&m->report, ditto_strategy_scope_enter(strategy) == DITTO_OK); /* enters it once more */
    EXPECT(&m->report, ditto_strategy_scope_leave(strategy) == DITTO_OK);
    EXPECT(&m->report, ditto_strategy_scope_leave(strategy) == DITTO_ERR_CONTEXT);
    EXPECT(&m->report, ditto_set_default(strategy) == DITTO_ERR_CONTEXT);
    EXPECT(&m->report, ditto_strategy_destroy(strategy) == DITTO_ERR_CONTEXT);
    m->calls++;
    return DITTO_OK;
}
static ditto_status call_everything(ditto_replica *self, void *m)
{
    return ditto_merge_call(self, do_everything, m, NULL, 0, NULL);
}

static ditto_status leave_at_once(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

/* One replica is late by about the time limit of the merge_call. Some of the other replicas may then see that
 * all have arrived, while for the rest the limit has passed. If us is AFTER_THE_OTHERS, the replica is surely
 * late, because it waits until the merge_call has ended for another replica. */
struct lateness {
    uint32_t late;
    int us;
    _Atomic bool over;
};
enum { AFTER_THE_OTHERS = -1 };

static ditto_status run_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *user, ditto_value **result)
{
    return ditto_strategy_run(strategy, leave_at_once, NULL);
}

static ditto_status merge_in_time_or_not(ditto_replica *self, void *argument)
{
    struct lateness *l = argument;
    bool is_late = ditto_replica_id(self) == l->late;
    for (int i = 0; is_late && l->us == AFTER_THE_OTHERS && !l->over && i < 120000; i++)
        sleep_ms(1);
    if (is_late && l->us != AFTER_THE_OTHERS)
        usleep((useconds_t)l->us);
    ditto_status status = ditto_merge_call(self, run_inside, NULL, NULL, 0, NULL);
    l->over = true;
    DITTO_TRY(status);
    return ditto_merge_call(self, run_inside, NULL, NULL, 0, NULL);
}

static void a_merge_call_that_is_too_late_or_in_time_for_only_some_replicas_ends_for_all(void **state)
{
    uint64_t seed = test_seed(17);
    int well = 0, late = 0, trials = test_trials(400);
    for (uint32_t n = 2; n <= 8; n += 3) {
        ditto_strategy *strategy = make_strategy(n, &OPTIONS(strategy, .timeout_ms = 2));
        for (int i = 0; i < trials / 3; i++) {
            struct lateness l = { .late = (uint32_t)(test_random(&seed) % n),
                                  .us = 1500 + (int)(test_random(&seed) % 700) };
            ditto_status status = ditto_strategy_run(strategy, merge_in_time_or_not, &l);
            well += status == DITTO_OK;
            late += status == DITTO_ERR_TIMED_OUT;
            assert_true(status == DITTO_OK || status == DITTO_ERR_TIMED_OUT);
        }
        for (uint32_t r = 0; r < n; r++) {
            struct lateness l = { .late = r, .us = AFTER_THE_OTHERS };
            assert_status(ditto_strategy_run(strategy, merge_in_time_or_not, &l), DITTO_ERR_TIMED_OUT);
            late++;
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
    print_message("  %d merged, %d too late\n", well, late);
}

static void merge_functions_may_make_cross_calls(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct merging m = { .calls = 0 };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        run_all(strategy, call_everything, &m, &m.report);
        assert_int_equal(m.calls, 1);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_7_2_a_merge_call_in_cross_context_is_refused(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    int x;
    assert_ok(ditto_strategy_scope_enter(strategy));
    assert_status(ditto_merge_call((ditto_replica *)&x, add_up, NULL, NULL, 0, NULL), DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_scope_leave(strategy));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_7_1_the_merge_function_runs_once_in_cross_context),
        cmocka_unit_test(rule_7_1_each_replica_gets_its_component_of_a_per_replica_result),
        cmocka_unit_test(rule_7_2_merge_functions_may_run_functions_that_make_merge_calls),
        cmocka_unit_test(rule_7_2_too_many_runs_with_values_are_an_error_that_can_be_handled),
        cmocka_unit_test(rule_2_3_a_merge_function_may_handle_or_return_an_inner_runs_error),
        cmocka_unit_test(rule_2_3_the_merge_functions_own_error_reaches_the_caller_of_run),
        cmocka_unit_test(rule_2_4_a_replica_that_does_not_make_the_same_merge_call_ends_the_run),
        cmocka_unit_test(rule_2_4_arguments_of_a_merge_call_that_differ_in_dtype_end_the_run),
        one_host_test(rule_2_4_arguments_of_different_hosts_that_differ_in_dtype_end_the_run,
                      "arguments of several hosts are compared when they are reduced or gathered"),
        one_host_test(a_merge_call_that_is_too_late_or_in_time_for_only_some_replicas_ends_for_all,
                      "a host that is late by twice the time limit ends the strategy"),
        cmocka_unit_test(merge_functions_may_make_cross_calls),
        cmocka_unit_test(rule_7_2_a_merge_call_in_cross_context_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
