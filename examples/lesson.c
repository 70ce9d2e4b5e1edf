/* examples/lesson.c - functions that the lessons share, see lesson.h. */
#include "launch.h"
#include "lesson.h"

#include <stdlib.h>
#include <time.h>

void check(ditto_status status)
{
    if (status >= 0) /* DITTO_END_OF_INPUT is positive, and no error */
        return;
    leave_after_error(status);
}

ditto_strategy *make_strategy(int argc, char **argv)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.cluster = hosts();
    if (argc > 1)
        options.num_replicas = ditto_cluster_share(hosts(), (uint32_t)strtoul(argv[1], NULL, 10));
    check(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    return strategy;
}

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
