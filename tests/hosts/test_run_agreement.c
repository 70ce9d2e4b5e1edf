/* tests/hosts/test_run_agreement.c - runs over hosts that do not agree on their end
 * (ditto_strategy_options.run_agreement). */
#include "cluster/cluster.h"
#include "support/hosts.h"

#include <pthread.h>
#include <unistd.h>

enum { RUNS = 200 };

static ditto_status make(struct test_host *host, uint32_t replicas, ditto_switch agreement,
                         ditto_strategy **out)
{
    return make_host_strategy(host, replicas, &OPTIONS(strategy, .run_agreement = agreement), out);
}

static ditto_status does_nothing(ditto_replica *self, void *argument)
{
    return DITTO_OK;
}

/* -- runs that end well -- */

static ditto_status makes_runs(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 2, DITTO_SWITCH_OFF, &strategy));
    uint64_t sent = host->cluster->sent_messages;
    for (int i = 0; i < RUNS; i++)
        DITTO_TRY(ditto_strategy_run(strategy, does_nothing, NULL));
    CHECK(host, host->cluster->sent_messages == sent);
    for (int i = 0; i < RUNS; i++)
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    return ditto_strategy_destroy(strategy);
}

static void runs_send_nothing_of_their_own(void **state)
{
    on_hosts(1, 0, makes_runs, NULL);
    on_hosts(2, 100, makes_runs, NULL);
    on_hosts(3, 0, makes_runs, NULL);
}

static ditto_status agrees(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 2, DITTO_SWITCH_DEFAULT, &strategy));
    uint64_t sent = host->cluster->sent_messages;
    DITTO_TRY(ditto_strategy_run(strategy, does_nothing, NULL));
    CHECK(host, host->cluster->sent_messages > sent);
    return ditto_strategy_destroy(strategy);
}

static void by_default_hosts_agree(void **state)
{
    on_hosts(3, 0, agrees, NULL);
}

/* A status that is no error is each host's own, and runs go on. */
static ditto_status ends_on_host_1(ditto_replica *self, void *argument)
{
    const struct test_host *host = argument;
    DITTO_TRY(ditto_barrier(self, NULL));
    return host->host == 1 ? DITTO_END_OF_INPUT : DITTO_OK;
}

static ditto_status end_differently(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 2, DITTO_SWITCH_OFF, &strategy));
    for (int i = 0; i < RUNS; i++) {
        ditto_status status = ditto_strategy_run(strategy, ends_on_host_1, host);
        CHECK(host, status == (host->host == 1 ? DITTO_END_OF_INPUT : DITTO_OK));
    }
    return ditto_strategy_destroy(strategy);
}

static void a_positive_status_is_each_hosts_own(void **state)
{
    on_hosts(3, 0, end_differently, NULL);
}

/* -- failures -- */

/* The argument of the hosts is a barrier of their threads. */
static void with_barrier(uint32_t hosts, uint32_t delay_us, bool life_line, test_host_fn *function)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, hosts);
    if (life_line)
        on_hosts_with_life_line(hosts, function, &barrier);
    else
        on_hosts(hosts, delay_us, function, &barrier);
    pthread_barrier_destroy(&barrier);
}

struct merging {
    struct test_host *host;
    ditto_variable *v;
};

struct failing {
    struct test_host *host;
    int run, failing_run;
};

static ditto_status fails_in_a_run(ditto_replica *self, void *argument)
{
    const struct failing *f = argument;
    if (f->host->host == 1 && f->run == f->failing_run)
        return ditto_fail(self, 5, "host 1 has failed");
    return f->run % 2 == 0 ? ditto_barrier(self, NULL) : DITTO_OK;
}

/* No host fails before all have begun. The others learn of it in one of their next runs, at the latest in the
 * next collective. Then all make the same number of runs again. */
static ditto_status fail_in_a_run(struct test_host *host)
{
    ditto_strategy *strategy;
    uint64_t random = 11;
    DITTO_TRY(make(host, 2, DITTO_SWITCH_OFF, &strategy));
    for (int i = 0; i < test_trials(40); i++) {
        struct failing f = { .host = host, .failing_run = 1 + (int)(test_random(&random) % 6) };
        ditto_status status = DITTO_OK;
        while (status == DITTO_OK && f.run < 10) {
            status = ditto_strategy_run(strategy, fails_in_a_run, &f);
            f.run++;
        }
        DITTO_TRY(expect(host, status, DITTO_ERR_USER, "host 1 has failed"));
        /* A slower host may hear of it before it has come so far. */
        CHECK(host, f.run <= f.failing_run + 3);
        for (int k = 0; k < 3; k++)
            DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
        pthread_barrier_wait(host->argument); /* so that no host fails before these runs have ended */
    }
    return ditto_strategy_destroy(strategy);
}

static void a_failure_reaches_the_others_in_a_later_call(void **state)
{
    with_barrier(2, 100, false, fail_in_a_run);
    with_barrier(3, 0, false, fail_in_a_run);
    with_barrier(3, 0, true, fail_in_a_run);
}

/* Runs without collectives, and without a life line, learn of it at their end. */
static ditto_status fails_alone(ditto_replica *self, void *argument)
{
    const struct test_host *host = argument;
    return host->host == 1 ? ditto_fail(self, 6, "host 1 has failed") : DITTO_OK;
}

