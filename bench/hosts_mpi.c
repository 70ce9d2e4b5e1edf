/* bench/hosts_mpi.c - all-reduce over several hosts, beside MPI and beside a bound.
 *
 *     mpirun -np H build/bench/hosts-openmpi [BYTES ...] [--csv]
 *     mpiexec -n H build/bench/hosts-mpich [BYTES ...] [--csv]
 *
 * Each process is a host of one replica. The contenders take turns, each with a batch of repetitions on data
 * that it has rewritten before each repetition, and the figures are medians over the batches:
 *   ditto  ditto_all_reduce
 *   MPI    MPI_Allreduce of the same processes
 *   bound  for two hosts: each sends half of its elements to the other, adds its own half to what has come,
 *          and sends the sums back, with MPI_Isend and MPI_Irecv */
#include "../examples/command_line.h"

#include <ditto.h>
#include <ditto/mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 15, MOST_REPS = 2000, MOST_SIZES = 64 };
#define MOST_BYTES    ((size_t)64 << 20)
#define BATCH_SECONDS 0.05

enum contender { DITTO, MPI, BOUND, CONTENDERS };
static const char *const names[] = { "ditto", "MPI", "bound" };

struct bench {
    ditto_replica *self;
    int host, hosts;
    float *src, *dst, *incoming;
    size_t count;
};

static void rewrite(const struct bench *b)
{
    for (size_t i = 0; i < b->count; i++)
        b->src[i] = (float)(i % 64) + (float)b->host;
}

static void bound(const struct bench *b)
{
    size_t half = b->count / 2, own = b->host == 0 ? 0 : half, other = half - own,
           own_count = b->host == 0 ? half : b->count - half, other_count = b->count - own_count;
    int partner = 1 - b->host;
    MPI_Request request[2];
    MPI_Status status[2];
    MPI_Irecv(b->incoming, (int)own_count, MPI_FLOAT, partner, 0, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(b->src + other, (int)other_count, MPI_FLOAT, partner, 0, MPI_COMM_WORLD, &request[1]);
    MPI_Waitall(2, request, status);
    for (size_t i = 0; i < own_count; i++)
        b->dst[own + i] = b->src[own + i] + b->incoming[i];
    MPI_Irecv(b->dst + other, (int)other_count, MPI_FLOAT, partner, 1, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(b->dst + own, (int)own_count, MPI_FLOAT, partner, 1, MPI_COMM_WORLD, &request[1]);
    MPI_Waitall(2, request, status);
}

static ditto_status once(const struct bench *b, enum contender contender)
{
    switch (contender) {
    case DITTO:
        return ditto_all_reduce(b->self, b->src, b->dst, b->count, DITTO_F32, DITTO_SUM, NULL);
    case MPI:
        MPI_Allreduce(b->src, b->dst, (int)b->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        return DITTO_OK;
    default:
        bound(b);
        return DITTO_OK;
    }
}

/* Every element is checked, so that a contender that moves nothing has no figure. */
static bool is_right(const struct bench *b)
{
    size_t i = 0;
    float hosts = (float)b->hosts;
    while (i < b->count && b->dst[i] == hosts * (float)(i % 64) + hosts * (hosts - 1) / 2)
        i++;
    return i == b->count;
}

/* Returns the seconds of one repetition, of the slowest host. */
static ditto_status batch(const struct bench *b, enum contender contender, int reps, double *seconds)
{
    double spent = 0, longest;
    for (int i = 0; i < reps; i++) {
        rewrite(b);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        DITTO_TRY(once(b, contender));
        spent += MPI_Wtime() - begin;
    }
    if (!is_right(b))
        return ditto_fail(b->self, 1, "%s has a wrong result for %zu elements", names[contender], b->count);
    spent /= reps;
    MPI_Allreduce(&spent, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *seconds = longest;
    return DITTO_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static ditto_status measure(struct bench *b, size_t bytes, bool csv)
{
    static double seconds[CONTENDERS][BATCHES];
    double once_seconds;
    b->count = bytes / sizeof(float);
    DITTO_TRY(batch(b, DITTO, 3, &once_seconds)); /* warms up, and shows how long a repetition takes */
    DITTO_TRY(batch(b, MPI, 3, &once_seconds));
    int reps = (int)(BATCH_SECONDS / once_seconds) + 1;
    reps = reps < MOST_REPS ? reps : MOST_REPS;
    MPI_Bcast(&reps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < BATCHES; i++)
        for (int c = 0; c < CONTENDERS; c++)
            if (c != BOUND || b->hosts == 2)
                DITTO_TRY(batch(b, (enum contender)c, reps, &seconds[c][i]));
    double us[CONTENDERS];
    for (int c = 0; c < CONTENDERS; c++) {
        qsort(seconds[c], BATCHES, sizeof seconds[c][0], compare);
        us[c] = seconds[c][BATCHES / 2] * 1e6;
    }
    if (b->host != 0)
        return DITTO_OK;
    if (csv)
        printf("hosts,%d,%zu,%.2f,%.2f,%.2f\n", b->hosts, bytes, us[DITTO], us[MPI], us[BOUND]);
    else
        printf("%10zu bytes: ditto %9.1f us, MPI %9.1f us (%.2f), bound %9.1f us (%.2f)\n", bytes, us[DITTO],
               us[MPI], us[DITTO] / us[MPI], us[BOUND], us[BOUND] > 0 ? us[DITTO] / us[BOUND] : 0);
    fflush(stdout);
    return DITTO_OK;
}

struct request {
    bool csv;
    size_t bytes[MOST_SIZES];
    int sizes;
};

static ditto_status bench(ditto_replica *self, void *argument)
{
    struct bench b = { .self = self };
    void *memory;
    MPI_Comm_rank(MPI_COMM_WORLD, &b.host);
    MPI_Comm_size(MPI_COMM_WORLD, &b.hosts);
    DITTO_TRY(ditto_alloc(self, 3 * MOST_BYTES, 64, &memory));
    b.src = memset(memory, 0, 3 * MOST_BYTES);
    b.dst = b.src + MOST_BYTES / sizeof(float);
    b.incoming = b.dst + MOST_BYTES / sizeof(float);
    const struct request *request = argument;
    for (int i = 0; i < request->sizes; i++)
        DITTO_TRY(measure(&b, request->bytes[i], request->csv));
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
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, bench, request));
    DITTO_TRY(ditto_strategy_destroy(strategy));
    return ditto_cluster_destroy(cluster);
}

int main(int argc, char **argv)
{
    enum { CSV, BYTES };
    static const struct command_row rows[] = {
        [CSV] = { "--csv", NULL, "print hosts,number,bytes,ditto,MPI,bound, in microseconds" },
        [BYTES] = { NULL, "BYTES...", "sizes: 4 to 67108864 (default: eight from 8 to 67108864)" },
        { 0 },
    };
    struct command_line line = command_line_of(
        "[BYTES ...] [--csv]", "Measures an all-reduce over several hosts, beside MPI.", rows, argc, argv);
    struct request request = { .bytes = { 8, 256, 4096, 32768, 262144, 1 << 20, 8 << 20, MOST_BYTES } };
    for (int row; (row = command_next(&line)) >= 0;)
        if (row == CSV)
            request.csv = true;
        else if (request.sizes < MOST_SIZES)
            request.bytes[request.sizes++] = command_number(&line, sizeof(float), MOST_BYTES);
        else
            command_refuse(&line, "%s is one size too many: there are at most %d", line.value, MOST_SIZES);
    request.sizes = request.sizes > 0 ? request.sizes : 8;
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    return ditto_mpi_end(run(&request));
}
