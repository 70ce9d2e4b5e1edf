/* src/replicas/jobs/jobs.c - runs: fork and join, and the part of one replica. See jobs.h. */
#include "replicas/jobs/jobs.h"
#include "replicas/helpers/crew.h"
#include "replicas/jobs/jobs_private.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/thread.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* After a run timeout, replicas that wait in the library have a quarter of the limit to return, within these
 * bounds. */
uint32_t dti_grace_least_ms = 250;
#define GRACE_MOST_MS 1000u

/* After dti_team_interrupt replicas have this time. A user who has pressed Ctrl-C waits for it. */
#define INTERRUPT_GRACE_MS 500u

/* -- the run of one replica -- */

static void set_wait_policy(struct dti_replica *r)
{
    struct dti_wait_policy policy = dti_team_wait_policy(r->team, r->pu.number, &r->load_epoch);
    dti_wait_policy_replace(&r->wait_policy, policy);
    dti_wait_policy_replace(&r->rest_policy, policy);
}

/* Returns true if the user has submitted functions to devices and has not joined them. */
static bool has_unjoined(const struct dti_replica *r)
{
    return r->crew != NULL && r->crew->outstanding;
}

void dti_team_work(struct dti_replica *r, uint64_t number)
{
    struct dti_team *team = r->team;
    int32_t outer_replica = dti_this_thread()->replica; /* the value outside this run */
    uint64_t outer_run = r->run;
    if (r->load_epoch != dti_load_epoch())
        set_wait_policy(r);
    dti_this_thread()->replica = (int32_t)r->id;
    r->run = number;
    const char *outer_function = dti_public_enter(team->function);
    uint32_t serial = dti_this_thread()->errors;
    ditto_status status = team->job(r, team->argument);
    /* An error on a device counts as an error of the function. */
    if (status >= 0 && has_unjoined(r)) {
        ditto_status joined = dti_crew_join(r);
        status = joined < 0 ? joined : status;
    }
    ditto_status outcome = status > 0 ? status : DITTO_OK;
    /* The outcome is stored only if it has changed, because the poster polls this cache line. */
    if (r->outcome != outcome)
        r->outcome = outcome;
    if (status < 0) {
        dti_replica_ensure_record(r, status, serial);
        dti_replica_stop(r);
        /* The error has been recorded already. The join only waits for functions that have begun, so that
         * none of them runs after the run has ended. */
        if (has_unjoined(r))
            (void)dti_crew_join(r);
    }
    dti_public_leave(&outer_function);
    dti_this_thread()->replica = outer_replica;
    r->run = outer_run;
    /* release: pairs with the acquire in dti_team_any_returned, which waiters in a meeting call */
    if (team->oversubscribed)
        atomic_fetch_add_explicit(&team->returned, 1, memory_order_release);
    atomic_store_explicit(&r->done, number, memory_order_release); /* D0 */
    dti_wait_queue_signal(&team->wait_queue, r->index);
    /* Peers may wait in a meeting at which this replica will not arrive. They check again when a replica
     * returns. */
    dti_wait_queue_signal(&team->wait_queue, DTI_AWAITS_MEETING(team->n));
}

bool dti_team_go_changed(void *argument)
{
    const struct dti_replica *r = argument;
    return atomic_load_explicit(&r->team->go, memory_order_acquire) != r->seen; /* G1 */
}

static bool is_ending(const struct dti_team *team)
{
    /* acquire: pairs with the release in dti_team_end_threads */
    return atomic_load_explicit(&team->ending, memory_order_acquire);
}

static bool is_called(void *argument)
{
    const struct dti_replica *r = argument;
    return dti_team_go_changed(argument) || is_ending(r->team);
}

/* Waits for the next job, whose number is then in r->seen. Returns false if there will be none. */
static bool await_go(struct dti_replica *r)
{
    struct dti_team *team = r->team;
    dti_wait(&team->wait_queue, r->index, DTI_AWAITS_GO(team->n), &r->rest_policy,
             &(struct dti_deadline){ .timeout_ms = DITTO_FOREVER }, is_called, r);
    r->seen = atomic_load_explicit(&team->go, memory_order_acquire); /* G1 */
    return !is_ending(team);
}

