/* src/sync/meeting/access.c - access to the buffers of other replicas, and the wait before leaving. See
 * access.h. */
#include "sync/meeting/access.h"
#include "base/errors/status.h"
#include "base/waiting/stop.h"
#include "sync/meeting/sync_state.h"

#include <sched.h>
#include <string.h>

bool dti_access_begin_on(_Atomic uint32_t *accessing, const struct dti_stop *stop)
{
    atomic_store_explicit(accessing, 1, memory_order_relaxed); /* I0; the fence orders it */
    dti_fence_light();
    if (!dti_stopped(stop)) /* I1 */
        return true;
    atomic_store_explicit(accessing, 0, memory_order_relaxed); /* no buffer was touched */
    return false;
}

void dti_access_end_on(_Atomic uint32_t *accessing)
{
    atomic_store_explicit(accessing, 0, memory_order_release); /* O0 */
}

bool dti_access_begin(struct dti_replica *self)
{
    return dti_access_begin_on(&self->sync->state[self->index].accessing, self->stop);
}

void dti_access_end(struct dti_replica *self)
{
    dti_access_end_on(&self->sync->state[self->index].accessing);
}

/* The error of a replica mentions a delay of this length or more. */
#define LONG_NS 100000000u

/* Adds to the message of the error that is about to be returned how late it is, and for which replica this
 * one waited last. */
static void describe_delay(uint32_t replica, uint64_t ns)
{
    ditto_error error = *dti_error_get();
    struct dti_text text = { error.message, sizeof error.message, strlen(error.message) };
    dti_text_add(&text,
                 "; this error was reported %llu ms later, because a function on replica %u was using this "
                 "replica's buffers",
                 (unsigned long long)(ns / 1000000u), replica);
    dti_error_set(&error);
}

ditto_status dti_leave_collective(struct dti_replica *self, ditto_status status)
{
    const struct dti_sync *sync = self->sync;
    uint64_t begin = 0, waited = 0;
    uint32_t last = 0;
    dti_fence_heavy(); /* I2 */
    /* I3. In a child process no other replica exists, so no `accessing` word would ever become 0. */
    for (uint32_t i = 0; i < self->num_replicas; i++)
        while (atomic_load_explicit(&sync->state[i].accessing, memory_order_acquire) != 0 && /* O1 */
               !dti_replica_is_forked(self)) {
            begin = begin != 0 ? begin : dti_now_ns();
            waited = dti_now_ns() - begin;
            last = i;
            sched_yield();
        }
    while (atomic_load_explicit(&sync->caller_accessing, memory_order_acquire) != 0 && /* O1 */
           !dti_replica_is_forked(self))
        sched_yield();
    if (waited >= LONG_NS)
        describe_delay(dti_replica_peer(self, last)->id, waited);
    return status;
}
