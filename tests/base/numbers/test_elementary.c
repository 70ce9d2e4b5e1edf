/* tests/base/numbers/test_elementary.c - the claims of src/base/numbers/elementary.h: error bounds, measured
 * against the long double functions, and exact values. tests/golden/ compares the bits of results. */
#include "support/support.h"

#include <float.h>
#include <math.h>

#include "base/numbers/elementary.h"

enum { TRIALS = 300000 };

/* The distance from the exact result in ulp. The long double result has at least 11 more bits, so it
 * counts as exact. */
static double error_of(double found, long double exact)
{
    double size = (double)(exact < 0 ? -exact : exact);
    long double difference = (long double)found - exact;
    return (double)((difference < 0 ? -difference : difference) /
                    (long double)(nextafter(size, INFINITY) - size));
}

static void skip_without_long_double(void)
{
    if (LDBL_MANT_DIG < 64) {
        print_message("  long double is f64 here: there is nothing to compare with\n");
        skip();
    }
}

/* A random multiple of 2^-53 in (0, 1], often near one of the ends. */
static double fraction(uint64_t *random)
{
    uint64_t bits = test_random(random);
    double x = (double)(((bits >> 11) >> (bits & 63) % 53) + 1) * 0x1p-53;
    return (bits & 64) != 0 && x < 1 ? 1 - x : x;
}

static void the_logarithm_is_off_by_less_than_one_ulp(void **state)
{
    uint64_t random = test_seed(11);
    double worst = 0;
    skip_without_long_double();
    for (int i = 0; i < TRIALS; i++) {
        /* 0.70710016805045861 has the largest error that is known, 0.994 ulp. */
        double x = i == 1 ? 0.70710016805045861 : fraction(&random);
        if (i % 3 == 0) /* a number between 2^-1000 and 2^1000 */
            x = ldexp(1 + x / 2, (int)(test_random(&random) % 2000) - 1000);
        double error = x != 1 ? error_of(dti_log(x), logl((long double)x)) : fabs(dti_log(x));
        worst = error > worst ? error : worst;
    }
    print_message("  at most %.3f ulp\n", worst);
    assert_true(worst < 1);
    assert_true(dti_log(1) == 0 && !signbit(dti_log(1)));
}

static void sine_and_cosine_are_off_by_less_than_two_ulp(void **state)
{
    const long double half_pi = 1.57079632679489661923132169163975144L;
    uint64_t random = test_seed(12);
    double worst[2] = { 0, 0 };
    skip_without_long_double();
    for (int i = 0; i < TRIALS; i++) {
        double turns = fraction(&random), found[2];
        if (i % 3 == 0) { /* near a multiple of an eighth of a turn */
            turns = (double)(test_random(&random) % 8) / 8 + (double)(test_random(&random) % 2001) * 0x1p-53;
        }
        dti_sin_cos_of_turns(turns, &found[0], &found[1]);
        int quarter = (int)(4 * turns + 0.5);
        long double x = (4 * (long double)turns - quarter) * half_pi, s = sinl(x), c = cosl(x);
        long double exact[2] = { quarter % 2 == 0 ? s : c, quarter % 2 == 0 ? c : s };
        exact[0] = quarter % 4 >= 2 ? -exact[0] : exact[0];
        exact[1] = (quarter + 1) % 4 >= 2 ? -exact[1] : exact[1];
        for (int k = 0; k < 2; k++) {
            double error = exact[k] != 0 ? error_of(found[k], exact[k]) : fabs(found[k]);
            worst[k] = error > worst[k] ? error : worst[k];
        }
    }
    print_message("  at most %.3f and %.3f ulp\n", worst[0], worst[1]);
    assert_true(worst[0] < 2 && worst[1] < 2);
}

static void sine_and_cosine_of_quarter_turns_are_exact(void **state)
{
    static const double expected[5][2] = { { 0, 1 }, { 1, 0 }, { 0, -1 }, { -1, 0 }, { 0, 1 } };
    for (int quarter = 0; quarter <= 4; quarter++) {
        double sine, cosine;
        dti_sin_cos_of_turns(quarter / 4.0, &sine, &cosine);
        assert_true(sine == expected[quarter][0] && cosine == expected[quarter][1]);
    }
}

static void powers_are_rounded_from_more_digits(void **state)
{
    uint64_t random = test_seed(13);
    double worst = 0;
    skip_without_long_double();
    for (int i = 0; i < TRIALS / 3; i++) {
        double base = fraction(&random);
        uint64_t exponent = test_random(&random) % (i % 2 ? 100 : 1000000);
        long double exact = powl((long double)base, (long double)exponent);
        if (exact < 0x1p-400L) {
            assert_true(dti_power(base, exponent) <= 0x1p-399);
            continue;
        }
        double error = error_of(dti_power(base, exponent), exact);
        worst = error > worst ? error : worst;
    }
    print_message("  at most %.4f ulp\n", worst);
    assert_true(worst < 0.51);
    assert_true(dti_power(0, 0) == 1 && dti_power(0, 5) == 0 && dti_power(1, UINT64_MAX) == 1);
    assert_true(dti_power(0.9, 1) == 0.9 && dti_power(0.5, 400) == 0x1p-400 && dti_power(0.5, 401) == 0);
    assert_true(dti_power(0.999, INT64_MAX) == 0);
}

/* The products of 32-bit integers are exact in 128 bits, so the conversion of their sum is the only
 * rounding. */
static void sums_of_products_are_rounded_once(void **state)
{
    uint64_t random = test_seed(14);
    for (int i = 0; i < TRIALS; i++) {
        uint64_t bits = test_random(&random), more = test_random(&random);
        double a = (double)(int32_t)bits, b = (double)(int32_t)(bits >> 32);
        double c = (double)(int32_t)more, d = (double)(int32_t)(more >> 32);
        __extension__ __int128 exact = (__int128)a * (__int128)b + (__int128)c * (__int128)d;
        assert_true(dti_sum_of_products(a, b, c, d) == (double)exact);
    }
    /* The second product cancels the rounded first one. The sum is the rounding error of the first
     * product. */
    double a = 1 + 0x1p-30, rounded = a * a;
    assert_true(dti_sum_of_products(a, a, -1, rounded) == 0x1p-60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logarithm_is_off_by_less_than_one_ulp),
        cmocka_unit_test(sine_and_cosine_are_off_by_less_than_two_ulp),
        cmocka_unit_test(sine_and_cosine_of_quarter_turns_are_exact),
        cmocka_unit_test(powers_are_rounded_from_more_digits),
        cmocka_unit_test(sums_of_products_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
