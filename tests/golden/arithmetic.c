/* tests/golden/arithmetic.c - computes hashes of the results of ditto's own arithmetic on fixed inputs. The
 * file is compiled once for each compiler and set of flags (tests/golden/meson.build). VARIANT is the name of
 * the compilation. The sources under test are included, so they are compiled in the same way. */
#include "golden/golden.h"

#include "base/numbers/elementary.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define TEXT_(a)    #a
#define TEXT(a)     TEXT_(a)

#define DTI_KERNEL_TABLE    JOIN(golden_kernels, VARIANT)
#define DTI_OPTIMIZER_LOOPS JOIN(golden_steps, VARIANT)
#define dti_quotient_c64    JOIN(golden_quotient_c64, VARIANT)
#define dti_quotient_c128   JOIN(golden_quotient_c128, VARIANT)
#include "sync/kernels/kernel.h"
#include "vars/optimizer/optimizer_step.h"
/* No header declares tables. The library declares its own ones in the files that choose between them. */
extern const struct dti_optimizer_loops DTI_OPTIMIZER_LOOPS;
extern dti_kernel_table DTI_KERNEL_TABLE;
#include "../../src/sync/kernels/kernel_loops.c"
#undef INDEPENDENT
#include "../../src/vars/optimizer/optimizer_loops.c"
#include "../../src/vars/elements/quotient.c"

#include <stdio.h>
#include <stdlib.h>

#define COUNT 515 /* whole vectors and a remainder */
#define BASIS UINT64_C(0xcbf29ce484222325)

static uint64_t hash_log(void)
{
    static double x[COUNT], y[COUNT];
    uint64_t state = 1, hash = BASIS;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++) {
            uint64_t bits = golden_next(&state);
            x[i] = (double)(((bits >> 11) >> (bits & 31)) + 1) * 0x1p-53;
        }
        for (int i = 0; i < COUNT; i++)
            y[i] = dti_log(x[i]);
        hash = golden_hash(hash, y, sizeof y);
    }
    return hash;
}

static void hash_sine_and_cosine(uint64_t *sine_hash, uint64_t *cosine_hash)
{
    static double turns[COUNT], sine[COUNT], cosine[COUNT];
    uint64_t state = 2;
    *sine_hash = *cosine_hash = BASIS;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++) {
            uint64_t bits = golden_next(&state);
            turns[i] = (double)((bits >> 11) >> (bits & 15)) * 0x1p-53;
        }
        for (int i = 0; i < COUNT; i++)
            dti_sin_cos_of_turns(turns[i], &sine[i], &cosine[i]);
        *sine_hash = golden_hash(*sine_hash, sine, sizeof sine);
        *cosine_hash = golden_hash(*cosine_hash, cosine, sizeof cosine);
    }
}

static uint64_t hash_power(void)
{
    static const double base[] = { 0, 0.5, 0.8, 0.9, 0.99, 0.999, 0.9999, 1 };
    uint64_t hash = BASIS;
    for (uint64_t exponent = 0; exponent < 100000; exponent = exponent + 1 + exponent / 9)
        for (size_t i = 0; i < sizeof base / sizeof base[0]; i++) {
            double power = dti_power(base[i], exponent);
            hash = golden_hash(hash, &power, sizeof power);
        }
    return hash;
}

static uint64_t hash_sum_of_products(void)
{
    static double out[COUNT];
    uint64_t state = 3, hash = BASIS;
    for (int i = 0; i < COUNT; i++) {
        double a = golden_number(&state), b = golden_number(&state), c = golden_number(&state);
        out[i] = dti_sum_of_products(a, b, c, i % 2 ? golden_number(&state) : -a * b / c);
    }
    return golden_hash(hash, out, sizeof out);
}

