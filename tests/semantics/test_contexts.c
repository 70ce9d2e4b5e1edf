/* tests/semantics/test_contexts.c - docs/semantics.md, "Contexts", "run" and "Collectives": rules 1.2, 1.4 to
 * 1.6, 2.1 and 6.4. Also tests the threads of replicas. */
#include "support/as_hosts.h"
#include "support/support.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

static ditto_status nothing(ditto_replica *self, void *argument)
{
    return DITTO_OK;
}

static void rule_1_2_the_same_scope_may_be_entered_again(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    assert_ok(ditto_strategy_scope_enter(s));
    assert_ok(ditto_strategy_scope_enter(s));
    assert_ok(ditto_strategy_scope_leave(s));
    assert_status(ditto_strategy_destroy(s), DITTO_ERR_CONTEXT); /* still entered once */
    assert_ok(ditto_strategy_scope_leave(s));
    assert_status(ditto_strategy_scope_leave(s), DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_1_2_another_strategys_scope_is_refused_and_nothing_changes(void **state)
{
    ditto_strategy *a = make_strategy(2, NULL), *b = make_strategy(2, NULL);
    assert_ok(ditto_strategy_scope_enter(a));
    assert_status(ditto_strategy_scope_enter(b), DITTO_ERR_CONTEXT);
    assert_status(ditto_strategy_scope_leave(b), DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_run(a, nothing, NULL));
    assert_ok(ditto_strategy_scope_leave(a));
    assert_ok(ditto_strategy_scope_enter(b));
    assert_ok(ditto_strategy_scope_leave(b));
    assert_ok(ditto_strategy_destroy(a));
    assert_ok(ditto_strategy_destroy(b));
}

static void rule_1_2_leaving_a_scope_restores_the_affinity(void **state)
{
    cpu_set_t before, inside, after;
    ditto_strategy *s = make_strategy(2, NULL);
    sched_getaffinity(0, sizeof before, &before);
    assert_ok(ditto_strategy_scope_enter(s));
    sched_getaffinity(0, sizeof inside, &inside);
    assert_ok(ditto_strategy_scope_leave(s));
    sched_getaffinity(0, sizeof after, &after);
    assert_int_equal(CPU_COUNT(&inside), 1);
    assert_true(CPU_EQUAL(&before, &after));
    assert_ok(ditto_strategy_run(s, nothing, NULL)); /* a run outside a scope also restores it */
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_1_4_a_cross_call_in_another_strategys_scope_is_refused(void **state)
{
    ditto_strategy *a = make_strategy(1, NULL), *b = make_strategy(1, NULL);
    ditto_tensor scalar = { .dtype = DITTO_F32 };
    ditto_variable *v;
    float value;
    assert_ok(ditto_variable_create(b, &scalar, NULL, &v));
    assert_ok(ditto_strategy_scope_enter(a));
    assert_status(ditto_strategy_run(b, nothing, NULL), DITTO_ERR_CONTEXT);
    assert_message("mixing strategies");
    assert_status(ditto_variable_read(v, &value, sizeof value), DITTO_ERR_CONTEXT);
    assert_status(ditto_variable_create(b, &scalar, NULL, &v), DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_scope_leave(a));
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(a));
    assert_ok(ditto_strategy_destroy(b));
}

struct cross {
    struct report report;
    ditto_strategy *strategy;
    ditto_variable *variable;
};
static ditto_status make_cross_calls(ditto_replica *self, void *argument)
{
    struct cross *c = argument;
    ditto_tensor scalar = { .dtype = DITTO_F32 };
    ditto_variable *v;
    float value = 0;
    EXPECT(&c->report, ditto_variable_create(c->strategy, &scalar, NULL, &v) == DITTO_ERR_CONTEXT);
    EXPECT(&c->report, strstr(ditto_last_error()->message, "merge_call") != NULL);
    EXPECT(&c->report, ditto_variable_read(c->variable, &value, sizeof value) == DITTO_ERR_CONTEXT);
    EXPECT(&c->report,
           ditto_variable_assign(c->variable, DITTO_ASSIGN, &value, sizeof value) == DITTO_ERR_CONTEXT);
    /* The destruction of the variable would wait for the end of this run. */
    EXPECT(&c->report, ditto_variable_destroy(c->variable) == DITTO_ERR_CONTEXT);
    return ditto_barrier(self, NULL);
}

static void rule_1_4_a_cross_call_on_a_replicas_thread_names_merge_call(void **state)
{
    struct cross c = { .strategy = make_strategy(3, NULL) };
    ditto_tensor scalar = { .dtype = DITTO_F32 };
    assert_ok(ditto_variable_create(c.strategy, &scalar, NULL, &c.variable));
    run_all(c.strategy, make_cross_calls, &c, &c.report);
    assert_ok(ditto_variable_destroy(c.variable));
    assert_ok(ditto_strategy_destroy(c.strategy));
}

struct handles {
    struct report report;
    ditto_strategy *strategy;
    ditto_replica *_Atomic kept[DITTO_MAX_REPLICAS];
};
static ditto_status keep_handle(ditto_replica *self, void *argument)
{
    ((struct handles *)argument)->kept[ditto_replica_id(self)] = self;
    return DITTO_OK;
}
static ditto_status use_kept_handle(ditto_replica *self, void *argument)
{
    struct handles *h = argument;
    EXPECT(&h->report, ditto_barrier(h->kept[ditto_replica_id(self)], NULL) == DITTO_ERR_CONTEXT);
    EXPECT(&h->report, strstr(ditto_last_error()->message, "earlier run") != NULL);
    EXPECT(&h->report, ditto_num_replicas(h->kept[ditto_replica_id(self)]) == 0);
    return DITTO_OK;
}
static ditto_status use_neighbours_handle(ditto_replica *self, void *argument)
{
    struct handles *h = argument;
    uint32_t id = ditto_replica_id(self);
    uint32_t neighbour = id + 1 < end_local(h->strategy) ? id + 1 : first_local(h->strategy);
    h->kept[id] = self;
    DITTO_TRY(ditto_barrier(self, NULL));
    EXPECT(&h->report, ditto_barrier(h->kept[neighbour], NULL) == DITTO_ERR_CONTEXT);
    EXPECT(&h->report, strstr(ditto_last_error()->message, "another replica's") != NULL);
    return ditto_barrier(self, NULL);
}

static void rule_1_5_a_replica_call_needs_the_handle_of_its_own_thread(void **state)
{
    static struct handles h;
    ditto_strategy *s = make_strategy(3 * test_hosts(), NULL);
    uint32_t first = first_local(s);
    h.strategy = s;
    run_all(s, keep_handle, &h, &h.report);
    assert_status(ditto_barrier(h.kept[first], NULL), DITTO_ERR_CONTEXT);
    assert_message("this thread runs no replica");
    assert_status(ditto_barrier(NULL, NULL), DITTO_ERR_INVALID);
    run_all(s, use_kept_handle, &h, &h.report);
    run_all(s, use_neighbours_handle, &h, &h.report);
    assert_ok(ditto_strategy_destroy(s));
    /* The handle of a destroyed strategy causes an error and no crash. */
    assert_status(ditto_barrier(h.kept[first + 1], NULL), DITTO_ERR_CONTEXT);
}

static void rule_1_6_variables_remember_their_strategy(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_tensor scalar = { .dtype = DITTO_F32 };
    ditto_variable *v;
    float value = 3;
    assert_ok(ditto_strategy_scope_enter(s));
    assert_ok(ditto_variable_create(s, &scalar, NULL, &v));
    assert_ok(ditto_strategy_scope_leave(s));
    assert_ok(ditto_variable_assign(v, DITTO_ASSIGN, &value, sizeof value)); /* works outside the scope */
    assert_ok(ditto_strategy_destroy(s));
    assert_status(ditto_variable_read(v, &value, sizeof value), DITTO_ERR_CONTEXT);
    assert_message("destroyed");
    assert_ok(ditto_variable_destroy(v));
}

/* -- run -- */

struct once {
    struct report report;
    ditto_strategy *strategy;
    _Atomic uint32_t calls[DITTO_MAX_REPLICAS], together;
    pthread_t thread[DITTO_MAX_REPLICAS];
};
static ditto_status count_call(ditto_replica *self, void *argument)
{
    struct once *o = argument;
    uint32_t id = ditto_replica_id(self);
    o->thread[id] = pthread_self();
    atomic_fetch_add(&o->calls[id], 1);
    atomic_fetch_add(&o->together, 1);
    /* Would never end if replicas ran one after the other. */
    while (atomic_load(&o->together) < num_local(o->strategy))
        sched_yield();
    return DITTO_OK;
}

static void rule_2_1_the_function_is_called_once_per_replica_at_the_same_time(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (int caller = DITTO_CALLER_IS_REPLICA_0; caller <= DITTO_CALLER_WAITS; caller++) {
            static struct once o;
            uint32_t n = replica_counts[k];
            memset(&o, 0, sizeof o);
            ditto_strategy *s = o.strategy = make_strategy(
                n, &OPTIONS(strategy, .caller = (ditto_caller)caller));
            uint32_t first = first_local(s);
            assert_int_equal(ditto_strategy_num_replicas(s), n);
            run_all(s, count_call, &o, &o.report);
            assert_int_equal(o.together, num_local(s));
            for (uint32_t i = first; i < end_local(s); i++) {
                assert_int_equal(o.calls[i], 1);
                for (uint32_t j = first; j < i; j++)
                    assert_false(pthread_equal(o.thread[i], o.thread[j]));
            }
            assert_true(!!pthread_equal(o.thread[first], pthread_self()) ==
                        (caller == DITTO_CALLER_IS_REPLICA_0));
            assert_ok(ditto_strategy_destroy(s));
        }
}

struct turns {
    struct report report;
    ditto_strategy *strategy;
    _Atomic int running[3]; /* how many calls of the function each replica is in */
};
static ditto_status run_alone(ditto_replica *self, void *argument)
{
    struct turns *t = argument;
    uint32_t id = ditto_replica_id(self);
    EXPECT(&t->report, atomic_fetch_add(&t->running[id], 1) == 0);
    DITTO_TRY(ditto_barrier(self, NULL));
    sched_yield(); /* another run could begin now, if it did not wait for its turn */
    EXPECT(&t->report, atomic_fetch_sub(&t->running[id], 1) == 1);
    return DITTO_OK;
}
static void *run_many(void *argument)
{
    struct turns *t = argument;
    for (int i = 0; i < 200; i++)
        if (ditto_strategy_run(t->strategy, run_alone, t) != DITTO_OK)
            return (void *)1;
    return NULL;
}

static void rule_6_4_calls_from_several_host_threads_take_turns(void **state)
{
    pthread_t threads[4];
    void *failed[4];
    struct turns t = { .strategy = make_strategy(3, NULL) };
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &t), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &failed[i]);
    assert_string_equal(t.report.first_failure, "");
    for (int i = 0; i < 4; i++)
        assert_null(failed[i]);
    assert_ok(ditto_strategy_destroy(t.strategy));
}

