/* src/replicas/team/turn.c - begins and ends cross-replica calls, which take the turn. See turn.h. */
#include "replicas/team/turn.h"
#include "replicas/machine/affinity.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team_state.h"

ditto_status dti_fail_forked(void)
{
    return DTI_FAIL(DITTO_ERR_FORKED, "the strategy was made before fork and cannot be used in this child "
                                      "process: destroy it and create another");
}

ditto_status dti_fail_poisoned(void)
{
    return DTI_FAIL(DITTO_ERR_POISONED,
                    "an earlier run left a replica that never returned: destroy the strategy");
}

ditto_status dti_team_check_usable(const struct dti_team *team)
{
    if (dti_team_forked(team))
        return dti_fail_forked();
    return dti_team_is_poisoned(team) ? dti_fail_poisoned() : DITTO_OK;
}

static bool in_scope(const struct dti_team *team)
{
    return dti_this_thread()->frame != NULL && dti_this_thread()->frame->team == team;
}

/* A thread has the turn inside a run, and inside a cross call that took it. A producer of an iterator does
 * not have it. */
bool dti_team_has_turn(const struct dti_team *team)
{
    for (const struct dti_frame *frame = dti_this_thread()->frame; frame != NULL; frame = frame->below)
        if (frame->team == team && frame->kind != DTI_CONTEXT_INPUT &&
            (frame->kind != DTI_CONTEXT_CROSS || frame->has_turn))
            return true;
    return false;
}

bool dti_team_take_turn(struct dti_team *team)
{
    bool take = !dti_team_has_turn(team);
    if (take)
        pthread_mutex_lock(&team->lock);
    return take;
}

bool dti_team_try_turn(struct dti_team *team, bool *taken)
{
    *taken = !dti_team_has_turn(team);
    return !*taken || pthread_mutex_trylock(&team->lock) == 0;
}

void dti_team_give_turn(struct dti_team *team, bool taken)
{
    if (taken)
        pthread_mutex_unlock(&team->lock);
}

ditto_status dti_cross_enter(struct dti_team *team, struct dti_frame *frame, enum dti_caller_binding binding)
{
    DTI_TRY(dti_context_check_cross(team));
    if (dti_replica_is_forked(team->replica))
        return dti_fail_forked();
    bool pinned = binding == DTI_CALLER_PINNED && !in_scope(team) && team->options.pin &&
                  !team->options.caller_waits;
    bool took_turn = dti_team_take_turn(team);
    ditto_status status = DITTO_OK;
    if (team->poisoned)
        status = dti_fail_poisoned();
    else if (pinned)
        status = dti_pin_if_allowed(&team->replica[0].mask, &frame->saved, &pinned);
    if (status != DITTO_OK) {
        dti_team_give_turn(team, took_turn);
        return status;
    }
    dti_frame_push_cross(frame, team);
    frame->has_turn = took_turn;
    frame->pinned = pinned;
    return DITTO_OK;
}

void dti_cross_leave(struct dti_team *team, struct dti_frame *frame)
{
    dti_frame_pop(frame);
    dti_team_give_turn(team, frame->has_turn);
    if (frame->pinned)
        dti_affinity_restore(&frame->saved);
}

struct dti_gate *dti_strategy_hold(ditto_strategy *strategy)
{
    struct dti_gate *held = NULL;
    dti_team_hold_itself(dti_team_of(strategy), &held);
    return held;
}

void dti_team_enter_gate(struct dti_team *team, struct dti_gate **held)
{
    (void)dti_team_hold(team, &team->gate, held);
}