static ditto_status makes_runs_that_never_meet(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 2, DITTO_SWITCH_OFF, &strategy));
    for (int i = 0; i < test_trials(20); i++) {
        ditto_status status = DITTO_OK;
        for (int k = 0; k < 30000 && status == DITTO_OK; k++) {
            status = ditto_strategy_run(strategy, fails_alone, host);
            usleep(1000);
        }
        DITTO_TRY(expect(host, status, DITTO_ERR_USER, "host 1 has failed"));
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
        pthread_barrier_wait(host->argument);
    }
    return ditto_strategy_destroy(strategy);
}

static void runs_that_never_meet_learn_of_a_failure_too(void **state)
{
    with_barrier(2, 50, false, makes_runs_that_never_meet);
    with_barrier(3, 0, false, makes_runs_that_never_meet);
}

/* An assign in a merge function has met the other hosts when it fails. The function hides it. */
static ditto_status hide_an_error(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    struct merging *m = user;
    double value = m->host->host;
    EXPECT(m->host->report,
           ditto_variable_assign(m->v, DITTO_ASSIGN, &value, sizeof value) == DITTO_ERR_DIVERGED);
    return DITTO_OK;
}

static ditto_status merges(ditto_replica *self, void *argument)
{
    return ditto_merge_call(self, hide_an_error, argument, NULL, 0, NULL);
}

static ditto_status hides_an_error(struct test_host *host)
{
    struct merging m = { .host = host };
    ditto_tensor initial = { .dtype = DITTO_F64, .rank = 1, .shape = { 1 } };
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 2, DITTO_SWITCH_OFF, &strategy));
    DITTO_TRY(ditto_variable_create(strategy, &initial, &OPTIONS(variable, .name = "x"), &m.v));
    for (int i = 0; i < test_trials(5); i++) {
        DITTO_TRY(expect(host, ditto_strategy_run(strategy, merges, &m), DITTO_ERR_DIVERGED, "x"));
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    }
    DITTO_TRY(ditto_variable_destroy(m.v));
    return ditto_strategy_destroy(strategy);
}

static void an_error_that_a_merge_function_hides_ends_the_run(void **state)
{
    on_hosts(2, 0, hides_an_error, NULL);
    on_hosts(3, 50, hides_an_error, NULL);
}

/* The same collective in another run is another call. */
static ditto_status makes_one_run_more(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 1, DITTO_SWITCH_OFF, &strategy));
    for (int i = 0; i < test_trials(20); i++) {
        if (host->host == 1)
            DITTO_TRY(ditto_strategy_run(strategy, does_nothing, NULL));
        /* The error has begun a new epoch, and one run has ended since. */
        const char *text = i == 0
                               ? "after 0 runs, but host 1 (node1, replica 1) calls ditto_all_reduce #1 (1 x "
                                 "f64, SUM) after 1: every host must make the same calls"
                               : "after 1 runs, but host 1";
        DITTO_TRY(
            expect(host, ditto_strategy_run(strategy, sum_of_ids, host->report), DITTO_ERR_DIVERGED, text));
        DITTO_TRY(ditto_strategy_run(strategy, sum_of_ids, host->report));
    }
    return ditto_strategy_destroy(strategy);
}

static void another_number_of_runs_is_found(void **state)
{
    on_hosts(2, 0, makes_one_run_more, NULL);
    on_hosts(3, 100, makes_one_run_more, NULL);
}

/* At the end of the program all hosts meet. */
static ditto_status destroys_early(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 1, DITTO_SWITCH_OFF, &strategy));
    if (host->host == 1)
        DITTO_TRY(ditto_strategy_run(strategy, does_nothing, NULL));
    return expect(host, ditto_strategy_destroy(strategy), DITTO_ERR_DIVERGED, "ditto_strategy_destroy");
}

static void another_number_of_runs_is_found_at_the_end(void **state)
{
    on_hosts(2, 0, destroys_early, NULL);
}

/* -- options -- */

static ditto_status wants_otherwise(struct test_host *host)
{
    ditto_strategy *strategy;
    DITTO_TRY(expect(host, make(host, 1, host->host == 1 ? DITTO_SWITCH_OFF : DITTO_SWITCH_ON, &strategy),
                     DITTO_ERR_INVALID, "run_agreement is on on host 0, but off on host 1"));
    return expect(host, make(host, 1, (ditto_switch)7, &strategy), DITTO_ERR_RANGE, "run_agreement");
}

static void hosts_must_have_the_same_option(void **state)
{
    on_hosts(2, 0, wants_otherwise, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_send_nothing_of_their_own),
        cmocka_unit_test(by_default_hosts_agree),
        cmocka_unit_test(a_positive_status_is_each_hosts_own),
        cmocka_unit_test(a_failure_reaches_the_others_in_a_later_call),
        cmocka_unit_test(runs_that_never_meet_learn_of_a_failure_too),
        cmocka_unit_test(an_error_that_a_merge_function_hides_ends_the_run),
        cmocka_unit_test(another_number_of_runs_is_found),
        cmocka_unit_test(another_number_of_runs_is_found_at_the_end),
        cmocka_unit_test(hosts_must_have_the_same_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
