/* tests/fault/test_fork.c - children of a process that has strategies: what a function does in a child that
 * it has forked ends with DITTO_ERR_FORKED and never waits, and a child makes strategies of its own. */
#include "refuse.h"
#include "support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REPLICAS = 2 };

static ditto_strategy *make_two(void)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy = NULL;
    options.replicas = REPLICAS;
    options.placement_flags = DITTO_PLACEMENT_SHARE;
    return ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) == DITTO_OK ? strategy : NULL;
}

/* The child's exit status, or 124 when it has not ended after half a minute. */
static int await_child(pid_t child)
{
    int status;
    for (int i = 0; i < 3000; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 124;
}

/* -- calls in a child that a replica's function has forked -- */

/* More than a ring of started operations: the last ones would wait for room. */
static ditto_status call_start(ditto_replica *self)
{
    static float numbers[65536];
    ditto_pending pending;
    for (int i = 0; i < 2 * DITTO_MAX_PENDING; i++)
        DITTO_TRY(ditto_all_reduce_start(self, numbers, numbers, 65536, DITTO_F32, DITTO_SUM, NULL, &pending));
    return DITTO_OK;
}

struct forking {
    struct report report;
    uint32_t forker;
    ditto_status (*call)(ditto_replica *self);
};

static ditto_status fork_and_call(ditto_replica *self, void *argument)
{
    struct forking *f = argument;
    if (ditto_replica_id(self) != f->forker)
        return DITTO_OK;
    pid_t child = fork();
    if (child == 0)
        _exit(f->call(self) == DITTO_ERR_FORKED ? 0 : 1);
    int code = await_child(child);
    if (code != 0)
        report_failure(&f->report, __FILE__, __LINE__, "the child's exit status is %d", code);
    return DITTO_OK;
}

static void collectives_in_a_child_are_refused_on_every_replica(void **state)
{
    static ditto_status (*const calls[])(ditto_replica *) = { call_barrier, call_merge, call_create, call_start };
    ditto_strategy *strategy = make_strategy(REPLICAS, NULL);
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (uint32_t forker = 0; forker < REPLICAS; forker++) {
            struct forking f = { .forker = forker, .call = calls[i] };
            run_all(strategy, fork_and_call, &f, &f.report);
        }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- a child that returns from the function -- */

static ditto_status fork_and_return(ditto_replica *self, void *argument)
{
    struct forking *f = argument;
    if (ditto_replica_id(self) != f->forker)
        return DITTO_OK;
    pid_t child = fork();
    if (child == 0)
        return DITTO_OK;
    int code = await_child(child);
    if (code != 0)
        report_failure(&f->report, __FILE__, __LINE__, "the child's exit status is %d", code);
    return DITTO_OK;
}

static ditto_status fork_on_a_device(uint32_t device, void *argument)
{
    struct forking *f = argument;
    (void)device;
    pid_t child = fork();
    if (child != 0 && await_child(child) != 0)
        report_failure(&f->report, __FILE__, __LINE__, "the child of a helper did not end well");
    return DITTO_OK;
}

static ditto_status fork_on_a_helper(ditto_replica *self, void *argument)
{
    if (ditto_replica_id(self) != 0)
        return DITTO_OK;
    DITTO_TRY(ditto_on_logical_device(self, 1, fork_on_a_device, argument));
    return ditto_join(self);
}

static ditto_status run_and_fork(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count, void *user,
                                 ditto_value **result)
{
    (void)arguments, (void)count, (void)result;
    return ditto_strategy_run(strategy, fork_and_return, user);
}

static ditto_status fork_in_an_inner_run(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, run_and_fork, argument, NULL, 0, NULL);
}

/* As the program that forks and forgets to end the child: where the child's run returns, the program goes on
 * to its end. */
static int return_in_a_child(void *argument)
{
    const ditto_replica_fn *function = argument;
    pid_t parent = getpid();
    for (uint32_t forker = 0; forker < REPLICAS; forker++) {
        struct forking f = { .forker = forker };
        ditto_strategy *strategy = make_two();
        REQUIRE(strategy != NULL);
        ditto_status status = ditto_strategy_run(strategy, *function, &f);
        if (getpid() != parent)
            _exit(status == DITTO_ERR_FORKED ? 0 : 1);
        REQUIRE(status == DITTO_OK && f.report.first_failure[0] == '\0');
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    }
    return 0;
}

static void a_child_that_returns_from_its_function_ends_on_every_replica(void **state)
{
    static const ditto_replica_fn functions[] = { fork_and_return, fork_in_an_inner_run };
    (void)state;
    if (SANITIZED)
        skip(); /* their exit waits for threads that the child does not have */
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        assert_int_equal(in_child(return_in_a_child, (void *)(uintptr_t)&functions[i], 120), 0);
}

static int return_in_a_helpers_child(void *unused)
{
    struct forking f = { .forker = 0 };
    (void)unused;
    ditto_strategy *strategy = make_wide_strategy(1, 2, NULL);
    REQUIRE(ditto_strategy_run(strategy, fork_on_a_helper, &f) == DITTO_OK);
    REQUIRE(f.report.first_failure[0] == '\0');
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_child_that_returns_from_a_function_on_a_helper_ends(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(return_in_a_helpers_child, NULL, 120), 0);
}

/* -- the kernel refuses to clear a page in children -- */

static int fork_where_madvise_is_refused(void *unused)
{
    static const uint32_t refused[] = { SYS_madvise };
    ditto_value *value;
    float x = 0;
    ditto_tensor part[REPLICAS] = { { .data = &x, .dtype = DITTO_F32 }, { .data = &x, .dtype = DITTO_F32 } };
    (void)unused;
    if (!refuse_system_calls(refused, 1))
        return 77;
    ditto_strategy *strategy = make_two();
    REQUIRE(strategy != NULL);
    REQUIRE(ditto_strategy_value_from_tensors(strategy, part, 1, &value) == DITTO_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        ditto_strategy *other;
        if (ditto_strategy_run(strategy, NULL, NULL) != DITTO_ERR_INVALID ||
            ditto_strategy_value_from_tensors(strategy, part, 1, &value) != DITTO_ERR_FORKED ||
            ditto_strategy_destroy(strategy) != DITTO_OK || (other = make_two()) == NULL ||
            ditto_strategy_value_from_tensors(other, part, 1, &value) != DITTO_OK)
            _exit(1);
        _exit(0);
    }
    REQUIRE(await_child(child) == 0);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_fork_is_noticed_where_the_kernel_does_not_help(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    int code = in_child(fork_where_madvise_is_refused, NULL, 60);
    if (code == 77)
        skip();
    assert_int_equal(code, 0);
}

/* -- a fork while other threads create strategies -- */

static _Atomic int may_stop;

static void *create_again_and_again(void *unused)
{
    (void)unused;
    while (!atomic_load(&may_stop)) {
        ditto_strategy *strategy = make_two();
        if (strategy == NULL || ditto_strategy_destroy(strategy) != DITTO_OK)
            return (void *)1;
    }
    return NULL;
}

static int fork_beside_creation(void *unused)
{
    pthread_t thread;
    void *failed;
    (void)unused;
    REQUIRE(pthread_create(&thread, NULL, create_again_and_again, NULL) == 0);
    for (int i = 0; i < test_trials(100); i++) {
        pid_t child = fork();
        if (child == 0) {
            ditto_strategy *strategy = make_two();
            _exit(strategy != NULL && ditto_strategy_destroy(strategy) == DITTO_OK ? 0 : 1);
        }
        REQUIRE(await_child(child) == 0);
    }
    atomic_store(&may_stop, 1);
    pthread_join(thread, &failed);
    REQUIRE(failed == NULL);
    return 0;
}

static void a_child_makes_strategies_whatever_other_threads_did_at_the_fork(void **state)
{
    (void)state;
    if (SANITIZED)
        skip(); /* a sanitizer's malloc is not whole in such a child */
    assert_int_equal(in_child(fork_beside_creation, NULL, 240), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_in_a_child_are_refused_on_every_replica),
        cmocka_unit_test(a_child_that_returns_from_its_function_ends_on_every_replica),
        cmocka_unit_test(a_child_that_returns_from_a_function_on_a_helper_ends),
        cmocka_unit_test(a_fork_is_noticed_where_the_kernel_does_not_help),
        cmocka_unit_test(a_child_makes_strategies_whatever_other_threads_did_at_the_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
