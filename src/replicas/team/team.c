/* src/replicas/team/team.c - runs: fork and join, the part of one replica, stopping. See team.h. */
#include "replicas/team/team.h"
#include "replicas/helpers/crew.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/thread.h"
#include "replicas/memory/arena.h"
#include "replicas/team/team_private.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* After a run timeout, replicas that wait in the library have a quarter of the limit to return, within these
 * bounds. */
#define GRACE_LEAST_MS 250u
#define GRACE_MOST_MS  1000u

/* How long a thread of a strategy with DITTO_WAIT_ACTIVE polls before it sleeps. */
#define ACTIVE_NS 10000000000u

/* A stop that belongs to no run, so that no poster of an inner run clears it. */
#define FROM_OUTSIDE UINT64_MAX

/* -- the run of one replica -- */

struct dti_wait_policy dti_team_wait_policy(const struct dti_team *team, uint32_t pu, uint32_t *epoch)
{
    const struct dti_team_options *o = &team->options;
    /* The epoch is read first, so that the caller notices every later change. */
    *epoch = dti_load_epoch();
    bool oversubscribed = team->oversubscribed ||
                          dti_load_is_oversubscribed(o->pin ? pu : DTI_NO_PU, o->pus, o->cpu_quota);
    if (o->has_spin_us)
        return (struct dti_wait_policy){ .is_fixed = true,
                                         .spin_ns = oversubscribed ? 0 : (uint64_t)o->spin_us * 1000u,
                                         .yield_ns = oversubscribed ? team->yield_ns : 0 };
    if (o->wait == DITTO_WAIT_PASSIVE)
        return (struct dti_wait_policy){ .spin_ns = oversubscribed ? 0 : DTI_SPIN_LEAST_NS };
    if (o->wait == DITTO_WAIT_ACTIVE)
        return (struct dti_wait_policy){ .is_fixed = true,
                                         .spin_ns = oversubscribed ? 0 : ACTIVE_NS,
                                         .yield_ns = oversubscribed ? ACTIVE_NS : 0 };
    if (oversubscribed)
        return (struct dti_wait_policy){ .yield_ns = team->yield_ns };
    return dti_wait_policy_adapting();
}

static void set_wait_policy(struct dti_replica *r)
{
    struct dti_wait_policy policy = dti_team_wait_policy(r->team, r->pu.number, &r->load_epoch);
    dti_wait_policy_replace(&r->wait_policy, policy);
    dti_wait_policy_replace(&r->rest_policy, policy);
}

void dti_replica_ensure_record(const struct dti_replica *r, ditto_status status, uint32_t serial_before)
{
    if (!dti_wrote_record(status, serial_before))
        DTI_FAIL(status, "replica %u's function returned %s (%d) without a message: set one with ditto_fail",
                 r->id, ditto_status_name(status), (int)status);
}

/* Returns true if the user has submitted functions to devices and has not joined them. */
static bool has_unjoined(const struct dti_replica *r)
{
    return r->crew != NULL && r->crew->outstanding;
}

void dti_team_work(struct dti_replica *r, uint64_t number)
{
    struct dti_team *team = r->team;
    int32_t outer_replica = dti_error_replica; /* the value outside this run */
    uint64_t outer_run = r->run;
    if (r->load_epoch != dti_load_epoch())
        set_wait_policy(r);
    dti_error_replica = (int32_t)r->id;
    r->run = number;
    const char *outer_function = dti_public_enter(team->function);
    uint32_t serial = dti_error_serial;
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
    dti_error_replica = outer_replica;
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
    struct dti_deadline deadline;
};

struct run_wait {
    const struct dti_replica *replica;
    uint64_t number;
    const struct dti_team *works; /* the team whose poster works while it waits, or NULL */
};
static void work_while_waiting(const struct run_wait *w)
{
    if (w->works != NULL)
        w->works->poster_work(w->works->poster_argument);
}
/* Returns true also for a replica that will never execute the job, because it has returned from the outermost
 * run. */
static bool is_done_or_returned(void *argument)
{
    const struct run_wait *w = argument;
    work_while_waiting(w);
    uint64_t done = atomic_load_explicit(&w->replica->done, memory_order_acquire); /* D1 */
    return done == w->number || done == w->replica->team->outermost;
}
static bool is_done(void *argument)
{
    struct run_wait *w = argument;
    work_while_waiting(w);
    return atomic_load_explicit(&w->replica->done, memory_order_acquire) == w->number; /* D1 */
}

/* Waits until all replicas have finished the run, or will never execute it. Returns false if the deadline has
 * passed first. */
