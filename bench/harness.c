/* bench/harness.c - measures contenders in interleaved batches, and computes medians and spread. */
#include "harness.h"
#include "perf_control.h"
#include "samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES        31    /* batches of each contender and of its baseline */
#define BATCH_SECONDS  0.004 /* much longer than the clock's resolution and a wake-up */
#define ENOUGH_SECONDS 20.0  /* after this time a row that has 5 samples gets no more */
#define HEATS          3     /* batches of each form that are compared first */
#define SLOW_FORM      1.25  /* forms that take this multiple of the fastest are dropped */

static double quantile(double *sorted, uint32_t count, double q)
{
    return sorted[(uint32_t)(q * (count - 1) + 0.5)];
}

/* The batches whose counts are added up apart. */
enum counted { COUNTED_WHOLE, COUNTED_BASELINE, COUNTED_BARRIER, COUNTED };

struct samples {
    double whole[SAMPLES], baseline[SAMPLES], cpu_share[SAMPLES], cpu_ratio[SAMPLES], barrier;
    uint64_t reps; /* per batch */
    uint32_t count;

    /* True if the contender cannot do this work, has failed, or is too slow to be the bound. */
    bool out;

    /* [replicas] The sums over all batches, if anything is counted. */
    struct counts *counts[COUNTED];
    struct rates *rates;
    uint64_t barriers; /* repetitions of the counted barriers */
};

static struct timing batch(struct contender *c, struct samples *s, const struct work *work, bool baseline)
{
    struct timing timing = c->batch(c->state, work, baseline);
    s->out |= timing.seconds < 0;
    return timing;
}

/* -- counts -- */

static void allocate_counts(struct samples *s, uint32_t replicas)
{
    for (int of = 0; of < COUNTED && counters_events > 0; of++) {
        s->counts[of] = calloc(replicas, sizeof *s->counts[of]);
        if (s->counts[of] == NULL)
            exit(1);
    }
    s->rates = counters_events > 0 ? calloc(replicas, sizeof *s->rates) : NULL;
    if (counters_events > 0 && s->rates == NULL)
        exit(1);
}

static void free_counts(struct samples *s)
{
    for (int of = 0; of < COUNTED; of++)
        free(s->counts[of]);
    free(s->rates);
}

/* Adds what the contender counted in its last batch. */
static void add_counts(struct contender *c, struct samples *s, enum counted of, uint32_t replicas)
{
    for (uint32_t r = 0; r < replicas && counters_events > 0 && !s->out; r++)
        counts_add(&s->counts[of][r], c->counts(c->state, r));
}

/* Returns the events of one repetition: those of the whole batches, without those of the baseline, and with
 * those of a barrier. */
static double rate_of(const struct samples *s, uint32_t replica, uint32_t event, bool subtracts)
{
    double whole = counts_scaled(&s->counts[COUNTED_WHOLE][replica], event);
    double base = counts_scaled(&s->counts[COUNTED_BASELINE][replica], event);
    double barrier = counts_scaled(&s->counts[COUNTED_BARRIER][replica], event);
    double repetitions = (double)s->reps * s->count;
    if (whole == UNCOUNTED || (subtracts && (base == UNCOUNTED || barrier == UNCOUNTED)))
        return UNCOUNTED;
    return subtracts ? (whole - base) / repetitions + barrier / (double)s->barriers : whole / repetitions;
}

static struct rates *reduce_counts(struct samples *s, enum bench_kind kind, uint32_t replicas)
{
    bool subtracts = bench_facts[kind].collective && kind != BENCH_SKEW;
    for (uint32_t r = 0; r < replicas && counters_events > 0; r++)
        for (uint32_t e = 0; e < counters_events; e++)
            s->rates[r].of[e] = rate_of(s, r, e, subtracts);
    return s->rates;
}

/* Returns the number of repetitions in a batch of this contender. All batches take about the same time. */
static uint64_t calibrate(struct contender *c, struct samples *s, struct work work)
{
    work.reps = 1;
    while (work.reps < (1u << 20) && !s->out && batch(c, s, &work, false).seconds < BATCH_SECONDS)
        work.reps *= 2;
    return work.reps;
}

/* Drops the forms of the bound that are much slower than the fastest after a few batches, because there are
 * many forms. */
