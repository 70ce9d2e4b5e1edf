/* tests/sync/reference.h - a plain implementation of the documented reduction tree and arithmetic, with which
 * tests compare every reduction. It computes one element at a time, without vectors, and uses none of the
 * library's arithmetic. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <ditto/collective.h>

#include "base/types/types.h" /* for the number of dtypes alone */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* One element while it is combined. */
struct element {
    /* A real number, or the real and the imaginary part of a complex number. */
    double f, g;

    /* The bits of an integer or a bool. */
    uint64_t u;
};

/* -- 16-bit floats, converted by the definition of their sign, exponent and fraction -- */

static inline double reference_from_half(uint16_t bits, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

/* Rounds to the nearest number, and a tie to the number whose last bit is 0. The value is scaled so that the
 * last bit has the value 1. */
static inline uint16_t reference_to_half(double value, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, exponent;
    uint16_t sign = signbit(value) ? 0x8000 : 0,
             infinite = (uint16_t)(((1 << exponent_bits) - 1) << fraction_bits);
    if (isnan(value))
        return (uint16_t)(sign | infinite | 1u << (fraction_bits - 1));
    if (isinf(value))
        return sign | infinite;
    if (value == 0)
        return sign;
    frexp(value, &exponent); /* 0.5 <= |value| / 2^exponent < 1 */
    /* The exponent of the last bit. */
    int unit = (exponent - 1 > 1 - bias ? exponent - 1 : 1 - bias) - fraction_bits;
    /* At most fraction_bits + 1 bits, and a carry. */
    double scaled = nearbyint(ldexp(fabs(value), -unit));
    uint32_t digits = (uint32_t)scaled;
    /* A carry out of the fraction increases the exponent. */
    uint32_t bits = digits + ((uint32_t)(unit + fraction_bits + bias - 1) << fraction_bits);
    return bits >= infinite ? sign | infinite : (uint16_t)(sign | bits);
}

/* -- Elements -- */

/* A new dtype gets its case in reference_is_float, reference_is_signed, reference_load and reference_store,
 * its operators in reference_has, and its values in reference_fill. */
DTI_KNOWS_DTYPES(15);

static inline bool reference_is_float(ditto_dtype d)
{
    return d == DITTO_F16 || d == DITTO_BF16 || d == DITTO_F32 || d == DITTO_F64 || d == DITTO_C64 ||
           d == DITTO_C128;
}

static inline bool reference_is_signed(ditto_dtype d)
{
    return d == DITTO_I8 || d == DITTO_I16 || d == DITTO_I32 || d == DITTO_I64;
}

static inline struct element reference_load(ditto_dtype d, const void *at)
{
    struct element e = { 0 };
    float pair[2];
    double wide[2];
    uint16_t half;
    size_t size = ditto_dtype_bytes(d);
    switch (d) {
    case DITTO_F16:
    case DITTO_BF16:
        memcpy(&half, at, 2);
        e.f = d == DITTO_F16 ? reference_from_half(half, 5, 10) : reference_from_half(half, 8, 7);
        return e;
    case DITTO_F32:
    case DITTO_C64:
        memcpy(pair, at, size);
        e.f = (double)pair[0];
        e.g = d == DITTO_C64 ? (double)pair[1] : 0;
        return e;
    case DITTO_F64:
    case DITTO_C128:
        memcpy(wide, at, size);
        e.f = wide[0];
        e.g = d == DITTO_C128 ? wide[1] : 0;
        return e;
    default:
        /* Byte by byte. A load through the type would be shorter, but the library does that. */
        for (size_t i = 0; i < size; i++)
            e.u |= (uint64_t)((const unsigned char *)at)[i] << 8 * i;
        return e;
    }
}

static inline void reference_store(ditto_dtype d, struct element e, void *at)
{
    float pair[2] = { (float)e.f, (float)e.g };
    double wide[2] = { e.f, e.g };
    uint16_t half;
    size_t size = ditto_dtype_bytes(d);
    switch (d) {
    case DITTO_F16:
    case DITTO_BF16:
        half = d == DITTO_F16 ? reference_to_half(e.f, 5, 10) : reference_to_half(e.f, 8, 7);
        memcpy(at, &half, 2);
        break;
    case DITTO_F32:
    case DITTO_C64:
        memcpy(at, pair, size);
        break;
    case DITTO_F64:
    case DITTO_C128:
        memcpy(at, wide, size);
        break;
    default:
        for (size_t i = 0; i < size; i++)
            ((unsigned char *)at)[i] = (unsigned char)(e.u >> 8 * i);
    }
}

/* Rounds to the type in which the dtype is combined, which is f32 for all but f64 and c128. Without volatile,
 * gcc 12 at -O2 omits the rounding when it packs two of them into one vector. */
static inline double reference_round(ditto_dtype d, double x)
{
    if (d == DITTO_F64 || d == DITTO_C128)
        return x;
    volatile float rounded = (float)x;
    return (double)rounded;
}

static inline double reference_extreme(double l, double r, bool least)
{
    if (isnan(l) || isnan(r))
        return (double)NAN;
    if (l == r)
        return least == !!signbit(l) ? l : r;
    return least == (l < r) ? l : r;
}

/* The product of two f32 is exact in double, so it is rounded once. The processor rounds the product of two
 * f64. */
static inline struct element reference_float(ditto_dtype d, ditto_op op, struct element l, struct element r)
{
    struct element e = { 0 };
    bool complex = d == DITTO_C64 || d == DITTO_C128;
    switch (op) {
    case DITTO_MIN:
    case DITTO_MAX:
        e.f = reference_extreme(l.f, r.f, op == DITTO_MIN);
        break;
    case DITTO_PROD:
        e.f = reference_round(d, l.f * r.f);
        if (complex) {
            double ac = e.f, bd = reference_round(d, l.g * r.g);
            double ad = reference_round(d, l.f * r.g), bc = reference_round(d, l.g * r.f);
            e.f = reference_round(d, ac - bd);
            e.g = reference_round(d, ad + bc);
        }
        break;
    default:
        e.f = reference_round(d, l.f + r.f);
        e.g = reference_round(d, l.g + r.g);
    }
    return e;
}

static inline struct element reference_integer(ditto_dtype d, ditto_op op, struct element l, struct element r)
{
    unsigned unused = 64 - 8 * (unsigned)ditto_dtype_bytes(d);
    int64_t a = (int64_t)(l.u << unused) >> unused, b = (int64_t)(r.u << unused) >> unused;
    bool less = reference_is_signed(d) ? a < b : l.u < r.u;
    uint64_t u = op == DITTO_SUM    ? l.u + r.u
                 : op == DITTO_PROD ? l.u * r.u
                 : op == DITTO_AND  ? (l.u & r.u)
                 : op == DITTO_OR   ? (l.u | r.u)
                 : op == DITTO_XOR  ? (l.u ^ r.u)
                 : op == DITTO_MIN  ? (less ? l.u : r.u)
                                    : (less ? r.u : l.u);
    return (struct element){ .u = u << unused >> unused };
}

static inline struct element reference_tree(ditto_dtype d, ditto_op op, const struct element *x, uint32_t a,
                                            uint32_t b)
{
    if (b - a == 1)
        return x[a];
    uint32_t m = a + (b - a + 1) / 2;
    struct element l = reference_tree(d, op, x, a, m);
    struct element r = reference_tree(d, op, x, m, b);
    return reference_is_float(d) ? reference_float(d, op, l, r) : reference_integer(d, op, l, r);
}

/* Reduces n elements, at most 64, in blocks (ditto_strategy_options.order_blocks), and rounds the result to
 * the dtype. */
static inline void reference_reduce_blocks(ditto_dtype d, ditto_op op, const void *const *source, uint32_t n,
                                           uint32_t blocks, void *out)
{
    struct element x[64], of_block[64];
    for (uint32_t i = 0; i < n; i++)
        x[i] = reference_load(d, source[i]);
    for (uint32_t block = 0, first = 0, end; block < blocks; block++, first = end) {
        end = first + n / blocks + (block < n % blocks);
        of_block[block] = reference_tree(d, op, x, first, end);
    }
    struct element e = reference_tree(d, op, of_block, 0, blocks);
    if (op == DITTO_MEAN) {
        e.f = reference_round(d, e.f / n);
        e.g = reference_round(d, e.g / n);
    }
    reference_store(d, e, out);
}

/* The scan of value k over x[a] to x[b - 1], as docs/semantics.md defines it. Returns false if it has no
 * value, because it is exclusive and leaves out the only one. */
static inline bool reference_scan_tree(ditto_dtype d, ditto_op op, const struct element *x, uint32_t a,
                                       uint32_t b, uint32_t k, bool exclusive, struct element *out)
{
    struct element left, right;
    if (b - a == 1) {
        *out = x[a];
        return !exclusive;
    }
    uint32_t m = a + (b - a + 1) / 2;
    if (k < m)
        return reference_scan_tree(d, op, x, a, m, k, exclusive, out);
    *out = left = reference_tree(d, op, x, a, m);
    if (reference_scan_tree(d, op, x, m, b, k, exclusive, &right))
        *out = reference_is_float(d) ? reference_float(d, op, left, right)
                                     : reference_integer(d, op, left, right);
    return true;
}

/* The scan of value k of n values, at most 64, in blocks, rounded to the dtype. Returns false if it has no
 * value. */
static inline bool reference_scan(ditto_dtype d, ditto_op op, const void *const *source, uint32_t n,
                                  uint32_t blocks, uint32_t k, bool exclusive, void *out)
{
    struct element x[64], of_block[64], e;
    uint32_t block = 0, first = 0, end;
    for (uint32_t i = 0; i < n; i++)
        x[i] = reference_load(d, source[i]);
    for (; end = first + n / blocks + (block < n % blocks), end <= k; first = end)
        of_block[block++] = reference_tree(d, op, x, first, end);
    /* In its own block, and then over the blocks, of which the own one is left out if it has no value. */
    bool has_value = reference_scan_tree(d, op, x, first, end, k, exclusive, &of_block[block]);
    if (!reference_scan_tree(d, op, of_block, 0, blocks, block, !has_value, &e))
        return false;
    reference_store(d, e, out);
    return true;
}

/* The same in one block. */
static inline void reference_reduce(ditto_dtype d, ditto_op op, const void *const *source, uint32_t n,
                                    void *out)
{
    reference_reduce_blocks(d, op, source, n, 1, out);
}

/* -- How often the order of a sum matters -- */

struct reference_tally {
    /* The number of comparisons. */
    size_t cases, elements;

    /* How many of them differ in bits from a sum from left to right. */
    size_t differing_cases, differing_elements;
};

/* Compares the bits. Any NaN equals any other. The two parts of a complex number are compared separately. */
static inline bool reference_same(ditto_dtype d, const void *left, const void *right)
{
    struct element l = reference_load(d, left), r = reference_load(d, right);
    if (!reference_is_float(d))
        return l.u == r.u;
    return ((isnan(l.f) && isnan(r.f)) || (l.f == r.f && !signbit(l.f) == !signbit(r.f))) &&
           ((isnan(l.g) && isnan(r.g)) || (l.g == r.g && !signbit(l.g) == !signbit(r.g)));
}

/* Returns true if a sum from left to right has other bits than `found`. */
static inline bool reference_differs_from_left_fold(ditto_dtype d, ditto_op op, const void *const *source,
                                                    uint32_t n, const void *found)
{
    char fold[16];
    struct element e = reference_load(d, source[0]);
    if (!reference_is_float(d) || op != DITTO_SUM)
        return false;
    for (uint32_t r = 1; r < n; r++)
        e = reference_float(d, DITTO_SUM, e, reference_load(d, source[r]));
    reference_store(d, e, fold);
    return !reference_same(d, fold, found);
}

/* -- The operations and values of each dtype -- */

static inline bool reference_has(ditto_dtype d, ditto_op op)
{
    bool complex = d == DITTO_C64 || d == DITTO_C128, order = op == DITTO_MIN || op == DITTO_MAX;
    bool bits = op >= DITTO_AND && op <= DITTO_XOR;
    if (d == DITTO_BOOL)
        return bits;
    if (reference_is_float(d))
        return !bits && !(complex && order);
    return op != DITTO_MEAN;
}

/* Stores a random value. The exponents of floating values are spread over a range of 40 (26 for f16), so that
 * a sum depends on its order. Some are a zero, an infinity, a NaN, or a number that is denormal in f32 (in
 * f16 for that dtype). An integer has any bits, and a bool is 0 or 1. */
static inline void reference_fill(ditto_dtype d, uint64_t seed, uint32_t replica, size_t i, void *out)
{
    uint64_t x = seed ^ (replica + 1) * 0x9e3779b97f4a7c15u ^ (i + 1) * 0xc2b2ae3d27d4eb4fu;
    struct element e = { 0 };
    double part[2];
    for (int k = 0; k < 2; k++) {
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
        double sign = x & 1 ? -1 : 1, mantissa = 1 + (double)(x >> 12 & 0xffffff) * 0x1p-24;
        uint64_t kind = x >> 56;
        int spread = d == DITTO_F16 ? 26 : 40;
        part[k] = sign * mantissa * ldexp(1, (int)(x >> 40 & 0xff) * spread / 256 - spread / 2);
        if (kind == 0)
            part[k] = sign * 0.0;
        else if (kind == 1)
            part[k] = sign * (d == DITTO_F16 ? 0x1p-24 : 1e-41); /* denormal */
        else if (kind == 2)
            part[k] = x >> 50 & 1 ? (double)NAN : sign * (double)INFINITY;
    }
    e.f = part[0];
    e.g = part[1];
    e.u = d == DITTO_BOOL ? x & 1 : x;
    reference_store(d, e, out);
}

/* Reduces x[a] to x[b - 1]. */
static inline float reference_f32(const float *x, uint32_t a, uint32_t b, ditto_op op)
{
    const void *source[64];
    float out;
    for (uint32_t i = a; i < b; i++)
        source[i - a] = &x[i];
    reference_reduce(DITTO_F32, op, source, b - a, &out);
    return out;
}

#endif
