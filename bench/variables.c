/* bench/variables.c - the cost of writing variables, compared with moving the same memory.
 *
 * assign: us of adding to a mirrored f32 variable with one copy. It is compared with an all-reduce
 *         in place of the same bytes (bound: 1.1 times that) and with a loop of one pass. Also ns of adding
 *         to a scalar sync-on-read variable, by the call and through a pointer to its component. Bound: the
 *         call takes at most 10 times as long.
 * apply:  us of ditto_apply of one variable, with the rules SGD with momentum and Adam. It is compared with a
 *         loop of one pass in which each replica makes its part of the elements. There are two forms of the
 *         loop, and the faster one counts (bound: 1.25 times that). It is also compared with an all-reduce,
 *         after which each replica updates its own arrays (bound: at least 1.6 times faster than that). 100
 *         variables of 4 KiB are compared with one of 400 KiB. Bound: 1.5 times that.
 *
 * Data is fresh, as docs/performance.md says. In each repetition each replica rewrites its whole gradient,
 * and reads one word of each cache line of the new value. The time of doing that with a barrier in between is
 * subtracted. Scalar adds are not measured in this way. The figures are medians of interleaved batches,
 * measured on replica 0. */
#include "alone.h"
#include "harness.h"
#include "samples.h"

#include <ditto.h>

#include <math.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 21, MANY = 100, MOST = 64, PIECE = 256 };

/* The data of all replicas. Each array has `count` floats. */
struct bench {
    ditto_strategy *strategy;
    uint32_t replicas;
    size_t count;
    bool adam;
    ditto_variable *variable, *list[MANY];
    ditto_optimizer *optimizer, *optimizer_of_list;
    float *gradient[MOST];     /* of each replica */
    float *own[MOST][3];       /* value and slots of each replica (side_separate) */
    float *value, *slot[2];    /* for the loop of one pass */
    volatile float sink[MOST]; /* keeps the compiler from removing the reads */
    double begin, seconds;
    uint64_t reps;
    struct alone_counts *counts; /* of this batch, or NULL */
    void (*side)(ditto_replica *self, struct bench *b, uint32_t id);
};

typedef void side_fn(ditto_replica *self, struct bench *b, uint32_t id);

/* -- a barrier for the loop -- */

static struct {
    alignas(128) _Atomic uint32_t come, round;
} meeting;

static void meet(uint32_t replicas)
{
    uint32_t round = atomic_load_explicit(&meeting.round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&meeting.come, 1, memory_order_acq_rel) + 1 == replicas) {
        atomic_store_explicit(&meeting.come, 0, memory_order_relaxed);
        atomic_store_explicit(&meeting.round, round + 1, memory_order_release);
    }
    for (int spins = 0; atomic_load_explicit(&meeting.round, memory_order_acquire) == round; spins++)
        if (spins > 1000)
            sched_yield();
}

/* -- arithmetic -- */

#define MOMENTUM 0.9f
#define RATE     0.01f

/* Returns the sum of element i of two gradients, or that of one gradient if h is NULL. */
static inline __attribute__((always_inline)) float sum_of(const float *g, const float *h, size_t i)
{
    return h != NULL ? g[i] + h[i] : g[i];
}

static inline void momentum_loop(float *restrict x, float *restrict m, const float *restrict g,
                                 const float *restrict h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        m[i] = MOMENTUM * m[i] - RATE * sum_of(g, h, i);
        x[i] += m[i];
    }
}

static inline void adam_loop(float *restrict x, float *restrict m, float *restrict v, const float *restrict g,
                             const float *restrict h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float sum = sum_of(g, h, i);
        m[i] = 0.9f * m[i] + 0.1f * sum;
        v[i] = 0.999f * v[i] + 0.001f * sum * sum;
        x[i] -= RATE * m[i] / (sqrtf(v[i]) * 1.5f + 1e-8f);
    }
}

static inline void add_loop(float *restrict x, const float *restrict g, const float *restrict h, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] += sum_of(g, h, i);
}

/* Prefetches the lines of the value for writing. */
static void fetch(const float *at, size_t count)
{
    for (size_t i = 0; i < count; i += 16)
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" : : "m"(at[i]));
#else
        __builtin_prefetch(at + i, 1);
#endif
}