static void hash_quotients(uint64_t *c64_hash, uint64_t *c128_hash)
{
    static double x[2 * COUNT], y[2 * COUNT], quotient[2 * COUNT];
    static float x_f32[2 * COUNT], y_f32[2 * COUNT], quotient_f32[2 * COUNT];
    uint64_t state = 4;
    *c64_hash = *c128_hash = BASIS;
    for (int scale = -3; scale <= 3; scale++) {
        double big = scale < 0 ? 0x1p-330 : 0x1p330, factor = scale == 0 ? 1 : big;
        for (int k = 1; k < 3 && scale * scale > k * k; k++)
            factor *= big; /* 2^-990 .. 2^990 */
        for (int i = 0; i < 2 * COUNT; i++) {
            x[i] = golden_number(&state) * factor;
            y[i] = golden_number(&state) * factor;
            x_f32[i] = (float)golden_number(&state);
            y_f32[i] = (float)golden_number(&state);
        }
        dti_quotient_c128(quotient, x, y, COUNT);
        *c128_hash = golden_hash(*c128_hash, quotient, sizeof quotient);
        dti_quotient_c64(quotient_f32, x_f32, y_f32, COUNT);
        *c64_hash = golden_hash(*c64_hash, quotient_f32, sizeof quotient_f32);
    }
}

#define STEPS(type, which)                                                                                \
    static uint64_t hash_steps_##type(void)                                                               \
    {                                                                                                     \
        static type value[COUNT], gradient[COUNT], m[COUNT], v[COUNT];                                    \
        ditto_optimizer_options options = {                                                               \
            .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8                                \
        };                                                                                                \
        options.weight_decay = 0.01;                                                                      \
        struct dti_optimizer_step step = {                                                                \
            .options = &options, .learning_rate = 0.1, .weight_decay = 0.01, .rate1 = 0.37, .scale2 = 5.1 \
        };                                                                                                \
        const struct dti_optimizer_loops *loops = &DTI_OPTIMIZER_LOOPS;                                   \
        dti_optimizer_loop *const all[] = { loops->descend[which], loops->momentum[which],                \
                                            loops->nesterov[which], loops->adapt[which],                  \
                                            loops->decay[which] };                                        \
        uint64_t state = 5, hash = BASIS;                                                                 \
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {                                         \
            ditto_rule_range range = { .count = COUNT, .gradient = gradient, .slot = { m, v } };          \
            for (int i = 0; i < COUNT; i++) {                                                             \
                value[i] = (type)golden_number(&state);                                                   \
                gradient[i] = (type)golden_number(&state);                                                \
                m[i] = (type)golden_number(&state);                                                       \
                v[i] = (type)golden_number(&state);                                                       \
                v[i] = v[i] < 0 ? -v[i] : v[i];                                                           \
            }                                                                                             \
            all[k](&step, &range, value, value);                                                          \
            hash = golden_hash(hash, value, sizeof value);                                                \
            hash = golden_hash(hash, m, sizeof m);                                                        \
            hash = golden_hash(hash, v, sizeof v);                                                        \
        }                                                                                                 \
        return hash;                                                                                      \
    }
STEPS(float, 0)
STEPS(double, 1)

/* Makes elements of a dtype. Floating-point elements are finite, and the product of two of them neither
 * overflows nor underflows. */
static void fill(ditto_dtype dtype, void *out, uint64_t *state)
{
    for (size_t i = 0; i < 2 * COUNT; i++) {
        uint64_t bits = golden_next(state);
        double number = golden_number(state);
        if (dtype == DITTO_F16)
            ((uint16_t *)out)[i] = (uint16_t)((bits & 0x83ff) | (10 + bits % 11) << 10);
        else if (dtype == DITTO_BF16)
            ((uint16_t *)out)[i] = (uint16_t)((bits & 0x807f) | (117 + bits % 21) << 7);
        else if (dtype == DITTO_F32 || dtype == DITTO_C64)
            ((float *)out)[i] = (float)number;
        else if (dtype == DITTO_F64 || dtype == DITTO_C128)
            ((double *)out)[i] = number;
        else if (dtype == DITTO_BOOL)
            ((uint8_t *)out)[i] = bits & 1;
        else
            ((uint64_t *)out)[i] = bits;
    }
}

static uint64_t hash_kernel(uint64_t hash, const struct dti_kernel *kernel, ditto_dtype dtype, ditto_op op,
                            size_t bytes)
{
    static uint64_t in[4][2 * COUNT], wide[2][2 * COUNT], out[2][2 * COUNT];
    uint64_t state = (uint64_t)dtype * 100 + (uint64_t)op;
    void *x = in[0], *y = in[1];
    memset(out, 0, sizeof out);
    for (int k = 0; k < 4; k++)
        fill(dtype, in[k], &state);
    kernel->combine_into_two(out[0], out[1], x, y, COUNT);
    hash = golden_hash(golden_hash(hash, out[0], COUNT * bytes), out[1], COUNT * bytes);
    if (kernel->widen != NULL) {
        kernel->widen(wide[0], in[0], COUNT);
        kernel->widen(wide[1], in[1], COUNT);
        x = wide[0];
        y = wide[1];
    }
    kernel->combine(x, x, y, COUNT);
    if (kernel->divide != NULL)
        kernel->divide(x, COUNT, 3);
    if (kernel->narrow != NULL)
        kernel->narrow(out[0], x, COUNT);
    hash = golden_hash(hash, kernel->narrow != NULL ? out[0] : x, COUNT * bytes);
    if (kernel->combine_four != NULL) {
        kernel->combine_four(out[0], in[0], in[1], in[2], in[3], COUNT);
        hash = golden_hash(hash, out[0], COUNT * bytes);
    }
    return hash;
}

