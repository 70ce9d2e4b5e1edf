/* src/strategy/api_trace.c - the functions of include/ditto/trace.h, which check their arguments and
 * context. */
#include "replicas/team/recorder.h"
#include "replicas/team/turn.h"
#include "strategy/strategy.h"

#include <errno.h>
#include <stdlib.h>

#define DEFAULT_EVENTS 65536

/* A call that reads or changes what the replicas record. */
struct trace_call {
    ditto_strategy *strategy;
    struct dti_frame frame;
    bool *taken; /* of the workers, or NULL */
};

static ditto_status enter_workers(struct trace_call *call)
{
    const ditto_strategy *strategy = call->strategy;
    if (strategy->workers == NULL)
        return DITTO_OK;
    call->taken = calloc(strategy->workers->count, sizeof *call->taken);
    if (call->taken == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a trace of %u workers", strategy->workers->count);
    ditto_status status = dti_workers_take_turns(strategy, call->taken);
    if (status != DITTO_OK)
        free(call->taken);
    return status;
}

static ditto_status enter(struct trace_call *call, ditto_strategy *strategy)
{
    struct dti_team *team = dti_team_of(strategy);
    call->strategy = strategy;
    call->taken = NULL;
    if (dti_team_has_turn(team))
        return DTI_FAIL(DITTO_ERR_CONTEXT, "called inside a run of the strategy, whose replicas are "
                                           "recording: call it after run has returned");
    DTI_TRY(dti_cross_enter(team, &call->frame, DTI_CALLER_KEEPS_AFFINITY));
    ditto_status status = enter_workers(call);
    if (status != DITTO_OK)
        dti_cross_leave(team, &call->frame);
    return status;
}

static void leave(struct trace_call *call)
{
    if (call->taken != NULL)
        dti_workers_give_turns(call->strategy, call->taken);
    free(call->taken);
    dti_cross_leave(dti_team_of(call->strategy), &call->frame);
}

/* The teams whose replicas are traced. */
static uint32_t num_teams(const ditto_strategy *strategy)
{
    return strategy->workers != NULL ? strategy->workers->count : 1;
}

static struct dti_team *team_at(const ditto_strategy *strategy, uint32_t index)
{
    return dti_team_of(strategy->workers != NULL ? strategy->workers->strategy[index] : strategy);
}

/* Starts all, or none. If a team after the first one gets no memory, the teams before it have already lost
 * their earlier recordings. The recordings of all teams are then deleted, because they belong together. */
static ditto_status start(const ditto_strategy *strategy, size_t events)
{
    for (uint32_t i = 0; i < num_teams(strategy); i++) {
        ditto_status status = dti_trace_start(team_at(strategy, i), events);
        if (status != DITTO_OK) {
            for (uint32_t k = 0; i > 0 && k < num_teams(strategy); k++)
                dti_trace_forget(team_at(strategy, k));
            return status;
        }
    }
    return DITTO_OK;
}

ditto_status ditto_strategy_trace_start(ditto_strategy *strategy, const ditto_trace_options *options)
{
    ditto_trace_options known;
    struct trace_call call;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_trace_options"));
    size_t events = known.num_events == 0                 ? DEFAULT_EVENTS
                    : known.num_events == DITTO_NO_EVENTS ? 0
                                                          : known.num_events;
    if (events > SIZE_MAX / sizeof(struct dti_event))
        return DTI_FAIL(DITTO_ERR_RANGE, "num_events = %zu: they have more bytes than size_t can count",
                        events);
    DTI_TRY(enter(&call, strategy));
    ditto_status status = start(strategy, events);
    leave(&call);
    return status;
}

ditto_status ditto_strategy_trace_stop(ditto_strategy *strategy)
{
    struct trace_call call;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(enter(&call, strategy));
    for (uint32_t i = 0; i < num_teams(strategy); i++)
        dti_trace_stop(team_at(strategy, i));
    leave(&call);
    return DITTO_OK;
}

ditto_status ditto_strategy_operation_stats(ditto_strategy *strategy, uint32_t index,
                                            ditto_operation_counters *out)
{
    struct trace_call call;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_result_check(out, "ditto_operation_counters"));
    DTI_TRY(enter(&call, strategy));
    ditto_operation_counters found = DITTO_OPERATION_COUNTERS_INIT;
    ditto_status status = dti_trace_times(strategy, index, &found);
    leave(&call);
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
    struct trace_call call;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(check_text(buffer, capacity));
    DTI_TRY(enter(&call, strategy));
    ditto_status status = dti_trace_statistics(strategy, &text);
    leave(&call);
    if (status == DITTO_OK && length != NULL)
        *length = text.length;
    return status;
}

ditto_status ditto_strategy_trace_write(ditto_strategy *strategy, const char *path)
{
    struct trace_call call;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_not_null(path, "path"));
    DTI_TRY(enter(&call, strategy));
    int kept_errno = errno; /* stdio changes it */
    ditto_status status = dti_trace_write(strategy, path);
    errno = kept_errno;
    leave(&call);
    return status;
}
