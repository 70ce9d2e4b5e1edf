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
