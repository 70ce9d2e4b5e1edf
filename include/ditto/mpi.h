/* include/ditto/mpi.h - clusters over MPI. The library is libditto-openmpi or libditto-mpich.
 *
 * MPI libraries have different binary interfaces, so there is a library for each. ditto.h does not include
 * this header. */
#ifndef DITTO_MPI_H
#define DITTO_MPI_H

#include <ditto/cluster.h>

#include <mpi.h>

DITTO_BEGIN

/** @defgroup ditto_mpi Clusters over MPI
 *
 *  Each rank of a communicator is a host. examples/11_hosts.c is a program with them.
 *  @{ */

/** Makes a cluster of the ranks of a communicator. Every rank calls it, on the thread that may call MPI.
 *
 *  ditto sends and receives on a duplicate of the communicator, with MPI_Isend, MPI_Irecv and MPI_Testsome of
 *  MPI 3.1. MPI sees memory of the library only, and never a buffer of the program.
 *
 *  @param comm     the communicator
 *  @param options  NULL for the defaults
 *  @param out      [out] the cluster; set only on DITTO_OK
 *  @return DITTO_OK, an error of ditto_cluster_create, or one of:
 *  @retval DITTO_ERR_INVALID    MPI is not initialized or was finalized, or without MPI_THREAD_FUNNELED; or
 *                               this program was started by another MPI's launcher: it has started several
 *                               processes, and this MPI knows of one; or the program uses another MPI than
 *                               the library of this function
 *  @retval DITTO_ERR_CONTEXT    with MPI_THREAD_FUNNELED: this is not the thread that has initialized MPI
 *  @retval DITTO_ERR_TIMED_OUT  not all ranks have called this function in time
 *  @retval DITTO_ERR_SYSTEM     an MPI function failed; the message has its text
 *  @par Thread safety
 *  With less than MPI_THREAD_MULTIPLE, only the calling thread may use strategies of the cluster in
 *  cross-replica context.
 *  @par Ownership
 *  The caller gives the cluster to ditto_cluster_destroy, before MPI_Finalize. The communicator stays the
 *  caller's.
 *  @par Cost
 *  That of ditto_cluster_create, and a duplicate of the communicator. */
DITTO_API DITTO_NODISCARD ditto_status ditto_mpi_cluster(MPI_Comm comm, const ditto_cluster_options *options,
                                                         ditto_cluster **out);

/** The last line of main: `return ditto_mpi_end(status);`.
 *
 *  Writes out what the open files of the program still hold (fflush), and finalizes MPI. If status is an
 *  error, writes the message of the last error to stderr first. After errors that leave a host behind
 *  (DITTO_ERR_TIMED_OUT, DITTO_ERR_LOST, DITTO_ERR_POISONED), MPI_Finalize might wait for ever, so MPI_Abort
 *  is called instead, which does not return. If all processes have come here and MPI_Finalize does not return
 *  for 5 seconds, the process ends without it, and says so (docs/cluster.md). The same happens after these
 *  errors if the files cannot be written out, because a replica that has not returned holds the lock of one.
 *
 *  @param status  how the program ends
 *  @return the exit status of the program: 0 if status is DITTO_OK or positive, else 1
 *  @par Cost
 *  That of ditto_cluster_destroy. */
DITTO_API int ditto_mpi_end(ditto_status status);

/** @} */

DITTO_END
#endif
