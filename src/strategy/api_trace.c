/* src/strategy/api_trace.c - the functions of include/ditto/trace.h, which check their arguments and
 * context. */
#include "replicas/team/recorder.h"
#include "strategy/strategy.h"

#include <errno.h>
#include <stdlib.h>

#define DEFAULT_EVENTS 65536

static ditto_status enter(ditto_strategy *strategy, struct dti_frame *frame)
{
    if (dti_team_has_turn(dti_team_of(strategy)))
        return DTI_FAIL(DITTO_ERR_CONTEXT, "called inside a run of the strategy, whose replicas are "
                                           "recording: call it after run has returned");
    return dti_cross_enter(dti_team_of(strategy), frame, DTI_CALLER_KEEPS_AFFINITY);
}

ditto_status ditto_strategy_trace_start(ditto_strategy *strategy, const ditto_trace_options *options)
{
    ditto_trace_options known;
    struct dti_frame frame;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_trace_options"));
    size_t events = known.num_events == 0                 ? DEFAULT_EVENTS
                    : known.num_events == DITTO_NO_EVENTS ? 0
                                                          : known.num_events;
    if (events > SIZE_MAX / sizeof(struct dti_event))
        return DTI_FAIL(DITTO_ERR_RANGE, "num_events = %zu: they have more bytes than size_t can count",
                        events);
    DTI_TRY(enter(strategy, &frame));
    ditto_status status = dti_trace_start(dti_team_of(strategy), events);
    dti_cross_leave(dti_team_of(strategy), &frame);
    return status;
}

ditto_status ditto_strategy_trace_stop(ditto_strategy *strategy)
{
    struct dti_frame frame;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(enter(strategy, &frame));
    dti_trace_stop(dti_team_of(strategy));
    dti_cross_leave(dti_team_of(strategy), &frame);
    return DITTO_OK;
}

ditto_status ditto_strategy_operation_stats(ditto_strategy *strategy, uint32_t index,
                                            ditto_operation_counters *out)
{
    struct dti_frame frame;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(dti_result_check(out, "ditto_operation_counters"));
    DTI_TRY(enter(strategy, &frame));
    ditto_operation_counters found = DITTO_OPERATION_COUNTERS_INIT;
    ditto_status status = dti_trace_times(dti_team_of(strategy), index, &found);
    dti_cross_leave(dti_team_of(strategy), &frame);
    if (status == DITTO_OK)
        dti_result_store(out, &found, sizeof found);
    return status;
}

static ditto_status check_text(const char *buffer, size_t size)
{
    return size > 0 ? dti_not_null(buffer, "buffer") : DITTO_OK;
}

ditto_status ditto_strategy_trace_describe(ditto_strategy *strategy, char *buffer, size_t capacity,
                                           size_t *length)
{
    struct dti_text text = { buffer, capacity, 0 };
    struct dti_frame frame;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(check_text(buffer, capacity));
    DTI_TRY(enter(strategy, &frame));
    ditto_status status = dti_trace_statistics(dti_team_of(strategy), &text);
    dti_cross_leave(dti_team_of(strategy), &frame);
    if (status == DITTO_OK && length != NULL)
        *length = text.length;
    return status;
}

ditto_status ditto_strategy_trace_write(ditto_strategy *strategy, const char *path)
{
    struct dti_frame frame;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    DTI_TRY(dti_not_null(path, "path"));
    DTI_TRY(enter(strategy, &frame));
    int kept_errno = errno;
    ditto_status status = dti_trace_write(dti_team_of(strategy), path);
    errno = kept_errno;
    dti_cross_leave(dti_team_of(strategy), &frame);
    return status;
}

/* -- counts of calls -- */

void ditto_usage_count(int on)
{
    /* relaxed: it does not matter if a concurrent call is counted or not. */
    atomic_store_explicit(&dti_usage_on, on != 0, memory_order_relaxed);
}

/* A copy of a function's count for sorting. The count itself may change meanwhile. */
struct calls {
    const char *name;
    uint64_t calls;
};

static int most_first(const void *left, const void *right)
{
    const struct calls *a = left, *b = right;
    return a->calls < b->calls ? 1 : a->calls > b->calls ? -1 : 0;
}

ditto_status ditto_usage_describe(char *buffer, size_t capacity, size_t *length)
{
    struct dti_text text = { buffer, capacity, 0 };
    size_t count = 0, most = 0;
    DTI_ENTER();
    DTI_TRY(check_text(buffer, capacity));
    for (struct dti_usage *at = dti_usage_first(); at != NULL; at = at->next)
        most++;
    struct calls *sorted = malloc((most + 1) * sizeof *sorted);
    if (sorted == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to sort %zu functions", most);
    /* relaxed: only the number is read. */
    for (struct dti_usage *at = dti_usage_first(); at != NULL && count < most; at = at->next)
        sorted[count++] = (struct calls){ at->name, atomic_load_explicit(&at->calls, memory_order_relaxed) };
    qsort(sorted, count, sizeof *sorted, most_first);
    if (capacity > 0)
        buffer[0] = '\0';
    for (size_t i = 0; i < count; i++)
        dti_text_add(&text, "%12llu  %s\n", (unsigned long long)sorted[i].calls, sorted[i].name);
    free(sorted);
    if (length != NULL)
        *length = text.length;
    return DITTO_OK;
}
