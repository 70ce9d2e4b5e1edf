/* tests/strategy/test_waiting.c - how the threads of a strategy wait: options, environment, description, and
 * whether they sleep. */
#include "support/support.h"

#include "replicas/team/replica.h"
#include "replicas/team/team.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TRIALS = 50 };

/* -- options and environment -- */

static void set_environment(const char *wait, const char *spin_us)
{
    if (wait != NULL)
        setenv("DITTO_WAIT", wait, 1);
    else
        unsetenv("DITTO_WAIT");
    if (spin_us != NULL)
        setenv("DITTO_SPIN_US", spin_us, 1);
    else
        unsetenv("DITTO_SPIN_US");
}

static int clear_environment(void **state)
{
    set_environment(NULL, NULL);
    return 0;
}

/* Fails the test if the description of a strategy with these options has no such line. Its one replica does
 * not share a PU. */
static void expect_line(const ditto_strategy_options *options, const char *line)
{
    char text[4000];
    ditto_strategy *s = make_strategy(1, options);
    assert_ok(ditto_strategy_describe(s, text, sizeof text, NULL));
    if (strstr(text, line) == NULL)
        fail_msg("\"%s\" is not in:\n%s", line, text);
    assert_ok(ditto_strategy_destroy(s));
}

static void the_default_adapts(void **state)
{
    expect_line(NULL, "waiting threads spin for as long as that pays, then sleep\n");
}

static void an_unknown_variable_is_named_with_the_nearest_one(void **state)
{
    char name[200] = "DITTO_";
    memset(name + 6, 'X', 150);
    setenv("DITTO_WAITING", "5", 1);
    setenv(name, "", 1);
    expect_line(NULL, "\nDITTO_WAITING is not a variable of ditto; the nearest is DITTO_WAIT\n");
    expect_line(NULL, "XX is not a variable of ditto; the nearest is DITTO_");
    unsetenv("DITTO_WAITING");
    unsetenv(name);
}

static void the_environment_wins_over_the_default(void **state)
{
    set_environment("active", NULL);
    expect_line(NULL, "waiting threads spin for 10 s, then sleep\n");
    set_environment("PASSIVE", NULL);
    expect_line(NULL, "waiting threads spin for 3 us, then sleep\n");
    set_environment(NULL, "70");
    expect_line(NULL, "waiting threads spin for 70 us, then sleep\n");
    set_environment("default", "0");
    expect_line(NULL, "waiting threads sleep at once\n");
}

static void an_option_wins_over_the_environment(void **state)
{
    ditto_strategy_options waits = DITTO_STRATEGY_OPTIONS_INIT, spins = DITTO_STRATEGY_OPTIONS_INIT;
    waits.wait = DITTO_WAIT_ACTIVE;
    spins.spin_us = 30;
    set_environment("passive", NULL);
    expect_line(&waits, "waiting threads spin for 10 s, then sleep\n");
    expect_line(&spins, "waiting threads spin for 30 us, then sleep\n");
    set_environment(NULL, "70");
    expect_line(&waits, "waiting threads spin for 10 s, then sleep\n");
    expect_line(&spins, "waiting threads spin for 30 us, then sleep\n");
    spins.spin_us = 0;
    spins.has_spin_us = 1;
    expect_line(&spins, "waiting threads sleep at once\n");
}

static void expect_refusal(const ditto_strategy_options *options, ditto_status status, const char *words)
{
    ditto_strategy *s = NULL;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, options, &s), status);
    if (strstr(ditto_last_error()->message, words) == NULL)
        fail_msg("\"%s\" is not in: %s", words, ditto_last_error()->message);
    assert_null(s);
}

