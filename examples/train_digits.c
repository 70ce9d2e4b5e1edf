/* examples/train_digits.c - several replicas train one classifier on handwritten digits. It is a longer
 * version of lesson 5.
 *
 * Read it from main at the end upwards. It uses:
 *   a strategy      places replicas on cores. Each replica is a pinned thread with memory on its NUMA node.
 *   a dataset       reads, shuffles and batches the rows. Replicas get their parts of a batch ahead of time.
 *   an optimizer    adds up the gradients of all replicas and updates the weights in one pass over memory,
 *                   with the same bits on all replicas.
 *   mirrored        variables hold the weights. All replicas write them together, and they are equal on all.
 *   sync-on-read    variables hold the loss and the hits. Each replica counts alone, and reading adds up.
 *   checkpoints     hold the weights, the momentum and the position in the data. Training continues from them
 *                   with any number of replicas, on any number of hosts.
 *   a cluster       joins hosts (launch.h). train_digits-openmpi and -mpich are this program with MPI. Then
 *                   --replicas is the number on all hosts.
 *
 * One step of training is in train_step(), and one pass over the data (an epoch) in run_pass(). */
#include <ditto.h>
#ifdef WITH_CHECKPOINTS /* libditto-hdf5 was built */
#include <ditto/checkpoint.h>
#endif

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_line.h"
#include "launch.h"
#include "lesson.h"
#include "network.h"

#define LEARNING_RATE 0.1
#define MOMENTUM      0.9
#define TRAINING_ROWS 1438 /* 80 % of 1797, and the same rows in each run */
#define SPLIT_SEED    1797
#define GOOD_ACCURACY 0.93 /* a training with the default options always reaches it */

struct options {
    uint32_t replicas; /* 0 means one per core, or as many as `per` gives */
    ditto_span per;    /* the part of the machine that a replica spans */
    int epochs;
    uint64_t batch, seed;
    const char *data;
    const char *trace;      /* a file for events, or NULL */
    const char *checkpoint; /* a folder for checkpoints, or NULL */
    bool resume;            /* continue from the checkpoint with the highest step */

    /* The number of batches between checkpoints. 0 means one after each pass. */
    uint64_t save_every;
};

/* The time of a replica in seconds. */
struct spent {
    double compute, apply, input;
};

struct training {
    ditto_strategy *strategy;
    struct options options;
    ditto_variable *weights; /* mirrored, [PARAMETERS] */
    ditto_optimizer *optimizer;
    ditto_variable *loss, *hits, *rows; /* sync-on-read, scalars */
    ditto_iterator *batches;            /* of the current pass */
    int epoch;
    uint64_t batches_done; /* in all passes */
    bool ended;            /* the pass has ended. run_pass clears it, and this host's first replica sets it */

    /* The position in the data to continue from, or NULL for the beginning of a pass. */
    void *state;
    size_t state_bytes;
    bool terminal;

    /* Of each replica of this host, the first of which has the id first_replica: the hash of its weights,
     * which are compared after the training, and its times. */
    uint32_t first_replica;
    uint64_t weight_hash[DITTO_MAX_REPLICAS];
    struct spent spent[DITTO_MAX_REPLICAS];
};

/* -- replica context: these functions run on every replica at the same time -- */

/* Adds to this replica's components of the metrics. No replica waits for another. */
static ditto_status add_metrics(ditto_replica *self, struct training *t, double loss, int64_t hits,
                                uint64_t rows)
{
    int64_t seen = (int64_t)rows;
    DITTO_TRY(ditto_assign(self, t->loss, DITTO_ASSIGN_ADD, &loss));
    DITTO_TRY(ditto_assign(self, t->hits, DITTO_ASSIGN_ADD, &hits));
    return ditto_assign(self, t->rows, DITTO_ASSIGN_ADD, &seen);
}

/* Data from a file may be wrong. A replica that finds a wrong row fails. ditto_strategy_run then returns
 * DITTO_ERR_USER, and ditto_last_error has the message. */
static ditto_status check_labels(ditto_replica *self, const ditto_batch *batch)
{
    const int32_t *label = batch->component[1].data;
    for (uint64_t i = 0; i < batch->rows; i++)
        if (label[i] < 0 || label[i] >= CLASSES)
            return ditto_fail(self, label[i], "a row has the class %" PRId32 ": classes are 0 to %d",
                              label[i], CLASSES - 1);
    return DITTO_OK;
}