void *dti_team_thread_main(void *argument)
{
    struct dti_replica *r = argument;
    struct dti_team *team = r->team;
    char name[16];
    snprintf(name, sizeof name, "ditto-r%u", r->id);
    dti_thread_begin(name);
    r->tid = (int32_t)syscall(SYS_gettid);
    dti_thread_hook(team->options.thread_start, r->id, team->options.thread_user);
    set_wait_policy(r);
    while (await_go(r)) {
        dti_team_work(r, r->seen);
        /* The function has forked, and this is the child process, in which no job will ever be posted. This
         * is the only thread of the process, so its return ends the process, as a return from main does. Its
         * helpers do not exist in this process and cannot be joined. */
        if (dti_team_forked(team))
            return NULL;
    }
    /* The leader ends its helpers itself, so that even a leader that was given up on ends them when it
     * returns. */
    dti_crew_end_threads(r->crew);
    dti_thread_hook(team->options.thread_stop, r->id, team->options.thread_user);
    return NULL;
}

/* -- run -- */

uint64_t dti_team_next_number(const struct dti_team *team)
{
    /* relaxed: the poster has seen the number that was posted last */
    return atomic_load_explicit(&team->go, memory_order_relaxed) + 1;
}

void dti_team_post(struct dti_team *team, uint64_t number)
{
    atomic_store_explicit(&team->go, number, memory_order_release); /* G0 */
    dti_wait_queue_signal(&team->wait_queue, DTI_AWAITS_GO(team->n));
}

void dti_team_end_threads(struct dti_team *team)
{
    /* release: pairs with the acquire in is_ending */
    atomic_store_explicit(&team->ending, true, memory_order_release);
    dti_wait_queue_signal(&team->wait_queue, DTI_AWAITS_GO(team->n));
}

/* A run, from the poster's point of view. */
struct run {
    uint64_t number;
    bool waits; /* the poster is not replica 0 */
    bool inner; /* posted in a pause inside another run */
    bool of_user;
    struct dti_deadline deadline;
};

struct run_wait {
    const struct dti_replica *replica;
    uint64_t number;
    const struct dti_team *works; /* the team whose poster works while it waits, or NULL */
    bool may_end_early;           /* the wait ends if the run is interrupted */
    bool is_done;                 /* the replica has finished the job, or will never execute it */
};
static void work_while_waiting(const struct run_wait *w)
{
    if (w->works != NULL)
        w->works->poster_work(w->works->poster_argument);
}
/* acquire: pairs with the release in dti_team_interrupt */
static bool is_interrupted(const struct dti_team *team)
{
    return atomic_load_explicit(&team->is_interrupted, memory_order_acquire);
}
static bool ends(struct run_wait *w, bool is_done)
{
    w->is_done = is_done;
    return is_done || (w->may_end_early && is_interrupted(w->replica->team));
}
/* Returns true also for a replica that will never execute the job, because it has returned from the outermost
 * run. */
static bool is_done_or_returned(void *argument)
{
    struct run_wait *w = argument;
    work_while_waiting(w);
    uint64_t done = atomic_load_explicit(&w->replica->done, memory_order_acquire); /* D1 */
    return ends(w, done == w->number || done == w->replica->team->outermost);
}
static bool is_done(void *argument)
{
    struct run_wait *w = argument;
    work_while_waiting(w);
    return ends(w, atomic_load_explicit(&w->replica->done, memory_order_acquire) == w->number); /* D1 */
}

/* Waits until all replicas have finished the run, or will never execute it. Returns false if the deadline has
 * passed first, or the run was interrupted and may end early. */
