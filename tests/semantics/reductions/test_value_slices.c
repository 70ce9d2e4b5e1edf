/* tests/semantics/reductions/test_value_slices.c - docs/semantics.md, rule 4.8: reductions of slices. */
#include "support/as_hosts.h"
#include "semantics/reductions/make_values.h"

#include <fenv.h>

static void rule_4_8_slices_are_concatenated_and_stay_sparse(void **state)
{
    static const int64_t want[] = { 0, 1, 1, 1, 2, 1 };
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_value *value = make_slices(strategy, 3), *sum, *mean, *merged;
    ditto_slices s;
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &sum));
    assert_int_equal(properties_of_value(sum).kind, DITTO_VALUE_SLICES);
    assert_ok(ditto_value_slices(sum, first_local(strategy), &s, NULL));
    assert_int_equal(s.rows, 6); /* duplicates are kept */
    assert_memory_equal(s.indices, want, sizeof want);
    assert_true(((double *)s.values)[4] == 11 && ((double *)s.values)[11] == 24);
    assert_ok(ditto_strategy_reduce(strategy, DITTO_MEAN, value, NULL, 0, &mean));
    assert_ok(ditto_value_slices(mean, first_local(strategy), &s, NULL));
    assert_true(((double *)s.values)[4] == 11.0 / 3);
    assert_ok(ditto_strategy_merge_slices(strategy, sum, &merged));
    assert_ok(ditto_value_slices(merged, first_local(strategy), &s, NULL));
    assert_int_equal(s.rows, 3);
    assert_true(s.indices[1] == 1 && ((double *)s.values)[2] == 3 + 11 + 13 + 23);
    ditto_value *refused;
    assert_status(ditto_strategy_reduce(strategy, DITTO_MAX, value, NULL, 0, &refused),
                  DITTO_ERR_UNSUPPORTED);
    assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, value, axis_0, 1, &refused), DITTO_ERR_INVALID);
    ditto_value *made[] = { value, sum, mean, merged };
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_value_destroy(made[i]));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_4_8_slices_are_added_row_by_row_to_a_dense_destination(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    double zeros[8] = { 0 };
    ditto_tensor t = { .data = zeros, .dtype = DITTO_F64, .rank = 2, .shape = { 4, 2 } };
    ditto_variable *variable, *small;
    ditto_value *value = make_slices(strategy, 0), *to, *to_small, *dense;
    assert_ok(ditto_variable_create(strategy, &t, NULL, &variable));
    t.shape[0] = 2;
    assert_ok(ditto_variable_create(strategy, &t, NULL, &small));
    assert_ok(ditto_variable_value(variable, &to));
    assert_ok(ditto_variable_value(small, &to_small));
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value },
                                       &(ditto_destination){ .of = to }, 1, &dense));
    assert_ok(ditto_value_tensor(dense, &t));
    double want[8] = { 1, 2, 3 + 11 + 13 + 23, 4 + 12 + 14 + 24, 21, 22, 0, 0 };
    assert_memory_equal(t.data, want, sizeof want);
    assert_ok(ditto_value_destroy(dense));
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_MEAN, (const ditto_value *[]){ value },
                                       &(ditto_destination){ .of = to }, 1, &dense));
    assert_ok(ditto_value_tensor(dense, &t));
    assert_true(((double *)t.data)[2] == 50.0 / 3);
    assert_ok(ditto_value_destroy(dense));
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .of = to_small }, 1, &dense),
                  DITTO_ERR_RANGE);
    assert_message("a slice of row 2");
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .of = value }, 1, &dense),
                  DITTO_ERR_INVALID);
    assert_message("the destination's `of` is slices, which has no components");
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_MIN, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .of = to }, 1, &dense),
                  DITTO_ERR_UNSUPPORTED);
    ditto_value *huge = make_slices(strategy, (size_t)1 << 61), *once;
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ huge },
                                           &(ditto_destination){ .replica = 0 }, 1, &dense),
                  DITTO_ERR_RANGE);
    assert_ok(ditto_value_destroy(huge));
    /* All replicas share this result, so its sum over replicas is refused. */
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &once));
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ once },
                                           &(ditto_destination){ .of = to }, 1, &dense),
                  DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_MEAN, (const ditto_value *[]){ once },
                                       &(ditto_destination){ .of = to }, 1, &dense));
    assert_ok(ditto_value_tensor(dense, &t));
    assert_memory_equal(t.data, want, sizeof want);
    assert_ok(ditto_value_destroy(dense));
    assert_ok(ditto_value_destroy(once));
    ditto_value *made[] = { value, to, to_small };
    for (int i = 0; i < 3; i++)
        assert_ok(ditto_value_destroy(made[i]));
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_variable_destroy(small));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Checks the indices of all rows, and the first element of the third row. */
static void expect_slices(const ditto_strategy *strategy, const ditto_value *value, const int64_t *indices,
                          size_t rows, double element)
{
    ditto_slices s;
    size_t dense_rows;
    assert_int_equal(properties_of_value(value).kind, DITTO_VALUE_SLICES);
    assert_ok(ditto_value_slices(value, first_local(strategy), &s, &dense_rows));
    assert_int_equal(dense_rows, 0);
    assert_int_equal(s.rows, rows);
    assert_memory_equal(s.indices, indices, rows * sizeof *indices);
    assert_true(((double *)s.values)[4] == element);
}

