/* tests/semantics/test_reduce.c - docs/semantics.md, sections 4 and 5: reduce, reduce_to, broadcast_to,
 * gather, all_gather. */
#include "support/support.h"

#include "sync/reference.h"
#include "values/values.h"

#include <math.h>

/* Returns a per-replica value of f64 vectors. Replica r has rows[r] elements. The elements of all replicas
 * are 0, 1, 2, ... in order. */
static ditto_value *counting(ditto_strategy *strategy, const size_t *rows)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    size_t total = 0;
    static double numbers[65536];
    ditto_tensor *t = calloc(n, sizeof *t);
    ditto_value *value;
    for (uint32_t r = 0; r < n; r++) {
        t[r] = (ditto_tensor){ .data = numbers + total, .dtype = DITTO_F64, .rank = 1, .shape = { rows[r] } };
        for (size_t i = 0; i < rows[r]; i++, total++)
            numbers[total] = (double)total;
    }
    assert_ok(ditto_strategy_value_from_tensors(strategy, t, 1, &value));
    free(t);
    return value;
}

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
    assert_int_equal(ditto_value_kind_of(result), DITTO_VALUE_PLAIN);
    return number_of(result);
}

static const int32_t axis_0[] = { 0 };

static void rule_4_1_without_axes_replicas_combine_elementwise(void **state)
{
    static const struct {
        ditto_op op;
        double want;
    } cases[] = {
        { DITTO_SUM, 3 + 7 + 11 }, { DITTO_MEAN, 7 }, { DITTO_MIN, 3 }, { DITTO_MAX, 11 }, { DITTO_PROD, 231 }
    };
    (void)state;
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
    (void)state;
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
    (void)state;
    ditto_strategy *strategy = make_strategy(2, NULL);
    int32_t a[] = { 1, 2 }, b[] = { 4 };
    ditto_tensor parts[] = { { .data = a, .dtype = DITTO_I32, .rank = 1, .shape = { 2 } },
                             { .data = b, .dtype = DITTO_I32, .rank = 1, .shape = { 1 } } };
    ditto_tensor t;
    ditto_value *value, *result;
    assert_ok(ditto_strategy_value_from_tensors(strategy, parts, 1, &value));
    assert_ok(ditto_strategy_reduce(strategy, DITTO_MEAN, value, axis_0, 1, &result));
    assert_ok(ditto_value_tensor(result, &t));
    assert_int_equal(t.dtype, DITTO_F64);
    assert_true(*(double *)t.data == 7.0 / 3);
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_value_destroy(value));
    parts[0].rank = parts[1].rank = 0; /* the same for a mean over replicas only */
    parts[0].shape[0] = parts[1].shape[0] = 0;
    assert_ok(ditto_strategy_value_from_tensors(strategy, parts, 1, &value));
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
    (void)state;
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
    assert_ok(ditto_strategy_value_from_tensors(strategy, parts, 1, &value));
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
    (void)state;
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t m = 0; m < 4; m++) {
            check_axes(replica_counts[k], 40, 7, 5, masks[m], &seed);
            check_axes(replica_counts[k], 2500, 3, 2, masks[m], &seed);
            check_axes(replica_counts[k], 1500, 2, 300, masks[m], &seed); /* many tiles, for all replicas */
        }
}

