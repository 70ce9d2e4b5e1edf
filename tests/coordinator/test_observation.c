/* tests/coordinator/test_observation.c - docs/semantics.md, "Parameter servers": what workers, the queue and
 * optimizers report (rule 12.14). */
#include "support/support.h"

#include <ditto/coordinator.h>
#include <ditto/optimizer.h>
#include <ditto/parameter.h>
#include <ditto/source.h>
#include <ditto/trace.h>
#include <ditto/transform.h>
#include <ditto/tuning.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct observed {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    ditto_variable *weights;
    ditto_optimizer *optimizer;
    _Atomic int gate_is_open, at_gate;
    _Atomic int64_t age; /* of the next gradient */
    _Atomic uint64_t dropped;
};

static struct observed test;

static void begin(uint32_t workers, uint32_t replicas)
{
    memset(&test, 0, sizeof test);
    assert_ok(ditto_strategy_create(
        DITTO_PARAMETER_SERVER,
        &OPTIONS(strategy, .num_replicas = workers * replicas, .replicas_per_worker = replicas),
        &test.strategy));
    assert_ok(ditto_coordinator_create(test.strategy, NULL, &test.coordinator));
}

static void end(void)
{
    assert_ok(ditto_coordinator_destroy(test.coordinator));
    assert_ok(ditto_optimizer_destroy(test.optimizer));
    assert_ok(ditto_variable_destroy(test.weights));
    assert_ok(ditto_strategy_destroy(test.strategy));
}

static void make_optimizer(int64_t max_staleness)
{
    ditto_tensor zero = { .dtype = DITTO_F64 };
    ditto_optimizer_options rule = OPTIONS(optimizer, .rule = DITTO_RULE_ADD, .max_staleness = max_staleness,
                                           .has_max_staleness = max_staleness >= 0);
    if (max_staleness < 0)
        rule.max_staleness = 0;
    assert_ok(ditto_variable_create(test.strategy, &zero, NULL, &test.weights));
    assert_ok(ditto_optimizer_create(&test.weights, 1, &rule, &test.optimizer));
}

static void schedule(const char *name, ditto_replica_fn function, int times)
{
    assert_ok(ditto_function_register(name, function, NULL));
    for (int i = 0; i < times; i++)
        assert_ok(ditto_coordinator_schedule(test.coordinator, name, NULL, NULL, NULL));
}

static void join(void)
{
    assert_ok(ditto_coordinator_join(test.coordinator));
}

/* -- functions -- */

static ditto_status do_nothing(ditto_replica *self, void *user)
{
    return DITTO_OK;
}

static ditto_status wait_for_gate(ditto_replica *self, void *user)
{
    atomic_fetch_add(&test.at_gate, 1);
    while (!atomic_load(&test.gate_is_open))
        sleep_ms(1);
    return DITTO_OK;
}

static void await_at_gate(int functions)
{
    while (atomic_load(&test.at_gate) < functions)
        sleep_ms(1);
}

static ditto_status apply_one(ditto_replica *self, ditto_apply_options *options)
{
    double one = 1;
    ditto_tensor gradient = { .data = &one, .dtype = DITTO_F64 };
    return ditto_apply(self, test.optimizer, &gradient, options);
}

static ditto_status step_without_age(ditto_replica *self, void *user)
{
    return apply_one(self, NULL);
}

/* A step whose parameters were read test.age steps ago. */
static ditto_status step_of_age(ditto_replica *self, void *user)
{
    ditto_apply_options options = DITTO_APPLY_OPTIONS_INIT;
    DITTO_TRY(ditto_optimizer_steps(self, test.optimizer, &options.read_steps));
    options.read_steps -= atomic_load(&test.age);
    options.has_read_steps = 1;
    return apply_one(self, &options);
}

