/* tests/coordinator/test_per_worker.c - docs/semantics.md, "Parameter servers": datasets and values of
 * workers that cannot be made, take long, or are destroyed (rules 12.7 and 12.9). test_coordinator.c has
 * those that work. */
#include "support/support.h"

#include <stdatomic.h>

/* A coordinator, and the datasets of its workers. */
struct workers {
    ditto_strategy *strategy;
    ditto_coordinator *coordinator;
    ditto_per_worker *datasets;
    _Atomic int made;  /* how often the function of the datasets was called */
    _Atomic int fails; /* it then returns DITTO_ERR_IO */
    _Atomic int waits; /* it waits while this is 1 for worker 0 */
    long takes_ms;
    struct report report;
};

static void begin(struct workers *w, uint32_t workers, uint32_t replicas, const ditto_strategy_options *given)
{
    ditto_strategy_options options = *given;
    memset(w, 0, sizeof *w);
    options.num_replicas = workers * replicas;
    options.replicas_per_worker = replicas;
    assert_ok(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &w->strategy));
    assert_ok(ditto_coordinator_create(w->strategy, NULL, &w->coordinator));
}

static void end(struct workers *w)
{
    if (w->report.claimed)
        fail_msg("%s", w->report.first_failure);
    assert_ok(ditto_coordinator_destroy(w->coordinator));
    assert_ok(ditto_strategy_destroy(w->strategy));
}

/* The rows 1, 1, 1 and so on, for ever, so producers do not end. */
static ditto_status make_rows(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    struct workers *w = user;
    ditto_dataset *range, *forever;
    atomic_fetch_add(&w->made, 1);
    sleep_ms(w->takes_ms);
    while (context->pipeline == 0 && atomic_load(&w->waits))
        sleep_ms(1);
    if (atomic_load(&w->fails))
        return DITTO_ERR_IO;
    DITTO_TRY(ditto_dataset_from_range(1, 2, 1, &range));
    DITTO_TRY(ditto_dataset_repeat(range, DITTO_REPEAT_FOREVER, &forever));
    DITTO_TRY(ditto_dataset_batch(forever, 1, 0, out));
    DITTO_TRY(ditto_dataset_destroy(forever));
    return ditto_dataset_destroy(range);
}

static void make_datasets(struct workers *w)
{
    assert_ok(ditto_coordinator_datasets_from_function(w->coordinator, make_rows, w, NULL, &w->datasets));
}

/* Takes a row. */
static ditto_status take(ditto_replica *self, void *user)
{
    ditto_iterator *iterator;
    ditto_batch batch;
    DITTO_TRY(ditto_worker_iterator(self, ((struct workers *)user)->datasets, &iterator));
    DITTO_TRY(ditto_next(self, iterator, &batch));
    return *(const int64_t *)batch.component[0].data == 1 ? DITTO_OK : DITTO_ERR_CORRUPT;
}

static ditto_status nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

static ditto_remote *schedule(struct workers *w, const char *name, ditto_replica_fn function)
{
    ditto_remote *remote;
    (void)!ditto_function_unregister(name);
    assert_ok(ditto_function_register(name, function, w));
    assert_ok(ditto_coordinator_schedule(w->coordinator, name, NULL, NULL, &remote));
    return remote;
}

/* Executes a function, and returns what fetch returns. The message stays. */
static ditto_status execute(struct workers *w, const char *name, ditto_replica_fn function)
{
    ditto_value *value;
    ditto_remote *remote = schedule(w, name, function);
    ditto_status status = ditto_remote_fetch(remote, &value);
    assert_ok(ditto_remote_destroy(remote));
    return status;
}

static void rule_12_9_functions_that_use_a_failed_dataset_get_its_error(void **state)
{
    for (uint32_t replicas = 1; replicas <= 2; replicas++) {
        struct workers w;
        begin(&w, 1, replicas, &OPTIONS(strategy, .timeout_ms = 0));
        atomic_store(&w.fails, 1);
        make_datasets(&w);
        /* A function that does not ask for it. */
        assert_status(execute(&w, "nothing", nothing), DITTO_OK);
        assert_int_equal(atomic_load(&w.made), 1);
        assert_ok(ditto_coordinator_join(w.coordinator));
        for (int i = 1; i <= 2; i++) {
            assert_status(execute(&w, "take", take), DITTO_ERR_IO);
            assert_message("the dataset of worker 0");
            assert_status(ditto_coordinator_join(w.coordinator), DITTO_ERR_IO);
            assert_message("\"take\" on worker 0");
            assert_int_equal(atomic_load(&w.made), i); /* it is made again before the next function */
        }
        atomic_store(&w.fails, 0);
        assert_status(execute(&w, "take", take), DITTO_OK);
        assert_int_equal(atomic_load(&w.made), 3);
        end(&w);
    }
}

/* Epochs with a dataset each need no more threads and memory than one. */
static void rule_12_9_datasets_can_be_destroyed(void **state)
{
    struct workers w;
    ditto_per_worker *kept;
    long threads = 0;
    begin(&w, 2, 1, &OPTIONS(strategy, .timeout_ms = 0));
    make_datasets(&w);
    kept = w.datasets;
    for (int i = 0; i < 20; i++) {
        make_datasets(&w);
        for (int k = 0; k < 4; k++)
            assert_status(execute(&w, "take", take), DITTO_OK);
        assert_ok(ditto_coordinator_join(w.coordinator));
        if (i == 0)
            threads = count_threads();
        assert_ok(ditto_per_worker_destroy(w.datasets));
    }
    /* In the first pass the kept datasets of both workers need not exist yet. */
    assert_true(count_threads() <= threads + 2);
    w.datasets = kept;
    assert_status(execute(&w, "take", take), DITTO_OK);
    assert_ok(ditto_per_worker_destroy(NULL));
    end(&w);
}

