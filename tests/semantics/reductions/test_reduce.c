/* tests/semantics/reductions/test_reduce.c - docs/semantics.md, rules 4.1 to 4.5: reduce along replicas and
 * axes. */
#include "support/as_hosts.h"
#include "semantics/reductions/make_values.h"

#include "sync/reference.h"

#include <math.h>

/* Returns the number of a value, and destroys the value. */
static double number_of(ditto_value *value)
{
    double number;
    assert_ok(ditto_value_f64(value, &number));
    assert_ok(ditto_value_destroy(value));
    return number;
}

static double reduced(ditto_strategy *strategy, ditto_op op, const ditto_value *value, const int32_t *axes,
                      uint32_t num)
{
    ditto_value *result;
    assert_ok(ditto_strategy_reduce(strategy, op, value, axes, num, &result));
    assert_int_equal(properties_of_value(result).kind, DITTO_VALUE_PLAIN);
    return number_of(result);
}

static void rule_4_1_without_axes_replicas_combine_elementwise(void **state)
{
    static const struct {
        ditto_op op;
        double want;
    } cases[] = {
        { DITTO_SUM, 3 + 7 + 11 }, { DITTO_MEAN, 7 }, { DITTO_MIN, 3 }, { DITTO_MAX, 11 }, { DITTO_PROD, 231 }
    };
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_value *value = counting(strategy, (const size_t[]){ 4, 4, 4 }), *result;
    ditto_tensor t;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(ditto_strategy_reduce(strategy, cases[i].op, value, NULL, 0, &result));
        assert_ok(ditto_value_tensor(result, &t));
        assert_true(t.rank == 1 && t.shape[0] == 4);
        assert_true(((double *)t.data)[3] == cases[i].want);
        assert_ok(ditto_value_destroy(result));
    }
    assert_status(ditto_strategy_reduce(strategy, DITTO_XOR, value, NULL, 0, &result), DITTO_ERR_UNSUPPORTED);
    assert_status(ditto_strategy_reduce(strategy, (ditto_op)77, value, NULL, 0, &result), DITTO_ERR_RANGE);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_4_2_the_mean_is_never_a_mean_of_means(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *value = counting(strategy, (const size_t[]){ 4, 2 }), *result;
    assert_true(reduced(strategy, DITTO_MEAN, value, axis_0, 1) == 2.5);
    assert_true(reduced(strategy, DITTO_SUM, value, axis_0, 1) == 15);
    assert_true(reduced(strategy, DITTO_MIN, value, axis_0, 1) == 0);
    assert_true(reduced(strategy, DITTO_MAX, value, axis_0, 1) == 5);
    assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &result), DITTO_ERR_SHAPE);
    assert_message("dimension 0 is 2 on replica 1 and 4 on replica 0");
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_4_2_the_mean_of_integers_is_f64_and_that_of_no_elements_is_nan(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    int32_t a[] = { 1, 2 }, b[] = { 4 };
    ditto_tensor parts[] = { { .data = a, .dtype = DITTO_I32, .rank = 1, .shape = { 2 } },
                             { .data = b, .dtype = DITTO_I32, .rank = 1, .shape = { 1 } } };
    ditto_tensor t;
    ditto_value *value, *result;
    assert_ok(ditto_strategy_value_from_tensors(strategy, parts + first_local(strategy), 1, &value));
    assert_ok(ditto_strategy_reduce(strategy, DITTO_MEAN, value, axis_0, 1, &result));
    assert_ok(ditto_value_tensor(result, &t));
    assert_int_equal(t.dtype, DITTO_F64);
    assert_true(*(double *)t.data == 7.0 / 3);
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_value_destroy(value));
    parts[0].rank = parts[1].rank = 0; /* the same for a mean over replicas only */
    parts[0].shape[0] = parts[1].shape[0] = 0;
    assert_ok(ditto_strategy_value_from_tensors(strategy, parts + first_local(strategy), 1, &value));
    assert_true(reduced(strategy, DITTO_MEAN, value, NULL, 0) == 2.5);
    assert_ok(ditto_value_destroy(value));
    value = counting(strategy, (const size_t[]){ 0, 0 });
    assert_true(isnan(reduced(strategy, DITTO_MEAN, value, axis_0, 1)));
    assert_true(reduced(strategy, DITTO_SUM, value, axis_0, 1) == 0);
    assert_true(reduced(strategy, DITTO_PROD, value, axis_0, 1) == 1);
    assert_true(reduced(strategy, DITTO_MIN, value, axis_0, 1) == INFINITY);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_4_3_negative_axes_count_from_the_end_and_none_is_given_twice(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *value = counting(strategy, (const size_t[]){ 4, 2 }), *result;
    assert_true(reduced(strategy, DITTO_SUM, value, (const int32_t[]){ -1 }, 1) == 15);
    /* With 0 axes the shapes must be equal. */
    assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, value, axis_0, 0, &result), DITTO_ERR_SHAPE);
    assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, value, (const int32_t[]){ 1 }, 1, &result),
                  DITTO_ERR_RANGE);
    assert_message("axis 1 of a tensor of rank 1");
    assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, value, (const int32_t[]){ -2 }, 1, &result),
                  DITTO_ERR_RANGE);
    assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, value, (const int32_t[]){ 0, -1 }, 2, &result),
                  DITTO_ERR_INVALID);
    assert_message("twice");
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Tensors without elements may have shapes whose results are too large. */
static void results_that_no_memory_holds_are_refused(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_tensor wide = { .dtype = DITTO_I8, .rank = 2, .shape = { (size_t)1 << 61, 0 } },
                 tall = { .dtype = DITTO_I8, .rank = 2, .shape = { PTRDIFF_MAX, 0 } };
    ditto_value *value, *result;
    assert_ok(ditto_strategy_value_from_tensors(strategy, (ditto_tensor[]){ wide, wide, wide }, 1, &value));
    assert_status(ditto_strategy_reduce(strategy, DITTO_MEAN, value, (const int32_t[]){ 1 }, 1, &result),
                  DITTO_ERR_RANGE);
    assert_message("2305843009213693952 elements of f64 are more bytes than an object can have");
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_value_from_tensors(strategy, (ditto_tensor[]){ tall, tall, tall }, 1, &value));
    assert_status(ditto_strategy_gather(strategy, value, 0, &result), DITTO_ERR_RANGE);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Adds the sums of blocks a to b - 1 in the order of the tree. */
