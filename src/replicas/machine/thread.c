/* src/replicas/machine/thread.c - see thread.h. */
#include "replicas/machine/thread.h"
#include "base/errors/user_call.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

int dti_thread_start(pthread_t *thread, size_t stack_bytes, void *(*body)(void *), void *argument)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGCHLD, SIGUSR1, SIGUSR2, SIGPIPE };
    sigset_t blocked, before;
    pthread_attr_t attributes;
    int error_number = pthread_attr_init(&attributes);
    if (error_number != 0)
        return error_number;
    if (stack_bytes != 0)
        error_number = pthread_attr_setstacksize(&attributes, stack_bytes);
    if (error_number == 0) {
        sigemptyset(&blocked);
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
            sigaddset(&blocked, signals[i]);
        pthread_sigmask(SIG_BLOCK, &blocked, &before); /* a new thread inherits the mask */
        error_number = pthread_create(thread, &attributes, body, argument);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return error_number;
}

ditto_status dti_thread_refused(int error_number, size_t stack_bytes, const char *format, ...)
{
    char name[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (error_number == EINVAL && stack_bytes != 0)
        return DTI_FAIL_ERRNO(DITTO_ERR_RANGE, error_number, "stack_bytes = %zu is not possible",
                              stack_bytes);
    /* The system's default size of a stack is always possible, so something else was refused. */
    if (error_number == EINVAL)
        return DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, error_number,
                              "the thread of %s could not be started: does the sandbox (seccomp profile) "
                              "refuse clone? allow it, or use fewer threads",
                              name);
    return DTI_FAIL_ERRNO(
        DITTO_ERR_SYSTEM, error_number,
        "the thread of %s could not be started (RLIMIT_NPROC, the pids cgroup or memory for its stack?): "
        "use fewer threads or a smaller stack_bytes",
        name);
}

void dti_thread_begin(const char *name)
{
    pthread_setname_np(pthread_self(), name);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

DTI_GUARDED void dti_thread_hook(void (*hook)(uint32_t replica, void *user), uint32_t replica, void *user)
{
    DTI_GUARD("a thread_start or thread_stop function");
    if (hook != NULL)
        hook(replica, user);
    DTI_GUARD_END();
}