/* `gradient` is memory of this replica for the gradient of its rows. */
static ditto_status train_step(ditto_replica *self, struct training *t, struct network *gradient,
                               const ditto_batch *batch, struct spent *spent)
{
    const void *weights;
    int64_t hits = 0;
    double begin = seconds();
    DITTO_TRY(check_labels(self, batch));
    DITTO_TRY(ditto_read(self, t->weights, &weights));
    memset(gradient, 0, sizeof *gradient);
    double loss = network_learn(weights, batch->component[0].data, batch->component[1].data, batch->rows,
                                1.0f / (float)t->options.batch, gradient, &hits);
    DITTO_TRY(add_metrics(self, t, loss, hits, batch->rows));
    double computed = seconds();

    /* The sum of the gradients of all replicas is the gradient of the global batch. It updates the
     * weights. */
    ditto_tensor part = { .data = gradient, .dtype = DITTO_F32, .rank = 1, .shape = { PARAMETERS } };
    DITTO_TRY(ditto_apply(self, t->optimizer, &part, NULL));
    spent->compute += computed - begin;
    spent->apply += seconds() - computed;
    return DITTO_OK;
}

/* Overwrites one line on the terminal. It shows only the rows of replica 0, so that no replica has to
 * wait. */
static ditto_status show_progress(ditto_replica *self, const struct training *t, double rows_per_second)
{
    const void *loss, *rows; /* in this pass, also of earlier runs */
    DITTO_TRY(ditto_read(self, t->loss, &loss));
    DITTO_TRY(ditto_read(self, t->rows, &rows));
    fprintf(stderr, "\repoch %2d  %8.0f rows/s  loss %.4f ", t->epoch + 1, rows_per_second,
            *(const double *)loss / (double)*(const int64_t *)rows);
    return DITTO_OK;
}

static ditto_status train_batches(ditto_replica *self, struct training *t, struct network *gradient)
{
    bool is_first = ditto_replica_is_first_of_host(self);
    struct spent *spent = &t->spent[ditto_replica_id(self) - t->first_replica];
    ditto_batch batch;
    ditto_status status;
    double began = seconds(), asked = began, shown = began, rows = 0;
    uint64_t taken = 0, most_batches = t->options.save_every != 0 ? t->options.save_every : UINT64_MAX;
    while ((status = ditto_next(self, t->batches, &batch)) == DITTO_OK) {
        spent->input += seconds() - asked;
        DITTO_TRY(train_step(self, t, gradient, &batch, spent));
        rows += (double)batch.rows;
        asked = seconds();
        if (is_first && t->terminal && asked - shown > 0.1) {
            DITTO_TRY(show_progress(self, t, rows / (asked - began)));
            shown = asked;
        }
        if (++taken == most_batches) /* All replicas stop here for a checkpoint. */
            break;
    }
    spent->input += seconds() - asked;
    if (is_first) {
        t->batches_done += taken;
        t->ended = status == DITTO_END_OF_INPUT;
    }
    /* The end of the input is no error. Every error ends the run. */
    return status > 0 ? DITTO_OK : status;
}

/* Trains until the pass ends or a checkpoint is due. */
static ditto_status train_until_checkpoint(ditto_replica *self, void *argument)
{
    void *gradient; /* on this replica's NUMA node */
    DITTO_TRY(ditto_alloc(self, sizeof(struct network), 64, &gradient));
    ditto_status status = train_batches(self, argument, gradient);
    DITTO_TRY(ditto_free(self, gradient));
    return status;
}

