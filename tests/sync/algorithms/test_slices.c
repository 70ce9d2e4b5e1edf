/* tests/sync/algorithms/test_slices.c - what include/ditto/slices.h promises, compared with a plain
 * reference: slices that are concatenated, merged, or added to a dense array. */
#include "support/support.h"

#include "sync/reference.h"

#include <stdalign.h>

enum { ROWS_MOST = 40, DENSE_ROWS = 50 };
enum way { CONCATENATED, MERGED, INTO_DENSE, WAYS };

struct task {
    struct report report;
    enum way way;
    ditto_dtype dtype;
    ditto_op op;
    size_t row_count;
    uint64_t seed;

    /* The number of rows for which a result of CONCATENATED or MERGED has memory. */
    size_t capacity;

    /* A wrong index that replica 1 passes, or 0 for none. */
    int64_t spoiled;

    ditto_status expected;

    /* The inputs of each replica, which the test allocates. */
    size_t rows[64];
    int64_t *indices[64];
    char *values[64];

    /* The results of each replica, which the test allocates. */
    int64_t *out_indices[64];
    char *out_values[64];
    size_t out_rows[64];

    /* The contents of every replica's dense array before the call. */
    char *dense;
};

static ditto_status on_replica(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_slices in = { t->indices[id], t->values[id], t->rows[id], t->row_count, t->dtype };
    ditto_slices out = { t->out_indices[id], t->out_values[id], t->capacity, 0, (ditto_dtype)0 };
    ditto_status status;
    ditto_reduce_options options = OPTIONS(reduce, .flags = t->way == MERGED ? DITTO_SLICES_MERGE : 0);
    if (t->way == INTO_DENSE)
        status = add_slices_to_dense(self, &in, t->out_values[id], DENSE_ROWS, t->op, NULL);
    else
        status = ditto_all_reduce_slices(self, &in, &out, t->op, &options);
    EXPECT(&t->report, status == t->expected);
    if (status == DITTO_OK && t->way != INTO_DENSE)
        EXPECT(&t->report, out.row_count == t->row_count && out.dtype == t->dtype);
    if (status != DITTO_OK)
        EXPECT(&t->report, out.rows == t->capacity); /* outputs are set only on success */
    t->out_rows[id] = out.rows;
    return ditto_barrier(self, NULL); /* the run continues after such an error */
}

/* -- The reference, which computes one element at a time -- */

static void divide(const struct task *t, uint32_t n, struct element *e)
{
    if (t->op != DITTO_MEAN)
        return;
    e->f = reference_round(t->dtype, e->f / n);
    e->g = reference_round(t->dtype, e->g / n);
}

/* Stores element `at` of each row that has this index, in the order of the concatenation. Returns the number
 * of rows. */
static size_t occurrences(const struct task *t, uint32_t n, int64_t index, size_t at, struct element *out)
{
    size_t found = 0, size = ditto_dtype_bytes(t->dtype);
    for (uint32_t r = 0; r < n; r++)
        for (size_t k = 0; k < t->rows[r]; k++)
            if (t->indices[r][k] == index)
                out[found++] = reference_load(t->dtype, t->values[r] + (k * t->row_count + at) * size);
    return found;
}

static void expect_same(const struct task *t, struct element e, const char *found)
{
    char expected[16];
    reference_store(t->dtype, e, expected);
    if (!reference_same(t->dtype, expected, found))
        fail_msg("way %d, %s %s: a value differs", t->way, ditto_dtype_name(t->dtype), ditto_op_name(t->op));
}

static void compare_concatenated(const struct task *t, uint32_t n)
{
    size_t row = 0, size = ditto_dtype_bytes(t->dtype);
    for (uint32_t r = 0; r < n; r++)
        for (size_t k = 0; k < t->rows[r]; k++, row++) {
            assert_int_equal(t->out_indices[0][row], t->indices[r][k]);
            for (size_t at = 0; at < t->row_count; at++) {
                struct element e = reference_load(t->dtype, t->values[r] + (k * t->row_count + at) * size);
                divide(t, n, &e);
                expect_same(t, e, t->out_values[0] + (row * t->row_count + at) * size);
            }
        }
    assert_int_equal(t->out_rows[0], row);
}

