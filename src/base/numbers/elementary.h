/* src/base/numbers/elementary.h - logarithm, sine, cosine, powers and sums of products with documented bits.
 *
 * The functions of the C library may differ in the last bit between versions, and between the variants that
 * one version chooses for a processor. The functions here consist of + - * / on f64, which IEEE 754 specifies
 * exactly, and of operations on integers, in the order in which they are written. They therefore give the
 * same bits with every compiler, C library and processor, in the default floating-point environment
 * (base/numbers/fenv.h). The logarithm, sine and cosine have no branches, so loops over them become vector
 * code.
 *
 * The error bounds below are in ulp, the distance of neighbouring f64 numbers at the exact result.
 * tests/base/numbers/test_elementary.c compares the results with long double functions. tests/golden/ holds
 * the bits. */
#ifndef DTI_ELEMENTARY_H
#define DTI_ELEMENTARY_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2
#error "ditto needs IEEE 754 arithmetic: compile without -ffast-math, and on x86 with -msse2 -mfpmath=sse"
#endif

static inline uint64_t dti_bits_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double dti_f64_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The natural logarithm of a normal number x > 0, with an error below 1 ulp.
 *
 * Let x = 2^e * m, with m between sqrt(1/2) and sqrt(2). Let f = m - 1, which is exact, and s = f / (2 + f).
 * Then
 *     log m = 2 atanh s = 2 s + s * R,  R = 2/3 s^2 + 2/5 s^4 + ...,  and 2 s = f - s * f,
 * so log m = f - s * (f - R). Most of this value is in f. Since |s| < 0.172, the terms of R after s^20 are
 * below 2^-60 of the result. */
static inline double dti_log(double x)
{
    /* ln 2 in two parts. The high part ends in 21 zero bits, so its product with an exponent is exact. */
    const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    const uint64_t half_root = UINT64_C(0x3fe6a09e667f3bcd), one = UINT64_C(0x3ff0000000000000);
    uint64_t biased = (dti_bits_of_f64(x) - half_root + one) >> 52; /* e + 1023 */
    /* If the fraction bits of 2^52 are replaced by an integer below 2^52, the number becomes 2^52 plus it. */
    double e = dti_f64_of_bits(UINT64_C(0x4330000000000000) | biased) - (0x1p52 + 1023);
    double f = dti_f64_of_bits(dti_bits_of_f64(x) - ((biased << 52) - one)) - 1;
    double s = f / (2 + f), z = s * s;
    double r = 2.0 / 19 + z * (2.0 / 21);
    r = 2.0 / 17 + z * r;
    r = 2.0 / 15 + z * r;
    r = 2.0 / 13 + z * r;
    r = 2.0 / 11 + z * r;
    r = 2.0 / 9 + z * r;
    r = 2.0 / 7 + z * r;
    r = 2.0 / 5 + z * r;
    r = z * (2.0 / 3 + z * r);
    return e * ln2_high + (f - (s * (f - r) - e * ln2_low));
}

/* Sine and cosine of an angle in turns, 0 <= turns <= 1, each with an error below 2 ulp.
 *
 * The angle is split into q quarter turns and a rest r of at most half a quarter turn, which is exact. The
 * functions are Taylor series at 0, in x = r * pi / 2. The first terms that are left out, x^19/19! and
 * x^18/18!, are below 2^-58 of the result. */
