/* src/replicas/team/cross.c - cross-replica calls, and the dependents of a team. See team.h. */
#include "replicas/machine/affinity.h"
#include "replicas/team/team_private.h"

ditto_status dti_fail_forked(void)
{
    return DTI_FAIL(DITTO_ERR_FORKED,
                    "the strategy was made before fork and is dead in this child process: destroy it and "
                    "create another");
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
    return dti_frame_top != NULL && dti_frame_top->team == team;
}

/* A thread has the turn inside a run (in a merge function), and inside another cross call (in a function that
 * the call runs). A producer of an iterator does not have it. */
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

ditto_status dti_cross_enter(struct dti_team *team, struct dti_frame *frame, enum dti_caller_binding binding)
{
    DTI_TRY(dti_context_check_cross(team));
    if (dti_team_forked(team))
        return dti_fail_forked();
    bool pinned = binding == DTI_CALLER_PINNED && !in_scope(team) && team->options.pin &&
                  !team->options.caller_waits;
    bool has_turn = dti_team_take_turn(team);
    ditto_status status = DITTO_OK;
    if (team->poisoned)
        status = dti_fail_poisoned();
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

/* Enters the team's gate before the list of dependents is changed. Returns the gate to leave, or NULL if it
 * is closed.
 *
 * The list is changed with the turn, but that is not enough. A merge function may run on a thread of the
 * team, as a part of a run that has been given up. It then still uses the turn of its run, while the caller
 * of that run has continued and destroys the strategy. The thread that destroys the strategy shuts the gate
 * before it reads the list. After the gate is closed, no thread reads the list again. */
static struct dti_gate *enter_to_change(struct dti_team *team)
{
    return dti_gate_enter(&team->gate) ? &team->gate : NULL;
}

void dti_dependent_add(struct dti_team *team, struct dti_dependent *dependent)
{
    DTI_LEAVES_GATE(held, enter_to_change(team));
    atomic_store_explicit(&dependent->team, team, memory_order_relaxed); /* see the comment on `team` */
    dependent->before = &team->dependents;
    dependent->next = team->dependents;
    if (dependent->next != NULL)
        dependent->next->before = &dependent->next;
    team->dependents = dependent;
}

void dti_dependent_remove(struct dti_dependent *dependent)
{
    atomic_store_explicit(&dependent->team, NULL, memory_order_relaxed); /* see the comment on `team` */
    *dependent->before = dependent->next;
    if (dependent->next != NULL)
        dependent->next->before = dependent->before;
}

static ditto_status check(const struct dti_dependent *dependent)
{
    return dependent->kind->check != NULL ? dependent->kind->check(dependent) : DITTO_OK;
}

static ditto_status fail_busy(const struct dti_dependent *dependent)
{
    const char *name = dependent->kind->name != NULL ? dependent->kind->name(dependent) : NULL;
    return DTI_FAIL(
        DITTO_ERR_BUSY, "another thread is in a call on %s%s%s%s: destroy it when that has returned",
        dependent->kind->what, name != NULL ? " \"" : "", name != NULL ? name : "", name != NULL ? "\"" : "");
}

/* Destroys a dependent after the end of its team, which has closed the gate. */
static ditto_status destroy_after_team(struct dti_dependent *dependent)
{
    if (dependent->freed_by != DTI_FREED_BY_DESTROY)
        return DITTO_OK;
    DTI_TRY(check(dependent));
    dependent->kind->release(dependent);
    return DITTO_OK;
}

/* Closes the gate of a dependent, which the calling thread has entered. In a child process the gate may count
 * calls of threads that do not exist there. */
static ditto_status close_gate(struct dti_dependent *dependent, bool forked)
{
    DTI_TRY(check(dependent));
    if (forked)
        /* relaxed: the child has one thread */
        atomic_store_explicit(&dependent->gate.word, DTI_GATE_CLOSED, memory_order_relaxed);
    else if (!dti_gate_close_alone(&dependent->gate))
        return fail_busy(dependent);
    return DITTO_OK;
}

/* Removes a dependent from its team. The calling thread has the turn, and the gate is closed. Returns true if
 * the caller must free the dependent after it has given back the turn. */
static bool leave_team(struct dti_dependent *dependent, enum dti_team_end end)
{
    if (dependent->kind->leave != NULL)
        dependent->kind->leave(dependent, end);
    if (end == DTI_TEAM_IS_LEFT)
        dependent->freed_by = DTI_FREED_BY_TEAM; /* it stays in the list, for the end of the team */
    else
        dti_dependent_remove(dependent);
    return dependent->freed_by == DTI_FREED_BY_DESTROY;
}

ditto_status dti_dependent_destroy(struct dti_dependent *dependent)
{
    if (!dti_gate_enter(&dependent->gate))
        return destroy_after_team(dependent);
    /* relaxed: ordered by O1 of the gate. The team exists as long as this thread is in this gate, and later
     * in the gate of the team. */
    struct dti_team *team = atomic_load_explicit(&dependent->team, memory_order_relaxed);
    /* In a child process that was forked while another thread ended the team or the dependent. It is not
     * freed. */
    if (team == NULL)
        return DITTO_OK;
    bool forked = dti_team_forked(team), freed = false;
    /* In a child process the gate may be shut for ever, and the thread that holds the lock may not exist. */
    DTI_LEAVES_GATE(held, forked ? NULL : enter_to_change(team));
    bool taken = !forked && dti_team_take_turn(team);
    ditto_status status = close_gate(dependent, forked);
    if (status != DITTO_OK)
        dti_gate_leave(&dependent->gate);
    else if (forked)
        freed = leave_team(dependent, DTI_TEAM_IS_FORKED);
    else
        freed = leave_team(dependent, team->poisoned ? DTI_TEAM_IS_LEFT : DTI_TEAM_ENDS);
    dti_team_give_turn(team, taken);
    if (freed)
        dependent->kind->release(dependent);
    return status;
}

ditto_status dti_watch(ditto_strategy *strategy, struct dti_dependent *dependent)
{
    struct dti_team *team = dti_team_of(strategy);
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    dti_dependent_add(team, dependent);
    dti_cross_leave(team, &frame);
    return DITTO_OK;
}

struct dti_gate *dti_strategy_hold(ditto_strategy *strategy)
{
    struct dti_gate *held = NULL;
    dti_team_hold_itself(dti_team_of(strategy), &held);
    return held;
}

bool dti_dependent_hold(const struct dti_dependent *dependent, struct dti_gate **held)
{
    /* The dependent is const for the caller, but its gate counts calls. */
    struct dti_gate *gate = (struct dti_gate *)(uintptr_t)&dependent->gate;
    /* relaxed: see the comment on `team` */
    if (!dti_team_hold(atomic_load_explicit(&dependent->team, memory_order_relaxed), gate, held))
        return false;
    if (atomic_load_explicit(&dependent->team, memory_order_relaxed) != NULL)
        return true;
    /* The team is gone although the gate was open. This is a child process that was forked while another
     * thread ended the team. */
    dti_gate_release(held);
    *held = NULL;
    return false;
}
