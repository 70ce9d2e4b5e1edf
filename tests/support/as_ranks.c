/* tests/support/as_ranks.c - the hosts of a test program are the ranks of MPI_COMM_WORLD. See as_hosts.h. */
#include "support/as_hosts.h"

#include <ditto/mpi.h>

static ditto_status make_cluster(const ditto_cluster_options *options, ditto_cluster **out)
{
    return ditto_mpi_cluster(MPI_COMM_WORLD, options, out);
}

void join_ranks(struct test_ranks *ranks)
{
    int level, count, rank;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *ranks = (struct test_ranks){ (uint32_t)count, (uint32_t)rank, make_cluster };
}

void leave_ranks(void)
{
    MPI_Finalize();
}
