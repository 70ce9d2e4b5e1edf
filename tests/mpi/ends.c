/* tests/mpi/ends.c - how a program over MPI ends, for check.sh. It writes a file, and leaves it open.
 *     ends FOLDER hangs    MPI_Finalize does not return
 *     ends FOLDER aborts   the program ends with an error after which MPI_Abort is called
 *     ends FOLDER locked   the same, and a thread holds the lock of another file for ever
 *     ends FOLDER late     the cluster is destroyed after MPI_Finalize */
#include <ditto/mpi.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int hangs;

/* In place of the function of MPI, which is PMPI_Finalize, too. */
int MPI_Finalize(void)
{
    while (hangs)
        pause();
    return PMPI_Finalize();
}

static _Atomic int is_locked;

static void *lock(void *file)
{
    flockfile(file);
    atomic_store(&is_locked, 1);
    while (atomic_load(&is_locked))
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    char path[300];
    int level;
    ditto_cluster *cluster;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    ditto_cluster_properties on = DITTO_CLUSTER_PROPERTIES_INIT;
    if (argc != 3 || ditto_mpi_cluster(MPI_COMM_WORLD, NULL, &cluster) != DITTO_OK ||
        ditto_cluster_info(cluster, &on) != DITTO_OK)
        return 2;
    uint32_t host = on.host;
    snprintf(path, sizeof path, "%s/%u", argv[1], host);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return 2;
    fprintf(file, "result %u\n", host);
    if (strcmp(argv[2], "late") == 0) {
        MPI_Finalize();
        ditto_status status = ditto_cluster_destroy(cluster);
        fprintf(file, "%s: %s\n", ditto_status_name(status), ditto_last_error()->message);
        return 0;
    }
    pthread_t thread;
    if (strcmp(argv[2], "locked") == 0 && pthread_create(&thread, NULL, lock, stdin) == 0)
        while (!atomic_load(&is_locked))
            usleep(1000);
    hangs = strcmp(argv[2], "hangs") == 0;
    ditto_status status = ditto_cluster_destroy(cluster);
    return ditto_mpi_end(hangs ? status : DITTO_ERR_LOST);
}
