/* src/coordinator/end_function.c - how scheduled functions end: finished, failed, cancelled, or given back by
 * a worker that is late. See coordinator.h. */
#include "base/errors/status.h"
#include "coordinator/coordinator.h"
#include "coordinator/remote.h"

uint64_t dti_finished(const struct ditto_coordinator *c)
{
    /* acquire: pairs with the release of each thread that finishes a function, so that its effects are
     * seen. */
    uint64_t sum = atomic_load_explicit(&c->given_up, memory_order_acquire);
    for (uint32_t i = 0; i < c->count; i++)
        sum += atomic_load_explicit(&c->worker[i].finished, memory_order_acquire);
    return sum;
}

bool dti_all_finished(const struct ditto_coordinator *c)
{
    uint64_t finished = dti_finished(c); /* before the pushes, see coordinator.h */
    return finished == dti_function_queue_pushed(&c->queue);
}

void dti_function_failed(struct ditto_coordinator *c)
{
    pthread_mutex_lock(&c->lock);
    if (!atomic_load_explicit(&c->has_failed, memory_order_relaxed)) {
        c->error = *dti_error_get();
        /* release: pairs with the acquire of a thread that reads the flag without the lock. */
        atomic_store_explicit(&c->has_failed, true, memory_order_release);
    }
    pthread_mutex_unlock(&c->lock);
}

void dti_scheduled_drop(struct dti_scheduled *item)
{
    dti_copied_drop(item->arguments);
    dti_remote_drop(item->remote);
    *item = (struct dti_scheduled){ 0 };
}

static void finish_given_up(struct ditto_coordinator *c, struct dti_scheduled *item)
{
    dti_scheduled_drop(item);
    atomic_fetch_add_explicit(&c->given_up, 1, memory_order_release);
    dti_signal_callers(c);
}

void dti_cancel_queued(struct ditto_coordinator *c)
{
    struct dti_scheduled item;
    while (dti_take_returned(c, &item) || dti_function_queue_pop(&c->queue, &item)) {
        /* One that was begun before cannot be cancelled any more. Its worker was lost. */
        if (item.remote != NULL && !dti_remote_cancel(item.remote)) {
            DTI_FAIL(DITTO_ERR_TIMED_OUT,
                     "the worker of \"%s\" was retired, and no other one could execute it again",
                     item.function->name);
            dti_remote_end(item.remote, DITTO_ERR_TIMED_OUT, NULL);
        }
        finish_given_up(c, &item);
    }
}

/* -- workers that are late -- */

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

/* Lets a function fail that was begun too often. */
static void fail_attempts(struct ditto_coordinator *c, struct dti_scheduled *item, uint32_t worker)
{
    DTI_FAIL(DITTO_ERR_TIMED_OUT,
             "\"%s\" was begun %u times, and did not end, the last time because it took longer than "
             "run_timeout_ms on worker %u, which is retired",
             item->function->name, item->attempts, worker);
    dti_function_failed(c);
    if (item->remote != NULL)
        dti_remote_end(item->remote, DITTO_ERR_TIMED_OUT, NULL);
    finish_given_up(c, item);
}

/* Gives a function of a retired worker, which the caller owns, to another worker, or lets it fail if it was
 * begun too often. */
static void give_back(struct ditto_coordinator *c, struct dti_scheduled *item, uint32_t worker)
{
    if (item->attempts >= c->max_attempts) {
        fail_attempts(c, item, worker);
        return;
    }
    pthread_mutex_lock(&c->lock);
    uint32_t count = atomic_load_explicit(&c->num_returned, memory_order_relaxed);
    c->returned[count] = *item; /* each worker is retired once, so there is room */
    atomic_store_explicit(&c->num_returned, count + 1, memory_order_seq_cst);
    pthread_mutex_unlock(&c->lock);
    dti_wake_worker(c);
}

static bool is_late(const struct ditto_coordinator *c, const struct dti_function_worker *w, uint64_t state,
                    uint64_t now)
{
    uint64_t began = atomic_load_explicit(&w->began_at_ns, memory_order_relaxed);
    return (state & 3) == DTI_WORKER_RUNNING && now > began && now - began > c->limit_ns;
}

/* Takes the function of a worker away from it, if it is late. */
static void retire(struct ditto_coordinator *c, struct dti_function_worker *w, uint64_t now)
{
    /* acquire: pairs with the release of the worker, so that `began_at_ns` is that of this function, or a
     * later one, whose state differs. */
    uint64_t state = atomic_load_explicit(&w->state, memory_order_acquire);
    if (!is_late(c, w, state, now) || !atomic_compare_exchange_strong_explicit(
                                          &w->state, &state, (state & ~(uint64_t)3) | DTI_WORKER_RETIRED,
                                          memory_order_acq_rel, memory_order_relaxed))
        return;
    struct dti_scheduled item = w->current; /* the worker keeps its own reference to the arguments */
    atomic_fetch_add_explicit(&c->retired, 1, memory_order_acq_rel);
    dti_shared_datasets_give_back(w); /* before the function, which takes them again */
    give_back(c, &item, w->index);
    dti_signal_callers(c);
}

void dti_retire_late(struct ditto_coordinator *c)
{
    uint64_t now = dti_now_ns();
    for (uint32_t i = 0; i < c->count && c->limit_ns != DTI_NEVER; i++)
        retire(c, &c->worker[i], now);
}

uint64_t dti_next_limit(const struct ditto_coordinator *c)
{
    if (c->limit_ns == DTI_NEVER)
        return DTI_NEVER;
    /* A function that begins later has a later limit. The margin makes sure that it has passed then. */
    uint64_t now = dti_now_ns(), next = now + c->limit_ns;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct dti_function_worker *w = &c->worker[i];
        uint64_t began = atomic_load_explicit(&w->began_at_ns, memory_order_relaxed);
        if ((atomic_load_explicit(&w->state, memory_order_acquire) & 3) == DTI_WORKER_RUNNING &&
            began + c->limit_ns < next)
            next = began + c->limit_ns;
    }
    return (next > now ? next : now) + 1000000;
}

/* -- idle workers -- */

/* The bit of the worker has been taken out of `idle`, which comes after the store of false by the worker. */
static void wake(struct dti_function_worker *w)
{
    atomic_store_explicit(&w->is_woken, true, memory_order_release); /* pairs with is_woken in worker.c */
    dti_wait_queue_signal(&w->wait, DTI_EVERYONE);
}

void dti_wake_worker(struct ditto_coordinator *c)
{
    for (uint32_t i = 0; i < (c->count + 63) / 64; i++) {
        uint64_t bits = atomic_load_explicit(&c->idle[i], memory_order_seq_cst);
        while (bits != 0) {
            uint64_t bit = bits & -bits;
            uint64_t before = atomic_fetch_and_explicit(&c->idle[i], ~bit, memory_order_seq_cst);
            if ((before & bit) != 0) {
                uint32_t worker = i * 64 + (uint32_t)__builtin_ctzll(bit);
                wake(&c->worker[worker]);
                return;
            }
            bits = before & ~bit;
        }
    }
}

void dti_wake_all_workers(struct ditto_coordinator *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        atomic_fetch_and_explicit(&c->idle[i / 64], ~((uint64_t)1 << (i % 64)), memory_order_seq_cst);
        wake(&c->worker[i]);
    }
}
