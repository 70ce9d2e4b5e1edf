/* src/cluster/host_thread.h - the threads that watch or drive connections between hosts. */
#ifndef DTI_HOST_THREAD_H
#define DTI_HOST_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked. `name` has at most 15 characters. Returns an errno, or 0. */
int dti_host_thread_start(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument);

#endif