static void heats(struct contender *contenders, struct samples *samples, uint32_t count, struct work work)
{
    double best[MOST_CONTENDERS], fastest = 1e9;
    for (uint32_t c = 0; c < count; c++) {
        best[c] = 1e9;
        work.reps = samples[c].reps;
        for (int i = 0; i < HEATS && contenders[c].is_bound && !samples[c].out; i++) {
            double seconds = batch(&contenders[c], &samples[c], &work, false).seconds / (double)work.reps;
            best[c] = seconds < best[c] ? seconds : best[c];
        }
        fastest = best[c] < fastest ? best[c] : fastest;
    }
    for (uint32_t c = 0; c < count; c++)
        samples[c].out |= contenders[c].is_bound && best[c] > SLOW_FORM * fastest;
}

/* Returns the seconds of a barrier of the contender's replicas. It is added because the baseline contains a
 * barrier. */
static double barrier_of(struct contender *c, struct samples *s, struct work work)
{
    struct work barrier = { .kind = BENCH_BARRIER, .replicas = work.replicas, .reps = 1 };
    double seconds[5] = { 0 };
    while (barrier.reps < 2000 && !s->out && batch(c, s, &barrier, false).seconds < BATCH_SECONDS)
        barrier.reps *= 2;
    for (int i = 0; i < 5 && !s->out; i++) {
        seconds[i] = batch(c, s, &barrier, false).seconds;
        add_counts(c, s, COUNTED_BARRIER, work.replicas);
        s->barriers += barrier.reps;
    }
    sort_samples(seconds, 5);
    return seconds[2] / (double)barrier.reps;
}

static void sample(struct contender *c, struct samples *s, struct work work, bool shown)
{
    work.reps = s->reps;
    perf_control_show(shown);
    struct timing whole = batch(c, s, &work, false), baseline = { 0, 0 };
    perf_control_show(false);
    add_counts(c, s, COUNTED_WHOLE, work.replicas);
    if (bench_facts[work.kind].collective && !s->out) {
        baseline = batch(c, s, &work, true);
        add_counts(c, s, COUNTED_BASELINE, work.replicas);
    }
    if (s->out)
        return;
    s->whole[s->count] = whole.seconds;
    s->baseline[s->count] = baseline.seconds;
    s->cpu_share[s->count] = whole.cpu_seconds / whole.seconds;
    s->cpu_ratio[s->count] = whole.cpu_seconds / baseline.cpu_seconds;
    s->count++;
}

static struct result reduce_samples(struct samples *s, enum bench_kind kind)
{
    struct result r = { .reps = s->reps };
    double base = 0, scale = 1e9 / (double)s->reps;
    sort_samples(s->whole, s->count);
    sort_samples(s->baseline, s->count);
    if (kind == BENCH_SKEW) { /* nothing is subtracted: the lateness is included */
        sort_samples(s->cpu_share, s->count);
        sort_samples(s->cpu_ratio, s->count);
        r.cpu_share = quantile(s->cpu_share, s->count, 0.5);
        r.cpu_ratio = quantile(s->cpu_ratio, s->count, 0.5);
    } else if (bench_facts[kind].collective) {
        base = quantile(s->baseline, s->count, 0.5) - s->barrier * (double)s->reps;
    }
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
    bool prepared[MOST_CONTENDERS];
    double began = now_seconds();
    for (uint32_t c = 0; c < MOST_CONTENDERS; c++)
        free_counts(&samples[c]); /* of the measurement before */
    memset(samples, 0, sizeof samples);
    for (uint32_t c = 0; c < count; c++) {
        allocate_counts(&samples[c], work.replicas);
        prepared[c] = contenders[c].prepare(contenders[c].state, &work);
        samples[c].out = !prepared[c];
        samples[c].reps = calibrate(&contenders[c], &samples[c], work);
    }
    heats(contenders, samples, count, work);
    for (uint32_t c = 0; c < count; c++)
        if (bench_facts[work.kind].collective)
            samples[c].barrier = barrier_of(&contenders[c], &samples[c], work);
    for (int i = 0; i < SAMPLES && (i < 5 || now_seconds() - began < ENOUGH_SECONDS); i++)
        for (uint32_t c = 0; c < count; c++)
            if (!samples[c].out)
                sample(&contenders[c], &samples[c], work, c == 0); /* ditto is the first */
    for (uint32_t c = 0; c < count; c++) {
        bool measured = samples[c].count > 0 && !samples[c].out;
        result[c] = measured ? reduce_samples(&samples[c], work.kind) : (struct result){ .median_ns = -1 };
        if (measured)
            result[c].rates = reduce_counts(&samples[c], work.kind, work.replicas);
        if (prepared[c])
            contenders[c].finish(contenders[c].state, &work);
    }
}
