/* src/replicas/cross.c - how a cross-replica call takes its turn on a team, and what hangs on a team. Contracts in
 * team.h. */
#include "replicas/pin.h"
#include "replicas/team.h"

ditto_status dti_fail_forked(void)
{
    return DTI_FAIL(DITTO_ERR_FORKED,
                    "the strategy was made before fork and is dead in this child process: destroy it and "
                    "create another");
}

static bool in_scope(const struct dti_team *team)
{
    return dti_frame_top != NULL && dti_frame_top->team == team;
}

/* Inside another cross call (in a function that it calls), or inside a run (in a merge function): those have the turn. A producer of
 * an iterator has none. */
bool dti_team_has_turn(const struct dti_team *team)
{
    for (const struct dti_frame *frame = dti_frame_top; frame != NULL; frame = frame->below)
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

void dti_team_give_turn(struct dti_team *team, bool taken)
{
    if (taken)
        pthread_mutex_unlock(&team->lock);
}

ditto_status dti_cross_enter(struct dti_team *team, struct dti_frame *frame, enum dti_caller_place place)
{
    DTI_TRY(dti_context_check_cross(team));
    if (dti_team_forked(team))
        return dti_fail_forked();
    bool pinned = place == DTI_CALLER_PINNED && !in_scope(team) && team->options.pin && !team->options.caller_waits;
    bool has_turn = dti_team_take_turn(team);
    ditto_status status = DITTO_OK;
    if (team->poisoned)
        status =
            DTI_FAIL(DITTO_ERR_POISONED, "an earlier run left a replica that never returned: destroy the strategy");
    else if (pinned) {
        status = dti_affinity_get(&frame->saved);
        if (status == DITTO_OK)
            status = dti_pin_to(&team->replica[0].mask);
    }
    if (status != DITTO_OK) {
        dti_team_give_turn(team, has_turn);
        return status;
    }
    dti_frame_push_cross(frame, team);
    frame->has_turn = has_turn;
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

/* -- dependents -- */

void dti_dependent_add(struct dti_team *team, struct dti_dependent *dependent)
{
    dependent->home = team;
    dependent->before = &team->dependents;
    dependent->next = team->dependents;
    if (dependent->next != NULL)
        dependent->next->before = &dependent->next;
    team->dependents = dependent;
}

void dti_dependent_remove(struct dti_team *team, struct dti_dependent *dependent)
{
    (void)team; /* whose lock the caller holds */
    *dependent->before = dependent->next;
    if (dependent->next != NULL)
        dependent->next->before = dependent->before;
}

ditto_status dti_watch(ditto_strategy *strategy, struct dti_dependent *dependent)
{
    struct dti_team *team = dti_team_of(strategy);
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_WHERE_IT_IS));
    dti_dependent_add(team, dependent);
    dti_cross_leave(team, &frame);
    return DITTO_OK;
}

struct dti_gate *dti_strategy_hold(ditto_strategy *strategy)
{
    struct dti_gate *held = NULL;
    (void)dti_team_hold(dti_team_of(strategy), &dti_team_of(strategy)->gate, &held);
    return held;
}

bool dti_dependent_hold(struct dti_dependent *dependent, struct dti_gate **held)
{
    return dti_team_hold(dependent->home, &dependent->gate, held);
}

bool dti_unwatch(ditto_strategy *strategy, struct dti_dependent *dependent)
{
    if (strategy == NULL)
        return true;
    struct dti_team *team = dti_team_of(strategy);
    bool forked = dti_team_forked(team);
    bool taken = !forked && dti_team_take_turn(team); /* else its holder may be a thread that is not there */
    dependent->unwanted = team->poisoned && !forked;
    if (!dependent->unwanted)
        dti_dependent_remove(team, dependent);
    dti_team_give_turn(team, taken);
    return !dependent->unwanted;
}
