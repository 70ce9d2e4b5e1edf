/* src/coordinator/schedule.c - the calls of the program that schedule functions and wait for them; see
 * coordinator.h. */
#include "base/errors/status.h"
#include "coordinator/coordinator.h"
#include "coordinator/remote.h"

#include <sched.h>

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
};

/* True if no worker is left and functions are. */
static bool is_stranded(const struct ditto_coordinator *c)
{
    return dti_all_retired(c) && !dti_all_finished(c);
}

static bool must_act(void *argument)
{
    const struct awaited *a = argument;
    return a->condition(a->argument) || is_stranded(a->coordinator);
}

/* Retires workers whose functions are late, and if all are retired, cancels what is left. */
static void look(struct ditto_coordinator *c)
{
    dti_retire_late(c);
    if (is_stranded(c))
        dti_cancel_queued(c);
}

/* Waits until the condition holds. Returns false if no function has ended for timeout_ms. */
static bool wait_for(struct ditto_coordinator *c, dti_condition *condition, void *argument)
{
    uint32_t waiter = take_waiter(c);
    struct awaited awaited = { c, condition, argument };
    struct dti_deadline whole = { .timeout_ms = c->timeout_ms };
    uint64_t finished = dti_finished(c), limit = dti_deadline_at(&whole);
    bool holds = false, in_time = true;
    while (!holds && in_time) {
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
    }
    if (waiter != DTI_CALLERS)
        atomic_fetch_and_explicit(&c->callers_used, ~(1u << waiter), memory_order_acq_rel);
    return holds;
}

static ditto_status fail_late(const struct ditto_coordinator *c, const char *what)
{
    for (uint32_t i = 0; i < c->count; i++)
        if ((atomic_load_explicit(&c->worker[i].state, memory_order_relaxed) & 3) == DTI_WORKER_RUNNING)
            return DTI_FAIL(DITTO_ERR_TIMED_OUT,
                            "%s: no function has ended for %u ms (timeout_ms); worker %u executes one; set "
                            "run_timeout_ms to retire workers that take too long",
                            what, c->timeout_ms, i);
    return DTI_FAIL(DITTO_ERR_TIMED_OUT, "%s: no function has ended for %u ms (timeout_ms)", what,
                    c->timeout_ms);
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

static bool has_failed(const struct ditto_coordinator *c)
{
    /* acquire: pairs with the release in dti_function_failed. */
    return atomic_load_explicit(&c->has_failed, memory_order_acquire);
}

/* Waits until everything that was scheduled has ended, and returns the error of the function that failed
 * first. Returns DITTO_OK if another call has returned it meanwhile. With no_wait it returns DITTO_PENDING if
 * something has not ended. */
static ditto_status settle(struct ditto_coordinator *c, bool no_wait)
{
    if (no_wait) {
        look(c);
        if (!dti_all_finished(c))
            return DITTO_PENDING;
    } else if (!wait_for(c, have_all_finished, c))
        return fail_late(c, "after a function has failed");
    pthread_mutex_lock(&c->lock);
    bool mine = atomic_load_explicit(&c->has_failed, memory_order_relaxed);
    ditto_error error = c->error;
    atomic_store_explicit(&c->has_failed, false, memory_order_release);
    pthread_mutex_unlock(&c->lock);
    if (!mine)
        return DITTO_OK;
    dti_error_set(&error);
    return dti_own(error.status);
}

/* -- schedule -- */

static bool is_not_full(void *argument)
{
    const struct ditto_coordinator *c = argument;
    return !dti_function_queue_is_full(&c->queue) || has_failed(c) || dti_all_retired(c);
}

static ditto_status push(struct ditto_coordinator *c, const struct dti_scheduled *item, bool no_wait)
{
    uint64_t ticket;
    while (!dti_function_queue_push(&c->queue, item, &ticket)) {
        if (no_wait)
            look(c);
        else if (!wait_for(c, is_not_full, c))
            return fail_late(c, "the queue is full");
        if (has_failed(c))
            DTI_TRY(settle(c, no_wait));
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
                          bool no_wait, struct ditto_remote **out)
{
    struct dti_scheduled item;
    if (has_failed(c))
        DTI_TRY(settle(c, no_wait));
    DTI_TRY(dti_function_find(name, &item.function));
    item.arguments = NULL;
    item.remote = NULL;
    item.attempts = 0;
    if (dti_all_retired(c))
        return fail_retired(c);
    if (arguments != NULL)
        DTI_TRY(dti_copied_make(arguments, &item.arguments));
    ditto_status status = out != NULL ? dti_remote_make(c->strategy, c, &item.remote) : DITTO_OK;
    if (status == DITTO_OK) {
        struct ditto_remote *remote = item.remote;
        status = push(c, &item, no_wait);
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
    if (has_failed(c))
        DTI_TRY(settle(c, false));
    if (!wait_for(c, have_all_finished, c))
        return fail_late(c, "waiting for all functions");
    if (has_failed(c))
        DTI_TRY(settle(c, false));
    return dti_all_retired(c) ? fail_retired(c) : DITTO_OK;
}

ditto_status dti_done(struct ditto_coordinator *c, bool *done)
{
    look(c);
    *done = dti_all_finished(c);
    /* After that look, so that it sees the error of each function that is finished (I3). */
    if (has_failed(c)) {
        ditto_status status = settle(c, true);
        *done = status == DITTO_OK;
        return status == DITTO_PENDING ? DITTO_OK : status;
    }
    return dti_all_retired(c) ? fail_retired(c) : DITTO_OK;
}

static bool is_final(void *argument)
{
    return dti_remote_is_final(argument);
}

ditto_status dti_wait_for_remote(struct ditto_coordinator *c, const struct ditto_remote *remote)
{
    return wait_for(c, is_final, (void *)(uintptr_t)remote) ? DITTO_OK : fail_late(c, "waiting for a result");
}
