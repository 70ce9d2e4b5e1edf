/* src/replicas/thread.h - how every thread of the library is started. */
#ifndef DTI_THREAD_H
#define DTI_THREAD_H

#include <pthread.h>

/* Starts a thread that leaves process-directed signals (INT TERM HUP ALRM CHLD USR1 USR2 PIPE) to the host's threads;
 * faults and SIGPROF stay open. stack_bytes 0: the system's default. Returns 0 or the error number (EINVAL: the stack). */
int dti_thread_start(pthread_t *thread, size_t stack_bytes, void *(*body)(void *), void *argument);

/* First thing on the new thread: its name for `top -H` (format takes one number), cancellation off. */
void dti_thread_settle(const char *format, unsigned number) __attribute__((__format__(__printf__, 1, 0)));

#endif
