/* tests/base/waiting/test_wait_policy.c - what a policy learns (src/base/waiting/wait_policy.h). */
#include "support/support.h"

#include "base/waiting/futex.h"
#include "base/waiting/wait_policy.h"

#include <pthread.h>
#include <unistd.h>

#define US 1000u
#define MS 1000000u

static bool in_full(const struct dti_wait_policy *p)
{
    return dti_wait_policy_spin_ns(p) == p->spin_ns;
}

/* A policy that has learned from many sleeps whose wake-ups took wake_ns. */
static struct dti_wait_policy experienced(uint64_t wake_ns)
{
    struct dti_wait_policy p = dti_wait_policy_adapting();
    for (int i = 0; i < 1000; i++)
        dti_wait_policy_after_sleep(&p, 0, wake_ns);
    return p;
}

static void it_begins_with_50_us(void **state)
{
    struct dti_wait_policy p = dti_wait_policy_adapting();
    assert_int_equal(p.spin_ns, 50 * US);
    assert_true(in_full(&p));
}

static void it_spins_for_some_wake_ups(void **state)
{
    for (uint64_t wake = 10 * US; wake <= 200 * US; wake *= 2) {
        struct dti_wait_policy p = experienced(wake);
        assert_in_range(p.spin_ns, 7 * wake, 9 * wake);
    }
}

static void what_it_learns_is_bounded(void **state)
{
    assert_in_range(experienced(1).spin_ns, 45 * US, 50 * US);
    assert_in_range(experienced(1000 * MS).spin_ns, 2 * MS, 22 * MS / 10);
}

static void one_slow_wake_up_has_no_weight(void **state)
{
    struct dti_wait_policy p = experienced(40 * US);
    uint64_t before = p.spin_ns;
    dti_wait_policy_after_sleep(&p, 0, 500 * MS);
    assert_in_range(p.spin_ns, before, before + before / 8);
}

static void a_sleep_without_a_waker_teaches_nothing(void **state)
{
    struct dti_wait_policy p = experienced(40 * US);
    uint64_t before = p.spin_ns;
    dti_wait_policy_after_sleep(&p, 0, 0);
    assert_int_equal(p.spin_ns, before);
}

static void after_a_long_wait_every_16th_wait_spins_in_full(void **state)
{
    struct dti_wait_policy p = dti_wait_policy_adapting();
    for (int i = 0; i < 48; i++) {
        assert_int_equal(in_full(&p), i % 16 == 0);
        dti_wait_policy_after_sleep(&p, 10 * MS, 0);
    }
    assert_true(in_full(&p));
    dti_wait_policy_after_spin(&p, p.spin_ns, 10 * US);
    assert_true(in_full(&p));
}

static void a_thread_that_never_sleeps_tries_it_now_and_then(void **state)
{
    struct dti_wait_policy p = experienced(40 * US);
    uint64_t spun_us = 0;
    for (; in_full(&p) && spun_us < 1000000; spun_us += 10)
        dti_wait_policy_after_spin(&p, p.spin_ns, 10 * US);
    assert_in_range(spun_us, 35000, 45000); /* 1000 wake-ups */
    dti_wait_policy_before_sleep(&p);
    assert_true(in_full(&p));
}

static void short_waits_among_long_ones_are_spun(void **state)
{
    struct dti_wait_policy p = experienced(40 * US);
    uint64_t wasted = 0;
    for (int i = 0; i < 1600; i++) {
        bool is_long = i % 2 == 0;
        uint64_t budget = dti_wait_policy_spin_ns(&p), wait = is_long ? 5 * MS : 10 * US;
        if (wait <= budget)
            dti_wait_policy_after_spin(&p, budget, wait);
        else
            dti_wait_policy_after_sleep(&p, wait + 40 * US, 40 * US);
        /* After some waits, the short ones are spun, and the long ones rarely spin for long. */
        if (i >= 160 && !is_long)
            assert_true(wait <= budget);
        if (i >= 160 && is_long)
            wasted += budget;
    }
    assert_in_range(wasted / 720, 10 * US, 60 * US);
}