enum update { UPDATE_ADD, UPDATE_RULE };

/* Adds up the gradients of all replicas in pieces, and uses each piece while it is in the cache. */
static void one_pass(struct bench *b, size_t from, size_t to, enum update update, bool fetches)
{
    float sum[PIECE];
    for (size_t at = from; at < to; at += PIECE) {
        size_t count = to - at < PIECE ? to - at : PIECE;
        if (fetches)
            fetch(b->value + at, count);
        const float *g = b->gradient[0] + at, *h = b->replicas == 2 ? b->gradient[1] + at : NULL;
        for (uint32_t r = 1; r < b->replicas && h == NULL; r++) {
            for (size_t i = 0; i < count; i++)
                sum[i] = g[i] + b->gradient[r][at + i];
            g = sum;
        }
        if (update == UPDATE_ADD)
            add_loop(b->value + at, g, h, count);
        else if (b->adam)
            adam_loop(b->value + at, b->slot[0] + at, b->slot[1] + at, g, h, count);
        else
            momentum_loop(b->value + at, b->slot[0] + at, g, h, count);
    }
}

/* -- the calls and loops that are compared -- */

static void side_barrier(ditto_replica *self, struct bench *b, uint32_t id)
{
    (void)b, (void)id;
    must(ditto_barrier(self, NULL));
}

static void side_apply(ditto_replica *self, struct bench *b, uint32_t id)
{
    ditto_tensor gradient = { .data = b->gradient[id], .dtype = DITTO_F32, .rank = 1, .shape = { b->count } };
    must(ditto_apply(self, b->optimizer, &gradient, NULL));
}

static void side_list(ditto_replica *self, struct bench *b, uint32_t id)
{
    ditto_tensor gradient[MANY];
    for (size_t k = 0; k < MANY; k++)
        gradient[k] = (ditto_tensor){ .data = b->gradient[id] + k * (b->count / MANY),
                                      .dtype = DITTO_F32,
                                      .rank = 1,
                                      .shape = { b->count / MANY } };
    must(ditto_apply(self, b->optimizer_of_list, gradient, NULL));
}

static void loop(struct bench *b, uint32_t id, enum update update, bool fetches)
{
    size_t lines = b->count / 16;
    meet(b->replicas);
    one_pass(b, lines * id / b->replicas * 16, lines * (id + 1) / b->replicas * 16, update, fetches);
    meet(b->replicas);
}

static void side_loop(ditto_replica *self, struct bench *b, uint32_t id)
{
    (void)self;
    loop(b, id, UPDATE_RULE, false);
}

static void side_fetching_loop(ditto_replica *self, struct bench *b, uint32_t id)
{
    (void)self;
    loop(b, id, UPDATE_RULE, true);
}

static void side_adding_loop(ditto_replica *self, struct bench *b, uint32_t id)
{
    (void)self;
    loop(b, id, UPDATE_ADD, true);
}

/* An all-reduce and a separate update, like in a program that does not use ditto_apply. */
static void side_separate(ditto_replica *self, struct bench *b, uint32_t id)
{
    must(ditto_all_reduce(self, b->gradient[id], b->gradient[id], b->count, DITTO_F32, DITTO_SUM, NULL));
    if (b->adam)
        adam_loop(b->own[id][0], b->own[id][1], b->own[id][2], b->gradient[id], NULL, b->count);
    else
        momentum_loop(b->own[id][0], b->own[id][1], b->gradient[id], NULL, b->count);
}

static void side_add(ditto_replica *self, struct bench *b, uint32_t id)
{
    must(ditto_assign(self, b->variable, DITTO_ASSIGN_ADD, b->gradient[id]));
}

static void side_all_reduce(ditto_replica *self, struct bench *b, uint32_t id)
{
    must(ditto_all_reduce(self, b->gradient[id], b->gradient[id], b->count, DITTO_F32, DITTO_SUM, NULL));
}