static bool join(struct dti_team *team, const struct run *run, struct dti_deadline *deadline)
{
    struct dti_wait_policy asleep = { 0 };
    for (uint32_t i = run->waits ? 0 : 1; i < team->n; i++) {
        struct run_wait w = { &team->replica[i], run->number,
                              run->waits && team->poster_work != NULL ? team : NULL };
        if (!dti_wait(&team->wait_queue, run->waits ? team->n : 0, i,
                      run->waits ? &asleep : &team->replica[0].wait_policy, deadline,
                      run->inner ? is_done_or_returned : is_done, &w))
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
        struct run_wait w = { &team->replica[i], number, NULL };
        missing[i] = !(i == 0 && !team->options.caller_waits) && !is_done(&w);
    }
    dti_text_add_set(&text, missing, team->n, team->first);
}

static uint32_t grace_ms(const struct dti_team *team)
{
    uint32_t quarter = team->options.run_timeout_ms / 4;
    return quarter < GRACE_LEAST_MS ? GRACE_LEAST_MS : quarter > GRACE_MOST_MS ? GRACE_MOST_MS : quarter;
}

/* The time limit of the run has passed. Replicas that wait in the library are stopped. If other replicas do
 * not return, they are given up on, and the team is poisoned. */
static void give_up(struct dti_team *team, const struct run *run)
{
    char missing[256];
    dti_team_list_missing(team, run->number, missing, sizeof missing);
    DTI_FAIL(DITTO_ERR_TIMED_OUT, "run_timeout_ms = %u passed, and these replicas had not returned: %s",
             team->options.run_timeout_ms, missing);
    dti_team_expire(team);
    if (!join(team, run, &(struct dti_deadline){ .timeout_ms = grace_ms(team) }))
        /* relaxed: a hint, which orders no other data */
        atomic_store_explicit(&team->poisoned, true, memory_order_relaxed);
}

/* Writes the error of the run into the caller's record. The stop record itself stays as it was published. */
static ditto_status record_run_error(const struct dti_team *team, const struct run *run)
{
    ditto_error error = team->stop.error;
    if (!run->inner && team->stop.run != run->number && team->stop.run != FROM_OUTSIDE &&
        dti_now_ns() >= team->run_deadline_ns) {
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
    if (team->job == job && team->argument == argument && team->function == dti_public_function)
        return;
    team->job = job;
    team->argument = argument;
    team->function = dti_public_function;
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
    if (!join(team, run, &run->deadline))
        give_up(team, run);
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
    if (run->deadline.timeout_ms != DITTO_FOREVER)
        run->deadline = (struct dti_deadline){ team->options.run_timeout_ms, team->run_deadline_ns };
    open_pauses(team);
    number_run(team, run->number);
    dti_team_post(team, run->number);
    ditto_status status = finish_run(team, run);
    number_run(team, outer);
    team->ended = run->number;
    return status;
}

ditto_status dti_team_run(struct dti_team *team, dti_job job, void *argument, uint32_t timeout_ms)
{
    struct run run = { .number = dti_team_next_number(team),
                       .waits = team->options.caller_waits && team->pauses == 0,
                       .inner = team->pauses != 0,
                       .deadline = { .timeout_ms = timeout_ms } };
    dti_team_set_job(team, job, argument);
    if (run.inner)
        return run_inside(team, &run);
    if (team->options.host_floating)
        team->host = dti_fenv_current();
    open_pauses(team);
    number_run(team, run.number);
    team->outermost = run.number;
    team->run_deadline_ns = dti_deadline_at(&run.deadline);
    dti_team_post(team, run.number);
    return finish_run(team, &run);
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

uint64_t dti_team_run_number(const struct dti_team *team)
{
    /* relaxed: the poster wrote it itself, and a replica in a run has acquired it already */
    return atomic_load_explicit(&team->run, memory_order_relaxed);
}

/* -- stopping -- */

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
    (void)dti_stop_expire(&team->stop, dti_error_get(), FROM_OUTSIDE);
    dti_wait_queue_signal(&team->wait_queue, DTI_EVERYONE);
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
    return is_done(&(struct run_wait){ &team->replica[replica], team->outermost, NULL });
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
    return atomic_load_explicit(&r->done, memory_order_acquire) == dti_team_run_number(r->team); /* D1 */
}

ditto_replica *dti_replica_handle(const struct dti_replica *r)
{
    uintptr_t runs = (uintptr_t)1 << DTI_HANDLE_RUN_BITS, run = dti_team_run_number(r->team) % runs;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is compared, and never dereferenced */
    return (ditto_replica *)((r->team->number * runs + run) << DTI_HANDLE_ID_BITS | r->index);
}

bool dti_team_owns_handle(const struct dti_team *team, const ditto_replica *self, uint32_t *replica)
{
    *replica = (uintptr_t)self % (1u << DTI_HANDLE_ID_BITS);
    return (uintptr_t)self >> (DTI_HANDLE_ID_BITS + DTI_HANDLE_RUN_BITS) == team->number;
}

ditto_status dti_replica_alloc(struct dti_replica *r, size_t bytes, size_t alignment, void **out)
{
    return dti_arena_alloc(r->arena, bytes, alignment, out);
}
