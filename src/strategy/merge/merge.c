/* src/strategy/merge/merge.c - executes merge_call. All replicas pause, and replica 0 calls the function. */
#include "strategy/merge/merge.h"
#include "base/errors/user_call.h"
#include "replicas/helpers/crew.h"
#include "replicas/jobs/pause.h"
#include "replicas/team/recorder.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
#include "strategy/strategy.h"
#include "sync/sync.h"
#include "values/make_value.h"
#include "values/values.h"

/* The result of this thread's last merge function in the default strategy. */
static _Thread_local ditto_value *plain_merged;

/* Makes a value of the k-th argument of all replicas. Nothing is copied, because the replicas pause and their
 * memory stays as it is. */
static ditto_status view_argument(ditto_strategy *strategy, uint32_t k, ditto_value **out)
{
    ditto_value *value;
    uint32_t first = dti_team_first_replica(strategy->base.team);
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_PER_REPLICA, &value));
    for (uint32_t i = 0; i < strategy->base.num_replicas; i++) {
        value->part[i] = strategy->merging[i].arguments[k];
        ditto_status status = dti_check_alike(&value->part[0], first, &value->part[i], first + i);
        if (status != DITTO_OK)
            return dti_value_finish(value, status, out);
    }
    *out = value;
    return DITTO_OK;
}

static ditto_status view_arguments(ditto_strategy *strategy, uint32_t count, ditto_value **arguments)
{
    for (uint32_t k = 0; k < count; k++) {
        ditto_status status = view_argument(strategy, k, &arguments[k]);
        if (status == DITTO_OK)
            continue;
        while (k-- > 0)
            dti_value_drop(arguments[k]);
        return status;
    }
    return DITTO_OK;
}

static bool is_argument(ditto_value *const *arguments, uint32_t count, const ditto_value *value)
{
    uint32_t k = 0;
    while (k < count && arguments[k] != value)
        k++;
    return k < count;
}

/* Returns DITTO_ERR_INVALID if a plain value in the result refers to a local array of a function that has
 * returned. */
static ditto_status check_not_local(const ditto_value *v, const void *frame)
{
    if (v->kind == DITTO_VALUE_PLAIN && dti_is_below_frame(frame, v->plain.data))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the result of the merge function refers to a local array of that function: "
                        "ditto_strategy_value copies nothing, so give it memory that stays valid");
    for (uint32_t i = 0; i < v->members; i++)
        DTI_TRY(check_not_local(v->member[i].value, frame));
    return DITTO_OK;
}

/* Calls the merge function. The caller has entered cross-replica context. The caller gets a reference to the
 * result. */
static DTI_GUARDED ditto_status call_function(ditto_strategy *strategy, const struct dti_merge *merge,
                                              ditto_value *const *arguments, ditto_value **result)
{
    uint32_t serial = dti_this_thread()->errors;
    DTI_GUARD("a merge function");
    ditto_status status = merge->function(strategy, arguments, merge->count, merge->user, result);
    DTI_GUARD_END();
    status = dti_function_status(status, serial, "the merge function");
    if (status == DITTO_OK && *result != NULL)
        status = dti_value_check_own(*result, strategy, "the result of the merge function");
    if (status == DITTO_OK && *result != NULL)
        status = check_not_local(*result, __builtin_frame_address(0));
    if (*result != NULL && is_argument(arguments, merge->count, *result))
        (void)dti_value_keep(*result);
    if (status == DITTO_OK)
        return DITTO_OK;
    dti_value_drop(*result); /* the function has given up its reference even if it fails */
    *result = NULL;
    return status;
}

/* Calls the merge function in cross-replica context. `turn` says that this call, and not a run, has taken the
 * turn. */
static ditto_status work_alone(ditto_strategy *strategy, const struct dti_merge *merge, bool turn,
                               ditto_value **result)
{
    ditto_value *arguments[DITTO_MAX_MERGE_ARGUMENTS];
    struct dti_frame frame; /* not initialized: its mask, a kilobyte, is not used */
    DTI_TRY(view_arguments(strategy, merge->count, arguments));
    dti_frame_push_cross(&frame, strategy->base.team);
    frame.scope_depth = 1;
    frame.merges = true;
    frame.has_turn = turn;
    ditto_status status = call_function(strategy, merge, arguments, result);
    dti_frame_pop(&frame);
    for (uint32_t k = 0; k < merge->count; k++)
        dti_value_drop(arguments[k]);
    return status;
}

