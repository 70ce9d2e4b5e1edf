/* tests/fault/test_interrupt.c - runs and waits that another thread ends: ditto_strategy_interrupt and
 * ditto_coordinator_interrupt. */
#include "support/support.h"
#include "fault/late.h"
#include "fault/lifetime.h"

#include <ditto/coordinator.h>
#include <ditto/merge.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static const ditto_caller callers[] = { DITTO_CALLER_IS_REPLICA_0, DITTO_CALLER_WAITS };

struct interrupted {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    _Atomic int begun, must_end, may_return;
    ditto_status status; /* of the thread that interrupts */
};

static void *interrupt_when_begun(void *argument)
{
    struct interrupted *t = argument;
    while (!atomic_load(&t->begun))
        sleep_ms(1);
    t->status = ditto_strategy_interrupt(t->strategy);
    return NULL;
}

static ditto_status meet_for_ever(ditto_replica *self, void *argument)
{
    struct interrupted *t = argument;
    for (;;) {
        DITTO_TRY(ditto_barrier(self, NULL));
        atomic_store(&t->begun, 1);
    }
}

static ditto_status meet_once(ditto_replica *self, void *unused)
{
    (void)unused;
    return ditto_barrier(self, NULL);
}

/* Replica 0 waits, and the others come when they may. */
static ditto_status wait_for_others(ditto_replica *self, void *argument)
{
    struct interrupted *t = argument;
    atomic_store(&t->begun, 1);
    while (ditto_replica_id(self) != 0 && !atomic_load(&t->may_return))
        sleep_ms(1);
    return ditto_barrier(self, NULL);
}

static ditto_status interrupted_run(struct interrupted *t, ditto_replica_fn function)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, interrupt_when_begun, t) != 0)
        return DITTO_ERR_SYSTEM;
    ditto_status status = ditto_strategy_run(t->strategy, function, t);
    pthread_join(thread, NULL);
    return status;
}

static void a_run_that_waits_ends_and_the_strategy_works_as_before(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTS; i++)
        for (size_t k = 0; k < 2; k++) {
            struct interrupted t = { .strategy = make_strategy(counts[i],
                                                               &OPTIONS(strategy, .caller = callers[k])) };
            assert_ok(ditto_strategy_interrupt(t.strategy)); /* there is no run */
            assert_ok(ditto_strategy_run(t.strategy, meet_once, NULL));
            assert_int_equal(interrupted_run(&t, meet_for_ever), DITTO_ERR_CANCELLED);
            assert_ok(t.status);
            assert_string_equal(ditto_last_error()->message,
                                "the run was interrupted (ditto_strategy_interrupt)");
            assert_ok(ditto_strategy_run(t.strategy, meet_once, NULL));
            assert_ok(ditto_strategy_destroy(t.strategy));
        }
}

static int end_a_stuck_run(void *argument)
{
    struct interrupted t = { .must_end = 0 };
    REQUIRE(make(2, *(ditto_caller *)argument, 0, &t.strategy));
    REQUIRE(interrupted_run(&t, wait_for_others) == DITTO_ERR_CANCELLED);
    REQUIRE(strstr(ditto_last_error()->message, "replicas 1 still run: the strategy is poisoned") != NULL);
    REQUIRE(ditto_strategy_interrupt(t.strategy) == DITTO_OK);
    REQUIRE(ditto_strategy_run(t.strategy, meet_once, NULL) == DITTO_ERR_POISONED);
    atomic_store(&t.may_return, 1);
    REQUIRE(await_all_returned(t.strategy));
    return 0;
}

static void a_replica_that_is_stuck_is_given_up(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++)
        assert_int_equal(in_child(end_a_stuck_run, (void *)(uintptr_t)&callers[k], 120), 0);
}

static ditto_status run_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *argument, ditto_value **result)
{
    (void)arguments, (void)count, (void)result;
    return ditto_strategy_run(strategy, wait_for_others, argument);
}

static ditto_status merge_and_wait(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, run_inside, argument, NULL, 0, NULL);
}

static int end_a_run_inside(void *argument)
{
    struct interrupted t = { .must_end = 0 };
    REQUIRE(make(3, *(ditto_caller *)argument, 0, &t.strategy));
    REQUIRE(interrupted_run(&t, merge_and_wait) == DITTO_ERR_CANCELLED);
    REQUIRE(strstr(ditto_last_error()->message, "poisoned") != NULL);
    atomic_store(&t.may_return, 1);
    REQUIRE(await_all_returned(t.strategy));
    return 0;
}

static void a_run_inside_a_run_ends_too(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++)
        assert_int_equal(in_child(end_a_run_inside, (void *)(uintptr_t)&callers[k], 120), 0);
}

static ditto_status leave_the_thread(ditto_replica *self, void *argument)
{
    struct interrupted *t = argument;
    atomic_store(&t->begun, 1);
    while (ditto_replica_id(self) != 0 && !atomic_load(&t->may_return))
        sleep_ms(1);
    if (ditto_replica_id(self) != 0)
        pthread_exit(NULL);
    return ditto_barrier(self, NULL);
}

