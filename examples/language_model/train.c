/* examples/language_model/train.c - trains a small language model on the bytes of some files.
 *
 *     build/examples/language_model/train docs/semantics.md --data 1 --tensor 2 --export FOLDER
 *     build/examples/language_model/generate FOLDER/model.bin FOLDER/tokenizer.bin "A replica is"
 *
 * The replicas form a mesh: along "data" they learn from other parts of a text, and along "tensor" each has a
 * slice of every matrix (weights.h). One step is in step(). Read the program from main upwards. */
#include "command_line.h"
#include "learn.h"
#include "lesson.h"
#include "tokenizer.h"

#include <ditto/checkpoint.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
    struct model_shape shape;
    uint64_t data, tensor, batch; /* batch: the sequences of a step, over all replicas */
    uint64_t steps, warm_up, report_every, seed;
    uint64_t rate; /* in millionths */
    const char *checkpoint, *export, *trace;
    bool resume;
};

struct training {
    struct options options;
    unsigned char *text;
    size_t text_bytes;
    ditto_strategy *strategy;
    struct weights weights;
    ditto_optimizer *optimizer;
    ditto_variable *loss; /* sync-on-read: the sum over the rows since the last report */
    uint64_t until;       /* the step at which the run ends */
    double waited;        /* replica 0's seconds in collectives */
};

/* -- replica context -- */

/* Chooses the text of a sequence, which depends on the step and the number of the sequence alone. A sequence
 * begins with TOKEN_BEGIN, as a text does that is generated. */
static void choose_text(const struct training *t, uint64_t step, uint32_t sequence, uint32_t place,
                        struct row *row, int32_t *target)
{
    uint32_t positions = t->options.shape.positions;
    uint64_t first;
    ditto_random random = ditto_random_make(t->options.seed, step * t->options.batch + sequence);
    ditto_random_below(&random, t->text_bytes - positions + 1, &first, 1);
    int32_t token = TOKEN_BEGIN;
    for (uint32_t p = 0; p < positions; p++) {
        row[p] = (struct row){ place, p, token };
        token = target[p] = TOKEN_BYTE + t->text[first + p];
    }
}

/* Rises to the full rate, and falls to a tenth of it along half a cosine (Loshchilov, Hutter, ICLR 2017). */
static double rate_of(const struct options *o, uint64_t step)
{
    double rate = (double)o->rate * 1e-6;
    if (step < o->warm_up)
        return rate * (double)(step + 1) / (double)o->warm_up;
    double part = (double)(step - o->warm_up) / (double)(o->steps > o->warm_up ? o->steps - o->warm_up : 1);
    return rate * (0.55 + 0.45 * cos(3.14159265358979 * (part < 1 ? part : 1)));
}

static ditto_status step(struct training *t, struct transformer *m, struct gradients *g, uint64_t number,
                         struct row *row, int32_t *target)
{
    const struct options *o = &t->options;
    double loss = 0;
    for (uint32_t s = 0; s < m->sequences; s++) /* all ranks of a tensor group have the same sequences */
        choose_text(t, number, m->data.rank * m->sequences + s, s, row + (size_t)s * m->positions,
                    target + (size_t)s * m->positions);
    DITTO_TRY(transformer_find_weights(m));
    DITTO_TRY(learn(m, g, row, target, m->most_rows, 1 / ((float)o->batch * (float)m->positions), &loss));
    if (m->tensor.rank != 0)
        loss = 0; /* it is known on all ranks, and counted once */
    DITTO_TRY(ditto_assign(m->self, t->loss, DITTO_ASSIGN_ADD, &loss));
    ditto_apply_options apply = DITTO_APPLY_OPTIONS_INIT;
    apply.learning_rate = rate_of(o, number);
    return ditto_apply(m->self, t->optimizer, g->tensor, &apply);
}