static void rule_4_4_a_value_that_all_replicas_share_is_not_counted_n_times(void **state)
{
    (void)state;
    ditto_strategy *strategy = make_strategy(3, NULL), *alone = make_strategy(1, NULL);
    double numbers[] = { 1, 2, 4 };
    ditto_tensor t = { .data = numbers, .dtype = DITTO_F64, .rank = 1, .shape = { 3 } };
    ditto_value *plain, *mirrored, *result;
    assert_ok(ditto_strategy_value(strategy, &t, &plain));
    assert_ok(ditto_strategy_broadcast_to(strategy, &t, (ditto_destination){ .replica = 1 }, &mirrored));
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
    assert_ok(ditto_strategy_destroy(alone));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_4_5_a_nest_is_reduced_leaf_by_leaf(void **state)
{
    (void)state;
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

/* -- reductions to destinations -- */

static ditto_variable *make_variable(ditto_strategy *strategy, ditto_copies copies)
{
    double zeros[2] = { 0 };
    ditto_tensor t = { .data = zeros, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_variable *variable;
    options.aggregation = DITTO_AGGREGATE_SUM;
    options.copies = copies;
    assert_ok(ditto_variable_create(strategy, &t, &options, &variable));
    return variable;
}

static void expect_vector(const ditto_value *value, uint32_t replica, double x, double y)
{
    ditto_tensor t;
    assert_ok(ditto_value_component(value, replica, &t));
    assert_true(t.shape[0] == 2 && ((double *)t.data)[0] == x && ((double *)t.data)[1] == y);
}

static void rule_4_6_a_reduction_is_stored_where_its_destination_is(void **state)
{
    (void)state;
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        size_t rows[64];
        for (uint32_t r = 0; r < n; r++)
            rows[r] = 2;
        double x = (double)n * (n - 1), y = x + n, old[2]; /* 0 + 2 + 4 ..., 1 + 3 + 5 ... */
        ditto_value *value = counting(strategy, rows), *all, *one, *shared, *to_variable;
        ditto_variable *variable = make_variable(strategy, DITTO_COPIES_PER_REPLICA);
        assert_ok(ditto_variable_value(variable, &to_variable));
        assert_ok(
            ditto_strategy_reduce_to(strategy, DITTO_SUM, value, (ditto_destination){ .of = value }, &all));
        assert_int_equal(ditto_value_kind_of(all), DITTO_VALUE_MIRRORED);
        ditto_tensor a, b;
        for (uint32_t r = 0; r < n; r++) {
            expect_vector(all, r, x, y);
            assert_ok(ditto_value_component(all, r, &a));
            assert_ok(ditto_value_component(all, 0, &b));
            assert_true(r == 0 || a.data != b.data); /* each replica has its own */
        }
        assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, value,
                                           (ditto_destination){ .replica = n - 1 }, &one));
        expect_vector(one, 0, x, y);
        for (uint32_t r = 0; r < n; r++) /* only replica n - 1 has a component */
            assert_int_equal(one->part[r].rank == DTI_NO_PART, r != n - 1);
        assert_ok(ditto_strategy_reduce_to(strategy, DITTO_MEAN, value,
                                           (ditto_destination){ .of = to_variable }, &shared));
        expect_vector(shared, n - 1, x / n, y / n);
        assert_ok(ditto_variable_read(variable, old, sizeof old));
        assert_true(old[0] == 0 && old[1] == 0); /* the variable itself is not changed */
        ditto_value *made[] = { all, one, shared, to_variable, value };
        for (int i = 0; i < 5; i++)
            assert_ok(ditto_value_destroy(made[i]));
        assert_ok(ditto_variable_destroy(variable));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_4_6_a_batch_gives_the_results_of_single_calls_in_order(void **state)
{
    (void)state;
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_value *a = counting(strategy, (const size_t[]){ 2, 2, 2 }),
                *b = counting(strategy, (const size_t[]){ 5, 5, 5 });
    ditto_value *out[2] = { NULL }, *single;
    ditto_destination places[2] = { { .of = a }, { .replica = 2 } };
    ditto_tensor t, s;
    assert_ok(
        ditto_strategy_batch_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ a, b }, places, 2, out));
    for (int i = 0; i < 2; i++) {
        assert_ok(ditto_strategy_reduce_to(strategy, DITTO_SUM, i == 0 ? a : b, places[i], &single));
        assert_ok(ditto_value_tensor(out[i], &t));
        assert_ok(ditto_value_tensor(single, &s));
        assert_int_equal(ditto_tensor_bytes(&t), ditto_tensor_bytes(&s));
        assert_memory_equal(t.data, s.data, ditto_tensor_bytes(&t));
        assert_ok(ditto_value_destroy(single));
        assert_ok(ditto_value_destroy(out[i]));
        out[i] = NULL;
    }
    assert_status(
        ditto_strategy_batch_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ a }, places, 0, out),
        DITTO_ERR_INVALID);
    ditto_value *uneven = counting(strategy, (const size_t[]){ 1, 2, 2 });
    assert_status(ditto_strategy_batch_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ a, uneven },
                                                 places, 2, out),
                  DITTO_ERR_SHAPE);
    assert_null(out[0]); /* no output is set */
    places[1].replica = 3;
    assert_status(
        ditto_strategy_batch_reduce_to(strategy, DITTO_SUM, (const ditto_value *[]){ a, b }, places, 2, out),
        DITTO_ERR_RANGE);
    assert_ok(ditto_value_destroy(a));
    assert_ok(ditto_value_destroy(b));
    assert_ok(ditto_value_destroy(uneven));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_4_7_broadcast_to_makes_one_copy_per_destination(void **state)
{
    (void)state;
    ditto_strategy *strategy = make_strategy(3, NULL);
    double pair[] = { 8, 9 };
    ditto_tensor t = { .data = pair, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } }, a, b;
    ditto_value *like = counting(strategy, (const size_t[]){ 1, 1, 1 }), *mirrored;
    assert_ok(ditto_strategy_broadcast_to(strategy, &t, (ditto_destination){ .of = like }, &mirrored));
    for (uint32_t r = 0; r < 3; r++)
        expect_vector(mirrored, r, 8, 9);
    assert_ok(ditto_value_component(mirrored, 1, &a));
    assert_ok(ditto_value_component(mirrored, 2, &b));
    assert_true(a.data != b.data && a.data != pair);
    assert_ok(ditto_value_destroy(mirrored));
    assert_ok(ditto_value_destroy(like));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- slices -- */

