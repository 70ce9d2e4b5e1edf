/* tests/coordinator/test_coordinator.c - docs/semantics.md, "Parameter servers": workers, functions, errors,
 * cancelling and lost workers (rules 12.1 to 12.9). tests/coordinator/test_parameters.c has the variables. */
#include "support/support.h"

#include <ditto/parameter.h>

#include <pthread.h>
#include <stdatomic.h>

static ditto_strategy *make_workers(uint32_t workers, uint32_t replicas, const ditto_strategy_options *given)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    if (given != NULL)
        options = *given;
    options.num_replicas = workers * replicas;
    options.replicas_per_worker = replicas;
    assert_ok(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy));
    return strategy;
}

static ditto_coordinator *make_coordinator(ditto_strategy *strategy, uint32_t capacity)
{
    ditto_coordinator *coordinator;
    assert_ok(
        ditto_coordinator_create(strategy, &OPTIONS(coordinator, .queue_capacity = capacity), &coordinator));
    return coordinator;
}

static void register_as(const char *name, ditto_replica_fn function, void *user)
{
    assert_ok(ditto_function_register(name, function, user));
}

static ditto_remote *schedule(ditto_coordinator *c, const char *name, const ditto_value *arguments)
{
    ditto_remote *remote;
    assert_ok(ditto_coordinator_schedule(c, name, arguments, NULL, &remote));
    return remote;
}

static double number_of(ditto_remote *remote)
{
    ditto_value *value;
    double number;
    assert_ok(ditto_remote_fetch(remote, &value));
    assert_ok(ditto_value_f64(value, &number));
    assert_ok(ditto_value_destroy(value));
    return number;
}

static void end(ditto_coordinator *c, ditto_strategy *strategy)
{
    assert_ok(ditto_coordinator_destroy(c));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- functions -- */

static _Atomic int calls, gate_is_open, at_gate;

static ditto_status count_call(ditto_replica *self, void *user)
{
    atomic_fetch_add((_Atomic int *)user, 1);
    return DITTO_OK;
}

/* Returns twice its argument. */
static ditto_status double_it(ditto_replica *self, void *user)
{
    ditto_tensor x;
    DITTO_TRY(ditto_argument(self, "x", &x));
    return ditto_return_f64(self, NULL, 2 * *(const double *)x.data);
}

static void close_gate(void)
{
    atomic_store(&at_gate, 0);
    atomic_store(&gate_is_open, 0);
}

static ditto_status wait_for_gate(ditto_replica *self, void *user)
{
    atomic_fetch_add(&at_gate, 1);
    while (!atomic_load(&gate_is_open))
        sleep_ms(1);
    return DITTO_OK;
}

/* Waits until so many functions have begun and wait for the gate. A worker that is busy may still be about to
 * begin its function. */
static void await_at_gate(int functions)
{
    while (atomic_load(&at_gate) < functions)
        sleep_ms(1);
}

static ditto_status fail_always(ditto_replica *self, void *user)
{
    return ditto_fail(self, 7, "this one fails");
}

static ditto_status end_of_input(ditto_replica *self, void *user)
{
    DITTO_TRY(ditto_return_f64(self, NULL, 3));
    return DITTO_END_OF_INPUT;
}

/* Adds the ids of the replicas of a worker, which work in step, and says how many there are. */
static ditto_status sum_of_ids(ditto_replica *self, void *user)
{
    double sum = ditto_replica_id(self);
    DITTO_TRY(ditto_all_reduce(self, &sum, &sum, 1, DITTO_F64, DITTO_SUM, NULL));
    return ditto_return_f64(self, NULL, sum + 100 * ditto_num_replicas(self));
}

static ditto_value *argument_x(ditto_strategy *strategy, double *x)
{
    ditto_value *plain, *nest;
    ditto_tensor t = { .data = x, .dtype = DITTO_F64 };
    assert_ok(ditto_strategy_value(strategy, &t, &plain));
    assert_ok(
        ditto_strategy_nest(strategy, (const char *[]){ "x" }, (const ditto_value *[]){ plain }, 1, &nest));
    assert_ok(ditto_value_destroy(plain));
    return nest;
}

static ditto_status number_of_worker(uint32_t worker, uint32_t workers, void *user, ditto_tensor *component)
{
    double *number = user;
    *number = 100 * workers + worker;
    *component = (ditto_tensor){ .data = number, .dtype = DITTO_F64 };
    return DITTO_OK;
}

static ditto_coordinator_counters stats_of(const ditto_coordinator *c)
{
    ditto_coordinator_counters counters = DITTO_COORDINATOR_COUNTERS_INIT;
    assert_ok(ditto_coordinator_stats(c, &counters));
    return counters;
}

/* A thread that schedules functions and joins, in steps that the main thread starts. */
struct caller {
    ditto_coordinator *c;
    const char *name;
    int times;
    pthread_t thread;
    _Atomic int step; /* odd while the thread makes one */
    ditto_status scheduled, joined, joined_again;
    ditto_error error; /* of `joined` */
};

static void await_step(struct caller *caller, int step)
{
    while (atomic_load(&caller->step) < step)
        sleep_ms(1);
}

static void *make_steps(void *user)
{
    struct caller *caller = user;
    for (int i = 0; i < caller->times && caller->scheduled == DITTO_OK; i++)
        caller->scheduled = ditto_coordinator_schedule(caller->c, caller->name, NULL, NULL, NULL);
    atomic_store(&caller->step, 1);
    await_step(caller, 2);
    caller->joined = ditto_coordinator_join(caller->c);
    caller->error = *ditto_last_error();
    caller->joined_again = ditto_coordinator_join(caller->c);
    return NULL;
}

/* Starts the thread, and waits until it has scheduled its functions. */
static void begin_caller(struct caller *caller)
{
    assert_int_equal(pthread_create(&caller->thread, NULL, make_steps, caller), 0);
    await_step(caller, 1);
}

static void end_caller(struct caller *caller)
{
    atomic_store(&caller->step, 2);
    pthread_join(caller->thread, NULL);
}

/* -- rules -- */

static void rule_12_1_workers_are_groups_of_replicas_in_step(void **state)
{
    const uint32_t shapes[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 3, 2 }, { 2, 3 }, { 8, 1 } };
    register_as("sum_of_ids", sum_of_ids, NULL);
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        uint32_t workers = shapes[k][0], replicas = shapes[k][1];
        ditto_strategy *strategy = make_workers(workers, replicas, NULL);
        ditto_coordinator *c = make_coordinator(strategy, 0);
        assert_int_equal(ditto_strategy_num_replicas(strategy), workers * replicas);
        assert_int_equal(stats_of(c).num_workers, workers);
        ditto_remote *remote = schedule(c, "sum_of_ids", NULL);
        ditto_value *value;
        const ditto_value *first;
        double number;
        assert_ok(ditto_remote_fetch(remote, &value));
        assert_ok(ditto_value_member(value, replicas > 1 ? "0" : NULL, &first));
        assert_ok(ditto_value_f64(first, &number));
        assert_true(number == replicas * (replicas - 1) / 2.0 + 100 * replicas);
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_remote_destroy(remote));
        end(c, strategy);
    }
}

