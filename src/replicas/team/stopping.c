/* src/replicas/team/stopping.c - runs that end with an error. See stopping.h. */
#include "replicas/team/stopping.h"
#include "base/errors/user_call.h"
#include "replicas/team/team_state.h"
#include "replicas/team/turn.h"

#include <sched.h>

bool dti_team_is_stopped(const struct dti_team *team)
{
    return dti_stopped(&team->stop);
}

bool dti_team_is_poisoned(const struct dti_team *team)
{
    return atomic_load_explicit(&team->poisoned, memory_order_relaxed);
}

void dti_team_poison(struct dti_team *team)
{
    atomic_store_explicit(&team->poisoned, true, memory_order_relaxed);
}

void dti_team_clear_poison(struct dti_team *team)
{
    atomic_store_explicit(&team->poisoned, false, memory_order_relaxed);
}

void dti_team_set_stop_report(struct dti_team *team, void (*report)(void *argument, const ditto_error *error),
                              void *argument)
{
    team->stop_report = report;
    team->stop_report_argument = argument;
}

bool dti_deadline_is_of_run(const struct dti_replica *replica, const struct dti_deadline *deadline)
{
    uint64_t of_run = replica->team->run_deadline_ns;
    return of_run != DTI_NEVER && deadline->at_ns == of_run;
}

void dti_replica_ensure_record(const struct dti_replica *r, ditto_status status, uint32_t serial_before)
{
    if (!dti_wrote_record(status, serial_before))
        DTI_FAIL(status, "replica %u's function returned %s (%d) without a message: set one with ditto_fail",
                 r->id, ditto_status_name(status), (int)status);
}

void dti_team_renew(struct dti_team *team)
{
    if (dti_team_forked(team)) /* as in dti_replica_stop */
        return;
    if (team->pauses != 0)
        dti_stop_renew(&team->stop, team->ended);
    else if (!team->poisoned)
        dti_stop_reset(&team->stop);
}

static void report_stop(const struct dti_team *team)
{
    ditto_error error = *dti_error_get();
    if (team->stop_report == NULL)
        return;
    team->stop_report(team->stop_report_argument, &error);
    dti_error_set(&error);
}

void dti_replica_stop(const struct dti_replica *r)
{
    struct dti_team *team = r->team;
    /* In a child process there is no other thread to stop, and a claim of the stop word that another thread
     * had begun would never end. */
    if (dti_team_forked(team))
        return;
    if (!dti_stop_now(&team->stop, dti_error_get(), r->run))
        return;
    dti_wait_queue_signal(&team->wait_queue, DTI_EVERYONE);
    if (r->run == team->outermost)
        report_stop(team);
}

void dti_team_stop_all(struct dti_team *team)
{
    (void)dti_stop_expire(&team->stop, dti_error_get(), DTI_FROM_OUTSIDE);
    dti_wait_queue_signal(&team->wait_queue, DTI_EVERYONE);
}

void dti_team_interrupt(struct dti_team *team)
{
    /* I0. relaxed: the fence orders it. */
    atomic_fetch_add_explicit(&team->interrupts, 1, memory_order_relaxed);
    dti_fence_heavy();
    uint64_t run = atomic_load_explicit(&team->interruptible, memory_order_acquire); /* I1 */
    if (run != DTI_GO_NONE) {
        bool first = dti_stop_expire(&team->stop, dti_error_get(), run);
        /* release: pairs with the acquire of the poster (is_interrupted in jobs.c) */
        atomic_store_explicit(&team->is_interrupted, true, memory_order_release);
        dti_wait_queue_signal(&team->wait_queue, DTI_EVERYONE);
        if (first)
            report_stop(team);
    }
    atomic_fetch_sub_explicit(&team->interrupts, 1, memory_order_release); /* K0 */
}

void dti_team_end_interrupts(struct dti_team *team)
{
    /* J0. relaxed: the fence orders it. */
    atomic_store_explicit(&team->interruptible, DTI_GO_NONE, memory_order_relaxed);
    dti_fence_light();
    while (atomic_load_explicit(&team->interrupts, memory_order_acquire) != 0) /* J1, K1 */
        sched_yield();
    if (atomic_load_explicit(&team->is_interrupted, memory_order_relaxed))
        atomic_store_explicit(&team->is_interrupted, false, memory_order_relaxed);
}

void dti_team_give_up(struct dti_team *team)
{
    /* relaxed: it guards no other data */
    atomic_store_explicit(&team->is_given_up, true, memory_order_relaxed);
}

bool dti_function_is_given_up(void)
{
    const struct dti_team *team = dti_this_thread()->frame != NULL ? dti_this_thread()->frame->team : NULL;
    return team != NULL &&
           (dti_team_is_poisoned(team) || atomic_load_explicit(&team->is_interrupted, memory_order_relaxed) ||
            atomic_load_explicit(&team->is_given_up, memory_order_relaxed));
}

bool dti_team_stop_is_own(const struct dti_team *team)
{
    return !dti_stopped(&team->stop) || team->stop.run == team->outermost;
}

void dti_team_expire(struct dti_team *team)
{
    if (dti_team_forked(team))
        return;
    /* Wakes the replicas also if another error was first, because some may wait for the poster of an inner
     * run to release them. */
    bool first = dti_stop_expire(&team->stop, dti_error_get(), team->outermost);
    dti_wait_queue_signal(&team->wait_queue, DTI_EVERYONE);
    if (first)
        report_stop(team);
}

void dti_replica_stop_late(const struct dti_replica *r, const struct dti_deadline *deadline)
{
    if (dti_deadline_is_of_run(r, deadline))
        dti_team_expire(r->team);
    else
        dti_replica_stop(r);
}

ditto_status dti_team_stop_status(const struct dti_team *team)
{
    const ditto_error *first = &team->stop.error;
    /* A child process does not take part in the run of its parent. */
    if (dti_team_forked(team))
        return dti_fail_forked();
    if (first->status == DITTO_ERR_DIVERGED)
        return DTI_FAIL(DITTO_ERR_DIVERGED, "%s", first->message);
    if (first->replica < 0)
        return DTI_FAIL(DITTO_ERR_PEER_STOPPED, "the run was stopped with %s: %s",
                        ditto_status_name(first->status), first->message);
    return DTI_FAIL(DITTO_ERR_PEER_STOPPED, "replica %d stopped the run with %s: %s", (int)first->replica,
                    ditto_status_name(first->status), first->message);
}

ditto_status dti_replica_stop_status(const struct dti_replica *r)
{
    if (dti_team_forked(r->team) || !dti_replica_was_first(r))
        return dti_team_stop_status(r->team);
    dti_error_set(&r->team->stop.error);
    return r->team->stop.error.status;
}

bool dti_replica_was_first(const struct dti_replica *r)
{
    return r->team->stop.error.replica == (int32_t)r->id;
}

bool dti_team_has_left(const struct dti_team *team, uint32_t replica)
{
    return atomic_load_explicit(&team->replica[replica].done, memory_order_acquire) ==
           team->outermost; /* D1 */
}

bool dti_team_all_returned(const struct dti_team *team)
{
    for (uint32_t i = 0; i < team->n; i++)
        if (!dti_team_has_left(team, i))
            return false;
    return true;
}

bool dti_replica_returned(const struct dti_replica *r)
{
    /* D1 */
    return atomic_load_explicit(&r->of_team->done, memory_order_acquire) == dti_team_run_number(r->team);
}