static ditto_status train_steps(struct training *t, struct transformer *m, struct gradients *g, void *rows)
{
    struct row *row = rows;
    int32_t *target = (void *)(row + m->most_rows);
    int64_t done;
    DITTO_TRY(ditto_optimizer_steps(m->self, t->optimizer, &done));
    for (uint64_t number = (uint64_t)done; number < t->until; number++)
        DITTO_TRY(step(t, m, g, number, row, target));
    if (ditto_replica_id(m->self) == 0)
        t->waited += m->waited;
    return DITTO_OK;
}

static ditto_status train(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    struct transformer m;
    struct gradients g;
    void *rows;
    uint32_t sequences = (uint32_t)(t->options.batch / t->options.data),
             positions = t->options.shape.positions;
    DITTO_TRY(transformer_begin(&m, self, &t->weights, sequences, positions, sequences * positions, true));
    DITTO_TRY(gradients_begin(&g, &m));
    DITTO_TRY(ditto_alloc(self, m.most_rows * (sizeof(struct row) + sizeof(int32_t)), 128, &rows));
    DITTO_TRY(train_steps(t, &m, &g, rows)); /* after an error the memory goes with the replica */
    DITTO_TRY(ditto_free(self, rows));
    DITTO_TRY(gradients_end(&g, &m));
    return transformer_end(&m);
}

/* -- cross-replica context -- */

static void create_optimizer(struct training *t)
{
    ditto_optimizer_options options = DITTO_OPTIMIZER_OPTIONS_INIT;
    double decay[PARAMETERS];
    for (int p = 0; p < PARAMETERS; p++)
        decay[p] = parameter_shape(&t->options.shape, (enum parameter)p).is_matrix ? 0.1 : 0;
    options.name = "adamw";
    options.rule = DITTO_RULE_ADAM;
    options.beta2 = 0.95;
    options.clip_norm = 1;
    options.weight_decays = decay;
    check(ditto_optimizer_create(t->weights.array, PARAMETERS, &options, &t->optimizer));
}

static void create_loss(struct training *t)
{
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    const ditto_tensor zero = { .dtype = DITTO_F64 };
    options.name = "loss";
    options.synchronization = DITTO_ON_READ;
    options.aggregation = DITTO_AGGREGATE_SUM;
    check(ditto_variable_create(t->strategy, &zero, &options, &t->loss));
}

/* Returns the sum since the last report, and sets it to 0. */
static double take_loss(struct training *t)
{
    double loss, zero = 0;
    check(ditto_variable_read(t->loss, &loss, sizeof loss));
    check(ditto_variable_assign(t->loss, DITTO_ASSIGN, &zero, sizeof zero));
    return loss;
}

static uint64_t steps_done(const struct training *t)
{
    ditto_optimizer_properties has = DITTO_OPTIMIZER_PROPERTIES_INIT;
    int64_t steps;
    check(ditto_optimizer_info(t->optimizer, &has));
    check(ditto_variable_read(has.iterations, &steps, sizeof steps));
    return (uint64_t)steps;
}

/* Adds a file to the text. */
static void add_text(struct training *t, const char *path)
{
    size_t bytes;
    char *file = read_whole_file(path, &bytes);
    t->text = realloc(t->text, t->text_bytes + bytes + 1);
    if (t->text == NULL)
        refuse_file(path, "no memory for %zu bytes more", bytes);
    memcpy(t->text + t->text_bytes, file, bytes);
    t->text_bytes += bytes;
    free(file);
}

/* Makes the folder for the files, so that a wrong path does not cost the training. */
static void make_folder(const char *path)
{
    struct stat about;
    if ((mkdir(path, 0777) != 0 && errno != EEXIST) || stat(path, &about) != 0)
        refuse_file(path, "%s", strerror(errno));
    if (!S_ISDIR(about.st_mode))
        refuse_file(path, "it is no folder");
    if (access(path, W_OK | X_OK) != 0)
        refuse_file(path, "%s", strerror(errno));
}