/* Replica r has the rows r and 1, with the values 10 r + 1, 10 r + 2 and so on. */
static ditto_value *make_slices(ditto_strategy *strategy, size_t dense_rows)
{
    static int64_t indices[3][2] = { { 0, 1 }, { 1, 1 }, { 2, 1 } };
    static double values[3][4] = { { 1, 2, 3, 4 }, { 11, 12, 13, 14 }, { 21, 22, 23, 24 } };
    ditto_slices slices[3];
    ditto_value *value;
    for (int r = 0; r < 3; r++)
        slices[r] = (ditto_slices){ indices[r], values[r], 2, 2, DITTO_F64 };
    assert_ok(ditto_strategy_value_from_slices(strategy, slices, dense_rows, &value));
    return value;
}

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
    assert_message("places.of names no places, because it is slices");
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

static void expect_slices(const ditto_value *value, const int64_t *indices, size_t rows, double third)
{
    ditto_slices s;
    size_t dense_rows;
    assert_int_equal(ditto_value_kind_of(value), DITTO_VALUE_SLICES);
    assert_ok(ditto_value_slices(value, 0, &s, &dense_rows));
    assert_int_equal(dense_rows, 0);
    assert_int_equal(s.rows, rows);
    assert_memory_equal(s.indices, indices, rows * sizeof *indices);
    assert_true(((double *)s.values)[4] == third);
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

/* -- gather -- */

/* Replica r has shape [r + 1, 2], or [2, r + 1] for axis 1. Its element i is 1000 r + i. */
static ditto_value *ragged(ditto_strategy *strategy, uint32_t axis)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    static int32_t numbers[64][130];
    ditto_tensor t[64];
    ditto_value *value;
    for (uint32_t r = 0; r < n; r++) {
        for (int32_t i = 0; i < 130; i++)
            numbers[r][i] = (int32_t)(1000 * r) + i;
        t[r] = (ditto_tensor){ .data = numbers[r], .dtype = DITTO_I32, .rank = 2 };
        t[r].shape[axis] = r + 1;
        t[r].shape[1 - axis] = 2;
    }
    assert_ok(ditto_strategy_value_from_tensors(strategy, t, 1, &value));
    return value;
}

