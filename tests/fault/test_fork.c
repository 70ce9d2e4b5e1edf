/* tests/fault/test_fork.c - children of a process that has strategies. In a child, a call on a strategy of
 * the parent returns DITTO_ERR_FORKED and never waits. A child can create its own strategies. It has a copy
 * of a queue of the parent, and can use it. */
#include "replicas/team/team_state.h"
#include "support/support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPLICAS = 2 };

/* The numbers of replicas with which tests are repeated. */
static const uint32_t counts[] = { 1, 2, 3, 8 };
enum { COUNTS = sizeof counts / sizeof counts[0] };

static ditto_strategy *make_some(uint32_t replicas)
{
    ditto_strategy *strategy = NULL;
    return ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = replicas), &strategy) ==
                   DITTO_OK
               ? strategy
               : NULL;
}

static ditto_strategy *make_two(void)
{
    return make_some(REPLICAS);
}

/* Returns the exit status of the child, or 124 if it has not ended after 60 seconds. */
static int await_child(pid_t child)
{
    int status;
    for (int i = 0; i < 6000; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        sleep_ms(10);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 124;
}

/* -- Calls in a child that a replica's function has forked -- */

/* Starts operations until one is refused. If they were not refused in the child process, the error would be
 * DITTO_ERR_RANGE, because too many would be pending. */
static ditto_status call_start(ditto_replica *self)
{
    static float numbers[65536];
    ditto_pending pending;
    for (int i = 0; i < 2 * DITTO_MAX_PENDING; i++)
        DITTO_TRY(
            ditto_all_reduce_start(self, numbers, numbers, 65536, DITTO_F32, DITTO_SUM, NULL, &pending));
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
    static ditto_status (*const calls[])(ditto_replica *) = { call_barrier, call_merge, call_create,
                                                              call_start };
    ditto_strategy *strategy = make_strategy(REPLICAS, NULL);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (uint32_t forker = 0; forker < REPLICAS; forker++) {
            struct forking f = { .forker = forker, .call = calls[i] };
            run_all(strategy, fork_and_call, &f, &f.report);
        }
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- A child that returns from the function -- */

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

static ditto_status run_and_fork(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                 void *user, ditto_value **result)
{
    return ditto_strategy_run(strategy, fork_and_return, user);
}

static ditto_status fork_in_an_inner_run(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, run_and_fork, argument, NULL, 0, NULL);
}

/* Behaves like a program that forks and does not end the child. If replica 0 forks, the run returns
 * DITTO_ERR_FORKED in the child, and the program continues to its end. If another replica forks, the child
 * has only the thread of that replica, and ends when this thread does. */
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
    if (SANITIZED)
        skip(); /* sanitizers wait at exit for threads of the parent */
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        assert_int_equal(in_child(return_in_a_child, (void *)(uintptr_t)&functions[i], 180), 0);
}

