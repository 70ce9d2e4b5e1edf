/* src/sync/hosts/started.c - started operations over several hosts.
 *
 * A replica that starts an operation only notes it in its ring (pending.h). The replicas carry it out
 * together in the first call after the start in which they may wait: ditto_wait, ditto_test or another
 * collective. They carry out operations in the order in which they were started, and all that were started
 * before a collective come before it. So the order is the same on all replicas, wherever each of them waits
 * for an operation. Nothing moves before that, because only the driver may use the wire, and only in calls of
 * ditto. */
#include "base/numbers/fenv.h"
#include "sync/algorithms/collective.h"
#include "sync/hosts/hosts.h"
#include "sync/pending/pending.h"

ditto_status dti_hosts_start(struct dti_replica *self, const struct dti_call *call,
                             const struct dti_target *target, uint64_t *out)
{
    struct dti_replica_state *me = dti_replica_state_of(self);
    struct dti_pending_operation *operation = dti_pending_operation_of(self->sync, self->index,
                                                                       me->started + 1);
    operation->call = *call;
    operation->target = target;
    *out = ++me->started;
    return DITTO_OK;
}

static ditto_status carry_out(struct dti_replica *self, uint64_t number, struct dti_deadline *deadline)
{
    struct dti_pending_operation *operation = dti_pending_operation_of(self->sync, self->index, number);
    struct dti_prepared_call prepared = dti_prepare_call(self->sync, &self->sync->tuning.given,
                                                         &operation->call, operation->target);
    return dti_hosts_execute(self, &prepared, operation->target, deadline);
}

ditto_status dti_hosts_carry_out(struct dti_replica *self, uint64_t upto, const struct dti_deadline *deadline)
{
    struct dti_replica_state *me = dti_replica_state_of(self);
    ditto_status status = DITTO_OK;
    if (me->consumed == me->started)
        return DITTO_OK;
    struct dti_fenv saved = dti_fenv_enter();
    while (status == DITTO_OK && me->consumed != me->started && me->consumed < upto) {
        struct dti_deadline own = dti_replica_deadline(self, deadline->timeout_ms);
        status = carry_out(self, me->consumed + 1, &own);
        if (status == DITTO_OK)
            /* relaxed: over hosts no other replica reads it. */
            atomic_store_explicit(&me->pending->consumed, ++me->consumed, memory_order_relaxed);
    }
    dti_fenv_leave(saved);
    return status;
}
