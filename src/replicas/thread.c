/* src/replicas/thread.c - starting threads that do not disturb their host. */
#include "replicas/thread.h"

#include <signal.h>
#include <stdio.h>

int dti_thread_start(pthread_t *thread, size_t stack_bytes, void *(*body)(void *), void *argument)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGCHLD, SIGUSR1, SIGUSR2, SIGPIPE };
    sigset_t blocked, before;
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);
    if (failed != 0)
        return failed;
    if (stack_bytes != 0)
        failed = pthread_attr_setstacksize(&attributes, stack_bytes);
    if (failed == 0) {
        sigemptyset(&blocked);
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
            sigaddset(&blocked, signals[i]);
        pthread_sigmask(SIG_BLOCK, &blocked, &before); /* a new thread inherits the mask */
        failed = pthread_create(thread, &attributes, body, argument);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return failed;
}

void dti_thread_settle(const char *format, unsigned number)
{
    char name[16]; /* the kernel's limit */
    snprintf(name, sizeof name, format, number);
    pthread_setname_np(pthread_self(), name);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}
