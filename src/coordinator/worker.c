/* src/coordinator/worker.c - the thread of a worker: takes functions from the queue and executes them on the
 * worker's replicas. See coordinator.h. */
#include "base/errors/status.h"
#include "base/waiting/fork.h"
#include "coordinator/coordinator.h"
#include "coordinator/remote.h"
#include "replicas/machine/thread.h"
#include "replicas/team/replica.h"
#include "replicas/team/turn.h"
#include "values/values.h"

#include <stdio.h>
#include <string.h>

/* -- waiting for a function -- */

static bool is_ending(const struct ditto_coordinator *c)
{
    /* acquire: pairs with the release in end_threads. */
    return atomic_load_explicit(&c->is_ending, memory_order_acquire);
}

/* Says whether there is something to look at. */
static bool has_work(const struct ditto_coordinator *c)
{
    return dti_function_queue_has_one(&c->queue) ||
           atomic_load_explicit(&c->num_returned, memory_order_seq_cst) != 0 || is_ending(c);
}

static bool is_woken(void *argument)
{
    const struct dti_function_worker *w = argument;
    return atomic_load_explicit(&w->is_woken, memory_order_acquire); /* pairs with wake in end_function.c */
}

static void wait_for_work(struct dti_function_worker *w)
{
    struct ditto_coordinator *c = w->coordinator;
    uint64_t bit = (uint64_t)1 << (w->index % 64);
    struct dti_deadline deadline = { .timeout_ms = UINT32_MAX, .at_ns = dti_next_limit(c) };
    atomic_store_explicit(&w->is_woken, false, memory_order_relaxed); /* the next operation orders it */
    atomic_fetch_or_explicit(&c->idle[w->index / 64], bit, memory_order_seq_cst);
    /* What is pushed after this look finds the bit. */
    if (!has_work(c) && !dti_wait(&w->wait, 0, DTI_EVERYONE, &w->wait_policy, &deadline, is_woken, w))
        dti_retire_late(c);
    atomic_fetch_and_explicit(&c->idle[w->index / 64], ~bit, memory_order_seq_cst);
}

/* Returns false if the coordinator ends. */
static bool next_function(struct dti_function_worker *w, struct dti_scheduled *item)
{
    struct ditto_coordinator *c = w->coordinator;
    while (!is_ending(c)) {
        if (dti_take_returned(c, item))
            return true;
        if (dti_function_queue_pop(&c->queue, item)) {
            dti_signal_callers(c); /* one may wait for a free slot */
            /* Pushes may fill their slots out of order. A worker that was woken for the next function may
             * have come when this one was not there yet, and sleeps again. */
            if (dti_function_queue_has_one(&c->queue))
                dti_wake_worker(c);
            return true;
        }
        wait_for_work(w);
    }
    return false;
}

/* -- the time without a function; see `idle` in coordinator.h. Only the worker writes it. -- */

static void begin_idle(struct dti_function_worker *w, uint64_t now)
{
    uint64_t time = atomic_load_explicit(&w->idle, memory_order_relaxed) >> 1;
    /* release: pairs with the acquire in idle_time, here and below. */
    atomic_store_explicit(&w->idle, ((time - now) << 1) | 1, memory_order_release);
}

static void end_idle(struct dti_function_worker *w, uint64_t now)
{
    uint64_t idle = atomic_load_explicit(&w->idle, memory_order_relaxed);
    atomic_store_explicit(&w->idle, ((idle >> 1) + now) << 1, memory_order_release);
}

/* -- executing it -- */

/* Runs the function on the replicas of the worker. *result becomes a copy of its results if they are
 * wanted. */
static ditto_status run(struct dti_function_worker *w, const struct dti_scheduled *item,
                        struct dti_copied **result)
{
    ditto_run_options options = DITTO_RUN_OPTIONS_INIT;
    ditto_value *arguments = NULL, *returned = NULL;
    if (item->arguments != NULL)
        DTI_TRY(dti_copied_value(w->strategy, item->arguments, true, &arguments));
    struct dti_run_call request = { .function = item->function.call,
                                    .argument = item->function.user,
                                    .values = arguments,
                                    .returns = true,
                                    .wanted = item->remote != NULL };
    ditto_status status = dti_strategy_run_values(w->strategy, &request, &options, NULL, &returned);
    if (status >= 0 && returned != NULL) {
        ditto_status copied = dti_copied_make(returned, result);
        status = copied != DITTO_OK ? copied : status;
    }
    dti_value_drop(returned);
    dti_value_drop(arguments);
    return status;
}