static bool join(struct dti_team *team, const struct run *run, struct dti_deadline *deadline,
                 bool may_end_early)
{
    struct dti_wait_policy asleep = { 0 };
    for (uint32_t i = run->waits ? 0 : 1; i < team->n; i++) {
        struct run_wait w = { &team->replica[i], run->number,
                              run->waits && team->poster_work != NULL ? team : NULL, may_end_early, false };
        if (!dti_wait(&team->wait_queue, run->waits ? team->n : 0, i,
                      run->waits ? &asleep : &team->replica[0].wait_policy, deadline,
                      run->inner ? is_done_or_returned : is_done, &w) ||
            !w.is_done)
            return false;
    }
    return true;
}

void dti_team_list_missing(const struct dti_team *team, uint64_t number, char *buffer, size_t size)
{
    struct dti_text text = { buffer, size, 0 };
    bool missing[DITTO_MAX_REPLICAS];
    buffer[0] = '\0';
    for (uint32_t i = 0; i < team->n; i++) {
        struct run_wait w = { &team->replica[i], number, NULL, false, false };
        missing[i] = !(i == 0 && !team->options.caller_waits) && !is_done(&w);
    }
    dti_text_add_set(&text, missing, team->n, team->first);
}

static uint32_t grace_ms(const struct dti_team *team)
{
    uint32_t quarter = team->options.run_timeout_ms / 4;
    return quarter < dti_grace_least_ms ? dti_grace_least_ms
           : quarter > GRACE_MOST_MS    ? GRACE_MOST_MS
                                        : quarter;
}

/* The time limit of the run has passed, or the run was interrupted. Replicas that wait in the library are
 * stopped. If other replicas do not return, they are given up on, and the team is poisoned. */
static void give_up(struct dti_team *team, const struct run *run)
{
    char missing[256];
    if (is_interrupted(team)) { /* dti_team_interrupt has stopped them */
        if (!join(team, run, &(struct dti_deadline){ .timeout_ms = INTERRUPT_GRACE_MS }, false))
            dti_team_poison(team);
        return;
    }
    dti_team_list_missing(team, run->number, missing, sizeof missing);
    DTI_FAIL(DITTO_ERR_TIMED_OUT, "run_timeout_ms = %u passed, and these replicas had not returned: %s",
             team->options.run_timeout_ms, missing);
    dti_team_expire(team);
    if (!join(team, run, &(struct dti_deadline){ .timeout_ms = grace_ms(team) }, false))
        dti_team_poison(team);
}

/* Writes the error of the run into the caller's record. The stop record itself stays as it was published. */
static ditto_status record_run_error(const struct dti_team *team, const struct run *run)
{
    ditto_error error = team->stop.error;
    if (!run->inner && team->stop.run != run->number && team->stop.run != DTI_FROM_OUTSIDE &&
        dti_lived_ns() >= team->run_deadline_ns) {
        /* A run inside this one was stopped first, and the time limit passed before that stop was handled. */
        DTI_FAIL(DITTO_ERR_TIMED_OUT,
                 "run_timeout_ms = %u passed in a run inside this one, which had failed with %s: %s",
                 team->options.run_timeout_ms, ditto_status_name(error.status), error.message);
        error = *dti_error_get();
    }
    if (team->poisoned) {
        char missing[256];
        dti_team_list_missing(team, run->number, missing, sizeof missing);
        char message[sizeof error.message];
        memcpy(message, error.message, sizeof message);
        if (missing[0] != '\0')
            DTI_FAIL(error.status,
                     "%s; replicas %s still run: the strategy is poisoned, only destroy is allowed", message,
                     missing);
        else
            DTI_FAIL(error.status,
                     "%s; the last replica returned only after its limit had passed: the strategy is "
                     "poisoned, only destroy is allowed",
                     message);
        memcpy(error.message, dti_error_get()->message, sizeof error.message);
    }
    dti_error_set(&error);
    return error.status;
}

/* Writes only if the job has changed, because the replicas poll this cache line for `go`. */
void dti_team_set_job(struct dti_team *team, dti_job job, void *argument)
{
    if (team->job == job && team->argument == argument && team->function == dti_this_thread()->function)
        return;
    team->job = job;
    team->argument = argument;
    team->function = dti_this_thread()->function;
}

