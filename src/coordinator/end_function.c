/* src/coordinator/end_function.c - how scheduled functions end: finished, failed, or cancelled with the
 * whole queue. One function is cancelled in remote.c. See coordinator.h. */
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
    uint64_t failures = atomic_load_explicit(&c->failures, memory_order_relaxed);
    if (failures % 2 == 0) {
        c->error[(failures / 2 + 1) % 2] = *dti_error_get();
        c->cancelled_before = atomic_load_explicit(&c->cancelled, memory_order_relaxed);
        /* release: pairs with the acquire of a thread that reads the number without the lock. */
        atomic_store_explicit(&c->failures, failures + 1, memory_order_release);
    }
    pthread_mutex_unlock(&c->lock);
}

void dti_function_was_positive(struct ditto_coordinator *c, const struct dti_scheduled *item,
                               ditto_status status)
{
    /* All are relaxed: a call that reads them has seen that the function is finished, which comes later. */
    uint64_t silent = atomic_load_explicit(&c->silent, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->positive, 1, memory_order_relaxed);
    while (item->remote == NULL && !atomic_compare_exchange_weak_explicit(
                                       &c->silent, &silent, ((silent >> 32) + 1) << 32 | (uint32_t)status,
                                       memory_order_relaxed, memory_order_relaxed))
        ; /* another function has ended meanwhile */
}

void dti_scheduled_drop(struct dti_scheduled *item)
{
    dti_copied_drop(item->arguments);
    dti_remote_drop(item->remote);
    item->arguments = NULL;
    item->remote = NULL;
}

void dti_finish_given_up(struct ditto_coordinator *c, struct dti_scheduled *item)
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
            ditto_error kept = *dti_error_get();
            DTI_FAIL(DITTO_ERR_TIMED_OUT,
                     "the worker of \"%s\" was retired, and no other one could execute it again",
                     item.function.name);
            dti_remote_end(item.remote, DITTO_ERR_TIMED_OUT, NULL);
            dti_error_set(&kept);
        } else {
            atomic_fetch_add_explicit(&c->cancelled, 1, memory_order_relaxed);
        }
        dti_finish_given_up(c, &item);
    }
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
