/* src/coordinator/late_workers.c - workers whose function takes too long are retired, and other workers
 * execute it. See coordinator.h. */
#include "base/errors/status.h"
#include "coordinator/coordinator.h"
#include "coordinator/remote.h"

bool dti_take_returned(struct ditto_coordinator *c, struct dti_scheduled *item)
{
    /* seq_cst, because idle workers look at it as they look at the queue (I1). */
    if (atomic_load_explicit(&c->num_returned, memory_order_seq_cst) == 0)
        return false;
    pthread_mutex_lock(&c->lock);
    uint32_t count = atomic_load_explicit(&c->num_returned, memory_order_relaxed);
    if (count != 0) {
        *item = c->returned[count - 1];
        atomic_store_explicit(&c->num_returned, count - 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&c->lock);
    return count != 0;
}

/* Lets a function fail that was begun too often, the last time on a worker that is retired for this
 * reason. */
static void fail_attempts(struct ditto_coordinator *c, struct dti_scheduled *item, uint32_t worker,
                          const char *why)
{
    ditto_error kept = *dti_error_get(); /* the calling thread waits for something else */
    DTI_FAIL(DITTO_ERR_TIMED_OUT,
             "\"%s\" was begun %u times, and did not end, the last time because %s on worker %u, which is "
             "retired",
             item->function.name, item->attempts, why, worker);
    dti_function_failed(c);
    /* The result is still QUEUED if the worker has only made what it lacked. */
    if (item->remote != NULL && dti_remote_begin(item->remote))
        dti_remote_end(item->remote, DITTO_ERR_TIMED_OUT, NULL);
    dti_finish_given_up(c, item);
    dti_error_set(&kept);
}

/* Gives a function of a retired worker, which the caller owns, to another worker, or lets it fail if it was
 * begun too often. */
static void give_back(struct ditto_coordinator *c, struct dti_scheduled *item, uint32_t worker,
                      const char *why)
{
    if (item->attempts >= c->max_attempts) {
        fail_attempts(c, item, worker, why);
        return;
    }
    pthread_mutex_lock(&c->lock);
    uint32_t count = atomic_load_explicit(&c->num_returned, memory_order_relaxed);
    c->returned[count] = *item; /* each worker is retired once, so there is room */
    atomic_store_explicit(&c->num_returned, count + 1, memory_order_seq_cst);
    pthread_mutex_unlock(&c->lock);
    dti_wake_worker(c);
}

/* Returns when the worker is late, or DTI_NEVER. */
static uint64_t late_at(const struct ditto_coordinator *c, const struct dti_function_worker *w,
                        uint64_t state)
{
    uint64_t limit_ns = (state & 3) == DTI_WORKER_MAKING ? c->making_limit_ns : c->limit_ns;
    if (!dti_has_function(state) || limit_ns == DTI_NEVER)
        return DTI_NEVER;
    return atomic_load_explicit(&w->began_at_ns, memory_order_relaxed) + limit_ns;
}

/* Takes the function of a worker away from it, if it has this state. */
static void retire(struct ditto_coordinator *c, struct dti_function_worker *w, uint64_t state,
                   const char *why)
{
    if (!atomic_compare_exchange_strong_explicit(&w->state, &state,
                                                 (state & ~(uint64_t)3) | DTI_WORKER_RETIRED,
                                                 memory_order_acq_rel, memory_order_relaxed))
        return;
    struct dti_scheduled item = w->current; /* the worker keeps its own reference to the arguments */
    atomic_fetch_add_explicit(&c->retired, 1, memory_order_acq_rel);
    dti_shared_datasets_give_back(w); /* before the function, which takes them again */
    give_back(c, &item, w->index, why);
    dti_signal_callers(c);
}

/* acquire: pairs with the release of the worker, so that `began_at_ns` is that of this function, or a later
 * one, whose state differs. */
static uint64_t state_of(const struct dti_function_worker *w)
{
    return atomic_load_explicit(&w->state, memory_order_acquire);
}

bool dti_is_any_late(const struct ditto_coordinator *c)
{
    uint64_t now = c->limit_ns != DTI_NEVER ? dti_lived_ns() : 0;
    uint32_t i = 0;
    while (i < c->count && late_at(c, &c->worker[i], state_of(&c->worker[i])) >= now)
        i++;
    return i < c->count;
}

void dti_retire_late(struct ditto_coordinator *c)
{
    uint64_t now = dti_lived_ns();
    for (uint32_t i = 0; i < c->count && c->limit_ns != DTI_NEVER; i++) {
        struct dti_function_worker *w = &c->worker[i];
        uint64_t state = state_of(w);
        if (late_at(c, w, state) < now)
            retire(c, w, state,
                   (state & 3) == DTI_WORKER_MAKING
                       ? "making what the worker lacked took longer than timeout_ms"
                       : "it took longer than run_timeout_ms");
    }
}

void dti_retire_at_end(struct ditto_coordinator *c, struct dti_function_worker *w)
{
    uint64_t state = state_of(w);
    if (dti_has_function(state))
        retire(c, w, state, "it did not end within timeout_ms after ditto_coordinator_destroy was called");
}

uint64_t dti_next_limit(const struct ditto_coordinator *c)
{
    if (c->limit_ns == DTI_NEVER)
        return DTI_NEVER;
    /* A function that begins later has a later limit. The margin makes sure that it has passed then. */
    uint64_t now = dti_lived_ns(), next = now + c->limit_ns;
    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t at = late_at(c, &c->worker[i], state_of(&c->worker[i]));
        next = at < next ? at : next;
    }
    return (next > now ? next : now) + 1000000;
}