static void rule_4_8_slices_stay_sparse_without_a_known_dense_destination(void **state)
{
    static const int64_t want[] = { 0, 1, 1, 1, 2, 1 };
    ditto_strategy *strategy = make_strategy(3, NULL);
    double zeros[8] = { 0 };
    ditto_tensor t = { .data = zeros, .dtype = DITTO_F64, .rank = 2, .shape = { 4, 2 } };
    ditto_tensor scalar = { .data = zeros, .dtype = DITTO_F64 };
    ditto_variable *variable, *number;
    ditto_value *value = make_slices(strategy, 0), *known = make_slices(strategy, 3), *to, *to_number,
                *out[4], *one;
    assert_ok(ditto_variable_create(strategy, &t, NULL, &variable));
    assert_ok(ditto_variable_create(strategy, &scalar, NULL, &number));
    assert_ok(ditto_variable_value(variable, &to));
    assert_ok(ditto_variable_value(number, &to_number));
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value },
                                       &(ditto_destination){ .replica = 1 }, 1, &one));
    expect_slices(strategy, one, want, 6, 11);
    assert_ok(ditto_value_destroy(one));
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_MEAN, (const ditto_value *[]){ value },
                                       &(ditto_destination){ .replica = 2 }, 1, &one));
    expect_slices(strategy, one, want, 6, 11.0 / 3);
    assert_ok(ditto_value_destroy(one));
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_MIN, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .replica = 0 }, 1, &one),
                  DITTO_ERR_UNSUPPORTED);
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .of = to_number }, 1, &one),
                  DITTO_ERR_SHAPE); /* the destination is dense and has another shape */
    ditto_destination places[4] = { { .replica = 0 }, { .of = to }, { .replica = 1 }, { .replica = 2 } };
    assert_ok(ditto_strategy_reduce_to(
        strategy, DITTO_SUM, (const ditto_value *[]){ value, value, known, value }, places, 4, out));
    expect_slices(strategy, out[0], want, 6, 11);
    expect_slices(strategy, out[3], want, 6, 11);
    for (int i = 1; i < 3; i++) { /* dense: sent to a variable, or with a known number of rows */
        assert_int_equal(properties_of_value(out[i]).kind, DITTO_VALUE_MIRRORED);
        if (i == 2 && !has_replica(strategy, 1))
            continue;
        assert_ok(ditto_value_tensor(out[i], &t));
        assert_int_equal(t.shape[0], i == 1 ? 4 : 3);
        assert_true(((double *)t.data)[2] == 3 + 11 + 13 + 23);
    }
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_value_destroy(out[i]));
    out[0] = NULL;
    places[1].of = to_number; /* one reduction fails, so no output is set */
    assert_status(ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value, value },
                                           places, 2, out),
                  DITTO_ERR_SHAPE);
    assert_null(out[0]);
    ditto_value *made[] = { value, known, to, to_number };
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_value_destroy(made[i]));
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_variable_destroy(number));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- Compared with the collectives of ditto/slices.h, bit for bit -- */

enum { TABLE_ROWS = 4 };

struct compared {
    struct report report;
    ditto_op op;
    ditto_slices in[64]; /* the input of each replica, which the test allocates */

    /* The results of ditto_all_reduce_slices with DITTO_SLICES_MERGE and with DITTO_SLICES_DENSE on
     * the first replica of this host. The second one has TABLE_ROWS rows. */
    int64_t indices[TABLE_ROWS];
    char *merged;
    char *table;
};

static ditto_status reduce_on_replica(ditto_replica *self, void *argument)
{
    struct compared *c = argument;
    const ditto_slices *in = &c->in[ditto_replica_id(self)];
    size_t bytes = TABLE_ROWS * in->row_count * ditto_dtype_bytes(in->dtype);
    int64_t indices[TABLE_ROWS];
    char *merged = calloc(1, bytes), *table = calloc(1, bytes);
    ditto_slices out = { indices, merged, TABLE_ROWS, in->row_count, in->dtype };
    ditto_status of_merge = ditto_all_reduce_slices(self, in, &out, c->op,
                                                    &OPTIONS(reduce, .flags = DITTO_SLICES_MERGE)),
                 of_table = add_slices_to_dense(self, in, table, TABLE_ROWS, c->op, NULL);
    if (ditto_replica_is_first_of_host(self)) {
        memcpy(c->indices, indices, sizeof indices);
        memcpy(c->merged, merged, bytes);
        memcpy(c->table, table, bytes);
    }
    free(merged);
    free(table);
    EXPECT(&c->report, of_merge == DITTO_OK);
    EXPECT(&c->report, of_table == DITTO_OK);
    return DITTO_OK;
}