/* Returns true if t is the components of ragged, concatenated along `axis`. */
static bool is_gathered(const ditto_tensor *t, uint32_t n, uint32_t axis)
{
    size_t entries = (size_t)n * (n + 1) / 2;
    bool right = t->rank == 2 && t->shape[axis] == entries && t->shape[1 - axis] == 2;
    for (size_t x = 0; right && x < t->shape[0]; x++)
        for (size_t y = 0; right && y < t->shape[1]; y++) {
            size_t along = axis == 0 ? x : y, across = axis == 0 ? y : x, r = 0;
            while (along > r)
                along -= ++r;
            size_t place = axis == 0 ? along * 2 + across : across * (r + 1) + along;
            right = ((int32_t *)t->data)[x * t->shape[1] + y] == (int32_t)(1000 * r + place);
        }
    return right;
}

static void rule_5_1_gather_concatenates_along_an_axis(void **state)
{
    (void)state;
    for (size_t k = 0; k < replica_counts_length; k++)
        for (uint32_t axis = 0; axis < 2; axis++) {
            ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
            ditto_value *value = ragged(strategy, axis), *whole;
            ditto_tensor t;
            assert_ok(ditto_strategy_gather(strategy, value, axis, &whole));
            assert_ok(ditto_value_tensor(whole, &t));
            assert_true(is_gathered(&t, replica_counts[k], axis));
            assert_ok(ditto_value_destroy(whole));
            assert_ok(ditto_value_destroy(value));
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

static void rule_5_1_errors_of_gather_have_their_own_messages(void **state)
{
    (void)state;
    ditto_strategy *strategy = make_strategy(3, NULL);
    double x[3] = { 1, 2, 3 };
    ditto_tensor t[3];
    ditto_value *scalars, *value = ragged(strategy, 0), *whole;
    for (int r = 0; r < 3; r++)
        t[r] = (ditto_tensor){ .data = &x[r], .dtype = DITTO_F64 };
    assert_ok(ditto_strategy_value_from_tensors(strategy, t, 1, &scalars));
    assert_status(ditto_strategy_gather(strategy, scalars, 0, &whole), DITTO_ERR_SHAPE);
    assert_message("scalars");
    assert_status(ditto_strategy_gather(strategy, value, 1, &whole), DITTO_ERR_SHAPE);
    assert_message("dimension 0 is 2 on replica 1 and 1 on replica 0");
    assert_status(ditto_strategy_gather(strategy, value, 2, &whole), DITTO_ERR_RANGE);
    assert_message("axis 2 of tensors of rank 2");
    assert_ok(ditto_value_destroy(scalars));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_5_2_nests_are_gathered_leaf_by_leaf_and_slices_are_refused(void **state)
{
    (void)state;
    ditto_strategy *strategy = make_strategy(3, NULL);
    double number = 4;
    ditto_tensor t = { .data = &number, .dtype = DITTO_F64 };
    ditto_value *value = ragged(strategy, 0), *plain, *nest, *whole, *slices = make_slices(strategy, 0);
    const ditto_value *member;
    assert_ok(ditto_strategy_value(strategy, &t, &plain));
    assert_ok(ditto_strategy_nest(strategy, NULL, (const ditto_value *[]){ value, plain }, 2, &nest));
    assert_ok(ditto_strategy_gather(strategy, nest, 0, &whole));
    assert_ok(ditto_value_member(whole, "0", &member));
    assert_ok(ditto_value_tensor(member, &t));
    assert_true(is_gathered(&t, 3, 0));
    assert_ok(ditto_value_member(whole, "1", &member));
    assert_ptr_equal(member, plain);
    assert_ok(ditto_value_destroy(whole));
    assert_status(ditto_strategy_gather(strategy, slices, 0, &whole), DITTO_ERR_UNSUPPORTED);
    ditto_value *made[] = { value, plain, nest, slices };
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_value_destroy(made[i]));
    assert_ok(ditto_strategy_destroy(strategy));
}

struct gathering {
    struct report report;
    uint32_t axis;
};

static ditto_status gather_inside(ditto_replica *self, void *argument)
{
    struct gathering *g = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    int32_t numbers[130];
    ditto_tensor own = { .data = numbers, .dtype = DITTO_I32, .rank = 2 }, whole;
    own.shape[g->axis] = id + 1;
    own.shape[1 - g->axis] = 2;
    for (int32_t i = 0; i < 130; i++)
        numbers[i] = (int32_t)(1000 * id) + i;
    EXPECT(&g->report, ditto_all_gather_tensor(self, &own, g->axis, &whole) == DITTO_OK);
    EXPECT(&g->report, is_gathered(&whole, n, g->axis));
    EXPECT(&g->report, ditto_free(self, whole.data) == DITTO_OK); /* the replica owns the memory */
    if (n > 1) { /* all replicas get the error, and the run continues */
        own.shape[1 - g->axis] = id == 1 ? 1 : 2;
        EXPECT(&g->report, ditto_all_gather_tensor(self, &own, g->axis, &whole) == DITTO_ERR_SHAPE);
        own.rank = id == 1 ? 1 : 2;
        own.shape[0] = own.shape[1] = 1;
        EXPECT(&g->report, ditto_all_gather_tensor(self, &own, 0, &whole) == DITTO_ERR_SHAPE);
        own.rank = 2;
    }
    own.shape[0] = own.shape[1] = 1;
    EXPECT(&g->report, ditto_all_gather_tensor(self, &own, 2, &whole) == DITTO_ERR_RANGE);
    own.rank = 0;
    own.shape[0] = 0;
    EXPECT(&g->report, ditto_all_gather_tensor(self, &own, 0, &whole) == DITTO_ERR_SHAPE);
    return ditto_barrier(self, NULL);
}

static void rule_5_3_all_gather_gives_every_replica_the_same_result(void **state)
{
    (void)state;
    for (size_t k = 0; k < replica_counts_length; k++)
        for (uint32_t axis = 0; axis < 2; axis++) {
            struct gathering g = { .axis = axis };
            ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
            run_all(strategy, gather_inside, &g, &g.report);
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

/* The bits are those of the tree, whether one replica does the work or all replicas divide it. */
static void reductions_have_the_bits_of_all_reduce(void **state)
{
    (void)state;
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
        assert_ok(ditto_strategy_value_from_tensors(strategy, t, 1, &value));
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
        cmocka_unit_test(sums_along_axes_have_the_bits_of_the_sum_over_blocks),
        cmocka_unit_test(rule_4_4_a_value_that_all_replicas_share_is_not_counted_n_times),
        cmocka_unit_test(rule_4_5_a_nest_is_reduced_leaf_by_leaf),
        cmocka_unit_test(rule_4_6_a_reduction_is_stored_where_its_destination_is),
        cmocka_unit_test(rule_4_6_a_batch_gives_the_results_of_single_calls_in_order),
        cmocka_unit_test(rule_4_7_broadcast_to_makes_one_copy_per_destination),
        cmocka_unit_test(rule_4_8_slices_are_concatenated_and_stay_sparse),
        cmocka_unit_test(rule_4_8_slices_are_added_row_by_row_to_a_dense_destination),
        cmocka_unit_test(rule_4_8_slices_stay_sparse_without_a_known_dense_destination),
        cmocka_unit_test(rule_5_1_gather_concatenates_along_an_axis),
        cmocka_unit_test(rule_5_1_errors_of_gather_have_their_own_messages),
        cmocka_unit_test(rule_5_2_nests_are_gathered_leaf_by_leaf_and_slices_are_refused),
        cmocka_unit_test(rule_5_3_all_gather_gives_every_replica_the_same_result),
        cmocka_unit_test(reductions_have_the_bits_of_all_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