/* Makes `number` the innermost run, from which no replica has returned.
 * relaxed: all replicas are parked or serve, and `go` publishes the stores. */
static void number_run(struct dti_team *team, uint64_t number)
{
    atomic_store_explicit(&team->run, number, memory_order_relaxed);
    if (team->oversubscribed)
        atomic_store_explicit(&team->returned, 0, memory_order_relaxed);
}

/* Allows pauses in a run that begins. relaxed: as in number_run. */
static void open_pauses(struct dti_team *team)
{
    uint32_t level = team->pauses;
    if (atomic_load_explicit(&team->pause[level], memory_order_relaxed) != DTI_PAUSE_OPEN)
        atomic_store_explicit(&team->pause[level], DTI_PAUSE_OPEN, memory_order_relaxed);
    if (atomic_load_explicit(&team->refused[level], memory_order_relaxed) != 0)
        atomic_store_explicit(&team->refused[level], 0, memory_order_relaxed);
}

static ditto_status finish_run(struct dti_team *team, struct run *run)
{
    if (!run->waits)
        dti_team_work(&team->replica[0], run->number);
    /* The function of replica 0 may have forked. In the child process there is no other replica to wait
     * for. */
    if (dti_replica_is_forked(team->replica))
        return dti_fail_forked();
    if (!join(team, run, &run->deadline, run->of_user))
        give_up(team, run);
    if (run->of_user && !run->inner)
        dti_team_end_interrupts(team);
    if (dti_stopped(&team->stop)) /* also true if the run was given up */
        return record_run_error(team, run);
    for (uint32_t i = 0; i < team->n; i++)
        if (team->replica[i].outcome != DITTO_OK)
            return team->replica[i].outcome;
    return DITTO_OK;
}

/* Runs a job in a pause inside another run. Replicas do not return from that run before this job has ended,
 * because they leave no pause that has begun. A run of the user has the time limit of the outer run. An
 * internal job has no limit, because the other replicas serve and so will execute it, and because its
 * argument may be on the stack of this thread. */
static ditto_status run_inside(struct dti_team *team, struct run *run)
{
    uint64_t outer = dti_team_run_number(team);
    if (run->of_user)
        run->deadline = (struct dti_deadline){ team->options.run_timeout_ms, team->run_deadline_ns };
    open_pauses(team);
    number_run(team, run->number);
    dti_team_post(team, run->number);
    ditto_status status = finish_run(team, run);
    number_run(team, outer);
    team->ended = run->number;
    return status;
}

ditto_status dti_team_run(struct dti_team *team, dti_job job, void *argument, bool of_user)
{
    struct run run = { .number = dti_team_next_number(team),
                       .waits = team->options.caller_waits && team->pauses == 0,
                       .inner = team->pauses != 0,
                       .of_user = of_user,
                       .deadline = { of_user ? team->options.run_timeout_ms : DITTO_FOREVER, 0 } };
    dti_team_set_job(team, job, argument);
    if (run.inner)
        return run_inside(team, &run);
    if (team->options.host_floating)
        team->host = dti_fenv_current();
    open_pauses(team);
    number_run(team, run.number);
    team->outermost = run.number;
    team->run_deadline_ns = dti_deadline_at(&run.deadline);
    /* release: pairs with the acquire I1 (stopping.h). The thread that ends this run overwrites the error of
     * the last one, which all replicas have read. */
    if (of_user)
        atomic_store_explicit(&team->interruptible, run.number, memory_order_release);
    dti_team_post(team, run.number);
    return finish_run(team, &run);
}

struct dti_deadline dti_team_run_deadline(const struct dti_team *team)
{
    return (struct dti_deadline){ .timeout_ms = team->options.run_timeout_ms,
                                  .at_ns = team->run_deadline_ns };
}

void dti_team_set_poster_work(struct dti_team *team, void (*work)(void *argument), void *argument)
{
    team->poster_work = work;
    team->poster_argument = argument;
}