static void wrong_values_are_errors(void **state)
{
    static const char *const not_a_policy[] = { "", "lazy", "active ", "1" };
    static const char *const not_a_time[] = { "", "-1", "50us", "1.5", "4294967296", "99999999999999999999" };
    for (size_t i = 0; i < sizeof not_a_policy / sizeof not_a_policy[0]; i++) {
        set_environment(not_a_policy[i], NULL);
        expect_refusal(NULL, DITTO_ERR_INVALID, "it must be default, active or passive");
    }
    for (size_t i = 0; i < sizeof not_a_time / sizeof not_a_time[0]; i++) {
        set_environment(NULL, not_a_time[i]);
        expect_refusal(NULL, DITTO_ERR_INVALID, "it must be microseconds");
    }
    /* A wrong value is an error even if an option wins over it. */
    ditto_strategy_options options = OPTIONS(strategy, .wait = DITTO_WAIT_PASSIVE);
    expect_refusal(&options, DITTO_ERR_INVALID, "DITTO_SPIN_US");
    set_environment("active", "70");
    expect_refusal(NULL, DITTO_ERR_INVALID, "contradict each other");
    set_environment(NULL, NULL);
    options.spin_us = 5;
    expect_refusal(&options, DITTO_ERR_INVALID, "spin_us = 5 and wait = passive contradict each other");
    options.spin_us = 0;
    options.has_spin_us = 1;
    expect_refusal(&options, DITTO_ERR_INVALID, "contradict each other");
    options.has_spin_us = 0;
    options.wait = (ditto_wait_policy)3;
    expect_refusal(&options, DITTO_ERR_RANGE, "wait = 3");
}

/* -- sleeping -- */

/* In a trial, replica 0 arrives `late_us` after replica 1 said that it comes, and replica 1 counts how often
 * it gave up its PU until both had arrived. Without that word replica 0 could arrive first: replica 1 may
 * have slept in the barrier before, and a wake-up can take longer than `late_us`. */
struct sleeps {
    struct report report;
    uint32_t late_us;
    atomic_bool comes;
    long count;
};

static long voluntary_switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void compute(uint32_t us)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < (long)us);
}

static ditto_status meet_late(ditto_replica *self, void *argument)
{
    struct sleeps *s = argument;
    EXPECT(&s->report, ditto_barrier(self, NULL) == DITTO_OK);
    long before = voluntary_switches();
    if (ditto_replica_id(self) == 0) {
        while (!s->comes)
            sched_yield();
        compute(s->late_us);
    } else {
        s->comes = true;
    }
    EXPECT(&s->report, ditto_barrier(self, NULL) == DITTO_OK);
    if (ditto_replica_id(self) == 1)
        s->count = voluntary_switches() - before;
    return DITTO_OK;
}

/* Returns true if replica 1 has slept at least once (`sleeps`), or not at all, in one of the trials. */
static bool some_trial_sleeps(ditto_wait_policy wait, uint32_t late_us, bool sleeps)
{
    bool found = false;
    ditto_strategy *strategy = make_strategy(2, &OPTIONS(strategy, .wait = wait));
    for (int trial = 0; trial < TRIALS && !found; trial++) {
        struct sleeps s = { .late_us = late_us };
        run_all(strategy, meet_late, &s, &s.report);
        found = sleeps == (s.count > 0);
    }
    assert_ok(ditto_strategy_destroy(strategy));
    return found;
}

/* -- what the threads of a team do -- */

static struct dti_wait_policy policy_of(const ditto_strategy_options *options)
{
    uint32_t epoch;
    ditto_strategy *s = make_strategy(1, options);
    const struct dti_team *team = dti_team_of(s);
    struct dti_wait_policy policy = dti_team_wait_policy(team, dti_team_replica(team, 0)->pu.number, &epoch);
    assert_ok(ditto_strategy_destroy(s));
    return policy;
}

