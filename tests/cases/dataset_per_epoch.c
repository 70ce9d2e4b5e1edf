/* tests/cases/dataset_per_epoch.c - each epoch makes a new dataset for each worker. The old ones cannot be
 * given back before the coordinator: their memory stays, and the threads of those that have not ended. */
#include "cases.h"

#include <string.h>

enum { EPOCHS = 200 };

static ditto_per_worker *iterators;

static ditto_status make(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    ditto_dataset *range, *forever;
    (void)context, (void)user;
    DITTO_TRY(ditto_dataset_from_range(0, 1, 1, &range));
    DITTO_TRY(ditto_dataset_repeat(range, DITTO_REPEAT_FOREVER, &forever));
    DITTO_TRY(ditto_dataset_batch(forever, 1, 0, out));
    DITTO_TRY(ditto_dataset_destroy(forever));
    return ditto_dataset_destroy(range);
}

static ditto_status take_one(ditto_replica *self, void *unused)
{
    ditto_iterator *iterator;
    ditto_batch batch;
    (void)unused;
    DITTO_TRY(ditto_worker_iterator(self, iterators, &iterator));
    return ditto_next(self, iterator, &batch);
}

/* Returns a number of /proc/self/status. */
static long status_of(const char *name)
{
    char line[256];
    long number = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            number = strtol(line + strlen(name), NULL, 10);
    if (file != NULL)
        fclose(file);
    return number;
}

int main(void)
{
    ditto_strategy *strategy = with_workers(2, 0, 10000);
    ditto_coordinator *coordinator;
    long first = 0, last = 0;
    MUST(ditto_function_register("take", take_one, NULL));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        MUST(ditto_coordinator_datasets_from_function(coordinator, make, NULL, NULL, &iterators));
        for (int i = 0; i < 4; i++)
            MUST(ditto_coordinator_schedule(coordinator, "take", NULL, NULL, NULL));
        MUST(ditto_coordinator_join(coordinator));
        last = status_of("Threads:");
        if (epoch == 1 || epoch == EPOCHS)
            printf("epoch %d: %ld threads, %ld KiB\n", epoch, last, status_of("VmRSS:"));
        if (epoch == 1)
            first = last;
    }
    MUST(ditto_coordinator_destroy(coordinator));
    MUST(ditto_strategy_destroy(strategy));
    return last <= first + 4 ? RIGHT : WRONG;
}
