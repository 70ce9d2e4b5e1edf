/* src/sync/meeting/pending_ring.h - the ring in which a replica announces the operations that it starts. The
 * invariants are those of pending/pending.h. */
#ifndef DTI_PENDING_RING_H
#define DTI_PENDING_RING_H

#include <ditto/pending.h>

#include "sync/meeting/sync_state.h"

/* An entry of a replica's ring. */
struct dti_pending_operation {
    /* k << 32 | digest. Of k only the lower half is kept, here and in the other words. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t word;
    unsigned char inline_payload[DTI_INLINE_PAYLOAD_BYTES];
    alignas(DTI_CACHE_LINE_PAIR) struct dti_call call;

    /* For DTI_PATTERN_TARGET, and otherwise NULL. Each replica works with its own. */
    const struct dti_target *target;

    /* The number of bytes that a replica contributes (dti_call_size). */
    size_t bytes;

    /* True if the replicas put these bytes into their payloads. */
    bool small;

    /* The text of call.label, if the operation has a label. */
    char label[DTI_LABEL_BYTES];

    /* For this replica's share: k << 32 | next piece. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t claim;

    /* For this replica's share: k << 32 | number of pieces that are done. */
    _Atomic uint64_t done;
};

struct dti_pending_ring {
    /* The last operation that this replica has consumed. Only this replica writes it. Others read it when
     * they need a free entry, about once per length of the ring. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t consumed;

    /* All replicas have consumed at least this operation. This member and those up to `operation` are plain,
     * because only this replica uses them. */
    alignas(DTI_CACHE_LINE_PAIR) uint64_t known_consumed;

    /* All replicas have announced at least this operation, and the announcements are equal. */
    uint64_t ready;

    /* The limit of the present wait, or NULL. */
    const struct dti_deadline *deadline;

    /* The number of entries of `open` that hold an operation. */
    uint32_t num_open;

    /* The numbers of the operations that have not been waited for, and otherwise 0. */
    uint64_t open[DITTO_MAX_PENDING];
    struct dti_pending_operation operation[DITTO_MAX_PENDING];
};

static inline struct dti_pending_operation *dti_pending_operation_of(const struct dti_sync *sync,
                                                                     uint32_t replica, uint64_t number)
{
    return &sync->state[replica].pending->operation[number % DITTO_MAX_PENDING];
}
static inline unsigned char *dti_pending_payload(const struct dti_sync *sync, uint32_t replica,
                                                 uint64_t number, size_t bytes)
{
    if (bytes <= DTI_INLINE_PAYLOAD_BYTES)
        return dti_pending_operation_of(sync, replica, number)->inline_payload;
    return sync->state[replica].payloads + number % DITTO_MAX_PENDING * (size_t)DTI_PAYLOAD_BYTES;
}

/* -- The replica's own thread -- */

/* Works on the operations that are ready, of the team and of all groups, and consumes those that are
 * complete, without waiting. It is called in all waits of this module in which the replica has no access to
 * other replicas' buffers (access.h). Over several hosts the first replica may wait for other hosts in it
 * (hosts/started.h). pending/pending.c has the function. */
void dti_pending_advance(struct dti_replica *self);
static inline void dti_pending_help(struct dti_replica *self)
{
    if (__builtin_expect(dti_reported_state(self)->unconsumed != 0, 0))
        dti_pending_advance(self);
}

#endif
