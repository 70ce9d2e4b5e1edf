/* Lesson 4: datasets. Producers cut a dataset into global batches, and each batch into one part per replica.
 * The parts are prepared ahead of time in the memory of their replica.
 *
 *     build/examples/04_dataset [REPLICAS] */
#include "lesson.h"

#include <stdio.h>

enum { ROWS = 1000, BATCH = 64 };

/* One step. Adds up the rows of this replica's part of a batch, and counts them. */
static ditto_status add_rows(ditto_replica *self, const ditto_batch *batch, void *totals)
{
    const double *row = batch->component[0].data;
    double sum_and_count[2] = { 0, (double)batch->rows };
    for (uint64_t i = 0; i < batch->rows; i++)
        sum_and_count[0] += row[i];
    double *total = (double *)totals + 2 * ditto_replica_id(self);
    total[0] += sum_and_count[0];
    total[1] += sum_and_count[1];
    return ditto_return_f64(self, "rows", sum_and_count[1]);
}

static ditto_dataset *open_data(const double *rows)
{
    ditto_tensor array = {
        .data = (void *)(uintptr_t)rows, .dtype = DITTO_F64, .rank = 1, .shape = { ROWS }
    };
    ditto_shuffle_options shuffle = DITTO_SHUFFLE_OPTIONS_INIT;
    ditto_dataset *all, *shuffled, *batched;
    shuffle.seed = 7;
    check(ditto_dataset_from_arrays(&array, 1, &all)); /* does not copy the array */
    check(ditto_dataset_shuffle(all, &shuffle, &shuffled));
    check(ditto_dataset_batch(shuffled, BATCH, 0, &batched)); /* BATCH rows for all replicas together */
    check(ditto_dataset_destroy(all));                        /* a dataset keeps those that it is made from */
    check(ditto_dataset_destroy(shuffled));
    return batched;
}

int main(int argc, char **argv)
{
    static double rows[ROWS], totals[DITTO_MAX_REPLICAS][2];
    for (int i = 0; i < ROWS; i++)
        rows[i] = i;
    ditto_strategy *strategy = strategy_of_words(argc, argv);
    ditto_dataset *data = open_data(rows);
    ditto_iterator *iterator;
    check(ditto_strategy_iterate(strategy, data, NULL, &iterator));

    /* Makes ten steps in each run until the input ends. DITTO_END_OF_INPUT is not an error. */
    uint64_t steps, all_steps = 0;
    ditto_status status;
    do {
        ditto_value *last;
        status = ditto_strategy_run_steps(strategy, add_rows, totals, iterator, 10, NULL, &steps, &last);
        check(status);
        all_steps += steps;
        if (last != NULL) {
            double last_rows;
            const ditto_value *named;
            check(ditto_value_member(last, "rows", &named));
            check(ditto_strategy_reduce_f64(strategy, DITTO_SUM, named, &last_rows));
            printf("%2llu steps; the last one had %g rows\n", (unsigned long long)all_steps, last_rows);
            check(ditto_value_destroy(last));
        }
    } while (status != DITTO_END_OF_INPUT);

    double sum = 0, seen = 0;
    for (uint32_t r = 0; r < ditto_strategy_num_replicas(strategy); r++) {
        sum += totals[r][0];
        seen += totals[r][1];
    }
    printf("%g rows, each once: their sum is %g\n", seen, sum);
    check(ditto_iterator_destroy(iterator));
    check(ditto_dataset_destroy(data));
    check(ditto_strategy_destroy(strategy));
    return seen == ROWS && sum == ROWS * (ROWS - 1) / 2.0 ? 0 : 1;
}
