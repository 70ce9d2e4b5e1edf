/* tests/sync/kernels/test_tree.c - what src/sync/kernels/tree.h and kernel.h promise of the order of a
 * reduction, of the parts of an array, and of minima, maxima and integers. */
#include "support/support.h"

#include "sync/reference.h"
#include "sync/kernels/reduction.h"

#include <math.h>

/* An element of a reduction that records how it was combined. */
struct word {
    char text[4000];
};

/* The result is the text "(left right)". */
static ditto_status write_down(void *out, const void *left, const void *right, size_t count, void *user)
{
    struct word w;
    snprintf(w.text, sizeof w.text, "(%.1900s %.1900s)", ((const struct word *)left)->text,
             ((const struct word *)right)->text);
    memcpy(out, &w, sizeof w);
    return DITTO_OK;
}

static struct dti_reduction in_words(void)
{
    return (struct dti_reduction){ .function = write_down,
                                   .element_bytes = sizeof(struct word),
                                   .accumulator_bytes = sizeof(struct word) };
}

static void expect_tree(uint32_t n, uint32_t blocks, const char *expected)
{
    static struct word leaf[16], out, scratch[DTI_TREE_LEVELS];
    struct dti_reduction r = in_words();
    r.tree = (struct dti_tree){ n, blocks };
    const void *source[16];
    for (uint32_t i = 0; i < n; i++) {
        snprintf(leaf[i].text, sizeof leaf[i].text, "%u", i);
        source[i] = &leaf[i];
    }
    dti_reduce_block(&r, source, n, 0, 1, &out, scratch);
    assert_string_equal(out.text, expected);
}

static void the_tree_splits_at_the_upper_half(void **state)
{
    expect_tree(1, 0, "0");
    expect_tree(2, 0, "(0 1)");
    expect_tree(3, 0, "((0 1) 2)");
    expect_tree(4, 0, "((0 1) (2 3))");
    expect_tree(5, 0, "(((0 1) 2) (3 4))");
    expect_tree(6, 0, "(((0 1) 2) ((3 4) 5))");
    expect_tree(7, 0, "(((0 1) (2 3)) ((4 5) 6))");
    expect_tree(8, 0, "(((0 1) (2 3)) ((4 5) (6 7)))");
}

static void blocks_are_combined_first(void **state)
{
    expect_tree(1, 1, "0");
    expect_tree(5, 1, "(((0 1) 2) (3 4))");
    expect_tree(4, 3, "(((0 1) 2) 3)");
    expect_tree(6, 3, "(((0 1) (2 3)) (4 5))");
    expect_tree(7, 3, "((((0 1) 2) (3 4)) (5 6))");
    expect_tree(5, 4, "(((0 1) 2) (3 4))");
    expect_tree(6, 6, "(((0 1) 2) ((3 4) 5))"); /* a block for each value */
    expect_tree(9, 5, "((((0 1) (2 3)) (4 5)) ((6 7) 8))");
}

/* Returns the number of levels below the node [a, b), and itself. */
static uint32_t levels_of(const struct dti_tree *tree, size_t a, size_t b)
{
    if (b - a == 1)
        return 1;
    size_t m = dti_tree_split_node(tree, a, b);
    assert_true(a < m && m < b);
    uint32_t left = levels_of(tree, a, m), right = levels_of(tree, m, b);
    return 1 + (left > right ? left : right);
}

static void no_tree_has_more_levels_than_there_is_memory_for(void **state)
{
    uint32_t most = 0;
    for (uint32_t n = 65536; n >= 60000; n -= 1009)
        for (uint32_t blocks = 0; blocks <= n; blocks += 1 + blocks / 8) {
            struct dti_tree tree = { n, blocks };
            uint32_t levels = levels_of(&tree, 0, n);
            most = levels > most ? levels : most;
            assert_true(blocks > 1 || levels == 17);
        }
    assert_int_equal(most, DTI_TREE_LEVELS);
    assert_int_equal(DTI_TREE_PARTS, 2 * (DTI_TREE_LEVELS - 1));
}

/* Groups of neighbours combine the subtrees that lie within the group. Combining the results gives the tree
 * that has no groups, however the groups were chosen. */
