/* tests/cases/error_of_another_thread.c - a function of the main thread fails. Another thread schedules a
 * function of its own, and gets this error. The main thread joins, and gets DITTO_OK. */
#include "cases.h"

#include <pthread.h>

static ditto_coordinator *coordinator;

static ditto_status fail(ditto_replica *self, void *unused)
{
    (void)unused;
    return ditto_fail(self, 1, "fails");
}

static ditto_status nothing(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    return DITTO_OK;
}

static void *schedule(void *status)
{
    *(ditto_status *)status = told("schedule of another thread",
                                   ditto_coordinator_schedule(coordinator, "nothing", NULL, NULL, NULL));
    return NULL;
}

int main(void)
{
    ditto_strategy *strategy = with_workers(2, 0, 10000);
    ditto_status scheduled = DITTO_OK;
    pthread_t other;
    MUST(ditto_function_register("fail", fail, NULL));
    MUST(ditto_function_register("nothing", nothing, NULL));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    MUST(ditto_coordinator_schedule(coordinator, "fail", NULL, NULL, NULL));
    sleep_ms(100); /* until it has failed */
    if (pthread_create(&other, NULL, schedule, &scheduled) != 0 || pthread_join(other, NULL) != 0)
        return NOT_TRIED;
    ditto_status joined = told("join of the main thread", ditto_coordinator_join(coordinator));
    MUST(ditto_coordinator_destroy(coordinator));
    MUST(ditto_strategy_destroy(strategy));
    return scheduled == DITTO_OK && joined == DITTO_ERR_USER ? RIGHT : WRONG;
}
