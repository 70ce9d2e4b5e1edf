/* tests/cases/steps_after_end.c - 100 steps are scheduled, and the two workers have ten rows each. The other
 * steps return DITTO_END_OF_INPUT, but join returns DITTO_OK, and all 100 are counted as functions. */
#include "cases.h"

static ditto_per_worker *iterators;
static _Atomic int trained;

static ditto_status make(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    ditto_dataset *range;
    (void)context, (void)user;
    DITTO_TRY(ditto_dataset_from_range(0, 10, 1, &range));
    DITTO_TRY(ditto_dataset_batch(range, 1, 0, out));
    return ditto_dataset_destroy(range);
}

static ditto_status step(ditto_replica *self, void *unused)
{
    ditto_iterator *iterator;
    ditto_batch batch;
    (void)unused;
    DITTO_TRY(ditto_worker_iterator(self, iterators, &iterator));
    DITTO_TRY(ditto_next(self, iterator, &batch));
    trained++;
    return DITTO_OK;
}

int main(void)
{
    ditto_strategy *strategy = with_workers(2, 0, 10000);
    ditto_coordinator *coordinator;
    ditto_coordinator_counters counters = DITTO_COORDINATOR_COUNTERS_INIT;
    MUST(ditto_function_register("step", step, NULL));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    MUST(ditto_coordinator_datasets_from_function(coordinator, make, NULL, NULL, &iterators));
    for (int i = 0; i < 100; i++)
        MUST(ditto_coordinator_schedule(coordinator, "step", NULL, NULL, NULL));
    ditto_status status = told("join", ditto_coordinator_join(coordinator));
    MUST(ditto_coordinator_stats(coordinator, &counters));
    printf("%d steps trained, %d functions are counted\n", trained, (int)counters.functions);
    MUST(ditto_coordinator_destroy(coordinator));
    MUST(ditto_strategy_destroy(strategy));
    return status == DITTO_END_OF_INPUT || (int)counters.functions == trained ? RIGHT : WRONG;
}
