/* tests/cases/dataset_made_late.c - making the dataset of a worker takes longer than run_timeout_ms, which is
 * meant for functions. The workers are retired, although their function takes no time. */
#include "cases.h"

static ditto_status make_slowly(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    ditto_dataset *range;
    (void)context, (void)user;
    sleep_ms(600);
    DITTO_TRY(ditto_dataset_from_range(0, 10, 1, &range));
    DITTO_TRY(ditto_dataset_batch(range, 1, 0, out));
    return ditto_dataset_destroy(range);
}

static ditto_status nothing(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    return DITTO_OK;
}

int main(void)
{
    ditto_strategy *strategy = with_workers(2, 300, 10000);
    ditto_coordinator *coordinator;
    ditto_per_worker *iterators;
    MUST(ditto_function_register("nothing", nothing, NULL));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    MUST(ditto_coordinator_datasets_from_function(coordinator, make_slowly, NULL, NULL, &iterators));
    MUST(ditto_coordinator_schedule(coordinator, "nothing", NULL, NULL, NULL));
    ditto_status status = told("join", ditto_coordinator_join(coordinator));
    sleep_ms(1000);
    (void)!ditto_coordinator_destroy(coordinator);
    (void)!ditto_strategy_destroy(strategy);
    return status == DITTO_OK ? RIGHT : WRONG;
}
