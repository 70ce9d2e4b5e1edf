/* tests/sync/kernels/test_kernels.c - what src/sync/kernels/kernel.h promises: there is a kernel for every
 * documented dtype and operation, and it has the bits of the reference with every instruction set. */
#include "support/support.h"

#include "sync/reference.h"
#include "sync/kernels/reduction.h"

#define COUNT 1500

static dti_kernel_table *tables[3];
static uint32_t tables_count;
static const char *const table_names[] = { "portable", "AVX2", "AVX-512" };

static int find_tables(void **state)
{
    tables_count = 0;
    for (int requested = DITTO_KERNELS_PORTABLE; requested <= DITTO_KERNELS_AVX512; requested++)
        if (dti_kernels_choose((ditto_kernels)requested, &tables[tables_count]) == DITTO_OK)
            tables_count++;
    printf("  instruction sets of this processor: %u, the best is %s\n", tables_count,
           table_names[tables_count - 1]);
    return 0;
}

static void a_dtype_has_the_operations_that_the_header_lists(void **state)
{
    for (uint32_t t = 0; t < tables_count; t++)
        for (int d = 1; d <= DTI_NUM_DTYPES; d++)
            for (int op = DITTO_SUM; op <= DITTO_XOR; op++) {
                const struct dti_kernel *k = &(*tables[t])[d][op];
                assert_int_equal(k->combine != NULL, reference_has((ditto_dtype)d, (ditto_op)op));
                assert_int_equal(k->combine != NULL, k->combine_into_two != NULL);
                assert_int_equal(k->divide != NULL, k->combine != NULL && op == DITTO_MEAN);
                assert_int_equal(k->widen != NULL, k->combine != NULL && dti_dtype_class_of((ditto_dtype)d) ==
                                                                             DTI_CLASS_REAL_IN_F32);
                assert_int_equal(k->widen != NULL, k->narrow != NULL);
                bool complex_product = op == DITTO_PROD && (d == DITTO_C64 || d == DITTO_C128);
                assert_int_equal(k->combine_four != NULL,
                                 k->combine != NULL && k->widen == NULL && !complex_product);
                assert_int_equal(k->combine_four != NULL, k->combine_eight != NULL);
            }
}

/* Compares four and eight inputs in one pass with the tree of single combinations, for random bytes. */
static void passes_over_several_inputs_have_the_bits_of_the_tree(void **state)
{
    enum { ELEMENTS = 37, BYTES = 16 * ELEMENTS };
    static unsigned char in[8][BYTES], out[BYTES], tree[7][BYTES];
    uint64_t seed = test_seed(11);
    for (uint32_t t = 0; t < tables_count; t++)
        for (int d = 1; d <= DTI_NUM_DTYPES; d++)
            for (int op = DITTO_SUM; op <= DITTO_XOR; op++) {
                const struct dti_kernel *k = &(*tables[t])[d][op];
                size_t bytes = ELEMENTS * ditto_dtype_bytes((ditto_dtype)d);
                const void *all[8];
                if (k->combine_eight == NULL)
                    continue;
                for (int i = 0; i < 8; i++) {
                    all[i] = in[i];
                    /* The upper bits are few, so that no value is a NaN, whose payload is not specified. */
                    for (size_t b = 0; b < bytes; b++)
                        in[i][b] = (unsigned char)(test_random(&seed) % 64);
                }
                for (int i = 0; i < 4; i++)
                    k->combine(tree[i], in[2 * i], in[2 * i + 1], ELEMENTS);
                k->combine(tree[4], tree[0], tree[1], ELEMENTS);
                k->combine(tree[5], tree[2], tree[3], ELEMENTS);
                k->combine(tree[6], tree[4], tree[5], ELEMENTS);
                k->combine_four(out, in[0], in[1], in[2], in[3], ELEMENTS);
                assert_memory_equal(out, tree[4], bytes);
                k->combine_eight(out, all, ELEMENTS);
                assert_memory_equal(out, tree[6], bytes);
            }
}

/* Variables and values divide every dtype of dti_dtype_is_float without asking for its kernels, and widen
 * with the kernel of SUM. */
static void every_floating_dtype_has_a_sum_and_a_mean(void **state)
{
    for (uint32_t t = 0; t < tables_count; t++)
        for (int d = 1; d <= DTI_NUM_DTYPES; d++) {
            assert_int_equal(dti_dtype_is_float((ditto_dtype)d), reference_is_float((ditto_dtype)d));
            if (dti_dtype_is_float((ditto_dtype)d)) {
                assert_non_null((*tables[t])[d][DITTO_SUM].combine);
                assert_non_null((*tables[t])[d][DITTO_MEAN].combine);
            }
        }
}

DTI_KNOWS_DTYPES(15); /* a new dtype that is widened needs a test like the next one */

/* Converts every value of a 16-bit float to f32 and back. Between each two of them, rounds the middle, which
 * is a tie, and its two neighbours. */
