/* examples/lesson.c - functions that the lessons share, see lesson.h. */
#include "lesson.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void check(ditto_status status)
{
    if (status >= 0) /* DITTO_END_OF_INPUT is positive, and no error */
        return;
    const ditto_error *error = ditto_last_error();
    fprintf(stderr, "%s: %s: %s\n", error->function, ditto_status_name(status), error->message);
    exit(1);
}

ditto_strategy *make_strategy(int argc, char **argv)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    if (argc > 1)
        options.num_replicas = (uint32_t)strtoul(argv[1], NULL, 10);
    check(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    return strategy;
}

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
