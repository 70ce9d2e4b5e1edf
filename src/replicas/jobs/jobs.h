/* src/replicas/jobs/jobs.h - jobs, which all replicas of a team execute.
 *
 * A run is a fork and join. Runs nest. While all replicas pause inside a run (pause.c), replica 0's thread
 * may post further jobs, and the other replicas execute these jobs where they wait. Only the innermost run
 * can make progress, so one stop word is enough. The thread that posts a job is called the poster.
 *
 * Invariants  I1  Every go number is posted once. The numbers have 64 bits and do not wrap (2^32 posts
 *                 already take minutes). `run` is the number of the innermost run. It differs from the done
 *                 number of every replica that is still in that run.
 *             I2  Job and argument change only after all replicas have seen the previous go number. At that
 *                 time they have finished its job, or they have met since.
 * Edges       G0 -> G1  The poster writes the job and posts the go number. Every replica that sees the new
 *                       number sees the job. The end of a pause is posted in the same way.
 *             D0 -> D1  A replica stores its done number after its job. The poster that sees the number sees
 *                       the effects of the job.
 * Ending      The word `ending` ends the threads. It is separate from `go`, because a poisoned team may be
 *             ended while replica 0 still posts.
 * Progress    A run returns when every job has returned. With a run timeout it may give up on some replicas,
 *             and the team is then poisoned.
 * Model       tests/model/pause.pml */
#ifndef DTI_JOBS_H
#define DTI_JOBS_H

#include "replicas/team/team.h"

/* The least time that replicas have to return after the time limit of a run has passed. Only tests with
 * replicas that never return in time change it. */
extern uint32_t dti_grace_least_ms;

/* Runs job(replica, argument) on the thread of every replica. Called between dti_cross_enter and
 * dti_cross_leave. The caller works as replica 0, unless the option caller_waits is set. If the option
 * host_floating is set, functions of the user that the job calls have the floating-point environment of the
 * calling thread. In a job inside a run they have that of the run.
 * Returns the first error, and writes its record in the calling thread. Without an error it returns the
 * positive status of the replica with the lowest id that returned one, or DITTO_OK.
 * After an error the stop stays set, so that the modules above can renew their state. They then call
 * dti_team_renew, which clears the stop of the run that ended last. A stop of an outer run stays. A run of
 * the user has the limit of the option run_timeout_ms, and dti_team_interrupt may end it. All other jobs have
 * no limit. If the limit passes, or a run was interrupted, and a replica does not return, the team is
 * poisoned (see dti_team_destroy). */
ditto_status dti_team_run(struct dti_team *team, dti_job job, void *argument, bool of_user);
/* A poster that is not replica 0 calls work(argument) whenever it looks whether a run has ended. A thread
 * that has work for it signals the wait queue (DTI_EVERYONE). Set once, before other threads know the
 * strategy. */
void dti_team_set_poster_work(struct dti_team *team, void (*work)(void *argument), void *argument);
/* The thread that has posted the present run. Returns the limit of the run. */
struct dti_deadline dti_team_run_deadline(const struct dti_team *team);

#endif
