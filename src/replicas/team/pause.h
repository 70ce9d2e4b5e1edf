/* src/replicas/team/pause.h - replica 0 works alone inside a run; the others wait, and serve the runs that it posts.
 *
 * Inside a run all replicas meet; then replica 0 begins a pause, in which it works alone and may run jobs, and always
 * ends it; the others serve meanwhile: they do their parts of these jobs, and return when the pause has ended. They
 * see what replica 0 wrote before that. A meeting may fail for some and not for others. Who leaves it with an error,
 * and who serves in a stopped run, refuses the pause: either replica 0 has not begun, and then nobody pauses; or it is
 * too late, and who was to leave serves first.
 *
 * Invariants  I1  replica 0 alone writes the pause's state, and begins only if it has seen no refusal since it wrote BEGUN.
 *             I2  who serves goes before the end only after a refusal of its own, having not found BEGUN since.
 * Edges       U0 -> U1  BEGUN, dti_fence_light, a look for a refusal | a refusal, dti_fence_heavy, a look at the state:
 *             V0 -> V1  of the two looks at least one sees the other side. If both do, replica 0 says so (DECLINED).
 *                       V1 also sees why the run was stopped: who refuses knew it.
 *             E0 -> E1  the end in the go word -> whoever finds the state open again
 * Model       tests/model/refuse.pml; of the runs inside: pause.pml */
#ifndef DTI_PAUSE_H
#define DTI_PAUSE_H

#include "replicas/team/team.h"

/* -- The replica's own thread -- */
void dti_pause_announce(struct dti_replica *self); /* replica 0, before they meet: one will begin. A hint */
bool dti_pause_begin(struct dti_replica *self); /* replica 0; false: it was refused, and the run is stopped */
void dti_pause_end(struct dti_replica *self);   /* replica 0 */
bool dti_pause_serve(
    struct dti_replica *self); /* the others; false: it was refused, or their run was given up */
/* Called by a replica that left the meeting with an error. Does nothing if the run goes on, because then the
 * replica never arrived at the meeting: dti_meet refuses before it announces anything in a child process, and
 * dti_sync_meet does inside a combining function. */
void dti_pause_refuse(struct dti_replica *self);

#endif
