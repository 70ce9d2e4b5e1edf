/* src/sync/meeting.h - where replicas meet: each announces what it calls, nobody goes on before all have.
 *
 * A meeting has a sequence number e. Each replica owns two lines, one per parity of e, with its sequence word, its call
 * and, for small messages, its payload. There are two ways to wait, one per team, chosen when it is made:
 *   flat     everyone watches everyone's line. For replicas with PUs of their own.
 *   crowded  a shared counter; the last to arrive compares all calls, may combine the payloads, and releases the others.
 *            For replicas that share PUs: each has to be scheduled once, not once per peer.
 *
 * Invariants  I1  line[r][e % 2] is written by r only, and not before r has finished meeting e - 1.
 *             I2  nobody finishes e before all have arrived at e.
 *             I3  arrived counts this meeting's arrivals; it is 0 whenever release changes (crowded).
 * Edges       M0 -> M1  a replica's call, payload and all it did before -> each peer that sees its sequence word (flat)
 *             C0 -> C1  each arrival -> the last arrival: read-modify-writes of arrived form one release sequence
 *             C2 -> C3  the last arrival's release -> everyone's exit (crowded)
 * Therefore   what anyone wrote before a meeting, everyone sees after it; and two parities suffice without a second
 *             meeting: r writes line e + 2 after it finished e + 1 (I1), to which all came (I2), each having finished
 *             reading line e.
 * Stopping    waiters look at the stop word and for peers that have returned; either ends the wait with an error. In a
 *             stopped run replicas may disagree on the last meeting; its state is renewed before the next run.
 * Model       tests/model/meeting.pml */
#ifndef DTI_MEETING_H
#define DTI_MEETING_H

#include "replicas/replicas.h"
#include "sync/kernel.h"

/* What a replica calls. Compared between replicas, but for src and dst. */
struct dti_call {
    const char *name;   /* constant text, the public function's: "ditto_all_reduce" */
    const char *object; /* the variable's own name, or NULL; its address tells variables of one name apart */
    size_t count;
    uint8_t dtype, op; /* 0 where there is none */
    const void *src;   /* this replica's own */
    void *dst;
};

#define DTI_INLINE_BYTES 56   /* of payload that ride in the sequence word's own cache line */
#define DTI_SMALL_BYTES  4096 /* room for payload per line; which messages use it: all_reduce.c */

/* The sequence word carries a digest of the call, so that comparing calls costs no second cache line, and announcing
 * one is a single store: peers watch that line, and each store to it may have to win it back from them. */
struct dti_line {
    alignas(DTI_LINE_PAIR) _Atomic uint64_t word; /* sequence number << 32 | digest */
    unsigned char brief[DTI_INLINE_BYTES];
    alignas(DTI_LINE_PAIR) struct dti_call call; /* in full: read for buffers' addresses, and for messages */
    uint32_t digest;                             /* of call */
    alignas(DTI_LINE_PAIR) unsigned char payload[DTI_SMALL_BYTES];
};

/* What one replica keeps to itself. */
struct dti_attendee {
    alignas(DTI_LINE_PAIR) uint32_t seq; /* of the last meeting it went to; plain, its own */
    _Atomic uint32_t last_seq;           /* the same two for diagnosis by others, relaxed */
    _Atomic(const char *) last_name;
    alignas(DTI_LINE_PAIR) _Atomic uint32_t inside; /* 1 while it may touch other replicas' buffers (all_reduce.c) */
    struct dti_line *line;                          /* [2], in its own arena */
    const void **sources;                           /* [n], for one reduction */
    void *scratch;                                  /* DTI_SCRATCH_BYTES for a block, and one tile */
};

struct dti_sync {
    struct dti_team *team;
    struct dti_attendee *attendee; /* [n] */
    alignas(DTI_LINE_PAIR) _Atomic uint32_t arrived;
    alignas(DTI_LINE_PAIR) _Atomic uint32_t release;
    unsigned char *result[2]; /* what the last arrival combined, per parity */
    dti_kernel_table *kernels;
};

static inline const struct dti_line *dti_line_of(const struct dti_sync *sync, uint32_t replica, uint32_t seq)
{
    return &sync->attendee[replica].line[seq & 1];
}

/* The replica's own thread, after a meeting: DIVERGED unless all calls are equal, field by field. A digest may collide
 * once in 2^32; before anyone touches another one's buffer that is not good enough. */
ditto_status dti_meeting_compare(struct dti_replica *self, uint32_t seq);

/* The payload that a replica came with to a meeting. */
static inline const void *dti_line_payload(const struct dti_line *line, size_t bytes)
{
    return bytes <= DTI_INLINE_BYTES ? line->brief : line->payload;
}

/* The replica's own thread. `combine` (crowded only; may be NULL) is run by the last to arrive, before the release.
 * On DITTO_OK all lines of the returned *seq can be read until the replica enters its next meeting but one.
 * Errors: DIVERGED, TIMED_OUT, PEER_STOPPED; the run is stopping then. */
ditto_status dti_meet(struct dti_replica *self, const struct dti_call *call, const void *payload, size_t payload_bytes,
                      void (*combine)(struct dti_sync *sync, uint32_t seq), struct dti_deadline *deadline,
                      uint32_t *seq);

#endif
