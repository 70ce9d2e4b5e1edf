/* bench/neighbours.c - exchange: ns of ditto_exchange on a ring, in which each replica gives a row to both
 * neighbours, beside the same in a program that knows their addresses: a barrier, two copies and a barrier.
 * Bound: 1.1 times that, or 50 ns more.
 *
 * Data is fresh: both sides write their rows before, and read what they have received. The figures are
 * medians of interleaved batches, measured on replica 0. */
#include "alone.h"
#include "harness.h"
#include "samples.h"

#include <ditto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 31, MOST = 64, ROWS = 4 };

enum side { EXCHANGE, POINTERS, SIDES };

struct ring {
    ditto_strategy *strategy;
    size_t count;     /* of floats in a row */
    uint64_t reps;    /* in a batch */
    float *row[MOST]; /* [ROWS][count] of each replica: 1 and 2 are its own, 0 and 3 its neighbours' */
    enum side side;
    double seconds; /* of the batch */
    volatile float sink[MOST];
    struct rounds rounds; /* the ns of an exchange */
    struct alone_counts counts;
};

static ditto_status copy_rows(ditto_replica *self, const struct ring *ring, uint32_t above, uint32_t below)
{
    float *own = ring->row[ditto_replica_id(self)];
    size_t bytes = ring->count * sizeof *own;
    DITTO_TRY(ditto_barrier(self, NULL)); /* all rows are written */
    memcpy(own, ring->row[above] + 2 * ring->count, bytes);
    memcpy(own + 3 * ring->count, ring->row[below] + ring->count, bytes);
    return ditto_barrier(self, NULL); /* no row is read any more */
}

static ditto_status run_batch(ditto_replica *self, void *argument)
{
    struct ring *ring = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    uint32_t above = (id + n - 1) % n, below = (id + 1) % n;
    size_t count = ring->count;
    float *own = ring->row[id], sum = 0;
    const ditto_exchange_part part[] = {
        { above, above, own + count, own, count, count, DITTO_F32 },
        { below, id, own + 2 * count, own + 3 * count, count, count, DITTO_F32 },
    };
    double begin = now_seconds();
    for (uint64_t rep = 0; rep < ring->reps; rep++) {
        for (size_t i = count; i < 3 * count; i++)
            own[i] = (float)rep;
        DITTO_TRY(ring->side == EXCHANGE ? ditto_exchange(self, part, 2, NULL)
                                         : copy_rows(self, ring, above, below));
        for (size_t i = 0; i < count; i += 16)
            sum += own[i] + own[3 * count + i];
    }
    ring->sink[id] = sum;
    if (id == 0)
        ring->seconds = now_seconds() - begin;
    return DITTO_OK;
}

static double batch(struct ring *ring, enum side side)
{
    ring->side = side;
    must(ditto_strategy_run(ring->strategy, run_batch, ring));
    return ring->seconds;
}

static void measure_ring(struct ring *ring)
{
    for (ring->reps = 16; batch(ring, POINTERS) < 0.004;)
        ring->reps *= 2;
    rounds_begin(&ring->rounds, SIDES, SAMPLES);
    while (rounds_next(&ring->rounds)) {
        alone_start(&ring->counts);
        double seconds = batch(ring, EXCHANGE);
        alone_stop(&ring->counts, ring->reps);
        rounds_put(&ring->rounds, EXCHANGE, seconds * 1e9 / (double)ring->reps);
        rounds_put(&ring->rounds, POINTERS, batch(ring, POINTERS) * 1e9 / (double)ring->reps);
    }
}

static void print_rows(const struct ring *ring, uint32_t replicas, bool csv)
{
    for (uint32_t mode = 0; mode < ring->rounds.modes.count; mode++) {
        double found = rounds_figures(&ring->rounds, EXCHANGE, mode).median;
        double base = rounds_figures(&ring->rounds, POINTERS, mode).median;
        double bound = base * 1.1 > base + 50 ? base * 1.1 : base + 50;
        size_t bytes = ring->count * sizeof(float);
        if (csv) {
            alone_csv(&(struct alone_row){ .bench = "exchange",
                                           .algorithm = "ditto",
                                           .replicas = replicas,
                                           .dtype = "f32",
                                           .bytes = bytes,
                                           .reps = ring->reps,
                                           .rounds = &ring->rounds,
                                           .column = EXCHANGE,
                                           .mode = mode,
                                           .bound_ns = bound,
                                           .counts = &ring->counts });
            continue;
        }
        printf("%-14s %3u %9zu %12.0f ns; with pointers %.0f ns; at most %.0f ns;", "exchange", replicas,
               bytes, found, base, bound);
        alone_end_row(&ring->rounds, EXCHANGE, mode, &ring->counts);
    }
}

void bench_exchange(uint32_t replicas, bool csv)
{
    static const size_t bytes[] = { 64, 1024, 16384, 262144 };
    if (replicas < 2 || replicas > MOST) {
        fprintf(stderr, "ditto-bench: exchange: a ring has 2 to %d replicas\n", MOST);
        exit(2);
    }
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        static struct ring ring;
        ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
        memset(&ring, 0, sizeof ring);
        options.num_replicas = replicas;
        ring.count = bytes[i] / sizeof(float);
        must(ditto_strategy_create(DITTO_MIRRORED, &options, &ring.strategy));
        for (uint32_t r = 0; r < replicas; r++)
            if ((ring.row[r] = aligned_alloc(128, ROWS * bytes[i])) == NULL)
                exit(1);
        measure_ring(&ring);
        print_rows(&ring, replicas, csv);
        for (uint32_t r = 0; r < replicas; r++)
            free(ring.row[r]);
        alone_forget(&ring.counts);
        rounds_end(&ring.rounds);
        must(ditto_strategy_destroy(ring.strategy));
    }
}
