/* tests/golden/test_golden.c - checks that results have the same bits with gcc and clang, with several
 * optimisations and instruction sets, and with other variants of the C library's functions. Hashes of the
 * results are compared with values that were computed once. If one of the values must change, programs
 * compute other results, so the change is described in CHANGELOG.md.
 *
 * The test is also run with GLIBC_TUNABLES, which makes the C library choose other variants of its
 * functions. */
#include "support/support.h"

#include <math.h>

#include "golden/golden.h"

#define VARIANT(name) extern const struct golden_variant golden_##name;
#include "golden_variants.h"
#undef VARIANT

static const struct golden_variant *const variants[] = {
#define VARIANT(name) &golden_##name,
#include "golden_variants.h"
#undef VARIANT
};

#define PART(part) [GOLDEN_##part] = #part
static const char *const part_names[GOLDEN_PARTS] = {
    PART(LOG),
    PART(SINE),
    PART(COSINE),
    PART(POWER),
    PART(SUM_OF_PRODUCTS),
    PART(QUOTIENT_C64),
    PART(QUOTIENT_C128),
    PART(STEPS_F32),
    PART(STEPS_F64),
    PART(KERNELS_REAL),
    PART(KERNELS_COMPLEX),
    PART(KERNELS_HALF),
    PART(KERNELS_INTEGER),
};

static const uint64_t expected[GOLDEN_PARTS] = {
    [GOLDEN_LOG] = 0xfeace5c7c8807402,
    [GOLDEN_SINE] = 0x4be21ef8a2f3feb2,
    [GOLDEN_COSINE] = 0xfbda595e1f2c4612,
    [GOLDEN_POWER] = 0xc39957ad70913fe1,
    [GOLDEN_SUM_OF_PRODUCTS] = 0x8410bab477de9836,
    [GOLDEN_QUOTIENT_C64] = 0x7168ec76769407cf,
    [GOLDEN_QUOTIENT_C128] = 0x9b8db0bfaa160c56,
    [GOLDEN_STEPS_F32] = 0x0fe5f08c6bc1a13f,
    [GOLDEN_STEPS_F64] = 0x5cdaa638a76d8070,
    [GOLDEN_KERNELS_REAL] = 0x18a4143cae77195d,
    [GOLDEN_KERNELS_COMPLEX] = 0xb158d917bb3c8fcf,
    [GOLDEN_KERNELS_HALF] = 0xe2e29df15c1fbcec,
    [GOLDEN_KERNELS_INTEGER] = 0x1a3f84f6ed649f41,
};

static bool can_run(const struct golden_variant *variant)
{
#if defined(__x86_64__)
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return (avx512 || !variant->needs_avx512) && (fma || !variant->needs_avx2_and_fma);
#else
    return !variant->needs_avx512 && !variant->needs_avx2_and_fma;
#endif
}

static void arithmetic_has_the_expected_bits_with_every_compiler_and_set_of_instructions(void **state)
{
    int wrong = 0, ran = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        uint64_t hash[GOLDEN_PARTS];
        if (!can_run(variants[i])) {
            print_message("  %s: this processor cannot run it\n", variants[i]->name);
            continue;
        }
        variants[i]->compute(hash);
        ran++;
        for (int k = 0; k < GOLDEN_PARTS; k++)
            if (hash[k] != expected[k]) {
                print_error("  %s, %s: 0x%016llx, not 0x%016llx\n", variants[i]->name, part_names[k],
                            (unsigned long long)hash[k], (unsigned long long)expected[k]);
                wrong++;
            }
    }
    assert_int_equal(wrong, 0);
    assert_true(ran > 0);
}

/* -- results of public functions -- */

#define BASIS UINT64_C(0xcbf29ce484222325)

/* Returns a hash of results of the C library's functions, which ditto does not use. A different hash shows
 * that the C library uses other variants of them. */
static uint64_t hash_libm(void)
{
    uint64_t hash = BASIS;
    for (int i = 1; i < 20000; i++) {
        double value = sin(i * 0.0137) + pow(0.999, i * 0.37) + log1p(-i / 20001.0);
        hash = golden_hash(hash, &value, sizeof value);
    }
    return hash;
}