static const float *result_of(const struct bench *b, ditto_replica *self, uint32_t id)
{
    const void *data = b->gradient[id];
    if (b->side == side_loop || b->side == side_fetching_loop || b->side == side_adding_loop)
        return b->value;
    if (b->side == side_separate)
        return b->own[id][0];
    if (b->side == side_apply || b->side == side_add)
        must(ditto_read(self, b->variable, &data));
    return data;
}

/* -- measuring -- */

/* Of the batches of the row that is measured. */
static struct alone_counts counts;
static struct rounds rounds;

/* Runs one batch. Each repetition rewrites the gradient, calls the side, and reads the result. */
static ditto_status batch(ditto_replica *self, void *argument)
{
    struct bench *b = argument;
    uint32_t id = ditto_replica_id(self);
    float sum = 0;
    if (id == 0)
        alone_start(b->counts);
    must(ditto_barrier(self, NULL));
    if (id == 0)
        b->begin = now_seconds();
    for (uint64_t rep = 0; rep < b->reps; rep++) {
        float fresh = (float)(rep % 7) * 1e-3f;
        for (size_t i = 0; i < b->count; i++)
            b->gradient[id][i] = fresh;
        b->side(self, b, id);
        const float *result = result_of(b, self, id);
        for (size_t i = 0; i < b->count; i += 16)
            sum += result[i];
    }
    must(ditto_barrier(self, NULL));
    if (id == 0) {
        b->seconds = now_seconds() - b->begin;
        alone_stop(b->counts, b->reps);
    }
    b->sink[id] = sum;
    return DITTO_OK;
}

/* Runs a batch of a side. Returns the nanoseconds of a repetition. */
static double run_batch(struct bench *b, side_fn *side)
{
    b->side = side;
    must(ditto_strategy_run(b->strategy, batch, b));
    return b->seconds * 1e9 / (double)b->reps;
}

/* Measures a row. The last column of the rounds is the same repetition with a barrier. */
static void measure_sides(struct bench *b, side_fn *const *side, uint32_t sides)
{
    b->reps = 1;
    b->counts = NULL;
    while (b->reps < 1u << 16 && run_batch(b, side[0]) * (double)b->reps < 4e6)
        b->reps *= 2;
    rounds_begin(&rounds, sides + 1, SAMPLES);
    while (rounds_next(&rounds))
        for (uint32_t s = 0; s <= sides; s++) {
            /* Only ditto's side is counted, with rewriting and reading. */
            b->counts = s == 0 ? &counts : NULL;
            rounds_put(&rounds, s, run_batch(b, s < sides ? side[s] : side_barrier));
        }
}

/* Sets ns to the median of each side in a mode. The time with a barrier is subtracted. */
static void reduce_sides(uint32_t sides, uint32_t mode, double *ns)
{
    double base = rounds_figures(&rounds, sides, mode).median;
    for (uint32_t s = 0; s < sides; s++)
        ns[s] = rounds_figures(&rounds, s, mode).median - base;
}

static void end_measurement(void)
{
    rounds_end(&rounds);
    alone_forget(&counts);
}

static float *floats(size_t count)
{
    float *memory = aligned_alloc(4096, (count * sizeof(float) + 4095) / 4096 * 4096);
    if (memory == NULL)
        exit(1);
    return memory;
}

/* Writes the arrays of a replica on its own thread, so that first touch places them on its node. */
static ditto_status touch(ditto_replica *self, void *argument)
{
    struct bench *b = argument;
    uint32_t id = ditto_replica_id(self);
    memset(b->gradient[id], 0, b->count * sizeof(float));
    for (int k = 0; k < 3; k++)
        memset(b->own[id][k], 0, b->count * sizeof(float));
    return DITTO_OK;
}

static ditto_variable *create(ditto_strategy *strategy, size_t count, const char *name)
{
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { count } };
    ditto_variable *v;
    options.name = name;
    options.aggregation = DITTO_AGGREGATE_SUM;
    must(ditto_variable_create(strategy, &zeros, &options, &v));
    return v;
}