/* The process goes on, and says nothing. */
static int unwind_a_late_function(void *unused)
{
    static struct interrupted t; /* the thread stays */
    (void)unused;
    REQUIRE(make(2, DITTO_CALLER_IS_REPLICA_0, 0, &t.strategy));
    REQUIRE(interrupted_run(&t, leave_the_thread) == DITTO_ERR_CANCELLED);
    atomic_store(&t.may_return, 1);
    sleep_ms(300);
    return 0;
}

static void a_thread_that_was_given_up_may_be_unwound(void **state)
{
    (void)state;
    assert_int_equal(in_child(unwind_a_late_function, NULL, 120), 0);
}

static void *interrupt_often(void *argument)
{
    struct interrupted *t = argument;
    while (!atomic_load(&t->must_end)) {
        if (ditto_strategy_interrupt(t->strategy) != DITTO_OK)
            t->status = DITTO_ERR_USER;
        usleep(10);
    }
    return NULL;
}

/* Interrupts come at all times, also while runs begin and end. Calls that are no runs must not notice. */
static void only_runs_of_the_program_are_interrupted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTS; i++) {
        pthread_t threads[2];
        struct interrupted t = { .strategy = make_strategy(counts[i], NULL) };
        for (int k = 0; k < 2; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, interrupt_often, &t), 0);
        for (int round = 0; round < (SANITIZED ? 100 : 1000); round++) {
            ditto_variable *variable;
            double value;
            ditto_status status = ditto_strategy_run(t.strategy, meet_once, NULL);
            assert_true(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
            ditto_tensor zero = { .dtype = DITTO_F64 };
            assert_ok(ditto_variable_create(t.strategy, &zero, NULL, &variable));
            assert_ok(ditto_variable_read(variable, &value, sizeof value));
            assert_ok(ditto_variable_destroy(variable));
        }
        atomic_store(&t.must_end, 1);
        for (int k = 0; k < 2; k++)
            pthread_join(threads[k], NULL);
        assert_ok(t.status);
        assert_ok(ditto_strategy_run(t.strategy, meet_once, NULL));
        assert_ok(ditto_strategy_destroy(t.strategy));
    }
}

static ditto_status stay(ditto_replica *self, void *argument)
{
    struct interrupted *t = argument;
    (void)self;
    atomic_store(&t->begun, 1);
    while (!atomic_load(&t->may_return))
        sleep_ms(1);
    return DITTO_OK;
}

/* A call that begins after an interrupt waits, so the interrupts are repeated. */
static void *interrupt_workers_often(void *argument)
{
    struct interrupted *t = argument;
    while (!atomic_load(&t->must_end)) {
        t->status = ditto_coordinator_interrupt(t->coordinator);
        sleep_ms(1);
    }
    return NULL;
}

static void waits_for_workers_end_and_their_functions_do_not(void **state)
{
    static struct interrupted t;
    pthread_t thread;
    ditto_remote *remote;
    ditto_value *result;
    (void)state;
    assert_ok(
        ditto_strategy_create(DITTO_PARAMETER_SERVER, &OPTIONS(strategy, .num_replicas = 1), &t.strategy));
    assert_int_equal(ditto_strategy_interrupt(t.strategy), DITTO_ERR_UNSUPPORTED);
    assert_ok(ditto_coordinator_create(t.strategy, NULL, &t.coordinator));
    assert_ok(ditto_coordinator_interrupt(t.coordinator)); /* nobody waits */
    assert_ok(ditto_function_register("stay", stay, &t));
    assert_ok(ditto_coordinator_schedule(t.coordinator, "stay", NULL, NULL, &remote));
    assert_int_equal(pthread_create(&thread, NULL, interrupt_workers_often, &t), 0);
    assert_int_equal(ditto_coordinator_join(t.coordinator), DITTO_ERR_CANCELLED);
    assert_int_equal(ditto_remote_fetch(remote, &result), DITTO_ERR_CANCELLED);
    atomic_store(&t.must_end, 1);
    pthread_join(thread, NULL);
    assert_ok(t.status);
    atomic_store(&t.may_return, 1);
    assert_ok(ditto_coordinator_join(t.coordinator));
    assert_ok(ditto_remote_fetch(remote, &result));
    assert_ok(ditto_remote_destroy(remote));
    assert_ok(ditto_coordinator_destroy(t.coordinator));
    assert_ok(ditto_strategy_destroy(t.strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_waits_ends_and_the_strategy_works_as_before),
        cmocka_unit_test(a_replica_that_is_stuck_is_given_up),
        cmocka_unit_test(a_run_inside_a_run_ends_too),
        cmocka_unit_test(a_thread_that_was_given_up_may_be_unwound),
        cmocka_unit_test(only_runs_of_the_program_are_interrupted),
        cmocka_unit_test(waits_for_workers_end_and_their_functions_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