static ditto_status test_all(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    const void *weights;
    ditto_batch batch;
    ditto_status status;
    DITTO_TRY(ditto_read(self, t->weights, &weights));
    while ((status = ditto_next(self, t->batches, &batch)) == DITTO_OK) {
        int64_t hits = 0;
        DITTO_TRY(check_labels(self, &batch));
        double loss = network_learn(weights, batch.component[0].data, batch.component[1].data, batch.rows,
                                    0.0f, NULL, &hits);
        DITTO_TRY(add_metrics(self, t, loss, hits, batch.rows));
    }
    t->weight_hash[ditto_replica_id(self) - t->first_replica] = hash_bytes(weights, sizeof(struct network));
    if (ditto_replica_is_first_of_host(self))
        t->ended = true;
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

/* -- cross-replica context: ordinary code that can use all replicas -- */

struct metrics {
    double loss, accuracy;
    int64_t rows;
};

/* Returns the number of rows of this pass that the replicas have seen. Reading a sync-on-read variable
 * adds up its components. */
static int64_t read_rows(const struct training *t)
{
    int64_t rows;
    check(ditto_variable_read(t->rows, &rows, sizeof rows));
    return rows;
}

/* Reads the metrics and resets them to zero. */
static struct metrics read_metrics(const struct training *t)
{
    double loss, zero = 0.0;
    int64_t hits, rows = read_rows(t), none = 0;
    check(ditto_variable_read(t->loss, &loss, sizeof loss));
    check(ditto_variable_read(t->hits, &hits, sizeof hits));
    check(ditto_variable_assign(t->loss, DITTO_ASSIGN, &zero, sizeof zero));
    check(ditto_variable_assign(t->hits, DITTO_ASSIGN, &none, sizeof none));
    check(ditto_variable_assign(t->rows, DITTO_ASSIGN, &none, sizeof none));
    return (struct metrics){ loss / (double)rows, (double)hits / (double)rows, rows };
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
    static struct network first; /* the initial weights of all replicas */
    ditto_tensor parameters = { .data = &first, .dtype = DITTO_F32, .rank = 1, .shape = { PARAMETERS } };
    ditto_tensor real = { .dtype = DITTO_F64 }, count = { .dtype = DITTO_I64 };
    network_initialize(&first, t->options.seed);
    t->weights = create_variable(t->strategy, "weights", parameters, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE);
    t->loss = create_variable(t->strategy, "loss", real, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
    t->hits = create_variable(t->strategy, "hits", count, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
    t->rows = create_variable(t->strategy, "rows", count, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
}

/* The momentum exists once, and each part of it lies near the replica that updates it. */
static void create_optimizer(struct training *t)
{
    ditto_optimizer_options options = DITTO_OPTIMIZER_OPTIONS_INIT;
    options.name = "sgd";
    options.rule = DITTO_RULE_SGD;
    options.learning_rate = LEARNING_RATE;
    options.momentum = MOMENTUM;
    check(ditto_optimizer_create(&t->weights, 1, &options, &t->optimizer));
}

static ditto_dataset *shuffled(ditto_dataset *input, uint64_t seed, ditto_reshuffle reshuffle)
{
    ditto_shuffle_options options = DITTO_SHUFFLE_OPTIONS_INIT;
    ditto_dataset *output;
    options.seed = seed;
    options.reshuffle = reshuffle;
    check(ditto_dataset_shuffle(input, &options, &output));
    check(ditto_dataset_destroy(input)); /* the output keeps what it needs */
    return output;
}

static ditto_dataset *batched(ditto_dataset *input, uint64_t rows)
{
    ditto_dataset *output;
    check(ditto_dataset_batch(input, rows, 0, &output));
    check(ditto_dataset_destroy(input));
    return output;
}

/* A fixed shuffle divides the rows of the file into training rows and test rows. The training rows are
 * shuffled again in each pass. */
static void open_data(const struct options *options, ditto_dataset **learn, ditto_dataset **test)
{
    static const ditto_csv_component columns[] = {
        { .first_column = 0, .num_columns = INPUTS, .dtype = DITTO_F32 },
        { .first_column = INPUTS, .num_columns = 1, .dtype = DITTO_I32 }
    };
    ditto_dataset *all;
    check(ditto_dataset_from_csv(&(ditto_files){ .names = &options->data, .num_names = 1 }, columns, 2, NULL,
                                 &all));
    all = shuffled(all, SPLIT_SEED, DITTO_RESHUFFLE_NEVER);
    check(ditto_dataset_take(all, TRAINING_ROWS, learn));
    check(ditto_dataset_skip(all, TRAINING_ROWS, test));
    check(ditto_dataset_destroy(all));
    *learn = batched(shuffled(*learn, options->seed, DITTO_RESHUFFLE_EACH_PASS), options->batch);
    *test = batched(*test, options->batch);
}

static ditto_strategy *create_strategy(const struct options *o)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    size_t length;
    options.cluster = hosts();
    options.num_replicas = ditto_cluster_share(hosts(), o->replicas);
    options.span = o->per;
    check(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    check(ditto_strategy_describe(strategy, NULL, 0, &length));
    char *table = malloc(length + 1);
    if (table != NULL) {
        check(ditto_strategy_describe(strategy, table, length + 1, NULL));
        if (is_first_host())
            printf("%s", table);
    }
    free(table);
    return strategy;
}

/* Returns whether all replicas have the same bits at the end. */
static bool all_equal(const uint64_t *hash, uint32_t replicas, const char *what)
{
    bool equal = true;
    for (uint32_t i = 1; i < replicas; i++)
        if (hash[i] != hash[0]) {
            fprintf(stderr,
                    "replica %" PRIu32 " has other %s than replica 0: %016" PRIx64 ", not %016" PRIx64 "\n",
                    i, what, hash[i], hash[0]);
            equal = false;
        }
    return equal;
}

static void report_time(const struct training *t, uint32_t replicas, double wall, double rows)
{
    struct spent sum = { 0 };
    for (uint32_t i = 0; i < replicas; i++) {
        sum.compute += t->spent[i].compute;
        sum.apply += t->spent[i].apply;
        sum.input += t->spent[i].input;
    }
    double all = sum.compute + sum.apply + sum.input;
    printf("rows/s: %.0f\n", rows / wall);
    printf("time: compute %.1f %%, reduce and update %.1f %%, waiting for input %.1f %%\n",
           100 * sum.compute / all, 100 * sum.apply / all, 100 * sum.input / all);
}

/* -- checkpoints: weights, momentum, numbers of steps and passes -- */

#ifdef WITH_CHECKPOINTS
static ditto_checkpointer *open_checkpoints(struct training *t)
{
    ditto_checkpointer_options options = DITTO_CHECKPOINTER_OPTIONS_INIT;
    ditto_checkpointer *checkpointer;
    options.background = 1; /* the training continues while the file is written */
    check(ditto_checkpointer_create(t->strategy, t->options.checkpoint, &options, &checkpointer));
    return checkpointer;
}

static int64_t read_number(const ditto_checkpoint *file, const char *name)
{
    ditto_checkpoint_properties found = DITTO_CHECKPOINT_PROPERTIES_INIT;
    check(ditto_checkpoint_info(file, &found));
    for (size_t i = 0; i < found.num_attributes; i++)
        if (strcmp(found.attributes[i].name, name) == 0)
            return found.attributes[i].integer;
    fprintf(stderr, "the checkpoint has no attribute \"%s\"\n", name);
    exit(EXIT_FAILURE);
}

/* Reads the position in the data, if the checkpoint was saved in the middle of a pass. */
static void read_position(struct training *t, ditto_checkpoint *file)
{
    ditto_checkpoint_entry entry;
    ditto_checkpoint_properties found = DITTO_CHECKPOINT_PROPERTIES_INIT;
    check(ditto_checkpoint_info(file, &found));
    for (size_t i = 0; i < found.num_entries; i++) {
        check(ditto_checkpoint_get(file, i, &entry));
        if (!entry.is_data || strcmp(entry.name, "input") != 0)
            continue;
        t->state_bytes = ditto_tensor_bytes(&entry.spec);
        t->state = malloc(t->state_bytes);
        check(ditto_checkpoint_read(file, "input", t->state, t->state_bytes));
    }
}

/* Restores the checkpoint with the highest step, and returns the number of the pass to continue with.
 * Returns 0 if there is no checkpoint. */
static int restore_latest(struct training *t)
{
    char path[4096];
    static struct network weights;
    ditto_checkpoint *file;
    ditto_status status = ditto_checkpoint_latest(t->strategy, t->options.checkpoint, NULL, path, sizeof path,
                                                  NULL, NULL);
    if (status == DITTO_ERR_NOT_FOUND)
        return 0;
    check(status);
    check(ditto_checkpoint_restore(t->strategy, path, NULL, NULL));
    check(ditto_checkpoint_open(t->strategy, path, &file));
    int64_t passes = read_number(file, "passes");
    t->batches_done = (uint64_t)read_number(file, "batches");
    read_position(t, file);
    check(ditto_checkpoint_close(file));
    check(ditto_variable_read(t->weights, &weights, sizeof weights));
    if (is_first_host())
        printf("resumed after epoch %" PRId64 "%s, weights: %016" PRIx64 "\n", passes,
               t->state != NULL ? " and a part" : "", hash_bytes(&weights, sizeof weights));
    return (int)passes;
}

/* Saves a checkpoint after `passes` whole passes. In the middle of a pass it contains the state of the
 * iterator too. */
static void save(struct training *t, ditto_checkpointer *checkpointer, int passes)
{
    ditto_checkpoint_options options = DITTO_CHECKPOINT_OPTIONS_INIT;
    ditto_attribute attributes[] = {
        { .name = "passes", .kind = DITTO_ATTRIBUTE_INTEGER, .integer = passes },
        { .name = "batches", .kind = DITTO_ATTRIBUTE_INTEGER, .integer = (int64_t)t->batches_done }
    };
    ditto_checkpoint_data input = { .name = "input", .tensor = { .dtype = DITTO_U8, .rank = 1 } };
    options.step = (int64_t)t->batches_done;
    options.attributes = attributes;
    options.num_attributes = 2;
    if (!t->ended) {
        check(ditto_iterator_save(t->batches, &input.tensor.data, &input.tensor.shape[0]));
        options.data = &input;
        options.num_data = 1;
    }
    check(ditto_checkpointer_save(checkpointer, &options));
    ditto_state_free(input.tensor.data);
}
#else
typedef void ditto_checkpointer;
static ditto_checkpointer *open_checkpoints(const struct training *t)
{
    fprintf(stderr,
            "--checkpoint %s: this build has no libditto-hdf5 (install xxHash, and set it up again)\n",
            t->options.checkpoint);
    exit(2);
}
static int restore_latest(const struct training *t)
{
    (void)t;
    return 0;
}
static void save(struct training *t, ditto_checkpointer *checkpointer, int passes)
{
    (void)t, (void)checkpointer, (void)passes;
}
static ditto_status ditto_checkpointer_destroy(ditto_checkpointer *checkpointer)
{
    (void)checkpointer;
    return DITTO_OK;
}
#endif

/* Drops the position that a checkpoint had, and the metrics that belong to it. */
static void drop_position(struct training *t)
{
    (void)read_metrics(t);
    free(t->state);
    t->state = NULL;
    t->state_bytes = 0;
}

/* Makes one pass, or the remaining part of a pass, and returns its metrics. A checkpoint is saved after each
 * run that has not ended the pass. */
static struct metrics run_pass(struct training *t, ditto_dataset *data, ditto_replica_fn function,
                               ditto_checkpointer *checkpointer)
{
    ditto_input_options input = DITTO_INPUT_OPTIONS_INIT;
    input.pass = (uint64_t)t->epoch;
    input.state = t->state;
    input.state_bytes = t->state_bytes;
    check(ditto_strategy_iterate(t->strategy, data, &input, &t->batches));
    free(t->state);
    t->state = NULL;
    t->state_bytes = 0;
    for (t->ended = false; !t->ended;) {
        check(ditto_strategy_run(t->strategy, function, t));
        if (!t->ended)
            save(t, checkpointer, t->epoch);
    }
    check(ditto_iterator_destroy(t->batches));
    return read_metrics(t);
}

static struct options parse(int count, char **word)
{
    enum { REPLICAS, PER, EPOCHS, BATCH, SEED, DATA, TRACE, CHECKPOINT, RESUME, SAVE_EVERY };
    static const struct command_row rows[] = {
        [REPLICAS] = { "--replicas", "N",
                       "how many replicas learn, on all hosts: 1 to 1024 (default: as many as --per gives)" },
        [PER] = { "--per", "PART",
                  "the part of the machine that a replica spans: core or node (default: core)" },
        [EPOCHS] = { "--epochs", "E", "how often the rows are learned: 1 to 100000 (default: 20)" },
        [BATCH] = { "--batch", "ROWS", "the rows of a step, for all replicas: 1 to 1438 (default: 32)" },
        [SEED] = { "--seed", "S", "begins other random numbers: 0 to 18446744073709551615 (default: 1)" },
        [DATA] = { "--data", "FILE", "the digits to learn from (default: those of the examples)" },
        [TRACE] = { "--trace", "FILE", "write events to the file, for ui.perfetto.dev" },
        [CHECKPOINT] = { "--checkpoint", "FOLDER", "save the training after each epoch" },
        [RESUME] = { "--resume", NULL, "continue from the last checkpoint in the folder" },
        [SAVE_EVERY] = { "--save-every", "B", "save it also after each B batches: 1 to 1000000000" },
        { 0 },
    };
    static const char *const parts[] = { "core", "node", NULL };
    struct command_line line = command_line_of("[OPTION ...]", "Trains a classifier on handwritten digits.",
                                               rows, count, word);
    struct options o = { .epochs = 20, .batch = 32, .seed = 1, .data = digits_path() };
    for (int row; (row = command_next(&line)) >= 0;)
        switch (row) {
        case REPLICAS:
            o.replicas = (uint32_t)command_number(&line, 1, DITTO_MAX_REPLICAS);
            break;
        case PER:
            o.per = command_choice(&line, parts) == 0 ? DITTO_SPAN_CORE : DITTO_SPAN_NUMA_NODE;
            break;
        case EPOCHS:
            o.epochs = (int)command_number(&line, 1, 100000);
            break;
        case BATCH:
            o.batch = command_number(&line, 1, TRAINING_ROWS);
            break;
        case SEED:
            o.seed = command_number(&line, 0, UINT64_MAX);
            break;
        case DATA:
            o.data = line.value;
            break;
        case TRACE:
            o.trace = line.value;
            break;
        case CHECKPOINT:
            o.checkpoint = line.value;
            break;
        case RESUME:
            o.resume = true;
            break;
        case SAVE_EVERY:
            o.save_every = command_number(&line, 1, 1000000000);
            break;
        }
    if ((o.resume || o.save_every != 0) && o.checkpoint == NULL)
        command_refuse(&line, "%s needs a folder: add --checkpoint FOLDER",
                       o.resume ? "--resume" : "--save-every");
    return o;
}

int main(int count, char **word)
{
    static struct training t;
    ditto_dataset *learn, *test;
    struct metrics m;
    double wall = 0, rows_trained = 0;
    t.options = parse(count, word);
    join_hosts(&count, &word);
    t.terminal = isatty(STDERR_FILENO) && is_first_host();
    t.strategy = create_strategy(&t.options);
    ditto_strategy_properties on = DITTO_STRATEGY_PROPERTIES_INIT;
    check(ditto_strategy_info(t.strategy, &on));
    uint32_t replicas = on.num_local_replicas;
    t.first_replica = on.first_local_replica;
    open_data(&t.options, &learn, &test);
    create_variables(&t);
    create_optimizer(&t);
    ditto_checkpointer *checkpointer = t.options.checkpoint != NULL ? open_checkpoints(&t) : NULL;
    int first = t.options.resume ? restore_latest(&t) : 0;
    /* In the scope this thread stays on the core of replica 0 between runs. */
    check(ditto_strategy_scope_enter(t.strategy));
    if (t.options.trace != NULL)
        check(ditto_strategy_trace_start(t.strategy, NULL));
    for (t.epoch = first; t.epoch < t.options.epochs; t.epoch++) {
        int64_t rows_before = read_rows(&t); /* those before the checkpoint */
        double began = seconds();
        m = run_pass(&t, learn, train_until_checkpoint, checkpointer);
        double took = seconds() - began;
        wall += took;
        rows_trained += (double)(m.rows - rows_before);
        if (t.terminal)
            fprintf(stderr, "\r");
        if (is_first_host())
            printf("epoch %2d  loss %.4f  accuracy %.3f  %.0f rows/s\n", t.epoch + 1, m.loss, m.accuracy,
                   (double)(m.rows - rows_before) / took);
        fflush(stdout);
        if (checkpointer != NULL)
            save(&t, checkpointer, t.epoch + 1);
    }
    if (t.state != NULL) /* all epochs were done, and the checkpoint is from the middle of a later one */
        drop_position(&t);
    m = run_pass(&t, test, test_all, NULL);
    bool equal = all_equal(t.weight_hash, replicas, "weights");
    /* Without test rows the accuracy is not a number, and `good` is false. */
    bool defaults = count == 1, good = m.accuracy >= GOOD_ACCURACY;
    if (wall > 0 && is_first_host())
        report_time(&t, replicas, wall, rows_trained);
    if (is_first_host())
        printf("test accuracy: %.3f\nweights: %016" PRIx64 "\n", m.accuracy, t.weight_hash[0]);
    if (t.options.trace != NULL && is_first_host())
        report_trace(t.strategy, t.options.trace, stdout);
    check(ditto_strategy_scope_leave(t.strategy));
    check(ditto_dataset_destroy(learn));
    check(ditto_dataset_destroy(test));
    check(ditto_checkpointer_destroy(checkpointer)); /* waits until all files are written */
    check(ditto_optimizer_destroy(t.optimizer));
    check(ditto_variable_destroy(t.weights));
    check(ditto_variable_destroy(t.loss));
    check(ditto_variable_destroy(t.hits));
    check(ditto_variable_destroy(t.rows));
    check(ditto_strategy_destroy(t.strategy));
    if (defaults && !good)
        fprintf(stderr, "the accuracy is below %.2f: something is broken\n", GOOD_ACCURACY);
    if (m.rows == 0)
        fprintf(stderr, "no row was left to test on: the file has at most %d rows\n", TRAINING_ROWS);
    return leave_hosts(equal && (good || !defaults) && m.rows > 0 ? 0 : 1);
}