/* Writes numbers whose sums need rounding and stay finite. No sum is -0, which an addition to 0 would
 * change. */
static void fill(ditto_dtype dtype, size_t count, uint64_t *seed, void *out)
{
    size_t parts = dtype == DITTO_C128 ? 2 * count : count;
    for (size_t i = 0; i < parts; i++) {
        uint64_t bits = test_random(seed);
        if (dtype == DITTO_F16)
            ((uint16_t *)out)[i] = (uint16_t)((bits & 0x8000) | (0x2800 + bits % 0x1000));
        else if (dtype == DITTO_BF16)
            ((uint16_t *)out)[i] = (uint16_t)((bits & 0x8000) | (0x3d00 + bits % 0x280));
        else
            ((double *)out)[i] = (double)(bits >> 11) * 0x1p-53 - 0.25;
    }
}

/* Gives the replicas `rows` slices of row 1 in all, and each replica also one of row 3. */
static void make_compared(struct compared *c, uint32_t n, size_t rows, size_t row_count, ditto_dtype dtype,
                          uint64_t *seed)
{
    size_t element_bytes = ditto_dtype_bytes(dtype);
    for (uint32_t r = 0; r < n; r++) {
        size_t own = rows / n + (r == 0 ? rows % n : 0) + 1;
        c->in[r] = (ditto_slices){ malloc(own * sizeof(int64_t)), malloc(own * row_count * element_bytes),
                                   own, row_count, dtype };
        for (size_t k = 0; k < own; k++)
            c->in[r].indices[k] = k == own / 2 ? 3 : 1;
        fill(dtype, own * row_count, seed, c->in[r].values);
    }
    c->merged = malloc(TABLE_ROWS * row_count * element_bytes);
    c->table = malloc(TABLE_ROWS * row_count * element_bytes);
}

static void free_compared(struct compared *c, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        free(c->in[r].indices);
        free(c->in[r].values);
    }
    free(c->merged);
    free(c->table);
}

/* Merges the slices, makes a dense array of them by SUM and by MEAN, and compares the results. */
static void compare(ditto_strategy *strategy, struct compared *c)
{
    ditto_value *value, *merged, *dense;
    ditto_slices s;
    ditto_tensor t;
    size_t bytes = c->in[0].row_count * ditto_dtype_bytes(c->in[0].dtype);
    assert_ok(ditto_strategy_value_from_slices(strategy, c->in + first_local(strategy), TABLE_ROWS, &value));
    for (c->op = DITTO_SUM; c->op <= DITTO_MEAN; c->op++) {
        run_all(strategy, reduce_on_replica, c, &c->report);
        assert_ok(ditto_strategy_reduce_to(strategy, c->op, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .replica = 0 }, 1, &dense));
        if (has_replica(strategy, 0)) {
            assert_ok(ditto_value_tensor(dense, &t));
            assert_int_equal(t.shape[0], TABLE_ROWS);
            assert_memory_equal(t.data, c->table, TABLE_ROWS * bytes);
        }
        assert_ok(ditto_value_destroy(dense));
        if (c->op != DITTO_SUM)
            continue;
        assert_ok(ditto_strategy_merge_slices(strategy, value, &merged));
        assert_ok(ditto_value_slices(merged, first_local(strategy), &s, NULL));
        assert_int_equal(s.rows, 2);
        assert_memory_equal(s.indices, c->indices, 2 * sizeof *s.indices);
        assert_memory_equal(s.values, c->merged, 2 * bytes);
        assert_ok(ditto_value_destroy(merged));
    }
    assert_ok(ditto_value_destroy(value));
}

