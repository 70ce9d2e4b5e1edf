/* examples/lesson.c - functions that the lessons share, see lesson.h. */
#include "command_line.h"
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

uint32_t replicas_of(int argc, char **argv)
{
    static const struct command_row rows[] = {
        { NULL, "REPLICAS", "how many replicas the strategy has: 1 to 1024 (default: one for each core)" },
        { 0 },
    };
    struct command_line line = command_line_of(
        "[REPLICAS]", "A lesson of ditto. Its source file says what it shows.", rows, argc, argv);
    uint32_t replicas = 0;
    while (command_next(&line) >= 0)
        replicas = (uint32_t)command_number(&line, 1, DITTO_MAX_REPLICAS);
    return replicas;
}

ditto_strategy *strategy_of(uint32_t replicas)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    options.cluster = hosts();
    options.num_replicas = ditto_cluster_share(hosts(), replicas);
    check(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy));
    return strategy;
}

ditto_strategy *strategy_of_words(int argc, char **argv)
{
    return strategy_of(replicas_of(argc, argv));
}

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void report_trace(ditto_strategy *strategy, const char *path, FILE *table)
{
    size_t length;
    check(ditto_strategy_trace_stop(strategy));
    check(ditto_strategy_trace_describe(strategy, NULL, 0, &length));
    char *text = malloc(length + 1);
    if (text != NULL) {
        check(ditto_strategy_trace_describe(strategy, text, length + 1, NULL));
        fprintf(table, "%s", text);
    }
    free(text);
    check(ditto_strategy_trace_write(strategy, path));
}