static void export(const struct training *t)
{
    char path[4096];
    float *array[PARAMETERS];
    for (int p = 0; p < PARAMETERS; p++) {
        size_t bytes = parameter_count(&t->options.shape, (enum parameter)p) * sizeof(float);
        if ((array[p] = malloc(bytes)) == NULL)
            refuse_file(t->options.export, "no memory for %zu bytes", bytes);
        check(ditto_variable_read(t->weights.array[p], array[p], bytes));
    }
    snprintf(path, sizeof path, "%s/model.bin", t->options.export);
    if (!model_write(path, &t->options.shape, (const float *const *)array))
        refuse_file(path, "%s", strerror(errno));
    snprintf(path, sizeof path, "%s/tokenizer.bin", t->options.export);
    if (!tokenizer_write_bytes(path))
        refuse_file(path, "%s", strerror(errno));
    for (int p = 0; p < PARAMETERS; p++)
        free(array[p]);
}

static ditto_checkpointer *open_checkpoints(const struct training *t)
{
    ditto_checkpointer_options options = DITTO_CHECKPOINTER_OPTIONS_INIT;
    ditto_checkpointer *checkpointer;
    options.keep = 2;
    options.background = 1; /* the training continues while the file is written */
    check(ditto_checkpointer_create(t->strategy, t->options.checkpoint, &options, &checkpointer));
    return checkpointer;
}

static void save(const struct training *t, ditto_checkpointer *checkpointer)
{
    ditto_checkpoint_options options = DITTO_CHECKPOINT_OPTIONS_INIT;
    options.step = (int64_t)steps_done(t);
    check(ditto_checkpointer_save(checkpointer, &options));
}

/* Restores the checkpoint with the highest step, if there is one. It may come from another mesh. Without
 * --resume the folder must have none, because the checkpoints of two trainings cannot be told apart. */
static void resume(const struct training *t)
{
    char path[4096];
    ditto_status status = ditto_checkpoint_latest(t->strategy, t->options.checkpoint, NULL, path, sizeof path,
                                                  NULL, NULL);
    if (status == DITTO_ERR_NOT_FOUND)
        return;
    check(status);
    if (!t->options.resume)
        refuse_file(path, "the folder has a checkpoint: add --resume, or name another folder");
    check(ditto_checkpoint_restore(t->strategy, path, NULL, NULL));
}

/* The rows of the command line. The first ones are numbers. */
enum {
    DATA,
    TENSOR,
    STEPS,
    BATCH,
    RATE,
    WARM_UP,
    DIM,
    HIDDEN,
    LAYERS,
    HEADS,
    KV_HEADS,
    POSITIONS,
    SEED,
    REPORT,
    NUMBERS,
    FILES = NUMBERS,
    CHECKPOINT,
    RESUME,
    EXPORT,
    TRACE
};
static const struct command_row rows[] = {
    [FILES] = { NULL, "FILE...", "the texts to learn from" },
    [DATA] = { "--data", "D", "the replicas that learn from other sequences: 1 to 1024 (default: 1)" },
    [TENSOR] = { "--tensor", "T", "the replicas that share a model: 1 to 1024 (default: 1)" },
    [STEPS] = { "--steps", "N", "the steps: 1 to 1000000000 (default: 1000)" },
    [BATCH] = { "--batch", "B", "the sequences of a step, a multiple of D: 1 to 65536 (default: 8)" },
    [RATE] = { "--rate", "R", "the learning rate in millionths: 1 to 1000000 (default: 2000)" },
    [WARM_UP] = { "--warm-up", "N", "the steps in which the rate rises: 0 to 1000000000 (default: 50)" },
    [DIM] = { "--dim", "N", "elements of the model's vectors: 1 to 65536 (default: 96)" },
    [HIDDEN] = { "--hidden", "N", "rows of the feed-forward part: 1 to 65536 (default: 256)" },
    [LAYERS] = { "--layers", "N", "layers: 1 to 1024 (default: 4)" },
    [HEADS] = { "--heads", "N", "query heads: 1 to 65536 (default: 6)" },
    [KV_HEADS] = { "--kv-heads", "N", "key/value heads: 1 to 65536 (default: 6)" },
    [POSITIONS] = { "--positions", "N", "the length of a sequence in bytes: 1 to 65535 (default: 128)" },
    [SEED] = { "--seed", "S", "begins other random numbers: 0 to 18446744073709551615 (default: 1)" },
    [REPORT] = { "--report-every", "N",
                 "the steps between two lines, and two checkpoints: 1 to 1000000000 (default: 50)" },
    [CHECKPOINT] = { "--checkpoint", "FOLDER", "save the training there" },
    [RESUME] = { "--resume", NULL, "continue from the last checkpoint in the folder" },
    [EXPORT] = { "--export", "FOLDER", "write model.bin and tokenizer.bin there at the end" },
    [TRACE] = { "--trace", "FILE", "write events to the file, for ui.perfetto.dev" },
    { 0 },
};

