/* bench/overlap_mpi.c - how much of an all-reduce over several hosts is hidden behind computing.
 *
 *     mpirun -np H build/bench/overlap-openmpi [BYTES ...] [--replica]
 *     mpiexec -n H build/bench/overlap-mpich [BYTES ...] [--replica]
 *
 * Each process is a host of one replica. Its caller only waits (DITTO_CALLER_WAITS), or is the replica
 * (--replica). Three kinds of steps take turns, on data that is rewritten before each step:
 *   all-reduce  ditto_all_reduce
 *   computing   arithmetic in registers, which takes as long as the all-reduce, or up to twice as long if the
 *               hosts share cores
 *   both        ditto_all_reduce_start, the same arithmetic, ditto_wait
 * `hidden` is how much of the shorter one of the first two does not show in the third. */
#include "../examples/command_line.h"

#include <ditto.h>
#include <ditto/mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 31, MOST_SIZES = 64 };
#define MOST_BYTES ((size_t)64 << 20)

enum kind { ALL_REDUCE, COMPUTING, BOTH, KINDS };

struct bench {
    ditto_replica *self;
    float *src, *dst;
    size_t count;
    uint64_t loops; /* of the arithmetic */
    volatile double result;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute(struct bench *b)
{
    double x = b->result; /* volatile, so that nothing is computed earlier */
    for (uint64_t i = 0; i < b->loops; i++)
        x = x * 0.999 + 1e-3;
    b->result = x;
}

static ditto_status step(struct bench *b, enum kind kind, double *seconds)
{
    ditto_pending pending;
    for (size_t i = 0; i < b->count; i++)
        b->src[i] = (float)(i % 64) + (float)ditto_replica_id(b->self);
    DITTO_TRY(ditto_barrier(b->self, NULL));
    double begin = now();
    if (kind == ALL_REDUCE)
        DITTO_TRY(ditto_all_reduce(b->self, b->src, b->dst, b->count, DITTO_F32, DITTO_SUM, NULL));
    if (kind == BOTH)
        DITTO_TRY(
            ditto_all_reduce_start(b->self, b->src, b->dst, b->count, DITTO_F32, DITTO_SUM, NULL, &pending));
    if (kind != ALL_REDUCE)
        compute(b);
    if (kind == BOTH)
        DITTO_TRY(ditto_wait(b->self, &pending, NULL));
    *seconds = now() - begin;
    return DITTO_OK;
}

/* Every element is checked, so that a step that moves nothing has no figure. */
static bool is_right(const struct bench *b)
{
    size_t i = 0;
    float n = (float)ditto_num_replicas(b->self);
    while (i < b->count && b->dst[i] == n * (float)(i % 64) + n * (n - 1) / 2)
        i++;
    return i == b->count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sets the loops so that computing takes about as long as the all-reduce, on all hosts the same. */
static ditto_status calibrate(struct bench *b)
{
    double all_reduce, computing, loops;
    b->loops = 1000000;
    for (int i = 0; i < 3; i++)
        DITTO_TRY(step(b, ALL_REDUCE, &all_reduce));
    DITTO_TRY(step(b, COMPUTING, &computing));
    double own = (double)b->loops * all_reduce / computing;
    DITTO_TRY(ditto_all_reduce(b->self, &own, &loops, 1, DITTO_F64, DITTO_MEAN, NULL));
    b->loops = (uint64_t)loops;
    return DITTO_OK;
}

static ditto_status measure(struct bench *b, size_t bytes)
{
    double seconds[KINDS][STEPS], us[KINDS];
    b->count = bytes / sizeof(float);
    DITTO_TRY(calibrate(b));
    for (int i = 0; i < STEPS; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            DITTO_TRY(step(b, (enum kind)kind, &seconds[kind][i]));
            if (kind != COMPUTING && !is_right(b))
                return ditto_fail(b->self, 1, "a wrong result for %zu elements", b->count);
        }
    for (int kind = 0; kind < KINDS; kind++) {
        qsort(seconds[kind], STEPS, sizeof seconds[kind][0], compare);
        us[kind] = seconds[kind][STEPS / 2] * 1e6;
    }
    double shorter = us[ALL_REDUCE] < us[COMPUTING] ? us[ALL_REDUCE] : us[COMPUTING];
    if (ditto_replica_id(b->self) == 0)
        printf("%10zu bytes: all-reduce %9.1f us, computing %9.1f us, both %9.1f us, hidden %3.0f %%\n",
               bytes, us[ALL_REDUCE], us[COMPUTING], us[BOTH],
               100 * (us[ALL_REDUCE] + us[COMPUTING] - us[BOTH]) / shorter);
    fflush(stdout);
    return DITTO_OK;
}

struct request {
    bool replica;
    size_t bytes[MOST_SIZES];
    int sizes;
};

static ditto_status bench(ditto_replica *self, void *argument)
{
    const struct request *request = argument;
    struct bench b = { .self = self };
    void *memory;
    DITTO_TRY(ditto_alloc(self, 2 * MOST_BYTES, 64, &memory));
    b.src = memory;
    b.dst = b.src + MOST_BYTES / sizeof(float);
    for (int i = 0; i < request->sizes; i++)
        DITTO_TRY(measure(&b, request->bytes[i]));
    return ditto_free(self, memory);
}

static ditto_status run(struct request *request)
{
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    DITTO_TRY(ditto_mpi_cluster(MPI_COMM_WORLD, NULL, &cluster));
    options.cluster = cluster;
    options.num_replicas = 1;
    options.caller = request->replica ? DITTO_CALLER_IS_REPLICA_0 : DITTO_CALLER_WAITS;
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    ditto_status status = ditto_strategy_run(strategy, bench, request);
    DITTO_TRY(ditto_strategy_destroy(strategy));
    DITTO_TRY(ditto_cluster_destroy(cluster));
    return status;
}

int main(int argc, char **argv)
{
    enum { REPLICA, BYTES };
    static const struct command_row rows[] = {
        [REPLICA] = { "--replica", NULL, "the caller is a replica, and not only waiting" },
        [BYTES] = { NULL, "BYTES...", "sizes: 4 to 67108864 (default: 4096 262144 1048576 8388608)" },
        { 0 },
    };
    struct command_line line = command_line_of(
        "[BYTES ...] [--replica]", "Measures how much of an all-reduce is hidden behind computing.", rows,
        argc, argv);
    struct request request = { .bytes = { 4096, 262144, 1 << 20, 8 << 20 } };
    for (int row; (row = command_next(&line)) >= 0;)
        if (row == REPLICA)
            request.replica = true;
        else if (request.sizes < MOST_SIZES)
            request.bytes[request.sizes++] = command_number(&line, sizeof(float), MOST_BYTES);
        else
            command_refuse(&line, "%s is one size too many: there are at most %d", line.value, MOST_SIZES);
    request.sizes = request.sizes > 0 ? request.sizes : 4;
    int level;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return 1;
    return ditto_mpi_end(run(&request));
}
