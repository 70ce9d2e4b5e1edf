/* src/replicas/team/turn.h - the turn of a team, and the gates that cross calls enter. */
#ifndef DTI_TURN_H
#define DTI_TURN_H

#include "base/types/types.h"
#include "replicas/team/team.h"

/* Returns FORKED with its message. */
ditto_status dti_fail_forked(void);
/* Returns POISONED with the message of a call on a poisoned strategy. */
ditto_status dti_fail_poisoned(void);
/* Returns FORKED or POISONED if the strategy of the team may only be destroyed. This is an early check, which
 * is repeated when a call takes the turn. */
ditto_status dti_team_check_usable(const struct dti_team *team);

/* Begins a cross call. Checks the context, and that the team is neither forked nor poisoned, and takes the
 * turn. With DTI_CALLER_PINNED, which is for calls that run a job, it also pins the caller to replica 0's PU,
 * unless the caller is in a scope and therefore pinned already. The caller provides `frame`, and passes it to
 * dti_cross_leave. A caller that does not work as replica 0, whose strategy binds no threads, or that may not
 * use replica 0's PU any more, is not pinned. Errors: CONTEXT, FORKED, POISONED, SYSTEM. After an error the
 * caller must not call dti_cross_leave. */
enum dti_caller_binding { DTI_CALLER_KEEPS_AFFINITY, DTI_CALLER_PINNED };
DTI_COMPANION ditto_status dti_cross_enter(struct dti_team *team, struct dti_frame *frame,
                                           enum dti_caller_binding binding);
DTI_COMPANION void dti_cross_leave(struct dti_team *team, struct dti_frame *frame);

/* Returns true if the calling thread is inside a run or another cross call of the team. */
bool dti_team_has_turn(const struct dti_team *team);
/* Takes the turn, for callers that need nothing else of dti_cross_enter. Returns false if the calling thread
 * had the turn already. The result is passed to dti_team_give_turn. */
bool dti_team_take_turn(struct dti_team *team);
/* Does the same, but does not wait. Returns false if another thread has the turn. */
bool dti_team_try_turn(struct dti_team *team, bool *taken);
void dti_team_give_turn(struct dti_team *team, bool taken);

/* For companion libraries: does the work of DTI_HOLD_STRATEGY. Returns the gate that the caller must leave,
 * or NULL. */
DTI_COMPANION struct dti_gate *dti_strategy_hold(ditto_strategy *strategy);

/* Enters the gate of the team or of one of its dependents. *held is the gate to leave. It is not set if this
 * thread is inside a run or another call of the team, because that call holds the gate already. Therefore a
 * function of a poisoned run that never returns does not keep the strategy from being destroyed. Returns
 * false if the gate is closed, and also then *held is the gate to leave. `team` is only compared. */
static inline bool dti_team_hold(const struct dti_team *team, struct dti_gate *gate, struct dti_gate **held)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    if (top != NULL && dti_team_has_turn(team))
        return true;
    /* The thread that has shut the gates may be waiting for this producer, so the producer must not wait for
     * them. */
    *held = gate;
    return top != NULL && top->kind == DTI_CONTEXT_INPUT ? dti_gate_try(gate) : dti_gate_enter(gate);
}
/* dti_team_hold for the gate of the team itself. */
void dti_team_enter_gate(struct dti_team *team, struct dti_gate **held);

/* Holds the team for a public function. A thread in the scope of the strategy does not enter the gate,
 * because no strategy is destroyed while its scope is entered on any thread. */
static inline void dti_team_hold_itself(struct dti_team *team, struct dti_gate **held)
{
    const struct dti_frame *top = dti_this_thread()->frame;
    if (top == NULL || top->team != team || !top->is_scope)
        dti_team_enter_gate(team, held);
}
/* The first statement of a public function that takes a strategy in cross-replica context. NULL is refused
 * with INVALID. Any other strategy is not destroyed before the function returns. Passing a strategy that has
 * already been destroyed is an error of the caller, and is not detected. */
#define DTI_HOLD_STRATEGY(strategy)                \
    DTI_TRY(dti_not_null((strategy), "strategy")); \
    DTI_LEAVES_GATE(held_strategy_, NULL);         \
    dti_team_hold_itself(dti_team_of(strategy), &held_strategy_)

#endif
