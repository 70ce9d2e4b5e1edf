/* src/strategy/run.c - a function on every replica, in replica context. */
#include "strategy/strategy.h"

static ditto_status enter_function(struct dti_replica *r, void *argument)
{
    const struct dti_run_call *call = argument;
    ditto_replica *self = (ditto_replica *)(uintptr_t)dti_replica_handle(r);
    struct dti_frame frame; /* its mask, a kilobyte, is not used here and not touched */
    struct dti_fenv saved = dti_frame_enter(&frame, DTI_CONTEXT_REPLICA, r, self);
    DTI_NO_EXCEPTION(returned);
    uint32_t serial = dti_error_serial;
    ditto_status status = call->function(self, call->argument);
    returned = true;
    status = dti_sync_function_returned(r, status, serial);
    dti_frame_leave(&frame, saved);
    return status;
}

ditto_status dti_strategy_run(ditto_strategy *strategy, ditto_replica_fn function, void *argument)
{
    struct dti_team *team = strategy->base.team;
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    if (strategy->call.function != function ||
        strategy->call.argument != argument) /* else the line stays with the replicas */
        strategy->call = (struct dti_run_call){ function, argument };
    ditto_status status = dti_team_run(team, enter_function, &strategy->call, team->options.run_timeout_ms);
    if (dti_stopped(&team->stop) && !team->poisoned) { /* all replicas are parked: the next run starts clean */
        dti_sync_renew(team);
        dti_team_renew(team);
    }
    dti_cross_leave(team, &frame);
    return status;
}