/* A number of the command line: its limits, and first its default. */
struct number {
    uint64_t least, most, value;
};

static struct options options_of(const struct number *n)
{
    return (struct options){ .shape = { .dim = (uint32_t)n[DIM].value,
                                        .hidden = (uint32_t)n[HIDDEN].value,
                                        .layers = (uint32_t)n[LAYERS].value,
                                        .heads = (uint32_t)n[HEADS].value,
                                        .kv_heads = (uint32_t)n[KV_HEADS].value,
                                        .vocabulary = BYTE_VOCABULARY,
                                        .positions = (uint32_t)n[POSITIONS].value,
                                        .own_classifier = true },
                             .data = n[DATA].value,
                             .tensor = n[TENSOR].value,
                             .batch = n[BATCH].value,
                             .steps = n[STEPS].value,
                             .warm_up = n[WARM_UP].value,
                             .report_every = n[REPORT].value,
                             .seed = n[SEED].value,
                             .rate = n[RATE].value };
}

/* Returns what a training takes at least in memory: weights, gradients and the two slots of Adam, and what
 * each layer keeps of each row. */
static double least_bytes(const struct options *o)
{
    const struct model_shape *s = &o->shape;
    double numbers = (double)o->batch * s->positions * s->layers * s->dim;
    for (int p = 0; p < PARAMETERS; p++)
        numbers += 4 * (double)parameter_count(s, (enum parameter)p);
    return numbers * sizeof(float);
}

/* Ends the program if the options do not fit together. */
static void check_options(const struct command_line *line, const struct training *t)
{
    const struct options *o = &t->options;
    const char *fault = model_shape_fault(&o->shape);
    if (fault != NULL)
        command_refuse(line, "%s", fault);
    if (o->batch % o->data != 0)
        command_refuse(line, "--batch %" PRIu64 " is no multiple of --data %" PRIu64, o->batch, o->data);
    if (t->text_bytes < o->shape.positions)
        command_refuse(line, "the texts have %zu bytes, and a sequence has %u: name more FILEs",
                       t->text_bytes, o->shape.positions);
    if (o->resume && o->checkpoint == NULL)
        command_refuse(line, "--resume needs a folder: add --checkpoint FOLDER");
    weights_check_division(&o->shape, (uint32_t)o->tensor);
    double needed = least_bytes(o), there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (needed > there)
        command_refuse(line, "this training takes at least %.1f GiB of memory, and the machine has %.1f GiB",
                       needed / 0x1p30, there / 0x1p30);
}

