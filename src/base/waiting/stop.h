/* src/base/waiting/stop.h - the word that ends a run early, and the one error that goes with it.
 *
 * Runs nest (jobs.h). An error ends the run in which it happened. When all replicas have returned from that
 * run, the thread that started it clears the stop, and the run around it continues. When the time of the
 * outermost run is over, or another host has failed, all runs end, and a thread that started an inner run
 * must not clear the stop.
 *
 * Invariants  I1  The state changes only by compare-and-swap, with two exceptions. The thread that set
 *                 CLAIMED ends it with a store, and dti_stop_reset is a store.
 *             I2  The thread that set CLAIMED writes the error and its run while the state is CLAIMED. No
 *                 other thread writes them.
 *             I3  EXPIRED, once set, stays until dti_stop_reset.
 * Edge        X0 -> X1  From the error and its run to every thread that sees the state STOPPED.
 * Progress    A thread that wants to change the state and finds CLAIMED waits until the other thread has
 *             copied an error record. Then it reads the state again.
 * Model       tests/model/stop.pml, renew.pml */
#ifndef DTI_STOP_H
#define DTI_STOP_H

#include <ditto/status.h>

#include "base/platform.h"

/* The state is one of the first three. EXPIRED may be added to CLAIMED and STOPPED. */
enum { DTI_STOP_RUNNING = 0, DTI_STOP_CLAIMED = 1, DTI_STOP_STOPPED = 2, DTI_STOP_EXPIRED = 4 };

struct dti_stop {
    /* Written when a run is stopped and when a stop is cleared. Every wait that takes long reads it
     * repeatedly. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t state;

    /* The number of the run that the error ended. It is not atomic (I2). */
    uint64_t run;

    /* The error that ended it. It is not atomic (I2). */
    ditto_error error;
};

/* -- Any thread -- */

void dti_stop_init(struct dti_stop *stop);

/* Ends run `run` with an error. Only the first error counts. The call that brings the first error returns
 * true, and its caller must then wake every thread that may sleep. After a call, whatever it returned, the
 * error that counts can be read. */
bool dti_stop_now(struct dti_stop *stop, const ditto_error *error, uint64_t run);

/* The same for all runs. The stop then stays until dti_stop_reset, even if another error came first. */
bool dti_stop_expire(struct dti_stop *stop, const ditto_error *error, uint64_t run);

static inline bool dti_stopped(const struct dti_stop *stop)
{
    return (atomic_load_explicit(&stop->state, memory_order_acquire) & DTI_STOP_STOPPED) != 0; /* X1 */
}

/* -- The thread that started run `run`, when all replicas have returned from it -- */

/* Clears the stop if it belongs to that run and is not one of all runs. */
void dti_stop_renew(struct dti_stop *stop, uint64_t run);

/* -- The thread that started the outermost run, when all replicas are parked -- */

void dti_stop_reset(struct dti_stop *stop);

#endif
