/* src/coordinator/coordinator.c - creates and destroys coordinators; see coordinator.h. */
#include "coordinator/coordinator.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "base/waiting/fork.h"
#include "coordinator/remote.h"
#include "replicas/machine/thread.h"
#include "replicas/team/servers.h"
#include "replicas/team/stopping.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_CAPACITY 1024u
#define DEFAULT_ATTEMPTS 2u

/* How long a call polls with sched_yield if the workers have all PUs, so that they go on meanwhile. */
static const struct dti_wait_policy yielding = { .yield_ns = DTI_YIELD_NS };

void dti_coordinator_keep(struct ditto_coordinator *c)
{
    /* relaxed: the caller has a reference. */
    atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
}

void dti_coordinator_drop(struct ditto_coordinator *c)
{
    /* acq_rel: pairs with itself, so that all uses through other references happen before the memory is
     * freed. */
    if (atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; c->worker != NULL && i < c->workers_made; i++)
        dti_wait_queue_free(&c->worker[i].wait);
    dti_wait_queue_free(&c->callers);
    dti_function_queue_free(&c->queue);
    pthread_mutex_destroy(&c->lock);
    free(c->returned);
    free(c->idle);
    free(c->worker);
    free(c);
}

/* Returns a capacity of at least `number`. With one slot the sequence numbers of the queue would be
 * ambiguous. */
static uint32_t power_of_two(uint32_t number)
{
    uint32_t power = 2;
    while (power < number)
        power *= 2;
    return power;
}

static ditto_status allocate_parts(struct ditto_coordinator *c, uint32_t capacity)
{
    uint32_t n = c->count;
    c->worker = aligned_alloc(DTI_CACHE_LINE_PAIR, n * sizeof *c->worker);
    c->returned = calloc(n, sizeof *c->returned);
    c->idle = calloc((n + 63) / 64, sizeof *c->idle);
    if (c->worker == NULL || c->returned == NULL || c->idle == NULL ||
        !dti_function_queue_make(&c->queue, capacity) ||
        !dti_wait_queue_init(&c->callers, DTI_CALLERS, DTI_SLEEPS_OFTEN))
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a queue of %u functions and %u workers", capacity,
                        n);
    memset(c->worker, 0, n * sizeof *c->worker);
    for (; c->workers_made < n; c->workers_made++) {
        struct dti_function_worker *w = &c->worker[c->workers_made];
        w->index = c->workers_made;
        w->strategy = c->workers->strategy[w->index];
        w->coordinator = c;
        if (!dti_wait_queue_init(&w->wait, 1, DTI_SLEEPS_OFTEN))
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for worker %u", w->index);
    }
    return DITTO_OK;
}

