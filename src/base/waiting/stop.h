/* src/base/waiting/stop.h - the word that ends a run early, and the one error that goes with it.
 *
 * Runs nest (team.h). An error ends the run in which it happened; that run's poster clears the stop when all
 * have returned, and the run around it goes on. The end of the outermost run's time is different: it ends all
 * runs, and no inner run's poster may clear it.
 *
 * Invariants  I1  the state changes by compare-and-swap alone, except that the claimer ends CLAIMED with a
 *                 store.
 *             I2  the claimer writes the error and its run while the state is CLAIMED. No other thread writes
 *                 them.
 *             I3  EXPIRED, once set, stays until dti_stop_reset.
 * Edge        X0 -> X1  the error and its run -> every thread that sees the state STOPPED
 * Progress    a thread that finds CLAIMED waits until the claimer has copied an error record, and then looks
 *             again.
 * Model       tests/model/stop.pml, renew.pml */
#ifndef DTI_STOP_H
#define DTI_STOP_H

#include "base/base.h"

/* The state is one of these, and EXPIRED may be added to CLAIMED and STOPPED. */
enum { DTI_STOP_RUNNING = 0, DTI_STOP_CLAIMED = 1, DTI_STOP_STOPPED = 2, DTI_STOP_EXPIRED = 4 };

struct dti_stop {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t
        state;         /* read in every slow look of every wait, written once a run */
    uint64_t run;      /* the number of the run that the error ended; plain (I2) */
    ditto_error error; /* plain (I2) */
};

/* -- Any thread -- */
void dti_stop_init(struct dti_stop *stop);
/* Ends run `run` with an error. The first error counts. The call that brings it returns true, and its caller
 * then wakes every thread that may sleep. When a call has returned, true or false, the error that counts can
 * be read. */
bool dti_stop_now(struct dti_stop *stop, const ditto_error *error, uint64_t run);
/* The same when the outermost run's time is over. The stop then stays until dti_stop_reset, also if another
 * error came first. */
bool dti_stop_expire(struct dti_stop *stop, const ditto_error *error, uint64_t run);
static inline bool dti_stopped(const struct dti_stop *stop)
{
    return (atomic_load_explicit(&stop->state, memory_order_acquire) & DTI_STOP_STOPPED) != 0; /* X1 */
}
static inline bool dti_stop_is_expired(const struct dti_stop *stop)
{
    /* relaxed: nothing is read through it */
    return (atomic_load_explicit(&stop->state, memory_order_relaxed) & DTI_STOP_EXPIRED) != 0;
}

/* -- The poster of run `run`, when all its replicas have returned from it -- */
/* Clears the stop, if it is that run's and the outermost run still has time. */
void dti_stop_renew(struct dti_stop *stop, uint64_t run);

/* -- The poster of the outermost run, when all replicas are parked -- */
void dti_stop_reset(struct dti_stop *stop);

#endif
