/* tests/coordinator/test_schedule.c - docs/semantics.md, "Parameter servers": calls that wait, poll,
 * cancel or destroy while functions take long (rules 12.4 to 12.7). */
#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic int gate_is_open, at_gate;

static ditto_status wait_for_gate(ditto_replica *self, void *user)
{
    atomic_fetch_add(&at_gate, 1);
    while (!atomic_load(&gate_is_open))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status nothing(ditto_replica *self, void *user)
{
    return DITTO_OK;
}

static ditto_status fail_always(ditto_replica *self, void *user)
{
    return ditto_fail(self, 7, "this one fails");
}

/* Creates workers with one replica each, and a coordinator. The gate is shut. In child processes, too. */
static ditto_status begin(uint32_t workers, const ditto_strategy_options *given, ditto_strategy **strategy,
                          ditto_coordinator **coordinator)
{
    ditto_strategy_options options = *given;
    options.num_replicas = workers;
    atomic_store(&gate_is_open, 0);
    atomic_store(&at_gate, 0);
    DITTO_TRY(ditto_function_register("wait", wait_for_gate, NULL));
    DITTO_TRY(ditto_function_register("nothing", nothing, NULL));
    DITTO_TRY(ditto_function_register("fail", fail_always, NULL));
    DITTO_TRY(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, strategy));
    return ditto_coordinator_create(*strategy, &OPTIONS(coordinator, .queue_capacity = 2, .max_attempts = 1),
                                    coordinator);
}

static void end(ditto_strategy *strategy, ditto_coordinator *coordinator)
{
    assert_ok(ditto_coordinator_destroy(coordinator));
    assert_ok(ditto_strategy_destroy(strategy));
}

struct fetcher {
    ditto_remote *remote;
    ditto_status status;
    _Atomic int has_ended;
};

static void *fetch(void *argument)
{
    struct fetcher *f = argument;
    ditto_value *value;
    f->status = ditto_remote_fetch(f->remote, &value);
    atomic_store(&f->has_ended, 1);
    return NULL;
}

static void rule_12_6_cancelling_wakes_a_fetch(void **state)
{
    ditto_strategy *strategy;
    ditto_coordinator *c;
    pthread_t thread;
    struct fetcher f = { .status = DITTO_OK };
    assert_ok(begin(1, &OPTIONS(strategy, .timeout_ms = 0), &strategy, &c));
    assert_ok(ditto_coordinator_schedule(c, "wait", NULL, NULL, NULL));
    while (atomic_load(&at_gate) == 0)
        sleep_ms(1);
    assert_ok(ditto_coordinator_schedule(c, "nothing", NULL, NULL, &f.remote));
    assert_int_equal(pthread_create(&thread, NULL, fetch, &f), 0);
    sleep_ms(50); /* it sleeps in the fetch by now, or finds the result there */
    assert_ok(ditto_remote_cancel(f.remote));
    for (int i = 0; i < 3000 && !atomic_load(&f.has_ended); i++)
        sleep_ms(10);
    bool woken = atomic_load(&f.has_ended);
    atomic_store(&gate_is_open, 1);
    pthread_join(thread, NULL);
    assert_true(woken);
    assert_int_equal(f.status, DITTO_ERR_CANCELLED);
    assert_ok(ditto_remote_destroy(f.remote));
    end(strategy, c);
}

static void rule_12_5_calls_that_do_not_wait(void **state)
{
    ditto_strategy *strategy;
    ditto_coordinator *c;
    ditto_schedule_options no_wait = OPTIONS(schedule, .no_wait = 1);
    ditto_status status;
    int done = 1;
    /* A call that waited after all would fail after this time. */
    assert_ok(begin(2, &OPTIONS(strategy, .timeout_ms = 3000), &strategy, &c));
    for (int polls_done = 0; polls_done < 2; polls_done++) {
        ditto_remote *failing;
        atomic_store(&gate_is_open, 0);
        assert_ok(ditto_coordinator_schedule(c, "wait", NULL, NULL, NULL));
        assert_ok(ditto_coordinator_schedule(c, "fail", NULL, NULL, &failing));
        for (int has_failed = 0; !has_failed;)
            assert_ok(ditto_remote_test(failing, &has_failed));
        assert_status(ditto_coordinator_schedule(c, "nothing", NULL, &no_wait, NULL), DITTO_PENDING);
        assert_ok(ditto_coordinator_done(c, &done));
        assert_false(done);
        atomic_store(&gate_is_open, 1);
        do
            status = polls_done ? ditto_coordinator_done(c, &done)
                                : ditto_coordinator_schedule(c, "nothing", NULL, &no_wait, NULL);
        while (status == DITTO_PENDING || (status == DITTO_OK && polls_done && !done));
        assert_int_equal(status, DITTO_ERR_USER);
        assert_message("this one fails");
        assert_ok(ditto_coordinator_done(c, &done)); /* the error was returned */
        assert_true(done);
        assert_ok(ditto_remote_destroy(failing));
    }
    end(strategy, c);
}

