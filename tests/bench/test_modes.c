/* tests/bench/test_modes.c - how the bench finds the modes of a machine, and how it completes a row in
 * each of them. The machine of these tests has a clock and hand-overs of its own. */
#include "rounds.h"
#include "support/support.h"

/* -- modes -- */

static void readings_that_are_close_are_one_mode(void **state)
{
    const double reading[] = { 110, 240, 150, 170, 120, 200 };
    struct modes modes = modes_find(reading, 6);
    assert_int_equal(modes.count, 1);
    assert_true(modes.mode[0].low_ns == 110);
    assert_true(modes.mode[0].high_ns == 240);
    assert_true(modes.mode[0].median_ns == 170);
}

static void a_gap_separates_two_modes(void **state)
{
    const double reading[] = { 120, 25, 24, 130, 125, 26, 25 };
    struct modes modes = modes_find(reading, 7);
    assert_int_equal(modes.count, 2);
    assert_true(modes.mode[0].median_ns == 25);
    assert_true(modes.mode[1].median_ns == 125);
    assert_true(modes.mode[0].high_ns == 26);
    assert_true(modes.mode[1].low_ns == 120);
}

static void neighbours_that_differ_by_less_than_the_gap_stay_together(void **state)
{
    const double joined[] = { 100, 100, 100, 159, 159, 159 }, apart[] = { 100, 100, 100, 161, 161, 161 };
    assert_int_equal(modes_find(joined, 6).count, 1);
    assert_int_equal(modes_find(apart, 6).count, 2);
}

static void few_readings_are_no_mode(void **state)
{
    double reading[100];
    for (int i = 0; i < 100; i++)
        reading[i] = i < 1 ? 5000 : 100;
    struct modes modes = modes_find(reading, 100); /* 1 of 100 is disturbed */
    assert_int_equal(modes.count, 1);
    assert_true(modes.mode[0].high_ns == 100);
    reading[1] = reading[2] = 5000;
    assert_int_equal(modes_find(reading, 100).count, 2);
    assert_int_equal(modes_find(reading + 3, 2).count, 0); /* fewer than three */
    assert_int_equal(modes_find(reading, 0).count, 0);
}

/* The modes are 25 to 50 ns and 110 to 240 ns. One reading of 74 ns is within the gap of both. */
static void a_single_reading_does_not_join_two_modes(void **state)
{
    double reading[201];
    for (int i = 0; i < 100; i++) {
        reading[i] = 25 + 0.25 * i;
        reading[100 + i] = 110 + 1.3 * i;
    }
    reading[200] = 74;
    struct modes modes = modes_find(reading, 201);
    assert_int_equal(modes.count, 2);
    assert_true(modes.mode[0].high_ns < 50 && modes.mode[1].low_ns >= 110);
    assert_int_equal(modes_of(&modes, &(struct conditions){ 74, 74, false }), -1);
}

static void of_too_many_groups_the_largest_are_modes(void **state)
{
    double reading[5 * 4 + 1];
    uint32_t count = 0;
    for (int group = 0; group < 5; group++)
        for (int i = 0; i < (group == 2 ? 3 : 4); i++)
            reading[count++] = 10 << 2 * group;
    struct modes modes = modes_find(reading, count);
    assert_int_equal(modes.count, MODES_MOST);
    const double median[] = { 10, 40, 640, 2560 }; /* without 160 */
    for (int m = 0; m < MODES_MOST; m++)
        assert_true(modes.mode[m].median_ns == median[m]);
}

static void one_pu_is_one_mode(void **state)
{
    const double reading[] = { 0, 0, 0, 0 };
    struct modes modes = modes_find(reading, 4);
    assert_int_equal(modes.count, 1);
    assert_int_equal(modes_of(&modes, &(struct conditions){ 0, 0, false }), 0);
}

static void a_batch_is_in_a_mode_if_both_readings_are(void **state)
{
    const double reading[] = { 20, 21, 22, 100, 101, 102 };
    struct modes modes = modes_find(reading, 6);
    assert_int_equal(modes_of(&modes, &(struct conditions){ 20, 22, false }), 0);
    assert_int_equal(modes_of(&modes, &(struct conditions){ 102, 100, false }), 1);
    assert_int_equal(modes_of(&modes, &(struct conditions){ 20, 100, false }), -1);
    assert_int_equal(modes_of(&modes, &(struct conditions){ 20, 21, true }), -1);
    assert_int_equal(modes_of(&modes, &(struct conditions){ 50, 50, false }), -1);
}

