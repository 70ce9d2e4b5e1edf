/* tests/cases/cases.h - what the cases share. A case returns RIGHT, or WRONG while its fault is there. */
#ifndef CASES_H
#define CASES_H

#include <ditto.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RIGHT = 0, WRONG = 1, NOT_TRIED = 2 };

/* Ends the program if a call fails that has nothing to do with the fault. */
#define MUST(call)                                                                             \
    do {                                                                                       \
        if ((call) < 0) {                                                                      \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, ditto_last_error()->message); \
            exit(NOT_TRIED);                                                                   \
        }                                                                                      \
    } while (0)

/* Prints what a call has returned, and passes it on. */
static inline ditto_status told(const char *what, ditto_status status)
{
    printf("%s: %s %s\n", what, ditto_status_name(status), status < 0 ? ditto_last_error()->message : "");
    fflush(stdout);
    return status;
}

static inline void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static inline double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns a mirrored strategy with n replicas. */
static inline ditto_strategy *mirrored(uint32_t n)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.num_replicas = n;
    MUST(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    return strategy;
}

/* Creates a strategy of n workers with one replica each. A function may run for limit_ms (0: for ever). */
static inline ditto_strategy *with_workers(uint32_t n, uint32_t limit_ms, uint32_t timeout_ms)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.num_replicas = n;
    options.replicas_per_worker = 1;
    options.run_timeout_ms = limit_ms;
    options.timeout_ms = timeout_ms;
    MUST(ditto_strategy_create(DITTO_PARAMETER_SERVER, &options, &strategy));
    return strategy;
}

#endif
