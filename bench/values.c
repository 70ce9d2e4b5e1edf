/* bench/values.c - the cost of a strategy's calls, compared with a run or a barrier.
 *
 * run-values:    ns of ditto_strategy_run_values with three per-replica arguments and one scalar result,
 *                which is destroyed. It is compared with ditto_strategy_run. Bound: 1000 ns more than that.
 * reduce-values: ns of ditto_strategy_reduce of a per-replica value, and of destroying the result. It is
 *                compared with a barrier. Bound for a scalar: 5 barriers.
 * merge-call:    ns of ditto_merge_call with an empty function, compared with a barrier. Bound: 2.5 barriers.
 * trace:         ns of an all-reduce of 8 bytes while the strategy is traced, compared with one while it is
 *                not. No bound.
 *
 * The figures are medians of batches. Batches of both sides are interleaved, in the scope of the strategy. */
#include "alone.h"
#include "harness.h"
#include "samples.h"

#include <ditto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 31, REPS = 2000 };

/* The two calls that a row compares. */
struct pair {
    ditto_strategy *strategy;
    ditto_value *value;
    double (*subject)(struct pair *pair), (*base)(struct pair *pair); /* return seconds of REPS calls */
    struct rounds rounds;       /* the ns of a call: of the subject, and of the base */
    double inside;              /* the seconds that were measured inside a run */
    struct alone_counts counts; /* of the subject */
};

enum side { SUBJECT, BASE, SIDES };

static void measure_pair(struct pair *pair)
{
    rounds_begin(&pair->rounds, SIDES, SAMPLES);
    while (rounds_next(&pair->rounds)) {
        alone_start(&pair->counts);
        double subject = pair->subject(pair);
        alone_stop(&pair->counts, REPS);
        rounds_put(&pair->rounds, SUBJECT, subject * 1e9 / REPS);
        rounds_put(&pair->rounds, BASE, pair->base(pair) * 1e9 / REPS);
    }
}

/* -- run -- */

static ditto_status nothing(ditto_replica *self, void *unused)
{
    (void)self, (void)unused;
    return DITTO_OK;
}

static double bare_runs(struct pair *pair)
{
    double begin = now_seconds();
    for (int i = 0; i < REPS; i++)
        must(ditto_strategy_run(pair->strategy, nothing, NULL));
    return now_seconds() - begin;
}

static ditto_status add_arguments(ditto_replica *self, void *unused)
{
    static const char *const names[] = { "0", "1", "2" };
    double sum = 0;
    (void)unused;
    for (int i = 0; i < 3; i++) {
        ditto_tensor t;
        DITTO_TRY(ditto_argument(self, names[i], &t));
        sum += *(const double *)t.data;
    }
    return ditto_return_f64(self, NULL, sum);
}

static double runs_with_values(struct pair *pair)
{
    double begin = now_seconds();
    for (int i = 0; i < REPS; i++) {
        ditto_value *result;
        must(ditto_strategy_run_values(pair->strategy, add_arguments, NULL, pair->value, NULL, &result));
        must(ditto_value_destroy(result));
    }
    return now_seconds() - begin;
}

/* -- reduce -- */

static ditto_status barriers_inside(ditto_replica *self, void *argument)
{
    struct pair *pair = argument;
    double begin = now_seconds();
    for (int i = 0; i < REPS; i++)
        DITTO_TRY(ditto_barrier(self, NULL));
    if (ditto_replica_id(self) == 0)
        pair->inside = now_seconds() - begin;
    return DITTO_OK;
}

static double barriers(struct pair *pair)
{
    must(ditto_strategy_run(pair->strategy, barriers_inside, pair));
    return pair->inside;
}

static double reductions(struct pair *pair)
{
    double begin = now_seconds();
    for (int i = 0; i < REPS; i++) {
        ditto_value *result;
        must(ditto_strategy_reduce(pair->strategy, DITTO_SUM, pair->value, NULL, 0, &result));
        must(ditto_value_destroy(result));
    }
    return now_seconds() - begin;
}

/* -- merge_call -- */

static ditto_status merge_nothing(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                  void *user, ditto_value **result)
{
    (void)strategy, (void)arguments, (void)count, (void)user, (void)result;
    return DITTO_OK;
}

static ditto_status merges_inside(ditto_replica *self, void *argument)
{
    struct pair *pair = argument;
    double begin = now_seconds();
    for (int i = 0; i < REPS; i++)
        DITTO_TRY(ditto_merge_call(self, merge_nothing, NULL, NULL, 0, NULL));
    if (ditto_replica_id(self) == 0)
        pair->inside = now_seconds() - begin;
    return DITTO_OK;
}

static double merges(struct pair *pair)
{
    must(ditto_strategy_run(pair->strategy, merges_inside, pair));
    return pair->inside;
}

/* -- trace -- */

static ditto_status reduce_inside(ditto_replica *self, void *argument)
{
    struct pair *pair = argument;
    double x = 1, begin = now_seconds();
    for (int i = 0; i < REPS; i++)
        DITTO_TRY(ditto_all_reduce(self, &x, &x, 1, DITTO_F64, DITTO_MAX, NULL));
    if (ditto_replica_id(self) == 0)
        pair->inside = now_seconds() - begin;
    return DITTO_OK;
}

