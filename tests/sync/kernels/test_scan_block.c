/* tests/sync/kernels/test_scan_block.c - what src/sync/kernels/reduction.h promises of dti_scan_block: the
 * bits of the documented rule for rows of 1 to 64 values, in place and not, with all destinations or one. */
#include "support/support.h"

#include "sync/kernels/reduction.h"
#include "sync/reference.h"

#include <stdalign.h>

enum { MOST = 64, COUNT = 3, ELEMENT = 16 };

/* The last row of `result` is never written. */
static alignas(64) char memory[MOST][COUNT * ELEMENT], given[MOST][COUNT * ELEMENT],
    result[MOST + 1][COUNT * ELEMENT], scratch[DTI_SCRATCH_BYTES];

/* A scan of `memory`. */
struct trial {
    uint32_t n, blocks;
    bool exclusive, in_place;

    /* UINT32_MAX, or the only value whose scan is wanted. */
    uint32_t only;
};

/* Scans the second to last elements, and leaves the first as they are. */
static void scan(struct dti_reduction *r, const struct trial *t)
{
    const void *source[MOST];
    void *destination[MOST];
    struct dti_scan scan = { .n = t->n,
                             .values = t->n - t->exclusive,
                             .exclusive = t->exclusive,
                             .source = source,
                             .destination = destination };
    r->tree = (struct dti_tree){ t->n, t->blocks };
    if (t->only != UINT32_MAX)
        scan.values = t->only + !t->exclusive;
    memcpy(given, memory, sizeof memory);
    memset(result, 0x5a, sizeof result);
    for (uint32_t i = 0; i < t->n; i++) {
        source[i] = memory[i];
        destination[i] = t->only != UINT32_MAX && t->only != i ? NULL : t->in_place ? memory[i] : result[i];
    }
    dti_scan_block(r, &scan, 1, COUNT - 1, scratch);
}

/* Fails the test if `found`, which is element i of destination k, is not what the rule says. */
static void expect_element(const struct trial *t, ditto_dtype dtype, ditto_op op, uint32_t k, size_t i,
                           const char *found)
{
    size_t bytes = ditto_dtype_bytes(dtype);
    const void *source[MOST];
    char expected[ELEMENT];
    for (uint32_t v = 0; v < t->n; v++)
        source[v] = given[v] + i * bytes;
    bool wanted = i > 0 && (t->only == UINT32_MAX || t->only == k) &&
                  reference_scan(dtype, op, source, t->n, t->blocks, k, t->exclusive, expected);
    bool right = wanted ? reference_same(dtype, expected, found)
                        : memcmp(found, t->in_place ? source[k] : result[MOST], bytes) == 0;
    if (!right)
        fail_msg("%s %s of %u values in %u blocks,%s%s: element %zu of scan %u is wrong",
                 ditto_dtype_name(dtype), ditto_op_name(op), t->n, t->blocks,
                 t->exclusive ? " exclusive" : "", t->in_place ? " in place" : "", i, k);
}

static void try_scan(const struct trial *t, ditto_dtype dtype, ditto_op op, uint64_t seed)
{
    size_t bytes = ditto_dtype_bytes(dtype);
    struct dti_reduction r = dti_reduction_of(dti_kernels_best(), dtype, op);
    for (uint32_t v = 0; v < t->n; v++)
        for (size_t i = 0; i < COUNT; i++)
            reference_fill(dtype, seed, v, i, memory[v] + i * bytes);
    scan(&r, t);
    assert_int_equal(r.failed, DITTO_OK);
    for (uint32_t k = 0; k < t->n; k++)
        for (size_t i = 0; i < COUNT; i++)
            expect_element(t, dtype, op, k, i, (t->in_place ? memory[k] : result[k]) + i * bytes);
    if (!t->in_place)
        assert_memory_equal(given, memory, sizeof memory);
}

