/* src/sync/sync_state.h - what a team's collectives keep: of each replica, and in common. */
#ifndef DTI_SYNC_STATE_H
#define DTI_SYNC_STATE_H

#include "sync/meeting/call.h"
#include "sync/plans/groups.h"
#include "sync/kernels/kernel.h"
#include "sync/plans/rounds.h"
#include "sync/plans/tuning.h"

#define DTI_INLINE_PAYLOAD_BYTES 56   /* of payload that ride in the word's own cache line */
#define DTI_PAYLOAD_BYTES        4096 /* room for payload in a slot; which messages use it is tuned */

/* A replica's line of one round. The word carries a digest of the call, so that comparing calls costs no second cache
 * line, and announcing one is a single store: peers watch that line, and each store to it may have to win it back from
 * them. */
struct dti_mailbox {
    alignas(
        DTI_CACHE_LINE_PAIR) _Atomic uint64_t word; /* lower half of the meeting's number << 32 | digest */
    unsigned char inline_payload[DTI_INLINE_PAYLOAD_BYTES];
    alignas(DTI_CACHE_LINE_PAIR) unsigned char payload[DTI_PAYLOAD_BYTES];
};
/* Of a call of one dtype, whose elements 8 bytes of alignment are enough for, the payload may ride with the word. */
static inline unsigned char *dti_mailbox_payload(struct dti_mailbox *mailbox, const struct dti_call *call,
                                                 size_t bytes)
{
    return bytes <= DTI_INLINE_PAYLOAD_BYTES && call->dtype != 0 ? mailbox->inline_payload : mailbox->payload;
}