static double untraced(struct pair *pair)
{
    must(ditto_strategy_run(pair->strategy, reduce_inside, pair));
    return pair->inside;
}

static double traced(struct pair *pair)
{
    must(ditto_strategy_trace_start(pair->strategy, NULL));
    must(ditto_strategy_run(pair->strategy, reduce_inside, pair));
    must(ditto_strategy_trace_stop(pair->strategy));
    return pair->inside;
}

/* -- rows -- */

/* Makes a per-replica value with `count` elements on each replica. */
static ditto_value *make_value(ditto_strategy *strategy, size_t count)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    ditto_tensor *t = calloc(n, sizeof *t);
    double *zeros = calloc(count, sizeof *zeros);
    ditto_value *value;
    if (t == NULL || zeros == NULL)
        exit(1);
    for (uint32_t i = 0; i < n; i++)
        t[i] = (ditto_tensor){
            .data = zeros, .dtype = DITTO_F64, .rank = count != 1, .shape = { count != 1 ? count : 0 }
        };
    must(ditto_strategy_value_from_tensors(strategy, t, 1, &value));
    free(zeros);
    free(t);
    return value;
}

/* Makes a nest that has one value three times. */
static ditto_value *make_arguments(ditto_strategy *strategy)
{
    ditto_value *one = make_value(strategy, 1), *nest;
    const ditto_value *members[] = { one, one, one };
    must(ditto_strategy_nest(strategy, NULL, members, 3, &nest));
    must(ditto_value_destroy(one));
    return nest;
}

/* Prints a row for each mode. Its limit is the median of the base * factor + more ns. There is none if
 * that is 0. */
static void print(const char *name, uint32_t replicas, size_t bytes, struct pair *p, const char *base_name,
                  double factor, double more, bool csv)
{
    for (uint32_t mode = 0; mode < p->rounds.modes.count; mode++) {
        double subject = rounds_figures(&p->rounds, SUBJECT, mode).median;
        double base = rounds_figures(&p->rounds, BASE, mode).median, limit = base * factor + more;
        if (csv) {
            alone_csv(&(struct alone_row){ .bench = name,
                                           .algorithm = "ditto",
                                           .replicas = replicas,
                                           .dtype = "f64",
                                           .op = "SUM",
                                           .bytes = bytes,
                                           .reps = REPS,
                                           .rounds = &p->rounds,
                                           .column = SUBJECT,
                                           .mode = mode,
                                           .bound_ns = limit,
                                           .counts = &p->counts });
            continue;
        }
        printf("%-14s %3u %9zu %12.0f ns; %s %.0f ns;", name, replicas, bytes, subject, base_name, base);
        if (limit > 0)
            printf(" at most %.0f ns;", limit);
        alone_end_row(&p->rounds, SUBJECT, mode, &p->counts);
    }
}

static struct pair open_pair(uint32_t replicas)
{
    struct pair pair = { .value = NULL };
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.num_replicas = replicas;
    must(ditto_strategy_create(DITTO_MIRRORED, &options, &pair.strategy));
    must(ditto_strategy_scope_enter(pair.strategy));
    return pair;
}

static void close_pair(struct pair *pair)
{
    alone_forget(&pair->counts);
    rounds_end(&pair->rounds);
    must(ditto_value_destroy(pair->value));
    must(ditto_strategy_scope_leave(pair->strategy));
    must(ditto_strategy_destroy(pair->strategy));
}

void bench_run_values(uint32_t replicas, bool csv)
{
    struct pair pair = open_pair(replicas);
    pair.value = make_arguments(pair.strategy);
    pair.subject = runs_with_values;
    pair.base = bare_runs;
    measure_pair(&pair);
    print("run-values", replicas, 24, &pair, "a bare run", 1, 1000, csv);
    close_pair(&pair);
}

void bench_reduce_values(uint32_t replicas, bool csv)
{
    static const size_t counts[] = { 1, 1024, 16384, 262144 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct pair pair = open_pair(replicas);
        pair.value = make_value(pair.strategy, counts[i]);
        pair.subject = reductions;
        pair.base = barriers;
        measure_pair(&pair);
        print("reduce-values", replicas, 8 * counts[i], &pair, "a barrier", counts[i] == 1 ? 5 : 0, 0, csv);
        close_pair(&pair);
    }
}

void bench_merge_call(uint32_t replicas, bool csv)
{
    struct pair pair = open_pair(replicas);
    pair.subject = merges;
    pair.base = barriers;
    measure_pair(&pair);
    print("merge-call", replicas, 0, &pair, "a barrier", 2.5, 0, csv);
    close_pair(&pair);
}

void bench_trace(uint32_t replicas, bool csv)
{
    struct pair pair = open_pair(replicas);
    pair.subject = traced;
    pair.base = untraced;
    measure_pair(&pair);
    print("trace", replicas, 8, &pair, "untraced", 0, 0, csv);
    close_pair(&pair);
}