static void rule_12_1_options_that_cannot_be(void **state)
{
    ditto_strategy *strategy;
    uint32_t nodes[2] = { 0, 0 }, none = 999;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 4, .replicas_per_worker = 3);
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID);
    assert_message("does not divide");
    options.replicas_per_worker = 8;
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID);
    options.replicas_per_worker = 2;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_INVALID);
    assert_message("replicas_per_worker");
    options.caller = DITTO_CALLER_IS_REPLICA_0;
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID);
    options.caller = DITTO_CALLER_WAITS;
    options.parameter_nodes = nodes;
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID);
    options.num_parameter_nodes = 2;
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID);
    assert_message("twice");
    options.parameter_nodes = &none;
    options.num_parameter_nodes = 1;
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_RANGE);
    assert_message("999");
    options.parameter_nodes = NULL;
    assert_status(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy), DITTO_ERR_INVALID);
    options.num_parameter_nodes = 1;
    options.parameter_nodes = nodes;
    assert_ok(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy));
    assert_int_equal(properties_of_strategy(strategy).kind, DITTO_PARAMETER_SERVER);
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status give_one(uint32_t replica, uint32_t n, void *user, ditto_tensor *component)
{
    static double one = 1;
    *component = (ditto_tensor){ .data = &one, .dtype = DITTO_F64 };
    return DITTO_OK;
}

static void rule_12_2_calls_that_need_replicas_in_step(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1, NULL), *mirrored = make_strategy(2, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0), *second;
    ditto_value *value;
    char text[4096];
    assert_status(ditto_strategy_run(strategy, count_call, &calls), DITTO_ERR_UNSUPPORTED);
    assert_message("schedule a function");
    assert_status(ditto_strategy_run_values(strategy, count_call, &calls, NULL, NULL, &value),
                  DITTO_ERR_UNSUPPORTED);
    assert_status(ditto_strategy_value_from_function(strategy, give_one, NULL, &value),
                  DITTO_ERR_UNSUPPORTED);
    assert_ok(ditto_strategy_describe(strategy, text, sizeof text, NULL));
    assert_non_null(strstr(text, "parameter server strategy, 2 workers of 1 replica"));
    assert_status(ditto_coordinator_create(strategy, NULL, &second), DITTO_ERR_BUSY);
    assert_status(ditto_coordinator_create(mirrored, NULL, &second), DITTO_ERR_INVALID);
    assert_message("no workers");
    assert_status(ditto_strategy_destroy(strategy), DITTO_ERR_BUSY);
    assert_message("coordinator");
    assert_ok(ditto_strategy_destroy(mirrored));
    end(c, strategy);
}

static void rule_12_3_functions_are_executed_once_each(void **state)
{
    register_as("count", count_call, &calls);
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_workers(replica_counts[k], 1, NULL);
        ditto_coordinator *c = make_coordinator(strategy, 16);
        int many = test_trials(5000);
        atomic_store(&calls, 0);
        for (int i = 0; i < many; i++) /* the queue is often full */
            assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
        assert_ok(ditto_coordinator_join(c));
        assert_int_equal(atomic_load(&calls), many);
        uint64_t sum = 0;
        for (uint32_t w = 0; w < replica_counts[k]; w++) {
            ditto_worker_info info = DITTO_WORKER_INFO_INIT;
            assert_ok(ditto_coordinator_worker_info(c, w, &info));
            assert_false(info.is_busy);
            sum += info.functions;
        }
        assert_int_equal(sum, many);
        end(c, strategy);
    }
}

static void rule_12_3_arguments_are_copied(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1, NULL), *other = make_strategy(1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    ditto_remote *remote[50];
    double x = 0;
    register_as("double", double_it, NULL);
    for (int i = 0; i < 50; i++) {
        ditto_value *arguments = argument_x(strategy, &x);
        x = i;
        remote[i] = schedule(c, "double", arguments);
        assert_ok(ditto_value_destroy(arguments));
        x = -1;
    }
    for (int i = 0; i < 50; i++) {
        assert_true(number_of(remote[i]) == 2 * i);
        assert_true(number_of(remote[i]) == 2 * i); /* as often as it is asked for */
        assert_ok(ditto_remote_destroy(remote[i]));
    }
    ditto_value *foreign = argument_x(other, &x);
    assert_status(ditto_coordinator_schedule(c, "double", foreign, NULL, NULL), DITTO_ERR_CONTEXT);
    assert_ok(ditto_value_destroy(foreign));
    assert_ok(ditto_strategy_destroy(other));
    end(c, strategy);
}

static ditto_status triple_it(ditto_replica *self, void *user)
{
    ditto_tensor x;
    DITTO_TRY(ditto_argument(self, NULL, &x));
    return ditto_return_f64(self, NULL, 3 * *(const double *)x.data);
}

static void rule_12_3_one_tensor_as_the_argument(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    ditto_value *value;
    double x = 7;
    ditto_tensor tensor = { .data = &x, .dtype = DITTO_F64 };
    ditto_schedule_options options = OPTIONS(schedule, .argument = &tensor);
    ditto_remote *remote;
    register_as("triple", triple_it, NULL);
    assert_ok(ditto_coordinator_schedule(c, "triple", NULL, &options, &remote));
    x = -1;
    assert_true(number_of(remote) == 21);
    assert_ok(ditto_remote_destroy(remote));
    ditto_value *arguments = argument_x(strategy, &x);
    assert_status(ditto_coordinator_schedule(c, "triple", arguments, &options, NULL), DITTO_ERR_INVALID);
    assert_message("both");
    assert_ok(ditto_value_destroy(arguments));
    tensor.data = NULL;
    assert_status(ditto_coordinator_schedule(c, "triple", NULL, &options, NULL), DITTO_ERR_INVALID);
    assert_message("options->argument");
    tensor = (ditto_tensor){ .data = &x };
    assert_status(ditto_coordinator_schedule(c, "triple", NULL, &options, NULL), DITTO_ERR_INVALID);
    /* Without an argument. */
    remote = schedule(c, "triple", NULL);
    assert_status(ditto_remote_fetch(remote, &value), DITTO_ERR_NOT_FOUND);
    assert_message("pass them to ditto_coordinator_schedule");
    assert_status(ditto_coordinator_join(c), DITTO_ERR_NOT_FOUND);
    assert_ok(ditto_remote_destroy(remote));
    end(c, strategy);
}

/* The message names all workers, and says what to do. */
static void rule_12_4_a_long_function(void **state)
{
    ditto_strategy *strategy = make_workers(3, 1, &OPTIONS(strategy, .timeout_ms = 100));
    ditto_coordinator *c = make_coordinator(strategy, 0);
    register_as("wait", wait_for_gate, NULL);
    close_gate();
    for (int i = 0; i < 3; i++)
        assert_ok(ditto_coordinator_schedule(c, "wait", NULL, NULL, NULL));
    await_at_gate(3);
    assert_status(ditto_coordinator_join(c), DITTO_ERR_TIMED_OUT);
    assert_message("worker 0 executes \"wait\", worker 1 executes \"wait\", worker 2 executes \"wait\"");
    assert_message("DITTO_FOREVER");
    atomic_store(&gate_is_open, 1);
    ditto_status joined;
    while ((joined = ditto_coordinator_join(c)) == DITTO_ERR_TIMED_OUT)
        ;
    assert_ok(joined);
    end(c, strategy);
}

static ditto_status return_slices(ditto_replica *self, void *user)
{
    int64_t row = 0;
    double value = 1;
    ditto_slices slices = {
        .indices = &row, .values = &value, .rows = 1, .row_count = 1, .dtype = DITTO_F64
    };
    return ditto_return_slices(self, NULL, &slices, 1);
}