static void rule_4_8_any_number_of_slices_may_have_one_index(void **state)
{
    static const size_t rows[] = { 1, 2, 5, 1024, 1025, 5000, 70000 };
    size_t most_rows = test_is_short() ? 5000 : 70000;
    static const ditto_dtype dtypes[] = { DITTO_F64, DITTO_F16, DITTO_C128 };
    uint64_t seed = test_seed(48);
    for (uint32_t n = 1; n <= 2; n++) {
        ditto_strategy *strategy = make_strategy(n, NULL);
        for (size_t i = 0; i < sizeof rows / sizeof *rows && rows[i] <= most_rows; i++)
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
                for (size_t row_count = 1; row_count <= 2000; row_count += 1999) {
                    struct compared c = { 0 };
                    if (row_count > 1 && rows[i] > 1025) /* would need too much memory */
                        continue;
                    make_compared(&c, n, rows[i], row_count, dtypes[d], &seed);
                    compare(strategy, &c);
                    free_compared(&c, n);
                }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_4_8_a_dense_mean_of_halves_is_rounded_once(void **state)
{
    uint64_t seed = test_seed(49);
    for (size_t i = 0; i < replica_counts_length; i++) {
        uint32_t n = replica_counts[i];
        ditto_strategy *strategy = make_strategy(n, NULL);
        for (int d = 0; d < 2; d++) {
            struct compared c = { 0 };
            make_compared(&c, n, 3 * (size_t)n, 500, d == 0 ? DITTO_F16 : DITTO_BF16, &seed);
            compare(strategy, &c);
            free_compared(&c, n);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_4_8_a_dense_mean_of_f16_is_finite_if_only_its_sum_is_too_large(void **state)
{
    const uint16_t most = 0x7bff; /* 65504, the largest f16 */
    for (size_t i = 0; i < replica_counts_length; i++) {
        uint32_t n = replica_counts[i];
        ditto_strategy *strategy = make_strategy(n, NULL);
        ditto_slices in[64];
        int64_t index = 0;
        uint16_t number = most;
        ditto_value *value, *dense;
        ditto_tensor t;
        for (uint32_t r = 0; r < n; r++)
            in[r] = (ditto_slices){ &index, &number, 1, 1, DITTO_F16 };
        assert_ok(ditto_strategy_value_from_slices(strategy, in + first_local(strategy), 1, &value));
        assert_ok(ditto_strategy_reduce_to(strategy, DITTO_MEAN, (const ditto_value *[]){ value },
                                           &(ditto_destination){ .replica = 0 }, 1, &dense));
        if (has_replica(strategy, 0)) {
            assert_ok(ditto_value_tensor(dense, &t));
            assert_memory_equal(t.data, &most, sizeof most);
        }
        assert_ok(ditto_value_destroy(dense));
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* The mean is a third, and 1 + 2^-60 is the sum, so the bits of all three results depend on the rounding. */
static void slices_have_the_same_bits_if_the_caller_rounds_upward(void **state)
{
    int64_t indices[2] = { 0, 1 };
    double values[3][2] = { { 1, 1 }, { 0x1p-60, 0 }, { 0, 0 } };
    ditto_slices in[3], s;
    ditto_value *value, *mean, *merged, *dense;
    ditto_tensor t;
    ditto_strategy *strategy = make_strategy(3, NULL);
    for (int r = 0; r < 3; r++)
        in[r] = (ditto_slices){ indices, values[r], 2, 1, DITTO_F64 };
    assert_ok(ditto_strategy_value_from_slices(strategy, in + first_local(strategy), 2, &value));
    int before = fegetround();
    assert_int_equal(fesetround(FE_UPWARD), 0);
    ditto_status reduced = ditto_strategy_reduce(strategy, DITTO_MEAN, value, NULL, 0, &mean),
                 merging = ditto_strategy_merge_slices(strategy, value, &merged),
                 to_dense = ditto_strategy_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value },
                                                     &(ditto_destination){ .replica = 0 }, 1, &dense);
    int after = fegetround();
    fesetround(before);
    assert_int_equal(after, FE_UPWARD);
    assert_ok(reduced);
    assert_ok(merging);
    assert_ok(to_dense);
    assert_ok(ditto_value_slices(mean, first_local(strategy), &s, NULL));
    assert_true(((double *)s.values)[0] == 0x1.5555555555555p-2);
    assert_ok(ditto_value_slices(merged, first_local(strategy), &s, NULL));
    assert_true(((double *)s.values)[0] == 1);
    if (has_replica(strategy, 0)) {
        assert_ok(ditto_value_tensor(dense, &t));
        assert_true(((double *)t.data)[0] == 1);
    }
    ditto_value *made[] = { value, mean, merged, dense };
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_value_destroy(made[i]));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_4_8_slices_are_concatenated_and_stay_sparse),
        cmocka_unit_test(rule_4_8_slices_are_added_row_by_row_to_a_dense_destination),
        cmocka_unit_test(rule_4_8_slices_stay_sparse_without_a_known_dense_destination),
        cmocka_unit_test(rule_4_8_any_number_of_slices_may_have_one_index),
        cmocka_unit_test(rule_4_8_a_dense_mean_of_halves_is_rounded_once),
        cmocka_unit_test(rule_4_8_a_dense_mean_of_f16_is_finite_if_only_its_sum_is_too_large),
        cmocka_unit_test(slices_have_the_same_bits_if_the_caller_rounds_upward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