/* A new dtype gets its values in fill, its size in hash_kernels and a part of its own in kernel_parts,
 * because the hashes of the other parts never change. */
DTI_KNOWS_DTYPES(15);

/* Returns a hash of the results of all kernels of the dtypes from `from` to `to`, both included. */
static uint64_t hash_kernels(ditto_dtype from, ditto_dtype to)
{
    static const size_t bytes[] = {
        [DITTO_F16] = 2,   [DITTO_BF16] = 2, [DITTO_F32] = 4, [DITTO_F64] = 8, [DITTO_C64] = 8,
        [DITTO_C128] = 16, [DITTO_I8] = 1,   [DITTO_I16] = 2, [DITTO_I32] = 4, [DITTO_I64] = 8,
        [DITTO_U8] = 1,    [DITTO_U16] = 2,  [DITTO_U32] = 4, [DITTO_U64] = 8, [DITTO_BOOL] = 1
    };
    uint64_t hash = BASIS;
    for (ditto_dtype dtype = from; dtype <= to; dtype++)
        for (ditto_op op = DITTO_SUM; op <= DITTO_XOR; op++)
            if (DTI_KERNEL_TABLE[dtype][op].combine != NULL)
                hash = hash_kernel(hash, &DTI_KERNEL_TABLE[dtype][op], dtype, op, bytes[dtype]);
    return hash;
}

/* Each dtype is in one part. */
static const struct {
    enum golden_part part;
    ditto_dtype from, to;
} kernel_parts[] = {
    { GOLDEN_KERNELS_HALF, DITTO_F16, DITTO_BF16 },
    { GOLDEN_KERNELS_REAL, DITTO_F32, DITTO_F64 },
    { GOLDEN_KERNELS_COMPLEX, DITTO_C64, DITTO_C128 },
    { GOLDEN_KERNELS_INTEGER, DITTO_I8, DITTO_BOOL },
};

static void compute(uint64_t hash[GOLDEN_PARTS])
{
    hash[GOLDEN_LOG] = hash_log();
    hash_sine_and_cosine(&hash[GOLDEN_SINE], &hash[GOLDEN_COSINE]);
    hash[GOLDEN_POWER] = hash_power();
    hash[GOLDEN_SUM_OF_PRODUCTS] = hash_sum_of_products();
    hash_quotients(&hash[GOLDEN_QUOTIENT_C64], &hash[GOLDEN_QUOTIENT_C128]);
    hash[GOLDEN_STEPS_F32] = hash_steps_float();
    hash[GOLDEN_STEPS_F64] = hash_steps_double();
    int dtypes = 0;
    for (size_t i = 0; i < sizeof kernel_parts / sizeof kernel_parts[0]; i++) {
        hash[kernel_parts[i].part] = hash_kernels(kernel_parts[i].from, kernel_parts[i].to);
        dtypes += (int)kernel_parts[i].to - (int)kernel_parts[i].from + 1;
    }
    if (dtypes != DTI_NUM_DTYPES) {
        fprintf(stderr, "the parts of kernels have %d of %d dtypes\n", dtypes, DTI_NUM_DTYPES);
        abort();
    }
}

#if defined(__FMA__) && defined(__AVX2__)
#define NEEDS_FMA 1
#else
#define NEEDS_FMA 0
#endif
#if defined(__AVX512F__)
#define NEEDS_AVX512 1
#else
#define NEEDS_AVX512 0
#endif

extern const struct golden_variant JOIN(golden, VARIANT);
const struct golden_variant JOIN(golden, VARIANT) = { TEXT(VARIANT), NEEDS_FMA, NEEDS_AVX512, compute };
