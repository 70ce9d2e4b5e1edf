/* src/coordinator/remote.c - the results of scheduled functions; see remote.h. */
#include "coordinator/remote.h"
#include "base/errors/status.h"
#include "coordinator/coordinator.h"
#include "values/values.h"

#include <stdlib.h>

ditto_status dti_remote_make(ditto_strategy *strategy, struct ditto_coordinator *coordinator,
                             struct ditto_remote **out)
{
    ditto_value *anchor;
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_NEST, &anchor));
    struct ditto_remote *remote = calloc(1, sizeof *remote);
    if (remote == NULL) {
        dti_value_drop(anchor);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the result of a scheduled function");
    }
    atomic_init(&remote->references, 2);
    atomic_init(&remote->state, DTI_REMOTE_QUEUED);
    remote->anchor = anchor;
    remote->coordinator = coordinator;
    dti_coordinator_keep(coordinator);
    *out = remote;
    return DITTO_OK;
}

void dti_remote_keep(struct ditto_remote *remote)
{
    /* relaxed: the caller has a reference. */
    if (remote != NULL)
        atomic_fetch_add_explicit(&remote->references, 1, memory_order_relaxed);
}

void dti_remote_drop(struct ditto_remote *remote)
{
    /* acq_rel: pairs with itself, so that all uses through other references happen before the memory is
     * freed. */
    if (remote == NULL || atomic_fetch_sub_explicit(&remote->references, 1, memory_order_acq_rel) != 1)
        return;
    dti_copied_drop(remote->result);
    dti_value_drop(remote->anchor);
    dti_coordinator_drop(remote->coordinator);
    free(remote);
}

/* Changes the state from one to another. */
static bool change(struct ditto_remote *remote, uint32_t from, uint32_t to)
{
    /* acq_rel: a thread that takes the result over sees what the one before it has done. */
    return atomic_compare_exchange_strong_explicit(&remote->state, &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

bool dti_remote_begin(struct ditto_remote *remote)
{
    return change(remote, DTI_REMOTE_QUEUED, DTI_REMOTE_RUNNING) ||
           atomic_load_explicit(&remote->state, memory_order_relaxed) == DTI_REMOTE_RUNNING;
}

void dti_remote_end(struct ditto_remote *remote, ditto_status status, struct dti_copied *result)
{
    if (!change(remote, DTI_REMOTE_RUNNING, DTI_REMOTE_ENDING)) {
        dti_copied_drop(result);
        return;
    }
    remote->status = status;
    remote->result = result;
    if (status < 0)
        remote->error = *dti_error_get();
    /* release: pairs with the acquire in dti_remote_is_final. */
    atomic_store_explicit(&remote->state, DTI_REMOTE_ENDED, memory_order_release);
}

bool dti_remote_cancel(struct ditto_remote *remote)
{
    if (!change(remote, DTI_REMOTE_QUEUED, DTI_REMOTE_CANCELLED))
        return false;
    dti_signal_callers(remote->coordinator); /* one may wait for this result */
    return true;
}