static void compare_merged(const struct task *t, uint32_t n)
{
    static struct element e[64 * ROWS_MOST];
    size_t row = 0, size = ditto_dtype_bytes(t->dtype);
    for (int64_t index = 0; index < DENSE_ROWS; index++) {
        size_t found = occurrences(t, n, index, 0, e);
        if (t->way == MERGED && found != 0)
            assert_int_equal(t->out_indices[0][row], index);
        for (size_t at = 0; at < t->row_count; at++) {
            const char *result = t->out_values[0] +
                                 ((t->way == MERGED ? row : (size_t)index) * t->row_count + at) * size;
            const char *old = t->dense + ((size_t)index * t->row_count + at) * size;
            if (occurrences(t, n, index, at, e) != 0) {
                struct element sum = reference_tree(t->dtype, DITTO_SUM, e, 0, (uint32_t)found),
                               was = reference_load(t->dtype, old);
                divide(t, n, &sum);
                struct element pair[2] = { was, sum };
                expect_same(t, t->way == MERGED ? sum : reference_tree(t->dtype, DITTO_SUM, pair, 0, 2),
                            result);
            } else if (t->way == INTO_DENSE) {
                assert_memory_equal(result, old, size);
            }
        }
        row += found != 0;
    }
    if (t->way == MERGED)
        assert_int_equal(t->out_rows[0], row);
}

/* -- Tasks -- */

static void fill_in(struct task *t, uint32_t n, uint64_t *seed)
{
    size_t size = ditto_dtype_bytes(t->dtype), total = 0;
    t->dense = malloc(DENSE_ROWS * t->row_count * size + 1);
    for (size_t i = 0; i < DENSE_ROWS * t->row_count; i++)
        reference_fill(t->dtype, t->seed + 1, 99, i, t->dense + i * size);
    for (uint32_t r = 0; r < n; r++) {
        t->rows[r] = test_random(seed) % 4 == 0 ? 0 : test_random(seed) % ROWS_MOST;
        total += t->rows[r];
        t->indices[r] = malloc(t->rows[r] * sizeof(int64_t) + 1);
        t->values[r] = malloc(t->rows[r] * t->row_count * size + 1);
        for (size_t k = 0; k < t->rows[r]; k++)
            t->indices[r][k] = (int64_t)(test_random(seed) % DENSE_ROWS) * (test_random(seed) % 3 != 0);
        for (size_t i = 0; i < t->rows[r] * t->row_count; i++)
            reference_fill(t->dtype, t->seed, r, i, t->values[r] + i * size);
        if (r == 1 && t->spoiled != 0 && t->rows[r] > 0)
            t->indices[r][0] = t->spoiled;
    }
    t->capacity = t->capacity != 0 ? t->capacity : total;
    for (uint32_t r = 0; r < n; r++) {
        size_t rows = t->way == INTO_DENSE ? DENSE_ROWS : t->capacity;
        t->out_indices[r] = malloc(rows * sizeof(int64_t) + 1);
        t->out_values[r] = malloc(rows * t->row_count * size + 1);
        if (t->way == INTO_DENSE)
            memcpy(t->out_values[r], t->dense, rows * t->row_count * size);
    }
}

static void release(struct task *t, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        free(t->indices[r]);
        free(t->values[r]);
        free(t->out_indices[r]);
        free(t->out_values[r]);
    }
    free(t->dense);
}

static void run_task(ditto_strategy *strategy, struct task *t, uint64_t *seed)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    size_t size = ditto_dtype_bytes(t->dtype);
    fill_in(t, n, seed);
    run_all(strategy, on_replica, t, &t->report);
    size_t rows = t->way == INTO_DENSE ? DENSE_ROWS : t->out_rows[0];
    for (uint32_t r = 1; r < n && t->expected == DITTO_OK; r++) {
        assert_int_equal(t->out_rows[r], t->out_rows[0]);
        assert_memory_equal(t->out_values[r], t->out_values[0], rows * t->row_count * size);
        if (t->way != INTO_DENSE)
            assert_memory_equal(t->out_indices[r], t->out_indices[0], rows * sizeof(int64_t));
    }
    if (t->expected == DITTO_OK)
        (t->way == CONCATENATED ? compare_concatenated : compare_merged)(t, n);
    release(t, n);
}

