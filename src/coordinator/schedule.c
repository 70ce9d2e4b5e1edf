/* src/coordinator/schedule.c - the calls of the program that schedule functions and wait for them; see
 * coordinator.h. */
#include "base/errors/status.h"
#include "base/text/text.h"
#include "coordinator/coordinator.h"
#include "coordinator/remote.h"

#include <sched.h>
#include <string.h>

/* -- waiting -- */

/* Takes a waiter for this call, or returns DTI_CALLERS if all are taken. */
static uint32_t take_waiter(struct ditto_coordinator *c)
{
    uint32_t used = atomic_load_explicit(&c->callers_used, memory_order_relaxed);
    while (used != UINT32_MAX) {
        uint32_t waiter = (uint32_t)__builtin_ctz(~used);
        /* acq_rel: pairs with itself, so that the waiter and its policy have one user at a time. */
        if (atomic_compare_exchange_weak_explicit(&c->callers_used, &used, used | 1u << waiter,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return waiter;
    }
    return DTI_CALLERS;
}

/* Waits until the condition holds or the time has come. More calls than there are waiters poll. */
static bool wait_until(struct ditto_coordinator *c, uint32_t waiter, uint64_t at_ns, dti_condition *condition,
                       void *argument)
{
    struct dti_deadline deadline = { .timeout_ms = UINT32_MAX, .at_ns = at_ns };
    if (waiter != DTI_CALLERS)
        return dti_wait(&c->callers, waiter, DTI_EVERYONE, &c->caller_policy[waiter], &deadline, condition,
                        argument);
    for (struct dti_look look = { 0 }; !condition(argument);) {
        if (dti_look(&look) >= at_ns)
            return false;
        sched_yield();
    }
    return true;
}

/* What a call waits for, and what it must act on meanwhile. */
struct awaited {
    struct ditto_coordinator *coordinator;
    dti_condition *condition;
    void *argument;
    uint32_t interrupts; /* those before the call */
};

static uint32_t interrupts(const struct ditto_coordinator *c)
{
    return atomic_load_explicit(&c->interrupts, memory_order_relaxed);
}

/* True if no worker is left and functions are. */
static bool is_stranded(const struct ditto_coordinator *c)
{
    return dti_all_retired(c) && !dti_all_finished(c);
}

static bool must_act(void *argument)
{
    const struct awaited *a = argument;
    return a->condition(a->argument) || is_stranded(a->coordinator) ||
           interrupts(a->coordinator) != a->interrupts;
}

/* Retires workers whose functions are late, and if all are retired, cancels what is left. */
static void look(struct ditto_coordinator *c)
{
    dti_retire_late(c);
    if (is_stranded(c))
        dti_cancel_queued(c);
}

static ditto_status fail_late(const struct ditto_coordinator *c, const char *what)
{
    char buffer[256] = "no worker executes one", name[DITTO_MAX_FUNCTION_NAME_BYTES + 1];
    struct dti_text text = { buffer, sizeof buffer, 0 };
    for (uint32_t i = 0; i < c->count; i++)
        if (dti_worker_executes(&c->worker[i], name))
            dti_text_add(&text, "%sworker %u executes \"%s\"", text.length != 0 ? ", " : "", i, name);
    return DTI_FAIL(
        DITTO_ERR_TIMED_OUT,
        "%s: no function has ended for %u ms (timeout_ms): %s; if functions may take this long, set "
        "timeout_ms of the strategy to more, or to DITTO_FOREVER",
        what, c->timeout_ms, buffer);
}

/* Waits until the condition holds. Returns TIMED_OUT if no function has ended for timeout_ms, and CANCELLED
 * if the wait was interrupted; `what` begins the message. */
static ditto_status wait_for(struct ditto_coordinator *c, const char *what, dti_condition *condition,
                             void *argument)
{
    uint32_t waiter = take_waiter(c);
    struct awaited awaited = { c, condition, argument, interrupts(c) };
    struct dti_deadline whole = { .timeout_ms = c->timeout_ms };
    uint64_t finished = dti_finished(c), limit = dti_deadline_at(&whole);
    bool holds = false, in_time = true, interrupted = false;
    while (!holds && in_time && !interrupted) {
        uint64_t next = dti_next_limit(c);
        (void)wait_until(c, waiter, next < limit ? next : limit, must_act, &awaited);
        look(c);
        holds = condition(argument);
        if (dti_finished(c) != finished) {
            finished = dti_finished(c);
            whole.at_ns = 0;
            limit = dti_deadline_at(&whole);
        }
        in_time = dti_lived_ns() < limit;
        interrupted = interrupts(c) != awaited.interrupts;
    }
    if (waiter != DTI_CALLERS)
        atomic_fetch_and_explicit(&c->callers_used, ~(1u << waiter), memory_order_acq_rel);
    if (holds)
        return DITTO_OK;
    return interrupted ? DTI_FAIL(DITTO_ERR_CANCELLED, "%s: interrupted (ditto_coordinator_interrupt)", what)
                       : fail_late(c, what);
}

static ditto_status fail_retired(const struct ditto_coordinator *c)
{
    return DTI_FAIL(
        DITTO_ERR_POISONED,
        "all %u workers are retired, because their functions took longer than run_timeout_ms: destroy "
        "the coordinator and the strategy",
        c->count);
}

/* -- errors of functions -- */

static bool have_all_finished(void *argument)
{
    return dti_all_finished(argument);
}

/* Waits until everything that was scheduled has ended, and settles the failure: functions are begun again.
 * With no_wait it returns DITTO_PENDING if something has not ended. */
static ditto_status settle(struct ditto_coordinator *c, bool no_wait)
{
    if (no_wait) {
        look(c);
        if (!dti_all_finished(c))
            return DITTO_PENDING;
    } else
        DTI_TRY(wait_for(c, "after a function has failed", have_all_finished, c));
    pthread_mutex_lock(&c->lock);
    uint64_t failures = atomic_load_explicit(&c->failures, memory_order_relaxed);
    uint64_t cancelled = atomic_load_explicit(&c->cancelled, memory_order_relaxed) - c->cancelled_before;
    if (failures % 2 != 0) { /* no other call has settled it */
        ditto_error kept = *dti_error_get(), *error = &c->error[(failures / 2 + 1) % 2];
        if (cancelled != 0) {
            dti_error_set(error);
            (void)dti_where(error->status, "%llu function%s cancelled because this one failed",
                            (unsigned long long)cancelled, cancelled == 1 ? " was" : "s were");
            *error = *dti_error_get();
            dti_error_set(&kept);
        }
        atomic_store_explicit(&c->failures, failures + 1, memory_order_release);
    }
    pthread_mutex_unlock(&c->lock);
    return DITTO_OK;
}

/* -- telling threads of failures -- */

/* A coordinator for which this thread has scheduled functions since its last join, and what the thread knew
 * when it scheduled the first of them. It is told of all failures and silent functions since then, because
 * its own functions may be among those that failed or were cancelled. A thread that has such functions of
 * more than KNOWN coordinators is told only what no other thread has been told. The address of a coordinator
 * may be that of one before it, but not with the same time. */
enum { KNOWN = 8 };
struct outstanding {
    const struct ditto_coordinator *coordinator;
    uint64_t began_ns;
    struct dti_told told;
};
static _Thread_local struct outstanding known[KNOWN]; /* the newest first */

/* Returns NULL if there is none. */
static struct outstanding *outstanding_of(const struct ditto_coordinator *c)
{
    for (uint32_t i = 0; i < KNOWN && known[i].coordinator != NULL; i++)
        if (known[i].coordinator == c && known[i].began_ns == c->began_ns)
            return &known[i];
    return NULL;
}

static void forget(struct outstanding *own)
{
    memmove(own, own + 1, (size_t)(&known[KNOWN] - (own + 1)) * sizeof *own);
    known[KNOWN - 1].coordinator = NULL;
}

/* This thread is about to push a function. A failure that is not settled yet may cancel it, so the thread
 * does not know that failure. */
static void remember(const struct ditto_coordinator *c)
{
    if (outstanding_of(c) != NULL)
        return;
    memmove(&known[1], &known[0], (KNOWN - 1) * sizeof known[0]);
    known[0] = (struct outstanding){
        .coordinator = c,
        .began_ns = c->began_ns,
        .told = { .failures = atomic_load_explicit(&c->failures, memory_order_acquire) & ~(uint64_t)1,
                  .silent = atomic_load_explicit(&c->silent, memory_order_relaxed) },
    };
}

/* Settles a failure if there is one, and returns the error of the last failure that was settled if this
 * thread has to be told. If `is_for_all` is true, it is also told what no thread has been told. */
static ditto_status tell_failure(struct ditto_coordinator *c, bool is_for_all, bool no_wait)
{
    if (dti_has_failed(c))
        DTI_TRY(settle(c, no_wait));
    struct outstanding *own = outstanding_of(c);
    uint64_t failures = atomic_load_explicit(&c->failures, memory_order_acquire) & ~(uint64_t)1;
    bool is_behind = own != NULL && own->told.failures != failures;
    if (!is_behind && (!is_for_all || failures == 0))
        return DITTO_OK;
    pthread_mutex_lock(&c->lock);
    failures = atomic_load_explicit(&c->failures, memory_order_relaxed) & ~(uint64_t)1;
    is_behind |= is_for_all && c->told.failures < failures;
    ditto_error error = c->error[failures / 2 % 2];
    if (is_behind && c->told.failures < failures)
        c->told.failures = failures;
    pthread_mutex_unlock(&c->lock);
    if (!is_behind)
        return DITTO_OK;
    if (own != NULL)
        own->told.failures = failures;
    dti_error_set(&error);
    return dti_own(error.status);
}

/* Returns the positive status of a silent function if this thread, or no thread, has been told of it. */
static ditto_status tell_silent(struct ditto_coordinator *c, const struct outstanding *own)
{
    uint64_t silent = atomic_load_explicit(&c->silent, memory_order_relaxed);
    if (silent == 0)
        return DITTO_OK;
    pthread_mutex_lock(&c->lock);
    bool is_new = c->told.silent != silent || (own != NULL && own->told.silent != silent);
    c->told.silent = silent;
    pthread_mutex_unlock(&c->lock);
    return is_new ? (ditto_status)(uint32_t)silent : DITTO_OK;
}

/* -- schedule -- */

static bool is_not_full(void *argument)
{
    const struct ditto_coordinator *c = argument;
    return !dti_function_queue_is_full(&c->queue) || dti_has_failed(c) || dti_all_retired(c);
}

static ditto_status push(struct ditto_coordinator *c, const struct dti_scheduled *item, bool no_wait)
{
    uint64_t ticket;
    while (!dti_function_queue_push(&c->queue, item, &ticket)) {
        if (no_wait)
            look(c);
        else
            DTI_TRY(wait_for(c, "the queue is full", is_not_full, c));
        DTI_TRY(tell_failure(c, false, no_wait));
        if (dti_all_retired(c))
            return fail_retired(c);
        if (no_wait)
            return DITTO_PENDING;
    }
    dti_wake_worker(c);
    if (ticket % DTI_DEPTH_EVERY == 0)
        dti_depth_seen(c, ticket);
    return DITTO_OK;
}

ditto_status dti_schedule(struct ditto_coordinator *c, const char *name, const ditto_value *arguments,
                          const ditto_schedule_options *options, struct ditto_remote **out)
{
    struct dti_scheduled item;
    DTI_TRY(tell_failure(c, false, options->no_wait != 0));
    DTI_TRY(dti_function_find(name, &item.function));
    item.arguments = NULL;
    item.remote = NULL;
    item.attempts = 0;
    if (dti_all_retired(c))
        return fail_retired(c);
    if (arguments != NULL)
        DTI_TRY(dti_copied_make(arguments, &item.arguments));
    else if (options->argument != NULL)
        DTI_TRY(dti_copied_tensor(options->argument, &item.arguments));
    ditto_status status = out != NULL ? dti_remote_make(c->strategy, c, &item.remote) : DITTO_OK;
    if (status == DITTO_OK) {
        struct ditto_remote *remote = item.remote;
        remember(c);
        status = push(c, &item, options->no_wait != 0);
        if (status == DITTO_OK) {
            if (out != NULL)
                *out = remote;
            return DITTO_OK;
        }
        dti_remote_drop(remote); /* the handle */
    }
    dti_scheduled_drop(&item);
    return status;
}

/* -- join, done, fetch -- */

ditto_status dti_join(struct ditto_coordinator *c)
{
    DTI_TRY(wait_for(c, "waiting for all functions", have_all_finished, c));
    ditto_status status = tell_failure(c, true, false);
    if (status == DITTO_OK && dti_all_retired(c))
        status = fail_retired(c);
    struct outstanding *own = outstanding_of(c);
    if (status == DITTO_OK)
        status = tell_silent(c, own);
    if (own != NULL) /* all functions of this thread have ended */
        forget(own);
    return status;
}

ditto_status dti_done(struct ditto_coordinator *c, bool *done)
{
    look(c);
    *done = dti_all_finished(c);
    /* After that look, so that it sees the error of each function that is finished (I3). */
    ditto_status status = tell_failure(c, true, true);
    if (status == DITTO_PENDING) {
        *done = false;
        return DITTO_OK;
    }
    return status == DITTO_OK && dti_all_retired(c) ? fail_retired(c) : status;
}

static bool is_final(void *argument)
{
    return dti_remote_is_final(argument);
}

ditto_status dti_wait_for_remote(struct ditto_coordinator *c, const struct ditto_remote *remote)
{
    return wait_for(c, "waiting for a result", is_final, (void *)(uintptr_t)remote);
}
