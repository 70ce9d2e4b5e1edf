/* examples/train_words.c - learns vectors of words from real text twice: with workers that do not wait for
 * each other (lesson 12), and with mirrored replicas, which do. One replica of both is slow. The program
 * prints the loss and the rows that were updated against time.
 *
 *     build/examples/train_words [--seconds S] [--replicas N] [--text FOLDER] [--csv]
 *     ./run curves FILE.svg                               draws what it prints
 *
 * The model has two vectors for each word: one for the word, and one for the word as a neighbour. It learns
 * to tell words that stand near each other from words that were put together at random. This is skip-gram
 * with negative sampling (Mikolov, Sutskever, Chen, Corrado, Dean, NIPS 2013). Each step touches the rows of
 * a few words, and common words occur in nearly every step.
 *
 * One step is in step(). It is the same function for both strategies. Read the program from main upwards. */
#include "command_line.h"
#include "lesson.h"
#include "words.h"

#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WIDTH = 32,  /* elements of a vector */
    PAIRS = 256, /* pairs of near words in a step */
    RANDOM = 4,  /* random words for each pair */
    WITH = 1 + RANDOM,
    SHARDS = 16,
    REACH = 3, /* how far two near words may be from each other */
    TEST_PAIRS = 16 * PAIRS,
    SAMPLES = 50,         /* of each curve */
    SLOW = 5,             /* the slow replica takes so many times as long */
    SHORTEST_TEXT = 1000, /* words */
};

/* The part of a gradient by which a step changes a row, or less. A row that occurs several times in the step
 * of a replica is changed by the mean of its gradients. The changes of all replicas are added. If all of them
 * have read the same rows, the sum is the gradient times the rate and the number of replicas, so with many
 * replicas the rate must be smaller (rate_for). */
#define MOST_RATE 0.1f

/* The words of some pairs. Word k of `word` is compared with the words k * WITH to k * WITH + RANDOM of
 * `other`, of which the first one stands near it in the text. */
struct pairs {
    int64_t word[PAIRS], other[PAIRS * WITH];
};

/* What belongs to one replica. */
struct learner {
    /* The number of rows that it has updated. It alone writes it. */
    alignas(128) _Atomic uint64_t rows;
    uint64_t random; /* the state of its random numbers */
    struct pairs pairs;

    /* The vectors of the pairs, and by how much they are changed. */
    float word[PAIRS][WIDTH], other[PAIRS * WITH][WIDTH];
    float word_change[PAIRS][WIDTH], other_change[PAIRS * WITH][WIDTH];

    uint32_t *occurrences; /* [vocabulary] of words in the pairs; all 0 between steps */
};

struct options {
    double seconds;
    uint32_t replicas;
    const char *folder;
    bool csv;
};

struct training {
    const struct text *text;
    ditto_strategy_kind kind;
    ditto_variable *words, *others; /* [vocabulary, WIDTH], in shards */
    struct learner *learner;        /* one for each replica */
    uint32_t replicas;
    float rate;
    double begin; /* the time */

    /* What the tests of the loss use: pairs that are the same in each test, and copies of the variables. */
    struct pairs *test; /* [TEST_PAIRS / PAIRS] */
    float (*words_copy)[WIDTH], (*others_copy)[WIDTH];
};

/* A point of a curve. */
struct sample {
    double seconds, loss, rows_per_s; /* since the sample before */
    uint64_t rows;
};

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

/* Takes words from random places of the text. Random words are also taken from the text, so common words
 * occur more often among them too. */
static void draw_pairs(const struct text *text, uint64_t *state, struct pairs *pairs)
{
    for (int k = 0; k < PAIRS; k++) {
        uint64_t place = REACH + draw(state, text->length - 2 * REACH), far = 1 + draw(state, REACH);
        pairs->word[k] = text->word[place];
        pairs->other[k * WITH] = text->word[draw(state, 2) ? place + far : place - far];
        for (int i = 1; i < WITH; i++)
            pairs->other[k * WITH + i] = text->word[draw(state, text->length)];
    }
}

static float dot(const float *a, const float *b)
{
    float sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += a[i] * b[i];
    return sum;
}

/* What the model thinks of two words: 1 means that they stand near each other. */
static float nearness(const float *word, const float *other)
{
    return 1 / (1 + expf(-dot(word, other)));
}

/* -- replica context -- */

