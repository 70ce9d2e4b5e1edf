/* src/sync/pending/pending.h - operations that are started now and waited for later.
 *
 * Each replica owns a ring of posts. Operation k of the team is the k-th that every replica starts; its post is in place k % the
 * ring's length. When all have posted k, it is ready. A small one each replica combines for itself from the posts' payloads. The
 * indices of a larger one are divided into a share for each replica, a share into pieces; whoever waits claims pieces, first of
 * its own share, then of the others', so that a replica that computes meanwhile holds nobody up. A replica *consumes* operations
 * in order: k, when its own result is there.
 *
 * Invariants  I1  a post is written by its owner only, for k not before everyone has consumed k - length.
 *             I2  a piece is claimed once: claim is (k, next piece), changed by compare-and-swap alone. Only who is inside
 *                 claims, and its own k is not consumed then, so that k in the claim is a check, not what holds the rest up.
 *             I3  k is consumed only when all pieces are done; so when a buffer is its user's again, nobody is at it.
 * Edges       P0 -> P1  a post, and all its owner did before -> everyone who sees its word
 *             W0 -> W1  a piece's results -> everyone who sees it counted in done
 *             U0 -> U1  a replica's last look at posts of k -> their owners who see k consumed
 * Stopping    who works on pieces is inside (access.h); who leaves with operations open stops the run and waits for those.
 * Model       tests/model/pending.pml */
#ifndef DTI_PENDING_H
#define DTI_PENDING_H

#include <ditto/pending.h>

#include "sync/sync_state.h"

struct dti_pending_operation {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t
        word; /* k << 32 | digest; of k the lower half, here and below */
    unsigned char inline_payload[DTI_INLINE_PAYLOAD_BYTES];
    alignas(DTI_CACHE_LINE_PAIR) struct dti_call call;
    size_t bytes; /* that this replica brings */
    bool small;   /* they are in the payload */
    uint32_t digest;
    /* of this replica's share */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t claim; /* k << 32 | next piece */
    _Atomic uint64_t done;                               /* k << 32 | pieces that are done */
};

struct dti_pending_ring {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t
        consumed; /* written by its replica; others look at it once in a ring's length */
    alignas(DTI_CACHE_LINE_PAIR) uint64_t
        known_consumed; /* by all, at least; plain, as the next two: its replica's own */
    uint64_t ready;     /* posted by all, at least, and compared */
    uint32_t opened;    /* entries of open that are not waited for */
    struct {
        uint64_t number; /* 0: waited for */
        const char *name;
    } open[DITTO_MAX_PENDING];
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

static inline struct dti_replica_state *dti_replica_state_of(const struct dti_replica *self)
{
    return &self->sync->state[self->id];
}

/* A started operation's number for messages, which count within the run. */
static inline uint64_t dti_number_in_run(const struct dti_replica *self, uint64_t number)
{
    return number - dti_replica_state_of(self)->started_before;
}

static inline bool dti_has_started(const struct dti_sync *sync, uint32_t replica, uint64_t number)
{
    const struct dti_pending_operation *operation = dti_pending_operation_of(sync, replica, number);
    uint64_t word = atomic_load_explicit(&operation->word, memory_order_acquire); /* P1 */
    return word >> 32 == (uint32_t)number;
}
bool dti_has_not_started(const struct dti_sync *sync, uint32_t replica,
                         uint64_t number); /* for messages (failure.h) */
/* What a replica posted is what this one posted. */
bool dti_pending_is_same(const struct dti_replica *self, uint32_t replica, uint64_t number);

/* -- The replica's own thread -- */
ditto_status dti_pending_make(struct dti_replica *self,
                              struct dti_sync *sync); /* when the team is made; NO_MEMORY */
/* Posts; *out is the operation's number. RANGE: too many are open. Else as a meeting. */
ditto_status dti_pending_start(struct dti_replica *self, const struct dti_call *call,
                               struct dti_deadline *deadline, uint64_t *out);
/* Until it is consumed; works meanwhile. deadline NULL: does not wait, and gives DITTO_PENDING instead. */
ditto_status dti_pending_wait(struct dti_replica *self, uint64_t number, struct dti_deadline *deadline);
/* Consumes what it can, works on what it can, waits for nobody. Called in every wait outside (access.h). */
void dti_pending_advance(struct dti_replica *self);
static inline void dti_pending_help(struct dti_replica *self)
{
    const struct dti_replica_state *me = dti_replica_state_of(self);
    if (__builtin_expect(me->started != me->consumed, 0))
        dti_pending_advance(self);
}

/* How many operations it has started and not waited for; *name is the oldest's. */
uint32_t dti_pending_open(const struct dti_replica *self, const char **name, uint64_t *number);

/* `other` waits for this replica in a meeting that comes before what this one waits for: it has started less. */
bool dti_is_ahead_in_meeting(const struct dti_replica *self, uint32_t other);
/* None of them will be waited for: stops the run with the thread's error record; gives `status` when nobody is at their buffers. */
ditto_status dti_pending_abandon(struct dti_replica *self, ditto_status status);

/* -- All replicas are parked -- */
void dti_pending_renew(struct dti_replica_state *state);

#endif
