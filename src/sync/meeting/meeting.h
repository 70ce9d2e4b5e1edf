/* src/sync/meeting/meeting.h - where replicas meet: each announces what it calls, nobody goes on before all have.
 *
 * A meeting has a sequence number e. For each parity of e, a replica owns a card with its call, and one slot
 * per round with a word and, for small messages, payload. There are two ways to meet:
 *   rounds   for replicas with PUs of their own. They follow the plan of rounds.h: in each round a replica
 *            writes its slot and watches those of its siblings. With one round every replica watches all
 *            others.
 *   crowded  for replicas that share PUs. They use a shared counter. The replica that arrives last compares
 *            all calls, may combine the payloads, and releases the others. So each has to be scheduled once,
 *            not once per peer.
 *
 * Invariants  I1  a replica's slot[e % 2][r] is written by that replica only, and not before it has finished
 *                 meeting e - 1.
 *             I2  nobody finishes e before all have arrived at e. (Rounds: after round r a replica has heard,
 *                 through others, from all of its block of cut r + 1; after the last round from everyone.)
 *             I3  arrived counts this meeting's arrivals; it is 0 whenever release changes (crowded).
 *             I4  no word holds a number from 2^32 meetings ago, which would look like the present one. So
 *                 many barriers take some minutes. Each replica therefore rewrites its own old words from
 *                 time to time (freshen).
 * Edges       M0 -> M1  what a replica knows (its call, payload and all it did before; in later rounds also
 *                       what it has heard) -> each peer that sees its word
 *             C0 -> C1  each arrival -> the last arrival: read-modify-writes of arrived form one release
 *                       sequence
 *             C2 -> C3  the last arrival's release -> everyone's exit (crowded)
 * Therefore   what anyone wrote before a meeting, everyone sees after it; and two parities suffice without a
 *             second meeting: r writes its slots for e + 2 after it finished e + 1 (I1), to which all came
 *             (I2), each having finished reading those of e. For the same reason any card and any first slot
 *             can be read after the meeting.
 * Stopping    waiters look at the stop word and for peers that have returned; either ends the wait with an
 *             error. In a stopped run replicas may disagree on the last meeting; its state is renewed before
 *             the next run. On its way out of a meeting that failed, a replica waits for peers that are still
 *             at its buffers (access.h).
 * Model       tests/model/meeting.pml, rounds.pml */
#ifndef DTI_MEETING_H
#define DTI_MEETING_H

#include "replicas/replicas.h"
#include "sync/meeting/call.h"
#include "sync/kernels/reduction.h"
#include "sync/sync_state.h"

/* What a replica brings to a meeting. */
struct dti_arrival {
    const struct dti_call *call;
    const void *payload; /* copied into the first slot */
    size_t payload_bytes;
    bool goes_on; /* a further meeting of the operation whose first one this replica has been to */
    /* May be NULL. Rounds: after every round, to see what the siblings brought and to fill the next round's slot. Crowded: once,
     * by the last to arrive, before the release. */
    void (*join)(struct dti_replica *self, uint32_t seq, uint32_t round, const struct dti_arrival *arrival);
    void *context; /* join's */
};

/* The replica's own thread. On DITTO_OK every card and first slot of meeting *seq can be read until the replica enters its next
 * meeting. Errors: DIVERGED, TIMED_OUT, PEER_STOPPED, FORKED; the run is stopping then, and nobody is at this
 * replica's buffers any more. */
ditto_status dti_meet(struct dti_replica *self, const struct dti_arrival *arrival,
                      struct dti_deadline *deadline, uint32_t *seq);

/* Crowded, see above; else in rounds. The same on all replicas. */
bool dti_meets_by_counter(const struct dti_team *team, const struct dti_call *call);

/* The replica's own thread, after a meeting: DIVERGED unless all calls are equal, field by field; INVALID if another
 * one's result is to go to the same address as this one's. A digest may collide once in 2^32; before anyone touches another one's buffer that is not good enough. */
ditto_status dti_meeting_compare(struct dti_replica *self, uint32_t seq);

#endif