static void parse(int count, char **word, struct training *t)
{
    const uint64_t replicas = DITTO_MAX_REPLICAS, many = 1000000000;
    struct number number[NUMBERS] = {
        [DATA] = { 1, replicas, 1 },   [TENSOR] = { 1, replicas, 1 }, [STEPS] = { 1, many, 1000 },
        [BATCH] = { 1, 65536, 8 },     [RATE] = { 1, 1000000, 2000 }, [WARM_UP] = { 0, many, 50 },
        [DIM] = { 1, 65536, 96 },      [HIDDEN] = { 1, 65536, 256 },  [LAYERS] = { 1, 1024, 4 },
        [HEADS] = { 1, 65536, 6 },     [KV_HEADS] = { 1, 65536, 6 },  [POSITIONS] = { 1, 65535, 128 },
        [SEED] = { 0, UINT64_MAX, 1 }, [REPORT] = { 1, many, 50 }
    };
    const char *path[TRACE + 1] = { NULL };
    bool resumes = false;
    struct command_line line = command_line_of("FILE... [OPTION ...]", "Trains a small language model.", rows,
                                               count, word);
    for (int row; (row = command_next(&line)) >= 0;)
        if (row < NUMBERS)
            number[row].value = command_number(&line, number[row].least, number[row].most);
        else if (row == FILES)
            add_text(t, line.value);
        else if (row == RESUME)
            resumes = true;
        else
            path[row] = line.value;
    t->options = options_of(number);
    t->options.resume = resumes;
    t->options.checkpoint = path[CHECKPOINT];
    t->options.export = path[EXPORT];
    t->options.trace = path[TRACE];
    check_options(&line, t);
}

static void report(struct training *t, uint64_t steps, double took)
{
    double tokens = (double)(steps * t->options.batch * t->options.shape.positions);
    printf("step %5" PRIu64 "  loss %.4f  %.0f tokens/s  %.0f %% in collectives\n", t->until,
           take_loss(t) / tokens, tokens / took, 100 * t->waited / took);
    fflush(stdout);
    t->waited = 0;
}

/* Trains until all steps are done, with a line and a checkpoint after some of them. */
static void train_all(struct training *t, ditto_checkpointer *checkpointer)
{
    const struct options *o = &t->options;
    uint64_t done = steps_done(t);
    if (done >= o->steps)
        printf("nothing is left to do: %" PRIu64 " steps are done\n", done);
    for (; done < o->steps; done = t->until) {
        double begin = seconds();
        t->until = (done / o->report_every + 1) * o->report_every;
        t->until = t->until < o->steps ? t->until : o->steps;
        check(ditto_strategy_run(t->strategy, train, t));
        report(t, t->until - done, seconds() - begin);
        if (checkpointer != NULL)
            save(t, checkpointer);
    }
}

int main(int count, char **word)
{
    static struct training t;
    const struct options *o = &t.options;
    ditto_checkpointer *checkpointer = NULL;
    parse(count, word, &t);
    if (o->export != NULL)
        make_folder(o->export);
    t.strategy = strategy_of((uint32_t)(o->data * o->tensor));
    t.weights = weights_create(t.strategy, &o->shape, (uint32_t)o->data, (uint32_t)o->tensor,
                               &(struct weight_source){ .seed = o->seed, .deviation = 0.05f });
    create_optimizer(&t);
    create_loss(&t);
    if (o->checkpoint != NULL) {
        checkpointer = open_checkpoints(&t);
        resume(&t);
    }
    if (o->trace != NULL)
        check(ditto_strategy_trace_start(t.strategy, NULL));
    train_all(&t, checkpointer);
    if (o->export != NULL)
        export(&t);
    check(ditto_checkpointer_destroy(checkpointer)); /* waits until all files are written */
    if (o->trace != NULL)                            /* a wrong path ends the program */
        report_trace(t.strategy, o->trace, stdout);
    check(ditto_optimizer_destroy(t.optimizer));
    check(ditto_variable_destroy(t.loss));
    weights_destroy(&t.weights);
    check(ditto_strategy_destroy(t.strategy));
    free(t.text);
    return 0;
}
