/* src/base/waiting/stop.c - ending a run early. Argued in stop.h. */
#include "base/waiting/stop.h"

#include <sched.h>

void dti_stop_init(struct dti_stop *stop)
{
    atomic_init(&stop->state, DTI_STOP_RUNNING);
}

/* Waits while another thread writes its error. Returns the state that follows. */
static uint32_t settled_state(const struct dti_stop *stop)
{
    uint32_t state;
    while (((state = atomic_load_explicit(&stop->state, memory_order_acquire)) & DTI_STOP_CLAIMED) !=
           0) /* X1 */
        sched_yield();
    return state;
}

/* Changes the state from `from` to `to`. Returns false if the state was another one by then. acq_rel: this
 * thread has seen the error of a state with STOPPED (X1), and a thread that sees the new state must see that
 * error too (X0). */
static bool change(struct dti_stop *stop, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(&stop->state, &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* `flag` is 0 or DTI_STOP_EXPIRED. Returns whether this call's error is the one that counts. */
static bool end_run(struct dti_stop *stop, const ditto_error *error, uint64_t run, uint32_t flag)
{
    for (;;) {
        uint32_t state = settled_state(stop);
        if ((state & DTI_STOP_STOPPED) != 0) { /* another error was first */
            if ((state & flag) == flag || change(stop, state, state | flag))
                return false;
        } else if (change(stop, DTI_STOP_RUNNING, DTI_STOP_CLAIMED | flag)) {
            stop->run = run;
            stop->error = *error;
            atomic_store_explicit(&stop->state, DTI_STOP_STOPPED | flag, memory_order_release); /* X0 */
            return true;
        }
    }
}

bool dti_stop_now(struct dti_stop *stop, const ditto_error *error, uint64_t run)
{
    return end_run(stop, error, run, 0);
}

bool dti_stop_expire(struct dti_stop *stop, const ditto_error *error, uint64_t run)
{
    return end_run(stop, error, run, DTI_STOP_EXPIRED);
}

void dti_stop_renew(struct dti_stop *stop, uint64_t run)
{
    /* A claimer can only be the outermost run's poster, because all others have returned: its stop is not
     * this run's. */
    uint32_t state = settled_state(stop);
    if (state == DTI_STOP_STOPPED && stop->run == run)
        /* fails if the time has just run out, and the stop stays */
        (void)change(stop, DTI_STOP_STOPPED, DTI_STOP_RUNNING);
}

void dti_stop_reset(struct dti_stop *stop)
{
    /* relaxed: the next run's go word publishes the state to the replicas */
    atomic_store_explicit(&stop->state, DTI_STOP_RUNNING, memory_order_relaxed);
}
