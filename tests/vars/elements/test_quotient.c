/* tests/vars/elements/test_quotient.c - the claims of src/vars/elements/quotient.c about error bounds, the
 * range of exponents, infinities and zeros. tests/golden/ checks that its results have the same bits
 * everywhere. */
#include "support/support.h"

#include <complex.h>
#include <float.h>
#include <math.h>

#include "vars/elements/elements.h"

#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 exact;
#else
typedef long double exact; /* has 113 bits on machines without __float128 */
#endif

static double number(uint64_t *random, int most_exponent)
{
    uint64_t bits = test_random(random);
    int exponent = (int)(test_random(random) % (2 * (unsigned)most_exponent + 1)) - most_exponent;
    double x = ldexp(1 + (double)(bits >> 12) * 0x1p-52, exponent);
    return (bits & 1) != 0 ? -x : x;
}

static double error_of(double found, exact want, double ulp)
{
    exact difference = (exact)found - want;
    return (double)(difference < 0 ? -difference : difference) / ulp;
}

/* Returns the larger error of the two parts, in ulp. Parts that are not normal numbers are skipped, because
 * nothing is claimed about them, and so are parts near the ends of the range of normal numbers. */
static double error_of_parts(const double found[2], const double x[2], const double y[2], bool narrow)
{
    exact square = (exact)y[0] * y[0] + (exact)y[1] * y[1], worst = 0;
    exact want[2] = { ((exact)x[0] * y[0] + (exact)x[1] * y[1]) / square,
                      ((exact)x[1] * y[0] - (exact)x[0] * y[1]) / square };
    for (int k = 0; k < 2; k++) {
        double size = fabs((double)want[k]);
        if (size < (narrow ? 0x1p-126 : 0x1p-1020) || size > (narrow ? 0x1.fp127 : 0x1.fp1023))
            continue;
        double ulp = narrow ? (double)(nextafterf((float)size, INFINITY) - (float)size)
                            : nextafter(size, INFINITY) - size;
        double error = error_of(found[k], want[k], ulp);
        worst = error > worst ? error : worst;
    }
    return (double)worst;
}

static void quotients_of_c64_are_off_by_less_than_0_51_ulp(void **state)
{
    uint64_t random = test_seed(21);
    double worst = 0;
    for (int i = 0; i < 300000; i++) {
        float part[4], quotient[2];
        double x[2], y[2], found[2];
        for (int k = 0; k < 4; k++)
            part[k] = (float)number(&random, i % 2 ? 126 : 3);
        if (i % 3 == 0) /* the products of the imaginary part nearly cancel */
            part[1] = (float)((double)part[0] * (double)part[3] / (double)part[2]);
        if (!isfinite(part[1]))
            continue;
        dti_quotient_c64(quotient, part, part + 2, 1);
        for (int k = 0; k < 2; k++) {
            x[k] = (double)part[k];
            y[k] = (double)part[2 + k];
            found[k] = (double)quotient[k];
        }
        double error = error_of_parts(found, x, y, true);
        worst = error > worst ? error : worst;
    }
    print_message("  at most %.4f ulp\n", worst);
    assert_true(worst < 0.51);
}

static void quotients_of_c128_are_off_by_less_than_two_and_a_half_ulp(void **state)
{
    uint64_t random = test_seed(22);
    double worst = 0;
    for (int i = 0; i < 300000; i++) {
        double x[2], y[2], quotient[2];
        int most_exponent = i % 2 ? 2 : 190, x_exponent = (int)(test_random(&random) % 1600) - 800;
        int y_exponent = (int)(test_random(&random) % 1600) - 800;
        for (int k = 0; k < 2; k++) {
            x[k] = ldexp(number(&random, most_exponent), x_exponent);
            y[k] = ldexp(number(&random, most_exponent), y_exponent);
        }
        if (i % 3 == 0) /* the products of the imaginary part nearly cancel */
            x[1] = x[0] / y[0] * y[1];
        if (!isfinite(x[1]) || fabs(x[1]) < 0x1p-1000)
            continue;
        dti_quotient_c128(quotient, x, y, 1);
        double error = error_of_parts(quotient, x, y, false);
        worst = error > worst ? error : worst;
    }
    print_message("  at most %.4f ulp\n", worst);
    assert_true(worst < 2.5);
}

