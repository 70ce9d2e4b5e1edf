/* examples/train_digits.c - several replicas train one classifier on real handwritten digits (lesson 5, at length).
 *
 * Read it from main at the end upwards. What ditto does here:
 *   a strategy      places replicas on cores, each a pinned thread with memory of its own NUMA node
 *   a dataset       reads, shuffles and batches the rows; every replica gets its part of each global batch, ahead of time
 *   an all-reduce   adds up the replicas' gradients: the same bits on all of them
 *   mirrored        variables hold the weights and their momentum: written together, equal everywhere
 *   sync-on-read    variables hold loss and hits: each replica counts alone, the sum is made when somebody reads it
 *
 * One step of training is in train_step(), one pass over the data in train_epoch(). */
#include <ditto.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "network.h"

#define LEARNING_RATE 0.1f
#define MOMENTUM      0.9f
#define TRAINING_ROWS 1438 /* of 1797: 80 %, the same ones in every run */
#define SPLIT_SEED    1797
#define GOOD_ACCURACY 0.93 /* with the default options anything below is a defect */

struct options {
    uint32_t replicas; /* 0: one per core, or as many as `per` gives */
    ditto_per per;     /* what a replica spans */
    int epochs;
    uint64_t batch, seed;
    const char *data, *trace; /* trace: a file for events; NULL: none */
};

/* Where a replica's time went. */
struct spent {
    double compute, reduce, input;
};

struct training {
    ditto_strategy *strategy;
    struct options options;
    ditto_variable *weights, *velocity; /* mirrored, [PARAMETERS] */
    ditto_variable *loss, *hits, *rows; /* sync-on-read, scalars */
    ditto_iterator *batches;            /* of this pass */
    int epoch;
    bool terminal;
    /* What each replica ended with: compared after the training. */
    uint64_t weight_hash[DITTO_MAX_REPLICAS], gradient_hash[DITTO_MAX_REPLICAS];
    struct spent spent[DITTO_MAX_REPLICAS];
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A call that must not fail in cross-replica context: there is nothing to do but to tell why. */
static void check(ditto_status status)
{
    if (status == DITTO_OK)
        return;
    const ditto_error *error = ditto_last_error();
    fprintf(stderr, "%s: %s: %s\n", error->function, ditto_status_name(status), error->message);
    exit(1);
}

/* -- replica context: these functions run on every replica at the same time -- */

/* What a replica keeps during a pass, in its own arena. */
struct workspace {
    struct network gradient, update;
};

/* The metrics are this replica's own until somebody reads them: no meeting, no cost. */
static ditto_status count_rows(ditto_replica *self, struct training *t, double loss, int64_t hits, uint64_t rows)
{
    int64_t seen = (int64_t)rows;
    DITTO_TRY(ditto_assign_add(self, t->loss, &loss));
    DITTO_TRY(ditto_assign_add(self, t->hits, &hits));
    return ditto_assign_add(self, t->rows, &seen);
}

/* What comes from a file may be wrong: a replica that finds it so fails, and run returns its message. */
static ditto_status check_labels(ditto_replica *self, const ditto_batch *batch)
{
    const int32_t *label = batch->component[1].data;
    for (uint64_t i = 0; i < batch->rows; i++)
        if (label[i] < 0 || label[i] >= CLASSES)
            return ditto_fail(self, label[i], "a row has the class %" PRId32 ": classes are 0 to %d", label[i],
                              CLASSES - 1);
    return DITTO_OK;
}

static ditto_status train_step(ditto_replica *self, struct training *t, struct workspace *w, const ditto_batch *batch,
                               struct spent *spent)
{
    const void *weights, *velocity;
    int64_t hits = 0;
    double begin = seconds();
    DITTO_TRY(check_labels(self, batch));
    DITTO_TRY(ditto_read(self, t->weights, &weights));
    DITTO_TRY(ditto_read(self, t->velocity, &velocity));
    memset(&w->gradient, 0, sizeof w->gradient);
    double loss = network_learn(weights, batch->component[0].data, batch->component[1].data, batch->rows,
                                1.0f / (float)t->options.batch, &w->gradient, &hits);
    DITTO_TRY(count_rows(self, t, loss, hits, batch->rows));
    double computed = seconds();

    /* Each replica has the gradient of its rows; their sum is the gradient of the global batch. */
    DITTO_TRY(ditto_all_reduce(self, &w->gradient, &w->gradient, PARAMETERS, DITTO_F32, DITTO_SUM, NULL));
    double reduced = seconds();