static void halves_are_converted_as_their_format_says(void **state)
{
    static const struct {
        ditto_dtype dtype;
        int exponent, fraction;
    } kinds[] = { { DITTO_F16, 5, 10 }, { DITTO_BF16, 8, 7 } };
    for (uint32_t t = 0; t < tables_count; t++)
        for (int k = 0; k < 2; k++) {
            const struct dti_kernel *kernel = &(*tables[t])[kinds[k].dtype][DITTO_SUM];
            for (uint32_t bits = 0; bits < 0x10000; bits++) {
                uint16_t half = (uint16_t)bits, back, next;
                float wide, below, above;
                kernel->widen(&wide, &half, 1);
                double expected = reference_from_half(half, kinds[k].exponent, kinds[k].fraction);
                assert_true(isnan(expected)
                                ? isnan(wide)
                                : (double)wide == expected && !signbit(wide) == !signbit(expected));
                kernel->narrow(&back, &wide, 1);
                if (isnan(expected)) {
                    kernel->widen(&wide, &back, 1);
                    assert_true(isnan(wide));
                    continue;
                }
                assert_int_equal(back, half);
                if (isinf(expected) || (bits & 0x7fff) == 0)
                    continue;
                next = (uint16_t)(half - 1); /* the next value towards zero */
                float other, middle;
                kernel->widen(&other, &next, 1);
                middle = other + (wide - other) / 2;
                below = nextafterf(middle, other);
                above = nextafterf(middle, wide);
                const float tried[] = { middle, below, above };
                for (int i = 0; i < 3; i++) {
                    kernel->narrow(&back, &tried[i], 1);
                    assert_int_equal(
                        back, reference_to_half((double)tried[i], kinds[k].exponent, kinds[k].fraction));
                }
            }
            float extreme[] = { 65519.99f, 65520.0f, 3.4e38f, INFINITY, -INFINITY, 1e-45f, -1e-45f };
            for (size_t i = 0; i < sizeof extreme / sizeof extreme[0]; i++) {
                uint16_t back;
                kernel->narrow(&back, &extreme[i], 1);
                assert_int_equal(back,
                                 reference_to_half((double)extreme[i], kinds[k].exponent, kinds[k].fraction));
            }
        }
}

struct tally {
    size_t elements, unlike_left_fold;
};

static void try_block(dti_kernel_table *table, ditto_dtype d, ditto_op op, uint32_t n, size_t count,
                      uint64_t seed, struct tally *tally)
{
    static char data[12][COUNT * 16], out[COUNT * 16], scratch[DTI_SCRATCH_BYTES];
    const struct dti_kernel *kernel = &(*table)[d][op];
    struct dti_reduction reduction = dti_reduction_of(table, d, op);
    size_t size = ditto_dtype_bytes(d), step = dti_tile_count(&reduction);
    const void *source[12], *element[12];
    for (uint32_t r = 0; r < n; r++) {
        source[r] = data[r];
        for (size_t i = 0; i < count; i++)
            reference_fill(d, seed, r, i, data[r] + i * size);
    }
    for (size_t first = 0; first < count; first += step)
        dti_reduce_block(&reduction, source, n, first, count - first < step ? count - first : step,
                         out + first * size, scratch);
    for (size_t i = 0; i < count; i++) {
        char expected[16];
        for (uint32_t r = 0; r < n; r++)
            element[r] = data[r] + i * size;
        reference_reduce(d, op, element, n, expected);
        if (!reference_same(d, expected, out + i * size))
            fail_msg("%s of %s, %u values, element %zu of %zu", ditto_op_name(op), ditto_dtype_name(d), n, i,
                     count);
        tally->elements++;
        tally->unlike_left_fold += reference_differs_from_left_fold(d, op, element, n, out + i * size);
    }
    /* combine_into_two stores the result twice, and the destinations are the sources. */
    if (n == 2 && op != DITTO_MEAN) {
        static char one[COUNT * 16];
        memcpy(one, data[1], count * size);
        kernel->combine_into_two(data[0], one, data[0], one, count);
        for (size_t i = 0; i < count; i++)
            assert_true(reference_same(d, out + i * size, data[0] + i * size) &&
                        reference_same(d, out + i * size, one + i * size));
    }
}

static void every_dtype_and_op_has_the_bits_of_the_reference_with_every_instruction_set(void **state)
{
    static const uint32_t numbers[] = { 1, 2, 3, 5, 6, 7, 8, 12 };
    static const size_t counts[] = { 1, 7, 33, COUNT };
    uint64_t seed = test_seed(42), cases = 0;
    struct tally tally = { 0 };
    for (uint32_t t = 0; t < tables_count; t++)
        for (int d = 1; d <= DTI_NUM_DTYPES; d++)
            for (int op = DITTO_SUM; op <= DITTO_XOR; op++) {
                if (!reference_has((ditto_dtype)d, (ditto_op)op))
                    continue;
                for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
                    for (size_t c = 0; c < 4; c++, cases++)
                        try_block(tables[t], (ditto_dtype)d, (ditto_op)op, numbers[n], counts[c],
                                  seed + cases % 64, &tally);
            }
    printf("  %llu cases, %zu elements; %zu differ from a left fold\n", (unsigned long long)cases,
           tally.elements, tally.unlike_left_fold);
    assert_true(tally.unlike_left_fold > 0);
}

static void an_instruction_set_that_the_processor_lacks_is_refused(void **state)
{
    dti_kernel_table *table = NULL;
    assert_status(dti_kernels_choose((ditto_kernels)4, &table), DITTO_ERR_RANGE);
    assert_status(dti_kernels_choose((ditto_kernels)-1, &table), DITTO_ERR_RANGE);
    assert_ok(dti_kernels_choose(DITTO_KERNELS_DEFAULT, &table));
    assert_ptr_equal(table, dti_kernels_best());
    assert_ptr_equal(table, tables[tables_count - 1]);
    if (tables_count < 3)
        assert_status(dti_kernels_choose(DITTO_KERNELS_AVX512, &table), DITTO_ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dtype_has_the_operations_that_the_header_lists),
        cmocka_unit_test(passes_over_several_inputs_have_the_bits_of_the_tree),
        cmocka_unit_test(every_floating_dtype_has_a_sum_and_a_mean),
        cmocka_unit_test(halves_are_converted_as_their_format_says),
        cmocka_unit_test(every_dtype_and_op_has_the_bits_of_the_reference_with_every_instruction_set),
        cmocka_unit_test(an_instruction_set_that_the_processor_lacks_is_refused),
    };
    return cmocka_run_group_tests(tests, find_tables, NULL);
}
