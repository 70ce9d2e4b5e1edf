/* tests/semantics/reductions/test_value_slices.c - docs/semantics.md, rule 4.8: reductions of slices. */
#include "semantics/reductions/make_values.h"

static void rule_4_8_slices_are_concatenated_and_stay_sparse(void **state)
{
    static const int64_t want[] = { 0, 1, 1, 1, 2, 1 };
    (void)state;
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_value *value = make_slices(strategy, 3), *sum, *mean, *merged;
    ditto_slices s;
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &sum));
    assert_int_equal(ditto_value_kind_of(sum), DITTO_VALUE_SLICES);
    assert_ok(ditto_value_slices(sum, 0, &s, NULL));
    assert_int_equal(s.rows, 6); /* duplicates are kept */
    assert_memory_equal(s.indices, want, sizeof want);
    assert_true(((double *)s.values)[4] == 11 && ((double *)s.values)[11] == 24);
    assert_ok(ditto_strategy_reduce(strategy, DITTO_MEAN, value, NULL, 0, &mean));
    assert_ok(ditto_value_slices(mean, 0, &s, NULL));
    assert_true(((double *)s.values)[4] == 11.0 / 3);
    assert_ok(ditto_strategy_merge_slices(strategy, sum, &merged));
    assert_ok(ditto_value_slices(merged, 0, &s, NULL));
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
    (void)state;
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
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, value, (ditto_destination){ .of = to }, &dense));
    assert_ok(ditto_value_tensor(dense, &t));
    double want[8] = { 1, 2, 3 + 11 + 13 + 23, 4 + 12 + 14 + 24, 21, 22, 0, 0 };
    assert_memory_equal(t.data, want, sizeof want);
    assert_ok(ditto_value_destroy(dense));
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_MEAN, value, (ditto_destination){ .of = to }, &dense));
    assert_ok(ditto_value_tensor(dense, &t));
    assert_true(((double *)t.data)[2] == 50.0 / 3);
    assert_ok(ditto_value_destroy(dense));
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_SUM, value, (ditto_destination){ .of = to_small }, &dense),
        DITTO_ERR_RANGE);
    assert_message("a slice of row 2");
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_SUM, value, (ditto_destination){ .of = value }, &dense),
        DITTO_ERR_INVALID);
    assert_message("the destination's `of` is slices, which has no components");
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_MIN, value, (ditto_destination){ .of = to }, &dense),
        DITTO_ERR_UNSUPPORTED);
    ditto_value *huge = make_slices(strategy, (size_t)1 << 61), *once;
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_SUM, huge, (ditto_destination){ .replica = 0 }, &dense),
        DITTO_ERR_RANGE);
    assert_ok(ditto_value_destroy(huge));
    /* All replicas share this result, so its sum over replicas is refused. */
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &once));
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_SUM, once, (ditto_destination){ .of = to }, &dense),
        DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_reduce_to(strategy, DITTO_MEAN, once, (ditto_destination){ .of = to }, &dense));
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
static void expect_slices(const ditto_value *value, const int64_t *indices, size_t rows, double element)
{
    ditto_slices s;
    size_t dense_rows;
    assert_int_equal(ditto_value_kind_of(value), DITTO_VALUE_SLICES);
    assert_ok(ditto_value_slices(value, 0, &s, &dense_rows));
    assert_int_equal(dense_rows, 0);
    assert_int_equal(s.rows, rows);
    assert_memory_equal(s.indices, indices, rows * sizeof *indices);
    assert_true(((double *)s.values)[4] == element);
}

static void rule_4_8_slices_stay_sparse_without_a_known_dense_destination(void **state)
{
    static const int64_t want[] = { 0, 1, 1, 1, 2, 1 };
    (void)state;
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
    assert_ok(
        ditto_strategy_reduce_to(strategy, DITTO_SUM, value, (ditto_destination){ .replica = 1 }, &one));
    expect_slices(one, want, 6, 11);
    assert_ok(ditto_value_destroy(one));
    assert_ok(
        ditto_strategy_reduce_to(strategy, DITTO_MEAN, value, (ditto_destination){ .replica = 2 }, &one));
    expect_slices(one, want, 6, 11.0 / 3);
    assert_ok(ditto_value_destroy(one));
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_MIN, value, (ditto_destination){ .replica = 0 }, &one),
        DITTO_ERR_UNSUPPORTED);
    assert_status(
        ditto_strategy_reduce_to(strategy, DITTO_SUM, value, (ditto_destination){ .of = to_number }, &one),
        DITTO_ERR_SHAPE); /* the destination is dense and has another shape */
    ditto_destination places[4] = { { .replica = 0 }, { .of = to }, { .replica = 1 }, { .replica = 2 } };
    assert_ok(ditto_strategy_batch_reduce_to(
        strategy, DITTO_SUM, (const ditto_value *[]){ value, value, known, value }, places, 4, out));
    expect_slices(out[0], want, 6, 11);
    expect_slices(out[3], want, 6, 11);
    for (int i = 1; i < 3; i++) { /* dense: sent to a variable, or with a known number of rows */
        assert_int_equal(ditto_value_kind_of(out[i]), DITTO_VALUE_MIRRORED);
        assert_ok(ditto_value_tensor(out[i], &t));
        assert_int_equal(t.shape[0], i == 1 ? 4 : 3);
        assert_true(((double *)t.data)[2] == 3 + 11 + 13 + 23);
    }
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_value_destroy(out[i]));
    out[0] = NULL;
    places[1].of = to_number; /* one reduction fails, so no output is set */
    assert_status(ditto_strategy_batch_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ value, value },
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_4_8_slices_are_concatenated_and_stay_sparse),
        cmocka_unit_test(rule_4_8_slices_are_added_row_by_row_to_a_dense_destination),
        cmocka_unit_test(rule_4_8_slices_stay_sparse_without_a_known_dense_destination),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