/* Bytes of `parts` partial results in a slot. */
static inline size_t dti_partials_bytes(size_t bytes, uint32_t parts)
{
    return (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE * parts;
}

/* A call in full: read for buffers' addresses, and for messages. */
struct dti_announcement {
    alignas(DTI_CACHE_LINE_PAIR) struct dti_call call;
    uint32_t digest; /* of call */
};

/* One round of a plan as one replica sees it: blocks [0, count), which of them is its own, and who speaks for each. */
struct dti_round_view {
    uint32_t count, own;
    const uint32_t *representative; /* [count] ids; NULL: block b is replica b, of a single round */
    const uint32_t *start;          /* [count + 1] ids: block b is replicas start[b] .. start[b + 1] - 1 */
};
struct dti_rounds_view {
    uint32_t rounds;
    struct dti_round_view step[DTI_MOST_ROUNDS];
};
static inline uint32_t dti_round_representative(const struct dti_round_view *step, uint32_t block)
{
    return step->representative != NULL ? step->representative[block] : block;
}

/* What the engine did, to be compared with what the plan says. A hand-over: somebody else's word that was waited for.
 * Far: in another group. Plain, the replica's own; read when no run is going on. */
struct dti_counters {
    uint64_t hops_near, hops_far, read_near, read_far, written_near, written_far;
};

/* What a thread needs to work on a flow: a replica's leader has one, and each of its helpers. */
struct dti_workspace {
    const void **source; /* [n], for one reduction */
    void **destination;  /* [n] */
    void *
        scratch; /* DTI_SCRATCH_BYTES for a block, and two tiles, twice: small messages of halves are widened whole */
    struct dti_counters counters;
};
#define DTI_WORKSPACE_BYTES (2 * (DTI_SCRATCH_BYTES + DTI_TILE_BYTES)) /* of scratch */

struct dti_pending_ring;     /* pending.h */
struct dti_exchange_buffers; /* exchange.c */
struct dti_helper_work;      /* helper_work.c */

/* What one replica keeps. */
struct dti_replica_state {
    /* The number of the last meeting to which the replica went. Slots hold the lower half of it. Like the
     * members that follow, it is plain, because only the replica uses it. */
    alignas(DTI_CACHE_LINE_PAIR) uint64_t seq;
    uint64_t checked_list; /* addresses of the list that was last found to be in order (overlap.c) */
    /* The public name of the collective in which a function of the user's may be running now, or NULL. Such a
     * function may start no other collective. */
    const char *calling;
    uint64_t started,
        consumed;            /* operations that it has started, and those of them that are done (pending.h) */
    uint64_t started_before; /* `posted` when the replica's function of this run began */
    struct dti_workspace workspace;
    /* For messages, and therefore relaxed. The number of the last run whose function the replica began, and
     * of that run: the number of its last collective, the number of the last collective that it finished, and
     * the name of its last collective. */
    _Atomic uint64_t run;
    _Atomic uint32_t number, finished;
    _Atomic(const char *) name;
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t
        accessing; /* 1 while it may touch other replicas' buffers (access.h) */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_mailbox
        *mailbox;                          /* [2 * most_rounds], in its own arena, as all that follows */
    struct dti_announcement *announcement; /* [2] */
    struct dti_rounds_view route[DITTO_IMPLEMENTATION_HIERARCHICAL + 1];
    struct dti_exchange_buffers
        *exchange_buffers;            /* [lanes it may own] of the exchange between groups; NULL: one group */
    struct dti_pending_ring *pending; /* operations that it has started */
    unsigned char *payloads;          /* theirs: [DITTO_MAX_PENDING][DTI_PAYLOAD_BYTES] */
    struct dti_helper_work *helper_work; /* work that its helpers may join; NULL: it has none */
};

/* A function of a run begins. Collectives and started operations are numbered from 1 in each run. All
 * operations are relaxed: the numbers are for messages, and order no other data. */
static inline void dti_number_run(struct dti_replica_state *me, uint64_t run)
{
    atomic_store_explicit(&me->run, run, memory_order_relaxed);
    me->started_before = me->started;
    if (atomic_load_explicit(&me->number, memory_order_relaxed) == 0)
        return;
    atomic_store_explicit(&me->name, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&me->number, 0, memory_order_relaxed);
}

/* A collective begins: for messages about this replica. */
static inline void dti_number_call(struct dti_replica_state *me, const char *name)
{
    atomic_store_explicit(&me->number, atomic_load_explicit(&me->number, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&me->name, name, memory_order_relaxed);
}

static inline void dti_finish_call(struct dti_replica_state *me)
{
    atomic_store_explicit(&me->finished, atomic_load_explicit(&me->number, memory_order_relaxed),
                          memory_order_relaxed);
}

struct dti_sync {
    struct dti_team *team;
    struct dti_sync *outer,
        *inner; /* of runs inside runs: each has what it needs for itself, and disturbs no other */
    struct dti_replica_state *state; /* [n] */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t arrived;
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t release; /* the last meeting that was released (crowded) */
    /* constant while the team runs */
    alignas(DTI_CACHE_LINE_PAIR) unsigned char
        *result; /* what the last arrival combined: read by all before they arrive again */
    dti_kernel_table *kernels;
    struct dti_machine_shape shape;
    struct dti_rounds rounds[DITTO_IMPLEMENTATION_HIERARCHICAL + 1];
    uint32_t most_rounds;
    uint32_t most_parts[DITTO_IMPLEMENTATION_HIERARCHICAL +
                        1]; /* subtrees that a block passes on; 0: there is one round */
    struct dti_groups groups;
    struct dti_tuning tuning;
    size_t
        small_started; /* as tuning's small_bytes, of started operations: they have no second meeting to save (pending_start.c) */
    ditto_reduce_options defaults; /* of calls that do not say */
    char *diagnosis;               /* words for a debugger: a line for each replica (api_tuning.c) */
};
static inline size_t dti_diagnosis_bytes(uint32_t replicas)
{
    return 128 + 128 * (size_t)replicas;
}

static inline struct dti_mailbox *dti_mailbox_of(const struct dti_sync *sync, uint32_t replica, uint32_t seq,
                                                 uint32_t round)
{
    return &sync->state[replica].mailbox[(seq & 1) * sync->most_rounds + round];
}
static inline const struct dti_call *dti_call_of(const struct dti_sync *sync, uint32_t replica, uint32_t seq)
{
    return &sync->state[replica].announcement[seq & 1].call;
}
/* The replica's own thread: from its arena, zeroed, into *out, a pointer. NO_MEMORY. */
ditto_status dti_allocate(struct dti_replica *r, size_t bytes, void *out);
ditto_status dti_workspace_make(struct dti_replica *r, struct dti_workspace *workspace);

static inline bool dti_is_far(const struct dti_sync *sync, uint32_t a, uint32_t b)
{
    return sync->groups.of[a] != sync->groups.of[b];
}

#endif
