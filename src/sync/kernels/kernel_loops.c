/* src/sync/kernels/kernel_loops.c - elementwise combination for each dtype and op. Compiled once for each instruction set, with
 * DTI_KERNEL_TABLE naming the table that comes out (src/meson.build).
 *
 * Every kernel is one loop whose body is one expression; the compiler makes the vector code. No step depends on another
 * element, so vector width cannot change a bit, and -ffp-contract=off keeps a product and a sum apart: all tables give the
 * same bits (tests/sync/kernels/test_kernels.c). f16 and bf16 are combined in f32 and rounded once, to nearest even. */
#include "sync/kernels/kernel.h"

#include <math.h>
#include <string.h>

/* The buffers are equal or disjoint (kernel.h), so no iteration needs another one's result. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* The kernels of one dtype and op: `value` is an expression of x and y. */
#define KERNEL(name, type, value)                                                                          \
    static void name(void *out, const void *left, const void *right, size_t count)                         \
    {                                                                                                      \
        type *o = out;                                                                                     \
        const type *a = left, *b = right;                                                                  \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                                     \
        {                                                                                                  \
            type x = a[i], y = b[i];                                                                       \
            o[i] = (value);                                                                                \
        }                                                                                                  \
    }                                                                                                      \
    static void name##_into_two(void *out0, void *out1, const void *left, const void *right, size_t count) \
    {                                                                                                      \
        type *o0 = out0, *o1 = out1;                                                                       \
        const type *a = left, *b = right;                                                                  \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                                     \
        {                                                                                                  \
            type x = a[i], y = b[i];                                                                       \
            o0[i] = o1[i] = (value);                                                                       \
        }                                                                                                  \
    }                                                                                                      \
    static inline type name##_of(type x, type y)                                                           \
    {                                                                                                      \
        return (value);                                                                                    \
    }                                                                                                      \
    static void name##_four(void *out, const void *in0, const void *in1, const void *in2, const void *in3, \
                            size_t count)                                                                  \
    {                                                                                                      \
        type *o = out;                                                                                     \
        const type *a = in0, *b = in1, *c = in2, *d = in3;                                                 \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                                     \
        {                                                                                                  \
            o[i] = name##_of(name##_of(a[i], b[i]), name##_of(c[i], d[i]));                                \
        }                                                                                                  \
    }

/* IEEE 754-2019 minimum and maximum: a NaN on either side gives a NaN (x + y), and -0 is less than +0. */
#define MINIMUM(x, y) (x < y ? x : y < x ? y : x == y ? (signbit(x) ? x : y) : x + y)
#define MAXIMUM(x, y) (x > y ? x : y > x ? y : x == y ? (signbit(x) ? y : x) : x + y)

/* -- f32, f64, and complex numbers, which add as twice as many reals -- */

#define REAL(bits, type)                                                     \
    KERNEL(sum_f##bits, type, x + y)                                         \
    KERNEL(prod_f##bits, type, x *y)                                         \
    KERNEL(min_f##bits, type, MINIMUM(x, y))                                 \
    KERNEL(max_f##bits, type, MAXIMUM(x, y))                                 \
    static void divide_f##bits(void *values, size_t count, uint32_t divisor) \
    {                                                                        \
        type *v = values, d = (type)divisor;                                 \
        for (size_t i = 0; i < count; i++)                                   \
            v[i] /= d;                                                       \
    }
REAL(32, float)
REAL(64, double)

/* (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each rounded as it stands; infinities get no special care. Real and imaginary
 * parts have loops of their own: gcc 12 makes fused multiply-adds of the whole pattern where AVX-512 has them, whatever
 * -ffp-contract says, and those have other bits (tests/sync/kernels/test_kernels.c). */
#define BLOCK 128
#define COMPLEX(name, real, type)                                                                            \
    static void sum_##name(void *out, const void *left, const void *right, size_t count)                     \
    {                                                                                                        \
        sum_##real(out, left, right, 2 * count);                                                             \
    }                                                                                                        \
    static void sum_##name##_into_two(void *o0, void *o1, const void *left, const void *right, size_t count) \
    {                                                                                                        \
        sum_##real##_into_two(o0, o1, left, right, 2 * count);                                               \
    }                                                                                                        \
    static void sum_##name##_four(void *out, const void *a, const void *b, const void *c, const void *d,     \
                                  size_t count)                                                              \
    {                                                                                                        \
        sum_##real##_four(out, a, b, c, d, 2 * count);                                                       \
    }                                                                                                        \
    static void divide_##name(void *values, size_t count, uint32_t divisor)                                  \
    {                                                                                                        \
        divide_##real(values, 2 * count, divisor);                                                           \
    }                                                                                                        \
    static void prod_##name##_block(type *o, const type *a, const type *b, size_t count)                     \
    {                                                                                                        \
        type re[BLOCK], im[BLOCK];                                                                           \
        for (size_t i = 0; i < count; i++)                                                                   \
            re[i] = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1];                                       \
        for (size_t i = 0; i < count; i++)                                                                   \
            im[i] = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];                                       \
        for (size_t i = 0; i < count; i++) {                                                                 \
            o[2 * i] = re[i];                                                                                \
            o[2 * i + 1] = im[i];                                                                            \
        }                                                                                                    \
    }                                                                                                        \
    static void prod_##name(void *out, const void *left, const void *right, size_t count)                    \
    {                                                                                                        \
        for (size_t i = 0; i < count; i += BLOCK)                                                            \
            prod_##name##_block((type *)out + 2 * i, (const type *)left + 2 * i,                             \
                                (const type *)right + 2 * i, count - i < BLOCK ? count - i : BLOCK);         \
    }                                                                                                        \
    static void prod_##name##_into_two(void *o0, void *o1, const void *left, const void *right,              \
                                       size_t count)                                                         \
    {                                                                                                        \
        prod_##name(o0, left, right, count);                                                                 \
        memcpy(o1, o0, count * 2 * sizeof(type));                                                            \
    }