static void rule_12_4_results_are_tensors(void **state)
{
    ditto_strategy *strategy = make_workers(1, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    ditto_value *value;
    register_as("return_slices", return_slices, NULL);
    ditto_remote *remote = schedule(c, "return_slices", NULL);
    assert_status(ditto_remote_fetch(remote, &value), DITTO_ERR_INVALID);
    assert_status(ditto_coordinator_join(c), DITTO_ERR_INVALID);
    assert_message("slices");
    assert_ok(ditto_remote_destroy(remote));
    end(c, strategy);
}

static void rule_12_3_a_full_queue(void **state)
{
    ditto_strategy *strategy = make_workers(1, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 4);
    register_as("wait", wait_for_gate, NULL);
    atomic_store(&gate_is_open, 0);
    int scheduled = 0;
    ditto_status status = DITTO_OK;
    while (scheduled < 100 && status == DITTO_OK) {
        status = ditto_coordinator_schedule(c, "wait", NULL, &OPTIONS(schedule, .no_wait = 1), NULL);
        scheduled += status == DITTO_OK;
    }
    assert_int_equal(status, DITTO_PENDING);
    assert_in_range(scheduled, 4, 5);
    int done = 1;
    assert_ok(ditto_coordinator_done(c, &done));
    assert_false(done);
    atomic_store(&gate_is_open, 1);
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_coordinator_done(c, &done));
    assert_true(done);
    end(c, strategy);
}

static void rule_12_3_the_smallest_queue(void **state)
{
    ditto_strategy *strategy = make_workers(3, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 1);
    register_as("count", count_call, &calls);
    atomic_store(&calls, 0);
    for (int i = 0; i < 1000; i++)
        assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
    assert_ok(ditto_coordinator_join(c));
    assert_int_equal(atomic_load(&calls), 1000);
    end(c, strategy);
}