static void every_scan_has_the_bits_of_the_rule(void **state)
{
    uint64_t seed = test_seed(17);
    for (uint32_t n = 1; n <= MOST; n++)
        for (int d = 1; d <= DTI_NUM_DTYPES; d++)
            for (int op = DITTO_SUM; op <= DITTO_XOR; op++) {
                if (op == DITTO_MEAN || !reference_has((ditto_dtype)d, (ditto_op)op))
                    continue;
                for (int which = 0; which < 4; which++) {
                    struct trial t = { .n = n, .exclusive = which % 2 == 1, .in_place = which / 2 == 1 };
                    uint64_t random = test_random(&seed);
                    t.blocks = random % 2 == 0 ? 1 : 1 + (uint32_t)(random / 2 % n);
                    t.only = random % 3 == 0 ? (uint32_t)(random / 256 % n) : UINT32_MAX;
                    try_scan(&t, (ditto_dtype)d, (ditto_op)op, random);
                }
            }
}

/* -- functions of the user's -- */

/* Values first to last, in order. */
struct run {
    uint32_t first, last;
};

struct joining {
    uint32_t calls;

    /* The call that fails. */
    uint32_t fails;
    bool is_wrong;
};

/* Does not commute: the right run must follow the left one. */
static ditto_status join(void *out, const void *left, const void *right, size_t count, void *user)
{
    struct joining *j = user;
    const struct run *l = left, *r = right;
    struct run *joined = out;
    if (++j->calls == j->fails)
        return DITTO_ERR_USER;
    for (size_t i = 0; i < count; i++) {
        j->is_wrong = j->is_wrong || l[i].last + 1 != r[i].first;
        joined[i] = (struct run){ l[i].first, r[i].last };
    }
    return DITTO_OK;
}

static uint32_t try_function(const struct trial *t, uint32_t fails)
{
    struct joining j = { .fails = fails };
    struct dti_reduction r = { .function = join,
                               .user = &j,
                               .element_bytes = sizeof(struct run),
                               .accumulator_bytes = sizeof(struct run) };
    for (uint32_t v = 0; v < t->n; v++)
        for (size_t i = 0; i < COUNT; i++)
            memcpy(memory[v] + i * sizeof(struct run), &(struct run){ v, v }, sizeof(struct run));
    scan(&r, t);
    assert_false(j.is_wrong);
    assert_int_equal(r.failed, fails != 0 && j.calls >= fails ? DITTO_ERR_USER : DITTO_OK);
    assert_true(fails == 0 || j.calls <= fails); /* it is not called again after it has failed */
    for (uint32_t k = 0; k < t->n; k++) {
        struct run found, untouched;
        memcpy(&found, (t->in_place ? memory[k] : result[k]) + sizeof found, sizeof found);
        memcpy(&untouched, t->in_place ? given[k] : result[MOST], sizeof untouched);
        bool complete = found.first == 0 && k >= t->exclusive && found.last == k - t->exclusive;
        bool kept = memcmp(&found, &untouched, sizeof found) == 0;
        bool wanted = k >= t->exclusive && (t->only == UINT32_MAX || t->only == k);
        assert_true(complete || (kept && (r.failed != DITTO_OK || !wanted)));
    }
    return j.calls;
}

static void a_function_combines_in_order_and_nothing_is_written_after_it_has_failed(void **state)
{
    for (uint32_t n = 1; n <= MOST; n = n < 8 ? n + 1 : 2 * n)
        for (int which = 0; which < 4; which++) {
            struct trial t = { n, 1, which % 2 == 1, which / 2 == 1, UINT32_MAX };
            uint32_t calls = try_function(&t, 0);
            for (uint32_t fails = 1; fails <= calls; fails++)
                try_function(&t, fails);
        }
}

/* n / 2 * log2(n) combinations for the scans of n values, and n - 1 for that of the last one alone. */
static void a_scan_takes_no_more_combinations_than_needed(void **state)
{
    for (uint32_t levels = 1; levels <= 5; levels++) {
        struct trial t = { 1u << levels, 1, false, false, UINT32_MAX };
        assert_int_equal(try_function(&t, 0), levels << (levels - 1));
        t.only = t.n - 1;
        assert_int_equal(try_function(&t, 0), t.n - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scan_has_the_bits_of_the_rule),
        cmocka_unit_test(a_function_combines_in_order_and_nothing_is_written_after_it_has_failed),
        cmocka_unit_test(a_scan_takes_no_more_combinations_than_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
