/* bench/simulated/gaps.h - what SimGrid's MPI lacks, for src/mpi/mpi_wire.c. run.sh includes it in front of
 * that file. It also counts the messages that the wire sends, and waits in simulated time. */
#ifndef BENCH_SIMULATED_GAPS_H
#define BENCH_SIMULATED_GAPS_H

#include <mpi.h>

#include <stdint.h>

/* What this host has sent. Each simulated process has its own. */
extern uint64_t sent_messages, sent_bytes;

static inline int counted_isend(const void *data, int bytes, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                                MPI_Request *request)
{
    sent_messages++;
    sent_bytes += (uint64_t)bytes;
    return MPI_Isend(data, bytes, type, to, tag, comm, request);
}

static inline int level_funneled(int *level)
{
    *level = MPI_THREAD_FUNNELED;
    return MPI_SUCCESS;
}

static inline int is_main_thread(int *is_main)
{
    *is_main = 1;
    return MPI_SUCCESS;
}

static inline int duplicate_at_once(MPI_Comm comm, MPI_Comm *copy, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPI_Comm_dup(comm, copy);
}

static inline int test_or_null(MPI_Request *request, int *done, MPI_Status *status)
{
    *done = 1;
    return *request == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Test(request, done, status);
}

/* A call of MPI_Testsome takes no simulated time, so a loop of them would never end. If nothing has finished
 * for the second time, this host waits until something does. Nothing else happens on it meanwhile. */
static inline int wait_the_second_time(int count, MPI_Request *requests, int *finished, int *indices,
                                       MPI_Status *statuses)
{
    static int in_vain; /* each simulated process has its own */
    int code = MPI_Testsome(count, requests, finished, indices, statuses);
    if (code == MPI_SUCCESS && *finished == 0 && in_vain++ > 0)
        code = MPI_Waitsome(count, requests, finished, indices, statuses);
    if (*finished != 0)
        in_vain = 0;
    return code;
}

#define MPI_Isend          counted_isend
#define MPI_Query_thread   level_funneled
#define MPI_Is_thread_main is_main_thread
#define MPI_Comm_idup      duplicate_at_once
#define MPI_Test           test_or_null
#define MPI_Testsome       wait_the_second_time

#endif