static void rule_12_3_names(void **state)
{
    ditto_strategy *strategy = make_workers(1, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    char longest[DITTO_MAX_FUNCTION_NAME_BYTES + 2];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    register_as("count", count_call, &calls);
    register_as("count", count_call, &calls);
    assert_status(ditto_function_register("count", fail_always, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_function_register("count", count_call, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_function_register("", fail_always, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_function_register(NULL, fail_always, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_function_register("null", NULL, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_function_register(longest, fail_always, NULL), DITTO_ERR_RANGE);
    longest[sizeof longest - 2] = '\0';
    assert_ok(ditto_function_register(longest, fail_always, NULL));
    assert_ok(ditto_function_unregister(longest));
    assert_status(ditto_coordinator_schedule(c, "no such function", NULL, NULL, NULL), DITTO_ERR_NOT_FOUND);
    assert_message("\"count\"");
    assert_ok(ditto_function_unregister("count"));
    assert_status(ditto_function_unregister("count"), DITTO_ERR_NOT_FOUND);
    assert_status(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL), DITTO_ERR_NOT_FOUND);
    register_as("count", count_call, &calls);
    assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
    end(c, strategy);
}

static ditto_status add_to(ditto_replica *self, void *user)
{
    atomic_fetch_add((_Atomic int *)user, 1);
    return DITTO_OK;
}

/* A function keeps its data and its name when the name is taken back. Afterwards nothing is left of it. */
static void rule_12_3_names_that_were_taken_back(void **state)
{
    enum { NAMES = 20000 };
    static _Atomic int executed[NAMES];
    ditto_strategy *strategy = make_workers(2, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1];
    long before = 0;
    for (int i = 0; i < NAMES; i++) {
        /* Names of all lengths, and the same name with other data. */
        snprintf(name, sizeof name, "%.*s-%d", i % 50,
                 "a name that is longer than a cache line of its slot is", i % 3 == 0 ? i : 0);
        register_as(name, add_to, &executed[i]);
        assert_ok(ditto_coordinator_schedule(c, name, NULL, NULL, NULL));
        assert_ok(ditto_function_unregister(name));
        if (i == NAMES / 10)
            before = resident_kib();
    }
    if (!SANITIZED)
        assert_true(resident_kib() - before < 512);
    assert_ok(ditto_coordinator_join(c));
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(atomic_load(&executed[i]), 1);
    register_as(name, fail_always, NULL);
    assert_ok(ditto_coordinator_schedule(c, name, NULL, NULL, NULL));
    assert_ok(ditto_function_unregister(name));
    assert_status(ditto_coordinator_join(c), DITTO_ERR_USER);
    assert_message(name);
    end(c, strategy);
}

static void rule_12_4_positive_statuses_are_returned_with_results(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    register_as("end_of_input", end_of_input, NULL);
    ditto_remote *remote = schedule(c, "end_of_input", NULL);
    ditto_value *value;
    double number;
    int done;
    assert_status(ditto_remote_fetch(remote, &value), DITTO_END_OF_INPUT);
    assert_ok(ditto_value_f64(value, &number));
    assert_true(number == 3);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_remote_test(remote, &done));
    assert_true(done);
    assert_ok(ditto_coordinator_join(c)); /* it is no error, and the handle has told it */
    assert_int_equal(stats_of(c).positive, 1);
    assert_ok(ditto_coordinator_destroy(c));
    /* The result stays, and is refused when the strategy is gone. */
    assert_status(ditto_remote_fetch(remote, &value), DITTO_END_OF_INPUT);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
    assert_status(ditto_remote_fetch(remote, &value), DITTO_ERR_CONTEXT);
    assert_ok(ditto_remote_destroy(remote));
}

/* Without handles, join is what says that functions have found no row. */
static void rule_12_4_join_returns_positive_statuses(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    struct caller other = { .c = c, .name = "count", .times = 1 };
    register_as("end_of_input", end_of_input, NULL);
    register_as("count", count_call, &calls);
    assert_ok(ditto_coordinator_join(c));
    begin_caller(&other);
    for (int i = 0; i < 10; i++)
        assert_ok(ditto_coordinator_schedule(c, "end_of_input", NULL, NULL, NULL));
    assert_status(ditto_coordinator_join(c), DITTO_END_OF_INPUT);
    assert_ok(ditto_coordinator_join(c)); /* once */
    end_caller(&other);
    assert_int_equal(other.joined, DITTO_END_OF_INPUT);
    assert_ok(other.joined_again);
    assert_int_equal(stats_of(c).positive, 10);
    assert_int_equal(stats_of(c).functions, 11);
    assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
    assert_ok(ditto_coordinator_join(c));
    end(c, strategy);
}

static void rule_12_5_the_first_error_is_returned_once(void **state)
{
    register_as("fail", fail_always, NULL);
    register_as("count", count_call, &calls);
    register_as("wait", wait_for_gate, NULL);
    for (uint32_t workers = 1; workers <= 3; workers++) {
        ditto_strategy *strategy = make_workers(workers, 1, NULL);
        ditto_coordinator *c = make_coordinator(strategy, 0);
        ditto_value *value;
        atomic_store(&calls, 0);
        close_gate();
        /* The gate keeps the worker busy until everything is in the queue. */
        ditto_remote *busy = schedule(c, "wait", NULL), *failed, *cancelled;
        for (uint32_t i = 1; i < workers; i++)
            assert_ok(ditto_coordinator_schedule(c, "wait", NULL, NULL, NULL));
        failed = schedule(c, "fail", NULL);
        cancelled = schedule(c, "count", NULL);
        for (int i = 0; workers == 1 && i < 10; i++)
            assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
        await_at_gate((int)workers); /* a function that has not begun would be cancelled */
        atomic_store(&gate_is_open, 1);
        ditto_status status = ditto_coordinator_join(c);
        assert_int_equal(status, DITTO_ERR_USER);
        assert_message("\"fail\" on worker");
        assert_message("this one fails");
        assert_int_equal(ditto_last_error()->user_code, 7);
        assert_string_equal(ditto_last_error()->function, "ditto_coordinator_join");
        assert_ok(ditto_coordinator_join(c)); /* once */
        assert_ok(ditto_remote_fetch(busy, &value));
        assert_null(value);
        assert_status(ditto_remote_fetch(failed, &value), DITTO_ERR_USER);
        if (workers == 1) { /* with several, another worker may have executed it before the failure */
            assert_status(ditto_remote_fetch(cancelled, &value), DITTO_ERR_CANCELLED);
            assert_int_equal(atomic_load(&calls), 0);
        }
        /* The coordinator works as before. */
        atomic_store(&calls, 0);
        assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
        assert_ok(ditto_coordinator_join(c));
        assert_int_equal(atomic_load(&calls), 1);
        assert_ok(ditto_remote_destroy(busy));
        assert_ok(ditto_remote_destroy(failed));
        assert_ok(ditto_remote_destroy(cancelled));
        end(c, strategy);
    }
}

static void rule_12_5_schedule_and_done_return_it_too(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    ditto_value *value;
    int done;
    register_as("fail", fail_always, NULL);
    register_as("count", count_call, &calls);
    ditto_remote *failed = schedule(c, "fail", NULL);
    assert_status(ditto_remote_fetch(failed, &value), DITTO_ERR_USER);
    assert_status(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL), DITTO_ERR_USER);
    assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_remote_destroy(failed));
    failed = schedule(c, "fail", NULL);
    assert_status(ditto_remote_fetch(failed, &value), DITTO_ERR_USER);
    assert_status(ditto_coordinator_done(c, &done), DITTO_ERR_USER);
    assert_ok(ditto_coordinator_done(c, &done));
    assert_true(done);
    assert_ok(ditto_remote_destroy(failed));
    end(c, strategy);
}

/* An error belongs to the threads that have scheduled functions which may be affected. */
static void rule_12_5_an_error_is_not_that_of_another_thread(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    ditto_value *value;
    struct caller other = { .c = c, .name = "count", .times = 3 };
    register_as("fail", fail_always, NULL);
    register_as("count", count_call, &calls);
    ditto_remote *failed = schedule(c, "fail", NULL);
    assert_status(ditto_remote_fetch(failed, &value), DITTO_ERR_USER);
    atomic_store(&calls, 0);
    begin_caller(&other);
    assert_ok(other.scheduled);
    assert_status(ditto_coordinator_join(c), DITTO_ERR_USER);
    assert_message("this one fails");
    end_caller(&other);
    assert_ok(other.joined);
    assert_int_equal(atomic_load(&calls), 3);
    assert_int_equal(stats_of(c).cancelled, 0);
    assert_ok(ditto_remote_destroy(failed));
    end(c, strategy);
}

/* Each thread is told once that functions were cancelled, and how many. */
static void rule_12_5_each_thread_is_told(void **state)
{
    for (int joins_first = 0; joins_first <= 1; joins_first++) {
        ditto_strategy *strategy = make_workers(1, 1, NULL);
        ditto_coordinator *c = make_coordinator(strategy, 0);
        struct caller two = { .c = c, .name = "count", .times = 2 },
                      three = { .c = c, .name = "count", .times = 3 }, none = { .c = c };
        register_as("wait", wait_for_gate, NULL);
        register_as("fail", fail_always, NULL);
        register_as("count", count_call, &calls);
        atomic_store(&calls, 0);
        close_gate();
        assert_ok(ditto_coordinator_schedule(c, "wait", NULL, NULL, NULL));
        assert_ok(ditto_coordinator_schedule(c, "fail", NULL, NULL, NULL));
        begin_caller(&two);
        begin_caller(&three);
        begin_caller(&none);
        atomic_store(&gate_is_open, 1);
        if (joins_first)
            end_caller(&three);
        assert_status(ditto_coordinator_join(c), DITTO_ERR_USER);
        assert_message("5 functions were cancelled because this one failed: \"fail\" on worker 0");
        assert_int_equal(atomic_load(&calls), 0);
        assert_int_equal(stats_of(c).cancelled, 5);
        /* A thread that has nothing in the queue is told only what no other one has been told. */
        end_caller(&none);
        assert_ok(none.joined);
        assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
        end_caller(&two);
        if (!joins_first)
            end_caller(&three);
        for (int i = 0; i < 2; i++) {
            const struct caller *told = i == 0 ? &two : &three;
            assert_int_equal(told->joined, DITTO_ERR_USER);
            assert_non_null(strstr(told->error.message, "5 functions were cancelled"));
            assert_int_equal(told->error.user_code, 7);
            assert_string_equal(told->error.function, "ditto_coordinator_join");
            assert_ok(told->joined_again);
        }
        assert_ok(ditto_coordinator_join(c));
        assert_int_equal(atomic_load(&calls), 1);
        end(c, strategy);
    }
}

/* The error of a thread that has ended, or that only schedules, is returned by a join on another one. */
static void rule_12_5_a_join_returns_what_nobody_was_told(void **state)
{
    ditto_strategy *strategy = make_workers(1, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    struct caller fails = { .c = c, .name = "fail", .times = 1 };
    int done;
    register_as("fail", fail_always, NULL);
    register_as("count", count_call, &calls);
    begin_caller(&fails);
    while (stats_of(c).ended != 1)
        sleep_ms(1);
    assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
    assert_status(ditto_coordinator_join(c), DITTO_ERR_USER);
    assert_ok(ditto_coordinator_join(c));
    end_caller(&fails);
    assert_int_equal(fails.joined, DITTO_ERR_USER);
    atomic_store(&fails.step, 0);
    begin_caller(&fails);
    while (stats_of(c).ended != 3)
        sleep_ms(1);
    assert_status(ditto_coordinator_done(c, &done), DITTO_ERR_USER);
    end_caller(&fails);
    assert_int_equal(fails.joined, DITTO_ERR_USER);
    end(c, strategy);
}

/* Functions of more coordinators than a thread keeps in mind. */
static void rule_12_5_many_coordinators(void **state)
{
    enum { MANY = 12 };
    ditto_strategy *strategy[MANY];
    ditto_coordinator *c[MANY];
    register_as("fail", fail_always, NULL);
    for (int i = 0; i < MANY; i++) {
        strategy[i] = make_workers(1, 1, NULL);
        c[i] = make_coordinator(strategy[i], 0);
        assert_ok(ditto_coordinator_schedule(c[i], "fail", NULL, NULL, NULL));
    }
    for (int i = 0; i < MANY; i++) {
        assert_status(ditto_coordinator_join(c[i]), DITTO_ERR_USER);
        assert_ok(ditto_coordinator_join(c[i]));
        end(c[i], strategy[i]);
    }
}

static void rule_12_6_cancelling(void **state)
{
    ditto_strategy *strategy = make_workers(1, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    ditto_value *value;
    register_as("wait", wait_for_gate, NULL);
    register_as("count", count_call, &calls);
    close_gate();
    atomic_store(&calls, 0);
    ditto_remote *running = schedule(c, "wait", NULL), *queued = schedule(c, "count", NULL),
                 *last = schedule(c, "count", NULL);
    await_at_gate(1);
    assert_status(ditto_remote_cancel(running), DITTO_ERR_BUSY);
    assert_ok(ditto_remote_cancel(queued));
    assert_ok(ditto_remote_cancel(queued));
    assert_status(ditto_remote_fetch(queued, &value), DITTO_ERR_CANCELLED);
    atomic_store(&gate_is_open, 1);
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_remote_fetch(last, &value));
    assert_int_equal(atomic_load(&calls), 1);
    assert_status(ditto_remote_cancel(last), DITTO_ERR_BUSY);
    assert_ok(ditto_remote_destroy(running));
    assert_ok(ditto_remote_destroy(queued));
    assert_ok(ditto_remote_destroy(last));
    end(c, strategy);
}

static void *open_gate_later(void *unused)
{
    sleep_ms(50);
    atomic_store(&gate_is_open, 1);
    return NULL;
}

static void rule_12_6_destroy_cancels_the_queue(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 64);
    ditto_value *value;
    pthread_t opener;
    ditto_remote *running[2], *queued[20];
    register_as("wait", wait_for_gate, NULL);
    close_gate();
    for (int i = 0; i < 2; i++)
        running[i] = schedule(c, "wait", NULL);
    for (int i = 0; i < 20; i++)
        queued[i] = schedule(c, "wait", NULL);
    await_at_gate(2);
    assert_int_equal(pthread_create(&opener, NULL, open_gate_later, NULL), 0);
    assert_ok(ditto_coordinator_destroy(c));
    pthread_join(opener, NULL);
    for (int i = 0; i < 2; i++) {
        assert_ok(ditto_remote_fetch(running[i], &value));
        assert_ok(ditto_remote_destroy(running[i]));
    }
    for (int i = 0; i < 20; i++) {
        assert_status(ditto_remote_fetch(queued[i], &value), DITTO_ERR_CANCELLED);
        assert_ok(ditto_remote_destroy(queued[i]));
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

static void *fetch_late(void *remote)
{
    ditto_value *value = NULL;
    double number = 0;
    ditto_status status = ditto_remote_fetch(remote, &value);
    if (status == DITTO_OK && ditto_value_f64(value, &number) == DITTO_OK &&
        ditto_value_destroy(value) == DITTO_OK && number == 5)
        return NULL;
    return "failed";
}

static ditto_status five_behind_the_gate(ditto_replica *self, void *user)
{
    DITTO_TRY(wait_for_gate(self, user));
    return ditto_return_f64(self, NULL, 5);
}

/* A fetch on another thread gets the result of a function that destroy waits for. */
static void rule_12_6_fetch_during_destroy(void **state)
{
    for (int i = 0; i < test_trials(20); i++) {
        ditto_strategy *strategy = make_workers(1, 1, NULL);
        ditto_coordinator *c = make_coordinator(strategy, 0);
        pthread_t opener, fetcher;
        void *failed;
        register_as("five", five_behind_the_gate, NULL);
        atomic_store(&gate_is_open, 0);
        ditto_remote *remote = schedule(c, "five", NULL);
        ditto_worker_info info = DITTO_WORKER_INFO_INIT;
        while (!info.is_busy)
            assert_ok(ditto_coordinator_worker_info(c, 0, &info));
        assert_int_equal(pthread_create(&opener, NULL, open_gate_later, NULL), 0);
        assert_int_equal(pthread_create(&fetcher, NULL, fetch_late, remote), 0);
        ditto_status status;
        while ((status = ditto_coordinator_destroy(c)) == DITTO_ERR_BUSY) /* the fetch came first */
            sleep_ms(1);
        assert_ok(status);
        pthread_join(opener, NULL);
        pthread_join(fetcher, &failed);
        assert_null(failed);
        assert_ok(ditto_remote_destroy(remote));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- workers that are lost -- */

static _Atomic int begun, stuck;

/* The first call waits for the gate, and the later ones do not. */
static ditto_status stick_once(ditto_replica *self, void *user)
{
    if (atomic_fetch_add(&begun, 1) == 0)
        while (!atomic_load(&gate_is_open))
            sleep_ms(1);
    atomic_fetch_add(&stuck, 1);
    return ditto_return_f64(self, NULL, ditto_worker(self));
}

static void rule_12_7_a_late_function_is_executed_by_another_worker(void **state)
{
    ditto_strategy *strategy = make_workers(2, 1,
                                            &OPTIONS(strategy, .run_timeout_ms = SANITIZED ? 1000 : 200));
    ditto_coordinator *c = make_coordinator(strategy, 0);
    register_as("stick_once", stick_once, NULL);
    register_as("count", count_call, &calls);
    atomic_store(&gate_is_open, 0);
    atomic_store(&begun, 0);
    atomic_store(&stuck, 0);
    atomic_store(&calls, 0);
    ditto_remote *remote = schedule(c, "stick_once", NULL);
    double worker = number_of(remote);
    assert_int_equal(atomic_load(&begun), 2);
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    assert_ok(ditto_coordinator_worker_info(c, (uint32_t)worker, &info));
    assert_false(info.is_retired);
    assert_ok(ditto_coordinator_worker_info(c, 1 - (uint32_t)worker, &info));
    assert_true(info.is_retired);
    for (int i = 0; i < 10; i++) /* one worker is left */
        assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
    assert_ok(ditto_coordinator_join(c));
    assert_int_equal(atomic_load(&calls), 10);
    /* The late function returns after all, and its result is discarded. */
    atomic_store(&gate_is_open, 1);
    while (atomic_load(&stuck) < 2)
        sleep_ms(1);
    assert_true(number_of(remote) == worker);
    assert_ok(ditto_remote_destroy(remote));
    do { /* until its thread has ended */
        sleep_ms(1);
        assert_ok(ditto_coordinator_worker_info(c, 1 - (uint32_t)worker, &info));
    } while (info.is_busy);
    end(c, strategy);
}

/* In a child process, because late functions keep their memory until the process ends. */
static int retire_all(void *unused)
{
    ditto_coordinator *c;
    ditto_strategy *strategy;
    ditto_remote *late;
    ditto_value *value;
    REQUIRE(
        ditto_strategy_create(DITTO_PARAMETER_SERVER,
                              &OPTIONS(strategy, .run_timeout_ms = SANITIZED ? 500 : 100, .num_replicas = 2),
                              &strategy) == DITTO_OK);
    REQUIRE(ditto_coordinator_create(strategy, NULL, &c) == DITTO_OK);
    REQUIRE(ditto_function_register("wait", wait_for_gate, NULL) == DITTO_OK);
    REQUIRE(ditto_function_register("count", count_call, &calls) == DITTO_OK);
    atomic_store(&gate_is_open, 0);
    REQUIRE(ditto_coordinator_schedule(c, "wait", NULL, NULL, &late) == DITTO_OK);
    REQUIRE(ditto_remote_fetch(late, &value) == DITTO_ERR_TIMED_OUT);
    REQUIRE(strstr(ditto_last_error()->message, "2 times") != NULL);
    REQUIRE(ditto_coordinator_join(c) == DITTO_ERR_TIMED_OUT);
    /* No worker is left. */
    REQUIRE(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL) == DITTO_ERR_POISONED);
    REQUIRE(strstr(ditto_last_error()->message, "all 2 workers") != NULL);
    REQUIRE(ditto_coordinator_join(c) == DITTO_ERR_POISONED);
    REQUIRE(ditto_coordinator_destroy(c) == DITTO_ERR_POISONED);
    REQUIRE(strstr(ditto_last_error()->message, "2 workers are") != NULL);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    REQUIRE(ditto_remote_destroy(late) == DITTO_OK);
    atomic_store(&gate_is_open, 1);
    sleep_ms(100); /* the late threads return, and use what was left to them */
    return 0;
}

static void rule_12_7_after_max_attempts_it_fails(void **state)
{
    assert_int_equal(in_child(retire_all, NULL, 60), 0);
}

struct late_model {
    ditto_variable *variable;
    ditto_optimizer *optimizer;
    ditto_per_worker *values;
    _Atomic int has_ended;
};

/* Waits for the gate, and then uses objects that the program has destroyed meanwhile. */
static ditto_status use_late(ditto_replica *self, void *user)
{
    struct late_model *m = user;
    double gradient = 1;
    ditto_tensor t = { .data = &gradient, .dtype = DITTO_F64 }, own, x;
    while (!atomic_load(&gate_is_open))
        sleep_ms(1);
    ditto_status status = ditto_argument(self, "x", &x);
    if (status == DITTO_OK)
        status = ditto_worker_value(self, m->values, &own);
    if (status == DITTO_OK && ditto_replica_id(self) == 0)
        *(double *)own.data += *(double *)x.data;
    if (ditto_apply(self, m->optimizer, &t, NULL) == DITTO_OK ||
        ditto_pull(self, m->variable, NULL, &gradient) == DITTO_OK)
        sleep_ms(1);
    atomic_fetch_add(&m->has_ended, 1);
    return DITTO_OK;
}

static int destroy_before_late(void *replicas)
{
    static struct late_model m;
    ditto_coordinator *c, *second;
    ditto_strategy *strategy;
    ditto_remote *remote;
    ditto_value *value, *arguments;
    double number = 0;
    ditto_tensor zero = { .dtype = DITTO_F64 };
    ditto_strategy_options options = OPTIONS(strategy, .run_timeout_ms = SANITIZED ? 500 : 100,
                                             .replicas_per_worker = *(uint32_t *)replicas);
    options.num_replicas = options.replicas_per_worker;
    REQUIRE(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy) == DITTO_OK);
    REQUIRE(ditto_variable_create(strategy, &zero, NULL, &m.variable) == DITTO_OK);
    REQUIRE(ditto_optimizer_create(&m.variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADD),
                                   &m.optimizer) == DITTO_OK);
    REQUIRE(ditto_coordinator_create(strategy, NULL, &c) == DITTO_OK);
    REQUIRE(ditto_coordinator_values_from_function(c, number_of_worker, &number, &m.values) == DITTO_OK);
    REQUIRE(ditto_function_register("use_late", use_late, &m) == DITTO_OK);
    arguments = argument_x(strategy, &number);
    atomic_store(&gate_is_open, 0);
    REQUIRE(ditto_coordinator_schedule(c, "use_late", arguments, NULL, &remote) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(m.variable) == DITTO_ERR_BUSY);
    REQUIRE(ditto_optimizer_destroy(m.optimizer) == DITTO_ERR_BUSY);
    ditto_status fetched = ditto_remote_fetch(remote, &value);
    REQUIRE(fetched == DITTO_ERR_TIMED_OUT);
    REQUIRE(ditto_optimizer_destroy(m.optimizer) == DITTO_ERR_BUSY); /* the late function still runs */
    REQUIRE(ditto_coordinator_destroy(c) == DITTO_ERR_POISONED);
    REQUIRE(ditto_coordinator_create(strategy, NULL, &second) == DITTO_ERR_POISONED);
    REQUIRE(ditto_remote_destroy(remote) == DITTO_OK);
    REQUIRE(ditto_value_destroy(arguments) == DITTO_OK);
    REQUIRE(ditto_optimizer_destroy(m.optimizer) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(m.variable) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(strategy) == DITTO_ERR_POISONED);
    atomic_store(&gate_is_open, 1);
    while (atomic_load(&m.has_ended) < (int)options.num_replicas)
        sleep_ms(1);
    return 0;
}

static void rule_12_7_a_late_function_keeps_what_it_uses(void **state)
{
    for (uint32_t replicas = 1; replicas <= 2; replicas++)
        assert_int_equal(in_child(destroy_before_late, &replicas, 100), 0);
}

/* A function that never ends is scheduled, and the coordinator is destroyed at once. */
static int destroy_at_once(void *unused)
{
    ditto_coordinator *c;
    ditto_strategy *strategy;
    REQUIRE(
        ditto_strategy_create(DITTO_PARAMETER_SERVER,
                              &OPTIONS(strategy, .run_timeout_ms = SANITIZED ? 500 : 100, .num_replicas = 1),
                              &strategy) == DITTO_OK);
    REQUIRE(ditto_coordinator_create(strategy, NULL, &c) == DITTO_OK);
    REQUIRE(ditto_function_register("wait", wait_for_gate, NULL) == DITTO_OK);
    atomic_store(&gate_is_open, 0);
    REQUIRE(ditto_coordinator_schedule(c, "wait", NULL, NULL, NULL) == DITTO_OK);
    ditto_status status = ditto_coordinator_destroy(c); /* a worker may have begun it, or not */
    REQUIRE(status == DITTO_OK || status == DITTO_ERR_POISONED);
    REQUIRE(ditto_strategy_destroy(strategy) == status);
    return 0;
}

static void rule_12_7_destroy_does_not_wait_for_ever(void **state)
{
    for (int i = 0; i < 5; i++)
        assert_int_equal(in_child(destroy_at_once, NULL, 60), 0);
}

static ditto_status end_about_the_limit(ditto_replica *self, void *user)
{
    ditto_tensor x;
    DITTO_TRY(ditto_argument(self, "x", &x));
    uint64_t random = atomic_fetch_add((_Atomic uint64_t *)user, 1);
    sleep_ms(18 + (long)(test_random(&random) % 5));
    return ditto_return_f64(self, NULL, *(const double *)x.data);
}

/* Functions that end just when they become late are finished once, with the right result, or fail. */
static int end_at_limit(void *unused)
{
    static _Atomic uint64_t random = 1;
    for (int i = 0; i < test_trials(30); i++) {
        ditto_coordinator *c;
        ditto_strategy *strategy;
        ditto_remote *remote;
        ditto_value *value;
        double x = i, found;
        REQUIRE(ditto_strategy_create(DITTO_PARAMETER_SERVER,
                                      &OPTIONS(strategy, .run_timeout_ms = 20, .num_replicas = 3),
                                      &strategy) == DITTO_OK);
        REQUIRE(ditto_coordinator_create(strategy, NULL, &c) == DITTO_OK);
        REQUIRE(ditto_function_register("about", end_about_the_limit, &random) == DITTO_OK);
        ditto_value *arguments = argument_x(strategy, &x);
        REQUIRE(ditto_coordinator_schedule(c, "about", arguments, NULL, &remote) == DITTO_OK);
        ditto_status status = ditto_remote_fetch(remote, &value);
        REQUIRE(status == DITTO_OK || status == DITTO_ERR_TIMED_OUT);
        if (status == DITTO_OK) {
            REQUIRE(ditto_value_f64(value, &found) == DITTO_OK && found == x);
            REQUIRE(ditto_value_destroy(value) == DITTO_OK);
        }
        REQUIRE(ditto_value_destroy(arguments) == DITTO_OK);
        REQUIRE(ditto_remote_destroy(remote) == DITTO_OK);
        status = ditto_coordinator_destroy(c);
        REQUIRE(status == DITTO_OK || status == DITTO_ERR_POISONED);
        status = ditto_strategy_destroy(strategy);
        REQUIRE(status == DITTO_OK || status == DITTO_ERR_POISONED);
    }
    return 0;
}

static void rule_12_7_functions_that_end_at_the_limit(void **state)
{
    assert_int_equal(in_child(end_at_limit, NULL, 100), 0);
}

/* -- inside functions -- */

struct inside {
    ditto_coordinator *coordinator;
    ditto_strategy *strategy;
    ditto_remote *remote;
    struct report report;
};

static ditto_status call_from_inside(ditto_replica *self, void *user)
{
    struct inside *in = user;
    ditto_value *value;
    ditto_coordinator *made;
    int done;
    EXPECT(&in->report, ditto_worker(self) < 2);
    EXPECT(&in->report,
           ditto_coordinator_schedule(in->coordinator, "count", NULL, NULL, NULL) == DITTO_ERR_CONTEXT);
    EXPECT(&in->report, ditto_coordinator_join(in->coordinator) == DITTO_ERR_CONTEXT);
    EXPECT(&in->report, ditto_coordinator_done(in->coordinator, &done) == DITTO_ERR_CONTEXT);
    EXPECT(&in->report, ditto_coordinator_destroy(in->coordinator) == DITTO_ERR_CONTEXT);
    EXPECT(&in->report, ditto_coordinator_create(in->strategy, NULL, &made) == DITTO_ERR_CONTEXT);
    EXPECT(&in->report, ditto_remote_fetch(in->remote, &value) == DITTO_ERR_CONTEXT);
    return DITTO_OK;
}

static ditto_status outside(ditto_replica *self, void *user)
{
    EXPECT((struct report *)user, ditto_worker(self) == UINT32_MAX);
    return DITTO_OK;
}

static void rule_12_8_calls_from_inside(void **state)
{
    static struct inside in;
    static struct report report;
    in.strategy = make_workers(2, 1, NULL);
    in.coordinator = make_coordinator(in.strategy, 0);
    register_as("count", count_call, &calls);
    register_as("inside", call_from_inside, &in);
    in.remote = schedule(in.coordinator, "count", NULL);
    assert_ok(ditto_coordinator_schedule(in.coordinator, "inside", NULL, NULL, NULL));
    ditto_status status = ditto_coordinator_join(in.coordinator);
    if (in.report.claimed)
        fail_msg("%s", in.report.first_failure);
    assert_ok(status);
    assert_ok(ditto_remote_destroy(in.remote));
    run_once(2, NULL, outside, &report, &report);
    end(in.coordinator, in.strategy);
}

/* -- per-worker values and datasets -- */

/* Adds 1000 to the worker's value, and returns what it was. */
static ditto_status add_to_own(ditto_replica *self, void *user)
{
    ditto_tensor own;
    DITTO_TRY(ditto_worker_value(self, *(ditto_per_worker **)user, &own));
    double *number = own.data, before = *number;
    *number += 1000;
    return ditto_return_f64(self, NULL, before);
}

static void rule_12_9_values_of_workers(void **state)
{
    static ditto_per_worker *values;
    ditto_strategy *strategy = make_workers(3, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    double number;
    register_as("add_to_own", add_to_own, &values);
    assert_ok(ditto_coordinator_values_from_function(c, number_of_worker, &number, &values));
    double times[3] = { 0 };
    for (int i = 0; i < 30; i++) {
        ditto_remote *remote = schedule(c, "add_to_own", NULL);
        double before = number_of(remote);
        uint32_t worker = (uint32_t)before % 100;
        assert_true(worker < 3);
        assert_true(before == 300 + worker + 1000 * times[worker]++);
        assert_ok(ditto_remote_destroy(remote));
    }
    end(c, strategy);
}

/* Rows 1000 w, 1000 w + 1, ... of worker w, two in each batch. */
static ditto_status rows_of_worker(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    ditto_dataset *rows;
    int64_t first = 1000 * (int64_t)context->pipeline;
    if (context->num_pipelines != 3 || context->num_replicas != 3)
        return DITTO_ERR_USER;
    DITTO_TRY(ditto_dataset_from_range(first, first + 1000, 1, &rows));
    ditto_status status = ditto_dataset_batch(rows, 2, 0, out);
    (void)!ditto_dataset_destroy(rows);
    return status;
}

static ditto_per_worker *datasets;

/* Returns the first row of the worker's next batch. */
static ditto_status next_row(ditto_replica *self, void *user)
{
    ditto_iterator *iterator;
    ditto_batch batch;
    ditto_tensor none;
    if (ditto_worker_value(self, datasets, &none) != DITTO_ERR_INVALID)
        return DITTO_ERR_CORRUPT;
    DITTO_TRY(ditto_worker_iterator(self, datasets, &iterator));
    DITTO_TRY(ditto_next(self, iterator, &batch));
    return ditto_return_f64(self, NULL, (double)*(const int64_t *)batch.component[0].data);
}

static void rule_12_9_datasets_of_workers(void **state)
{
    ditto_strategy *strategy = make_workers(3, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    register_as("next_row", next_row, NULL);
    assert_status(ditto_coordinator_datasets_from_function(c, rows_of_worker, NULL,
                                                           &OPTIONS(input, .num_pipelines = 3), &datasets),
                  DITTO_ERR_INVALID);
    assert_ok(ditto_coordinator_datasets_from_function(c, rows_of_worker, NULL, NULL, &datasets));
    double next[3] = { 0, 1000, 2000 };
    for (int i = 0; i < 60; i++) {
        ditto_remote *remote = schedule(c, "next_row", NULL);
        double row = number_of(remote);
        uint32_t worker = (uint32_t)row / 1000;
        assert_true(worker < 3 && row == next[worker]);
        next[worker] += 2;
        assert_ok(ditto_remote_destroy(remote));
    }
    end(c, strategy);
}

enum { RANDOM_WORKERS = 3, RANDOM_REPLICAS = 2, RANDOM_ROWS = 8 };

/* What a replica has drawn: a number of its stream, the first rows of its worker's dataset, and the numbers
 * that its maps drew for them, without and with a seed. */
struct drawn {
    double number;
    double row[RANDOM_ROWS][3];
};

struct drawing {
    struct drawn of[RANDOM_WORKERS][RANDOM_REPLICAS];
    double rows[100]; /* 0 to 99 */
    uint64_t shuffle_seed, map_seed;
    ditto_per_worker *iterators;
};

/* Appends a random number to a row. */
static ditto_status append_number(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                  void *user)
{
    size_t length = in[0].rank == 0 ? 1 : (size_t)in[0].shape[0];
    double number, *to = out[0].data;
    memcpy(to, in[0].data, length * sizeof *to);
    ditto_random_f64(random, &number, 1);
    to[length] = number;
    return DITTO_OK;
}

static ditto_status shuffled_rows(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    struct drawing *d = user;
    ditto_dataset *made[4];
    ditto_tensor array = { .data = d->rows, .dtype = DITTO_F64, .rank = 1, .shape = { 100 } },
                 two = { .dtype = DITTO_F64, .rank = 1, .shape = { 2 } },
                 three = { .dtype = DITTO_F64, .rank = 1, .shape = { 3 } };
    DITTO_TRY(ditto_dataset_from_arrays(&array, 1, &made[0]));
    DITTO_TRY(ditto_dataset_shuffle(made[0], &OPTIONS(shuffle, .seed = d->shuffle_seed), &made[1]));
    DITTO_TRY(ditto_dataset_map(made[1], append_number, NULL, &OPTIONS(map, .row = &two, .num_components = 1),
                                &made[2]));
    DITTO_TRY(ditto_dataset_map(made[2], append_number, NULL,
                                &OPTIONS(map, .row = &three, .num_components = 1, .seed = d->map_seed),
                                &made[3]));
    DITTO_TRY(ditto_dataset_batch(made[3], RANDOM_REPLICAS * RANDOM_ROWS, 0, out));
    for (int i = 0; i < 4; i++)
        DITTO_TRY(ditto_dataset_destroy(made[i]));
    return DITTO_OK;
}

static ditto_status draw(ditto_replica *self, struct drawing *d, uint32_t worker, ditto_iterator *iterator)
{
    ditto_random random;
    ditto_batch batch;
    struct drawn *drawn = &d->of[worker][ditto_replica_id(self)];
    DITTO_TRY(ditto_random_of(self, 42, &random));
    ditto_random_f64(&random, &drawn->number, 1);
    DITTO_TRY(ditto_next(self, iterator, &batch));
    memcpy(drawn->row, batch.component[0].data, sizeof drawn->row);
    return DITTO_OK;
}

/* Waits for the other workers, so that each worker executes it once. */
static ditto_status draw_on_worker(ditto_replica *self, void *user)
{
    struct drawing *d = user;
    ditto_iterator *iterator;
    if (ditto_replica_id(self) == 0)
        atomic_fetch_add(&at_gate, 1);
    await_at_gate(RANDOM_WORKERS);
    DITTO_TRY(ditto_worker_iterator(self, d->iterators, &iterator));
    return draw(self, d, ditto_worker(self), iterator);
}

static void draw_on_workers(struct drawing *d)
{
    ditto_strategy *strategy = make_workers(RANDOM_WORKERS, RANDOM_REPLICAS, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    register_as("draw", draw_on_worker, d);
    assert_ok(ditto_coordinator_datasets_from_function(c, shuffled_rows, d, NULL, &d->iterators));
    close_gate();
    for (int i = 0; i < RANDOM_WORKERS; i++)
        assert_ok(ditto_coordinator_schedule(c, "draw", NULL, NULL, NULL));
    assert_ok(ditto_coordinator_join(c));
    assert_ok(ditto_function_unregister("draw"));
    end(c, strategy);
}

struct mirrored_drawing {
    struct drawing *drawing;
    ditto_iterator *iterator;
};

static ditto_status draw_on_replica(ditto_replica *self, void *user)
{
    struct mirrored_drawing *m = user;
    return draw(self, m->drawing, 0, m->iterator);
}

static void rule_12_9_random_numbers_and_orders_of_workers(void **state)
{
    struct drawing first = { .map_seed = 5 };
    for (int i = 0; i < 100; i++)
        first.rows[i] = i;
    struct drawing again = first, seeded = first, mirrored = first;
    seeded.shuffle_seed = 7;
    draw_on_workers(&first);
    draw_on_workers(&again);
    draw_on_workers(&seeded);
    assert_memory_equal(first.of, again.of, sizeof first.of);
    for (int w = 1; w < RANDOM_WORKERS; w++) {
        int equal_rows = 0, equal_numbers = 0, pairs = 0;
        for (int r = 0; r < RANDOM_REPLICAS; r++)
            for (int i = 0; i < RANDOM_ROWS; i++, pairs++) {
                const double *row = first.of[w][r].row[i], *other = first.of[w - 1][r].row[i];
                equal_rows += row[0] == other[0];
                equal_numbers += row[1] == other[1];
                assert_true(row[2] == other[2]); /* that of the map with a seed */
                assert_true(seeded.of[w][r].row[i][0] == seeded.of[0][r].row[i][0]);
            }
        assert_true(equal_rows < pairs / 2);
        assert_int_equal(equal_numbers, 0);
    }
    for (int k = 0; k < RANDOM_WORKERS * RANDOM_REPLICAS; k++)
        for (int l = 0; l < k; l++)
            assert_true(first.of[k / RANDOM_REPLICAS][k % RANDOM_REPLICAS].number !=
                        first.of[l / RANDOM_REPLICAS][l % RANDOM_REPLICAS].number);
    /* Worker 0 has those of a mirrored strategy. */
    ditto_strategy *strategy = make_strategy(RANDOM_REPLICAS, NULL);
    struct mirrored_drawing m = { .drawing = &mirrored };
    assert_ok(ditto_strategy_iterate_from_function(strategy, shuffled_rows, &mirrored, NULL, &m.iterator));
    assert_ok(ditto_strategy_run(strategy, draw_on_replica, &m));
    assert_memory_equal(first.of[0], mirrored.of[0], sizeof first.of[0]);
    assert_ok(ditto_iterator_destroy(m.iterator));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- several threads -- */

static void *schedule_many(void *coordinator)
{
    for (int i = 0; i < test_trials(2000); i++) {
        ditto_remote *remote = NULL;
        if (ditto_coordinator_schedule(coordinator, "count", NULL, NULL, i % 3 == 0 ? &remote : NULL) !=
                DITTO_OK ||
            ditto_remote_destroy(remote) != DITTO_OK ||
            (i % 500 == 0 && ditto_coordinator_join(coordinator) != DITTO_OK))
            return "failed";
    }
    return NULL;
}

static void rule_12_3_several_threads_schedule(void **state)
{
    ditto_strategy *strategy = make_workers(3, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 8);
    pthread_t threads[3];
    register_as("count", count_call, &calls);
    atomic_store(&calls, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, schedule_many, c), 0);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_ok(ditto_coordinator_join(c));
    assert_int_equal(atomic_load(&calls), 3 * test_trials(2000));
    end(c, strategy);
}

static int use_in_child(void *argument)
{
    ditto_coordinator *c = argument;
    int done;
    REQUIRE(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL) == DITTO_ERR_FORKED);
    REQUIRE(ditto_coordinator_done(c, &done) == DITTO_ERR_FORKED);
    REQUIRE(ditto_coordinator_destroy(c) == DITTO_OK);
    return 0;
}

static void a_child_process_cannot_use_it(void **state)
{
    if (SANITIZED)
        skip();
    ditto_strategy *strategy = make_workers(2, 1, NULL);
    ditto_coordinator *c = make_coordinator(strategy, 0);
    register_as("count", count_call, &calls);
    assert_int_equal(in_child(use_in_child, c, 60), 0);
    assert_ok(ditto_coordinator_schedule(c, "count", NULL, NULL, NULL));
    assert_ok(ditto_coordinator_join(c));
    end(c, strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_1_workers_are_groups_of_replicas_in_step),
        cmocka_unit_test(rule_12_1_options_that_cannot_be),
        cmocka_unit_test(rule_12_2_calls_that_need_replicas_in_step),
        cmocka_unit_test(rule_12_3_functions_are_executed_once_each),
        cmocka_unit_test(rule_12_3_arguments_are_copied),
        cmocka_unit_test(rule_12_3_one_tensor_as_the_argument),
        cmocka_unit_test(rule_12_4_a_long_function),
        cmocka_unit_test(rule_12_3_a_full_queue),
        cmocka_unit_test(rule_12_3_the_smallest_queue),
        cmocka_unit_test(rule_12_3_names),
        cmocka_unit_test(rule_12_3_names_that_were_taken_back),
        cmocka_unit_test(rule_12_4_results_are_tensors),
        cmocka_unit_test(rule_12_4_positive_statuses_are_returned_with_results),
        cmocka_unit_test(rule_12_4_join_returns_positive_statuses),
        cmocka_unit_test(rule_12_5_the_first_error_is_returned_once),
        cmocka_unit_test(rule_12_5_schedule_and_done_return_it_too),
        cmocka_unit_test(rule_12_5_an_error_is_not_that_of_another_thread),
        cmocka_unit_test(rule_12_5_each_thread_is_told),
        cmocka_unit_test(rule_12_5_a_join_returns_what_nobody_was_told),
        cmocka_unit_test(rule_12_5_many_coordinators),
        cmocka_unit_test(rule_12_6_cancelling),
        cmocka_unit_test(rule_12_6_destroy_cancels_the_queue),
        cmocka_unit_test(rule_12_6_fetch_during_destroy),
        cmocka_unit_test(rule_12_7_a_late_function_is_executed_by_another_worker),
        cmocka_unit_test(rule_12_7_after_max_attempts_it_fails),
        cmocka_unit_test(rule_12_7_a_late_function_keeps_what_it_uses),
        cmocka_unit_test(rule_12_7_destroy_does_not_wait_for_ever),
        cmocka_unit_test(rule_12_7_functions_that_end_at_the_limit),
        cmocka_unit_test(rule_12_8_calls_from_inside),
        cmocka_unit_test(rule_12_9_values_of_workers),
        cmocka_unit_test(rule_12_9_datasets_of_workers),
        cmocka_unit_test(rule_12_9_random_numbers_and_orders_of_workers),
        cmocka_unit_test(rule_12_3_several_threads_schedule),
        cmocka_unit_test(a_child_process_cannot_use_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
