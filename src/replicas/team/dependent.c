/* src/replicas/team/dependent.c - adds, holds and destroys the dependents of a team, see dependent.h. */
#include "replicas/team/dependent.h"
#include "replicas/team/team_state.h"
#include "replicas/team/turn.h"

/* Enters the team's gate before the list of dependents is changed. Returns the gate to leave, which may be
 * closed.
 *
 * The list is changed with the turn, but that is not enough. A merge function may run on a thread of the
 * team, as a part of a run that has been given up. It then still uses the turn of its run, while the caller
 * of that run has continued and destroys the strategy. The thread that destroys the strategy shuts the gate
 * before it reads the list. After the gate is closed, no thread reads the list again. */
static struct dti_gate *enter_to_change(struct dti_team *team)
{
    (void)dti_gate_enter(&team->gate);
    return &team->gate;
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
    return DTI_FAIL(DITTO_ERR_BUSY, "a call on %s%s%s%s has not returned: destroy it when that has returned",
                    dependent->kind->what, name != NULL ? " \"" : "", name != NULL ? name : "",
                    name != NULL ? "\"" : "");
}

/* Closes the gate of a dependent, which the calling thread has entered. */
static ditto_status close_gate(struct dti_dependent *dependent, bool forked)
{
    DTI_TRY(check(dependent));
    if (forked)
        dti_gate_close_in_child(&dependent->gate);
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

/* Destroys a dependent in a child process, in which the threads of other calls do not exist. If a function
 * that a call of this thread executes destroys the dependent, the function may return to the call. The
 * dependent then stays until its team ends. Returns true if the caller must free it. */
static bool leave_in_child(struct dti_dependent *dependent, struct dti_team *team)
{
    if (!dti_context_is_of(team))
        return leave_team(dependent, DTI_TEAM_IS_FORKED);
    dependent->freed_by = DTI_FREED_BY_TEAM;
    return false;
}

ditto_status dti_dependent_destroy(struct dti_dependent *dependent)
{
    if (!dti_gate_enter(&dependent->gate)) {
        dti_gate_leave(&dependent->gate);
        /* Destroys a dependent after the end of its team, which has closed the gate. Calls that are refused
         * may still be in the gate, and read the name of the dependent. */
        if (dependent->freed_by != DTI_FREED_BY_DESTROY)
            return DITTO_OK;
        DTI_TRY(check(dependent));
        if (!dti_gate_is_empty(&dependent->gate))
            return fail_busy(dependent);
        dependent->kind->release(dependent);
        return DITTO_OK;
    }
    /* relaxed: ordered by O1 of the gate. The team exists as long as this thread is in this gate, and later
     * in the gate of the team. */
    struct dti_team *team = atomic_load_explicit(&dependent->team, memory_order_relaxed);
    /* This is a child process that was forked while another thread ended the team or the dependent. The
     * dependent is not freed. */
    if (team == NULL)
        return DITTO_OK;
    bool forked = dti_team_forked(team), must_release = false;
    /* In a child process the gate may be shut for ever, and the thread that holds the lock may not exist. */
    DTI_LEAVES_GATE(held, forked ? NULL : enter_to_change(team));
    bool taken = !forked && dti_team_take_turn(team);
    ditto_status status = close_gate(dependent, forked);
    if (status != DITTO_OK)
        dti_gate_leave(&dependent->gate);
    else if (forked)
        must_release = leave_in_child(dependent, team);
    else
        must_release = leave_team(dependent, team->poisoned ? DTI_TEAM_IS_LEFT : DTI_TEAM_ENDS);
    dti_team_give_turn(team, taken);
    if (must_release)
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

bool dti_dependent_hold(const struct dti_dependent *dependent, struct dti_gate **held)
{
    /* The dependent is const for the caller, but its gate counts calls. */
    struct dti_gate *gate = (struct dti_gate *)(uintptr_t)&dependent->gate;
    /* relaxed: see the comment on `team` */
    if (!dti_team_hold(atomic_load_explicit(&dependent->team, memory_order_relaxed), gate, held))
        return false;
    /* If the dependent has no team, although its gate was open, this is a child process that was forked while
     * another thread ended the team. */
    return atomic_load_explicit(&dependent->team, memory_order_relaxed) != NULL;
}

struct dti_dependent *dti_team_dependent_before(const struct dti_team *team,
                                                const struct dti_dependent *later,
                                                const struct dti_dependent_kind *kind)
{
    struct dti_dependent *d = later == NULL ? team->dependents : later->next;
    while (d != NULL && d->kind != kind)
        d = d->next;
    return d;
}
