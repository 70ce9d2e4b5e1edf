/* bench/harness.c - interleaved batches, medians, spread. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES        31    /* batches of each contender and of its baseline */
#define BATCH_SECONDS  0.004 /* long against the clock and against a wake-up */
#define ENOUGH_SECONDS 12.0  /* for one row: large sizes get fewer samples */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double quantile(double *sorted, uint32_t count, double q)
{
    return sorted[(uint32_t)(q * (count - 1) + 0.5)];
}

struct samples {
    double whole[SAMPLES], baseline[SAMPLES], barrier;
    uint32_t count;
};

/* Repetitions per batch, so that a batch of the slowest contender is long enough and none is too long. */
static uint64_t calibrate(struct contender *contenders, uint32_t count, struct work work)
{
    uint64_t reps = 1;
    for (uint32_t c = 0; c < count; c++) {
        work.reps = 1;
        for (double seconds = 0; seconds < BATCH_SECONDS && work.reps < (1u << 20); work.reps *= 2) {
            seconds = contenders[c].batch(contenders[c].state, &work, false);
            if (seconds < 0)
                break;
        }
        if (contenders[c].is_bound)
            continue;
        reps = reps == 1 || work.reps / 2 < reps ? (work.reps / 2 > 0 ? work.reps / 2 : 1) : reps;
    }
    return reps;
}

/* Nanoseconds of a barrier among the same contender's replicas: the difference of two batches lacks one. */
static double barrier_of(struct contender *c, struct work work)
{
    struct work barrier = { .kind = BENCH_BARRIER, .replicas = work.replicas, .reps = 2000 };
    double seconds[5];
    for (int i = 0; i < 5; i++)
        seconds[i] = c->batch(c->state, &barrier, false);
    qsort(seconds, 5, sizeof *seconds, compare);
    return seconds[2] / (double)barrier.reps;
}

static struct result reduce_samples(struct samples *s, bool with_baseline, uint64_t reps)
{
    struct result r = { .reps = reps };
    double base = 0;
    qsort(s->whole, s->count, sizeof *s->whole, compare);
    if (with_baseline) {
        qsort(s->baseline, s->count, sizeof *s->baseline, compare);
        base = quantile(s->baseline, s->count, 0.5) - s->barrier * (double)reps;
    }
    double scale = 1e9 / (double)reps;
    r.min_ns = (s->whole[0] - base) * scale;
    r.median_ns = (quantile(s->whole, s->count, 0.5) - base) * scale;
    r.p95_ns = (quantile(s->whole, s->count, 0.95) - base) * scale;
    r.noisy = quantile(s->whole, s->count, 0.75) - quantile(s->whole, s->count, 0.25) >
              0.15 * (quantile(s->whole, s->count, 0.5) - base);
    return r;
}

void measure(struct contender *contenders, uint32_t count, struct work work, struct result *result)
{
    static struct samples samples[MOST_CONTENDERS];
    bool with_baseline = work.kind == BENCH_ALL_REDUCE;
    double began = now_seconds();
    memset(samples, 0, sizeof samples);
    for (uint32_t c = 0; c < count; c++)
        if (contenders[c].prepare != NULL)
            contenders[c].prepare(contenders[c].state, &work);
    work.reps = calibrate(contenders, count, work);
    for (uint32_t c = 0; c < count; c++)
        samples[c].barrier = with_baseline ? barrier_of(&contenders[c], work) : 0;
    for (int i = 0; i < SAMPLES && (i < 5 || now_seconds() - began < ENOUGH_SECONDS); i++)
        for (uint32_t c = 0; c < count; c++) {
            struct samples *s = &samples[c];
            double whole = contenders[c].batch(contenders[c].state, &work, false);
            if (whole < 0)
                continue;
            s->whole[s->count] = whole;
            if (with_baseline)
                s->baseline[s->count] = contenders[c].batch(contenders[c].state, &work, true);
            s->count++;
        }
    for (uint32_t c = 0; c < count; c++) {
        result[c] = samples[c].count > 0 ? reduce_samples(&samples[c], with_baseline, work.reps)
                                         : (struct result){ .median_ns = -1 };
        if (contenders[c].finish != NULL)
            contenders[c].finish(contenders[c].state, &work);
    }
}
