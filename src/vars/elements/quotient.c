/* src/vars/elements/quotient.c - quotients of complex numbers, computed with IEEE 754's basic operations. The
 * operator of C is not used, because it calls a function of the compiler's library, and each library uses
 * another formula.
 *
 *     (a + bi) / (c + di) = ((ac + bd) + (bc - ad)i) / (cc + dd)
 *
 * The error of each part is below 0.51 ulp in c64. In c128 it is below 2.5 ulp if in each of the two
 * numbers the parts differ by a factor of at most 2^380. Both bounds hold also where the two products of a
 * part nearly cancel. They hold for parts of the quotient that are normal numbers. Infinities and zeros
 * are treated as ISO C11, annex G.5.1, specifies: a number other than zero divided by zero is infinite,
 * infinite divided by finite is infinite, and finite divided by infinite is zero. A part of a quotient
 * that is zero has the sign that IEEE 754 gives to the sum of its two products, in c64 and c128 alike. If
 * the divisor is infinite, its infinite parts count as 1 and its finite parts as 0 in this sum. */
#include "base/numbers/elementary.h"
#include "vars/elements/elements.h"

#include <math.h>
#include <stdbool.h>

struct complex_f64 {
    double re, im;
};

static bool is_infinite(struct complex_f64 z)
{
    return isinf(z.re) || isinf(z.im);
}

static bool is_finite(struct complex_f64 z)
{
    return isfinite(z.re) && isfinite(z.im);
}

/* Replaces each infinite part by 1 and each other part by 0, and keeps the signs. */
static struct complex_f64 direction_of(struct complex_f64 z)
{
    return (struct complex_f64){ copysign(isinf(z.re) ? 1 : 0, z.re), copysign(isinf(z.im) ? 1 : 0, z.im) };
}

/* Divides if a part is infinite or a NaN, or if the divisor is zero. */
static struct complex_f64 divide_special(struct complex_f64 x, struct complex_f64 y)
{
    if (y.re == 0 && y.im == 0) {
        double infinity = copysign(INFINITY, y.re);
        return (struct complex_f64){ infinity * x.re, infinity * x.im };
    }
    bool grows = is_infinite(x) && is_finite(y), shrinks = is_finite(x) && is_infinite(y);
    if (grows)
        x = direction_of(x);
    if (shrinks)
        y = direction_of(y);
    struct complex_f64 sum = { x.re * y.re + x.im * y.im, x.im * y.re - x.re * y.im };
    if (shrinks) /* only the signs are used, because the sums may have overflowed */
        return (struct complex_f64){ copysign(0, sum.re), copysign(0, sum.im) };
    double factor = grows ? INFINITY : NAN;
    return (struct complex_f64){ factor * sum.re, factor * sum.im };
}

static bool is_special(struct complex_f64 x, struct complex_f64 y)
{
    return !is_finite(x) || !is_finite(y) || (y.re == 0 && y.im == 0);
}

/* Divides numbers whose parts are f32. The products of two parts are exact in f64 and neither overflow nor
 * underflow. */
static struct complex_f64 divide_narrow(struct complex_f64 x, struct complex_f64 y)
{
    double square = y.re * y.re + y.im * y.im;
    return (struct complex_f64){ (x.re * y.re + x.im * y.im) / square, (x.im * y.re - x.re * y.im) / square };
}

/* Returns 2^e for -1022 <= e <= 1023, and 0 for e = -1023. */
static double power_of_two(int e)
{
    return dti_f64_of_bits((uint64_t)(e + 1023) << 52);
}

/* Multiplies both parts by 2^e, for |e| <= 2045. This takes two multiplications, because 2^e itself may be
 * outside the range of f64. For e = -2045 the second factor is 0, which gives the right result: e is -2045
 * only when divide_wide scales a quotient whose divisor had the exponent 1023. That divisor is a normal
 * number, so its larger part is at least 1 after scaling. The parts of the quotient are therefore below 4,
 * and 4 * 2^-2045 rounds to 0. */
static struct complex_f64 scale(struct complex_f64 z, int e)
{
    double first = power_of_two(e / 2), second = power_of_two(e - e / 2);
    return (struct complex_f64){ z.re * first * second, z.im * first * second };
}

/* Returns the exponent of the larger part. For zero and for subnormal numbers it is -1022, the exponent with
 * which the format encodes them. */
static int exponent_of(struct complex_f64 z)
{
    double larger = fabs(z.re) > fabs(z.im) ? fabs(z.re) : fabs(z.im);
    int biased = (int)(dti_bits_of_f64(larger) >> 52);
    return (biased > 0 ? biased : 1) - 1023;
}

/* Returns a * b + c * d. dti_sum_of_products computes with pairs of numbers, which lose the sign of a
 * zero. */
static double sum_of_products(double a, double b, double c, double d)
{
    double sum = dti_sum_of_products(a, b, c, d);
    return sum != 0 ? sum : copysign(0, a * b + c * d);
}

/* Divides numbers whose parts are f64. Both numbers are scaled by powers of two so that their larger parts
 * are near 1, and nothing overflows. The square of the smaller part of y may underflow, but only where it
 * does not matter beside the other square. */
static struct complex_f64 divide_wide(struct complex_f64 x, struct complex_f64 y)
{
    int x_exponent = exponent_of(x), y_exponent = exponent_of(y);
    x = scale(x, -x_exponent);
    y = scale(y, -y_exponent);
    double square = dti_sum_of_products(y.re, y.re, y.im, y.im);
    struct complex_f64 quotient = { sum_of_products(x.re, y.re, x.im, y.im) / square,
                                    sum_of_products(x.im, y.re, -x.re, y.im) / square };
    return scale(quotient, x_exponent - y_exponent);
}

void dti_quotient_c64(void *new, const void *old, const void *given, size_t count)
{
    float *o = new;
    const float *a = old, *b = given;
    for (size_t i = 0; i < 2 * count; i += 2) {
        struct complex_f64 x = { (double)a[i], (double)a[i + 1] }, y = { (double)b[i], (double)b[i + 1] };
        struct complex_f64 quotient = is_special(x, y) ? divide_special(x, y) : divide_narrow(x, y);
        o[i] = (float)quotient.re;
        o[i + 1] = (float)quotient.im;
    }
}

void dti_quotient_c128(void *new, const void *old, const void *given, size_t count)
{
    double *o = new;
    const double *a = old, *b = given;
    for (size_t i = 0; i < 2 * count; i += 2) {
        struct complex_f64 x = { a[i], a[i + 1] }, y = { b[i], b[i + 1] };
        struct complex_f64 quotient = is_special(x, y) ? divide_special(x, y) : divide_wide(x, y);
        o[i] = quotient.re;
        o[i + 1] = quotient.im;
    }
}