static int return_in_a_helpers_child(void *unused)
{
    struct forking f = { .forker = 0 };
    ditto_strategy *strategy = make_wide_strategy(1, 2, NULL);
    REQUIRE(ditto_strategy_run(strategy, fork_on_a_helper, &f) == DITTO_OK);
    REQUIRE(f.report.first_failure[0] == '\0');
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_child_that_returns_from_a_function_on_a_helper_ends(void **state)
{
    if (SANITIZED)
        skip(); /* sanitizers wait at exit for threads of the parent */
    assert_int_equal(in_child(return_in_a_helpers_child, NULL, 120), 0);
}

/* -- The kernel refuses to clear a page in children -- */

static int fork_where_madvise_is_refused(void *unused)
{
    static const uint32_t refused[] = { SYS_madvise };
    ditto_value *value;
    float x = 0;
    ditto_tensor part[REPLICAS] = { { .data = &x, .dtype = DITTO_F32 }, { .data = &x, .dtype = DITTO_F32 } };
    if (!refuse_system_calls(refused, 1))
        return 77;
    ditto_strategy *strategy = make_two();
    REQUIRE(strategy != NULL);
    REQUIRE(ditto_strategy_value_from_tensors(strategy, part, 1, &value) == DITTO_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
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

static void a_fork_is_noticed_where_the_kernel_refuses_to_clear_a_page(void **state)
{
    if (SANITIZED)
        skip();
    int code = in_child(fork_where_madvise_is_refused, NULL, 120);
    if (code == 77)
        skip();
    assert_int_equal(code, 0);
}

/* -- A fork while other threads create strategies -- */

static _Atomic int may_stop;

static void *create_again_and_again(void *unused)
{
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
    if (SANITIZED)
        skip(); /* a sanitizer's malloc does not work in such a child */
    assert_int_equal(in_child(fork_beside_creation, NULL, 240), 0);
}

/* -- A fork while a strategy is being destroyed -- */

struct ending {
    /* The dependent that was added last. It is notified of the strategy's end before all others. */
    struct dti_dependent dependent;

    ditto_strategy *strategy;
    ditto_variable *first, *second;
    ditto_iterator *iterator;
    _Atomic int is_held, is_shut, may_end;
    ditto_status status;
};

/* All gates are shut when this function is called. */
static void signal_the_end(struct dti_dependent *dependent, enum dti_team_end end)
{
    atomic_store(&((struct ending *)dependent)->is_shut, 1);
}

static const struct dti_dependent_kind has_been_signalled = {
    .what = "the dependent notified first",
    .team_ends = signal_the_end,
};

/* A function of the iterator's dataset. The producer, and with it the destruction of the strategy, waits for
 * it. */
static ditto_status hold_the_end(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                 void *argument)
{
    struct ending *e = argument;
    atomic_store(&e->is_held, 1);
    while (!atomic_load(&e->may_end))
        sleep_ms(1);
    memcpy(out->data, in->data, sizeof(int64_t));
    return DITTO_OK;
}

static void *destroy_the_strategy(void *argument)
{
    struct ending *e = argument;
    e->status = ditto_strategy_destroy(e->strategy);
    return NULL;
}

static ditto_status do_nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

static int use_what_is_being_destroyed(struct ending *e)
{
    float number;
    ditto_value *batch;
    REQUIRE(ditto_variable_read(e->first, &number, sizeof number) == DITTO_ERR_FORKED);
    REQUIRE(ditto_strategy_run(e->strategy, do_nothing, NULL) == DITTO_ERR_FORKED);
    /* DITTO_ERR_CONTEXT if the iterator had left the strategy before the fork. */
    ditto_status next = ditto_iterator_next(e->iterator, &batch);
    REQUIRE(next == DITTO_ERR_FORKED || next == DITTO_ERR_CONTEXT);
    REQUIRE(ditto_variable_destroy(e->second) == DITTO_OK);
    REQUIRE(ditto_iterator_destroy(e->iterator) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(e->first) == DITTO_OK);
    return 0;
}

static int fork_during_a_destroy(void *replicas)
{
    struct ending e = { .dependent = { .kind = &has_been_signalled } };
    float zero = 0;
    ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
    ditto_dataset *rows, *held;
    pthread_t thread;
    REQUIRE((e.strategy = make_some(*(const uint32_t *)replicas)) != NULL);
    REQUIRE(ditto_variable_create(e.strategy, &initial, NULL, &e.first) == DITTO_OK);
    REQUIRE(ditto_variable_create(e.strategy, &initial, NULL, &e.second) == DITTO_OK);
    REQUIRE(ditto_dataset_from_range(0, 1000, 1, &rows) == DITTO_OK);
    REQUIRE(ditto_dataset_map(rows, hold_the_end, &e, NULL, &held) == DITTO_OK);
    REQUIRE(ditto_strategy_iterate(e.strategy, held, &OPTIONS(input, .global_batch = 8), &e.iterator) ==
            DITTO_OK);
    REQUIRE(dti_watch(e.strategy, &e.dependent) == DITTO_OK);
    while (!atomic_load(&e.is_held))
        sleep_ms(1);
    REQUIRE(pthread_create(&thread, NULL, destroy_the_strategy, &e) == 0);
    while (!atomic_load(&e.is_shut))
        sleep_ms(1);
    pid_t child = fork();
    if (child == 0)
        _exit(use_what_is_being_destroyed(&e));
    int code = await_child(child);
    atomic_store(&e.may_end, 1);
    pthread_join(thread, NULL);
    REQUIRE(code == 0 && e.status == DITTO_OK);
    REQUIRE(ditto_iterator_destroy(e.iterator) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(e.first) == DITTO_OK && ditto_variable_destroy(e.second) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(held) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(rows) == DITTO_OK);
    return 0;
}

static void a_child_does_not_wait_for_the_end_of_a_destroy_in_its_parent(void **state)
{
    if (SANITIZED)
        skip(); /* a sanitizer's malloc does not work in such a child */
    for (size_t i = 0; i < COUNTS; i++)
        assert_int_equal(in_child(fork_during_a_destroy, (void *)(uintptr_t)&counts[i], 120), 0);
}

/* -- A child that destroys the strategy in a function that a call on the strategy executes -- */

struct destroying {
    pid_t parent;
    ditto_strategy *strategy;
    bool must_return; /* the child returns from its function, and does not end there */
    int code;         /* the exit status of the child */
};

/* Does what the message of DITTO_ERR_FORKED asks for. Sanitizers do not support threads in the child of a
 * process that has threads, so the new strategy has no more replicas than the old one. */
static int destroy_and_create(const struct destroying *d)
{
    uint32_t replicas = ditto_strategy_num_replicas(d->strategy);
    float zero = 0;
    ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
    ditto_strategy *other;
    ditto_variable *variable;
    REQUIRE(ditto_strategy_destroy(d->strategy) == DITTO_OK);
    REQUIRE((other = make_some(replicas)) != NULL);
    REQUIRE(ditto_strategy_scope_enter(other) == DITTO_OK);
    REQUIRE(ditto_variable_create(other, &initial, NULL, &variable) == DITTO_OK);
    REQUIRE(ditto_strategy_run(other, do_nothing, NULL) == DITTO_OK);
    REQUIRE(ditto_strategy_scope_leave(other) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(variable) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(other) == DITTO_OK);
    return 0;
}

static ditto_status fork_and_destroy(struct destroying *d)
{
    pid_t child = fork();
    if (child != 0)
        d->code = await_child(child);
    else {
        alarm(60);
        int code = destroy_and_create(d);
        if (code != 0 || !d->must_return)
            _exit(code);
    }
    return DITTO_OK;
}

static ditto_status destroy_in_a_merge_function(ditto_strategy *strategy, ditto_value *const *arguments,
                                                uint32_t count, void *user, ditto_value **result)
{
    return fork_and_destroy(user);
}

static ditto_status merge_and_destroy(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, destroy_in_a_merge_function, argument, NULL, 0, NULL);
}

static ditto_status call_a_merge_function(struct destroying *d)
{
    return ditto_strategy_run(d->strategy, merge_and_destroy, d);
}

static ditto_status destroy_in_a_function_of_a_value(uint32_t replica, uint32_t num_replicas, void *argument,
                                                     ditto_tensor *component)
{
    static double zero;
    *component = (ditto_tensor){ .data = &zero, .dtype = DITTO_F64 };
    return replica == 0 ? fork_and_destroy(argument) : DITTO_OK;
}

static ditto_status call_a_function_of_a_value(struct destroying *d)
{
    ditto_value *value;
    DITTO_TRY(ditto_strategy_value_from_function(d->strategy, destroy_in_a_function_of_a_value, d, &value));
    return ditto_value_destroy(value);
}

static ditto_status destroy_in_initialize(const ditto_tensor *value, size_t first_row, void *user)
{
    memset(value->data, 0, ditto_tensor_bytes(value));
    return fork_and_destroy(user);
}

static ditto_status call_initialize(struct destroying *d)
{
    ditto_tensor initial = { .dtype = DITTO_F32 };
    ditto_variable *variable;
    DITTO_TRY(ditto_variable_create(
        d->strategy, &initial, &OPTIONS(variable, .initialize = destroy_in_initialize, .initialize_user = d),
        &variable));
    return ditto_variable_destroy(variable);
}

static ditto_status destroy_in_a_function_of_datasets(const ditto_input_context *context, void *user,
                                                      ditto_dataset **out)
{
    ditto_dataset *range;
    DITTO_TRY(ditto_dataset_from_range(0, 100, 1, &range));
    DITTO_TRY(ditto_dataset_batch(range, 1, 0, out));
    return context->pipeline == 0 ? fork_and_destroy(user) : DITTO_OK;
}

static ditto_status call_a_function_of_datasets(struct destroying *d)
{
    ditto_iterator *iterator;
    DITTO_TRY(ditto_strategy_iterate_from_function(d->strategy, destroy_in_a_function_of_datasets, d, NULL,
                                                   &iterator));
    return ditto_iterator_destroy(iterator);
}

struct destroying_case {
    uint32_t replicas;
    bool must_return;
    bool is_in_scope;
    ditto_status (*call)(struct destroying *self);
};

static int destroy_inside_a_call(void *argument)
{
    const struct destroying_case *k = argument;
    struct destroying d = { .parent = getpid(), .must_return = k->must_return, .code = -1 };
    spoil_freed_memory();
    REQUIRE((d.strategy = make_some(k->replicas)) != NULL);
    if (k->is_in_scope)
        REQUIRE(ditto_strategy_scope_enter(d.strategy) == DITTO_OK);
    ditto_status status = k->call(&d);
    if (getpid() != d.parent)
        _exit(status == DITTO_OK || status == DITTO_ERR_FORKED ? 0 : 1);
    REQUIRE(status == DITTO_OK && d.code == 0);
    if (k->is_in_scope)
        REQUIRE(ditto_strategy_scope_leave(d.strategy) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(d.strategy) == DITTO_OK);
    return 0;
}

static void a_child_replaces_the_strategy_inside_a_function_that_the_strategy_calls(void **state)
{
    static ditto_status (*const calls[])(struct destroying *) = { call_a_merge_function,
                                                                  call_a_function_of_a_value, call_initialize,
                                                                  call_a_function_of_datasets };
    for (size_t i = 0; i < (SANITIZED ? 1 : COUNTS); i++)
        for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
            for (int variant = 0; variant < 4; variant++) {
                struct destroying_case k = { counts[i], variant % 2 != 0, variant / 2 != 0, calls[c] };
                assert_int_equal(in_child(destroy_inside_a_call, &k, 120), 0);
            }
}

struct colocation {
    pid_t parent;
    ditto_variable *variable;
    int code; /* the exit status of the child */
};

static ditto_status destroy_the_colocated(const ditto_tensor *value, size_t first_row, void *user)
{
    struct colocation *c = user;
    memset(value->data, 0, ditto_tensor_bytes(value));
    pid_t child = fork();
    if (child != 0) {
        c->code = await_child(child);
        return DITTO_OK;
    }
    watch_free(c->variable);
    return ditto_variable_destroy(c->variable);
}

/* The call that creates a variable uses the variable with which it is colocated until it returns. */
static int destroy_a_colocated_variable(void *unused)
{
    struct colocation c = { .parent = getpid(), .code = -1 };
    float zero = 0;
    ditto_tensor first = { .data = &zero, .dtype = DITTO_F32 }, initial = { .dtype = DITTO_F32 };
    ditto_strategy *strategy = make_two();
    ditto_variable *created;
    REQUIRE(strategy != NULL);
    REQUIRE(ditto_variable_create(strategy, &first, NULL, &c.variable) == DITTO_OK);
    ditto_variable_options options = OPTIONS(variable, .initialize = destroy_the_colocated,
                                             .initialize_user = &c, .colocate_with = c.variable);
    ditto_status status = ditto_variable_create(strategy, &initial, &options, &created);
    if (getpid() != c.parent) {
        bool is_right = status == DITTO_ERR_FORKED && !was_freed();
        _exit(is_right && ditto_strategy_destroy(strategy) == DITTO_OK && was_freed() ? 0 : 1);
    }
    REQUIRE(status == DITTO_OK && c.code == 0);
    REQUIRE(ditto_variable_destroy(created) == DITTO_OK && ditto_variable_destroy(c.variable) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    return 0;
}

static void a_child_destroys_a_variable_inside_a_function_of_a_call_that_uses_it(void **state)
{
    assert_int_equal(in_child(destroy_a_colocated_variable, NULL, 120), 0);
}

/* -- A fork while another thread writes the error of a run -- */

struct claiming {
    struct dti_team *team;
    ditto_variable *variable;
    uint32_t forker;
    _Atomic int code;
};

/* Forks while the stop word has the state that it has while another thread writes an error. No thread of the
 * child will end that state. */
static ditto_status fork_under_a_claim(struct claiming *c)
{
    atomic_store(&c->team->stop.state, DTI_STOP_CLAIMED);
    pid_t child = fork();
    if (child == 0)
        return DITTO_ERR_USER; /* the child stops the run, too */
    atomic_store(&c->team->stop.state, DTI_STOP_RUNNING);
    atomic_store(&c->code, await_child(child));
    return DITTO_OK;
}

static ditto_status fork_in_a_run(ditto_replica *self, void *argument)
{
    struct claiming *c = argument;
    return ditto_replica_id(self) == c->forker ? fork_under_a_claim(c) : DITTO_OK;
}

static ditto_status run_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *user, ditto_value **result)
{
    return ditto_strategy_run(strategy, fork_in_a_run, user);
}

static ditto_status fork_in_a_run_inside(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, run_inside, argument, NULL, 0, NULL);
}

static ditto_status fork_in_a_function_of_an_update(const ditto_tensor *copy, const ditto_tensor *arguments,
                                                    uint32_t count, void *user, ditto_tensor *result)
{
    struct claiming *c = user;
    return atomic_exchange(&c->code, -1) == 0 ? fork_under_a_claim(c) : DITTO_OK;
}

static ditto_status update_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    struct claiming *c = user;
    return ditto_variable_update(c->variable, fork_in_a_function_of_an_update, c, NULL, 0, NULL, NULL);
}