    const float *gradient = (const float *)&w->gradient, *before = velocity;
    float *update = (float *)&w->update;
    for (int i = 0; i < PARAMETERS; i++)
        update[i] = MOMENTUM * before[i] - LEARNING_RATE * gradient[i];
    double updated = seconds();

    /* All replicas pass the same value, so the first one's will do (ONLY_FIRST_REPLICA). */
    DITTO_TRY(ditto_assign(self, t->velocity, update));
    DITTO_TRY(ditto_assign_add(self, t->weights, update));
    spent->compute += computed - begin + updated - reduced;
    spent->reduce += reduced - computed + seconds() - updated;
    return DITTO_OK;
}

/* On a terminal, one line that is written over and over; replica 0's own rows, so nothing waits for it. */
static void show_progress(const struct training *t, double rows, double loss, double since)
{
    fprintf(stderr, "\repoch %2d  %8.0f rows/s  loss %.4f ", t->epoch + 1, rows / since, loss / (rows > 0 ? rows : 1));
}

static ditto_status train_batches(ditto_replica *self, struct training *t, struct workspace *w)
{
    uint32_t id = ditto_replica_id(self);
    struct spent *spent = &t->spent[id];
    ditto_batch batch;
    ditto_status status;
    const void *own_loss;
    double began = seconds(), asked = began, shown = began, rows = 0;
    while ((status = ditto_next(self, t->batches, &batch)) == DITTO_OK) {
        spent->input += seconds() - asked;
        DITTO_TRY(train_step(self, t, w, &batch, spent));
        rows += (double)batch.rows;
        asked = seconds();
        if (id == 0 && t->terminal && asked - shown > 0.1) {
            DITTO_TRY(ditto_read(self, t->loss, &own_loss));
            show_progress(t, rows, *(const double *)own_loss, asked - began);
            shown = asked;
        }
    }
    spent->input += seconds() - asked;
    t->gradient_hash[id] = hash_bytes(&w->gradient, sizeof w->gradient);
    return status == DITTO_END_OF_INPUT ? DITTO_OK
                                        : status; /* a malformed line, a replica that failed: run returns it */
}

static ditto_status train_epoch(ditto_replica *self, void *argument)
{
    void *workspace; /* in this replica's arena, on its NUMA node */
    DITTO_TRY(ditto_alloc(self, sizeof(struct workspace), 64, &workspace));
    ditto_status status = train_batches(self, argument, workspace);
    DITTO_TRY(ditto_free(self, workspace));
    return status;
}

static ditto_status test_epoch(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    const void *weights;
    ditto_batch batch;
    ditto_status status;
    DITTO_TRY(ditto_read(self, t->weights, &weights));
    while ((status = ditto_next(self, t->batches, &batch)) == DITTO_OK) {
        int64_t hits = 0;
        DITTO_TRY(check_labels(self, &batch));
        double loss =
            network_learn(weights, batch.component[0].data, batch.component[1].data, batch.rows, 0.0f, NULL, &hits);
        DITTO_TRY(count_rows(self, t, loss, hits, batch.rows));
    }
    t->weight_hash[ditto_replica_id(self)] = hash_bytes(weights, sizeof(struct network));
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

/* -- cross-replica context: ordinary code that sees all replicas at once -- */

struct metrics {
    double loss, accuracy;
    int64_t rows;
};

/* Reading a sync-on-read variable adds up its components; assigning starts them again. */
static struct metrics read_metrics(struct training *t)
{
    double loss, zero = 0.0;
    int64_t hits, rows, none = 0;
    check(ditto_variable_read(t->loss, &loss, sizeof loss));
    check(ditto_variable_read(t->hits, &hits, sizeof hits));
    check(ditto_variable_read(t->rows, &rows, sizeof rows));
    check(ditto_variable_assign(t->loss, &zero, sizeof zero));
    check(ditto_variable_assign(t->hits, &none, sizeof none));
    check(ditto_variable_assign(t->rows, &none, sizeof none));
    return (struct metrics){ loss / (double)rows, (double)hits / (double)rows, rows };
}

/* One pass: new iterator, one run, metrics. */
static struct metrics run_pass(struct training *t, ditto_dataset *data, ditto_replica_fn function)
{
    ditto_input_options input = DITTO_INPUT_OPTIONS_INIT;
    input.pass = (uint64_t)t->epoch;
    check(ditto_strategy_iterate(t->strategy, data, &input, &t->batches));
    check(ditto_strategy_run(t->strategy, function, t));
    check(ditto_iterator_destroy(t->batches));
    return read_metrics(t);
}

static ditto_variable *create_variable(ditto_strategy *strategy, const char *name, ditto_tensor initial,
                                       ditto_synchronization synchronization, ditto_aggregation aggregation)
{
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_variable *variable;
    options.name = name;
    options.synchronization = synchronization;
    options.aggregation = aggregation;
    check(ditto_variable_create(strategy, &initial, &options, &variable));
    return variable;
}

static void create_variables(struct training *t)
{
    static struct network first; /* what all replicas start with */
    ditto_tensor parameters = { .data = &first, .dtype = DITTO_F32, .rank = 1, .shape = { PARAMETERS } };
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { PARAMETERS } };
    ditto_tensor real = { .dtype = DITTO_F64 }, count = { .dtype = DITTO_I64 };
    network_initialize(&first, t->options.seed);
    t->weights =
        create_variable(t->strategy, "weights", parameters, DITTO_ON_WRITE, DITTO_AGGREGATE_ONLY_FIRST_REPLICA);
    t->velocity = create_variable(t->strategy, "velocity", zeros, DITTO_ON_WRITE, DITTO_AGGREGATE_ONLY_FIRST_REPLICA);
    t->loss = create_variable(t->strategy, "loss", real, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
    t->hits = create_variable(t->strategy, "hits", count, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
    t->rows = create_variable(t->strategy, "rows", count, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
}

static ditto_dataset *shuffled(ditto_dataset *input, uint64_t seed, ditto_reshuffle reshuffle)
{
    ditto_shuffle_options options = DITTO_SHUFFLE_OPTIONS_INIT;
    ditto_dataset *output;
    options.seed = seed;
    options.reshuffle = reshuffle;
    check(ditto_dataset_shuffle(input, &options, &output));
    ditto_dataset_destroy(input); /* output keeps what it needs */
    return output;
}

static ditto_dataset *batched(ditto_dataset *input, uint64_t rows)
{
    ditto_dataset *output;
    check(ditto_dataset_batch(input, rows, 0, &output));
    ditto_dataset_destroy(input);
    return output;
}

/* A fixed shuffle cuts the file into rows to learn from, shuffled anew in each pass, and rows to be tested on. */
static void open_data(const struct options *options, ditto_dataset **learn, ditto_dataset **test)
{
    static const ditto_csv_component columns[] = { { 0, INPUTS, DITTO_F32 }, { INPUTS, 1, DITTO_I32 } };
    ditto_dataset *all;
    check(ditto_dataset_from_csv(options->data, columns, 2, NULL, &all));
    all = shuffled(all, SPLIT_SEED, DITTO_RESHUFFLE_NEVER);
    check(ditto_dataset_take(all, TRAINING_ROWS, learn));
    check(ditto_dataset_skip(all, TRAINING_ROWS, test));
    ditto_dataset_destroy(all);
    *learn = batched(shuffled(*learn, options->seed, DITTO_RESHUFFLE_EACH_PASS), options->batch);
    *test = batched(*test, options->batch);
}

static ditto_strategy *create_strategy(const struct options *o)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    size_t length;
    options.replicas = o->replicas;
    options.per = o->per;
    check(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    check(ditto_strategy_describe(strategy, NULL, 0, &length));
    char *table = malloc(length + 1);
    if (table != NULL) {
        check(ditto_strategy_describe(strategy, table, length + 1, NULL));
        printf("%s", table);
    }
    free(table);
    return strategy;
}

/* Every replica must have ended with the same bits. */
static bool all_equal(const uint64_t *hash, uint32_t replicas, const char *what)
{
    bool equal = true;
    for (uint32_t i = 1; i < replicas; i++)
        if (hash[i] != hash[0]) {
            fprintf(stderr, "replica %" PRIu32 " has other %s than replica 0: %016" PRIx64 ", not %016" PRIx64 "\n", i,
                    what, hash[i], hash[0]);
            equal = false;
        }
    return equal;
}

static void report_time(const struct training *t, uint32_t replicas, double wall, double rows)
{
    struct spent sum = { 0 };
    for (uint32_t i = 0; i < replicas; i++) {
        sum.compute += t->spent[i].compute;
        sum.reduce += t->spent[i].reduce;
        sum.input += t->spent[i].input;
    }
    double all = sum.compute + sum.reduce + sum.input;
    printf("rows/s: %.0f\n", rows / wall);
    printf("time: compute %.1f %%, all-reduce and assign %.1f %%, waiting for input %.1f %%\n", 100 * sum.compute / all,
           100 * sum.reduce / all, 100 * sum.input / all);
}

/* Where the time went, as a table, and as events for ui.perfetto.dev. */
static void report_trace(const struct training *t)
{
    size_t length;
    check(ditto_strategy_trace_stop(t->strategy));
    check(ditto_strategy_statistics(t->strategy, NULL, 0, &length));
    char *table = malloc(length + 1);
    if (table != NULL) {
        check(ditto_strategy_statistics(t->strategy, table, length + 1, NULL));
        printf("%s", table);
    }
    free(table);
    check(ditto_strategy_trace_write(t->strategy, t->options.trace));
}

static struct options parse(int count, char **word)
{
    struct options o = { .epochs = 20, .batch = 32, .seed = 1, .data = "examples/data/digits.csv" };
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? word[i + 1] : "";
        char *end = NULL;
        unsigned long long number = strtoull(value, &end, 10);
        bool is_number = *value != '\0' && *value != '-' && *end == '\0';
        if (strcmp(word[i], "--data") == 0 && *value != '\0')
            o.data = value;
        else if (strcmp(word[i], "--replicas") == 0 && is_number && number >= 1 && number <= DITTO_MAX_REPLICAS)
            o.replicas = (uint32_t)number;
        else if (strcmp(word[i], "--per") == 0 && strcmp(value, "core") == 0)
            o.per = DITTO_PER_CORE;
        else if (strcmp(word[i], "--per") == 0 && strcmp(value, "node") == 0)
            o.per = DITTO_PER_NUMA_NODE;
        else if (strcmp(word[i], "--epochs") == 0 && is_number && number >= 1 && number <= 100000)
            o.epochs = (int)number;
        else if (strcmp(word[i], "--batch") == 0 && is_number && number >= 1 && number <= TRAINING_ROWS)
            o.batch = number;
        else if (strcmp(word[i], "--seed") == 0 && is_number)
            o.seed = number;
        else if (strcmp(word[i], "--trace") == 0 && *value != '\0')
            o.trace = value;
        else {
            fprintf(stderr,
                    "usage: train_digits [--replicas 1..%d] [--per core|node] [--epochs 1..100000] [--batch 1..%d] "
                    "[--seed S] "
                    "[--data digits.csv] [--trace events.json]\n",
                    DITTO_MAX_REPLICAS, TRAINING_ROWS);
            exit(2);
        }
    }
    return o;
}

int main(int count, char **word)
{
    static struct training t;
    ditto_dataset *learn, *test;
    struct metrics m;
    double wall = 0;
    t.options = parse(count, word);
    t.terminal = isatty(STDERR_FILENO);
    t.strategy = create_strategy(&t.options);
    uint32_t replicas = ditto_strategy_num_replicas(t.strategy);
    open_data(&t.options, &learn, &test);
    create_variables(&t);
    check(ditto_strategy_scope_enter(t.strategy)); /* this thread stays on replica 0's core between runs */
    if (t.options.trace != NULL)
        check(ditto_strategy_trace_start(t.strategy, NULL));
    for (t.epoch = 0; t.epoch < t.options.epochs; t.epoch++) {
        double began = seconds();
        m = run_pass(&t, learn, train_epoch);
        double took = seconds() - began;
        wall += took;
        if (t.terminal)
            fprintf(stderr, "\r");
        printf("epoch %2d  loss %.4f  accuracy %.3f  %.0f rows/s\n", t.epoch + 1, m.loss, m.accuracy,
               (double)m.rows / took);
        fflush(stdout);
    }
    m = run_pass(&t, test, test_epoch);
    bool equal = all_equal(t.weight_hash, replicas, "weights");
    equal = all_equal(t.gradient_hash, replicas, "last gradient") && equal;
    bool defaults = count == 1,
         good = m.accuracy >= GOOD_ACCURACY; /* not a number, without rows to test on: not good */
    report_time(&t, replicas, wall, (double)TRAINING_ROWS * t.options.epochs);
    printf("test accuracy: %.3f\n", m.accuracy);
    printf("weights: %016" PRIx64 "\n", t.weight_hash[0]);
    if (t.options.trace != NULL)
        report_trace(&t);
    check(ditto_strategy_scope_leave(t.strategy));
    ditto_dataset_destroy(learn);
    ditto_dataset_destroy(test);
    check(ditto_variable_destroy(t.weights));
    check(ditto_variable_destroy(t.velocity));
    check(ditto_variable_destroy(t.loss));
    check(ditto_variable_destroy(t.hits));
    check(ditto_variable_destroy(t.rows));
    check(ditto_strategy_destroy(t.strategy));
    if (defaults && !good)
        fprintf(stderr, "the accuracy is below %.2f: something is broken\n", GOOD_ACCURACY);
    if (m.rows == 0)
        fprintf(stderr, "no row was left to test on: the file has at most %d\n", TRAINING_ROWS);
    return equal && (good || !defaults) && m.rows > 0 ? 0 : 1;
}