static float tree_of(const float *sums, size_t a, size_t b)
{
    if (b - a == 1)
        return sums[a];
    size_t m = a + (b - a + 1) / 2;
    float left = tree_of(sums, a, m);
    return left + tree_of(sums, m, b);
}

/* Sums a column as docs/semantics.md says, one element at a time. */
static float column_sum(const float *column, size_t rows)
{
    float sums[1024], block[DITTO_BLOCK_ELEMENTS];
    size_t blocks = 0;
    for (size_t first = 0; first < rows; first += DITTO_BLOCK_ELEMENTS, blocks++) {
        size_t m = rows - first < DITTO_BLOCK_ELEMENTS ? rows - first : DITTO_BLOCK_ELEMENTS;
        memcpy(block, column + first, m * sizeof *block);
        while (m > 1) {
            for (size_t j = 0; j + (m + 1) / 2 < m; j++)
                block[j] += block[j + (m + 1) / 2];
            m = (m + 1) / 2;
        }
        sums[blocks] = block[0];
    }
    return tree_of(sums, 0, blocks);
}

/* Splits an array of shape [a, b, c] along its first axis over n replicas, sums it along the axes in `mask`,
 * and compares each element of the result with column_sum. */
static void check_axes(uint32_t n, size_t a, size_t b, size_t c, uint32_t mask, uint64_t *seed)
{
    ditto_strategy *strategy = make_strategy(n, NULL);
    float *all = malloc(a * b * c * sizeof *all), *column = malloc(a * b * c * sizeof *column);
    ditto_tensor *parts = calloc(n, sizeof *parts), t;
    ditto_value *value, *result;
    int32_t axes[3];
    uint32_t num = 0;
    size_t shape[3] = { a, b, c }, first = 0;
    for (size_t i = 0; i < a * b * c; i++)
        all[i] = ldexpf((float)(test_random(seed) % 1000) - 500, (int)(test_random(seed) % 20) - 10);
    for (uint32_t r = 0; r < n; r++) { /* parts are uneven, and blocks reach over their ends */
        size_t rows = r + 1 == n ? a - first : test_random(seed) % (a - first + 1);
        parts[r] = (ditto_tensor){
            .data = all + first * b * c, .dtype = DITTO_F32, .rank = 3, .shape = { rows, b, c }
        };
        first += rows;
    }
    for (int32_t d = 0; d < 3; d++)
        if (mask & 1u << d)
            axes[num++] = d;
    assert_ok(ditto_strategy_value_from_tensors(strategy, parts + first_local(strategy), 1, &value));
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, axes, num, &result));
    assert_ok(ditto_value_tensor(result, &t));
    assert_int_equal(t.rank, 3 - num);
    size_t kept[3], reduced_shape[3], k = 0;
    for (int d = 0; d < 3; d++) {
        kept[d] = mask & 1u << d ? 1 : shape[d];
        reduced_shape[d] = mask & 1u << d ? shape[d] : 1;
    }
    for (size_t x = 0; x < kept[0]; x++)
        for (size_t y = 0; y < kept[1]; y++)
            for (size_t z = 0; z < kept[2]; z++, k++) {
                size_t rows = 0;
                for (size_t u = 0; u < reduced_shape[0]; u++)
                    for (size_t v = 0; v < reduced_shape[1]; v++)
                        for (size_t w = 0; w < reduced_shape[2]; w++)
                            column[rows++] = all[((x + u) * b + y + v) * c + z + w];
                float want = column_sum(column, rows), found = ((float *)t.data)[k];
                if (memcmp(&want, &found, sizeof want) != 0)
                    fail_msg("%u replicas, %zu x %zu x %zu, axes %u, element %zu: %g, not %g", n, a, b, c,
                             mask, k, (double)found, (double)want);
            }
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_value_destroy(value));
    free(parts);
    free(column);
    free(all);
    assert_ok(ditto_strategy_destroy(strategy));
}

