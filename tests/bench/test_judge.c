/* tests/bench/test_judge.c - which contenders of a row were faster than its bound, with given figures. */
#include "judge.h"
#include "support/support.h"

enum { DITTO, LIBOMP, MPICH, FORM, SLOW_FORM, COUNT };
static const struct contender contenders[COUNT] = {
    [DITTO] = { .name = "ditto" },
    [LIBOMP] = { .name = "libomp", .family = "OpenMP" },
    [MPICH] = { .name = "mpich", .family = "MPI" },
    [FORM] = { .name = "flags", .is_bound = true },
    [SLOW_FORM] = { .name = "stream", .is_bound = true },
};
static struct result results[2][COUNT];
static struct measured row[2] = { { .result = results[0] }, { .result = results[1] } };
static const struct work all_reduce = { .kind = BENCH_ALL_REDUCE, .replicas = 2, .bytes = 8 };

/* All take 100 ns in both modes, and the slow form 200 ns. */
static int set_up(void **state)
{
    for (int m = 0; m < 2; m++) {
        row[m].too_few = false;
        for (int c = 0; c < COUNT; c++)
            results[m][c] = (struct result){ .median_ns = c == SLOW_FORM ? 200 : 100 };
    }
    return 0;
}

static uint64_t faster(const struct work *work)
{
    return judge_faster_than_bound(work, contenders, row, 2, COUNT);
}

static void a_contender_within_3_percent_of_the_bound_is_not_faster(void **state)
{
    results[0][DITTO].median_ns = results[1][LIBOMP].median_ns = 97.5;
    assert_true(faster(&all_reduce) == 0);
}

static void whoever_beats_the_fastest_form_by_3_percent_is_found_in_any_mode(void **state)
{
    results[0][DITTO].median_ns = 96.5;
    results[1][MPICH].median_ns = 50;
    assert_true(faster(&all_reduce) == (1u << DITTO | 1u << MPICH));
    results[0][LIBOMP].median_ns = 150; /* faster than a form, but not than the fastest */
    assert_true(faster(&all_reduce) == (1u << DITTO | 1u << MPICH));
}

static void figures_that_are_not_certain_do_not_count(void **state)
{
    results[0][DITTO].median_ns = results[1][LIBOMP].median_ns = 50;
    results[0][DITTO].noisy = true;
    assert_true(faster(&all_reduce) == 1u << LIBOMP);
    results[1][FORM].noisy = true;
    assert_true(faster(&all_reduce) == 0);
    results[1][FORM].noisy = false;
    assert_true(faster(&all_reduce) == 1u << LIBOMP);
    row[1].too_few = true;
    assert_true(faster(&all_reduce) == 0);
}

static void what_was_not_measured_is_not_faster(void **state)
{
    results[0][DITTO].median_ns = results[1][DITTO].median_ns = -1;
    assert_true(faster(&all_reduce) == 0);
    results[0][LIBOMP].median_ns = 50;
    results[0][FORM].median_ns = results[0][SLOW_FORM].median_ns = -1; /* there is no bound */
    assert_true(faster(&all_reduce) == 0);
}

static void ranks_that_may_run_ahead_are_not_held_to_the_bound(void **state)
{
    struct work broadcast = { .kind = BENCH_BROADCAST, .replicas = 2, .bytes = 8 };
    results[0][MPICH].median_ns = 50;
    assert_true(faster(&broadcast) == 0);
    broadcast.turns = true;
    assert_true(faster(&broadcast) == 1u << MPICH);
    broadcast.replicas = 3; /* two of which may be ahead of the third one */
    assert_true(faster(&broadcast) == 0);
    results[0][LIBOMP].median_ns = 50;
    broadcast.turns = false;
    assert_true(faster(&broadcast) == 1u << LIBOMP);
}

static void the_best_of_a_family_is_its_fastest(void **state)
{
    assert_int_equal(judge_best(contenders, results[0], COUNT, NULL), FORM);
    results[0][FORM].median_ns = -1;
    assert_int_equal(judge_best(contenders, results[0], COUNT, NULL), SLOW_FORM);
    assert_int_equal(judge_best(contenders, results[0], COUNT, "MPI"), MPICH);
    assert_int_equal(judge_best(contenders, results[0], COUNT, "gloo"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_contender_within_3_percent_of_the_bound_is_not_faster, set_up),
        cmocka_unit_test_setup(whoever_beats_the_fastest_form_by_3_percent_is_found_in_any_mode, set_up),
        cmocka_unit_test_setup(figures_that_are_not_certain_do_not_count, set_up),
        cmocka_unit_test_setup(what_was_not_measured_is_not_faster, set_up),
        cmocka_unit_test_setup(ranks_that_may_run_ahead_are_not_held_to_the_bound, set_up),
        cmocka_unit_test_setup(the_best_of_a_family_is_its_fastest, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
