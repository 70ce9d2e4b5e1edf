/* src/sync/meeting/meeting.h - meetings, at which each replica announces its call and waits for all others.
 *
 * A meeting has a sequence number e. For each parity of e, a replica owns an announcement with its call, and
 * one mailbox per round with a word and, for small messages, a payload. There are two kinds of meetings:
 *   in rounds   For replicas that have their PUs alone. They follow the plan of rounds.h. In each round a
 *               replica writes its mailbox and watches the mailboxes of its siblings. With one round, every
 *               replica watches all others.
 *   by counter  For oversubscribed teams, whose replicas share PUs. They use a shared counter. The replica
 *               that arrives last compares all calls, may combine the payloads, and releases the others. So
 *               each replica has to be scheduled once, and not once per peer.
 *
 * Invariants  I1  The mailboxes that a replica uses for meeting e are written by that replica only, and only
 *                 after it has finished meeting e - 1.
 *             I2  No replica finishes meeting e before all have arrived at e. In rounds, the word of a
 *                 replica reaches every other replica, directly or through others. After round k, a replica
 *                 has received the words of its block of cut k + 1 in this way, and after the last round
 *                 those of all replicas.
 *             I3  arrived counts the arrivals of this meeting. It is 0 whenever `release` changes (by
 *                 counter).
 *             I4  No word holds a number from 2^32 meetings ago, which would look like the present one. That
 *                 many barriers take some minutes. Each replica therefore rewrites its own old words from
 *                 time to time (refresh_words).
 * Edges       M0 -> M1  A replica writes what it knows (its call, its payload, all it did before, and in
 *                       later rounds also what it has received), and then stores its word. Each peer that
 *                       sees the word sees all this.
 *             C0 -> C1  In a meeting by counter, each arrival is seen by the last arrival. The
 *                       read-modify-writes of arrived form one release sequence.
 *             C2 -> C3  In a meeting by counter, the last arrival releases it. Every replica sees the release
 *                       before it leaves.
 * Therefore   Everything that a replica wrote before a meeting is seen by every replica after the meeting.
 *             Two parities suffice without a second meeting: a replica writes its mailboxes for e + 2 after
 *             it finished e + 1 (I1), at which all replicas arrived (I2), and each of them had finished
 *             reading those of e. For the same reason every announcement and every first mailbox can be read
 *             after the meeting.
 * Stopping    Waiting replicas poll the stop word, and check whether peers have returned. Either ends the
 *             wait with an error. In a stopped run replicas may disagree on the last meeting. Its state is
 *             renewed before the next run. A replica that leaves a failed meeting waits for peers that still
 *             access its buffers (access.h).
 * Model       tests/model/meeting.pml, rounds.pml */
#ifndef DTI_MEETING_H
#define DTI_MEETING_H

#include "replicas/team/replica.h"
#include "sync/meeting/call.h"

/* The input of a replica to a meeting. */
struct dti_arrival {
    const struct dti_call *call;

    /* Copied into the first mailbox. */
    const void *payload;
    size_t payload_bytes;

    /* The number of bytes that the next payload of this replica is likely to have. */
    size_t next_bytes;

    /* True for a further meeting of an operation whose first meeting this replica has finished. */
    bool goes_on;

    /* May be NULL. In rounds it is called after every round, to read the payloads of the siblings and to fill
     * the mailbox of the next round. In a meeting by counter only the last replica to arrive calls it, once,
     * before the release. */
    void (*join)(struct dti_replica *self, uint32_t seq, uint32_t round, const struct dti_arrival *arrival);

    /* Data for `join`. */
    void *context;
};

/* Called on the replica's own thread. On DITTO_OK, every announcement and every first mailbox of meeting *seq
 * can be read until the replica enters its next meeting. Errors: DIVERGED, TIMED_OUT, FORKED, and the error
 * of a run that was stopped (PEER_STOPPED). After FORKED this replica has no peers. After the other errors
 * the run is stopping, and no peer accesses the buffers of this replica any more. */
ditto_status dti_meet(struct dti_replica *self, const struct dti_arrival *arrival,
                      struct dti_deadline *deadline, uint32_t *seq);

/* A dti_is_missing for meetings. Any thread. */
bool dti_has_not_arrived(const struct dti_sync *sync, uint32_t replica, uint64_t seq);

/* Called on the replica's own thread after a meeting. Returns DIVERGED unless all calls are equal, member by
 * member. Returns INVALID if another replica gives the same destination as this replica, in an all-reduce, a
 * broadcast, a scatter, an all-to-all or a scan. Both stop the run. A meeting in rounds compares only
 * digests, which collide once in 2^32 calls. That is too often for a replica that is about to touch the
 * buffers of others. */
ditto_status dti_meeting_compare(struct dti_replica *self, uint32_t seq);

#endif
