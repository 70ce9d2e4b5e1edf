/* src/replicas/team/dependent.h - objects that live on a team, and what happens to them when they or the team
 * are destroyed. */
#ifndef DTI_DEPENDENT_H
#define DTI_DEPENDENT_H

#include <ditto/strategy.h>

#include "base/waiting/gate.h"

/* How a team ends. */
enum dti_team_end {
    DTI_TEAM_ENDS,

    /* The team ends in a child process, in which its threads do not exist. */
    DTI_TEAM_IS_FORKED,

    /* The team is poisoned. A replica that never returned may still use all of its memory. */
    DTI_TEAM_IS_LEFT,
};

struct dti_dependent;

/* The functions with which one kind of dependent reacts to its end. A function that is NULL has nothing to
 * do. */
struct dti_dependent_kind {
    /* For the messages of its destroy function: "the variable", and the name of the object if it has one. */
    const char *what;
    const char *(*name)(const struct dti_dependent *self);

    /* Returns an error if something else needs the dependent. It is then not destroyed. The calling thread
     * has the turn, or the team has ended. */
    ditto_status (*check)(const struct dti_dependent *self);

    /* The user destroys the dependent while the team exists. The function removes it from the lists that it
     * is in, and frees its memory in the arenas of replicas unless `end` is DTI_TEAM_IS_LEFT. The calling
     * thread has the turn, and the dependent's gate is closed. */
    void (*leave)(struct dti_dependent *self, enum dti_team_end end);

    /* The team ends before the dependent. The function drops every reference to the team, unless `end` is
     * DTI_TEAM_IS_LEFT. The calling thread has the turn, and the dependent's gate is still shut. */
    void (*team_ends)(struct dti_dependent *self, enum dti_team_end end);

    /* Frees the memory of the dependent itself. Any thread may call it. */
    void (*release)(struct dti_dependent *self);
};

/* Says which call frees a dependent. */
enum dti_freed_by {
    /* The destroy function that the user calls, before or after the end of the team. */
    DTI_FREED_BY_DESTROY,

    /* The end of the team. Either the user has destroyed the dependent while the team was poisoned, so that a
     * replica that never returned might still use it, or the dependent is internal and the user has no handle
     * to it. If the team ends with DTI_TEAM_IS_LEFT, the dependent is not freed. */
    DTI_FREED_BY_TEAM,

    /* It is never freed. Its team was left to a replica that never returned, or a thread that does not exist
     * in this child process may have been changing it. */
    DTI_FREED_BY_NOBODY,
};

/* An object that lives on a team and must drop its references to the team before the team is destroyed: a
 * variable, an optimizer, an iterator, a checkpointer, or a strategy's values or registry of variables.
 * Before it is added, all members are zero except `kind`, and `freed_by` if that is DTI_FREED_BY_TEAM.
 *
 * freed_by is written by a thread that has the turn, or by the thread that shut the gate, while the gate is
 * shut. A destroy function reads it after its own write, or after it has found the gate closed. In the second
 * case the acquire of dti_gate_enter is O1, and the release of dti_gate_close is O0. */
struct dti_dependent {
    const struct dti_dependent_kind *kind;
    enum dti_freed_by freed_by;
    struct dti_dependent *next;
    struct dti_dependent **before;

    /* Entered by cross calls on the object. It is closed when the object is destroyed and when the team
     * ends. */
    struct dti_gate gate;

    /* The team to which the dependent was added. It is set to NULL when the dependent leaves the team,
     * because a later team may have the same address. Outside the gate it is only compared with the teams
     * whose turn the calling thread has.
     *
     * relaxed: If the dependent's team is one of those, then the thread had the turn already and sees that
     * the dependent was added. If it is an earlier team at the same address, then that team ended before the
     * later one was created, and its end is seen. */
    _Atomic(struct dti_team *) team;
};

/* Add a dependent to a team, and remove it. The calling thread has the turn, or no other thread knows the
 * team yet. */
void dti_dependent_add(struct dti_team *team, struct dti_dependent *dependent);
void dti_dependent_remove(struct dti_dependent *dependent);
/* Ends a dependent that its user destroys. The team may still exist, may have ended, may be poisoned, or may
 * belong to the parent process. The caller has checked the context (dti_context_check_outside), because the
 * replicas of a run all have the turn and could otherwise change the list of dependents at the same time.
 * Returns BUSY if a call on the dependent has not returned, even one that is refused, or an error of its
 * `check`. That call may have been made by another thread. It may also have been made by this thread, if a
 * function that the call executes destroys the dependent. After an error nothing has changed. */
DTI_COMPANION ditto_status dti_dependent_destroy(struct dti_dependent *dependent);
/* For companion libraries: takes the turn and adds a dependent. After CONTEXT, FORKED or POISONED nothing was
 * added. */
DTI_COMPANION ditto_status dti_watch(ditto_strategy *strategy, struct dti_dependent *dependent);
/* Enters the gate of a dependent, as dti_team_hold does. Returns false if the strategy of the dependent has
 * been destroyed. *held is the gate that the caller must leave, or NULL, also after false. Until the caller
 * leaves it, the dependent is not freed, so an error message can name it. */
DTI_COMPANION bool dti_dependent_hold(const struct dti_dependent *dependent, struct dti_gate **held);

/* Returns the dependent of this kind that was added last before `later`, or last of all if `later` is NULL.
 * Returns NULL if there is none. The calling thread has the turn. */
struct dti_dependent *dti_team_dependent_before(const struct dti_team *team,
                                                const struct dti_dependent *later,
                                                const struct dti_dependent_kind *kind);

#endif
