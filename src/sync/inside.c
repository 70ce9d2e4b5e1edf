/* src/sync/inside.c - going to others' buffers, and waiting for those who are at ours. Argued in inside.h. */
#include "sync/inside.h"
#include "sync/meeting.h"

#include <sched.h>

bool dti_go_inside(struct dti_replica *self)
{
    _Atomic uint32_t *inside = &self->sync->attendee[self->id].inside;
    atomic_store_explicit(inside, 1, memory_order_relaxed); /* I0; ordered by the fence */
    dti_fence_light();
    if (!dti_stopped(&self->team->stop)) /* I1 */
        return true;
    atomic_store_explicit(inside, 0, memory_order_relaxed); /* nothing was touched */
    return false;
}

void dti_go_outside(struct dti_replica *self)
{
    atomic_store_explicit(&self->sync->attendee[self->id].inside, 0, memory_order_release); /* O0 */
}

ditto_status dti_leave(struct dti_replica *self, ditto_status status)
{
    const struct dti_sync *sync = self->sync;
    dti_fence_heavy();                           /* I2 */
    for (uint32_t i = 0; i < self->team->n; i++) /* I3; in a child after fork nobody is there to come out */
        while (atomic_load_explicit(&sync->attendee[i].inside, memory_order_acquire) != 0 && /* O1 */
               !dti_team_forked(self->team))
            sched_yield();
    return status;
}