static ditto_status allocate(ditto_strategy *strategy, const ditto_coordinator_options *o,
                             struct ditto_coordinator **out)
{
    const struct dti_team_options *servers = dti_team_options(strategy->base.team);
    uint32_t limit_ms = strategy->workers->limit_ms;
    struct ditto_coordinator *c = aligned_alloc(DTI_CACHE_LINE_PAIR, sizeof *c);
    if (c == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a coordinator");
    memset(c, 0, sizeof *c);
    c->strategy = strategy;
    c->workers = strategy->workers;
    c->count = c->workers->count;
    c->process = dti_process_number();
    c->max_attempts = o->max_attempts != 0 ? o->max_attempts : DEFAULT_ATTEMPTS;
    c->timeout_ms = servers->timeout_ms;
    c->began_ns = dti_now_ns();
    c->limit_ns = limit_ms == DITTO_FOREVER ? DTI_NEVER : limit_ms * UINT64_C(1000000);
    /* Making a dataset has the limit of waiting for input. If functions have no limit, neither has this. */
    c->making_limit_ns = c->timeout_ms == DITTO_FOREVER || c->limit_ns == DTI_NEVER
                             ? DTI_NEVER
                             : c->timeout_ms * UINT64_C(1000000);
    if (c->making_limit_ns < c->limit_ns)
        c->making_limit_ns = c->limit_ns;
    atomic_init(&c->references, 1);
    pthread_mutex_init(&c->lock, NULL);
    bool crowded = ditto_strategy_num_replicas(strategy) >= strategy->machine.pus;
    for (uint32_t i = 0; i < DTI_CALLERS; i++)
        c->caller_policy[i] = crowded ? yielding : dti_wait_policy_adapting();
    ditto_status status = allocate_parts(
        c, power_of_two(o->queue_capacity != 0 ? o->queue_capacity : DEFAULT_CAPACITY));
    if (status == DITTO_OK)
        *out = c;
    else
        dti_coordinator_drop(c);
    return status;
}

/* Waits until the thread has left, or its worker is retired. After the deadline it retires a worker that has
 * a function. */
static bool await_end(struct ditto_coordinator *c, struct dti_function_worker *w,
                      struct dti_deadline *deadline)
{
    struct dti_look look = { 0 };
    /* acquire: pairs with the releases of the worker, and of a thread that retires it. */
    while (!atomic_load_explicit(&w->has_left, memory_order_acquire)) {
        if ((atomic_load_explicit(&w->state, memory_order_acquire) & 3) == DTI_WORKER_RETIRED)
            return false;
        dti_retire_late(c);
        if (dti_look(&look) >= dti_deadline_at(deadline))
            dti_retire_at_end(c, w);
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
    return true;
}

/* Ends the threads. A worker that executes a function ends it first, for which it has timeout_ms. A thread
 * whose worker is retired, and whose function has not returned, is detached. Returns the number of such
 * threads, and adds the numbers of their workers to `names`. */
static uint32_t end_threads(struct ditto_coordinator *c, struct dti_text *names)
{
    uint32_t lost = 0;
    struct dti_deadline deadline = { .timeout_ms = c->timeout_ms };
    /* release: pairs with the acquire of the workers. */
    atomic_store_explicit(&c->is_ending, true, memory_order_release);
    dti_wake_all_workers(c);
    for (uint32_t i = 0; i < c->count; i++) {
        struct dti_function_worker *w = &c->worker[i];
        if (!w->is_started)
            continue;
        if (await_end(c, w, &deadline)) {
            pthread_join(w->thread, NULL);
            continue;
        }
        dti_team_give_up(w->strategy->base.team);
        pthread_detach(w->thread);
        dti_text_add(names, "%s%u", lost++ != 0 ? ", " : "", w->index);
    }
    return lost;
}

/* It looks at the functions first. A worker becomes RETIRED before its function is finished elsewhere, so if
 * all functions are finished, the loop sees each worker whose function is late. */
bool dti_coordinator_is_in_use(const struct ditto_coordinator *c)
{
    if (!dti_all_finished(c))
        return true;
    for (uint32_t i = 0; i < c->count; i++)
        if ((atomic_load_explicit(&c->worker[i].state, memory_order_acquire) & 3) == DTI_WORKER_RETIRED &&
            !atomic_load_explicit(&c->worker[i].has_left, memory_order_acquire))
            return true;
    return false;
}

/* Variables and optimizers are not destroyed meanwhile. */
static bool is_in_use(const void *coordinator)
{
    return dti_coordinator_is_in_use(coordinator);
}

static ditto_status start_threads(struct ditto_coordinator *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct dti_function_worker *w = &c->worker[i];
        size_t stack_bytes = dti_team_options(w->strategy->base.team)->stack_bytes;
        dti_coordinator_keep(c); /* of the thread */
        int error_number = dti_thread_start(&w->thread, stack_bytes, dti_worker_main, w);
        if (error_number != 0) {
            dti_coordinator_drop(c);
            return dti_thread_refused(error_number, stack_bytes, "worker %u of %u", i, c->count);
        }
        w->is_started = true;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        struct dti_function_worker *w = &c->worker[i];
        while (!atomic_load_explicit(&w->has_begun, memory_order_acquire))
            sched_yield();
        if (w->start_status != DITTO_OK) {
            dti_error_set(&w->start_error);
            return w->start_status;
        }
    }
    return DITTO_OK;
}

/* The steps that are made when the strategy has no other coordinator. */
static ditto_status begin(struct ditto_coordinator *c)
{
    ditto_status status = start_threads(c);
    if (status == DITTO_OK)
        return DITTO_OK;
    ditto_error kept = *dti_error_get();
    char none[1];
    (void)end_threads(c, &(struct dti_text){ none, sizeof none, 0 });
    dti_error_set(&kept);
    return status;
}

ditto_status dti_coordinator_create(ditto_strategy *strategy, const ditto_coordinator_options *o,
                                    struct ditto_coordinator **out)
{
    struct ditto_coordinator *c, *none = NULL;
    DTI_TRY(allocate(strategy, o, &c));
    atomic_store_explicit(&strategy->workers->diagnose, dti_coordinator_diagnose, memory_order_relaxed);
    if (!atomic_compare_exchange_strong(&strategy->workers->coordinator, &none, c)) {
        dti_coordinator_drop(c);
        return DTI_FAIL(DITTO_ERR_BUSY, "the strategy has a coordinator: destroy that first, or use it");
    }
    ditto_status status = begin(c);
    if (status == DITTO_OK) {
        for (uint32_t i = 0; i < c->workers->count; i++)
            c->workers->strategy[i]->worker = &c->worker[i];
        dti_team_set_in_use(strategy->base.team, is_in_use, c);
        *out = c;
        return DITTO_OK;
    }
    atomic_store(&strategy->workers->coordinator, NULL);
    dti_coordinator_drop(c);
    return status;
}

/* While the gate is shut, calls of other threads wait for the end, when all results are final. */
ditto_status dti_coordinator_destroy(struct ditto_coordinator *c)
{
    DTI_TRY(dti_context_check_cross(c->strategy->base.team));
    if (dti_process_differs(c->process)) {
        /* In a child process after fork there are no workers, and locks may be held by threads that do not
         * exist. */
        atomic_store(&c->workers->coordinator, NULL);
        return DITTO_OK; /* its memory stays until the child ends, as threads of the parent refer to it */
    }
    if (!dti_gate_shut(&c->gate))
        return DTI_FAIL(DITTO_ERR_BUSY,
                        "another thread is in a call on the coordinator: destroy it after that");
    char names[100] = "";
    uint32_t timeout_ms = c->timeout_ms, lost = end_threads(c, &(struct dti_text){ names, sizeof names, 0 });
    dti_cancel_queued(c);
    dti_shared_datasets_detach(c, lost != 0);
    dti_per_worker_free(c, lost != 0);
    for (uint32_t i = 0; i < c->workers->count && lost == 0; i++)
        c->workers->strategy[i]->worker = NULL;
    /* The late function may still use everything that was made with the strategy. */
    if (lost != 0)
        dti_team_poison(c->strategy->base.team);
    dti_team_set_in_use(c->strategy->base.team, NULL, NULL);
    dti_gate_close(&c->gate);
    atomic_store(&c->workers->coordinator, NULL);
    dti_coordinator_drop(c);
    if (lost == 0)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_POISONED,
        "destroyed, but %u worker%s still in a function (worker %s), after run_timeout_ms, or after "
        "timeout_ms = %u ms in this call: the memory that it uses is not freed",
        lost, lost == 1 ? " is" : "s are", names, timeout_ms);
}
