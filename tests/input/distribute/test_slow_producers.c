/* tests/input/distribute/test_slow_producers.c - checks that slow producers are waited for and counted, that
 * the destruction of an iterator waits for a run, and that a replica that takes no more batches is named. */
#include "input/distribute/distribution.h"

#include <pthread.h>
#include <time.h>

static ditto_status slow_map(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                             void *user)
{
    (void)random;
    (void)user;
    *(int64_t *)out[0].data = *(const int64_t *)in[0].data;
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return DITTO_OK;
}

static void a_slow_producer_is_waited_for_and_counted(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *source = range(0, 40), *d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    ditto_iterator_counters all = DITTO_ITERATOR_COUNTERS_INIT, one = DITTO_ITERATOR_COUNTERS_INIT;
    struct distribution got;
    size_t length;
    char text[4000];
    (void)state;
    assert_ok(ditto_dataset_map(source, slow_map, NULL, NULL, &d));
    options.global_batch = 4;
    distribute(&got, s, d, &options);
    assert_ok(ditto_iterator_stats(got.iterator, DITTO_ALL_REPLICAS, &all));
    assert_ok(ditto_iterator_stats(got.iterator, 1, &one));
    assert_true(all.num_waited > 0 && all.consumer_wait_ns > 1000000 && all.filling_ns >= 40 * 1000000ull);
    assert_true(one.rows == 20 && all.rows == 40 && one.num_replicas == 1 &&
                one.consumer_wait_ns <= all.consumer_wait_ns);
    assert_status(ditto_iterator_stats(got.iterator, 2, &one), DITTO_ERR_RANGE);
    assert_ok(ditto_strategy_describe(s, text, sizeof text, &length));
    assert_non_null(strstr(text, "iterator 0: step 10"));
    end(&got);
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

struct background {
    ditto_strategy *strategy;
    struct distribution *distribution;
    ditto_status status;
};
static void *run_in_background(void *argument)
{
    struct background *b = argument;
    b->status = ditto_strategy_run(b->strategy, consume, b->distribution);
    return NULL;
}

static void destroying_waits_for_a_run_on_another_thread(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *source = range(0, 200), *d;
    ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
    struct distribution got;
    pthread_t thread;
    ditto_iterator *it;
    (void)state;
    assert_ok(ditto_dataset_map(source, slow_map, NULL, NULL, &d));
    options.global_batch = 4;
    assert_ok(ditto_strategy_iterate(s, d, &options, &it));
    begin(&got, 2, it);
    struct background b = { s, &got, DITTO_ERR_USER };
    assert_int_equal(pthread_create(&thread, NULL, run_in_background, &b), 0);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    assert_ok(ditto_iterator_destroy(it));
    pthread_join(thread, NULL);
    assert_int_equal(b.status, DITTO_OK);
    /* The run may not have begun before the iterator was destroyed. */
    assert_true(got.taken[0].rows + got.taken[1].rows == 200 || got.taken[0].steps == 0);
    free(got.taken);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_strategy_destroy(s));
}

/* A replica of one pipeline leaves. Replicas of another pipeline that wait for it get the error. */
static void rule_9_9_a_replica_that_leaves_is_named_across_pipelines(void **state)
{
    ditto_dataset *d = then(range(0, 1000), ditto_dataset_repeat, DITTO_REPEAT_FOREVER);
    (void)state;
    for (uint32_t flags = 0; flags <= DITTO_INPUT_STATIC; flags += DITTO_INPUT_STATIC)
        for (uint32_t leaver = 0; leaver < 4; leaver++) {
            ditto_strategy *s = make_strategy(4, NULL);
            ditto_input_options options = DITTO_INPUT_OPTIONS_INIT;
            struct leaving l = { .leaver = leaver };
            options.global_batch = 8;
            options.num_pipelines = 2;
            options.num_producers = 2;
            options.flags = flags;
            assert_ok(ditto_strategy_iterate(s, d, &options, &l.iterator));
            assert_status(ditto_strategy_run(s, one_leaves, &l), DITTO_ERR_DIVERGED);
            char text[64];
            snprintf(text, sizeof text, "replica %u has returned", leaver);
            assert_message(text);
            assert_ok(ditto_iterator_destroy(l.iterator));
            assert_ok(ditto_strategy_destroy(s));
        }
    assert_ok(ditto_dataset_destroy(d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_producer_is_waited_for_and_counted),
        cmocka_unit_test(destroying_waits_for_a_run_on_another_thread),
        cmocka_unit_test(rule_9_9_a_replica_that_leaves_is_named_across_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
