/* bench/life.c - the cost of a strategy that does no work.
 *
 * create: ns to create and destroy a strategy, as the median of 51 samples. Bound: 20 ms for 8 replicas.
 * rest:   ns of CPU time that the process uses in 1 s while a strategy does nothing. The second begins right
 *         after a run. Bound: 10 ms.
 *
 * There is no hand-written form to compare with. */
#include "alone.h"
#include "harness.h"
#include "samples.h"

#include <ditto.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static ditto_status nothing(ditto_replica *self, void *argument)
{
    (void)self, (void)argument;
    return DITTO_OK;
}

static ditto_strategy *create(uint32_t replicas)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.num_replicas = replicas;
    if (ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) != DITTO_OK) {
        fprintf(stderr, "ditto-bench: %s\n", ditto_last_error()->message);
        exit(1);
    }
    return strategy;
}

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static struct alone_counts counts;

/* Prints a row. Without rounds it has only one sample. */
static void print(const char *name, const char *what, uint32_t replicas, bool csv,
                  const struct rounds *rounds, uint32_t mode, double only_ns, double limit_ms)
{
    struct figures f = { only_ns, only_ns, only_ns, 1 };
    if (rounds != NULL)
        f = rounds_figures(rounds, 0, mode);
    if (csv) {
        alone_csv(&(struct alone_row){ .bench = name,
                                       .algorithm = "ditto",
                                       .replicas = replicas,
                                       .reps = 1,
                                       .rounds = rounds,
                                       .mode = mode,
                                       .only_ns = only_ns,
                                       .bound_ns = limit_ms * 1e6,
                                       .counts = &counts });
        return;
    }
    printf("%-10s %3u %s: %.2f ms (min %.2f, p95 %.2f); at most %.0f ms;", name, replicas, what,
           f.median * 1e-6, f.min * 1e-6, f.p95 * 1e-6, limit_ms);
    alone_end_row(rounds, 0, mode, &counts);
}

void bench_create(uint32_t replicas, bool csv)
{
    struct rounds rounds;
    rounds_begin(&rounds, 1, 51);
    while (rounds_next(&rounds)) {
        alone_start(&counts); /* counts this thread only, because the others are created later */
        double begin = now_seconds();
        must(ditto_strategy_destroy(create(replicas)));
        double seconds = now_seconds() - begin;
        alone_stop(&counts, 1);
        rounds_put(&rounds, 0, seconds * 1e9);
    }
    for (uint32_t mode = 0; mode < rounds.modes.count; mode++)
        print("create", "create and destroy", replicas, csv, &rounds, mode, 0, 20);
    rounds_end(&rounds);
    alone_forget(&counts);
}

void bench_rest(uint32_t replicas, bool csv)
{
    ditto_strategy *strategy = create(replicas);
    must(ditto_strategy_run(strategy, nothing, NULL));
    alone_start(&counts);
    double begin = cpu_seconds();
    sleep(1);
    double used = cpu_seconds() - begin;
    alone_stop(&counts, 1);
    print("rest", "CPU time in 1 s at rest", replicas, csv, NULL, 0, used * 1e9, 10);
    alone_forget(&counts);
    must(ditto_strategy_destroy(strategy));
}
