/* bench/dot.c - dot: ns of dot products of two arrays of f64 whose bits do not depend on the number of
 * replicas, beside the same sum in the order of the replicas: a loop over the own part, and ditto_all_reduce.
 *
 * ditto_block_dot has both arrays. ditto_block_sum_with calls a function that multiplies. "array" writes the
 * products to an array and gives it to ditto_block_sum, as programs had to do before. Data is fresh: each
 * replica rewrites a factor before. The figures are medians of interleaved batches, measured on replica 0.
 * Bound of ditto_block_dot: 1.1 times the loop, or 1 us more, for the two meetings and the blocks. */
#include "alone.h"
#include "harness.h"
#include "samples.h"

#include <ditto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 31, MOST = 64 };

enum side { DOT, WITH, ARRAY, LOOP, SIDES };
static const char *const names[] = { "ditto", "ditto-function", "ditto-array", "loop" };

struct part {
    double *x, *y, *product;
    size_t count;
};

struct row {
    ditto_strategy *strategy;
    size_t count;  /* of each replica */
    uint64_t reps; /* in a batch */
    struct part part[MOST];
    enum side side;
    double seconds; /* of the batch */
    volatile double sink;
    struct rounds rounds; /* the ns of a dot product */
    struct alone_counts counts;
};

static ditto_status multiply(void *out, size_t first, size_t count, void *user)
{
    const struct part *p = user;
    double *product = out;
    for (size_t i = 0; i < count; i++)
        product[i] = p->x[first + i] * p->y[first + i];
    return DITTO_OK;
}

static ditto_status dot(ditto_replica *self, struct part *p, enum side side, double *sum)
{
    switch (side) {
    case DOT:
        return ditto_block_dot(self, p->x, p->y, sum, p->count, DITTO_F64, NULL);
    case WITH:
        return ditto_block_sum_with(self, multiply, p, sum, p->count, DITTO_F64, NULL);
    case ARRAY:
        DITTO_TRY(multiply(p->product, 0, p->count, p));
        return ditto_block_sum(self, p->product, sum, p->count, DITTO_F64, NULL);
    default:
        *sum = 0;
        for (size_t i = 0; i < p->count; i++)
            *sum += p->x[i] * p->y[i];
        return ditto_all_reduce(self, sum, sum, 1, DITTO_F64, DITTO_SUM, NULL);
    }
}

static ditto_status run_batch(ditto_replica *self, void *argument)
{
    struct row *row = argument;
    uint32_t id = ditto_replica_id(self);
    struct part *p = &row->part[id];
    double sum = 0, begin = now_seconds();
    for (uint64_t rep = 0; rep < row->reps; rep++) {
        for (size_t i = 0; i < p->count; i++)
            p->x[i] = (double)rep;
        DITTO_TRY(dot(self, p, row->side, &sum));
    }
    if (id == 0) {
        row->sink = sum;
        row->seconds = now_seconds() - begin;
    }
    return DITTO_OK;
}

static double batch(struct row *row, enum side side)
{
    row->side = side;
    must(ditto_strategy_run(row->strategy, run_batch, row));
    return row->seconds;
}

static void measure_row(struct row *row)
{
    for (row->reps = 1; batch(row, LOOP) < 0.004;)
        row->reps *= 2;
    rounds_begin(&row->rounds, SIDES, SAMPLES);
    while (rounds_next(&row->rounds))
        for (int side = 0; side < SIDES; side++) {
            if (side == DOT)
                alone_start(&row->counts);
            double seconds = batch(row, (enum side)side);
            if (side == DOT)
                alone_stop(&row->counts, row->reps);
            rounds_put(&row->rounds, (uint32_t)side, seconds * 1e9 / (double)row->reps);
        }
}

static double median_of_side(const struct row *row, enum side side, uint32_t mode)
{
    return rounds_figures(&row->rounds, side, mode).median;
}

static void print_rows(const struct row *row, uint32_t replicas, bool csv)
{
    size_t bytes = row->count * replicas * sizeof(double);
    for (uint32_t mode = 0; mode < row->rounds.modes.count; mode++) {
        double base = median_of_side(row, LOOP, mode);
        double bound = base * 1.1 > base + 1000 ? base * 1.1 : base + 1000;
        for (int side = 0; csv && side < SIDES; side++)
            alone_csv(&(struct alone_row){ .bench = "dot",
                                           .algorithm = names[side],
                                           .replicas = replicas,
                                           .dtype = "f64",
                                           .bytes = bytes,
                                           .reps = row->reps,
                                           .rounds = &row->rounds,
                                           .column = (uint32_t)side,
                                           .mode = mode,
                                           .bound_ns = bound,
                                           .counts = side == DOT ? &row->counts : NULL });
        if (csv)
            continue;
        printf("%-14s %3u %9zu %12.0f ns; a function %.0f ns; an array %.0f ns; a loop and all-reduce %.0f "
               "ns; at most %.0f ns;",
               "dot", replicas, bytes, median_of_side(row, DOT, mode), median_of_side(row, WITH, mode),
               median_of_side(row, ARRAY, mode), base, bound);
        alone_end_row(&row->rounds, DOT, mode, &row->counts);
    }
}

static double *allocate(size_t count, double value)
{
    double *array = aligned_alloc(128, (count * sizeof(double) + 127) / 128 * 128);
    if (array == NULL)
        exit(1);
    for (size_t i = 0; i < count; i++)
        array[i] = value;
    return array;
}

void bench_dot(uint32_t replicas, bool csv)
{
    static const size_t counts[] = { 1000, 10000, 100000, 2000000 }; /* of all replicas */
    if (replicas < 1 || replicas > MOST) {
        fprintf(stderr, "ditto-bench: dot: give 1 to %d replicas\n", MOST);
        exit(2);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        static struct row row;
        ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
        memset(&row, 0, sizeof row);
        options.num_replicas = replicas;
        row.count = counts[i] / replicas;
        must(ditto_strategy_create(DITTO_MIRRORED, &options, &row.strategy));
        for (uint32_t r = 0; r < replicas; r++)
            row.part[r] = (struct part){ allocate(row.count, 1), allocate(row.count, 0.5),
                                         allocate(row.count, 0), row.count };
        measure_row(&row);
        print_rows(&row, replicas, csv);
        for (uint32_t r = 0; r < replicas; r++) {
            free(row.part[r].x);
            free(row.part[r].y);
            free(row.part[r].product);
        }
        alone_forget(&row.counts);
        rounds_end(&row.rounds);
        must(ditto_strategy_destroy(row.strategy));
    }
}