static ditto_status step_and_count(ditto_replica *self, void *user)
{
    int dropped = 0;
    ditto_apply_options options = DITTO_APPLY_OPTIONS_INIT;
    DITTO_TRY(ditto_optimizer_steps(self, test.optimizer, &options.read_steps));
    options.has_read_steps = 1;
    options.dropped = &dropped;
    DITTO_TRY(apply_one(self, &options));
    if (ditto_replica_id(self) == 0)
        atomic_fetch_add(&test.dropped, (uint64_t)dropped);
    return DITTO_OK;
}

/* -- workers -- */

static void rule_12_14_time_of_workers(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_coordinator_counters all = DITTO_COORDINATOR_COUNTERS_INIT;
        begin(n, 1);
        schedule("wait_for_gate", wait_for_gate, (int)n);
        await_at_gate((int)n); /* each worker has one */
        for (uint32_t w = 0; w < n; w++) {
            ditto_worker_info before = DITTO_WORKER_INFO_INIT, after = DITTO_WORKER_INFO_INIT;
            assert_ok(ditto_coordinator_worker_info(test.coordinator, w, &before));
            sleep_ms(2);
            assert_ok(ditto_coordinator_worker_info(test.coordinator, w, &after));
            assert_true(before.is_busy && after.is_busy);
            assert_true(before.idle_ns == after.idle_ns); /* a worker that is busy is not idle */
            assert_true(before.idle_ns > 0);              /* it was, before the function */
        }
        assert_ok(ditto_coordinator_stats(test.coordinator, &all));
        assert_int_equal(all.num_workers, n);
        assert_int_equal(all.scheduled, n);
        assert_int_equal(all.ended, 0);
        assert_int_equal(all.functions, 0);
        sleep_ms(5);
        atomic_store(&test.gate_is_open, 1);
        join();
        uint64_t busy_ns = 0;
        for (uint32_t w = 0; w < n; w++) {
            ditto_worker_info before = DITTO_WORKER_INFO_INIT, after = DITTO_WORKER_INFO_INIT;
            assert_ok(ditto_coordinator_worker_info(test.coordinator, w, &before));
            sleep_ms(2);
            assert_ok(ditto_coordinator_worker_info(test.coordinator, w, &after));
            assert_int_equal(after.functions, 1);
            assert_true(after.busy_ns >= 5000000 && after.busy_ns == before.busy_ns);
            assert_true(after.idle_ns > before.idle_ns);
            busy_ns += after.busy_ns;
        }
        assert_ok(ditto_coordinator_stats(test.coordinator, &all));
        assert_int_equal(all.busy_ns, busy_ns);
        assert_int_equal(all.functions, n);
        assert_int_equal(all.ended, n);
        assert_true(all.busy_ns + all.idle_ns <= n * all.elapsed_ns);
        end();
    }
}

static void rule_12_14_depth_of_the_queue(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_coordinator_counters all = DITTO_COORDINATOR_COUNTERS_INIT;
        uint64_t expected[DITTO_HISTOGRAM_LENGTH], seen = 0;
        begin(n, 1);
        schedule("wait_for_gate", wait_for_gate, (int)n);
        await_at_gate((int)n);
        assert_ok(ditto_coordinator_stats(test.coordinator, &all));
        /* Of the functions so far, it is not known how deep the queue was. */
        memcpy(expected, all.depth_histogram, sizeof expected);
        for (uint32_t i = 0; i < DITTO_HISTOGRAM_LENGTH; i++)
            seen += expected[i];
        assert_int_equal(seen, (n + 15) / 16);
        assert_int_equal(all.depth, 0);
        schedule("do_nothing", do_nothing, 200);
        assert_ok(ditto_coordinator_stats(test.coordinator, &all));
        assert_int_equal(all.depth, 200);
        assert_int_equal(all.largest_depth, 200);
        for (uint32_t ticket = 16; ticket < 200 + n; ticket += 16)
            if (ticket >= n) {
                uint32_t depth = ticket + 1 - n, range = 0;
                while (depth >> range != 0)
                    range++;
                expected[range]++;
            }
        assert_memory_equal(all.depth_histogram, expected, sizeof expected);
        atomic_store(&test.gate_is_open, 1);
        join();
        assert_ok(ditto_coordinator_stats(test.coordinator, &all));
        assert_int_equal(all.depth, 0);
        assert_int_equal(all.ended, 200 + n);
        assert_true(all.largest_depth > 200 - 16 && all.largest_depth <= 200);
        end();
    }
}