static ditto_status sum_ones(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    for (int i = 0; i < 300; i++) {
        double one = 1;
        DITTO_TRY(ditto_all_reduce(self, &one, &one, 1, DITTO_F64, DITTO_SUM, NULL));
        EXPECT(report, one == ditto_num_replicas(self));
    }
    return DITTO_OK;
}
static struct report second_report;
static void *run_second(void *strategy)
{
    return (void *)(intptr_t)ditto_strategy_run(strategy, sum_ones, &second_report);
}

static void rule_6_4_two_strategies_at_once_never_mix_up_their_messages(void **state)
{
    struct report report = { 0 };
    ditto_strategy *a = make_strategy(2, NULL), *b = make_strategy(5, NULL);
    pthread_t other;
    void *status;
    pthread_create(&other, NULL, run_second, b);
    run_all(a, sum_ones, &report, &report);
    pthread_join(other, &status);
    assert_string_equal(second_report.first_failure, "");
    assert_int_equal((intptr_t)status, DITTO_OK);
    assert_ok(ditto_strategy_destroy(a));
    assert_ok(ditto_strategy_destroy(b));
}

/* -- the threads of replicas -- */

struct threads {
    struct report report;
    _Atomic int started, stopped;
};
static void on_start(uint32_t replica, void *user)
{
    atomic_fetch_add(&((struct threads *)user)->started, 1);
}
static void on_stop(uint32_t replica, void *user)
{
    atomic_fetch_add(&((struct threads *)user)->stopped, 1);
}
static ditto_status look_at_thread(ditto_replica *self, void *argument)
{
    struct threads *t = argument;
    uint32_t id = ditto_replica_id(self);
    char name[16], expected[24];
    sigset_t blocked;
    cpu_set_t cpus;
    EXPECT(&t->report, sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1);
    EXPECT(&t->report, CPU_ISSET((size_t)sched_getcpu(), &cpus));
    if (ditto_replica_is_first_of_host(self))
        return DITTO_OK; /* on the calling thread */
    pthread_getname_np(pthread_self(), name, sizeof name);
    snprintf(expected, sizeof expected, "ditto-r%u", id);
    EXPECT(&t->report, strcmp(name, expected) == 0);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    EXPECT(&t->report,
           sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGUSR1));
    EXPECT(&t->report, !sigismember(&blocked, SIGSEGV) && !sigismember(&blocked, SIGPROF));
    return DITTO_OK;
}

