/* src/cluster/host_thread.c - starts threads of connections between hosts. See host_thread.h. */
#include "cluster/host_thread.h"

#include <signal.h>

int dti_host_thread_start(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error_number = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error_number == 0)
        pthread_setname_np(*thread, name);
    return error_number;
}
