/* tests/input/distribute/test_slow_producers.c - checks that replicas wait for slow producers, that these
 * waits are counted, that the destruction of an iterator waits for a run, and that a replica that takes no
 * more batches is named. */
#include "input/distribute/distribution.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A row for which the map does not return before the thread sleeps. */
struct held_row {
    int64_t row;
    _Atomic int thread_id;
};

/* Needs a millisecond for each row. On the held row it waits until the thread sleeps. */
static ditto_status slow_map(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                             void *user)
{
    struct held_row *held = user;
    int64_t row = *(const int64_t *)in[0].data;
    if (row == held->row && !await_sleep(&held->thread_id))
        return DITTO_ERR_USER;
    *(int64_t *)out[0].data = row;
    sleep_ms(1);
    return DITTO_OK;
}

struct slow {
    struct distribution got;
    struct held_row *held;
};

static ditto_status consume_slow(ditto_replica *self, void *argument)
{
    struct slow *slow = argument;
    if (ditto_replica_id(self) == 0)
        atomic_store(&slow->held->thread_id, (int)syscall(SYS_gettid));
    return consume(self, &slow->got);
}

/* Waits until the time for filling is at least `least`, and returns it. A producer hands over its last batch
 * before it adds the time of this batch to the statistics. */
static uint64_t await_filling_ns(const ditto_iterator *iterator, uint64_t least)
{
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    for (int i = 0; i < 60000; i++, sleep_ms(1)) {
        assert_ok(ditto_iterator_stats(iterator, DITTO_ALL_REPLICAS, &stats));
        if (stats.filling_ns >= least)
            break;
    }
    return stats.filling_ns;
}

static void a_slow_producer_is_waited_for_and_counted(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *source = range(0, 40), *d;
    ditto_iterator_counters all = DITTO_ITERATOR_COUNTERS_INIT, one = DITTO_ITERATOR_COUNTERS_INIT;
    /* Row 36 is in replica 0's last batch. The producer has handed over all batches before it, so replica 0
     * sleeps only if it waits for this one. */
    struct held_row held = { .row = 36 };
    struct slow slow = { .held = &held };
    ditto_iterator *it;
    size_t length;
    char text[4000];
    assert_ok(ditto_dataset_map(source, slow_map, &held, NULL, &d));
    assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 4, .num_producers = 1), &it));
    begin(&slow.got, s, it);
    run_all(s, consume_slow, &slow, &slow.got.report);
    assert_true(await_filling_ns(it, 40 * 1000000ull) >= 40 * 1000000ull);
    assert_ok(ditto_iterator_stats(it, DITTO_ALL_REPLICAS, &all));
    assert_ok(ditto_iterator_stats(it, 1, &one));
    assert_true(all.num_waited > 0 && all.consumer_wait_ns > 1000000);
    assert_true(one.rows == 20 && all.rows == 40 && one.num_replicas == 1 &&
                one.consumer_wait_ns <= all.consumer_wait_ns);
    assert_status(ditto_iterator_stats(it, 2, &one), DITTO_ERR_RANGE);
    assert_ok(ditto_strategy_describe(s, text, sizeof text, &length));
    assert_non_null(strstr(text, "iterator 0: step 10"));
    end(&slow.got);
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

struct background {
    ditto_strategy *strategy;
    struct distribution got;
    _Atomic int has_begun;
    ditto_status status;
};

static ditto_status consume_in_background(ditto_replica *self, void *argument)
{
    struct background *b = argument;
    atomic_store(&b->has_begun, 1);
    return consume(self, &b->got);
}

static void *run_in_background(void *argument)
{
    struct background *b = argument;
    b->status = ditto_strategy_run(b->strategy, consume_in_background, b);
    return NULL;
}

static void destroying_waits_for_a_run_on_another_thread(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *source = range(0, 200), *d;
    /* The last row is not returned before this thread sleeps in the call that destroys the iterator. */
    struct held_row held = { .row = 199 };
    struct background b = { .strategy = s, .status = DITTO_ERR_USER };
    pthread_t thread;
    ditto_iterator *it;
    assert_ok(ditto_dataset_map(source, slow_map, &held, NULL, &d));
    assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 4), &it));
    begin(&b.got, s, it);
    assert_int_equal(pthread_create(&thread, NULL, run_in_background, &b), 0);
    while (atomic_load(&b.has_begun) == 0)
        sleep_ms(1);
    atomic_store(&held.thread_id, (int)syscall(SYS_gettid));
    assert_ok(ditto_iterator_destroy(it));
    pthread_join(thread, NULL);
    assert_int_equal(b.status, DITTO_OK);
    assert_int_equal(b.got.taken[0].rows + b.got.taken[1].rows, 200);
    free(b.got.taken);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_strategy_destroy(s));
}

/* The run fails and names the replica that leaves, whichever pipeline serves it. */
static void rule_9_9_a_replica_that_leaves_is_named_across_pipelines(void **state)
{
    ditto_dataset *d = then(range(0, 1000), ditto_dataset_repeat, DITTO_REPEAT_FOREVER);
    for (uint32_t flags = 0; flags <= DITTO_INPUT_STATIC; flags += DITTO_INPUT_STATIC)
        for (uint32_t leaver = 0; leaver < 4; leaver++) {
            ditto_strategy *s = make_strategy(4, NULL);
            struct leaving l = { .leaver = leaver };
            ditto_input_options options = OPTIONS(input, .global_batch = 8, .num_pipelines = 2,
                                                  .num_producers = 2, .flags = flags);
            assert_ok(ditto_strategy_iterate(s, d, &options, &l.iterator));
            assert_status(ditto_strategy_run(s, one_leaves, &l), DITTO_ERR_DIVERGED);
            char text[64];
            snprintf(text, sizeof text, "replica %u has returned", leaver);
            assert_message(text);
            assert_others_stopped(&l, 4);
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