/* Stores the words of the name that differ from those of the function before. */
static void set_name(struct dti_function_worker *w, const char *name)
{
    size_t length = 8;
    for (uint32_t i = 0; length == 8; i++, name += 8) { /* the last word has fewer than 8 characters */
        uint64_t word = 0;
        length = strnlen(name, 8);
        memcpy(&word, name, length);
        /* release: pairs with the acquire in dti_worker_executes. */
        if (atomic_load_explicit(&w->name[i], memory_order_relaxed) != word)
            atomic_store_explicit(&w->name[i], word, memory_order_release);
    }
}

/* From here on the worker is retired if the function takes too long. */
static void begin(struct dti_function_worker *w, struct dti_scheduled *item, uint64_t now)
{
    uint64_t state = atomic_load_explicit(&w->state, memory_order_relaxed);
    item->attempts++;
    dti_scheduled_copy(&w->current, item);
    set_name(w, item->function.name);
    /* The worker's own references, which it keeps if the function is taken away. */
    dti_copied_keep(item->arguments);
    dti_remote_keep(item->remote);
    end_idle(w, now);
    atomic_store_explicit(&w->began_at_ns, dti_lived_at(now), memory_order_relaxed);
    /* The next number, with the state. release: pairs with the acquire in state_of. */
    atomic_store_explicit(
        &w->state, (state | 3) + 1 + (dti_per_worker_lacks(w) ? DTI_WORKER_MAKING : DTI_WORKER_RUNNING),
        memory_order_release);
}

/* Makes the objects that the worker lacks. Then the time of the function begins, at *began. Returns false if
 * another thread has retired the worker meanwhile, or in a child process. */
static bool make_own(struct dti_function_worker *w, uint64_t *began)
{
    uint64_t state = atomic_load_explicit(&w->state, memory_order_relaxed);
    if ((state & 3) != DTI_WORKER_MAKING) /* it may have been retired at once */
        return (state & 3) == DTI_WORKER_RUNNING;
    dti_per_worker_make(w);
    *began = dti_now_ns();
    atomic_store_explicit(&w->began_at_ns, dti_lived_at(*began), memory_order_relaxed);
    /* release: pairs with the acquire in state_of, so that a thread that sees RUNNING sees the new
     * time. One that has seen MAKING fails to retire the worker after this. */
    return !dti_process_differs(w->coordinator->process) &&
           atomic_compare_exchange_strong_explicit(&w->state, &state,
                                                   (state & ~(uint64_t)3) | DTI_WORKER_RUNNING,
                                                   memory_order_release, memory_order_relaxed);
}

/* Ends what begin has begun, and drops the worker's own references. Returns false if another thread has
 * retired the worker, and owns the function now. */
static bool end(struct dti_function_worker *w, const struct dti_scheduled *item)
{
    uint64_t state = atomic_load_explicit(&w->state, memory_order_relaxed);
    /* acq_rel: pairs with the thread that retires a worker, for `current`. */
    bool is_own = dti_has_function(state) &&
                  atomic_compare_exchange_strong_explicit(&w->state, &state, state & ~(uint64_t)3,
                                                          memory_order_acq_rel, memory_order_relaxed);
    dti_copied_drop(item->arguments);
    dti_remote_drop(item->remote);
    return is_own;
}