static void a_fixed_time_stays_after_long_waits(void **state)
{
    struct dti_wait_policy p = { .is_fixed = true, .spin_ns = 70 * US };
    for (int i = 0; i < 20; i++) {
        assert_int_equal(dti_wait_policy_spin_ns(&p), 70 * US);
        dti_wait_policy_after_sleep(&p, 100 * MS, 40 * US);
    }
}

static void on_a_crowded_cpu_it_does_not_spin(void **state)
{
    struct dti_wait_policy p = experienced(40 * US);
    uint64_t before = p.spin_ns;
    dti_wait_policy_learn_delay(&p, 5 * MS, 5 * MS, 10);
    assert_false(in_full(&p));
    /* The late wake-ups there do not say what a wake-up costs. */
    dti_wait_policy_after_sleep(&p, 0, 4 * MS);
    assert_int_equal(p.spin_ns, before);
    dti_wait_policy_learn_delay(&p, 10 * MS, 0, 10);
    assert_true(in_full(&p));
}

static void a_cpu_is_free_again_below_a_tenth(void **state)
{
    struct dti_wait_policy p = dti_wait_policy_adapting();
    dti_wait_policy_learn_delay(&p, 85 * MS, 15 * MS, 0);
    assert_false(p.crowded);
    dti_wait_policy_learn_delay(&p, 75 * MS, 25 * MS, 0);
    assert_true(p.crowded);
    dti_wait_policy_learn_delay(&p, 85 * MS, 15 * MS, 0);
    assert_true(p.crowded);
    dti_wait_policy_learn_delay(&p, 95 * MS, 5 * MS, 0);
    assert_false(p.crowded);
}

static void the_kernels_counters_are_read_every_10_ms(void **state)
{
    struct dti_wait_policy p = dti_wait_policy_adapting();
    uint64_t begin = dti_now_ns(), before = 0, reads = 0;
    while (dti_now_ns() - begin < 45 * MS) {
        dti_wait_policy_before_sleep(&p);
        reads += p.read_at_ns != before;
        before = p.read_at_ns;
    }
    assert_in_range(reads, 2, (dti_now_ns() - begin) / (10 * MS) + 1);
}

static void *sleep_as_another_thread(void *argument)
{
    usleep(12000);
    dti_wait_policy_before_sleep(argument);
    return NULL;
}

/* Different threads may call run as replica 0. The counters of one say nothing about the other. */
static void the_counters_of_two_threads_are_not_compared(void **state)
{
    struct dti_wait_policy p = dti_wait_policy_adapting();
    pthread_t other;
    dti_wait_policy_before_sleep(&p);
    if (p.tid == 0)
        skip();                               /* the kernel does not count */
    p.ran_ns = p.delayed_ns = UINT64_MAX / 2; /* differences with these would be huge */
    pthread_create(&other, NULL, sleep_as_another_thread, &p);
    pthread_join(other, NULL);
    assert_false(p.crowded);
    assert_true(p.ran_ns < UINT64_MAX / 2);
}

static void wake_ups_alone_do_not_make_a_cpu_crowded(void **state)
{
    struct dti_wait_policy p = dti_wait_policy_adapting();
    /* A thread that works for 5 us and then sleeps: each wake-up takes 60 us, and counts as a delay. */
    dti_wait_policy_learn_delay(&p, 100 * 5 * US, 100 * 60 * US, 100);
    assert_true(in_full(&p));
}

static void a_new_policy_keeps_what_was_learned(void **state)
{
    struct dti_wait_policy p = experienced(100 * US), fixed = { .spin_ns = 7 * US };
    uint64_t learned = p.spin_ns;
    dti_wait_policy_replace(&p, dti_wait_policy_adapting());
    assert_int_equal(p.spin_ns, learned);
    dti_wait_policy_replace(&p, fixed);
    assert_int_equal(p.spin_ns, 7 * US);
    dti_wait_policy_replace(&p, dti_wait_policy_adapting());
    assert_int_equal(p.spin_ns, 50 * US);
}

