/* A program over several hosts, here on one. */
#include <ditto.h>
#include <ditto/mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int level;
    ditto_cluster *cluster;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return 1;
    ditto_status status = ditto_mpi_cluster(MPI_COMM_WORLD, NULL, &cluster);
    if (status == DITTO_OK) {
        printf("%u host\n", ditto_cluster_share(cluster, 1));
        status = ditto_cluster_destroy(cluster);
    }
    return ditto_mpi_end(status);
}