static void sums_along_axes_have_the_bits_of_the_sum_over_blocks(void **state)
{
    /* The first axis is in every mask, because it is split over the replicas. */
    static const uint32_t masks[] = { 1, 3, 5, 7 };
    uint64_t seed = test_seed(11);
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t m = 0; m < 4; m++) {
            check_axes(replica_counts[k], 40, 7, 5, masks[m], &seed);
            check_axes(replica_counts[k], 2500, 3, 2, masks[m], &seed);
            check_axes(replica_counts[k], 1500, 2, 300, masks[m], &seed); /* 2 to 8 replicas share the work */
        }
}

static void rule_4_4_a_value_that_all_replicas_share_is_not_counted_n_times(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL), *alone = make_strategy(1, NULL);
    double numbers[] = { 1, 2, 4 };
    ditto_tensor t = { .data = numbers, .dtype = DITTO_F64, .rank = 1, .shape = { 3 } };
    ditto_value *plain, *mirrored, *result, *like = counting(strategy, (const size_t[]){ 1, 1, 1 });
    ditto_destination one = { .replica = 1 }, all = { .of = like };
    assert_ok(ditto_strategy_value(strategy, &t, &plain));
    /* Over several hosts each host reads its own copy, so each must have one. */
    assert_ok(ditto_strategy_broadcast_to(
        strategy, &t, num_local(strategy) < ditto_strategy_num_replicas(strategy) ? all : one, &mirrored));
    ditto_value *both[] = { plain, mirrored };
    for (int i = 0; i < 2; i++) {
        assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, both[i], NULL, 0, &result),
                      DITTO_ERR_INVALID);
        assert_message("would count it 3 times");
        assert_status(ditto_strategy_reduce(strategy, DITTO_PROD, both[i], NULL, 0, &result),
                      DITTO_ERR_INVALID);
        assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, both[i], axis_0, 1, &result),
                      DITTO_ERR_INVALID);
        for (ditto_op op = DITTO_MEAN; op <= DITTO_MAX; op++) {
            assert_ok(ditto_strategy_reduce(strategy, op, both[i], NULL, 0, &result));
            assert_ok(ditto_value_tensor(result, &t));
            assert_memory_equal(t.data, numbers, sizeof numbers);
            assert_ok(ditto_value_destroy(result));
        }
        assert_true(reduced(strategy, DITTO_MEAN, both[i], axis_0, 1) == 7.0 / 3);
        assert_true(reduced(strategy, DITTO_MAX, both[i], axis_0, 1) == 4);
        assert_ok(ditto_value_destroy(both[i]));
    }
    t = (ditto_tensor){ .data = numbers, .dtype = DITTO_F64, .rank = 1, .shape = { 3 } };
    assert_ok(ditto_strategy_value(alone, &t, &plain)); /* one replica: the result is the value itself */
    assert_ok(ditto_strategy_reduce(alone, DITTO_SUM, plain, NULL, 0, &result));
    assert_ptr_equal(result, plain);
    assert_ok(ditto_value_destroy(result));
    assert_true(reduced(alone, DITTO_SUM, plain, axis_0, 1) == 7);
    assert_ok(ditto_value_destroy(plain));
    assert_ok(ditto_value_destroy(like));
    assert_ok(ditto_strategy_destroy(alone));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_4_5_a_nest_is_reduced_leaf_by_leaf(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *a = counting(strategy, (const size_t[]){ 4, 2 }),
                *b = counting(strategy, (const size_t[]){ 1, 1 });
    ditto_value *nest, *result;
    const ditto_value *member;
    double number;
    assert_ok(ditto_strategy_nest(strategy, (const char *[]){ "a", "b" }, (const ditto_value *[]){ a, b }, 2,
                                  &nest));
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, nest, axis_0, 1, &result));
    assert_ok(ditto_value_member(result, "a", &member));
    assert_ok(ditto_value_f64(member, &number));
    assert_true(number == 15);
    assert_ok(ditto_value_member(result, "b", &member));
    assert_ok(ditto_value_f64(member, &number));
    assert_true(number == 1);
    assert_ok(ditto_value_destroy(result));
    assert_status(ditto_strategy_reduce(strategy, DITTO_SUM, nest, NULL, 0, &result), DITTO_ERR_SHAPE);
    assert_ok(ditto_value_destroy(nest));
    assert_ok(ditto_value_destroy(a));
    assert_ok(ditto_value_destroy(b));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Each element has the bits of the tree, which are those of ditto_all_reduce. */
