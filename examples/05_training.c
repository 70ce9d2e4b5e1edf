/* Lesson 5: training. A small network learns to recognize handwritten digits. Each replica computes the
 * gradient of its rows, and the sum of all gradients is the gradient of the whole batch. train_digits.c is
 * a longer version with an optimizer, test rows, options, checkpoints and reports.
 *
 *     build/examples/05_training [REPLICAS] [FILE] */
#include "command_line.h"
#include "lesson.h"
#include "network.h"

#include <stdio.h>
#include <string.h>

#define EPOCHS 5
#define BATCH  32
#define RATE   0.05f

struct training {
    ditto_variable *weights; /* mirrored, one copy per NUMA node */
    ditto_variable *hits;    /* sync-on-read, so each replica counts alone */
};

static ditto_status train_step(ditto_replica *self, const ditto_batch *batch, void *argument)
{
    struct training *t = argument;
    static _Thread_local struct network gradient; /* each replica has its own */
    const void *weights;
    int64_t hits = 0;
    memset(&gradient, 0, sizeof gradient);
    DITTO_TRY(ditto_read(self, t->weights, &weights));
    double loss = network_learn(weights, batch->component[0].data, batch->component[1].data, batch->rows,
                                1.0f / BATCH, &gradient, &hits);
    DITTO_TRY(ditto_assign(self, t->hits, DITTO_ASSIGN_ADD, &hits));

    float *change = (float *)&gradient;
    for (int i = 0; i < PARAMETERS; i++)
        change[i] *= RATE;
    /* The gradients of all replicas are added up and subtracted from each copy, in one pass over memory. */
    DITTO_TRY(ditto_assign(self, t->weights, DITTO_ASSIGN_SUB, change));
    return ditto_return_f64(self, "loss", loss / BATCH);
}

static ditto_dataset *open_data(const char *path)
{
    static const ditto_csv_component columns[] = {
        { .first_column = 0, .num_columns = INPUTS, .dtype = DITTO_F32 },
        { .first_column = INPUTS, .num_columns = 1, .dtype = DITTO_I32 }
    };
    ditto_shuffle_options shuffle = DITTO_SHUFFLE_OPTIONS_INIT;
    ditto_dataset *rows, *shuffled, *batches;
    shuffle.seed = 1;
    check(ditto_dataset_from_csv(&(ditto_files){ .names = &path, .num_names = 1 }, columns, 2, NULL, &rows));
    check(ditto_dataset_shuffle(rows, &shuffle, &shuffled));
    check(ditto_dataset_batch(shuffled, BATCH, 0, &batches));
    check(ditto_dataset_destroy(rows));
    check(ditto_dataset_destroy(shuffled));
    return batches;
}

static void create_variables(ditto_strategy *strategy, struct training *t)
{
    static struct network first; /* the initial weights of all replicas */
    ditto_tensor parameters = { .data = &first, .dtype = DITTO_F32, .rank = 1, .shape = { PARAMETERS } };
    ditto_tensor count = { .dtype = DITTO_I64 };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    options.aggregation = DITTO_AGGREGATE_SUM;
    network_initialize(&first, 1);
    check(ditto_variable_create(strategy, &parameters, &options, &t->weights));
    options.synchronization = DITTO_ON_READ;
    check(ditto_variable_create(strategy, &count, &options, &t->hits));
}

static void train_epoch(ditto_strategy *strategy, struct training *t, ditto_dataset *data, int epoch)
{
    ditto_input_options input = DITTO_INPUT_OPTIONS_INIT;
    ditto_run_options options = DITTO_RUN_OPTIONS_INIT;
    ditto_result_op ops[] = { { "loss", DITTO_SUM } }; /* the sum is the mean loss of the batch */
    ditto_iterator *iterator;
    ditto_value *results;
    const ditto_value *named;
    double loss;
    int64_t hits, none = 0;
    uint64_t steps;
    input.pass = (uint64_t)epoch;
    options.reduce = ops;
    options.num_reduce = 1;
    check(ditto_strategy_iterate(strategy, data, &input, &iterator));
    check(
        ditto_strategy_run_steps(strategy, train_step, t, iterator, UINT64_MAX, &options, &steps, &results));
    check(ditto_value_member(results, "loss", &named));
    check(ditto_value_f64(named, &loss));
    check(ditto_variable_read(t->hits, &hits, sizeof hits));
    check(ditto_variable_assign(t->hits, DITTO_ASSIGN, &none, sizeof none));
    printf("epoch %d: %llu steps, loss of the last one %.4f, right %.1f %%\n", epoch + 1,
           (unsigned long long)steps, loss, 100 * (double)hits / 1797);
    check(ditto_value_destroy(results));
    check(ditto_iterator_destroy(iterator));
}

int main(int argc, char **argv)
{
    enum { REPLICAS, FILE_NAME };
    static const struct command_row rows[] = {
        [REPLICAS] = { NULL, "REPLICAS", "how many replicas learn: 1 to 1024 (default: one for each core)" },
        [FILE_NAME] = { NULL, "FILE", "the digits to learn from (default: those of the examples)" },
        { 0 },
    };
    struct command_line line = command_line_of(
        "[REPLICAS] [FILE]", "Lesson 5 of ditto: trains a network on handwritten digits.", rows, argc, argv);
    const char *path = digits_path();
    uint32_t replicas = 0;
    for (int row; (row = command_next(&line)) >= 0;)
        if (row == REPLICAS)
            replicas = (uint32_t)command_number(&line, 1, DITTO_MAX_REPLICAS);
        else
            path = line.value;
    ditto_strategy *strategy = strategy_of(replicas);
    struct training t;
    create_variables(strategy, &t);
    ditto_dataset *data = open_data(path);
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        train_epoch(strategy, &t, data, epoch);
    check(ditto_dataset_destroy(data));
    check(ditto_variable_destroy(t.weights));
    check(ditto_variable_destroy(t.hits));
    check(ditto_strategy_destroy(strategy));
    return 0;
}
