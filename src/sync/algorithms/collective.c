/* src/sync/algorithms/collective.c - chooses an algorithm for a call and executes it. */
#include "sync/algorithms/collective.h"
#include "base/waiting/stop.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/algorithms/flow.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/algorithms/pair.h"
#include "sync/algorithms/staged.h"
#include "sync/meeting/access.h"
#include "sync/meeting/meeting.h"

ditto_status dti_fail_function(struct dti_replica *self, const struct dti_call *call, ditto_status status,
                               uint32_t serial)
{
    if (status > 0) /* only errors are allowed */
        status = DTI_FAIL(DITTO_ERR_USER,
                          "the function given to %s returned %d (%s): return DITTO_OK, or an error",
                          call->name, (int)status, ditto_status_name(status));
    else if (!dti_wrote_record(status, serial))
        DTI_FAIL(status,
                 "the function given to %s returned %s (%d) without a message: set one with ditto_fail",
                 call->name, ditto_status_name(status), (int)status);
    dti_replica_stop(self);
    return status;
}

/* Goes on after the first meeting, `seq`. `arrival` is for the second one. */
static ditto_status work_and_meet(struct dti_replica *self, const struct dti_call *call, uint32_t seq,
                                  dti_access_work *work, void *context, struct dti_arrival *arrival,
                                  struct dti_deadline *deadline, uint32_t *last_seq)
{
    uint32_t serial = dti_this_thread()->errors;
    if (!dti_access_begin(self))
        return dti_leave_collective(self, dti_team_stop_status(self->team));
    ditto_status status = work(self, seq, context);
    dti_access_end(self);
    /* Errors of the library have a record already. If another replica has stopped the run, a status of the
     * user's function still becomes an error with a record of this replica. */
    if (status != DITTO_OK)
        return dti_leave_collective(self, dti_fail_function(self, call, status, serial));
    /* The second meeting has its own deadline, because the work between the meetings may take long. */
    *deadline = dti_replica_deadline(self, deadline->timeout_ms);
    arrival->call = call;
    arrival->goes_on = true;
    return dti_meet(self, arrival, deadline, last_seq);
}

ditto_status dti_collective_with_results(struct dti_replica *self, const struct dti_call *call,
                                         dti_access_work *work, void *context, struct dti_arrival *arrivals,
                                         struct dti_deadline *deadline, uint32_t *last_seq)
{
    uint32_t seq;
    arrivals[0].call = call;
    DTI_TRY(dti_meet(self, &arrivals[0], deadline, &seq));
    DTI_TRY(dti_meeting_compare(self, seq));
    return work_and_meet(self, call, seq, work, context, &arrivals[1], deadline, last_seq);
}

ditto_status dti_collective_with_access(struct dti_replica *self, const struct dti_call *call,
                                        dti_access_work *work, void *context, struct dti_deadline *deadline)
{
    struct dti_arrival arrivals[2] = { { .call = NULL } };
    uint32_t last_seq;
    return dti_collective_with_results(self, call, work, context, arrivals, deadline, &last_seq);
}

ditto_status dti_barrier(struct dti_replica *self, const struct dti_call *call, struct dti_deadline *deadline)
{
    struct dti_arrival arrival = { .call = call };
    uint32_t seq;
    dti_call_begins(self, call);
    ditto_status status = __builtin_expect(self->sync->hosts == NULL, 1)
                              ? dti_meet(self, &arrival, deadline, &seq)
                              : dti_collective_on_hosts(self, &(struct dti_prepared_call){ .call = call },
                                                        NULL, deadline);
    dti_call_ends(self, call);
    return status;
}

struct collective_move {
    const struct dti_prepared_call *prepared;
    const struct dti_target *target;
    uint32_t timeout_ms;
};

/* The user's function that combines, and the replica that calls it. */
struct combining {
    struct dti_replica *self;
    const struct dti_combine_call *function;
};

/* A ditto_combine_fn. Its arguments are memory of the strategy and no buffers of callers, so it can be called
 * without access to other replicas' buffers (see dti_flow_suspend_access). */