static void groups_that_pass_on_their_subtrees_give_the_same_tree(void **state)
{
    static struct word leaf[40], partial[40][DTI_TREE_PARTS], out, expected, scratch[DTI_TREE_LEVELS];
    struct dti_reduction r = in_words();
    uint64_t seed = test_seed(7);
    for (int trial = 0; trial < 300; trial++) {
        uint32_t n = 1 + (uint32_t)(test_random(&seed) % 40), values = 0, group = 0;
        r.tree = (struct dti_tree){ n, trial % 2 == 0 ? 0 : 1 + (uint32_t)(test_random(&seed) % n) };
        struct dti_tree_value value[40 * DTI_TREE_PARTS], single[40];
        const void *source[40];
        for (uint32_t i = 0; i < n; i++) {
            snprintf(leaf[i].text, sizeof leaf[i].text, "%u", i);
            source[i] = &leaf[i];
            single[i] = (struct dti_tree_value){ i, i + 1, &leaf[i] };
        }
        for (size_t first = 0; first < n; group++) {
            size_t end = first + 1 + test_random(&seed) % (n - first);
            struct dti_span part[DTI_TREE_PARTS];
            uint32_t parts = dti_tree_subtrees(&r.tree, (struct dti_span){ first, end }, part);
            const struct dti_tree_value *next = &single[first];
            assert_true(parts >= 1 && parts <= DTI_TREE_PARTS);
            assert_int_equal(part[0].first, first);
            for (uint32_t p = 0; p < parts; p++) {
                assert_int_equal(part[p].end, p + 1 < parts ? part[p + 1].first : end);
                const void *sum = dti_fold(&r, part[p], &next, 1, &partial[group][p], scratch);
                value[values++] = (struct dti_tree_value){ part[p].first, part[p].end, sum };
            }
            first = end;
        }
        const struct dti_tree_value *next = value;
        dti_reduce_block(&r, source, n, 0, 1, &expected, scratch);
        const struct word *found = dti_fold(&r, (struct dti_span){ 0, n }, &next, 1, &out, scratch);
        assert_string_equal(found->text, expected.text);
        assert_ptr_equal(next, value + values);
    }
}

static void parts_are_disjoint_complete_and_even(void **state)
{
    static const size_t counts[] = { 0, 1, 15, 16, 17, 1000, 4096, 100003 };
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (uint32_t n = 1; n <= 70; n++) {
            size_t next = 0, largest = 0, smallest = SIZE_MAX;
            for (uint32_t i = 0; i < n; i++) {
                size_t first, end;
                dti_tree_part(counts[c], n, i, 16, &first, &end);
                assert_int_equal(first, next);
                assert_true(first <= end);
                assert_true(first == counts[c] || first % 16 == 0);
                largest = end - first > largest ? end - first : largest;
                smallest = end - first < smallest ? end - first : smallest;
                next = end;
            }
            assert_int_equal(next, counts[c]);
            assert_true(largest - smallest <= 32);
        }
}

static void minimum_and_maximum_follow_ieee_754_2019(void **state)
{
    static const float special[] = { NAN, -INFINITY, -1.0f, -1e-42f, -0.0f, 0.0f, 1e-42f, 1.0f, INFINITY };
    enum { N = sizeof special / sizeof special[0] };
    for (int op = DITTO_MIN; op <= DITTO_MAX; op++)
        for (size_t i = 0; i < N; i++)
            for (size_t k = 0; k < N; k++) {
                float pair[2] = { special[i], special[k] },
                      expected = reference_f32(pair, 0, 2, (ditto_op)op), found;
                double wide[2] = { (double)pair[0], (double)pair[1] }, found_wide;
                (*dti_kernels_best())[DITTO_F32][op].combine(&found, &pair[0], &pair[1], 1);
                (*dti_kernels_best())[DITTO_F64][op].combine(&found_wide, &wide[0], &wide[1], 1);
                if (isnan(expected))
                    assert_true(isnan(found) && isnan(found_wide));
                else {
                    assert_memory_equal(&found, &expected, sizeof found);
                    assert_true((double)found == found_wide && !!signbit(found) == !!signbit(found_wide));
                }
            }
}

static void integers_wrap_around(void **state)
{
    int32_t a = INT32_MAX, b = 1, sum;
    int64_t wide_a = INT64_MIN, wide_b = -1, wide_sum;
    (*dti_kernels_best())[DITTO_I32][DITTO_SUM].combine(&sum, &a, &b, 1);
    assert_int_equal(sum, INT32_MIN);
    (*dti_kernels_best())[DITTO_I64][DITTO_SUM].combine(&wide_sum, &wide_a, &wide_b, 1);
    assert_true(wide_sum == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_splits_at_the_upper_half),
        cmocka_unit_test(blocks_are_combined_first),
        cmocka_unit_test(no_tree_has_more_levels_than_there_is_memory_for),
        cmocka_unit_test(groups_that_pass_on_their_subtrees_give_the_same_tree),
        cmocka_unit_test(parts_are_disjoint_complete_and_even),
        cmocka_unit_test(minimum_and_maximum_follow_ieee_754_2019),
        cmocka_unit_test(integers_wrap_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