static void normal_numbers_have_the_expected_bits(void **state)
{
    enum { COUNT = 10001 };
    static double x[COUNT], more[COUNT];
    static float y[COUNT];
    ditto_random random = ditto_random_make(42, 7);
    ditto_random_normal_f64(&random, x, COUNT);
    ditto_random_normal_f64(&random, more, COUNT);
    for (int i = 0; i < COUNT; i++)
        y[i] = (float)more[i];
    uint64_t hash = golden_hash(golden_hash(BASIS, x, sizeof x), y, sizeof y);
    print_message("  normals 0x%016llx; the C library 0x%016llx\n", (unsigned long long)hash,
                  (unsigned long long)hash_libm());
    assert_int_equal(hash, 0x1d6ca73bae160d3f);
}

enum { ROWS = 300 };

struct training {
    struct report report;
    ditto_variable *variable;
    ditto_optimizer *optimizer;
    ditto_dtype dtype;
};

static ditto_status take_steps(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    static double gradient[3][ROWS];
    double *own_gradient = gradient[ditto_replica_id(self)];
    for (int step = 0; step < 20; step++) {
        uint64_t state = (uint64_t)step * 3 + ditto_replica_id(self) + 1;
        for (int i = 0; i < ROWS; i++) {
            double number = golden_number(&state);
            if (t->dtype == DITTO_F32)
                ((float *)own_gradient)[i] = (float)number;
            else
                own_gradient[i] = number;
        }
        ditto_tensor tensor = { .data = own_gradient, .dtype = t->dtype, .rank = 1, .shape = { ROWS } };
        EXPECT(&t->report, ditto_apply(self, t->optimizer, &tensor, NULL) == DITTO_OK);
    }
    return DITTO_OK;
}

static uint64_t train(ditto_dtype dtype, double clip_norm)
{
    static struct training t;
    static double value[ROWS];
    ditto_tensor initial = { .data = value, .dtype = dtype, .rank = 1, .shape = { ROWS } };
    ditto_strategy *s = make_strategy(3, NULL);
    t = (struct training){ .dtype = dtype };
    memset(value, 0, sizeof value);
    ditto_optimizer_options options = OPTIONS(optimizer, .rule = DITTO_RULE_ADAM, .learning_rate = 0.01);
    options.beta1 = 0.9425; /* variants of glibc's pow give different results for its twelfth power */
    options.beta2 = 0.999;
    options.clip_norm = clip_norm;
    assert_ok(ditto_variable_create(s, &initial, NULL, &t.variable));
    assert_ok(ditto_optimizer_create(&t.variable, 1, &options, &t.optimizer));
    run_all(s, take_steps, &t, &t.report);
    assert_ok(ditto_variable_read(t.variable, value, ROWS * ditto_dtype_bytes(dtype)));
    uint64_t hash = golden_hash(BASIS, value, ROWS * ditto_dtype_bytes(dtype));
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    assert_ok(ditto_variable_destroy(t.variable));
    assert_ok(ditto_strategy_destroy(s));
    return hash;
}

static void adam_has_the_expected_bits(void **state)
{
    uint64_t found[] = { train(DITTO_F32, 0), train(DITTO_F64, 0), train(DITTO_F64, 100) };
    print_message("  Adam 0x%016llx 0x%016llx 0x%016llx\n", (unsigned long long)found[0],
                  (unsigned long long)found[1], (unsigned long long)found[2]);
    assert_int_equal(found[0], 0x96b42074aac5c9e7);
    assert_int_equal(found[1], 0x306de9466a042ae9);
    assert_int_equal(found[2], 0x6254d0c220b163c5);
}

/* Makes `count` complex numbers of c64 or c128. */
static void make_complex(ditto_dtype dtype, void *out, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < 2 * count; i++) {
        double number = golden_number(&seed);
        if (dtype == DITTO_C64)
            ((float *)out)[i] = (float)number;
        else
            ((double *)out)[i] = number;
    }
}

static uint64_t scatter(ditto_dtype dtype, ditto_scatter_op op)
{
    static double value[2 * ROWS], slice[2 * ROWS];
    static int64_t index[ROWS];
    ditto_variable *v;
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_tensor initial = { .data = value, .dtype = dtype, .rank = 1, .shape = { ROWS } };
    make_complex(dtype, value, ROWS, 1);
    make_complex(dtype, slice, ROWS, 2);
    for (int i = 0; i < ROWS; i++)
        index[i] = i;
    ditto_slices slices = { .values = slice, .indices = index, .rows = ROWS, .row_count = 1, .dtype = dtype };
    assert_ok(ditto_variable_create(s, &initial, NULL, &v));
    assert_ok(ditto_variable_scatter(v, op, &slices));
    assert_ok(ditto_variable_read(v, value, ROWS * ditto_dtype_bytes(dtype)));
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
    return golden_hash(BASIS, value, ROWS * ditto_dtype_bytes(dtype));
}