static ditto_status combine_outside(void *out, const void *left, const void *right, size_t count, void *user)
{
    const struct combining *c = user;
    dti_access_end(c->self);
    ditto_status status = c->function->combine(out, left, right, count, c->function->user);
    if (dti_access_begin(c->self) || status != DITTO_OK)
        return status;
    return dti_team_stop_status(c->self->team);
}

static ditto_status move_with_access(struct dti_replica *self, uint32_t seq, void *context)
{
    const struct collective_move *m = context;
    struct dti_sync *sync = self->sync;
    const struct dti_prepared_call *prepared = m->prepared;
    const struct dti_groups *groups = &sync->groups;
    uint32_t group = groups->of[self->index];
    if (prepared->choice.algorithm != DTI_ALGORITHM_GROUPS && dti_all_reduce_pair(self, prepared, seq))
        return DITTO_OK;
    struct dti_flow flow = { .self = self,
                             .sync = sync,
                             .me = &sync->state[self->index],
                             .workspace = &sync->state[self->index].workspace,
                             .call = prepared->call,
                             .target = m->target,
                             .seq = seq,
                             .streams = prepared->choice.streams,
                             .fetches = prepared->choice.fetches,
                             .reduction = prepared->reduction };
    struct combining combining = { self, prepared->call->more };
    if (flow.reduction.function != NULL) {
        flow.reduction.function = combine_outside;
        flow.reduction.user = &combining;
    }
    if (prepared->choice.algorithm != DTI_ALGORITHM_GROUPS)
        return dti_flow_flat(&flow, 0, sync->num_replicas);
    return dti_flow_is_combined(prepared->call)
               ? dti_flow_exchange(&flow, m->timeout_ms)
               : dti_flow_flat(&flow, groups->start[group], groups->start[group + 1]);
}

/* Both replicas know after the meeting whether they use what was staged. If not, they go on as usual. */
static ditto_status move_staged(struct dti_replica *self, struct collective_move *moving,
                                struct dti_deadline *deadline)
{
    const struct dti_call *call = moving->prepared->call;
    struct dti_arrival first = { .call = call }, second = { .call = call };
    uint32_t seq;
    if (dti_stages(call))
        dti_stage(self, call, (uint32_t)self->sync->state[self->index].seq + 1, 0);
    DTI_TRY(dti_meet(self, &first, deadline, &seq));
    DTI_TRY(dti_meeting_compare(self, seq));
    if (dti_both_stage(self, seq))
        return dti_use_staged(self, moving->prepared, seq, deadline);
    return work_and_meet(self, call, seq, move_with_access, moving, &second, deadline, &seq);
}

ditto_status dti_collective_prepared(struct dti_replica *self, const struct dti_prepared_call *prepared,
                                     const struct dti_target *target, struct dti_deadline *deadline)
{
    const struct dti_call *call = prepared->call;
    struct collective_move moving = { prepared, target, deadline->timeout_ms };
    struct dti_fenv saved = dti_fenv_enter();
    dti_call_begins(self, call);
    ditto_status status = prepared->choice.algorithm == DTI_ALGORITHM_MAILBOXES
                              ? dti_collective_in_mailboxes(self, prepared, deadline)
                          : prepared->choice.algorithm == DTI_ALGORITHM_STAGED
                              ? move_staged(self, &moving, deadline)
                          : prepared->choice.algorithm == DTI_ALGORITHM_HOSTS
                              ? dti_collective_on_hosts(self, prepared, target, deadline)
                              : dti_collective_with_access(self, call, move_with_access, &moving, deadline);
    dti_call_ends(self, call);
    /* No function of the user's has run, unless the reduction or the target has one. A started operation on
     * which this replica has worked while it waited restores the environment itself. */
    if (prepared->reduction.function == NULL && target == NULL)
        dti_fenv_leave_unchanged(saved);
    else
        dti_fenv_leave(saved);
    return status;
}

ditto_status dti_collective(struct dti_replica *self, const struct dti_call *call,
                            const struct dti_target *target, struct dti_deadline *deadline)
{
    struct dti_prepared_call prepared = dti_prepare_call(self->sync, &self->sync->tuning.given, call, target);
    return dti_collective_prepared(self, &prepared, target, deadline);
}