/* Adds the gradient of each pair to the changes of both rows. */
static void differentiate(struct learner *l, float rate)
{
    memset(l->word_change, 0, sizeof l->word_change);
    for (int k = 0; k < PAIRS * WITH; k++) {
        float *word = l->word[k / WITH], *word_change = l->word_change[k / WITH];
        float error = nearness(word, l->other[k]) - (k % WITH == 0 ? 1.0f : 0.0f);
        for (int i = 0; i < WIDTH; i++) {
            word_change[i] += rate * error * l->other[k][i];
            l->other_change[k][i] = rate * error * word[i];
        }
    }
}

/* Divides the changes by the number of times that each word occurs. */
static void divide_by_occurrences(struct learner *l, const int64_t *word, float (*change)[WIDTH], int count)
{
    for (int k = 0; k < count; k++)
        l->occurrences[word[k]]++;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < WIDTH; i++)
            change[k][i] /= (float)l->occurrences[word[k]];
    for (int k = 0; k < count; k++)
        l->occurrences[word[k]] = 0;
}

/* Sleeps until the time since `begin` is SLOW times as long as it is now. */
static void pause_after(double begin)
{
    double pause = (SLOW - 1) * (seconds() - begin);
    struct timespec left = { .tv_sec = (time_t)pause, .tv_nsec = (long)(fmod(pause, 1) * 1e9) };
    while (nanosleep(&left, &left) != 0)
        ;
}

static ditto_status push(ditto_replica *self, ditto_variable *variable, int64_t *word, void *change, int rows)
{
    ditto_slices slices = {
        .indices = word, .values = change, .rows = (size_t)rows, .row_count = WIDTH, .dtype = DITTO_F32
    };
    return ditto_scatter(self, variable, DITTO_SCATTER_SUB, &slices);
}

/* One step of a replica. With mirrored variables ditto_scatter is collective: the changes of all replicas
 * are applied together. A worker changes the parameters alone. */
static ditto_status step(ditto_replica *self, void *user)
{
    struct training *t = user;
    uint32_t id = t->kind == DITTO_MIRRORED ? ditto_replica_id(self) : ditto_worker(self);
    struct learner *l = &t->learner[id];
    double begin = seconds();
    draw_pairs(t->text, &l->random, &l->pairs);
    DITTO_TRY(ditto_lookup(self, t->words, l->pairs.word, PAIRS, l->word));
    DITTO_TRY(ditto_lookup(self, t->others, l->pairs.other, PAIRS * WITH, l->other));
    differentiate(l, t->rate);
    divide_by_occurrences(l, l->pairs.word, l->word_change, PAIRS);
    divide_by_occurrences(l, l->pairs.other, l->other_change, PAIRS * WITH);
    if (id == 0)
        pause_after(begin);
    DITTO_TRY(push(self, t->words, l->pairs.word, l->word_change, PAIRS));
    DITTO_TRY(push(self, t->others, l->pairs.other, l->other_change, PAIRS * WITH));
    /* relaxed: main reads a number of rows that nothing else depends on. */
    atomic_fetch_add_explicit(&l->rows, PAIRS + PAIRS * WITH, memory_order_relaxed);
    return DITTO_OK;
}

/* -- cross-replica context -- */

/* The mean over pairs that are the same in each test. */
static double loss_of(struct training *t)
{
    size_t bytes = t->text->vocabulary * sizeof *t->words_copy;
    double sum = 0;
    check(ditto_variable_read(t->words, t->words_copy, bytes));
    check(ditto_variable_read(t->others, t->others_copy, bytes));
    for (int p = 0; p < TEST_PAIRS / PAIRS; p++)
        for (int k = 0; k < PAIRS * WITH; k++) {
            const float *word = t->words_copy[t->test[p].word[k / WITH]];
            const float *other = t->others_copy[t->test[p].other[k]];
            float product = dot(word, other);
            /* -log(1 / (1 + exp(-x))), with x of the sign that is right for the pair */
            sum += log1p(exp(k % WITH == 0 ? -product : product));
        }
    return sum / TEST_PAIRS;
}