static void complex_quotients_and_differences_have_the_expected_bits(void **state)
{
    uint64_t found[] = { scatter(DITTO_C64, DITTO_SCATTER_DIV), scatter(DITTO_C128, DITTO_SCATTER_DIV),
                         scatter(DITTO_C64, DITTO_SCATTER_SUB), scatter(DITTO_C128, DITTO_SCATTER_SUB) };
    print_message("  quotients 0x%016llx 0x%016llx, differences 0x%016llx 0x%016llx\n",
                  (unsigned long long)found[0], (unsigned long long)found[1], (unsigned long long)found[2],
                  (unsigned long long)found[3]);
    assert_int_equal(found[0], 0x19419cc931fffff2);
    assert_int_equal(found[1], 0x82280fe5ac2f9fe2);
    assert_int_equal(found[2], 0x4d43af46416ff9a4);
    assert_int_equal(found[3], 0x93cba7761ed21aa3);
}

struct reducing {
    struct report report;
    ditto_dtype dtype;
    uint64_t hash;
};

static ditto_status multiply(ditto_replica *self, void *argument)
{
    struct reducing *r = argument;
    static double value[5][2 * ROWS];
    double *own_value = value[ditto_replica_id(self)];
    make_complex(r->dtype, own_value, ROWS, ditto_replica_id(self) + 1);
    EXPECT(&r->report,
           ditto_all_reduce(self, own_value, own_value, ROWS, r->dtype, DITTO_PROD, NULL) == DITTO_OK);
    EXPECT(&r->report,
           ditto_all_reduce(self, own_value, own_value, ROWS, r->dtype, DITTO_MEAN, NULL) == DITTO_OK);
    if (ditto_replica_id(self) == 0)
        r->hash = golden_hash(BASIS, own_value, ROWS * ditto_dtype_bytes(r->dtype));
    return DITTO_OK;
}

static void complex_products_over_replicas_have_the_expected_bits_with_all_kernels(void **state)
{
    static struct reducing r;
    for (int kernels = DITTO_KERNELS_DEFAULT; kernels <= DITTO_KERNELS_AVX512; kernels++)
        for (int wide = 0; wide < 2; wide++) {
            ditto_strategy *s;
            ditto_status status = ditto_strategy_create(
                DITTO_MIRRORED, &OPTIONS(strategy, .kernels = (ditto_kernels)kernels, .num_replicas = 5), &s);
            if (status == DITTO_ERR_UNSUPPORTED)
                continue;
            assert_int_equal(status, DITTO_OK);
            r = (struct reducing){ .dtype = wide ? DITTO_C128 : DITTO_C64 };
            run_all(s, multiply, &r, &r.report);
            assert_ok(ditto_strategy_destroy(s));
            print_message("  kernels %d, products 0x%016llx\n", kernels, (unsigned long long)r.hash);
            assert_int_equal(r.hash, wide ? 0xd47da35baa75b777 : 0x13c0e7203dcc01ff);
        }
}

/* Sums of f32 and of bf16, of which each is rounded once, and products of c64, whose order matters too. */
static const struct {
    ditto_dtype dtype;
    ditto_op op;
    uint64_t hash;
} scans[] = { { DITTO_F32, DITTO_SUM, 0x4ca12823f64c844 },
              { DITTO_BF16, DITTO_SUM, 0x66ef3f63341edc57 },
              { DITTO_C64, DITTO_PROD, 0x8a9215cb4a74114b } };

enum { SCANNED = 6, SCANNING_GROUPS = 2 };

struct scanning {
    struct report report;
    int which;
    const ditto_grouping *grouping;          /* or NULL: all replicas scan together */
    uint64_t hash[SCANNING_GROUPS][SCANNED]; /* of each member */
};

