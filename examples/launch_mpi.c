/* examples/launch_mpi.c - a program that mpirun, mpiexec or srun has started on several hosts, see launch.h.
 */
#include "launch.h"

#include <ditto/mpi.h>

#include <stdio.h>
#include <stdlib.h>

static ditto_cluster *cluster;
static ditto_cluster_properties properties = DITTO_CLUSTER_PROPERTIES_INIT;

void join_hosts(int *argc, char ***argv)
{
    int level;
    /* Only this thread calls MPI, because only it calls the cross functions of ditto. */
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
    ditto_status status = ditto_mpi_cluster(MPI_COMM_WORLD, NULL, &cluster);
    if (status == DITTO_OK)
        status = ditto_cluster_info(cluster, &properties);
    if (status != DITTO_OK)
        leave_after_error(status);
    if (is_first_host() && properties.num_hosts > 1 && !properties.has_life_line)
        fprintf(stderr, "no life line: the end of a process is only noticed after the timeout\n");
}

ditto_cluster *hosts(void)
{
    return cluster;
}

bool is_first_host(void)
{
    return properties.host == 0;
}

int leave_hosts(int code)
{
    int failed = ditto_mpi_end(ditto_cluster_destroy(cluster));
    return code != 0 ? code : failed;
}

void leave_after_error(ditto_status status)
{
    exit(ditto_mpi_end(status));
}
