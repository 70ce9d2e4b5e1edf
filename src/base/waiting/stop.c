/* src/base/waiting/stop.c - ends a run early. The argument is in stop.h. */
#include "base/waiting/stop.h"

#include <sched.h>

void dti_stop_init(struct dti_stop *stop)
{
    atomic_init(&stop->state, DTI_STOP_RUNNING);
}

/* Waits while another thread writes its error. Returns the state after that. */
static uint32_t state_after_claim(const struct dti_stop *stop)
{
    uint32_t state;
    /* acquire: X1 */
    while (((state = atomic_load_explicit(&stop->state, memory_order_acquire)) & DTI_STOP_CLAIMED) != 0)
        sched_yield();
    return state;
}

/* Changes the state from `from` to `to`. Returns false if the state is no longer `from`. acquire: X1.
 * release: dti_stop_renew has read `run`, which the thread that claims the new state writes. */
static bool change(struct dti_stop *stop, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(&stop->state, &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* `flag` is 0 or DTI_STOP_EXPIRED. Returns true if the error of this call is the one that counts. */
static bool end_run(struct dti_stop *stop, const ditto_error *error, uint64_t run, uint32_t flag)
{
    for (;;) {
        uint32_t state = state_after_claim(stop);
        if ((state & DTI_STOP_STOPPED) != 0) { /* another error came first */
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
    /* All replicas have returned. If the state is CLAIMED, the thread that started the outermost run has set
     * it, or the one that hears of lost hosts. Such a stop ends all runs. It does not belong to this one. */
    uint32_t state = state_after_claim(stop);
    if (state == DTI_STOP_STOPPED && stop->run == run)
        /* If the time of the outermost run has just ended, or a host was lost, the change fails and the stop
         * stays. */
        (void)change(stop, DTI_STOP_STOPPED, DTI_STOP_RUNNING);
}

void dti_stop_reset(struct dti_stop *stop)
{
    /* relaxed: the go number of the next run publishes the state to the replicas. */
    atomic_store_explicit(&stop->state, DTI_STOP_RUNNING, memory_order_relaxed);
}
