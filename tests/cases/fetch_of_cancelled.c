/* tests/cases/fetch_of_cancelled.c - a thread fetches the result of a function in the queue, which is then
 * cancelled. ditto_remote_test says that fetch would not wait, but the thread waits until the function that
 * is being executed ends. */
#include "cases.h"

#include <pthread.h>

static _Atomic int may_end, has_fetched;
static ditto_remote *queued;

static ditto_status wait_long(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    while (!may_end)
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status nothing(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    return DITTO_OK;
}

static void *fetch(void *unused)
{
    ditto_value *value;
    told("fetch", ditto_remote_fetch(queued, &value));
    has_fetched = 1;
    return unused;
}

int main(void)
{
    ditto_strategy *strategy = with_workers(1, 0, 600000);
    ditto_coordinator *coordinator;
    pthread_t fetcher;
    int done;
    MUST(ditto_function_register("long", wait_long, NULL));
    MUST(ditto_function_register("nothing", nothing, NULL));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    MUST(ditto_coordinator_schedule(coordinator, "long", NULL, NULL, NULL));
    sleep_ms(100); /* until the worker has begun it */
    MUST(ditto_coordinator_schedule(coordinator, "nothing", NULL, NULL, &queued));
    if (pthread_create(&fetcher, NULL, fetch, NULL) != 0)
        return NOT_TRIED;
    sleep_ms(100);
    MUST(ditto_remote_cancel(queued));
    MUST(ditto_remote_test(queued, &done));
    sleep_ms(1000);
    int returned = has_fetched;
    printf("a second after the cancel: done %d, fetch has returned %d\n", done, returned);
    may_end = 1;
    pthread_join(fetcher, NULL);
    MUST(ditto_remote_destroy(queued));
    MUST(ditto_coordinator_destroy(coordinator));
    MUST(ditto_strategy_destroy(strategy));
    return done == returned ? RIGHT : WRONG;
}
