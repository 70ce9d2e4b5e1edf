/* bench/harness.c - measures contenders in interleaved batches, and computes medians and spread. */
#include "harness.h"
#include "perf_control.h"
#include "samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES         31    /* batches of each contender, of its baseline and of its barrier */
#define BATCH_SECONDS   0.004 /* much longer than the clock's resolution and a wake-up */
#define BARRIER_SECONDS 0.001
#define HEATS           3 /* batches of each form that are compared first */

/* Forms that take this multiple of the fastest are dropped. A form that is slower by less may be the fastest
 * in another mode of the machine. */
#define SLOW_FORM 1.5

static double quantile(double *sorted, uint32_t count, double q)
{
    return sorted[(uint32_t)(q * (count - 1) + 0.5)];
}

/* The figures of a contender in each round. The first three are seconds of batches, which are counted
 * apart. */
enum figure {
    WHOLE,
    BASELINE,
    BARRIER,
    COUNTED,
    CPU_SHARE = COUNTED,
    CPU,
    BASELINE_CPU,
    OPERATIONS,
    FIGURES
};

struct samples {
    uint64_t reps, barrier_reps; /* per batch */

    /* True if the contender cannot do this work, has failed, or is too slow to be the bound. */
    bool out;

    /* [rounds][COUNTED][replicas] What was counted, if anything is. */
    struct counts *counts;
    uint32_t counted_rounds;

    struct rates *rates[MODES_MOST]; /* [replicas] */
    double *sample_ns[MODES_MOST];   /* [batches] */
};
static struct samples samples[MOST_CONTENDERS];
static struct result results[MODES_MOST][MOST_CONTENDERS];

/* -- counts -- */

static struct counts *counts_of(const struct samples *s, uint32_t round, enum figure of, uint32_t replicas)
{
    return &s->counts[((size_t)round * COUNTED + of) * replicas];
}

/* Stores what the contender counted in its last batch. */
static void keep_counts(struct contender *c, struct samples *s, uint32_t round, enum figure of,
                        uint32_t replicas)
{
    if (counters_events == 0 || s->out)
        return;
    if (round >= s->counted_rounds) {
        size_t each = (size_t)COUNTED * replicas;
        s->counts = realloc(s->counts, (round + 1) * each * sizeof *s->counts);
        if (s->counts == NULL)
            exit(1);
        memset(s->counts + s->counted_rounds * each, 0,
               (round + 1 - s->counted_rounds) * each * sizeof *s->counts);
        s->counted_rounds = round + 1;
    }
    for (uint32_t r = 0; r < replicas; r++)
        counts_of(s, round, of, replicas)[r] = *c->counts(c->state, r);
}

static void free_samples(struct samples *s)
{
    free(s->counts);
    for (int m = 0; m < MODES_MOST; m++) {
        free(s->rates[m]);
        free(s->sample_ns[m]);
    }
}

/* Returns how often an event happens in one repetition, as the mean of a contender's batches in a mode, or
 * UNCOUNTED. */
static double mean_count(const struct samples *s, const struct rounds *rounds, uint32_t column, uint32_t mode,
                         enum figure of, uint32_t replica, uint32_t event, uint32_t replicas)
{
    struct counts sum = { 0 };
    uint32_t batches = 0;
    for (uint32_t i = 0; i < s->counted_rounds; i++)
        if (rounds_has(rounds, i, column + of, mode)) {
            counts_add(&sum, &counts_of(s, i, of, replicas)[replica]);
            batches++;
        }
    double scaled = counts_scaled(&sum, event);
    return scaled == UNCOUNTED ? UNCOUNTED
                               : scaled / batches / (double)(of == BARRIER ? s->barrier_reps : s->reps);
}

/* Returns the events of one repetition: those of the whole batches, without those of the baseline, and with
 * those of a barrier. */
static double rate_of(const struct samples *s, const struct rounds *rounds, uint32_t column, uint32_t mode,
                      const struct work *work, uint32_t replica, uint32_t event)
{
    double mean[COUNTED];
    bool subtracts = bench_facts[work->kind].collective && work->kind != BENCH_SKEW;
    for (enum figure of = WHOLE; of < (subtracts ? COUNTED : BASELINE); of++) {
        mean[of] = mean_count(s, rounds, column, mode, of, replica, event, work->replicas);
        if (mean[of] == UNCOUNTED)
            return UNCOUNTED;
    }
    return subtracts ? mean[WHOLE] - mean[BASELINE] + mean[BARRIER] : mean[WHOLE];
}