/* -- rounds, on a machine whose time is counted here -- */

static struct {
    double now;
    uint64_t stolen, steals; /* each reading adds `steals` */
    uint32_t naps;
    double (*hand_over_at)(double now);
} fake;

static double fake_hand_over(void)
{
    return fake.hand_over_at(fake.now);
}
static uint64_t fake_stolen(void)
{
    return fake.stolen += fake.steals;
}
static double fake_now(void)
{
    return fake.now;
}
static void fake_nap(void)
{
    fake.now += 0.02;
    fake.naps++;
}
static const struct rounds_machine machine = { fake_hand_over, fake_stolen, fake_now, fake_nap };

static double always_100(double now)
{
    return 100;
}

/* Two threads of one core in the first of every eight seconds. */
static double mostly_100(double now)
{
    return now - 8 * (double)(int)(now / 8) < 1 ? 25 : 100;
}

/* A mode that appears once. */
static double at_first_25(double now)
{
    return now < 0.5 ? 25 : 100;
}

/* Measures rounds of `columns` batches, each of which takes `batch_seconds`. The figure of a batch is the
 * hand-over at its end. */
static struct rounds measure(double (*hand_over_at)(double now), uint64_t steals, uint32_t columns,
                             uint32_t least, double batch_seconds)
{
    struct rounds r;
    fake.now = 0;
    fake.naps = 0;
    fake.steals = steals;
    fake.hand_over_at = hand_over_at;
    rounds_use(&machine);
    rounds_begin(&r, columns, least);
    while (rounds_next(&r))
        for (uint32_t c = 0; c < columns; c++) {
            fake.now += batch_seconds;
            rounds_put(&r, c, hand_over_at(fake.now));
        }
    return r;
}

static void a_row_in_one_mode_has_the_rounds_that_were_asked_for(void **state)
{
    struct rounds r = measure(always_100, 0, 2, 31, 0.004);
    assert_int_equal(r.count, 32); /* the first does not count */
    assert_int_equal(r.modes.count, 1);
    assert_int_equal(rounds_figures(&r, 1, 0).batches, 31);
    assert_int_equal(rounds_disturbed(&r, 0), 0);
    assert_false(rounds_too_few(&r, 0));
    assert_false(rounds_has(&r, 0, 0, 0));
    assert_true(rounds_has(&r, 1, 0, 0));
    assert_int_equal(fake.naps, 0);
    rounds_end(&r);
}

static void a_slow_row_has_15_rounds(void **state)
{
    struct rounds r = measure(always_100, 0, 1, 31, 3);
    assert_int_equal(rounds_figures(&r, 0, 0).batches, ROUNDS_ENOUGH);
    assert_false(rounds_too_few(&r, 0));
    rounds_end(&r);
    r = measure(always_100, 0, 1, 7, 3); /* or fewer, if that is enough */
    assert_int_equal(rounds_figures(&r, 0, 0).batches, 7);
    assert_false(rounds_too_few(&r, 0));
    rounds_end(&r);
    r = measure(always_100, 0, 1, 31, 10); /* it measures for about 80 s */
    assert_true(rounds_figures(&r, 0, 0).batches < ROUNDS_ENOUGH);
    assert_true(rounds_too_few(&r, 0));
    rounds_end(&r);
}

static void a_row_is_completed_in_each_mode_and_no_figure_is_in_the_wrong_one(void **state)
{
    struct rounds r = measure(mostly_100, 0, 3, 31, 0.1);
    assert_int_equal(r.modes.count, 2);
    for (uint32_t mode = 0; mode < 2; mode++)
        for (uint32_t c = 0; c < 3; c++) {
            struct figures f = rounds_figures(&r, c, mode);
            assert_true(f.batches >= ROUNDS_ENOUGH);
            assert_true(f.min == (mode == 0 ? 25 : 100));
            assert_true(f.median == f.min && f.p95 == f.min);
        }
    assert_true(fake.naps > 0);               /* in the mode that had enough */
    assert_true(rounds_disturbed(&r, 0) > 0); /* the mode changed during a batch */
    rounds_end(&r);
}

static void a_mode_that_does_not_come_again_has_too_few(void **state)
{
    struct rounds r = measure(at_first_25, 0, 1, 31, 0.05);
    assert_int_equal(r.modes.count, 2);
    assert_true(rounds_too_few(&r, 0));
    assert_false(rounds_too_few(&r, 1));
    assert_true(fake.now > 60 && fake.now < 65);
    rounds_end(&r);
}

