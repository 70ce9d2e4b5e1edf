/* src/strategy/runs/run.c - runs a function on each replica, in replica context. A run may be inside another
 * one, in a merge function. */
#include "base/errors/user_call.h"
#include "input/input.h"
#include "replicas/jobs/jobs.h"
#include "replicas/team/recorder.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "strategy/runs/result.h"
#include "strategy/runs/run_on_hosts.h"
#include "sync/hosts/cross.h"
#include "sync/sync.h"
#include "values/values.h"

const struct dti_run_call *dti_current_run_call(void)
{
    return dti_this_thread()->frame != NULL ? dti_this_thread()->frame->run : NULL;
}

static ditto_status call_step(ditto_replica *self, const struct dti_run_call *call, const ditto_batch *batch)
{
    ditto_status status = call->step(self, batch, call->argument);
    /* DITTO_END_OF_INPUT would end the steps of this replica alone. */
    if (status > 0)
        return DTI_FAIL(DITTO_ERR_USER,
                        "the function of a step returned %d (%s), which has no meaning for a step: return "
                        "DITTO_OK or an error",
                        (int)status, ditto_status_name(status));
    return status;
}

/* Checks that a batch has all rows of its step. It is called if dynamic_batch is OFF. */
static ditto_status check_full(const struct dti_replica *r, const struct dti_run_call *call,
                               const ditto_batch *batch)
{
    uint64_t full = dti_iterator_full_rows(call->iterator, r->index, batch->step);
    if (batch->rows == full)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_SHAPE, "dynamic_batch is OFF, but step %llu has %llu rows for replica %u, not %llu",
        (unsigned long long)batch->step, (unsigned long long)batch->rows, r->id, (unsigned long long)full);
}

/* Calls the function of a step for up to call->steps batches. */
static ditto_status make_steps(struct dti_replica *r, ditto_replica *self, struct dti_run_call *call)
{
    ditto_batch batch;
    uint64_t done = 0;
    const char *function = dti_this_thread()->function;
    ditto_status status = DITTO_OK;
    for (; done < call->steps; done++) {
        dti_public_leave(&function); /* the previous step may have called other public functions */
        status = DTI_OWN(ditto_next(self, call->iterator, &batch));
        if (status != DITTO_OK)
            break;
        dti_results_again(r, call);
        if (call->same_batches)
            DTI_TRY(check_full(r, call, &batch));
        status = call_step(self, call, &batch);
        if (status != DITTO_OK)
            break;
    }
    if (r->index == 0)
        call->done = done;
    return status;
}

static DTI_GUARDED ditto_status call_function(struct dti_replica *r, struct dti_run_call *call)
{
    ditto_replica *self = dti_replica_handle(r);
    struct dti_frame frame; /* not initialized: its mask, a kilobyte, is not used */
    struct dti_fenv saved = dti_frame_enter(&frame, DTI_CONTEXT_REPLICA, r, self);
    frame.run = call;
    DTI_PROBE1(run_begin, r->id);
    dti_trace_begin(r, DTI_TRACE_RUN, "run", NULL);
    dti_sync_function_begins(r);
    uint32_t serial = frame.thread->errors;
    DTI_GUARD("a function given to a run");
    ditto_status status = call->step != NULL ? make_steps(r, self, call)
                                             : call->function(self, call->argument);
    DTI_GUARD_END();
    status = dti_sync_function_returned(r, status, serial);
    dti_trace_end(r, 0);
    DTI_PROBE1(run_end, r->id);
    dti_frame_leave(&frame, saved);
    return status;
}

static ditto_status enter_function(struct dti_replica *r, void *argument)
{
    struct dti_run_call *call = argument;
    if (call->returns)
        DTI_TRY(dti_results_begin(dti_pool_of(dti_team_strategy(r->team), r->index), call->level));
    if (call->level == 0)
        return call_function(r, call);
    dti_sync_go_in(r);
    ditto_status status = call_function(r, call);
    dti_sync_go_out(r);
    return status;
}

/* Writes the description of the run only if it has changed. If it has not, its cache lines stay in the caches
 * of the replicas, and the next run begins sooner. */
static struct dti_run_call *describe_call(ditto_strategy *strategy, const struct dti_run_call *request)
{
    struct dti_run_call *call = &strategy->call[strategy->levels];
    if (call->function != request->function || call->argument != request->argument ||
        call->values != request->values || call->returns != request->returns ||
        call->wanted != request->wanted || call->step != request->step || request->step != NULL) {
        *call = *request;
        call->level = strategy->levels;
    }
    return call;
}

ditto_status dti_run_in_turn(ditto_strategy *strategy, const struct dti_run_call *request,
                             struct dti_run_call **call)
{
    struct dti_team *team = strategy->base.team;
    *call = NULL;
    DTI_TRY(dti_run_begins_on_hosts(strategy));
    DTI_TRY(dti_sync_run_begins(team));
    *call = describe_call(strategy, request);
    strategy->levels++;
    ditto_status status = dti_team_run(team, enter_function, *call, true);
    if (strategy->hosts != NULL && (*call)->level == 0 && !dti_team_forked(team))
        status = dti_run_ends_on_hosts(strategy, status);
    if (status < 0 && (*call)->level > 0)
        dti_cross_inner_run_failed(team);
    /* If a run has failed and the team is poisoned, replica 0 may still be in a run inside this one, and
     * change `levels` and `merged`. */
    if (status >= 0 || !dti_team_is_poisoned(team)) {
        strategy->levels--;
        dti_value_drop(strategy->merged[strategy->levels]);
        strategy->merged[strategy->levels] = NULL;
    }
    /* A run that does not fail was not stopped. Its replicas, and the functions that they submitted to
     * devices, have returned, so nothing stops it later. */
    if (status < 0)
        dti_sync_run_ended(team);
    return status;
}

ditto_status dti_strategy_run(ditto_strategy *strategy, ditto_replica_fn function, void *argument)
{
    struct dti_frame frame;
    struct dti_run_call *call;
    DTI_TRY(dti_cross_enter(strategy->base.team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_run_in_turn(
        strategy, &(struct dti_run_call){ .function = function, .argument = argument }, &call);
    dti_cross_leave(strategy->base.team, &frame);
    return status;
}
