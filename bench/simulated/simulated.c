/* bench/simulated/simulated.c - all-reduce over many hosts in a simulated network, beside MPI_Allreduce.
 *
 * libditto and its wire over MPI run as they are, on SimGrid's MPI: each host is a thread of one process, and
 * its messages take the time that they would take on the described network. A message that is sent or
 * received takes 0.3 us of a processor, and all else that processors do takes no time. run.sh builds and
 * starts this program.
 *
 *     simulated BYTES        measures both, with messages of at most so many bytes
 *     simulated BYTES mpi    measures MPI_Allreduce alone
 *
 * A line has the number of hosts, the bytes of the message, what the busiest host has sent (messages, bytes,
 * and the same as src/sync/plans/volume.h predicts), and the simulated microseconds of ditto and of
 * MPI_Allreduce. */
#include <ditto.h>
#include <ditto/mpi.h>

#include "sync/plans/volume.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* gaps.h */
uint64_t sent_messages, sent_bytes;
int tests_in_vain;

/* As in src/hosts, and in src/sync/hosts/large.c. */
enum {
    DIRECT_HOSTS = 16,
    HEADER_BYTES = 80,
    SLICE_BYTES = 64 << 10,
    BLOCK_BYTES = 1 << 20,
    LINE_FLOATS = 16,
    REPETITIONS = 3
};

struct measured {
    float *src, *dst;
    size_t count;
    double ditto_seconds, mpi_seconds;
    uint64_t messages, bytes;
};

/* Returns the seconds from the last host that began to the last one that ended. All hosts have one clock. A
 * barrier lets hosts go at different times, and some do not wait for it as others do. */
static double last_to_last(double begin)
{
    double own[2] = { begin, MPI_Wtime() }, last[2];
    MPI_Allreduce(own, last, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return last[1] - last[0];
}

static uint64_t busiest(uint64_t number)
{
    uint64_t all;
    MPI_Allreduce(&number, &all, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static ditto_status measure(ditto_replica *self, void *argument)
{
    struct measured *m = argument;
    for (int i = 0; i < REPETITIONS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        uint64_t messages = sent_messages, bytes = sent_bytes;
        double begin = MPI_Wtime();
        DITTO_TRY(ditto_all_reduce(self, m->src, m->dst, m->count, DITTO_F32, DITTO_SUM, NULL));
        m->ditto_seconds = last_to_last(begin);
        m->messages = busiest(sent_messages - messages);
        m->bytes = busiest(sent_bytes - bytes);
    }
    return DITTO_OK;
}

static void measure_mpi(struct measured *m)
{
    for (int i = 0; i < REPETITIONS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        MPI_Allreduce(m->src, m->dst, (int)m->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        m->mpi_seconds = last_to_last(begin);
    }
}

typedef struct dti_volume volume_fn(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                    uint32_t host, const struct dti_volume_size *size);

/* Returns how small messages go. */
static volume_fn *small_volume(uint32_t hosts)
{
    bool is_cube = (hosts & (hosts - 1)) == 0;
    return hosts <= DIRECT_HOSTS ? dti_volume_small_direct
           : is_cube             ? dti_volume_small_combined
                                 : dti_volume_small_steps;
}

/* Predicts what host 0 sends without its data: one header for each other host, or, if 2^k hosts combine what
 * they pass on, in each step. */
static struct dti_volume predict_headers(uint32_t hosts, const struct dti_tree *tree,
                                         const struct dti_ranges *ranges)
{
    const struct dti_volume_size one = { .count = 1, .element_bytes = 1, .accumulator_bytes = 1 };
    volume_fn *volume = small_volume(hosts);
    struct dti_volume v = volume(tree, ranges, 0, &one);
    v.sent_bytes *= HEADER_BYTES;
    return v;
}

/* Predicts what host 0 sends, with the headers. The plan is a large one if more is counted than one message
 * for each other host. */
static struct dti_volume predict(uint32_t hosts, size_t count, bool is_large)
{
    size_t slice = BLOCK_BYTES / hosts / 64 * 64;
    slice = slice > SLICE_BYTES ? slice : SLICE_BYTES;
    /* Data behind a header are whole groups of 16 bytes. */
    const struct dti_volume_size size = { .count = is_large ? count : (count + 3) / 4 * 4,
                                          .block_count = hosts * slice / sizeof(float),
                                          .grain = LINE_FLOATS,
                                          .element_bytes = sizeof(float),
                                          .accumulator_bytes = sizeof(float) };
    uint32_t *first = malloc((hosts + 1) * sizeof *first);
    for (uint32_t h = 0; h <= hosts; h++)
        first[h] = h;
    const struct dti_ranges ranges = { hosts, first };
    const struct dti_tree tree = { .n = hosts };
    volume_fn *small = small_volume(hosts);
    struct dti_volume v = predict_headers(hosts, &tree, &ranges),
                      data = is_large ? dti_volume_large(&tree, &ranges, 0, &size)
                                      : small(&tree, &ranges, 0, &size);
    free(first);
    v.sent_bytes += data.sent_bytes;
    v.sent_messages += is_large ? data.sent_messages : 0;
    return v;
}

/* If the strategy is NULL, MPI alone is measured. */
static ditto_status measure_size(ditto_strategy *strategy, int rank, int hosts, size_t count)
{
    struct measured m = { .count = count };
    m.src = malloc(count * sizeof *m.src);
    m.dst = malloc(count * sizeof *m.dst);
    for (size_t i = 0; i < count; i++)
        m.src[i] = (float)(i % 64) + (float)rank;
    ditto_status status = strategy != NULL ? ditto_strategy_run(strategy, measure, &m) : DITTO_OK;
    measure_mpi(&m);
    struct dti_volume v = predict((uint32_t)hosts, count, m.messages > (uint64_t)hosts - 1);
    if (status == DITTO_OK && rank == 0)
        printf("%d,%zu,%llu,%u,%llu,%llu,%.1f,%.1f\n", hosts, count * sizeof(float),
               (unsigned long long)m.messages, v.sent_messages, (unsigned long long)m.bytes,
               (unsigned long long)v.sent_bytes, 1e6 * m.ditto_seconds, 1e6 * m.mpi_seconds);
    free(m.src);
    free(m.dst);
    return status;
}

static ditto_status measure_all(int rank, int hosts, size_t most_bytes, bool only_mpi)
{
    static const size_t counts[] = { 2, 64, 1024, 8192, 262144, 2097152 };
    ditto_cluster_options cluster_options = DITTO_CLUSTER_OPTIONS_INIT;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy = NULL;
    cluster_options.life_line = DITTO_SWITCH_OFF; /* its connections would not be simulated */
    cluster_options.timeout_ms = DITTO_FOREVER;
    options.num_replicas = 1;
    options.timeout_ms = DITTO_FOREVER;
    if (!only_mpi) {
        DITTO_TRY(ditto_mpi_cluster(MPI_COMM_WORLD, &cluster_options, &options.cluster));
        DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && counts[i] * sizeof(float) <= most_bytes; i++)
        DITTO_TRY(measure_size(strategy, rank, hosts, counts[i]));
    return DITTO_OK;
}

int main(int argc, char **argv)
{
    int level, rank, hosts;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &hosts);
    size_t most_bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    ditto_status status = measure_all(rank, hosts, most_bytes, argc > 2);
    if (status != DITTO_OK)
        fprintf(stderr, "host %d: %s\n", rank, ditto_last_error()->message);
    fflush(NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Nothing is destroyed, because SimGrid's MPI cannot cancel receives. This ends all hosts. */
    _exit(status != DITTO_OK);
}