static void threads_of_replicas_are_pinned_and_named_and_block_signals(void **state)
{
    struct threads t = { 0 };
    ditto_strategy_options options = OPTIONS(strategy, .thread_start = on_start, .thread_stop = on_stop,
                                             .thread_user = &t, .stack_bytes = (size_t)1 << 20);
    ditto_strategy *s = make_strategy(4, &options);
    run_all(s, look_at_thread, &t, &t.report);
    int own_threads = (int)num_local(s) - 1;
    assert_int_equal(t.started, own_threads);
    assert_ok(ditto_strategy_destroy(s));
    assert_int_equal(t.stopped, own_threads);
}

static ditto_status expect_several_cpus(ditto_replica *self, void *argument)
{
    cpu_set_t cpus;
    EXPECT((struct report *)argument, sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    EXPECT((struct report *)argument, CPU_COUNT(&cpus) > 1);
    return ditto_barrier(self, NULL);
}

static void threads_are_not_pinned_if_the_program_places_them(void **state)
{
    struct report report = { 0 };
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < 2)
        skip();
    run_once(3, &OPTIONS(strategy, .pin = DITTO_PIN_NONE), expect_several_cpus, &report, &report);
}

static void a_description_says_where_replicas_are(void **state)
{
    char text[4096], cut[20];
    size_t length, same;
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    uint32_t n = 3 * test_hosts();
    ditto_strategy *s = make_strategy(n, NULL);
    assert_ok(ditto_strategy_describe(s, text, sizeof text, &length));
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "replica  package  node"));
    assert_ok(ditto_strategy_describe(s, cut, sizeof cut, &same));
    assert_int_equal(strlen(cut), sizeof cut - 1);
    assert_int_equal(same, length);
    assert_ok(ditto_strategy_describe(s, NULL, 0, &same));
    assert_ok(ditto_strategy_replica_info(s, end_local(s) - 1, 0, &info));
    assert_true(info.thread_id > 0);
    assert_int_equal(info.cpu, info.planned.pu.number);
    assert_status(ditto_strategy_replica_info(s, n, 0, &info), DITTO_ERR_RANGE);
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_status set_flush_to_zero(ditto_replica *self, void *argument)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
#endif
    return DITTO_OK;
}

