/* src/replicas/stop.h - the word that ends a run early, and the one error that goes with it.
 *
 * Invariant   the first to claim writes the error, then sets stopped; both stay until dti_stop_renew.
 * Edge        X0 -> X1  the error record -> whoever sees stopped.
 * Model       tests/model/stop.pml */
#ifndef DTI_STOP_H
#define DTI_STOP_H

#include "base/base.h"

struct dti_stop {
    alignas(DTI_LINE_PAIR) _Atomic uint32_t stopped; /* read in every slow look of every wait, written once a run */
    _Atomic uint32_t claimed;
    ditto_error error; /* plain: written between claimed and stopped, read after stopped */
};

/* -- Any thread -- */
void dti_stop_init(struct dti_stop *stop);
/* The first call of a run wins and gets true; its error is the run's. The caller then signals whoever may sleep. When it
 * returns, either way, the error can be read. */
bool dti_stop_now(struct dti_stop *stop, const ditto_error *error);
static inline bool dti_stopped(const struct dti_stop *stop)
{
    return atomic_load_explicit(&stop->stopped, memory_order_acquire) != 0; /* X1 */
}

/* -- The thread that joined the run, when all replicas are parked -- */
void dti_stop_renew(struct dti_stop *stop);

#endif