static void a_policy_that_does_not_adapt_stays_as_it_is(void **state)
{
    struct dti_wait_policy p = { .spin_ns = 7 * US };
    for (int i = 0; i < 1000; i++) {
        assert_true(in_full(&p));
        dti_wait_policy_after_spin(&p, p.spin_ns, 10 * US);
        dti_wait_policy_before_sleep(&p);
        dti_wait_policy_after_sleep(&p, 0, 100 * US);
    }
    assert_int_equal(p.spin_ns, 7 * US);
    assert_int_equal(p.read_at_ns, 0);
}

/* Returns how many waits sleep at once before one yields. */
static int sleeps_before_yield(struct dti_wait_policy *p)
{
    int sleeps = 0;
    while (dti_wait_policy_yield_ns(p) == 0)
        sleeps++;
    return sleeps;
}

static void where_yields_take_long_the_next_waits_sleep_at_once(void **state)
{
    struct dti_wait_policy p = { .yield_ns = 100 * US };
    assert_int_equal(sleeps_before_yield(&p), 0);
    for (int expected = 16; expected <= 1024; expected *= 2) {
        dti_wait_policy_after_yield(&p, 5000 * US);
        assert_int_equal(sleeps_before_yield(&p), expected);
    }
    dti_wait_policy_after_yield(&p, 5000 * US);
    assert_int_equal(sleeps_before_yield(&p), 1024);
    dti_wait_policy_after_yield(&p, 3000 * US);
    assert_int_equal(sleeps_before_yield(&p), 0);
}

static void a_fixed_policy_yields_always(void **state)
{
    struct dti_wait_policy p = { .yield_ns = 100 * US, .is_fixed = true };
    dti_wait_policy_after_yield(&p, 5000 * US);
    assert_int_equal(sleeps_before_yield(&p), 0);
    for (int i = 0; i < 100; i++)
        assert_false(dti_wait_policy_after_yield(&p, US));
}

static void a_thread_that_yields_spins_while_no_other_one_wants_the_cpu(void **state)
{
    struct dti_wait_policy p = { .yield_ns = 100 * US };
    for (int i = 1; i <= 64; i++)
        assert_int_equal(dti_wait_policy_after_yield(&p, US), i % 16 == 0);
    dti_wait_policy_learn_switches(&p, 40); /* it did not run alone until now */
    assert_int_equal(dti_wait_policy_spin_ns(&p), 0);
    dti_wait_policy_learn_switches(&p, 40);
    assert_int_equal(dti_wait_policy_spin_ns(&p), DTI_SPIN_LEAST_NS);
    dti_wait_policy_after_spin(&p, DTI_SPIN_LEAST_NS, US);
    assert_int_equal(dti_wait_policy_spin_ns(&p), DTI_SPIN_LEAST_NS);
    dti_wait_policy_learn_switches(&p, 41);
    assert_int_equal(dti_wait_policy_spin_ns(&p), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_with_50_us),
        cmocka_unit_test(it_spins_for_some_wake_ups),
        cmocka_unit_test(what_it_learns_is_bounded),
        cmocka_unit_test(one_slow_wake_up_has_no_weight),
        cmocka_unit_test(a_sleep_without_a_waker_teaches_nothing),
        cmocka_unit_test(after_a_long_wait_every_16th_wait_spins_in_full),
        cmocka_unit_test(a_thread_that_never_sleeps_tries_it_now_and_then),
        cmocka_unit_test(short_waits_among_long_ones_are_spun),
        cmocka_unit_test(a_fixed_time_stays_after_long_waits),
        cmocka_unit_test(on_a_crowded_cpu_it_does_not_spin),
        cmocka_unit_test(a_cpu_is_free_again_below_a_tenth),
        cmocka_unit_test(the_kernels_counters_are_read_every_10_ms),
        cmocka_unit_test(the_counters_of_two_threads_are_not_compared),
        cmocka_unit_test(wake_ups_alone_do_not_make_a_cpu_crowded),
        cmocka_unit_test(a_new_policy_keeps_what_was_learned),
        cmocka_unit_test(a_policy_that_does_not_adapt_stays_as_it_is),
        cmocka_unit_test(where_yields_take_long_the_next_waits_sleep_at_once),
        cmocka_unit_test(a_fixed_policy_yields_always),
        cmocka_unit_test(a_thread_that_yields_spins_while_no_other_one_wants_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