static struct rates *reduce_counts(const struct samples *s, const struct rounds *rounds, uint32_t column,
                                   uint32_t mode, const struct work *work)
{
    if (counters_events == 0)
        return NULL;
    struct rates *rates = calloc(work->replicas, sizeof *rates);
    if (rates == NULL)
        exit(1);
    for (uint32_t r = 0; r < work->replicas; r++)
        for (uint32_t e = 0; e < counters_events; e++)
            rates[r].of[e] = rate_of(s, rounds, column, mode, work, r, e);
    return rates;
}

/* -- batches -- */

static struct timing batch(struct contender *c, struct samples *s, const struct work *work, bool baseline)
{
    struct timing timing = c->batch(c->state, work, baseline);
    s->out |= timing.seconds < 0;
    return timing;
}

/* Returns the number of repetitions in a batch that takes at least `seconds`. */
static uint64_t calibrate(struct contender *c, struct samples *s, struct work work, double seconds)
{
    work.reps = 1;
    while (work.reps < (1u << 20) && !s->out && batch(c, s, &work, false).seconds < seconds)
        work.reps *= 2;
    return work.reps;
}

/* Drops the forms of the bound that are much slower than the fastest one in each heat, because there are many
 * forms. The mode of the machine may change within a heat, but hardly in all of them. */
static void heats(struct contender *contenders, uint32_t count, struct work work)
{
    double seconds[MOST_CONTENDERS];
    bool is_near[MOST_CONTENDERS] = { false };
    for (int i = 0; i < HEATS; i++) {
        double fastest = 1e9;
        for (uint32_t c = 0; c < count; c++) {
            if (!contenders[c].is_bound || samples[c].out)
                continue;
            work.reps = samples[c].reps;
            seconds[c] = batch(&contenders[c], &samples[c], &work, false).seconds / (double)work.reps;
            fastest = seconds[c] < fastest ? seconds[c] : fastest;
        }
        for (uint32_t c = 0; c < count; c++)
            is_near[c] |= contenders[c].is_bound && !samples[c].out && seconds[c] <= SLOW_FORM * fastest;
    }
    for (uint32_t c = 0; c < count; c++)
        samples[c].out |= contenders[c].is_bound && !is_near[c];
}

static struct work barrier_like(const struct work *work)
{
    return (struct work){
        .kind = BENCH_BARRIER, .replicas = work->replicas, .groups = work->groups, .alone = work->alone
    };
}

/* Runs the batches of a contender in a round. A barrier is measured because the baseline contains one, which
 * must not be subtracted. */
static void sample(struct contender *c, struct samples *s, struct work work, struct rounds *rounds,
                   uint32_t column)
{
    uint32_t round = rounds->count - 1, replicas = work.replicas;
    bool collective = bench_facts[work.kind].collective;
    struct work barrier = barrier_like(&work);
    work.reps = s->reps;
    barrier.reps = s->barrier_reps;
    perf_control_show(column == 0); /* ditto is the first */
    struct timing whole = batch(c, s, &work, false), baseline = { 0, 0, 0 };
    perf_control_show(false);
    if (s->out)
        return;
    rounds_put(rounds, column + WHOLE, whole.seconds);
    keep_counts(c, s, round, WHOLE, replicas);
    if (collective) {
        baseline = batch(c, s, &work, true);
        rounds_put(rounds, column + BASELINE, baseline.seconds);
        keep_counts(c, s, round, BASELINE, replicas);
    }
    if (collective && work.kind != BENCH_SKEW) {
        rounds_put(rounds, column + BARRIER, batch(c, s, &barrier, false).seconds);
        keep_counts(c, s, round, BARRIER, replicas);
    }
    rounds_put_also(rounds, column + CPU_SHARE, column + WHOLE, whole.cpu_seconds / whole.seconds);
    rounds_put_also(rounds, column + CPU, column + WHOLE, whole.cpu_seconds);
    if (collective)
        rounds_put_also(rounds, column + BASELINE_CPU, column + BASELINE, baseline.cpu_seconds);
    rounds_put_also(rounds, column + OPERATIONS, column + WHOLE, whole.operation_seconds / whole.seconds);
}

/* -- results -- */

static double median_in(const struct rounds *rounds, uint32_t column, uint32_t mode)
{
    return rounds_figures(rounds, column, mode).median;
}

/* Keeps the times of the batches, from which `base` is subtracted. */
static const double *keep_times(struct samples *s, uint32_t mode, const double *seconds, uint32_t batches,
                                double base, double scale)
{
    double *ns = s->sample_ns[mode] = malloc(batches * sizeof *ns);
    if (ns == NULL)
        exit(1);
    for (uint32_t i = 0; i < batches; i++)
        ns[i] = (seconds[i] - base) * scale;
    return ns;
}

