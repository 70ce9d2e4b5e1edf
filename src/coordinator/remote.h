/* src/coordinator/remote.h - the result of a scheduled function, which may not be there yet.
 *
 * A result begins as QUEUED. The thread that wins the compare-and-swap of its state changes it: a worker that
 * begins the function (RUNNING), the worker or the caller that ends it (ENDING, and then ENDED, after the
 * result has been stored), or a thread that cancels it. If a worker is retired, its function may be ended by
 * that worker or by another one that executes it again. The first one that comes to ENDING counts, and the
 * results of the other are dropped. */
#ifndef DTI_REMOTE_H
#define DTI_REMOTE_H

#include "coordinator/copied.h"

enum dti_remote_state {
    DTI_REMOTE_QUEUED,
    DTI_REMOTE_RUNNING,
    DTI_REMOTE_ENDING,
    DTI_REMOTE_CANCELLED, /* this and the next one are final */
    DTI_REMOTE_ENDED
};

struct ditto_remote {
    /* The program's handle, the function while it is not finished, and each worker that executes it. */
    _Atomic uint32_t references;
    _Atomic uint32_t state;

    /* A reference, for waiting. */
    struct ditto_coordinator *coordinator;

    /* An empty value of the strategy. It knows whether the strategy still exists. */
    ditto_value *anchor;

    /* Written in ENDING, and constant in ENDED. */
    ditto_status status;
    ditto_error error;         /* if status is an error */
    struct dti_copied *result; /* NULL if there is none */
};

/* Makes a result with two references. Returns NO_MEMORY. */
ditto_status dti_remote_make(ditto_strategy *strategy, struct ditto_coordinator *coordinator,
                             struct ditto_remote **out);
void dti_remote_keep(struct ditto_remote *remote); /* NULL is allowed, also below */
void dti_remote_drop(struct ditto_remote *remote);

/* A worker begins the function, for the first time or again. Returns false if it was cancelled, or has ended
 * meanwhile. */
bool dti_remote_begin(struct ditto_remote *remote);
/* Ends the function with results, which are taken over, or with the error record of this thread. */
void dti_remote_end(struct ditto_remote *remote, ditto_status status, struct dti_copied *result);
/* Cancels the function if it has not begun. Returns false if it has. */
bool dti_remote_cancel(struct ditto_remote *remote);

static inline bool dti_remote_is_final(const struct ditto_remote *remote)
{
    /* acquire: pairs with the release in dti_remote_end. */
    return atomic_load_explicit(&remote->state, memory_order_acquire) >= DTI_REMOTE_CANCELLED;
}

#endif