static void a_successful_run_keeps_the_callers_last_error_and_floating_point_environment(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    assert_status(ditto_strategy_run(s, NULL, NULL), DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_run(s, set_flush_to_zero, NULL));
    assert_message("function is NULL"); /* the last error is that of the earlier call */
#if defined(__x86_64__)
    assert_int_equal(__builtin_ia32_stmxcsr() & 0x8040u, 0);
#endif
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_1_2_the_same_scope_may_be_entered_again),
        cmocka_unit_test(rule_1_2_another_strategys_scope_is_refused_and_nothing_changes),
        cmocka_unit_test(rule_1_2_leaving_a_scope_restores_the_affinity),
        cmocka_unit_test(rule_1_4_a_cross_call_in_another_strategys_scope_is_refused),
        cmocka_unit_test(rule_1_4_a_cross_call_on_a_replicas_thread_names_merge_call),
        cmocka_unit_test(rule_1_5_a_replica_call_needs_the_handle_of_its_own_thread),
        cmocka_unit_test(rule_1_6_variables_remember_their_strategy),
        cmocka_unit_test(rule_2_1_the_function_is_called_once_per_replica_at_the_same_time),
        cmocka_unit_test(rule_6_4_calls_from_several_host_threads_take_turns),
        cmocka_unit_test(rule_6_4_two_strategies_at_once_never_mix_up_their_messages),
        cmocka_unit_test(threads_of_replicas_are_pinned_and_named_and_block_signals),
        cmocka_unit_test(a_successful_run_keeps_the_callers_last_error_and_floating_point_environment),
        cmocka_unit_test(threads_are_not_pinned_if_the_program_places_them),
        cmocka_unit_test(a_description_says_where_replicas_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