static void every_replica_has_the_slices_of_all(void **state)
{
    uint64_t seed = test_seed(3);
    int cases = 0;
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (int trial = 0; trial < test_trials(replica_counts[k] > 8 ? 12 : 60); trial++, cases++) {
            struct task t = { .way = (enum way)(trial % WAYS),
                              .op = trial % 2 == 0 ? DITTO_SUM : DITTO_MEAN };
            do
                t.dtype = (ditto_dtype)(1 + test_random(&seed) % DTI_NUM_DTYPES);
            while (!reference_has(t.dtype, t.op));
            t.row_count = trial % 7 == 0 ? 1500 : 1 + test_random(&seed) % 20;
            t.seed = test_random(&seed);
            run_task(strategy, &t, &seed);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
    print_message("%d cases\n", cases);
}

static void wrong_indices_and_sizes_are_errors_on_all_replicas_and_the_run_continues(void **state)
{
    uint64_t seed = test_seed(8);
    ditto_strategy *strategy = make_strategy(3, NULL);
    for (int way = 0; way < WAYS; way++)
        for (int trial = 0; trial < 10; trial++) {
            struct task t = {
                .way = (enum way)way, .op = DITTO_SUM, .dtype = DITTO_F32, .row_count = 3, .seed = 5
            };
            /* The call fails only if replica 1 has a row. fill_in is therefore tried first with the same
             * seed. */
            uint64_t peek = seed;
            t.spoiled = way == INTO_DENSE && trial % 2 == 0 ? DENSE_ROWS : -4;
            struct task probe = t;
            fill_in(&probe, 3, &peek);
            t.expected = probe.rows[1] > 0 ? DITTO_ERR_RANGE : DITTO_OK;
            release(&probe, 3);
            run_task(strategy, &t, &seed);
        }
    struct task small = {
        .way = CONCATENATED, .op = DITTO_SUM, .dtype = DITTO_F64, .row_count = 2, .seed = 5, .capacity = 1
    };
    small.expected = DITTO_ERR_RANGE;
    run_task(strategy, &small, &seed);
    small.way = MERGED;
    memset(&small.report, 0, sizeof small.report);
    small.capacity = 1;
    run_task(strategy, &small, &seed);
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status ask_for_nonsense(ditto_replica *self, void *argument)
{
    struct report *r = argument;
    int64_t indices[4] = { 0 }, spare[16];
    alignas(8) float values[8] = { 0 }, more[8];
    ditto_slices in = { indices, values, 4, 2, DITTO_F32 }, out = { indices, more, 4, 0, (ditto_dtype)0 };
    EXPECT(r, ditto_all_reduce_slices(self, NULL, &out, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_slices(self, &in, NULL, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    /* in.indices and out.indices are the same array. */
    EXPECT(r, ditto_all_reduce_slices(self, &in, &out, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_slices(self, &in, &out, DITTO_MAX, NULL) == DITTO_ERR_UNSUPPORTED);
    out = (ditto_slices){ spare, spare, 4, 0, (ditto_dtype)0 };
    EXPECT(r, ditto_all_reduce_slices(self, &in, &out, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, strstr(ditto_last_error()->message, "dst->values and dst->indices overlap") != NULL);
    out = (ditto_slices){ spare, indices, 4, 0, (ditto_dtype)0 };
    EXPECT(r, ditto_all_reduce_slices(self, &in, &out, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    out = (ditto_slices){ (int64_t *)(void *)values, more, 4, 0, (ditto_dtype)0 };
    EXPECT(r, ditto_all_reduce_slices(self, &in, &out, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, add_slices_to_dense(self, &in, indices, 4, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, strstr(ditto_last_error()->message, "dst->values and src->indices overlap") != NULL);
    out = (ditto_slices){ spare, more, 4, 0, (ditto_dtype)0 };
    in.rows = SIZE_MAX / 4;
    EXPECT(r, add_slices_to_dense(self, &in, more, 4, DITTO_SUM, NULL) == DITTO_ERR_RANGE);
    in.rows = 4;
    EXPECT(r, add_slices_to_dense(self, &in, values + 2, 3, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_slices(self, &in, &out, DITTO_SUM, &OPTIONS(reduce, .flags = 4)) ==
                  DITTO_ERR_INVALID);
    in.dtype = DITTO_I32;
    EXPECT(r, add_slices_to_dense(self, &in, more, 4, DITTO_MEAN, NULL) == DITTO_ERR_UNSUPPORTED);
    return ditto_barrier(self, NULL);
}

static void invalid_arguments_are_refused_before_a_replica_waits(void **state)
{
    struct report report = { 0 };
    run_once(2, NULL, ask_for_nonsense, &report, &report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_replica_has_the_slices_of_all),
        cmocka_unit_test(wrong_indices_and_sizes_are_errors_on_all_replicas_and_the_run_continues),
        cmocka_unit_test(invalid_arguments_are_refused_before_a_replica_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
