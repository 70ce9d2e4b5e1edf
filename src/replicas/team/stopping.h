/* src/replicas/team/stopping.h - runs that end with an error. See also replica.h. */
#ifndef DTI_STOPPING_H
#define DTI_STOPPING_H

#include "replicas/team/replica.h"

struct dti_team;

/* -- Any thread -- */
/* Returns true if the innermost run has been stopped. */
bool dti_team_is_stopped(const struct dti_team *team);
/* Ends all runs with the error record of the calling thread, which is no replica, or with an error that came
 * first. A poster of an inner run cannot clear the stop. Wakes every sleeper. */
void dti_team_stop_all(struct dti_team *team);
/* The poster, after the outermost run: returns false if it was stopped by dti_team_stop_all, or by an error
 * of a run inside it that could not be cleared any more. */
bool dti_team_stop_is_own(const struct dti_team *team);
/* Ends all runs with the error record of the calling thread, because run_timeout_ms has passed. The first
 * error counts. The poster of an inner run cannot clear the stop. Wakes every sleeper. */
void dti_team_expire(struct dti_team *team);
/* Ends the present run of the user, if there is one, with the error record of the calling thread. Its poster
 * then gives up on replicas that do not return in time (jobs.c), and the run ends on all levels. A run that
 * is not one of the user, or that has ended, must never see the stop, so the poster and this thread agree:
 *
 * Edges       I0 -> I1  This thread counts itself in `interrupts` (I0), executes a heavy fence, and reads
 *                       which run may be ended (I1).
 *             J0 -> J1  The poster says that none may (J0), executes a light fence, and reads the count (J1).
 *             K0 -> K1  This thread has set the stop before it takes its count back (K0). The poster that
 *                       reads 0 (K1) sees the stop.
 * Therefore   Either I1 sees J0, and this thread does nothing, or J1 sees I0, and the poster waits until K0
 *             before it looks whether the run was stopped.
 * Progress    The poster waits while another thread copies an error record and wakes sleepers.
 * Model       tests/model/interrupt.pml */
void dti_team_interrupt(struct dti_team *team);
/* The poster: no thread ends the outermost run from here on. Waits for those that do it now. */
void dti_team_end_interrupts(struct dti_team *team);
/* Says that nobody waits for the functions of the present run any more (dti_function_is_given_up), although
 * the team is not poisoned: they are those of a retired worker whose coordinator is destroyed. */
void dti_team_give_up(struct dti_team *team);
/* Returns PEER_STOPPED with the first error in its message, and the replica that failed if there is one. If
 * the first error was DIVERGED it returns DIVERGED, because that error concerns all replicas. In a child
 * process it returns FORKED. */
ditto_status dti_team_stop_status(const struct dti_team *team);
/* Returns true if an error of this replica was the first one. The caller has seen the stop. */
bool dti_replica_was_first(const struct dti_replica *r);
/* Returns the error that stopped the run, which is then in the record of this thread, if this replica was the
 * first one. Otherwise the same as dti_team_stop_status. */
ditto_status dti_replica_stop_status(const struct dti_replica *r);
/* Sets what is called when an error has ended the outermost run, by the thread that brought it. The function
 * must not wait. It is not called for dti_team_stop_all. NULL means nothing. */
void dti_team_set_stop_report(struct dti_team *team, void (*report)(void *argument, const ditto_error *error),
                              void *argument);

/* Between dti_cross_enter and dti_cross_leave: clears the stop of the run that ended last (jobs/jobs.h). */
void dti_team_renew(struct dti_team *team);

/* -- Poisoned teams, some of whose replicas have not returned -- */
/* Returns true if the team is poisoned. The answer is only a hint unless the calling thread has the turn. */
bool dti_team_is_poisoned(const struct dti_team *team);
/* Called when something outside the team that never returned may still use its memory. The calling thread has
 * the turn. */
void dti_team_poison(struct dti_team *team);
/* Called when all replicas of a poisoned team have returned after all. The calling thread has the turn. */
void dti_team_clear_poison(struct dti_team *team);
/* Returns true if all replicas have returned from the last outermost run. Having returned from a run inside
 * it is not enough. */
bool dti_team_all_returned(const struct dti_team *team);

#endif