static ditto_status fork_in_an_update(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, update_inside, argument, NULL, 0, NULL);
}

struct claiming_case {
    uint32_t replicas;
    ditto_replica_fn function;
};

static int fork_while_a_stop_is_claimed(void *argument)
{
    const struct claiming_case *k = argument;
    pid_t parent = getpid();
    for (uint32_t forker = 0; forker < k->replicas; forker++) {
        ditto_strategy *strategy = make_some(k->replicas);
        float zero = 0;
        ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
        REQUIRE(strategy != NULL);
        struct claiming c = { .team = dti_team_of(strategy), .forker = forker };
        REQUIRE(ditto_variable_create(strategy, &initial, NULL, &c.variable) == DITTO_OK);
        ditto_status status = ditto_strategy_run(strategy, k->function, &c);
        if (getpid() != parent)
            _exit(status == DITTO_ERR_FORKED ? 0 : 1);
        REQUIRE(status == DITTO_OK && atomic_load(&c.code) == 0);
        REQUIRE(ditto_variable_destroy(c.variable) == DITTO_OK);
        REQUIRE(ditto_strategy_destroy(strategy) == DITTO_OK);
    }
    return 0;
}

static void a_child_does_not_wait_for_an_error_that_its_parent_was_writing(void **state)
{
    static const ditto_replica_fn functions[] = { fork_in_a_run, fork_in_a_run_inside, fork_in_an_update };
    if (SANITIZED)
        skip(); /* sanitizers wait at exit for threads of the parent */
    for (size_t i = 0; i < COUNTS; i++)
        for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
            struct claiming_case c = { counts[i], functions[f] };
            assert_int_equal(in_child(fork_while_a_stop_is_claimed, &c, 300), 0);
        }
}

