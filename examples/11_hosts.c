/* Lesson 11: several hosts. One strategy spans all processes that an MPI launcher has started, and its
 * results have the same bits on any number of them.
 *
 *     mpirun.openmpi --bind-to none -np 2 build/examples/11_hosts-openmpi [REPLICAS]
 *     mpiexec.mpich -np 2 build/examples/11_hosts-mpich [REPLICAS] */
#include "command_line.h"

#include <ditto.h>
#include <ditto/mpi.h>

#include <stdio.h>
#include <string.h>

enum { COUNT = 100000 };

/* The ids and the number of replicas are those of all hosts, so nothing here is about hosts but the last
 * part: what the main thread of a host needs is written by the first replica of that host, because hosts have
 * no common memory. */
static ditto_status mean_of_roots(ditto_replica *self, void *result)
{
    float *x;
    void *memory;
    DITTO_TRY(ditto_alloc(self, COUNT * sizeof *x, 0, &memory));
    x = memory;
    for (int i = 0; i < COUNT; i++)
        x[i] = 1.0f / (float)(1 + i + (int)ditto_replica_id(self));
    DITTO_TRY(ditto_all_reduce(self, x, x, COUNT, DITTO_F32, DITTO_MEAN, NULL));
    uint32_t sum = 0;
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        sum = sum * 31 + bits;
    }
    if (ditto_replica_is_first_of_host(self))
        *(uint32_t *)result = sum;
    return ditto_free(self, memory);
}

static ditto_status run_on(ditto_cluster *cluster, uint32_t num_replicas)
{
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_cluster_properties on = DITTO_CLUSTER_PROPERTIES_INIT;
    uint32_t bits = 0;
    DITTO_TRY(ditto_cluster_info(cluster, &on));
    options.cluster = cluster;
    options.num_replicas = ditto_cluster_share(cluster, num_replicas);
    DITTO_TRY(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, mean_of_roots, &bits));
    ditto_strategy_properties here = DITTO_STRATEGY_PROPERTIES_INIT;
    DITTO_TRY(ditto_strategy_info(strategy, &here));
    printf("host %u of %u (%s) has replicas %u to %u; the bits of the result: %08x\n", on.host, on.num_hosts,
           on.names[on.host], here.first_local_replica,
           here.first_local_replica + here.num_local_replicas - 1, bits);
    return ditto_strategy_destroy(strategy);
}

int main(int argc, char **argv)
{
    static const struct command_row rows[] = {
        { NULL, "REPLICAS", "how many replicas all hosts have together: 1 to 1024 (default: 8)" },
        { 0 },
    };
    struct command_line line = command_line_of(
        "[REPLICAS]", "Lesson 11 of ditto: one strategy on all processes of mpirun, mpiexec or srun.", rows,
        argc, argv);
    uint32_t replicas = 8;
    while (command_next(&line) >= 0)
        replicas = (uint32_t)command_number(&line, 1, DITTO_MAX_REPLICAS);
    int level;
    ditto_cluster *cluster = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    ditto_status status = ditto_mpi_cluster(MPI_COMM_WORLD, NULL, &cluster);
    if (status == DITTO_OK)
        status = run_on(cluster, replicas);
    /* Without an error, the cluster is destroyed before MPI_Finalize, which ditto_mpi_end calls. */
    if (status == DITTO_OK)
        status = ditto_cluster_destroy(cluster);
    return ditto_mpi_end(status);
}
