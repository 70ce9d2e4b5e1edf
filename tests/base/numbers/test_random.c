/* tests/base/numbers/test_random.c - random numbers: known answers of the generator, positions, distributions
 * and streams. */
#include "base/numbers/random.h"
#include "support/support.h"

#include <math.h>

/* The authors' known answers for Philox4x32-10 (Random123, kat_vectors). */
static void the_generator_gives_its_known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } answers[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        uint32_t out[4];
        dti_philox(answers[i].key, answers[i].counter, out);
        assert_memory_equal(out, answers[i].want, sizeof out);
    }
}

static void a_number_depends_on_its_position_alone(void **state)
{
    enum { N = 1000 };
    static double all[N], pieces[N], normals[N], normal_pieces[N];
    ditto_random random = ditto_random_make(5, 7);
    ditto_random_f64(&random, all, N);
    ditto_random_normal_f64(&random, normals, N);
    for (size_t first = 0; first < N; first += 100) { /* in ten pieces, as ten threads would */
        random = ditto_random_make(5, 7);
        random.word += 2 * first;
        ditto_random_f64(&random, pieces + first, 100);
        random = ditto_random_make(5, 7);
        random.word += 2 * N + 2 * first;
        ditto_random_normal_f64(&random, normal_pieces + first, 100);
    }
    assert_memory_equal(all, pieces, sizeof all);
    assert_memory_equal(normals, normal_pieces, sizeof normals);
    uint32_t words[12], one[12];
    random = ditto_random_make(1, 2);
    dti_random_words(&random, words, 12);
    random = ditto_random_make(1, 2);
    for (int i = 0; i < 12; i++)
        dti_random_words(&random, &one[i], 1);
    assert_memory_equal(words, one, sizeof words);
}

/* Asserts that the mean and the variance of numbers from 0 to 1 are within 5 standard errors of those of the
 * uniform distribution, 1/2 and 1/12. The variance of (x - 1/2)^2 is 1/80 - 1/144 = 1/180. */
static void assert_uniform(const double *x, int count)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++) {
        assert_true(x[i] >= 0 && x[i] < 1);
        sum += x[i];
        squares += (x[i] - 0.5) * (x[i] - 0.5);
    }
    assert_true(fabs(sum / count - 0.5) < 5 * sqrt(1.0 / 12 / count));
    assert_true(fabs(squares / count - 1.0 / 12) < 5 * sqrt(1.0 / 180 / count));
}

/* The means and variances of 10^6 uniform and normal numbers, and how often each integer comes, are within 5
 * standard errors of the expected values. */