COMPLEX(c64, f32, float)
COMPLEX(c128, f64, double)

/* -- integers: sums and products wrap, in unsigned arithmetic, whose overflow is defined -- */

#define INTEGER(bits)                                                 \
    KERNEL(sum_##bits, uint##bits##_t, (uint##bits##_t)(x + y))       \
    KERNEL(prod_##bits, uint##bits##_t, (uint##bits##_t)(1u * x * y)) \
    KERNEL(min_i##bits, int##bits##_t, x < y ? x : y)                 \
    KERNEL(max_i##bits, int##bits##_t, x > y ? x : y)                 \
    KERNEL(min_u##bits, uint##bits##_t, x < y ? x : y)                \
    KERNEL(max_u##bits, uint##bits##_t, x > y ? x : y)                \
    KERNEL(and_##bits, uint##bits##_t, (uint##bits##_t)(x & y))       \
    KERNEL(or_##bits, uint##bits##_t, (uint##bits##_t)(x | y))        \
    KERNEL(xor_##bits, uint##bits##_t, (uint##bits##_t)(x ^ y))
INTEGER(8)
INTEGER(16)
INTEGER(32)
INTEGER(64)

/* -- 16-bit floats -- */

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The exponent is moved by a multiplication, which also makes denormals normal. */
static inline float from_f16(uint16_t h)
{
    uint32_t bits = bits_of(float_of((uint32_t)(h & 0x7fff) << 13) * 0x1p112f);
    bits |= (h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0; /* infinity and NaN */
    return float_of(bits | (uint32_t)(h & 0x8000) << 16);
}

/* To nearest even. Three ranges: too large (infinity, NaN), denormal as f16 (an addition shifts and rounds), and normal (the
 * rounding is added to the bits and carries into the exponent). Selections, no branches, so that it makes vector code. */
static inline uint16_t to_f16(float value)
{
    uint32_t bits = bits_of(value), sign = bits & 0x80000000u, magnitude = bits ^ sign;
    const uint32_t shift = (127u - 15 + 23 - 10 + 1) << 23;
    uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t small = bits_of(float_of(magnitude) + float_of(shift)) - shift;
    uint32_t normal =
        (magnitude + 0xc8000fffu + (magnitude >> 13 & 1)) >> 13; /* 0xc8000000: (15 - 127) << 23 */
    uint32_t half = magnitude >= 0x47800000u ? large : magnitude < 0x38800000u ? small : normal;
    return (uint16_t)(half | sign >> 16);
}

static inline float from_bf16(uint16_t b)
{
    return float_of((uint32_t)b << 16);
}

static inline uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u
                                                         : rounded); /* a NaN stays one */
}

/* Two of them at once, straight from and to 16 bits. */
#define HALF_PAIR(name, kind, value)                                                                       \
    static void name##_into_two(void *out0, void *out1, const void *left, const void *right, size_t count) \
    {                                                                                                      \
        uint16_t *o0 = out0, *o1 = out1;                                                                   \
        const uint16_t *a = left, *b = right;                                                              \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                                     \
        {                                                                                                  \
            float x = from_##kind(a[i]), y = from_##kind(b[i]);                                            \
            o0[i] = o1[i] = to_##kind(value);                                                              \
        }                                                                                                  \
    }
#define HALF(kind)                                                               \
    static void widen_##kind(void *out, const void *in, size_t count)            \
    {                                                                            \
        float *o = out;                                                          \
        const uint16_t *a = in;                                                  \
        INDEPENDENT for (size_t i = 0; i < count; i++) o[i] = from_##kind(a[i]); \
    }                                                                            \
    static void narrow_##kind(void *out, const void *in, size_t count)           \
    {                                                                            \
        uint16_t *o = out;                                                       \
        const float *a = in;                                                     \
        INDEPENDENT for (size_t i = 0; i < count; i++) o[i] = to_##kind(a[i]);   \
    }                                                                            \
    HALF_PAIR(sum_##kind, kind, x + y)                                           \
    HALF_PAIR(prod_##kind, kind, x *y)                                           \
    HALF_PAIR(min_##kind, kind, MINIMUM(x, y))                                   \
    HALF_PAIR(max_##kind, kind, MAXIMUM(x, y))
HALF(f16)
HALF(bf16)

/* -- the table -- */

#define ROW(name, type) [DITTO_##name] = { type, type##_into_two, type##_four, NULL, NULL, NULL }
#define PRODUCT_ROW(type) \
    [DITTO_PROD] = { type, type##_into_two, NULL, NULL, NULL, NULL } /* of complex numbers */
#define MEAN_ROW(type) \
    [DITTO_MEAN] = { sum_##type, sum_##type##_into_two, sum_##type##_four, divide_##type, NULL, NULL }
#define HALF_ROW(name, op, kind, divide) \
    [DITTO_##name] = { op##_f32, op##_##kind##_into_two, NULL, divide, widen_##kind, narrow_##kind }
#define HALF_ROWS(kind)                                                                                      \
    {                                                                                                        \
        HALF_ROW(SUM, sum, kind, NULL), HALF_ROW(MEAN, sum, kind, divide_f32),                               \
            HALF_ROW(MIN, min, kind, NULL), HALF_ROW(MAX, max, kind, NULL), HALF_ROW(PROD, prod, kind, NULL) \
    }
#define BITWISE_ROWS(bits) ROW(AND, and_##bits), ROW(OR, or_##bits), ROW(XOR, xor_##bits)
#define INTEGER_ROWS(sign, bits)                                                  \
    {                                                                             \
        ROW(SUM, sum_##bits), ROW(PROD, prod_##bits), ROW(MIN, min_##sign##bits), \
            ROW(MAX, max_##sign##bits), BITWISE_ROWS(bits)                        \
    }

dti_kernel_table DTI_KERNEL_TABLE = {
    [DITTO_F16] = HALF_ROWS(f16),
    [DITTO_BF16] = HALF_ROWS(bf16),
    [DITTO_F32] = { ROW(SUM, sum_f32), MEAN_ROW(f32), ROW(MIN, min_f32), ROW(MAX, max_f32),
                    ROW(PROD, prod_f32) },
    [DITTO_F64] = { ROW(SUM, sum_f64), MEAN_ROW(f64), ROW(MIN, min_f64), ROW(MAX, max_f64),
                    ROW(PROD, prod_f64) },
    [DITTO_C64] = { ROW(SUM, sum_c64), MEAN_ROW(c64), PRODUCT_ROW(prod_c64) },
    [DITTO_C128] = { ROW(SUM, sum_c128), MEAN_ROW(c128), PRODUCT_ROW(prod_c128) },
    [DITTO_I8] = INTEGER_ROWS(i, 8),
    [DITTO_I16] = INTEGER_ROWS(i, 16),
    [DITTO_I32] = INTEGER_ROWS(i, 32),
    [DITTO_I64] = INTEGER_ROWS(i, 64),
    [DITTO_U8] = INTEGER_ROWS(u, 8),
    [DITTO_U16] = INTEGER_ROWS(u, 16),
    [DITTO_U32] = INTEGER_ROWS(u, 32),
    [DITTO_U64] = INTEGER_ROWS(u, 64),
    [DITTO_BOOL] = { BITWISE_ROWS(8) },
};
