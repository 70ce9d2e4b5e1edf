/* tests/cases/error_of_another_call.c - ditto_remote_fetch returns DITTO_OK. While it waited, it has retired
 * the worker of another function, and ditto_last_error of the calling thread is now the error of that one. */
#include "cases.h"

static _Atomic int may_end;

static ditto_status hang(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    while (!may_end)
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status short_one(ditto_replica *self, void *unused)
{
    (void)unused;
    sleep_ms(250);
    return ditto_return_f64(self, NULL, 1);
}

int main(void)
{
    ditto_strategy *strategy = with_workers(2, 300, 600000);
    ditto_coordinator *coordinator;
    ditto_coordinator_options options = DITTO_COORDINATOR_OPTIONS_INIT;
    ditto_remote *remote;
    ditto_value *value;
    options.max_attempts = 1;
    MUST(ditto_function_register("hang", hang, NULL));
    MUST(ditto_function_register("short", short_one, NULL));
    MUST(ditto_coordinator_create(strategy, &options, &coordinator));
    MUST(ditto_coordinator_schedule(coordinator, "hang", NULL, NULL, NULL));
    sleep_ms(150);
    MUST(ditto_coordinator_schedule(coordinator, "short", NULL, NULL, &remote));
    MUST(told("fetch", ditto_remote_fetch(remote, &value)));
    ditto_status last = told("last error", ditto_last_error()->status);
    may_end = 1;
    MUST(ditto_value_destroy(value));
    MUST(ditto_remote_destroy(remote));
    (void)!ditto_coordinator_destroy(coordinator);
    (void)!ditto_strategy_destroy(strategy);
    return last == DITTO_OK ? RIGHT : WRONG;
}
