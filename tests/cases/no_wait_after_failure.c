/* tests/cases/no_wait_after_failure.c - a function has failed while another one takes two seconds.
 * ditto_coordinator_schedule with no_wait, and ditto_coordinator_done, wait for its end. */
#include "cases.h"

static ditto_status two_seconds(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    sleep_ms(2000);
    return DITTO_OK;
}

static ditto_status fail(ditto_replica *self, void *unused)
{
    (void)unused;
    return ditto_fail(self, 1, "fails");
}

int main(void)
{
    ditto_strategy *strategy = with_workers(2, 0, 10000);
    ditto_coordinator *coordinator;
    ditto_schedule_options no_wait = DITTO_SCHEDULE_OPTIONS_INIT;
    double longest = 0;
    int done;
    no_wait.no_wait = 1;
    MUST(ditto_function_register("long", two_seconds, NULL));
    MUST(ditto_function_register("fail", fail, NULL));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    for (int i = 0; i < 2; i++) {
        MUST(ditto_coordinator_schedule(coordinator, "long", NULL, NULL, NULL));
        MUST(ditto_coordinator_schedule(coordinator, "fail", NULL, NULL, NULL));
        sleep_ms(100);
        double begin = seconds(CLOCK_MONOTONIC);
        if (i == 0)
            told("schedule", ditto_coordinator_schedule(coordinator, "fail", NULL, &no_wait, NULL));
        else
            told("done", ditto_coordinator_done(coordinator, &done));
        double waited = seconds(CLOCK_MONOTONIC) - begin;
        printf("it took %.1f s\n", waited);
        longest = waited > longest ? waited : longest;
    }
    MUST(ditto_coordinator_destroy(coordinator));
    MUST(ditto_strategy_destroy(strategy));
    return longest < 1 ? RIGHT : WRONG;
}
