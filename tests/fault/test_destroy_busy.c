/* tests/fault/test_destroy_busy.c - destroying an object while a call uses it returns DITTO_ERR_BUSY and
 * frees nothing. Each case runs in a child process, because a use of memory that was freed too early crashes
 * or hangs. */
#include "replicas/team/team.h"
#include "support/support.h"
#include "fault/lifetime.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -- Calls that wait for their turn while the object is destroyed -- */

static ditto_status call_run(struct waiting *w)
{
    return ditto_strategy_run(w->strategy, nothing, NULL);
}

static ditto_status call_read(struct waiting *w)
{
    float copy[4];
    return ditto_variable_read(w->variable, copy, sizeof copy);
}

static ditto_status call_describe(struct waiting *w)
{
    char text[4096];
    return ditto_strategy_describe(w->strategy, text, sizeof text, NULL);
}

static void *call_and_return(void *argument)
{
    struct waiting *w = argument;
    atomic_store(&w->thread_id, (int)syscall(SYS_gettid));
    w->status = w->call(w);
    return NULL;
}

/* The same for a call that must begin while a run or a merge function has the turn, and so waits. */
static void *begin_call(void *argument)
{
    struct waiting *w = argument;
    /* Without a sleep, so that the call begins at once. thread_id is still 0, so await_sleep does not take a
     * thread in this loop to be inside the call. */
    while (!atomic_load(&w->may_begin))
        sched_yield();
    return call_and_return(argument);
}

/* The function of a run that ends when the other thread waits for its turn. The test destroys the strategy
 * directly after the run, usually before the other thread gets the turn. */
static ditto_status await_the_other(ditto_replica *self, void *argument)
{
    struct waiting *w = argument;
    if (ditto_replica_id(self) != 0)
        return DITTO_OK;
    atomic_store(&w->may_begin, 1);
    return await_sleep(&w->thread_id) ? DITTO_OK : ditto_fail(self, 1, "the other thread does not wait");
}

/* If the call of the other thread has completed before the strategy is destroyed, the test tries again. */
static int destroy_strategy_under(void *call)
{
    bool was_busy = false;
    spoil_freed_memory();
    for (int tries = 0; !was_busy; tries++) {
        struct waiting w = { .call = *(ditto_status(**)(struct waiting *))call };
        pthread_t thread;
        REQUIRE(tries < 1000);
        REQUIRE(make(2, DITTO_CALLER_DEFAULT, 0, &w.strategy) && make_variable(w.strategy, &w.variable));
        REQUIRE(pthread_create(&thread, NULL, begin_call, &w) == 0);
        REQUIRE(ditto_strategy_run(w.strategy, await_the_other, &w) == DITTO_OK);
        ditto_status status = ditto_strategy_destroy(w.strategy);
        was_busy = status == DITTO_ERR_BUSY;
        REQUIRE(was_busy || status == DITTO_OK);
        pthread_join(thread, NULL);
        REQUIRE(w.status == DITTO_OK);
        if (was_busy)
            REQUIRE(ditto_strategy_destroy(w.strategy) == DITTO_OK);
        REQUIRE(ditto_variable_destroy(w.variable) == DITTO_OK);
    }
    return 0;
}

static void destroying_a_strategy_is_busy_while_a_call_waits_for_its_turn(void **state)
{
    static ditto_status (*const calls[])(struct waiting *) = { call_run, call_read, call_describe };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_int_equal(in_child(destroy_strategy_under, (void *)(uintptr_t)&calls[i], 120), 0);
}

/* A merge function. It has the turn, so the other thread waits until this function has returned. Destroys the
 * iterator, or the variable if there is no iterator. */
static ditto_status destroy_under_the_other(ditto_strategy *strategy, ditto_value *const *arguments,
                                            uint32_t count, void *user, ditto_value **result)
{
    struct waiting *w = user;
    atomic_store(&w->may_begin, 1);
    if (!await_sleep(&w->thread_id))
        return DITTO_ERR_USER;
    w->destroy_status = w->iterator != NULL ? ditto_iterator_destroy(w->iterator)
                                            : ditto_variable_destroy(w->variable);
    return DITTO_OK;
}

static ditto_status merge_and_destroy(ditto_replica *self, void *w)
{
    return ditto_merge_call(self, destroy_under_the_other, w, NULL, 0, NULL);
}