/* Returns the result of a contender in a mode. `figure` has room for the figures of all rounds. */
static struct result reduce_samples(struct samples *s, enum bench_kind kind, const struct rounds *rounds,
                                    uint32_t column, uint32_t mode, double *figure)
{
    struct result r = { .reps = s->reps, .median_ns = -1 };
    double base = 0, scale = 1e9 / (double)s->reps;
    if (kind == BENCH_SKEW) { /* nothing is subtracted: the lateness is included */
        r.cpu_share = median_in(rounds, column + CPU_SHARE, mode);
        r.cpu_ratio = median_in(rounds, column + CPU, mode) / median_in(rounds, column + BASELINE_CPU, mode);
    } else if (bench_facts[kind].collective) {
        base = median_in(rounds, column + BASELINE, mode) -
               median_in(rounds, column + BARRIER, mode) / (double)s->barrier_reps * (double)s->reps;
    }
    if (work_is_program(kind))
        r.operation_share = median_in(rounds, column + OPERATIONS, mode);
    r.batches = rounds_pick(rounds, column + WHOLE, mode, figure);
    if (s->out || r.batches == 0)
        return r;
    r.sample_ns = keep_times(s, mode, figure, r.batches, base, scale);
    r.min_ns = r.sample_ns[0];
    r.median_ns = (quantile(figure, r.batches, 0.5) - base) * scale;
    r.p95_ns = (quantile(figure, r.batches, 0.95) - base) * scale;
    r.noisy = quantile(figure, r.batches, 0.75) - quantile(figure, r.batches, 0.25) >
              0.15 * (quantile(figure, r.batches, 0.5) - base);
    return r;
}

static void prepare(struct contender *contenders, uint32_t count, struct work work, bool *prepared)
{
    for (uint32_t c = 0; c < MOST_CONTENDERS; c++)
        free_samples(&samples[c]); /* of the measurement before */
    memset(samples, 0, sizeof samples);
    for (uint32_t c = 0; c < count; c++) {
        prepared[c] = contenders[c].prepare(contenders[c].state, &work);
        samples[c].out = !prepared[c];
        samples[c].reps = calibrate(&contenders[c], &samples[c], work, BATCH_SECONDS);
    }
    heats(contenders, count, work);
    for (uint32_t c = 0; c < count; c++)
        if (bench_facts[work.kind].collective)
            samples[c].barrier_reps = calibrate(&contenders[c], &samples[c], barrier_like(&work),
                                                BARRIER_SECONDS);
}

/* Fills the row of one mode. */
static struct measured row_of(uint32_t count, const struct work *work, const struct rounds *rounds,
                              uint32_t mode, double *figure)
{
    struct measured row = { .hand_over_ns = rounds->modes.mode[mode].median_ns,
                            .disturbed = rounds_disturbed(rounds, 0),
                            .result = results[mode] };
    for (uint32_t c = 0; c < count; c++) {
        row.result[c] = reduce_samples(&samples[c], work->kind, rounds, c * FIGURES, mode, figure);
        if (row.result[c].median_ns > 0)
            row.result[c].rates = samples[c].rates[mode] = reduce_counts(&samples[c], rounds, c * FIGURES,
                                                                         mode, work);
    }
    row.too_few = rounds_too_few(rounds, mode);
    row.batches = rounds_fewest(rounds, mode);
    row.is_disturbed = rounds->disturbed;
    return row;
}

uint32_t measure(struct contender *contenders, uint32_t count, struct work work, struct measured *row)
{
    bool prepared[MOST_CONTENDERS];
    struct rounds rounds;
    prepare(contenders, count, work, prepared);
    rounds_begin(&rounds, count * FIGURES, SAMPLES);
    while (rounds_next(&rounds))
        for (uint32_t c = 0; c < count; c++) {
            if (!samples[c].out)
                sample(&contenders[c], &samples[c], work, &rounds, c * FIGURES);
            for (uint32_t f = 0; f < FIGURES && samples[c].out; f++)
                rounds_drop(&rounds, c * FIGURES + f); /* it may have failed just now */
        }
    double *figure = calloc(rounds.count, sizeof *figure);
    if (figure == NULL)
        exit(1);
    for (uint32_t m = 0; m < rounds.modes.count; m++)
        row[m] = row_of(count, &work, &rounds, m, figure);
    free(figure);
    rounds_end(&rounds);
    for (uint32_t c = 0; c < count; c++)
        if (prepared[c])
            contenders[c].finish(contenders[c].state, &work);
    return rounds.modes.count;
}
