/* tests/input/distribute/test_input_options.c - checks the options of an iterator, with rule 9.8 of
 * docs/semantics.md, the limit of memory, and, with rule 9.4, static shapes and infinite datasets. */
#include "input/distribute/distribution.h"

/* -- options -- */

static void rule_9_8_contradictions_are_named(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_dataset *d = then(range(0, 9), batch_of, 4);
    struct making m = { .pipelines = 1, .rows = 9, .batch = 2 };
    ditto_iterator *it;
#define REFUSED(call_is_function, status, text, ...)                                           \
    do {                                                                                       \
        ditto_input_options o = { .struct_size = sizeof o, __VA_ARGS__ };                      \
        assert_status((call_is_function)                                                       \
                          ? ditto_strategy_iterate_from_function(s, make_dataset, &m, &o, &it) \
                          : ditto_strategy_iterate(s, d, &o, &it),                             \
                      status);                                                                 \
        assert_message(text);                                                                  \
    } while (0)
    REFUSED(false, DITTO_ERR_INVALID, "num_pipelines is 3, which does not divide the 4 replicas",
            .num_pipelines = 3);
    REFUSED(false, DITTO_ERR_INVALID, "num_pipelines is 8, which does not divide the 4 replicas",
            .num_pipelines = 8);
    REFUSED(false, DITTO_ERR_INVALID, "PER_REPLICA", .replication = DITTO_REPLICATION_PER_REPLICA);
    REFUSED(false, DITTO_ERR_INVALID, "batched by 4 rows", .global_batch = 5);
    REFUSED(false, DITTO_ERR_RANGE, "shard is 9", .shard = (ditto_shard_policy)9);
    REFUSED(false, DITTO_ERR_RANGE, "replication is 7", .replication = (ditto_replication_mode)7);
    REFUSED(false, DITTO_ERR_RANGE, "buffer is 70000", .buffer = 70000);
    REFUSED(false, DITTO_ERR_RANGE, "producers is 2000", .num_producers = 2000);
    REFUSED(false, DITTO_ERR_RANGE, "max_bytes is 100", .max_bytes = 100);
    REFUSED(false, DITTO_ERR_INVALID, "flags", .flags = 64);
    REFUSED(false, DITTO_ERR_INVALID, "set both or none", .state = &m);
    REFUSED(false, DITTO_ERR_CORRUPT, "not a state of an iterator", .state = &m, .state_bytes = sizeof m);
    REFUSED(true, DITTO_ERR_INVALID, "global_batch is set", .global_batch = 5);
    REFUSED(true, DITTO_ERR_INVALID, "partial is set", .partial = DITTO_PARTIAL_EVEN);
    REFUSED(true, DITTO_ERR_INVALID, "shard is set", .shard = DITTO_SHARD_DATA);
    REFUSED(true, DITTO_ERR_INVALID, "pipelines is 2", .replication = DITTO_REPLICATION_PER_REPLICA,
            .num_pipelines = 2);
#undef REFUSED
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_8_buffers_change_neither_rows_nor_order(void **state)
{
    static struct rows all;
    ditto_strategy *s = make_strategy(3, NULL);
    ditto_dataset *d = then(then(then(range(0, 300), shuffle_by, 20), add_noise, 3), batch_of, 7),
                  *ahead = then(d, ditto_dataset_prefetch, 6);
    static const uint32_t buffers[] = { DITTO_NO_PREFETCH, 0, 1, 5, 100 };
    assert_ok(list_rows(ahead, 0, &all));
    for (int host = 0; host < 2; host++)
        for (size_t i = 0; i < 5; i++)
            for (uint32_t producers = 0; producers < 4; producers++) {
                struct distribution got;
                ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
                ditto_input_options options = OPTIONS(input, .buffer = buffers[i], .num_producers = producers,
                                                      .flags = host ? DITTO_INPUT_HOST_MEMORY : 0);
                distribute(&got, s, ahead, &options);
                check_steps(
                    &(struct steps){
                        .global = 7, .replicas = 3, .pipelines = 1, .shared = true, .length = { 300 } },
                    &got, (const int64_t *const[]){ all.row });
                assert_ok(ditto_iterator_stats(got.iterator, DITTO_ALL_REPLICAS, &stats));
                assert_int_equal(stats.num_slots, buffers[i] == DITTO_NO_PREFETCH ? 1
                                                  : buffers[i] == 0               ? 7
                                                                                  : buffers[i] + 1);
                assert_int_equal(stats.rows, 300);
                assert_int_equal(stats.steps, 43);
                assert_int_equal(stats.bytes, 300 * sizeof(int64_t));
                assert_int_equal(stats.num_ready + stats.num_waited, 43 * 3);
                end(&got);
            }
    assert_ok(ditto_dataset_destroy(ahead));
    assert_ok(ditto_strategy_destroy(s));
}

static void memory_of_the_queues_stays_within_its_limit(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = then(range(0, 10000), batch_of, 200);
    ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
    for (uint64_t cap = 4000; cap < 40000; cap += 1000) {
        struct distribution got;
        distribute(&got, s, d, &OPTIONS(input, .buffer = 20, .max_bytes = cap));
        assert_ok(ditto_iterator_stats(got.iterator, DITTO_ALL_REPLICAS, &stats));
        assert_true(stats.queue_bytes <= cap && stats.num_slots <= 21 && stats.num_slots >= 1);
        assert_int_equal(got.taken[0].rows + got.taken[1].rows, 10000);
        end(&got);
    }
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- static shapes and infinite datasets -- */

static void rule_9_4_partial_steps_are_dropped_where_shapes_are_static(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_dataset *d = range(0, 30),
                  *rows_31 = then(then(range(0, 30), ditto_dataset_repeat, DITTO_REPEAT_FOREVER),
                                  ditto_dataset_take, 31);
    struct distribution got;
    ditto_element_spec spec;
    for (uint32_t pipelines = 1; pipelines <= 4; pipelines *= 2) {
        ditto_input_options options = OPTIONS(input, .global_batch = 8, .num_pipelines = pipelines);
        distribute(&got, s, d, &options);
        assert_int_equal(got.taken[0].steps, 4);
        assert_ok(ditto_iterator_spec(got.iterator, &spec));
        assert_true(spec.num_components == 1 && spec.component[0].rank == 1 &&
                    spec.component[0].dtype == DITTO_I64 && spec.component[0].shape[0] == DITTO_ANY_SIZE);
        end(&got);
        options.flags = DITTO_INPUT_STATIC;
        distribute(&got, s, d, &options);
        for (uint32_t r = 0; r < 4; r++) {
            assert_int_equal(got.taken[r].steps, 3);
            assert_int_equal(got.taken[r].rows, 6);
        }
        assert_ok(ditto_iterator_spec(got.iterator, &spec));
        assert_int_equal(spec.component[0].shape[0], 2);
        end(&got);
    }
    assert_ok(ditto_dataset_destroy(d));
    /* No step is smaller, although 8 does not divide the 31 rows that are repeated. */
    d = then(rows_31, ditto_dataset_repeat, DITTO_REPEAT_FOREVER);
    ditto_iterator *it;
    assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 8), &it));
    begin(&got, s, it);
    got.stop_after = 100;
    run_all(s, consume, &got, &got.report);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(got.taken[3].size[i], 2);
    end(&got);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_9_8_contradictions_are_named),
        cmocka_unit_test(rule_9_8_buffers_change_neither_rows_nor_order),
        cmocka_unit_test(memory_of_the_queues_stays_within_its_limit),
        cmocka_unit_test(rule_9_4_partial_steps_are_dropped_where_shapes_are_static),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
