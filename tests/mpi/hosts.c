/* tests/mpi/hosts.c - a program over MPI, for tests/mpi/check.sh.
 *
 *     hosts N           collectives of N replicas on all ranks; host 0 prints a hash of the results
 *     hosts N FAULT     the same with a fault of host 1: error, diverged, late, early, exit, kill, stop,
 *                       finalize */
#include <ditto.h>
#include <ditto/mpi.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 12, MOST = 300000 };

struct program {
    const char *fault; /* "" if there is none */
    uint32_t host;
    uint64_t hash; /* of what replica 0 has received */
};

static uint64_t hash_of(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void fill(float *x, size_t count, uint32_t id, uint32_t round)
{
    uint32_t state = 2654435761u * (id + 1) + round;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = 1.0f + (float)(state >> 8) * 0x1p-24f;
    }
}

static ditto_status make_fault(ditto_replica *self, const struct program *p)
{
    float x = 1;
    if (p->host == 1 && strcmp(p->fault, "diverged") == 0)
        return ditto_broadcast_from_root(self, &x, 1, DITTO_F32, 0, NULL);
    if (p->host != 1 || !ditto_replica_is_first_of_host(self))
        return DITTO_OK;
    if (strcmp(p->fault, "error") == 0)
        return ditto_fail(self, 5, "host 1 does not want to go on");
    if (strcmp(p->fault, "late") == 0)
        usleep(1500000);
    if (strcmp(p->fault, "exit") == 0)
        _exit(3);
    if (strcmp(p->fault, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(p->fault, "stop") == 0)
        raise(SIGSTOP);
    return DITTO_OK;
}

static ditto_status larger_of_two(void *out, const void *left, const void *right, size_t count, void *user)
{
    const float *a = left, *b = right;
    float *o = out;
    (void)user;
    for (size_t i = 0; i < count; i++)
        o[i] = a[i] > b[i] ? a[i] : b[i];
    return DITTO_OK;
}

static ditto_status collectives(ditto_replica *self, void *argument)
{
    static const size_t sizes[] = { 1, 2, 100, 1000, 5000, 40000, MOST };
    struct program *p = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    float *x, *y;
    void *memory;
    DITTO_TRY(ditto_alloc(self, 2 * (MOST + 64) * sizeof *x, 64, &memory));
    x = memory;
    y = x + MOST + 64;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        size_t count = sizes[round % 7];
        fill(x, count, id, round);
        DITTO_TRY(ditto_all_reduce(self, x, y, count, DITTO_F32, round % 2 ? DITTO_MEAN : DITTO_SUM, NULL));
        DITTO_TRY(ditto_broadcast_from_root(self, y, count / 2, DITTO_F32, round % n, NULL));
        if (id == 0)
            p->hash = hash_of(p->hash, y, count * sizeof *y);
        DITTO_TRY(ditto_all_reduce_with(self, x, y, count, sizeof *x, larger_of_two, NULL, NULL));
        if (id == 0)
            p->hash = hash_of(p->hash, y, count * sizeof *y);
        if (count / n != 0) {
            DITTO_TRY(ditto_all_gather(self, x, y, count / n, NULL, DITTO_F32, NULL));
            if (id == 0)
                p->hash = hash_of(p->hash, y, count / n * n * sizeof *y);
        }
        if (round == 5)
            DITTO_TRY(make_fault(self, p));
        if (strcmp(p->fault, "early") == 0 && p->host == 1 && round == 6)
            return DITTO_OK;
    }
    return ditto_free(self, memory);
}

static ditto_status run(uint32_t n, struct program *p)
{
    ditto_cluster *cluster;
    ditto_strategy *strategy;
    DITTO_TRY(ditto_mpi_cluster(MPI_COMM_WORLD, NULL, &cluster));
    ditto_cluster_properties on = DITTO_CLUSTER_PROPERTIES_INIT;
    DITTO_TRY(ditto_cluster_info(cluster, &on));
    p->host = on.host;
    ditto_strategy_options options = {
        .struct_size = sizeof options,
        .cluster = cluster,
        .num_replicas = ditto_cluster_share(cluster, n),
        .timeout_ms = strcmp(p->fault, "late") == 0 || strcmp(p->fault, "stop") == 0 ? 1000 : 20000
    };
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    ditto_status status = ditto_strategy_run(strategy, collectives, p);
    if (status != DITTO_OK && p->fault[0] != '\0') {
        printf("host %u: %s: %s\n", p->host, ditto_status_name(status), ditto_last_error()->message);
        fflush(stdout);
        /* The first host that ends after such an error ends all. Each may print before. MPICH's launcher
         * sends a signal to the processes that are left, which ends a sleep. */
        unsigned left = status == DITTO_ERR_LOST || strcmp(p->fault, "stop") == 0 ? 3 : 0;
        while (left != 0)
            left = sleep(left);
        p->fault = "";
        p->hash = 0;
        status = ditto_strategy_run(strategy, collectives, p);
        printf("host %u: then %s\n", p->host, ditto_status_name(status));
        fflush(stdout);
    }
    if (status != DITTO_OK)
        return status;
    if (p->host == 0)
        printf("hash %016" PRIx64 "\n", p->hash);
    if (strcmp(p->fault, "finalize") == 0)
        MPI_Finalize();
    DITTO_TRY(ditto_strategy_destroy(strategy));
    return ditto_cluster_destroy(cluster);
}

int main(int argc, char **argv)
{
    int level;
    struct program p = { .fault = argc > 2 ? argv[2] : "" };
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    return ditto_mpi_end(run(argc > 1 ? (uint32_t)atoi(argv[1]) : 8, &p));
}