static void *read_again_and_again(void *has_ended)
{
    uint64_t idle_ns[3] = { 0 };
    while (!atomic_load((_Atomic int *)has_ended)) {
        for (uint32_t w = 0; w < 3; w++) {
            ditto_worker_info info = DITTO_WORKER_INFO_INIT;
            if (ditto_coordinator_worker_info(test.coordinator, w, &info) != DITTO_OK ||
                info.idle_ns < idle_ns[w])
                return "failed";
            idle_ns[w] = info.idle_ns;
        }
        ditto_coordinator_counters all = DITTO_COORDINATOR_COUNTERS_INIT;
        ditto_staleness_counters ages = DITTO_STALENESS_COUNTERS_INIT;
        if (ditto_coordinator_stats(test.coordinator, &all) != DITTO_OK || all.ended > all.scheduled ||
            ditto_optimizer_staleness(test.optimizer, &ages) != DITTO_OK ||
            strstr(ditto_strategy_diagnose(test.strategy), "queue: ") == NULL)
            return "failed";
    }
    return NULL;
}

static void rule_12_14_reports_while_workers_work(void **state)
{
    static _Atomic int has_ended;
    pthread_t thread;
    void *failed;
    begin(3, 1);
    make_optimizer(-1);
    atomic_store(&has_ended, 0);
    assert_int_equal(pthread_create(&thread, NULL, read_again_and_again, &has_ended), 0);
    schedule("step_and_count", step_and_count, test_trials(2000));
    join();
    atomic_store(&has_ended, 1);
    pthread_join(thread, &failed);
    assert_null(failed);
    end();
}

static void rule_12_14_what_a_worker_does_now(void **state)
{
    begin(2, 1);
    const char *text = ditto_strategy_diagnose(test.strategy);
    assert_non_null(strstr(text, "queue: 0 functions"));
    assert_non_null(strstr(text, "worker 1: idle, 0 functions"));
    schedule("wait_for_gate", wait_for_gate, 1);
    await_at_gate(1);
    text = ditto_strategy_diagnose(test.strategy);
    assert_non_null(strstr(text, "executes \"wait_for_gate\" for "));
    assert_non_null(strstr(text, "idle, 0 functions"));
    atomic_store(&test.gate_is_open, 1);
    join();
    assert_non_null(strstr(ditto_strategy_diagnose(test.strategy), "idle, 1 functions"));
    assert_null(strstr(ditto_strategy_diagnose(test.strategy), "executes"));
    assert_ok(ditto_coordinator_destroy(test.coordinator));
    assert_non_null(strstr(ditto_strategy_diagnose(test.strategy), "2 workers without a coordinator"));
    test.coordinator = NULL;
    end();
}

/* -- gradients -- */

static void step_with_age(int64_t age, int times)
{
    atomic_store(&test.age, age);
    schedule("step_of_age", step_of_age, times);
    join();
}