static void open_bench(struct bench *b, uint32_t replicas, size_t bytes, bool adam)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_optimizer_options rule = DITTO_OPTIMIZER_OPTIONS_INIT;
    *b = (struct bench){ .replicas = replicas, .count = bytes / sizeof(float), .adam = adam };
    options.num_replicas = replicas;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, &b->strategy));
    must(ditto_strategy_scope_enter(b->strategy));
    for (uint32_t i = 0; i < replicas; i++) {
        b->gradient[i] = floats(b->count);
        for (int k = 0; k < 3; k++)
            b->own[i][k] = floats(b->count);
    }
    must(ditto_strategy_run(b->strategy, touch, b));
    b->value = b->own[0][0];
    b->slot[0] = b->own[0][1];
    b->slot[1] = b->own[0][2];
    b->variable = create(b->strategy, b->count, "x");
    for (int k = 0; k < MANY; k++)
        b->list[k] = create(b->strategy, b->count / MANY, "part");
    rule.rule = adam ? DITTO_RULE_ADAM : DITTO_RULE_SGD;
    rule.momentum = adam ? 0 : 0.9;
    rule.learning_rate = 0.01;
    must(ditto_optimizer_create(&b->variable, 1, &rule, &b->optimizer));
    rule.name = "of_list";
    must(ditto_optimizer_create(b->list, MANY, &rule, &b->optimizer_of_list));
}

static void close_bench(struct bench *b)
{
    must(ditto_optimizer_destroy(b->optimizer));
    must(ditto_optimizer_destroy(b->optimizer_of_list));
    must(ditto_variable_destroy(b->variable));
    for (int k = 0; k < MANY; k++)
        must(ditto_variable_destroy(b->list[k]));
    must(ditto_strategy_scope_leave(b->strategy));
    must(ditto_strategy_destroy(b->strategy));
    for (uint32_t i = 0; i < b->replicas; i++) {
        free(b->gradient[i]);
        for (int k = 0; k < 3; k++)
            free(b->own[i][k]);
    }
}

/* -- rows -- */

/* Prints a row of one mode. */
static void row(const char *bench, const char *algorithm, uint32_t replicas, size_t bytes, double ns,
                double bound, const char *words, uint32_t mode, bool csv)
{
    if (csv) {
        /* The barrier is subtracted from each figure. */
        alone_csv(&(struct alone_row){ .bench = bench,
                                       .algorithm = algorithm,
                                       .replicas = replicas,
                                       .dtype = "f32",
                                       .op = "SUM",
                                       .bytes = bytes,
                                       .reps = SAMPLES,
                                       .rounds = &rounds,
                                       .mode = mode,
                                       .less_ns = rounds_figures(&rounds, 0, mode).median - ns,
                                       .bound_ns = bound,
                                       .counts = &counts });
        return;
    }
    printf("%-7s %-22s %3u %11zu %12.2f us  %s;", bench, algorithm, replicas, bytes, ns * 1e-3, words);
    alone_end_row(&rounds, 0, mode, &counts);
}

static void print_apply(const struct bench *b, bool csv)
{
    /* Each gradient is read. The value and the slots are read and written. */
    size_t bytes = b->count * sizeof(float), moved = bytes * (b->replicas + (b->adam ? 6u : 4u));
    char words[200];
    double ns[4];
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++) {
        reduce_sides(4, mode, ns);
        double bound = ns[2] < ns[3] ? ns[2] : ns[3];
        snprintf(words, sizeof words,
                 "loop %.2f (%.2f, at most 1.25; %zu bytes moved); all-reduce and update %.2f (%.2f, at "
                 "least 1.6)",
                 bound * 1e-3, ns[0] / bound, moved, ns[1] * 1e-3, ns[1] / ns[0]);
        row("apply", b->adam ? "Adam" : "momentum", b->replicas, bytes, ns[0], bound, words, mode, csv);
    }
}

static void print_list(const struct bench *b, bool csv)
{
    char words[100];
    double ns[2];
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++) {
        reduce_sides(2, mode, ns);
        snprintf(words, sizeof words, "one %.2f (%.2f, at most 1.5)", ns[1] * 1e-3, ns[0] / ns[1]);
        row("apply", b->adam ? "Adam of 100 variables" : "momentum of 100 variables", b->replicas,
            b->count * sizeof(float), ns[0], ns[1] * 1.5, words, mode, csv);
    }
}

