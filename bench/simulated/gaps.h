/* bench/simulated/gaps.h - what SimGrid's MPI lacks, for src/mpi/mpi_wire.c. run.sh includes it in front of
 * that file. It also counts the messages that the wire sends. */
#ifndef BENCH_SIMULATED_GAPS_H
#define BENCH_SIMULATED_GAPS_H

#include <mpi.h>

#include <stdint.h>

/* What this host has sent. Each simulated process has its own variables. */
extern uint64_t sent_messages, sent_bytes;

/* How many tests have found nothing since the last message was sent or has finished. */
extern int tests_in_vain;

static inline int counted_isend(const void *data, int bytes, MPI_Datatype type, int to, int tag,
                                MPI_Comm comm, MPI_Request *request)
{
    sent_messages++;
    sent_bytes += (uint64_t)bytes;
    tests_in_vain = 0;
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

/* A loop of MPI_Testsome takes long, because each call lets all other hosts work. If several have found
 * nothing, this host has nothing to do until a message finishes. Fewer might be tests between two
 * collectives. */
static inline int test_or_wait(int count, MPI_Request *requests, int *finished, int *indices,
                               MPI_Status *statuses)
{
    enum { MOST_TESTS = 4 };
    int code = MPI_Testsome(count, requests, finished, indices, statuses);
    if (code == MPI_SUCCESS && *finished == 0 && tests_in_vain++ >= MOST_TESTS)
        code = MPI_Waitsome(count, requests, finished, indices, statuses);
    if (*finished != 0)
        tests_in_vain = 0;
    return code;
}

#define MPI_Isend          counted_isend
#define MPI_Query_thread   level_funneled
#define MPI_Is_thread_main is_main_thread
#define MPI_Comm_idup      duplicate_at_once
#define MPI_Test           test_or_null
#define MPI_Testsome       test_or_wait

#endif
