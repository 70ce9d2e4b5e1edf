/* tests/cases/thread_cancelled.c - a thread with a pending pthread_cancel is cancelled inside a call of the
 * library, with a lock. The next call of another thread that needs this lock never returns.
 *     thread_cancelled topology | strategy | text     the call */
#include "cases.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static ditto_status call(const char *what)
{
    ditto_topology *topology;
    ditto_strategy *strategy;
    ditto_dataset *dataset;
    const char *name = "/etc/passwd";
    if (strcmp(what, "topology") == 0)
        return ditto_topology_create(NULL, &topology);
    if (strcmp(what, "strategy") == 0)
        return ditto_strategy_create(DITTO_MIRRORED, NULL, &strategy);
    return ditto_dataset_from_text(&(ditto_files){ .names = &name, .num_names = 1 }, NULL, &dataset);
}

static void *cancelled(void *what)
{
    pthread_cancel(pthread_self());
    if (call(what) != DITTO_OK)
        return NULL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return what;
}

int main(int argc, char **argv)
{
    char *what = argc > 1 ? argv[1] : "topology";
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, NULL, cancelled, what) != 0 || pthread_join(thread, &result) != 0)
        return NOT_TRIED;
    printf("the thread %s\n", result == PTHREAD_CANCELED ? "was cancelled in the call" : "has returned");
    fflush(stdout);
    alarm(5); /* ends the program if the lock was left */
    return told(what, call(what)) == DITTO_OK ? RIGHT : WRONG;
}