static void a_row_waits_for_a_mode_no_longer_than_asked(void **state)
{
    rounds_wait_at_most(2);
    struct rounds r = measure(at_first_25, 0, 1, 31, 0.05);
    rounds_wait_at_most(ROUNDS_WAIT_SECONDS);
    assert_int_equal(r.modes.count, 2);
    assert_true(rounds_too_few(&r, 0));
    assert_true(fake.now < 5); /* 1.6 s of rounds, and the wait */
    rounds_end(&r);
}

static void batches_with_steal_time_are_disturbed(void **state)
{
    struct rounds r = measure(always_100, 1, 1, 31, 0.5);
    assert_true(r.disturbed);
    assert_int_equal(r.modes.count, 1); /* the row is shown, and marked */
    assert_true(rounds_too_few(&r, 0));
    assert_true(rounds_figures(&r, 0, 0).batches >= 31);
    assert_int_equal(rounds_disturbed(&r, 0), rounds_figures(&r, 0, 0).batches);
    rounds_end(&r);
}

/* 100 ns at the end of the second of three batches in each round, otherwise 25 ns. */
static double changes_in_each_round(double now)
{
    double in_round = now - 0.3 * (double)(int)(now / 0.3 + 1e-9);
    return in_round > 0.15 && in_round < 0.25 ? 100 : 25;
}

/* Figures that are made of several columns would be wrong in a mode in which only one of them has batches. */
static void a_mode_without_batches_of_a_column_is_not_shown(void **state)
{
    struct rounds r = measure(changes_in_each_round, 0, 3, 31, 0.1);
    assert_true(r.disturbed);
    assert_int_equal(r.modes.count, 1);
    assert_true(r.modes.mode[0].median_ns == 0);
    assert_true(rounds_figures(&r, 1, 0).batches >= 31);
    assert_true(rounds_too_few(&r, 0));
    rounds_end(&r);
}

static void a_contender_that_is_dropped_is_not_waited_for(void **state)
{
    struct rounds r;
    fake.now = 0;
    fake.steals = 0;
    fake.hand_over_at = always_100;
    rounds_use(&machine);
    rounds_begin(&r, 2, 31);
    while (rounds_next(&r)) {
        fake.now += 0.01;
        rounds_put(&r, 0, 1);
        if (r.count < 4)
            rounds_put(&r, 1, 2);
        else
            rounds_drop(&r, 1);
    }
    assert_int_equal(r.count, 32);
    assert_int_equal(rounds_figures(&r, 1, 0).batches, 0);
    assert_false(rounds_too_few(&r, 0));
    rounds_end(&r);
}

static void another_figure_of_a_batch_has_its_conditions(void **state)
{
    struct rounds r;
    fake.now = 0;
    fake.hand_over_at = always_100;
    rounds_use(&machine);
    rounds_begin(&r, 2, 5);
    while (rounds_next(&r)) {
        rounds_put(&r, 0, 1);
        rounds_put_also(&r, 1, 0, 2);
    }
    assert_int_equal(rounds_figures(&r, 1, 0).batches, 5);
    assert_true(rounds_figures(&r, 1, 0).median == 2);
    assert_true(rounds_figures(&r, 0, 0).median == 1);
    rounds_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_that_are_close_are_one_mode),
        cmocka_unit_test(a_gap_separates_two_modes),
        cmocka_unit_test(neighbours_that_differ_by_less_than_the_gap_stay_together),
        cmocka_unit_test(few_readings_are_no_mode),
        cmocka_unit_test(a_single_reading_does_not_join_two_modes),
        cmocka_unit_test(of_too_many_groups_the_largest_are_modes),
        cmocka_unit_test(one_pu_is_one_mode),
        cmocka_unit_test(a_batch_is_in_a_mode_if_both_readings_are),
        cmocka_unit_test(a_row_in_one_mode_has_the_rounds_that_were_asked_for),
        cmocka_unit_test(a_slow_row_has_15_rounds),
        cmocka_unit_test(a_row_is_completed_in_each_mode_and_no_figure_is_in_the_wrong_one),
        cmocka_unit_test(a_mode_that_does_not_come_again_has_too_few),
        cmocka_unit_test(a_row_waits_for_a_mode_no_longer_than_asked),
        cmocka_unit_test(batches_with_steal_time_are_disturbed),
        cmocka_unit_test(a_mode_without_batches_of_a_column_is_not_shown),
        cmocka_unit_test(a_contender_that_is_dropped_is_not_waited_for),
        cmocka_unit_test(another_figure_of_a_batch_has_its_conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