void bench_apply(uint32_t replicas, bool csv)
{
    static const size_t sizes[] = { (size_t)400 << 10, (size_t)4 << 20, (size_t)64 << 20 };
    static side_fn *const sides[] = { side_apply, side_separate, side_loop, side_fetching_loop };
    static side_fn *const lists[] = { side_list, side_apply };
    struct bench b;
    for (int adam = 0; adam <= 1; adam++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            open_bench(&b, replicas, sizes[i], adam);
            measure_sides(&b, sides, 4);
            print_apply(&b, csv);
            end_measurement();
            if (i == 0) {
                measure_sides(&b, lists, 2);
                print_list(&b, csv);
                end_measurement();
            }
            close_bench(&b);
        }
}

/* -- assign -- */

static double local_seconds[2];

static ditto_status add_locally(ditto_replica *self, void *argument)
{
    enum { REPS = 1000000 };
    uint32_t id = ditto_replica_id(self);
    double one = 1;
    void *data;
    must(ditto_component(self, argument, &data));
    double begin = now_seconds();
    for (int i = 0; i < REPS; i++)
        *(volatile double *)data += one;
    double middle = now_seconds();
    if (id == 0)
        alone_start(&counts);
    must(ditto_barrier(self, NULL));
    double again = now_seconds();
    for (int i = 0; i < REPS; i++)
        must(ditto_assign(self, argument, DITTO_ASSIGN_ADD, &one));
    double end = now_seconds();
    must(ditto_barrier(self, NULL));
    if (id == 0) {
        alone_stop(&counts, REPS);
        local_seconds[0] = (middle - begin) / REPS;
        local_seconds[1] = (end - again) / REPS;
    }
    return DITTO_OK;
}

static void bench_local(uint32_t replicas, bool csv)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_variable_options on_read = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor scalar = { .dtype = DITTO_F64 };
    ditto_strategy *strategy;
    ditto_variable *v;
    char words[100];
    options.num_replicas = replicas;
    on_read.synchronization = DITTO_ON_READ;
    on_read.aggregation = DITTO_AGGREGATE_SUM;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    must(ditto_variable_create(strategy, &scalar, &on_read, &v));
    rounds_begin(&rounds, 2, SAMPLES);
    while (rounds_next(&rounds)) {
        must(ditto_strategy_run(strategy, add_locally, v));
        rounds_put(&rounds, 0, local_seconds[1] * 1e9);
        rounds_put_also(&rounds, 1, 0, local_seconds[0] * 1e9);
    }
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++) {
        double call = rounds_figures(&rounds, 0, mode).median,
               pointer = rounds_figures(&rounds, 1, mode).median;
        snprintf(words, sizeof words, "%.2f ns; through the pointer %.2f ns (%.1f, at most 10)", call,
                 pointer, call / pointer);
        row("assign", "local add by call", replicas, 8, call, pointer * 10, words, mode, csv);
    }
    end_measurement();
    must(ditto_variable_destroy(v));
    must(ditto_strategy_destroy(strategy));
}

static void print_assign(const struct bench *b, bool csv)
{
    char words[160];
    double ns[3];
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++) {
        reduce_sides(3, mode, ns);
        snprintf(words, sizeof words,
                 "all-reduce in place %.2f (%.2f, at most 1.1 of 64 MiB); loop %.2f (%.2f)", ns[1] * 1e-3,
                 ns[0] / ns[1], ns[2] * 1e-3, ns[0] / ns[2]);
        row("assign", "add to one copy", b->replicas, b->count * sizeof(float), ns[0], ns[1] * 1.1, words,
            mode, csv);
    }
}

void bench_assign(uint32_t replicas, bool csv)
{
    static const size_t sizes[] = { 4096, (size_t)256 << 10, (size_t)4 << 20, (size_t)64 << 20 };
    static side_fn *const sides[] = { side_add, side_all_reduce, side_adding_loop };
    struct bench b;
    bench_local(replicas, csv);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        open_bench(&b, replicas, sizes[i], false);
        measure_sides(&b, sides, 3);
        print_assign(&b, csv);
        end_measurement();
        close_bench(&b);
    }
}
