/* tests/stress/test_growth.c - neither a million mixed operations nor a million runs with values may make the
 * process larger. */
#include "support/support.h"

enum { VALUES = 700, ITEMS = 5, ROWS = 6, AHEAD = 3 };

struct work {
    struct report report;
    uint32_t operations;
};

struct buffers {
    float a[VALUES], b[VALUES], c[AHEAD][VALUES];
    int64_t index[ROWS], more_index[8 * ROWS];
    float row[ROWS], more_row[8 * ROWS];
};

static ditto_status add_floats(void *out, const void *left, const void *right, size_t count, void *user)
{
    for (size_t i = 0; i < count; i++)
        ((float *)out)[i] = ((const float *)left)[i] + ((const float *)right)[i];
    return DITTO_OK;
}

static ditto_status start_and_wait(ditto_replica *self, struct buffers *m, size_t count)
{
    ditto_pending pending[AHEAD];
    for (int i = 0; i < AHEAD; i++)
        DITTO_TRY(
            ditto_all_reduce_start(self, m->a, m->c[i], count, DITTO_F32, DITTO_SUM, NULL, &pending[i]));
    for (int i = AHEAD - 1; i >= 0; i--)
        DITTO_TRY(ditto_wait(self, &pending[i], NULL));
    return DITTO_OK;
}

static ditto_status merge_rows(ditto_replica *self, struct buffers *m)
{
    ditto_slices in = { m->index, m->row, ROWS, 1, DITTO_F32 };
    ditto_slices out = { m->more_index, m->more_row, 8 * ROWS, 0, (ditto_dtype)0 };
    for (int i = 0; i < ROWS; i++)
        m->index[i] = i * (1 + (int64_t)ditto_replica_id(self));
    return ditto_all_reduce_slices(self, &in, &out, DITTO_SUM, &OPTIONS(reduce, .flags = DITTO_SLICES_MERGE));
}

static ditto_status one_of_all(ditto_replica *self, struct buffers *m, uint32_t which, size_t count)
{
    uint32_t n = ditto_num_replicas(self);
    ditto_list_item item[ITEMS];
    float sum;
    for (int i = 0; i < ITEMS; i++) /* the address depends on count, so that the lists differ */
        item[i] = (ditto_list_item){ m->a + 8 * i + count % 3, m->b + 8 * i, 7, DITTO_F32, NULL };
    switch (which % 10) {
    case 0:
        return ditto_all_reduce(self, m->a, m->b, count, DITTO_F32, DITTO_SUM, NULL);
    case 1:
        return ditto_all_reduce_list(self, item, ITEMS, DITTO_SUM, NULL);
    case 2:
        return ditto_all_reduce_with(self, m->a, m->b, count, sizeof(float), add_floats, NULL, NULL);
    case 3:
        return ditto_reduce_to_root(self, m->a, m->b, count, DITTO_F32, DITTO_MAX, which / 10 % n, NULL);
    case 4:
        return ditto_broadcast_from_root(self, m->b, count, DITTO_F32, which / 10 % n, NULL);
    case 5:
        return ditto_reduce_scatter(self, m->a, m->b, count / n, NULL, DITTO_F32, DITTO_SUM, NULL);
    case 6:
        return ditto_all_gather(self, m->a, m->b, count / n, NULL, DITTO_F32, NULL);
    case 7:
        return start_and_wait(self, m, count);
    case 8:
        return merge_rows(self, m);
    default:
        return ditto_block_sum(self, m->a, &sum, count, DITTO_F32, NULL);
    }
}

static ditto_status work(ditto_replica *self, void *argument)
{
    struct work *w = argument;
    void *memory;
    DITTO_TRY(ditto_alloc(self, sizeof(struct buffers), 64, &memory));
    memset(memory, 0, sizeof(struct buffers));
    for (uint32_t i = 0; i < w->operations; i++)
        DITTO_TRY(one_of_all(self, memory, i, i * 7919u % VALUES));
    return ditto_free(self, memory);
}

static void a_million_operations_do_not_make_the_process_larger(void **state)
{
    static const uint32_t replicas[] = { 2, 8 };
    for (int k = 0; k < 2; k++) {
        ditto_strategy *strategy = make_strategy(replicas[k], NULL);
        struct work warm = { .operations = 5000 },
                    w = { .operations = (test_is_short() ? 40000u : 1000000u) / (k == 0 ? 1 : 20) };
        run_all(strategy, work, &warm, &warm.report);
        long threads = count_threads(), mappings = count_mappings(), before = resident_kib();
        run_all(strategy, work, &w, &w.report);
        long grown = resident_kib() - before;
        print_message("  %u replicas, %u operations: %ld KiB more\n", replicas[k], w.operations, grown);
        assert_int_equal(count_threads(), threads);
        assert_true(count_mappings() <= mappings + 2);
        /* The bound is wider with sanitizers, because they keep freed memory. */
        assert_true(grown < (SANITIZED ? 65536 : 1024));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static ditto_status give_length(ditto_replica *self, void *unused)
{
    ditto_tensor t;
    DITTO_TRY(ditto_argument(self, NULL, &t));
    return ditto_return_f64(self, "rows", (double)t.shape[0]);
}

static void a_million_runs_with_values_do_not_make_the_process_larger(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    double numbers[8] = { 0 };
    ditto_tensor parts[2];
    int runs = test_is_short() ? 40000 : 1000000;
    long before = 0, mappings = 0;
    assert_ok(ditto_strategy_scope_enter(strategy));
    for (int i = -1000; i < runs; i++) {
        ditto_value *value, *result;
        if (i == 0) {
            before = resident_kib();
            mappings = count_mappings();
        }
        for (int r = 0; r < 2; r++)
            parts[r] = (ditto_tensor){
                .data = numbers, .dtype = DITTO_F64, .rank = 1, .shape = { (size_t)(i + 1000) % 8 }
            };
        assert_ok(ditto_strategy_value_from_tensors(strategy, parts, 1, &value));
        assert_ok(ditto_strategy_run_values(strategy, give_length, NULL, value, NULL, &result));
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_value_destroy(result));
    }
    print_message("  %d runs: %ld KiB more\n", runs, resident_kib() - before);
    assert_true(resident_kib() - before < (SANITIZED ? 65536 : 1024));
    assert_true(count_mappings() <= mappings + 2);
    assert_ok(ditto_strategy_scope_leave(strategy));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_operations_do_not_make_the_process_larger),
        cmocka_unit_test(a_million_runs_with_values_do_not_make_the_process_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