/* -- A fork while other threads read the failure of a queue -- */

enum { PUTTING = 3 };

struct failed_queue {
    ditto_queue *queue;
    _Atomic int may_stop;
};

struct putting {
    struct failed_queue *failed;
    uint32_t producer;
    pthread_t thread;
};

static void *put_again_and_again(void *argument)
{
    struct putting *p = argument;
    while (!atomic_load(&p->failed->may_stop))
        if (ditto_queue_put(p->failed->queue, p->producer, NULL, 0, 0) != DITTO_ERR_USER)
            return (void *)1;
    return NULL;
}

/* The parent's thread holds tickets 0 and 2. Ticket 1 has failed. */
static int use_failed_queue(ditto_queue *queue)
{
    ditto_queue_item got;
    uint64_t ticket;
    alarm(60);
    REQUIRE(ditto_queue_put(queue, PUTTING, NULL, 0, 0) == DITTO_ERR_USER);
    REQUIRE(strstr(ditto_last_error()->message, "failed at ticket 1: the disk is full") != NULL);
    REQUIRE(ditto_queue_claim(queue, PUTTING, 0, 0, &ticket, NULL) == DITTO_ERR_USER);
    REQUIRE(ditto_queue_fail(queue, PUTTING, 0, DITTO_ERR_RANGE, "the disk is gone") == DITTO_OK);
    REQUIRE(ditto_queue_fail(queue, PUTTING, DITTO_ALL_TICKETS, DITTO_ERR_PEER_STOPPED, "it has exited") ==
            DITTO_OK);
    REQUIRE(ditto_queue_get(queue, 0, &got) == DITTO_ERR_RANGE);
    REQUIRE(strstr(ditto_last_error()->message, "failed at ticket 0: the disk is gone") != NULL);
    REQUIRE(ditto_queue_destroy(queue) == DITTO_OK);
    return 0;
}