static bool is_last_error(const ditto_error *error)
{
    return ditto_last_error()->status == error->status &&
           strcmp(ditto_last_error()->message, error->message) == 0;
}

/* Polls until a function is late: with ditto_remote_test, or with no_wait and a full queue. */
static int poll_late(void *with_no_wait)
{
    ditto_strategy *strategy;
    ditto_coordinator *c;
    ditto_remote *late;
    ditto_schedule_options no_wait = OPTIONS(schedule, .no_wait = 1);
    ditto_error before = *ditto_last_error();
    ditto_status status = DITTO_OK;
    int done = 0;
    REQUIRE(begin(1, &OPTIONS(strategy, .run_timeout_ms = 200), &strategy, &c) == DITTO_OK);
    REQUIRE(ditto_coordinator_schedule(c, "wait", NULL, NULL, &late) == DITTO_OK);
    while (!done && status >= 0) {
        sleep_ms(1);
        if (*(bool *)with_no_wait)
            status = ditto_coordinator_schedule(c, "wait", NULL, &no_wait, NULL);
        else
            REQUIRE(ditto_remote_test(late, &done) == DITTO_OK);
    }
    REQUIRE(done || (status == DITTO_ERR_TIMED_OUT && strstr(ditto_last_error()->message, "\"wait\"")));
    REQUIRE(status < 0 || is_last_error(&before));
    REQUIRE(ditto_remote_test(late, &done) == DITTO_OK && done);
    REQUIRE(ditto_remote_destroy(late) == DITTO_OK);
    REQUIRE(ditto_coordinator_destroy(c) == DITTO_ERR_POISONED);
    return 0;
}

static void rule_12_7_calls_that_poll_notice_late_functions(void **state)
{
    for (int with_no_wait = 0; with_no_wait < 2; with_no_wait++)
        assert_int_equal(in_child(poll_late, &(bool){ with_no_wait != 0 }, 60), 0);
}

/* A fetch that returns DITTO_OK has retired the worker of another function. */
static int fetch_beside_late(void *unused)
{
    ditto_strategy *strategy;
    ditto_coordinator *c;
    ditto_remote *late, *other;
    ditto_value *value;
    ditto_coordinator_counters all = DITTO_COORDINATOR_COUNTERS_INIT;
    ditto_error before = *ditto_last_error();
    REQUIRE(begin(2, &OPTIONS(strategy, .run_timeout_ms = SANITIZED ? 1000 : 200), &strategy, &c) ==
            DITTO_OK);
    REQUIRE(ditto_coordinator_schedule(c, "wait", NULL, NULL, &late) == DITTO_OK);
    while (all.num_retired == 0) {
        REQUIRE(ditto_coordinator_schedule(c, "sleep", NULL, NULL, &other) == DITTO_OK);
        REQUIRE(ditto_remote_fetch(other, &value) == DITTO_OK);
        REQUIRE(is_last_error(&before));
        REQUIRE(ditto_remote_destroy(other) == DITTO_OK);
        REQUIRE(ditto_coordinator_stats(c, &all) == DITTO_OK);
    }
    return 0;
}

static ditto_status sleep_a_little(ditto_replica *self, void *user)
{
    sleep_ms(50);
    return DITTO_OK;
}

static void rule_12_7_success_leaves_the_last_error_alone(void **state)
{
    assert_ok(ditto_function_register("sleep", sleep_a_little, NULL));
    assert_int_equal(in_child(fetch_beside_late, NULL, 60), 0);
}

/* No function has a limit, but destroy has one. */
static int destroy_beside_stuck(void *unused)
{
    ditto_strategy *strategy;
    ditto_coordinator *c;
    ditto_remote *stuck;
    ditto_value *value;
    REQUIRE(begin(1, &OPTIONS(strategy, .timeout_ms = 300), &strategy, &c) == DITTO_OK);
    REQUIRE(ditto_coordinator_schedule(c, "wait", NULL, NULL, &stuck) == DITTO_OK);
    while (atomic_load(&at_gate) == 0)
        sleep_ms(1);
    REQUIRE(ditto_coordinator_destroy(c) == DITTO_ERR_POISONED);
    REQUIRE(strstr(ditto_last_error()->message, "worker 0") != NULL);
    REQUIRE(ditto_remote_fetch(stuck, &value) == DITTO_ERR_TIMED_OUT);
    REQUIRE(strstr(ditto_last_error()->message, "ditto_coordinator_destroy") != NULL);
    REQUIRE(ditto_remote_destroy(stuck) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    atomic_store(&gate_is_open, 1);
    sleep_ms(100); /* the late thread returns, and uses what was left to it */
    return 0;
}

static void rule_12_6_destroy_has_a_limit(void **state)
{
    assert_int_equal(in_child(destroy_beside_stuck, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_6_cancelling_wakes_a_fetch),
        cmocka_unit_test(rule_12_5_calls_that_do_not_wait),
        cmocka_unit_test(rule_12_7_calls_that_poll_notice_late_functions),
        cmocka_unit_test(rule_12_7_success_leaves_the_last_error_alone),
        cmocka_unit_test(rule_12_6_destroy_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