/* Executes the pause on replica 0. The other replicas wait only for the end of the pause, so this function
 * ends the pause in every case, once it has begun. */
static ditto_status lead(struct dti_replica *r, const struct dti_merge *merge, ditto_value **merged)
{
    if (!dti_pause_begin(r))
        return dti_team_stop_status(r->team);
    ditto_value *nothing = NULL;
    if (merge->no_result)
        merged = &nothing;
    dti_value_drop(*merged);
    *merged = NULL;
    ditto_status status = work_alone(dti_team_strategy(r->team), merge, false, merged);
    if (status != DITTO_OK)
        dti_replica_stop(r);
    dti_pause_end(r);
    return status;
}

/* Executes the pause after a meeting that has failed on this replica with `status`.
 *
 * If the pause takes place, the meeting was complete. The replica was then stopped by an error of a run
 * inside the pause, or it was late after such an error. That run has ended, and the merge function has
 * handled the error. The call succeeds, unless the run is stopped, too. If no pause takes place, or if this
 * replica has stopped the run, the call fails with `status` and the record that belongs to it. */
static ditto_status recover(struct dti_replica *r, ditto_status status)
{
    ditto_error error = *dti_error_get();
    if (dti_pause_refuse(r)) {
        if (!dti_stopped(r->stop))
            return DITTO_OK;
        if (!dti_replica_was_first(r))
            return dti_team_stop_status(r->team);
    }
    dti_error_set(&error);
    return status;
}

/* Executes the pause after a meeting that has succeeded on this replica. */
static ditto_status execute_pause(struct dti_replica *r, const struct dti_merge *merge, ditto_value **merged)
{
    ditto_status status = DITTO_OK;
    dti_trace_begin(r, DTI_TRACE_PAUSE, "pause", NULL);
    if (r->index == 0)
        status = lead(r, merge, merged);
    else if (!dti_pause_serve(r))
        status = dti_team_stop_status(r->team);
    dti_trace_end(r, 0);
    return status;
}

void dti_merge_forget_plain(void)
{
    dti_value_drop(plain_merged);
    plain_merged = NULL;
}

static ditto_status merge_plain(const struct dti_merge *merge, const ditto_tensor *arguments,
                                const ditto_value **result)
{
    ditto_strategy *strategy;
    DTI_TRY(dti_default_strategy(&strategy));
    dti_merge_forget_plain();
    /* The turn protects merging[0], which all threads use. */
    bool taken = dti_team_take_turn(strategy->base.team);
    strategy->merging[0].arguments = arguments;
    ditto_status status = work_alone(strategy, merge, taken, &plain_merged);
    dti_team_give_turn(strategy->base.team, taken);
    if (status == DITTO_OK && result != NULL)
        *result = plain_merged;
    return status;
}

ditto_status dti_merge_call(struct dti_replica *r, const struct dti_merge *merge,
                            const ditto_tensor *arguments, const ditto_value **result)
{
    const struct dti_run_call *call = dti_current_run_call();
    ditto_strategy *strategy = dti_team_strategy(r->team);
    if (call == NULL)
        return merge_plain(merge, arguments, result);
    ditto_value **merged = &strategy->merged[call->level];
    struct dti_matched_call matched = { .name = merge->name,
                                        .object = merge->object,
                                        .arguments = merge->count,
                                        .hash = dti_sync_function(r,
                                                                  (const void *)(uintptr_t)merge->function) };
    if (r->crew != NULL && r->crew->outstanding)
        DTI_TRY(dti_crew_join(r));
    strategy->merging[r->index].arguments = arguments;
    if (r->index == 0)
        dti_pause_announce(r);
    ditto_error kept;
    if (r->index != 0)
        kept = *dti_error_get();
    /* Functions on devices may take any time, so the time limit of the meeting begins after the join. */
    struct dti_deadline deadline = dti_replica_deadline(r, r->timeout_ms);
    ditto_status status = dti_sync_meet(r, &matched, &deadline);
    DTI_TRY(status == DITTO_OK ? execute_pause(r, merge, merged) : recover(r, status));
    if (r->index != 0)
        dti_error_set(&kept); /* a run inside the pause may have failed on this thread */
    if (dti_stopped(r->stop))
        return dti_team_stop_status(r->team);
    if (result != NULL)
        *result = *merged;
    return DITTO_OK;
}
