/* src/replicas/jobs/pause.h - pauses, in which replica 0 works alone inside a run and the others wait.
 *
 * Inside a run all replicas meet. Then replica 0 begins a pause, in which it works alone and may run jobs. It
 * always ends the pause. Meanwhile the other replicas serve: they execute their parts of these jobs, and
 * return when the pause has ended. They then see everything that replica 0 wrote before the end.
 *
 * The meeting may fail for some replicas and succeed for others. A replica that leaves the meeting with an
 * error refuses the pause, and so does a replica that serves in a stopped run. If replica 0 has not begun, no
 * replica pauses. If the refusal comes too late, the replica that wanted to leave serves first.
 *
 * Invariants  I1  Only replica 0 writes the state of the pause. It begins only if it has seen no refusal
 *                 since it wrote BEGUN.
 *             I2  A serving replica leaves before the end of the pause only after it has refused, and only if
 *                 it has not found BEGUN since then.
 * Edges       U0 -> U1  Replica 0 writes BEGUN (U0), executes dti_fence_light, and looks for a refusal (V1).
 *             V0 -> V1  A replica that refuses writes its refusal (V0), executes dti_fence_heavy, and looks
 *                       at the state (U1). At least one of the two looks sees the write of the other side. If
 *                       both do, replica 0 writes DECLINED. V1 also sees why the run was stopped, because the
 *                       replica that refuses knew the reason.
 *             E0 -> E1  Replica 0 posts the end as a go number and then opens the state. A replica that sees
 *                       the open state sees the end. E0 wakes the serving replicas once more: one that has
 *                       refused the next pause waits for the open state, and not for the end.
 * Model       tests/model/refuse.pml. The runs inside a pause are modelled in pause.pml. */
#ifndef DTI_PAUSE_H
#define DTI_PAUSE_H

#include "replicas/team/replica.h"

/* -- The replica's own thread -- */
/* Called by replica 0 before the replicas meet, if a pause will begin. It is only a hint. */
void dti_pause_announce(struct dti_replica *self);
/* Called by replica 0. Returns false if the pause was refused. The run is then stopped. */
bool dti_pause_begin(struct dti_replica *self);
/* Called by replica 0. */
void dti_pause_end(struct dti_replica *self);
/* Called by the other replicas. Returns false if the pause was refused, if the run was given up, or in a
 * child process. */
bool dti_pause_serve(struct dti_replica *self);
/* Called by a replica that left the meeting with an error. Returns true if the pause took place nevertheless,
 * because the meeting succeeded on replica 0. The replica has then served to its end. Does nothing if the run
 * goes on, because then the replica never arrived at the meeting: dti_meet refuses in a child process before
 * it announces anything, and dti_sync_meet refuses inside a combining function. */
bool dti_pause_refuse(struct dti_replica *self);

#endif