static _Atomic int gate_is_open;

static ditto_status destroy_inside(ditto_replica *self, void *user)
{
    struct workers *w = user;
    EXPECT(&w->report, ditto_per_worker_destroy(w->datasets) == DITTO_ERR_CONTEXT);
    while (!atomic_load(&gate_is_open))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status one(uint32_t worker, uint32_t workers, void *user, ditto_tensor *component)
{
    static double number = 1;
    *component = (ditto_tensor){ .data = &number, .dtype = DITTO_F64 };
    return DITTO_OK;
}

static ditto_status use_value(ditto_replica *self, void *user)
{
    ditto_tensor own;
    DITTO_TRY(ditto_worker_value(self, ((struct workers *)user)->datasets, &own));
    return *(const double *)own.data == 1 ? DITTO_OK : DITTO_ERR_CORRUPT;
}

static int destroy_in_child(void *datasets)
{
    REQUIRE(ditto_per_worker_destroy(datasets) == DITTO_OK);
    return 0;
}

static void rule_12_9_destroying_while_functions_are_executed(void **state)
{
    struct workers w;
    begin(&w, 2, 1, &OPTIONS(strategy, .timeout_ms = 0));
    assert_ok(ditto_coordinator_values_from_function(w.coordinator, one, NULL, &w.datasets));
    assert_status(execute(&w, "use_value", use_value), DITTO_OK);
    atomic_store(&gate_is_open, 0);
    ditto_remote *remote = schedule(&w, "destroy_inside", destroy_inside);
    assert_status(ditto_per_worker_destroy(w.datasets), DITTO_ERR_BUSY);
    assert_message("ditto_coordinator_join");
    atomic_store(&gate_is_open, 1);
    assert_ok(ditto_coordinator_join(w.coordinator));
    assert_ok(ditto_remote_destroy(remote));
    if (!SANITIZED)
        assert_int_equal(in_child(destroy_in_child, w.datasets, 60), 0);
    assert_ok(ditto_per_worker_destroy(w.datasets));
    end(&w);
}

/* -- time -- */

static void rule_12_7_making_a_dataset_is_no_time_of_the_function(void **state)
{
    struct workers w;
    uint32_t limit_ms = SANITIZED ? 3000 : 1000;
    ditto_coordinator_counters all = DITTO_COORDINATOR_COUNTERS_INIT;
    begin(&w, 2, 1, &OPTIONS(strategy, .run_timeout_ms = limit_ms));
    w.takes_ms = limit_ms * 3 / 2;
    make_datasets(&w);
    assert_status(execute(&w, "take", take), DITTO_OK);
    assert_ok(ditto_coordinator_join(w.coordinator));
    assert_ok(ditto_coordinator_stats(w.coordinator, &all));
    assert_int_equal(all.num_retired, 0);
    assert_true(all.busy_ns < limit_ms * UINT64_C(1000000));
    end(&w);
}

/* Worker 0 does not end making its dataset. It is retired, and the other one executes its function. */
static void rule_12_7_a_worker_that_makes_a_dataset_for_ever_is_retired(void **state)
{
    struct workers w;
    ditto_coordinator_counters all = DITTO_COORDINATOR_COUNTERS_INIT;
    ditto_worker_info info = DITTO_WORKER_INFO_INIT;
    ditto_value *value;
    begin(&w, 2, 1, &OPTIONS(strategy, .run_timeout_ms = 400, .timeout_ms = 1000));
    atomic_store(&w.waits, 1);
    make_datasets(&w);
    for (int tries = 0; all.num_retired == 0 && tries < 1000; tries++) {
        ditto_remote *remote = schedule(&w, "nothing", nothing);
        int done = 0;
        for (int i = 0; i < 6000 && !done; i++) { /* a fetch would have the same limit */
            sleep_ms(10);
            assert_ok(ditto_remote_test(remote, &done));
        }
        assert_ok(ditto_remote_fetch(remote, &value));
        assert_ok(ditto_remote_destroy(remote));
        assert_ok(ditto_coordinator_stats(w.coordinator, &all));
    }
    assert_int_equal(all.num_retired, 1);
    assert_status(ditto_per_worker_destroy(w.datasets), DITTO_ERR_BUSY); /* it is still being made */
    atomic_store(&w.waits, 0);
    do { /* until its thread has ended */
        sleep_ms(1);
        assert_ok(ditto_coordinator_worker_info(w.coordinator, 0, &info));
    } while (info.is_busy);
    assert_true(info.is_retired);
    assert_ok(ditto_per_worker_destroy(w.datasets));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_12_9_functions_that_use_a_failed_dataset_get_its_error),
        cmocka_unit_test(rule_12_9_datasets_can_be_destroyed),
        cmocka_unit_test(rule_12_9_destroying_while_functions_are_executed),
        cmocka_unit_test(rule_12_7_making_a_dataset_is_no_time_of_the_function),
        cmocka_unit_test(rule_12_7_a_worker_that_makes_a_dataset_for_ever_is_retired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