static void rule_12_14_ages_of_gradients(void **state)
{
    for (uint32_t replicas = 1; replicas <= 3; replicas++) {
        ditto_staleness_counters ages = DITTO_STALENESS_COUNTERS_INIT;
        begin(1, replicas);
        make_optimizer(-1);
        schedule("step_without_age", step_without_age, 40);
        join();
        assert_ok(ditto_optimizer_staleness(test.optimizer, &ages));
        assert_int_equal(ages.calls, 0);
        const int64_t age[] = { 0, 1, 2, 3, 4, 7, 8, 31, 32 };
        const uint64_t range[] = { 0, 1, 2, 2, 3, 3, 4, 5, 6 };
        uint64_t expected[DITTO_HISTOGRAM_LENGTH] = { 0 }, sum = 0, calls = 0;
        for (size_t i = 0; i < sizeof age / sizeof age[0]; i++) {
            step_with_age(age[i], (int)i + 1);
            expected[range[i]] += i + 1;
            sum += (uint64_t)age[i] * (i + 1);
            calls += i + 1;
        }
        step_with_age(-5, 1); /* steps that have not begun yet */
        expected[0]++;
        assert_ok(ditto_optimizer_staleness(test.optimizer, &ages));
        assert_int_equal(ages.calls, calls + 1);
        assert_int_equal(ages.sum, sum);
        assert_int_equal(ages.largest, 32);
        assert_int_equal(ages.dropped, 0);
        assert_memory_equal(ages.histogram, expected, sizeof expected);
        end();
    }
}

static void rule_12_14_dropped_gradients(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_staleness_counters ages = DITTO_STALENESS_COUNTERS_INIT;
        ditto_variable *iterations;
        int64_t steps;
        uint64_t many = (uint64_t)test_trials(1000), sum = 0;
        begin(replica_counts[k], 1);
        make_optimizer(1);
        schedule("step_and_count", step_and_count, (int)many);
        join();
        assert_ok(ditto_optimizer_staleness(test.optimizer, &ages));
        assert_int_equal(ages.calls, many);
        assert_int_equal(ages.dropped, atomic_load(&test.dropped));
        iterations = iterations_of(test.optimizer);
        assert_ok(ditto_variable_read(iterations, &steps, sizeof steps));
        assert_int_equal((uint64_t)steps + ages.dropped, many);
        for (int i = 0; i < DITTO_HISTOGRAM_LENGTH; i++)
            sum += ages.histogram[i];
        assert_int_equal(sum, many);
        /* What is older than 1 is dropped. */
        assert_int_equal(sum - ages.histogram[0] - ages.histogram[1], ages.dropped);
        end();
    }
}

static void rule_12_14_optimizers_of_other_variables(void **state)
{
    ditto_strategy *mirrored = make_strategy(2, NULL);
    ditto_tensor zero = { .dtype = DITTO_F64 };
    ditto_staleness_counters ages = DITTO_STALENESS_COUNTERS_INIT;
    ditto_variable *variable;
    ditto_optimizer *optimizer;
    assert_ok(ditto_variable_create(mirrored, &zero, NULL, &variable));
    assert_ok(ditto_optimizer_create(&variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADD), &optimizer));
    assert_ok(ditto_optimizer_staleness(optimizer, &ages));
    assert_int_equal(ages.calls + ages.dropped + ages.largest, 0);
    ages.struct_size = 0;
    assert_status(ditto_optimizer_staleness(optimizer, &ages), DITTO_ERR_INVALID);
    assert_status(ditto_optimizer_staleness(optimizer, NULL), DITTO_ERR_INVALID);
    assert_ok(ditto_optimizer_destroy(optimizer));
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_strategy_destroy(mirrored));
}

/* -- traces -- */

static ditto_status reduce(ditto_replica *self, void *user)
{
    double one = 1;
    return ditto_all_reduce(self, &one, &one, 1, DITTO_F64, DITTO_SUM, NULL);
}

/* The calls of an operation, as the replica that made most has counted them. */
static uint64_t calls_of(const char *name)
{
    for (uint32_t i = 0;; i++) {
        ditto_operation_counters found = DITTO_OPERATION_COUNTERS_INIT;
        if (ditto_strategy_operation_stats(test.strategy, i, &found) != DITTO_OK)
            return 0;
        if (strcmp(found.name, name) == 0)
            return found.calls;
    }
}

