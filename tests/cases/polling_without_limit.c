/* tests/cases/polling_without_limit.c - a function exceeds run_timeout_ms of 200. A program that polls with
 * no_wait and ditto_remote_test never learns of it, because only calls that wait retire a worker. */
#include "cases.h"

static _Atomic int may_end;

static ditto_status hang(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    while (!may_end)
        sleep_ms(1);
    return DITTO_OK;
}

int main(void)
{
    ditto_strategy *strategy = with_workers(1, 200, 600000);
    ditto_coordinator *coordinator;
    ditto_coordinator_options options = DITTO_COORDINATOR_OPTIONS_INIT;
    ditto_schedule_options no_wait = DITTO_SCHEDULE_OPTIONS_INIT;
    ditto_remote *remote;
    ditto_status status = DITTO_OK;
    int done = 0;
    options.queue_capacity = 2;
    options.max_attempts = 1;
    no_wait.no_wait = 1;
    MUST(ditto_function_register("hang", hang, NULL));
    MUST(ditto_coordinator_create(strategy, &options, &coordinator));
    MUST(ditto_coordinator_schedule(coordinator, "hang", NULL, NULL, &remote));
    for (int i = 0; i < 200 && status >= 0 && !done; i++) {
        sleep_ms(10);
        status = ditto_coordinator_schedule(coordinator, "hang", NULL, &no_wait, NULL);
        MUST(ditto_remote_test(remote, &done));
    }
    told("schedule, for 2 s", status);
    printf("the result is there: %d\n", done);
    may_end = 1;
    MUST(ditto_remote_destroy(remote));
    (void)!ditto_coordinator_destroy(coordinator);
    (void)!ditto_strategy_destroy(strategy);
    return done ? RIGHT : WRONG;
}