static void reductions_have_the_bits_of_all_reduce(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        size_t count = 30000;
        uint64_t seed = test_seed(7);
        float *numbers = malloc(n * count * sizeof *numbers);
        ditto_tensor *t = calloc(n, sizeof *t), found;
        const void **sources = calloc(n, sizeof *sources);
        ditto_value *value, *sum;
        for (size_t i = 0; i < n * count; i++)
            numbers[i] = ldexpf((float)(test_random(&seed) % 1000) - 500,
                                (int)(test_random(&seed) % 40) - 20);
        for (uint32_t r = 0; r < n; r++) {
            t[r] = (ditto_tensor){
                .data = numbers + r * count, .dtype = DITTO_F32, .rank = 1, .shape = { count }
            };
        }
        assert_ok(ditto_strategy_value_from_tensors(strategy, t + first_local(strategy), 1, &value));
        assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &sum));
        assert_ok(ditto_value_tensor(sum, &found));
        for (size_t i = 0; i < count; i++) {
            float want;
            for (uint32_t r = 0; r < n; r++)
                sources[r] = (float *)t[r].data + i;
            reference_reduce(DITTO_F32, DITTO_SUM, sources, n, &want);
            assert_memory_equal(&want, (float *)found.data + i, sizeof want);
        }
        assert_ok(ditto_value_destroy(sum));
        assert_ok(ditto_value_destroy(value));
        free(sources);
        free(t);
        free(numbers);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_4_1_without_axes_replicas_combine_elementwise),
        cmocka_unit_test(rule_4_2_the_mean_is_never_a_mean_of_means),
        cmocka_unit_test(rule_4_2_the_mean_of_integers_is_f64_and_that_of_no_elements_is_nan),
        cmocka_unit_test(rule_4_3_negative_axes_count_from_the_end_and_none_is_given_twice),
        cmocka_unit_test(results_that_no_memory_holds_are_refused),
        cmocka_unit_test(sums_along_axes_have_the_bits_of_the_sum_over_blocks),
        cmocka_unit_test(rule_4_4_a_value_that_all_replicas_share_is_not_counted_n_times),
        cmocka_unit_test(rule_4_5_a_nest_is_reduced_leaf_by_leaf),
        cmocka_unit_test(reductions_have_the_bits_of_all_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