static uint32_t count_in(const char *text, const char *part)
{
    uint32_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

static void read_trace(const char *path, char *text, size_t size)
{
    assert_ok(ditto_strategy_trace_write(test.strategy, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(remove(path), 0);
}

static void rule_12_14_traces_of_workers(void **state)
{
    static char text[1 << 18];
    const uint32_t shapes[][2] = { { 1, 1 }, { 2, 1 }, { 3, 2 }, { 8, 1 } };
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        uint32_t workers = shapes[k][0], replicas = shapes[k][1];
        char path[64], track[64];
        snprintf(path, sizeof path, "observation-%d.json", (int)getpid());
        begin(workers, replicas);
        assert_status(ditto_strategy_trace_write(test.strategy, path), DITTO_ERR_NOT_FOUND);
        assert_ok(ditto_strategy_trace_start(test.strategy, NULL));
        schedule("wait_for_gate", wait_for_gate, (int)workers);
        await_at_gate((int)(workers * replicas)); /* each worker has one */
        assert_status(ditto_strategy_trace_stop(test.strategy), DITTO_ERR_BUSY);
        assert_message("ditto_coordinator_join");
        atomic_store(&test.gate_is_open, 1);
        schedule("reduce", reduce, 50);
        join();
        assert_ok(ditto_strategy_trace_stop(test.strategy));
        schedule("reduce", reduce, 10); /* not recorded */
        join();
        assert_true(calls_of("run") >= (50 + workers) / workers && calls_of("run") <= 50 + 1);
        assert_int_equal(calls_of("run"), calls_of("ditto_all_reduce") + 1);
        assert_ok(ditto_strategy_trace_describe(test.strategy, text, sizeof text, NULL));
        assert_non_null(strstr(text, "ditto_all_reduce"));
        read_trace(path, text, sizeof text);
        assert_int_equal(count_in(text, "\"cat\":\"run\""), (50 + workers) * replicas);
        assert_int_equal(count_in(text, "\"thread_name\""), workers * replicas);
        snprintf(track, sizeof track, "\"name\":\"replica %u\"", workers * replicas - 1);
        assert_int_equal(count_in(text, track), 1);
        end();
    }
}

static ditto_shared_dataset *shared;

static ditto_status take_batch(ditto_replica *self, void *user)
{
    ditto_batch batch;
    return ditto_shared_dataset_next(self, shared, &batch);
}

static void rule_12_14_traces_have_the_input(void **state)
{
    ditto_dataset *rows, *batched;
    begin(1, 2);
    assert_ok(ditto_dataset_from_range(0, 100, 1, &rows));
    assert_ok(ditto_dataset_batch(rows, 10, 0, &batched));
    assert_ok(ditto_coordinator_shared_dataset(test.coordinator, batched, NULL, &shared));
    assert_ok(ditto_strategy_trace_start(test.strategy, NULL));
    schedule("take_batch", take_batch, 15);
    assert_status(ditto_coordinator_join(test.coordinator), DITTO_END_OF_INPUT);
    assert_ok(ditto_strategy_trace_stop(test.strategy));
    assert_int_equal(calls_of("ditto_shared_dataset_next"), 15);
    for (uint32_t i = 0;; i++) {
        ditto_operation_counters found = DITTO_OPERATION_COUNTERS_INIT;
        assert_ok(ditto_strategy_operation_stats(test.strategy, i, &found));
        if (strcmp(found.name, "ditto_shared_dataset_next") != 0)
            continue;
        assert_int_equal(found.bytes, 800);
        break;
    }
    assert_ok(ditto_dataset_destroy(rows));
    assert_ok(ditto_dataset_destroy(batched));
    assert_ok(ditto_shared_dataset_destroy(shared));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_14_time_of_workers),
        cmocka_unit_test(rule_12_14_depth_of_the_queue),
        cmocka_unit_test(rule_12_14_reports_while_workers_work),
        cmocka_unit_test(rule_12_14_what_a_worker_does_now),
        cmocka_unit_test(rule_12_14_ages_of_gradients),
        cmocka_unit_test(rule_12_14_dropped_gradients),
        cmocka_unit_test(rule_12_14_optimizers_of_other_variables),
        cmocka_unit_test(rule_12_14_traces_of_workers),
        cmocka_unit_test(rule_12_14_traces_have_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
