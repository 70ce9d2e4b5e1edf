/* src/replicas/machine/thread.h - how every thread of the library is started. */
#ifndef DTI_THREAD_H
#define DTI_THREAD_H

#include "base/base.h"

#include <pthread.h>

/* Starts a thread that leaves process-directed signals (INT TERM HUP ALRM CHLD USR1 USR2 PIPE) to the host's threads;
 * faults and SIGPROF stay open. stack_bytes 0: the system's default. Returns 0 or the error number (EINVAL: the stack). */
int dti_thread_start(pthread_t *thread, size_t stack_bytes, void *(*body)(void *), void *argument);

/* SYSTEM (or RANGE for the stack) when dti_thread_start returned `failed` for the thread that the text names. */
ditto_status dti_thread_refused(int failed, size_t stack_bytes, const char *format, ...) DITTO_PRINTF(3, 4);

/* First thing on the new thread: its name for `top -H` (15 characters), cancellation off. */
void dti_thread_settle(const char *name);
/* The program's own thread_start or thread_stop, if it gave one. */
void dti_thread_hook(void (*hook)(uint32_t replica, void *user), uint32_t replica, void *user);

#endif