static struct sample take_sample(struct training *t, const struct sample *before)
{
    struct sample s = { .seconds = seconds() - t->begin };
    for (uint32_t r = 0; r < t->replicas; r++)
        s.rows += atomic_load_explicit(&t->learner[r].rows, memory_order_relaxed); /* as in step() */
    s.loss = loss_of(t);
    if (before != NULL && s.seconds > before->seconds)
        s.rows_per_s = (double)(s.rows - before->rows) / (s.seconds - before->seconds);
    return s;
}

static void print_sample(const struct options *o, const struct training *t, const struct sample *s)
{
    const char *name = t->kind == DITTO_MIRRORED ? "mirrored" : "asynchronous";
    printf(o->csv ? "%s,%.3f,%.5f,%llu,%.0f\n" : "%-12s %8.3f s  loss %.5f  %12llu rows  %12.0f rows/s\n",
           name, s->seconds, s->loss, (unsigned long long)s->rows, s->rows_per_s);
    fflush(stdout);
}

/* Trains for the given time, and returns whether the loss has fallen. `coordinator` is NULL for mirrored
 * variables. */
static bool train(struct training *t, const struct options *o, ditto_strategy *strategy,
                  ditto_coordinator *coordinator)
{
    double interval = o->seconds / SAMPLES;
    t->begin = seconds();
    struct sample first = take_sample(t, NULL), last = first;
    print_sample(o, t, &first);
    do {
        if (coordinator != NULL)
            check(ditto_coordinator_schedule(coordinator, "train_words", NULL, NULL, NULL));
        else
            check(ditto_strategy_run(strategy, step, t));
        double now = seconds() - t->begin;
        if (now - last.seconds >= interval && o->seconds - now > interval / 2) {
            last = take_sample(t, &last);
            print_sample(o, t, &last);
        }
    } while (seconds() - t->begin < o->seconds);
    if (coordinator != NULL)
        check(ditto_coordinator_join(coordinator));
    last = take_sample(t, &last);
    print_sample(o, t, &last);
    return last.loss < first.loss;
}

static float rate_for(uint32_t replicas)
{
    return fminf(MOST_RATE, 1 / (float)replicas);
}

/* Creates a variable of random vectors, or of zeros. */
static ditto_variable *create_variable(const struct training *t, ditto_strategy *strategy, const char *name,
                                       void *initial)
{
    ditto_tensor vectors = {
        .data = initial, .dtype = DITTO_F32, .rank = 2, .shape = { t->text->vocabulary, WIDTH }
    };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_variable *variable;
    options.name = name;
    options.aggregation = DITTO_AGGREGATE_SUM;
    options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = SHARDS };
    check(ditto_variable_create(strategy, &vectors, &options, &variable));
    return variable;
}

static void create_variables(struct training *t, ditto_strategy *strategy)
{
    uint64_t random = 1;
    for (size_t w = 0; w < t->text->vocabulary; w++)
        for (int i = 0; i < WIDTH; i++)
            t->words_copy[w][i] = (float)draw(&random, 1000) / 1000 - 0.25f;
    t->words = create_variable(t, strategy, "words", t->words_copy);
    t->others = create_variable(t, strategy, "others", NULL);
}

static void *allocate(size_t count, size_t bytes)
{
    size_t all = (count * bytes + 127) / 128 * 128;
    void *memory = aligned_alloc(128, all);
    if (memory == NULL) {
        fprintf(stderr, "train_words: there is no memory for %zu bytes\n", all);
        exit(1);
    }
    return memset(memory, 0, all);
}

static void allocate_all(struct training *t)
{
    uint64_t random = 4;
    t->test = allocate(TEST_PAIRS / PAIRS, sizeof *t->test);
    for (int p = 0; p < TEST_PAIRS / PAIRS; p++)
        draw_pairs(t->text, &random, &t->test[p]);
    t->words_copy = allocate(t->text->vocabulary, sizeof *t->words_copy);
    t->others_copy = allocate(t->text->vocabulary, sizeof *t->others_copy);
    t->learner = allocate(t->replicas, sizeof *t->learner);
    for (uint32_t r = 0; r < t->replicas; r++) {
        t->learner[r].random = r + 100;
        t->learner[r].occurrences = allocate(t->text->vocabulary, sizeof(uint32_t));
    }
}

static void free_all(struct training *t)
{
    for (uint32_t r = 0; r < t->replicas; r++)
        free(t->learner[r].occurrences);
    free(t->learner);
    free(t->test);
    free(t->words_copy);
    free(t->others_copy);
}