static void count(_Atomic uint64_t *counter, uint64_t more)
{
    /* relaxed: only this worker writes it. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* Makes the objects that the worker lacks, and says that the result is RUNNING. Returns DITTO_ERR_CANCELLED
 * if the function must not be executed, because another one has failed, because it was cancelled, or because
 * the worker was retired. */
static ditto_status prepare_function(struct dti_function_worker *w, const struct dti_scheduled *item,
                                     uint64_t *began)
{
    struct ditto_coordinator *c = w->coordinator;
    bool is_first = item->attempts == 1;
    if (is_first && dti_has_failed(c)) {
        if (item->remote != NULL)
            (void)dti_remote_cancel(item->remote);
        return DITTO_ERR_CANCELLED;
    }
    if (is_first && item->remote != NULL && dti_remote_is_final(item->remote))
        return DITTO_ERR_CANCELLED;
    if (!make_own(w, began) || (item->remote != NULL && !dti_remote_begin(item->remote)))
        return DITTO_ERR_CANCELLED;
    return DITTO_OK;
}

/* Returns false if the worker is retired, or if this is a child process. */
static bool execute(struct dti_function_worker *w, struct dti_scheduled *item)
{
    struct dti_copied *result = NULL;
    /* A thread that starts, stops or reads a trace may have the turn for long. The time of the function
     * begins after that. A call that comes later finds the function and returns BUSY
     * (dti_workers_take_turns). */
    struct dti_team *team = dti_team_of(w->strategy);
    dti_team_give_turn(team, dti_team_take_turn(team));
    uint64_t began = dti_now_ns();
    begin(w, item, began);
    ditto_status status = prepare_function(w, item, &began);
    bool is_executed = status == DITTO_OK, is_cancelled = status == DITTO_ERR_CANCELLED;
    if (is_executed)
        status = run(w, item, &result);
    if (dti_process_differs(w->coordinator->process))
        return false; /* the function has forked, and this is the child process */
    dti_parameters_end_function(team);
    if (!end(w, item)) {
        dti_copied_drop(result);
        return false;
    }
    if (is_executed) {
        status = dti_shared_datasets_end_function(w, status);
        count(&w->functions, 1);
    }
    uint64_t ended = dti_now_ns();
    if (is_executed)
        count(&w->busy_ns, ended - began);
    begin_idle(w, ended);
    if (is_cancelled) {
        atomic_fetch_add_explicit(&w->coordinator->cancelled, 1, memory_order_relaxed);
    } else {
        /* Hands the results over, or records that the function has failed. */
        if (status < 0) {
            (void)dti_where(status, "\"%s\" on worker %u", item->function.name, w->index);
            dti_function_failed(w->coordinator);
        } else if (status > 0) {
            dti_function_was_positive(w->coordinator, item, status);
        }
        if (item->remote != NULL)
            dti_remote_end(item->remote, status, result);
    }
    /* Counts the function as finished, after everything else. */
    dti_scheduled_drop(item);
    uint64_t finished = atomic_load_explicit(&w->finished, memory_order_relaxed);
    atomic_store_explicit(&w->finished, finished + 1, memory_order_release); /* pairs with dti_finished */
    dti_signal_callers(w->coordinator);
    return true;
}

/* -- the thread -- */

/* Binds the thread to the PUs of the worker's replica 0, until it leaves the scope. */
static bool prepare(struct dti_function_worker *w)
{
    uint32_t epoch;
    const struct dti_team *team = w->strategy->base.team;
    (void)dti_public_enter("ditto_coordinator_create");
    w->start_status = dti_scope_enter(w->strategy, false);
    if (w->start_status != DITTO_OK)
        w->start_error = *dti_error_get();
    w->wait_policy = dti_team_wait_policy(team, dti_team_replica(team, 0)->pu.number, &epoch);
    bool is_ready = w->start_status == DITTO_OK;
    begin_idle(w, dti_now_ns());
    atomic_store_explicit(&w->has_begun, true, memory_order_release); /* pairs with dti_coordinator_create */
    return is_ready;
}

void *dti_worker_main(void *argument)
{
    struct dti_function_worker *w = argument;
    struct ditto_coordinator *c = w->coordinator;
    const struct dti_team_options *options = dti_team_options(w->strategy->base.team);
    char name[16];
    snprintf(name, sizeof name, "ditto-w%u", w->index % DITTO_MAX_REPLICAS);
    dti_thread_begin(name);
    if (prepare(w)) {
        dti_thread_hook(options->thread_start, 0, options->thread_user);
        /* Executes functions until the coordinator ends, or the worker is retired. */
        struct dti_scheduled item;
        bool is_own = true;
        (void)dti_public_enter("ditto_coordinator_schedule");
        while (is_own && next_function(w, &item))
            is_own = execute(w, &item);
        if (is_own && !dti_process_differs(w->coordinator->process))
            end_idle(w, dti_now_ns());
        /* This is the only thread of the child process, so its return ends the process, as a return from main
         * does. Locks may be held by threads that do not exist there. */
        if (dti_process_differs(c->process))
            return NULL;
        dti_thread_hook(options->thread_stop, 0, options->thread_user);
        (void)dti_scope_leave(w->strategy);
    }
    atomic_store_explicit(&w->has_left, true, memory_order_release); /* pairs with end_threads */
    dti_coordinator_drop(c);
    return NULL;
}