static int destroy_variable_under(void *call)
{
    struct waiting w = { .call = *(ditto_status(**)(struct waiting *))call };
    pthread_t thread;
    spoil_freed_memory();
    REQUIRE(make_all(&w));
    REQUIRE(pthread_create(&thread, NULL, begin_call, &w) == 0);
    REQUIRE(ditto_strategy_run(w.strategy, merge_and_destroy, &w) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(w.destroy_status == DITTO_ERR_BUSY && w.status == DITTO_OK);
    REQUIRE(drop_all(&w));
    return 0;
}

static void destroying_a_variable_is_busy_while_a_call_on_it_waits_for_its_turn(void **state)
{
    assert_int_equal(in_child(destroy_variable_under, &(ditto_status(*)(struct waiting *)){ call_read }, 120),
                     0);
}

static ditto_status call_create_beside(struct waiting *w)
{
    float zeros[4] = { 0 };
    ditto_variable *made;
    ditto_tensor initial = { .data = zeros, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    ditto_status status = ditto_variable_create(
        w->strategy, &initial,
        &OPTIONS(variable, .colocate_with = w->variable, .aggregation = DITTO_AGGREGATE_SUM), &made);
    return status == DITTO_OK ? ditto_variable_destroy(made) : status;
}

static void destroying_a_variable_is_busy_while_a_call_on_its_value_waits_for_its_turn(void **state)
{
    for (size_t i = 0; i < CALLS_IN_TURN; i++)
        assert_int_equal(in_child(destroy_variable_under, (void *)(uintptr_t)&calls_in_turn[i], 120), 0);
}

static void destroying_a_variable_is_busy_while_a_colocated_one_waits_to_be_created(void **state)
{
    assert_int_equal(
        in_child(destroy_variable_under, &(ditto_status(*)(struct waiting *)){ call_create_beside }, 120), 0);
}

/* -- Calls in replica context of the default strategy, outside any run -- */

static ditto_status call_destroy_variable(struct waiting *w)
{
    return ditto_variable_destroy(w->variable);
}

/* Begins the call of the other thread, which waits for its turn. Returns false if it does not. */
static bool let_the_other_wait(struct waiting *w)
{
    atomic_store(&w->may_begin, 1);
    return await_sleep(&w->thread_id);
}

static ditto_status destroy_in_update(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                      void *user, ditto_tensor *result)
{
    struct waiting *w = user;
    w->destroy_status = ditto_variable_destroy(w->variable);
    return let_the_other_wait(w) ? DITTO_OK : DITTO_ERR_USER;
}

/* The other thread destroys the variable when the update has given back the turn. The update may still be in
 * the gate of the variable then. */
static int destroy_under_update(void *unused)
{
    struct waiting w = { .strategy = ditto_get_strategy(), .call = call_destroy_variable };
    pthread_t thread;
    REQUIRE(make_variable(w.strategy, &w.variable));
    REQUIRE(pthread_create(&thread, NULL, begin_call, &w) == 0);
    ditto_replica *self = ditto_get_replica_context();
    REQUIRE(ditto_update(self, w.variable, destroy_in_update, &w, NULL, 0, NULL) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(w.destroy_status == DITTO_ERR_BUSY);
    REQUIRE(w.status == DITTO_OK || w.status == DITTO_ERR_BUSY);
    REQUIRE(w.status == DITTO_OK || ditto_variable_destroy(w.variable) == DITTO_OK);
    return 0;
}

struct applying {
    struct waiting waiting;
    ditto_optimizer *optimizer;
    bool the_other_waited;
};

static ditto_status call_destroy_optimizer(struct waiting *w)
{
    return ditto_optimizer_destroy(((struct applying *)(void *)w)->optimizer);
}

static void destroy_in_rule(const ditto_rule_range *range, void *user)
{
    struct applying *a = user;
    a->waiting.destroy_status = ditto_optimizer_destroy(a->optimizer);
    a->the_other_waited = let_the_other_wait(&a->waiting);
}

static int destroy_under_apply(void *unused)
{
    struct applying a = { .waiting.call = call_destroy_optimizer };
    struct waiting *w = &a.waiting;
    float ones[4] = { 1, 1, 1, 1 };
    ditto_tensor gradient = { .data = ones, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    pthread_t thread;
    ditto_optimizer_options options = OPTIONS(optimizer, .rule = DITTO_RULE_FUNCTION,
                                              .function = destroy_in_rule, .user = &a, .num_slots = 1);
    REQUIRE(make_variable(ditto_get_strategy(), &w->variable));
    REQUIRE(ditto_optimizer_create(&w->variable, 1, &options, &a.optimizer) == DITTO_OK);
    REQUIRE(pthread_create(&thread, NULL, begin_call, w) == 0);
    REQUIRE(ditto_apply(ditto_get_replica_context(), a.optimizer, &gradient, NULL) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(a.the_other_waited && w->destroy_status == DITTO_ERR_BUSY);
    REQUIRE(w->status == DITTO_OK || w->status == DITTO_ERR_BUSY);
    REQUIRE(w->status == DITTO_OK || ditto_optimizer_destroy(a.optimizer) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(w->variable) == DITTO_OK);
    return 0;
}

static void destroying_is_busy_while_a_replica_of_the_default_strategy_is_in_a_call(void **state)
{
    assert_int_equal(in_child(destroy_under_update, NULL, 120), 0);
    assert_int_equal(in_child(destroy_under_apply, NULL, 120), 0);
}

/* -- ditto_strategy_run_steps, and the iterator -- */

static ditto_status ignore_batch(ditto_replica *self, const ditto_batch *batch, void *unused)
{
    return DITTO_OK;
}

static ditto_status call_steps(struct waiting *w)
{
    return ditto_strategy_run_steps(w->strategy, ignore_batch, NULL, w->iterator, 3, NULL, NULL, NULL);
}

static int destroy_iterator_under(void *replicas)
{
    struct waiting w = { .call = call_steps };
    pthread_t thread;
    spoil_freed_memory();
    REQUIRE(make(*(const uint32_t *)replicas, DITTO_CALLER_DEFAULT, 0, &w.strategy));
    REQUIRE(make_iterator(w.strategy, 0, &w.iterator));
    REQUIRE(pthread_create(&thread, NULL, begin_call, &w) == 0);
    REQUIRE(ditto_strategy_run(w.strategy, merge_and_destroy, &w) == DITTO_OK);
    pthread_join(thread, NULL);
    REQUIRE(w.destroy_status == DITTO_ERR_BUSY && w.status == DITTO_OK);
    REQUIRE(ditto_iterator_destroy(w.iterator) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(w.strategy) == DITTO_OK);
    return 0;
}

static void destroying_an_iterator_is_busy_while_run_steps_waits_for_its_turn(void **state)
{
    for (size_t i = 0; i < COUNTS; i++)
        assert_int_equal(in_child(destroy_iterator_under, (void *)(uintptr_t)&counts[i], 120), 0);
}

/* Replica 0 executes the merge function on the thread that has called ditto_strategy_run_steps. */
static ditto_status destroy_own_iterator(ditto_strategy *strategy, ditto_value *const *arguments,
                                         uint32_t count, void *user, ditto_value **result)
{
    struct waiting *w = user;
    w->destroy_status = ditto_iterator_destroy(w->iterator);
    return w->destroy_status == DITTO_ERR_BUSY &&
                   strstr(ditto_last_error()->message, "a call on the iterator has not returned") != NULL
               ? DITTO_OK
               : DITTO_ERR_USER;
}

static ditto_status step_and_destroy(ditto_replica *self, const ditto_batch *batch, void *w)
{
    return ditto_merge_call(self, destroy_own_iterator, w, NULL, 0, NULL);
}

static void destroying_the_iterator_of_the_same_run_is_busy(void **state)
{
    for (size_t i = 0; i < COUNTS; i++) {
        struct waiting w = { .iterator = NULL };
        assert_true(make(counts[i], DITTO_CALLER_DEFAULT, 0, &w.strategy));
        assert_true(make_iterator(w.strategy, 0, &w.iterator));
        assert_ok(
            ditto_strategy_run_steps(w.strategy, step_and_destroy, &w, w.iterator, 3, NULL, NULL, NULL));
        assert_status(w.destroy_status, DITTO_ERR_BUSY);
        assert_ok(ditto_iterator_destroy(w.iterator));
        assert_ok(ditto_strategy_destroy(w.strategy));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroying_a_strategy_is_busy_while_a_call_waits_for_its_turn),
        cmocka_unit_test(destroying_a_variable_is_busy_while_a_call_on_it_waits_for_its_turn),
        cmocka_unit_test(destroying_a_variable_is_busy_while_a_call_on_its_value_waits_for_its_turn),
        cmocka_unit_test(destroying_a_variable_is_busy_while_a_colocated_one_waits_to_be_created),
        cmocka_unit_test(destroying_is_busy_while_a_replica_of_the_default_strategy_is_in_a_call),
        cmocka_unit_test(destroying_an_iterator_is_busy_while_run_steps_waits_for_its_turn),
        cmocka_unit_test(destroying_the_iterator_of_the_same_run_is_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