static int fork_beside_puts(void *unused)
{
    struct failed_queue failed = { .queue = NULL };
    struct putting putting[PUTTING];
    void *was_wrong;
    REQUIRE(ditto_queue_create(&OPTIONS(queue, .num_producers = PUTTING + 1), &failed.queue) == DITTO_OK);
    for (uint64_t i = 0, ticket; i < 3; i++)
        REQUIRE(ditto_queue_claim(failed.queue, PUTTING, 0, 0, &ticket, NULL) == DITTO_OK && ticket == i);
    REQUIRE(ditto_queue_fail(failed.queue, PUTTING, 1, DITTO_ERR_USER, "the disk is full") == DITTO_OK);
    for (uint32_t i = 0; i < PUTTING; i++) {
        putting[i] = (struct putting){ .failed = &failed, .producer = i };
        REQUIRE(pthread_create(&putting[i].thread, NULL, put_again_and_again, &putting[i]) == 0);
    }
    for (int i = 0; i < test_trials(100); i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(use_failed_queue(failed.queue));
        REQUIRE(await_child(child) == 0);
    }
    atomic_store(&failed.may_stop, 1);
    for (uint32_t i = 0; i < PUTTING; i++) {
        pthread_join(putting[i].thread, &was_wrong);
        REQUIRE(was_wrong == NULL);
    }
    REQUIRE(ditto_queue_destroy(failed.queue) == DITTO_OK);
    return 0;
}

static void a_child_uses_a_failed_queue_whatever_other_threads_did_at_the_fork(void **state)
{
    if (SANITIZED)
        skip(); /* a sanitizer's malloc does not work in such a child */
    assert_int_equal(in_child(fork_beside_puts, NULL, 240), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_in_a_child_are_refused_on_every_replica),
        cmocka_unit_test(a_child_that_returns_from_its_function_ends_on_every_replica),
        cmocka_unit_test(a_child_that_returns_from_a_function_on_a_helper_ends),
        cmocka_unit_test(a_fork_is_noticed_where_the_kernel_refuses_to_clear_a_page),
        cmocka_unit_test(a_child_makes_strategies_whatever_other_threads_did_at_the_fork),
        cmocka_unit_test(a_child_does_not_wait_for_the_end_of_a_destroy_in_its_parent),
        cmocka_unit_test(a_child_replaces_the_strategy_inside_a_function_that_the_strategy_calls),
        cmocka_unit_test(a_child_destroys_a_variable_inside_a_function_of_a_call_that_uses_it),
        cmocka_unit_test(a_child_does_not_wait_for_an_error_that_its_parent_was_writing),
        cmocka_unit_test(a_child_uses_a_failed_queue_whatever_other_threads_did_at_the_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