static void numbers_have_the_expected_means_and_variances(void **state)
{
    enum { N = 1000000 };
    double *x = malloc(N * sizeof *x), sum = 0, squares = 0;
    uint64_t *below = malloc(N * sizeof *below);
    ditto_random random = ditto_random_make(test_seed(3), 0);
    ditto_random_f64(&random, x, N);
    assert_uniform(x, N);
    ditto_random_normal_f64(&random, x, N);
    for (int i = 0; i < N; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    assert_true(fabs(sum / N) < 5 / sqrt(N) && fabs(squares / N - 1) < 5 * sqrt(2.0 / N));
    int count[6] = { 0 };
    ditto_random_below(&random, 6, below, N);
    for (int i = 0; i < N; i++) {
        assert_true(below[i] < 6);
        count[below[i]]++;
    }
    for (int i = 0; i < 6; i++)
        assert_true(fabs(count[i] - N / 6.0) < 5 * sqrt(N * 5 / 36.0));
    free(x);
    free(below);
}

/* Tests 4 million normal numbers: their moments, the chi-square of their counts in each hundredth of the
 * distribution, their counts in the tails, and the correlation of the two numbers of a pair. All are within 5
 * standard errors of the expected values. Counts in the tails may be off by one more. */
static void normal_numbers_have_the_normal_distribution(void **state)
{
    enum { N = 4000000, BINS = 100, TAILS = 5 };
    static const double tail_of[] = { 0.31731050786291410, 0.04550026389635842, 0.0026997960632601866,
                                      6.334248366623985e-05, 5.733031437583866e-07 };
    double *x = malloc(N * sizeof *x), moment[5] = { 0 }, pairs = 0, largest = 0;
    long bin[BINS] = { 0 }, tail[TAILS] = { 0 }, upper = 0;
    ditto_random random = ditto_random_make(test_seed(4), 1);
    ditto_random_normal_f64(&random, x, N);
    for (int i = 0; i < N; i++) {
        double below = 0.5 * erfc(-x[i] / sqrt(2)), power = 1;
        for (int k = 1; k <= 4; k++)
            moment[k] += (power *= x[i]) / N;
        bin[below < 1 ? (int)(below * BINS) : BINS - 1]++;
        for (int k = 0; k < TAILS; k++)
            tail[k] += fabs(x[i]) > k + 1;
        upper += x[i] > 3;
        largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
        pairs += i % 2 ? x[i] * x[i - 1] : 0;
    }
    assert_true(fabs(moment[1]) < 5 / sqrt(N) && fabs(moment[2] - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(moment[3]) < 5 * sqrt(15.0 / N) && fabs(moment[4] - 3) < 5 * sqrt(96.0 / N));
    assert_true(fabs(pairs) < 5 * sqrt(N / 2.0));
    for (int k = 0; k < TAILS; k++)
        assert_true(fabs((double)tail[k] - N * tail_of[k]) < 5 * sqrt(N * tail_of[k]) + 1);
    assert_true(fabs((double)upper - N * tail_of[2] / 2) < 5 * sqrt(N * tail_of[2] / 2));
    double squares = 0;
    for (int k = 0; k < BINS; k++)
        squares += ((double)bin[k] - N / BINS) * ((double)bin[k] - N / BINS) / (N / BINS);
    print_message("  chi-square of %d bins %.1f, largest %.3f\n", BINS, squares, largest);
    assert_true(fabs(squares - (BINS - 1)) < 5 * sqrt(2.0 * (BINS - 1)));
    /* The bound is sqrt(2 * 53 * log 2), because the uniform numbers are multiples of 2^-53. */
    assert_true(largest < 8.6);
    free(x);
}

struct drawing {
    struct report report;
    double own[64], same[64];
};

static ditto_status draw(ditto_replica *self, void *argument)
{
    struct drawing *d = argument;
    ditto_random own, same = ditto_random_make(9, 1);
    EXPECT(&d->report, ditto_random_of(self, 9, &own) == DITTO_OK);
    ditto_random_f64(&own, &d->own[ditto_replica_id(self)], 1);
    ditto_random_f64(&same, &d->same[ditto_replica_id(self)], 1);
    return DITTO_OK;
}

static void each_replica_has_its_own_stream(void **state)
{
    static struct drawing eight, again;
    ditto_strategy *strategy = make_strategy(8, NULL), *fewer = make_strategy(3, NULL);
    run_all(strategy, draw, &eight, &eight.report);
    run_all(fewer, draw, &again, &again.report);
    for (int i = 0; i < 8; i++) {
        assert_true(eight.same[i] == eight.same[0]);
        for (int k = 0; k < i; k++)
            assert_true(eight.own[i] != eight.own[k]);
    }
    for (int i = 0; i < 3; i++) /* the number of replicas does not matter */
        assert_true(again.own[i] == eight.own[i]);
    ditto_random random;
    assert_status(ditto_random_of(NULL, 1, &random), DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_destroy(strategy));
    assert_ok(ditto_strategy_destroy(fewer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_gives_its_known_answers),
        cmocka_unit_test(a_number_depends_on_its_position_alone),
        cmocka_unit_test(numbers_have_the_expected_means_and_variances),
        cmocka_unit_test(normal_numbers_have_the_normal_distribution),
        cmocka_unit_test(each_replica_has_its_own_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