static void quotients_are_right_over_the_whole_range_of_exponents(void **state)
{
    static const struct {
        double x[2], y[2], want[2];
    } cases[] = {
        { { 0x1p1023, 0x1p1023 }, { 0x1p1023, 0x1p1023 }, { 1, 0 } },
        { { 0x1p-1074, 0x1p-1074 }, { 0x1p-1074, 0x1p-1074 }, { 1, 0 } },
        { { 0x1p-1074, 0 }, { 0x1p-1074, 0 }, { 1, 0 } },
        { { 0x1p1023, 0 }, { 0x1p-1, 0 }, { INFINITY, 0 } },
        { { 0x1p-1074, 0 }, { 0x1p1023, 0 }, { 0, 0 } },
        { { 0x1p-1022, 0x1p-1022 }, { 0x1p52, 0 }, { 0x1p-1074, 0x1p-1074 } },
        { { 0, 1 }, { 0, 1 }, { 1, 0 } },
        { { 3, 4 }, { 1, 2 }, { 2.2, -0.4 } },
        { { 0x1p-1074, 0 }, { 0x1.8p1023, 0x1.8p1023 }, { 0, 0 } },
        { { DBL_MAX, DBL_MAX }, { INFINITY, INFINITY }, { 0, 0 } },
        { { DBL_MAX, -DBL_MAX }, { INFINITY, -INFINITY }, { 0, 0 } },
        { { DBL_MAX, DBL_MAX }, { INFINITY, NAN }, { 0, 0 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double quotient[2];
        dti_quotient_c128(quotient, cases[i].x, cases[i].y, 1);
        for (int k = 0; k < 2; k++)
            if (quotient[k] != cases[i].want[k])
                fail_msg("case %zu, part %d: %a, not %a", i, k, quotient[k], cases[i].want[k]);
    }
}

/* Returns 'i' for an infinite number, 'n' for a NaN and 'f' for a finite one. A complex number is infinite if
 * one of its parts is infinite, even if the other part is a NaN. */
static char kind_of(double re, double im)
{
    return isinf(re) || isinf(im) ? 'i' : isnan(re) || isnan(im) ? 'n' : 'f';
}

static void infinities_and_zeros_are_treated_as_in_c(void **state)
{
    static const double parts[] = { 0.0, -0.0, 1, -2, INFINITY, -INFINITY, NAN };
    enum { PARTS = sizeof parts / sizeof parts[0] };
    for (int i = 0; i < PARTS * PARTS * PARTS * PARTS; i++) {
        double x[2] = { parts[i % PARTS], parts[i / PARTS % PARTS] }, wide[2];
        double y[2] = { parts[i / PARTS / PARTS % PARTS], parts[i / PARTS / PARTS / PARTS] };
        float x_f32[2] = { (float)x[0], (float)x[1] }, y_f32[2] = { (float)y[0], (float)y[1] }, narrow[2];
        double complex dividend, divisor;
        memcpy(&dividend, x, sizeof x);
        memcpy(&divisor, y, sizeof y);
        double complex want = dividend / divisor; /* the operator of C */
        char kind = kind_of(creal(want), cimag(want));
        dti_quotient_c128(wide, x, y, 1);
        dti_quotient_c64(narrow, x_f32, y_f32, 1);
        double found[2][2] = { { wide[0], wide[1] }, { (double)narrow[0], (double)narrow[1] } };
        for (int k = 0; k < 2; k++)
            if (kind_of(found[k][0], found[k][1]) != kind ||
                (kind == 'f' &&
                 (fabs(found[k][0] - creal(want)) > 1e-6 || fabs(found[k][1] - cimag(want)) > 1e-6)))
                fail_msg("(%g, %g) / (%g, %g): (%g, %g), not (%g, %g)", x[0], x[1], y[0], y[1], found[k][0],
                         found[k][1], creal(want), cimag(want));
    }
}

static void zeros_have_the_same_signs_in_c64_and_c128(void **state)
{
    static const double parts[] = { 0.0, -0.0, 1, -1, 3, -0.5, INFINITY, -INFINITY };
    enum { PARTS = sizeof parts / sizeof parts[0] };
    for (int i = 0; i < PARTS * PARTS * PARTS * PARTS; i++) {
        double x[2] = { parts[i % PARTS], parts[i / PARTS % PARTS] }, wide[2];
        double y[2] = { parts[i / PARTS / PARTS % PARTS], parts[i / PARTS / PARTS / PARTS] };
        float x_f32[2] = { (float)x[0], (float)x[1] }, y_f32[2] = { (float)y[0], (float)y[1] }, narrow[2];
        dti_quotient_c128(wide, x, y, 1);
        dti_quotient_c64(narrow, x_f32, y_f32, 1);
        for (int k = 0; k < 2; k++) {
            if (wide[k] != 0 && narrow[k] != 0)
                continue;
            if (wide[k] != (double)narrow[k] || !signbit(wide[k]) != !signbit(narrow[k]))
                fail_msg("(%g, %g) / (%g, %g), part %d: %g in c128, %g in c64", x[0], x[1], y[0], y[1], k,
                         wide[k], (double)narrow[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotients_of_c64_are_off_by_less_than_0_51_ulp),
        cmocka_unit_test(quotients_of_c128_are_off_by_less_than_two_and_a_half_ulp),
        cmocka_unit_test(quotients_are_right_over_the_whole_range_of_exponents),
        cmocka_unit_test(infinities_and_zeros_are_treated_as_in_c),
        cmocka_unit_test(zeros_have_the_same_signs_in_c64_and_c128),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