static void print_head(const struct options *o, const struct training *t)
{
    printf("# %zu words of %zu pages, %zu different ones; %u replicas, %g s for each strategy\n",
           t->text->length, t->text->pages, t->text->vocabulary, t->replicas, o->seconds);
    printf("# Replica 0 is slow: in each step it pauses until the step has taken %d times as long.\n", SLOW);
    if (o->csv)
        printf("strategy,seconds,loss,rows,rows_per_s\n");
}

/* Trains with a strategy of the kind, and returns whether the loss has fallen. */
static bool train_with(ditto_strategy_kind kind, const struct options *o, const struct text *text)
{
    struct training t = { .text = text, .kind = kind };
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_coordinator_options small = DITTO_COORDINATOR_OPTIONS_INIT;
    ditto_strategy *strategy;
    ditto_coordinator *coordinator = NULL;
    options.num_replicas = o->replicas;
    check(ditto_strategy_create(kind, &options, &strategy));
    t.replicas = ditto_strategy_num_replicas(strategy);
    t.rate = rate_for(t.replicas);
    allocate_all(&t);
    create_variables(&t, strategy);
    if (kind == DITTO_MIRRORED)
        print_head(o, &t);
    if (kind == DITTO_PARAMETER_SERVER) {
        small.queue_capacity = 2 * t.replicas; /* so that all functions end soon after the time */
        check(ditto_function_register("train_words", step, &t));
        check(ditto_coordinator_create(strategy, &small, &coordinator));
    }
    bool fallen = train(&t, o, strategy, coordinator);
    if (coordinator != NULL) {
        check(ditto_coordinator_destroy(coordinator));
        check(ditto_function_unregister("train_words"));
    }
    check(ditto_variable_destroy(t.words));
    check(ditto_variable_destroy(t.others));
    check(ditto_strategy_destroy(strategy));
    free_all(&t);
    return fallen;
}

/* -- the command line -- */

static struct options parse(int argc, char **argv)
{
    enum { SECONDS, REPLICAS, TEXT, CSV };
    static const struct command_row rows[] = {
        [SECONDS] = { "--seconds", "S",
                      "how long to train with each of the two strategies: 0.1 to 3600 (default: 10)" },
        [REPLICAS] = { "--replicas", "N",
                       "how many replicas each of them has: 1 to 1024 (default: one for each core)" },
        [TEXT] = { "--text", "FOLDER", "the folder of the pages (*.md) to learn from (default: docs)" },
        [CSV] = { "--csv", NULL,
                  "print strategy,seconds,loss,rows,rows_per_s after lines that begin with #" },
        { 0 },
    };
    struct command_line line = command_line_of(
        "[OPTION ...]",
        "Learns vectors of words with workers that do not wait for each other, and with mirrored replicas. "
        "Replica 0 is slow: its steps take 5 times as long, because it pauses.",
        rows, argc, argv);
    struct options o = { .seconds = 10, .folder = "docs" };
    char *end;
    for (int row; (row = command_next(&line)) >= 0;)
        switch (row) {
        case SECONDS:
            o.seconds = strtod(line.value, &end);
            if (*end != '\0' || !(o.seconds >= 0.1 && o.seconds <= 3600)) /* also if it is no number */
                command_refuse_value(&line, "a number from 0.1 to 3600");
            break;
        case REPLICAS:
            o.replicas = (uint32_t)command_number(&line, 1, DITTO_MAX_REPLICAS);
            break;
        case TEXT:
            o.folder = line.value;
            break;
        case CSV:
            o.csv = true;
            break;
        }
    return o;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    struct text text;
    if (text_read(options.folder, &text) != 0)
        return 1;
    if (text.length < SHORTEST_TEXT) {
        fprintf(stderr,
                "train_words: the pages of %s have %zu words that occur more than once, but the model needs "
                "%d; name a folder of more text\n",
                options.folder, text.length, SHORTEST_TEXT);
        text_free(&text);
        return 1;
    }
    bool mirrored = train_with(DITTO_MIRRORED, &options, &text);
    bool asynchronous = train_with(DITTO_PARAMETER_SERVER, &options, &text);
    text_free(&text);
    if (!mirrored || !asynchronous)
        fprintf(stderr, "train_words: the loss of the %s training is not below its start\n",
                mirrored ? "asynchronous" : "mirrored");
    return mirrored && asynchronous ? 0 : 1;
}
