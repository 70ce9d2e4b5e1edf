/* Lesson 10: input from files. The dataset consists of CSV files with two columns, a function that producers
 * apply to each row, and a shuffle. In the middle of the pass the program stops and saves the position of the
 * input. Then it continues with three replicas. Each row comes exactly once.
 *
 *     build/examples/10_input [REPLICAS] */
#include "lesson.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES = 3, ROWS_OF_FILE = 400, ROWS = FILES * ROWS_OF_FILE, BATCH = 32, STEPS_BEFORE = 10 };

static const char *path_of(const char *folder, int file)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/day-%d.csv", folder, file);
    return path;
}

static void write_files(const char *folder)
{
    for (int f = 0; f < FILES; f++) {
        FILE *file = fopen(path_of(folder, f), "w");
        if (file == NULL)
            exit(1);
        for (int i = 0; i < ROWS_OF_FILE; i++)
            fprintf(file, "%d,%d.25\n", f * ROWS_OF_FILE + i, i % 40);
        fclose(file);
    }
}

/* Producers call this while the replicas compute. If it fails, the message names the row: "... on
 * day-1.csv:12: ...". */
static ditto_status to_kelvin(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                              void *user)
{
    (void)random;
    (void)user;
    *(int32_t *)out[0].data = *(const int32_t *)in[0].data;
    *(double *)out[1].data = *(const double *)in[1].data + 273.15;
    return DITTO_OK;
}

/* Only describes the dataset. Files are read when an iterator asks for rows. */
static ditto_dataset *open_data(const char *folder)
{
    char pattern[96];
    snprintf(pattern, sizeof pattern, "%s/day-*.csv", folder);
    ditto_files files = { .names = (const char *const[]){ pattern },
                          .num_names = 1,
                          .flags = DITTO_FILES_GLOB };
    ditto_csv_component columns[] = { { .first_column = 0, .num_columns = 1, .dtype = DITTO_I32 },
                                      { .first_column = 1, .num_columns = 1, .dtype = DITTO_F64 } };
    ditto_dataset *measured, *mapped, *shuffled, *batched;
    check(ditto_dataset_from_csv(&files, columns, 2, NULL, &measured));
    check(ditto_dataset_map(measured, to_kelvin, NULL, NULL, &mapped));
    check(ditto_dataset_shuffle(mapped, NULL, &shuffled)); /* all rows, with seed 0 */
    check(ditto_dataset_batch(shuffled, BATCH, 0, &batched));
    check(ditto_dataset_destroy(measured)); /* a dataset keeps the one that it is made from */
    check(ditto_dataset_destroy(mapped));
    check(ditto_dataset_destroy(shuffled));
    return batched;
}

struct pass {
    ditto_iterator *iterator;
    uint64_t most_steps;
    int seen[ROWS]; /* how often each row came */
};

static ditto_status take(ditto_replica *self, void *argument)
{
    struct pass *p = argument;
    ditto_batch batch;
    for (uint64_t step = 0; step < p->most_steps; step++) {
        ditto_status status = ditto_next(self, p->iterator, &batch);
        if (status != DITTO_OK)
            return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
        const int32_t *row = batch.component[0].data;
        const double *kelvin = batch.component[1].data;
        for (uint64_t i = 0; i < batch.rows; i++)
            p->seen[row[i]] += kelvin[i] == row[i] % 40 + 0.25 + 273.15;
    }
    return DITTO_OK;
}

int main(int argc, char **argv)
{
    int seen_once = 0;
    void *state;
    char folder[] = "/tmp/ditto-lesson-XXXXXX";
    static struct pass pass = { .most_steps = STEPS_BEFORE };
    ditto_input_options continued = DITTO_INPUT_OPTIONS_INIT;
    ditto_strategy *strategy = strategy_of_words(argc, argv);
    if (mkdtemp(folder) == NULL)
        return 1;
    write_files(folder);
    ditto_dataset *data = open_data(folder);
    check(ditto_strategy_iterate(strategy, data, NULL, &pass.iterator));
    check(ditto_strategy_run(strategy, take, &pass));
    check(ditto_iterator_save(pass.iterator, &state, &continued.state_bytes));
    printf("stopped after %d steps; %zu bytes say where\n", STEPS_BEFORE, continued.state_bytes);
    check(ditto_iterator_destroy(pass.iterator));
    check(ditto_strategy_destroy(strategy));

    strategy = strategy_of(3);
    continued.state = state;
    pass.most_steps = UINT64_MAX;
    check(ditto_strategy_iterate(strategy, data, &continued, &pass.iterator));
    ditto_state_free(state);
    check(ditto_strategy_run(strategy, take, &pass));
    check(ditto_iterator_destroy(pass.iterator));
    check(ditto_strategy_destroy(strategy));
    check(ditto_dataset_destroy(data));
    for (int row = 0; row < ROWS; row++)
        seen_once += pass.seen[row] == 1;
    for (int f = 0; f < FILES; f++)
        unlink(path_of(folder, f));
    rmdir(folder);
    printf("%d of %d rows came exactly once\n", seen_once, ROWS);
    return seen_once == ROWS ? 0 : 1;
}
