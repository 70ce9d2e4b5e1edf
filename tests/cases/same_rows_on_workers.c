/* tests/cases/same_rows_on_workers.c - each worker makes its dataset with a shuffle, and asks for random
 * numbers. All workers get the same rows in the same order, and the same numbers. */
#include "cases.h"

enum { WORKERS = 3, ROWS = 4 };

static ditto_per_worker *iterators;
static _Atomic int begun;
static int64_t row[WORKERS][ROWS];
static double number[WORKERS];

static ditto_status make(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    ditto_dataset *range, *shuffled;
    (void)context, (void)user;
    DITTO_TRY(ditto_dataset_from_range(0, 100, 1, &range));
    DITTO_TRY(ditto_dataset_shuffle(range, NULL, &shuffled));
    DITTO_TRY(ditto_dataset_batch(shuffled, 1, 0, out));
    DITTO_TRY(ditto_dataset_destroy(shuffled));
    return ditto_dataset_destroy(range);
}

static ditto_status take(ditto_replica *self, void *unused)
{
    uint32_t worker = ditto_worker(self);
    ditto_random random;
    ditto_iterator *iterator;
    ditto_batch batch;
    (void)unused;
    begun++;
    while (begun < WORKERS)
        sleep_ms(1); /* so that each worker executes the function once */
    DITTO_TRY(ditto_random_of(self, 42, &random));
    ditto_random_f64(&random, &number[worker], 1);
    DITTO_TRY(ditto_worker_iterator(self, iterators, &iterator));
    for (int i = 0; i < ROWS; i++) {
        DITTO_TRY(ditto_next(self, iterator, &batch));
        row[worker][i] = *(int64_t *)batch.component[0].data;
    }
    return DITTO_OK;
}

int main(void)
{
    ditto_strategy *strategy = with_workers(WORKERS, 0, 10000);
    ditto_coordinator *coordinator;
    MUST(ditto_function_register("take", take, NULL));
    MUST(ditto_coordinator_create(strategy, NULL, &coordinator));
    MUST(ditto_coordinator_datasets_from_function(coordinator, make, NULL, NULL, &iterators));
    for (int i = 0; i < WORKERS; i++)
        MUST(ditto_coordinator_schedule(coordinator, "take", NULL, NULL, NULL));
    MUST(ditto_coordinator_join(coordinator));
    for (int w = 0; w < WORKERS; w++)
        printf("worker %d: number %.4f, rows %d %d %d %d\n", w, number[w], (int)row[w][0], (int)row[w][1],
               (int)row[w][2], (int)row[w][3]);
    MUST(ditto_coordinator_destroy(coordinator));
    MUST(ditto_strategy_destroy(strategy));
    return row[0][0] != row[1][0] && number[0] != number[1] ? RIGHT : WRONG;
}