static void options_and_environment_reach_the_threads(void **state)
{
    ditto_strategy_options active = DITTO_STRATEGY_OPTIONS_INIT, fixed = DITTO_STRATEGY_OPTIONS_INIT;
    active.wait = DITTO_WAIT_ACTIVE;
    fixed.spin_us = 30;
    assert_true(policy_of(NULL).adapts);
    assert_int_equal(policy_of(&fixed).spin_ns, 30000);
    assert_int_equal(policy_of(&active).spin_ns, 10000000000u);
    set_environment("passive", NULL);
    assert_false(policy_of(NULL).adapts);
    assert_in_range(policy_of(NULL).spin_ns, 1, 5000);
    assert_int_equal(policy_of(&active).spin_ns, 10000000000u);
    set_environment(NULL, "70");
    assert_int_equal(policy_of(NULL).spin_ns, 70000);
    assert_int_equal(policy_of(&fixed).spin_ns, 30000);
}

/* The time before they sleep is tested above. How much sooner they sleep than others is a row of ditto-bench
 * wait, because on a busy machine even a call of the kernel can take longer than others spin. */
static void passive_threads_sleep(void **state)
{
    assert_true(some_trial_sleeps(DITTO_WAIT_PASSIVE, 5000, true));
}

static void threads_sleep_in_long_waits(void **state)
{
    assert_true(some_trial_sleeps(DITTO_WAIT_DEFAULT, 5000, true));
}

static void active_threads_do_not_sleep(void **state)
{
    assert_true(some_trial_sleeps(DITTO_WAIT_ACTIVE, 5000, false));
}

/* -- waits meet limits and errors -- */

struct vain {
    struct report report;
    _Atomic int gave_up; /* how many replicas no longer wait for replica 0 */
};

/* Replica 0 does not come before all others have given up. */
static ditto_status wait_in_vain(ditto_replica *self, void *argument)
{
    struct vain *v = argument;
    if (ditto_replica_id(self) != 0) {
        ditto_status status = ditto_barrier(self, &OPTIONS(reduce, .timeout_ms = 50));
        v->gave_up++;
        return status;
    }
    for (int ms = 0; ms < 60000 && v->gave_up < (int)ditto_num_replicas(self) - 1; ms++)
        usleep(1000);
    EXPECT(&v->report, v->gave_up == (int)ditto_num_replicas(self) - 1);
    return DITTO_OK;
}

static ditto_status fail_late(ditto_replica *self, void *unused)
{
    if (ditto_replica_id(self) == 0) {
        usleep(5000);
        return ditto_fail(self, 1, "as asked");
    }
    return ditto_barrier(self, NULL);
}

static void every_policy_ends_at_a_limit_and_at_an_error(void **state)
{
    for (int wait = DITTO_WAIT_DEFAULT; wait <= DITTO_WAIT_PASSIVE; wait++)
        for (size_t i = 1; i < replica_counts_length; i++) {
            struct vain vain = { .gave_up = 0 };
            ditto_strategy *s = make_strategy(replica_counts[i],
                                              &OPTIONS(strategy, .wait = (ditto_wait_policy)wait));
            assert_status(ditto_strategy_run(s, wait_in_vain, &vain), DITTO_ERR_TIMED_OUT);
            assert_string_equal(vain.report.first_failure, "");
            assert_status(ditto_strategy_run(s, fail_late, NULL), DITTO_ERR_USER);
            assert_ok(ditto_strategy_destroy(s));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_default_adapts, clear_environment),
        cmocka_unit_test(an_unknown_variable_is_named_with_the_nearest_one),
        cmocka_unit_test_teardown(the_environment_wins_over_the_default, clear_environment),
        cmocka_unit_test_teardown(an_option_wins_over_the_environment, clear_environment),
        cmocka_unit_test_teardown(wrong_values_are_errors, clear_environment),
        cmocka_unit_test_teardown(options_and_environment_reach_the_threads, clear_environment),
        cmocka_unit_test(passive_threads_sleep),
        cmocka_unit_test(threads_sleep_in_long_waits),
        cmocka_unit_test(active_threads_do_not_sleep),
        cmocka_unit_test(every_policy_ends_at_a_limit_and_at_an_error),
    };
    clear_environment(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