static ditto_status scan(ditto_replica *self, void *argument)
{
    struct scanning *s = argument;
    static float values[SCANNING_GROUPS][SCANNED][2 * ROWS], prefixes[SCANNING_GROUPS][SCANNED][2 * ROWS];
    ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
    ditto_group group = { .rank = ditto_replica_id(self), .size = SCANNED };
    if (s->grouping != NULL) {
        EXPECT(&s->report, ditto_group_of(self, s->grouping, &group) == DITTO_OK);
        options.group = &group;
    }
    if (group.size == 0)
        return DITTO_OK;
    float *value = values[group.index][group.rank], *prefix = prefixes[group.index][group.rank];
    ditto_dtype dtype = scans[s->which].dtype;
    size_t bytes = ROWS * ditto_dtype_bytes(dtype);
    memset(prefix, 0, 2 * ROWS * sizeof *prefix); /* what rank 0 keeps in the exclusive scan */
    make_complex(DITTO_C64, value, ROWS, group.rank + 1);
    for (int i = 0; dtype == DITTO_BF16 && i < ROWS; i++) {
        uint32_t bits;
        memcpy(&bits, &value[ROWS + i], sizeof bits);
        ((uint16_t *)(void *)value)[i] = (uint16_t)(bits >> 16);
    }
    EXPECT(&s->report,
           ditto_scan_exclusive(self, value, prefix, ROWS, dtype, scans[s->which].op, &options) == DITTO_OK);
    EXPECT(&s->report, ditto_scan(self, value, value, ROWS, dtype, scans[s->which].op, &options) == DITTO_OK);
    s->hash[group.index][group.rank] = golden_hash(golden_hash(BASIS, prefix, bytes), value, bytes);
    return DITTO_OK;
}

/* Scans on all of 6 replicas, or in two groups of 6 of the 13 replicas of a strategy. */
static void check_scans(ditto_kernels kernels, int which, bool in_groups)
{
    static struct scanning s;
    ditto_strategy *strategy;
    ditto_grouping *grouping = NULL;
    ditto_strategy_options options = OPTIONS(strategy, .kernels = kernels);
    options.num_replicas = in_groups ? SCANNING_GROUPS * SCANNED + 1 : SCANNED;
    ditto_status status = ditto_strategy_create(DITTO_MIRRORED, &options, &strategy);
    if (status == DITTO_ERR_UNSUPPORTED)
        return;
    assert_int_equal(status, DITTO_OK);
    if (in_groups) {
        uint32_t colors[SCANNING_GROUPS * SCANNED + 1];
        for (uint32_t i = 0; i < options.num_replicas; i++)
            colors[i] = i % SCANNING_GROUPS;
        colors[3] = DITTO_NO_COLOR; /* and its group has the last replica, too */
        colors[SCANNING_GROUPS * SCANNED] = 1;
        assert_ok(ditto_strategy_split(strategy, colors, NULL, options.num_replicas, &grouping));
    }
    s = (struct scanning){ .which = which, .grouping = grouping };
    run_all(strategy, scan, &s, &s.report);
    assert_ok(ditto_grouping_destroy(grouping));
    assert_ok(ditto_strategy_destroy(strategy));
    for (int g = 0; g < (in_groups ? SCANNING_GROUPS : 1); g++) {
        uint64_t hash = golden_hash(BASIS, s.hash[g], sizeof s.hash[g]);
        print_message("  kernels %d, scans of %s%s 0x%016llx\n", (int)kernels,
                      ditto_dtype_name(scans[which].dtype), in_groups ? " in a group" : "",
                      (unsigned long long)hash);
        assert_int_equal(hash, scans[which].hash);
    }
}

static void scans_have_the_expected_bits_with_all_kernels_and_in_groups(void **state)
{
    for (int kernels = DITTO_KERNELS_DEFAULT; kernels <= DITTO_KERNELS_AVX512; kernels++)
        for (int which = 0; which < 3; which++)
            for (int in_groups = 0; in_groups < 2; in_groups++)
                check_scans((ditto_kernels)kernels, which, in_groups != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_has_the_expected_bits_with_every_compiler_and_set_of_instructions),
        cmocka_unit_test(normal_numbers_have_the_expected_bits),
        cmocka_unit_test(adam_has_the_expected_bits),
        cmocka_unit_test(complex_quotients_and_differences_have_the_expected_bits),
        cmocka_unit_test(complex_products_over_replicas_have_the_expected_bits_with_all_kernels),
        cmocka_unit_test(scans_have_the_expected_bits_with_all_kernels_and_in_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
