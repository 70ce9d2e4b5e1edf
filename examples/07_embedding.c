/* Lesson 7: embedding. A program that already uses threads, OpenMP, signal handlers, malloc and perhaps MPI
 * can add ditto for replicas and reductions. None of the others has to change.
 *
 *     build/examples/07_embedding [REPLICAS]          mpirun -n 2 build/examples/07_embedding 1 */
#include "lesson.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef USE_MPI
#include <mpi.h>
#endif

enum { CELLS = 1 << 16 };

/* -- the program as it was -- */

static atomic_int signals, ticks, stopping;

static void on_signal(int number)
{
    (void)number;
    signals++;
}

static void *tick(void *unused) /* runs in a thread of the program */
{
    while (!stopping) {
        ticks++;
        usleep(1000);
    }
    return unused;
}

static double heat(const double *cell, size_t count) /* a kernel of the program, with OpenMP */
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (size_t i = 0; i < count; i++)
        sum += cell[i];
    return sum;
}

/* -- the part that uses ditto -- */

struct work {
    const double *cell; /* from malloc: replicas read it without a copy */
    double total;
};

static ditto_status add_share(ditto_replica *self, void *argument)
{
    struct work *w = argument;
    uint32_t id = ditto_replica_id(self), replicas = ditto_num_replicas(self);
    size_t first = (size_t)CELLS * id / replicas, end = (size_t)CELLS * (id + 1) / replicas;
    double sum;
    kill(getpid(), SIGUSR1); /* ditto's threads block it, the program handles it */
    DITTO_TRY(ditto_block_sum(self, w->cell + first, &sum, end - first, DITTO_F64, NULL));
    if (id == 0)
        w->total = sum;
#ifdef USE_MPI
    /* Replica 0 is the calling thread, which also called MPI_Init. So MPI_THREAD_FUNNELED is enough inside a
     * run. */
    if (id == 0)
        MPI_Allreduce(&sum, &w->total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    DITTO_TRY(ditto_broadcast_from_root(self, &sum, 1, DITTO_F64, 0, NULL));
#endif
    return DITTO_OK;
}

static int same_mask(const cpu_set_t *before)
{
    cpu_set_t now;
    return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(before, &now);
}

int main(int argc, char **argv)
{
    pthread_t ticker;
    cpu_set_t before;
    struct work work = { .total = 0 };
    double ranks = 1;
    uint32_t replicas = replicas_of(argc, argv);
#ifdef USE_MPI
    int provided, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ranks = size;
#endif
    sched_getaffinity(0, sizeof before, &before);
    signal(SIGUSR1, on_signal);
    pthread_create(&ticker, NULL, tick, NULL);
    double *cell = malloc(CELLS * sizeof *cell);
    for (int i = 0; i < CELLS; i++)
        cell[i] = i % 7;
    work.cell = cell;
    double total_before = heat(cell, CELLS);

    ditto_strategy *strategy = strategy_of(replicas); /* Its threads sleep between runs. */
    for (int i = 0; i < 10; i++)
        check(ditto_strategy_run(strategy, add_share, &work));
    int restored = same_mask(&before);      /* A run restores the thread's CPU mask. */
    double total_after = heat(cell, CELLS); /* OpenMP works between runs. */
    check(ditto_strategy_destroy(strategy));

    stopping = 1;
    pthread_join(ticker, NULL);
    free(cell);
    printf("OpenMP and ditto agree: %s; CPUs restored: %s; signals handled: %s; the program's thread ticked: "
           "%s\n",
           total_before * ranks == work.total && total_before == total_after ? "yes" : "no",
           restored ? "yes" : "no", signals > 0 ? "yes" : "no", ticks > 0 ? "yes" : "no");
#ifdef USE_MPI
    MPI_Finalize();
#endif
    return total_before * ranks == work.total && restored && signals > 0 ? 0 : 1;
}
