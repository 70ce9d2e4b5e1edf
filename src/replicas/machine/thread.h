/* src/replicas/machine/thread.h - starts the threads of teams and the producers of iterators. */
#ifndef DTI_THREAD_H
#define DTI_THREAD_H

#include <ditto/status.h>

#include <pthread.h>

/* Starts a thread. It blocks the signals that are sent to the process (INT, TERM, HUP, ALRM, CHLD, USR1,
 * USR2, PIPE), so that the host's threads receive them. Faults and SIGPROF are not blocked. stack_bytes 0
 * means the system's default. Returns 0 or the error number. If stack_bytes is not 0, EINVAL means that it is
 * not possible. */
int dti_thread_start(pthread_t *thread, size_t stack_bytes, void *(*body)(void *), void *argument);

/* Records and returns the error for a thread that dti_thread_start refused with `error_number`.
 * The formatted text names the thread.
 *   DITTO_ERR_RANGE   stack_bytes is not possible
 *   DITTO_ERR_SYSTEM  any other cause */
ditto_status dti_thread_refused(int error_number, size_t stack_bytes, const char *format, ...)
    DITTO_PRINTF(3, 4);

/* Called first on the new thread. It sets the name that `top -H` shows (15 characters), and disables
 * cancellation. */
void dti_thread_begin(const char *name);

/* Calls the program's thread_start or thread_stop function, if there is one. */
void dti_thread_hook(void (*hook)(uint32_t replica, void *user), uint32_t replica, void *user);

#endif