static inline void dti_sin_cos_of_turns(double turns, double *sine, double *cosine)
{
    const double half_pi = 0x1.921fb54442d18p0;
    /* Adding 2^52 rounds to an integer, which is then in the low bits. */
    uint64_t quarter = dti_bits_of_f64(4 * turns + 0x1p52);
    double r = 4 * turns - (dti_f64_of_bits(quarter) - 0x1p52);
    double x = r * half_pi, y = x * x;
    double s = -1.0 / 1307674368000 + y * (1.0 / 355687428096000); /* 15!, 17! */
    s = 1.0 / 6227020800 + y * s;
    s = -1.0 / 39916800 + y * s;
    s = 1.0 / 362880 + y * s;
    s = -1.0 / 5040 + y * s;
    s = 1.0 / 120 + y * s;
    s = -1.0 / 6 + y * s;
    s = x + x * (y * s);
    double c = -1.0 / 87178291200 + y * (1.0 / 20922789888000); /* 14!, 16! */
    c = 1.0 / 479001600 + y * c;
    c = -1.0 / 3628800 + y * c;
    c = 1.0 / 40320 + y * c;
    c = -1.0 / 720 + y * c;
    c = 1.0 / 24 + y * c;
    c = 1 - (0.5 * y - y * y * c);
    /* Each quarter turn swaps the two and changes a sign. The quarters give (s, c), (c, -s), (-s, -c) and
     * (-c, s). */
    uint64_t sine_bits = dti_bits_of_f64(s), cosine_bits = dti_bits_of_f64(c);
    uint64_t swapped = (sine_bits ^ cosine_bits) & (0 - (quarter & 1));
    *sine = dti_f64_of_bits(sine_bits ^ swapped ^ (quarter & 2) << 62);
    *cosine = dti_f64_of_bits(cosine_bits ^ swapped ^ ((quarter + 1) & 2) << 62);
}

/* A number as the sum of two. `high` is the rounded sum, and `low` is its rounding error. */
struct dti_pair {
    double high, low;
};

/* Returns a + b without an error. Source: Knuth, The Art of Computer Programming, volume 2, section 4.2.2. */
static inline struct dti_pair dti_exact_sum(double a, double b)
{
    double sum = a + b, b_in_sum = sum - a;
    return (struct dti_pair){ sum, (a - (sum - b_in_sum)) + (b - b_in_sum) };
}

/* Returns a * b without an error, for factors below 2^990 whose product is 0 or above 2^-900. Each factor is
 * cut into halves whose products are exact. Source: Dekker, Numerische Mathematik 18, 1971. */
static inline struct dti_pair dti_exact_product(double a, double b)
{
    double a_cut = a * (0x1p27 + 1), b_cut = b * (0x1p27 + 1);
    double a_high = a_cut - (a_cut - a), b_high = b_cut - (b_cut - b);
    double a_low = a - a_high, b_low = b - b_high, product = a * b;
    double rest = ((product - a_high * b_high) - a_low * b_high) - a_high * b_low;
    return (struct dti_pair){ product, a_low * b_low - rest };
}

/* Returns a * b + c * d, rounded once, with a further error of at most 2^-105 of |a * b| + |c * d|. The
 * factors are limited as in dti_exact_product. */
static inline double dti_sum_of_products(double a, double b, double c, double d)
{
    struct dti_pair ab = dti_exact_product(a, b), cd = dti_exact_product(c, d);
    struct dti_pair sum = dti_exact_sum(ab.high, cd.high);
    return sum.high + (sum.low + (ab.low + cd.low));
}

/* Returns base^exponent for 0 <= base <= 1. The error is below 0.51 ulp for exponents up to 2^40. A result
 * below 2^-400 becomes 0. The function goes through the bits of the exponent from the highest one on. It
 * squares the product for each bit, and then multiplies it by base if the bit is set. The product is kept as
 * a pair, because each squaring doubles the relative error. */
static inline double dti_power(double base, uint64_t exponent)
{
    struct dti_pair p = { 1, 0 };
    for (int bit = 63; bit >= 0; bit--) {
        struct dti_pair next = dti_exact_product(p.high, p.high);
        double low = next.low + 2 * (p.high * p.low);
        p.high = next.high + low;
        p.low = low - (p.high - next.high);
        if ((exponent >> bit & 1) != 0) {
            next = dti_exact_product(p.high, base);
            low = next.low + p.low * base;
            p.high = next.high + low;
            p.low = low - (p.high - next.high);
        }
        if (p.high < 0x1p-400)
            return 0;
    }
    return p.high;
}

#endif
