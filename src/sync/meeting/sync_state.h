/* src/sync/meeting/sync_state.h - the state of a team's collectives, both per replica and shared. */
#ifndef DTI_SYNC_STATE_H
#define DTI_SYNC_STATE_H

#include "replicas/team/replica.h"
#include "sync/kernels/reduction.h"
#include "sync/meeting/call.h"
#include "sync/plans/groups.h"
#include "sync/plans/tuning.h"

/* The room for the words about a group in messages. */
#define DTI_GROUP_TEXT_BYTES 96

/* Payload bytes that fit into the cache line of the word. */
#define DTI_INLINE_PAYLOAD_BYTES 56

/* Capacity of the payload of a mailbox. Which messages use it depends on the tuning. */
#define DTI_PAYLOAD_BYTES 4096

/* A replica's mailbox of one round of a meeting. The word contains a digest of the call, so that peers
 * compare calls without reading a second cache line, and announcing a call takes a single store. Each store
 * to the line may have to take the line back from the peers that watch it. */
struct dti_mailbox {
    /* Lower half of the meeting's number << 32 | digest. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t word;

    unsigned char inline_payload[DTI_INLINE_PAYLOAD_BYTES];
    alignas(DTI_CACHE_LINE_PAIR) unsigned char payload[DTI_PAYLOAD_BYTES];
};

/* Returns where a payload of `bytes` bytes is stored. It may be in the line of the word if the call has one
 * dtype, because 8 bytes of alignment are enough for every dtype. */
static inline unsigned char *dti_mailbox_payload(struct dti_mailbox *mailbox, const struct dti_call *call,
                                                 size_t bytes)
{
    return bytes <= DTI_INLINE_PAYLOAD_BYTES && call->dtype != 0 ? mailbox->inline_payload : mailbox->payload;
}

/* Returns the number of bytes that `parts` partial results take in a mailbox. Each result has `bytes` bytes
 * and begins at a cache line. */
static inline size_t dti_partials_bytes(size_t bytes, uint32_t parts)
{
    return (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE * parts;
}

/* The full call of a replica. Peers read it to compare calls, for buffer addresses and for messages. */
struct dti_announcement {
    alignas(DTI_CACHE_LINE_PAIR) struct dti_call call;
};
_Static_assert(sizeof(struct dti_announcement) == DTI_CACHE_LINE_PAIR, "a call fits one pair of lines");

/* One round of a plan as one replica sees it. */
struct dti_round_view {
    /* The number of sibling blocks, and which of them contains the replica. */
    uint32_t count;
    uint32_t own;

    /* [count] The id of the replica that represents each block. NULL if there is a single round, in which
     * block b is replica b. */
    const uint32_t *representative;

    /* [count + 1] Block b consists of the replicas start[b] to start[b + 1] - 1. */
    const uint32_t *start;
};

struct dti_rounds_view {
    uint32_t rounds;
    struct dti_round_view view[DTI_MOST_ROUNDS];
};

static inline uint32_t dti_round_representative(const struct dti_round_view *view, uint32_t block)
{
    return view->representative != NULL ? view->representative[block] : block;
}

/* Counts what the algorithms did, so that tests can compare it with the plan. A hop is a wait for a word that
 * another thread writes. "Far" means another group. The counters are plain, because only their own thread
 * writes them. They are read when no run is active. */
struct dti_counters {
    uint64_t hops_near;
    uint64_t hops_far;
    uint64_t read_near; /* bytes, as in the next three */
    uint64_t read_far;
    uint64_t written_near;
    uint64_t written_far;
};

/* The buffers that a thread needs to execute a flow. Each replica's leader has a workspace, and so has each
 * helper. */
struct dti_workspace {
    const void **source; /* [n], for one reduction */
    void **destination;  /* [n] */

    /* DTI_WORKSPACE_BYTES of scratch memory. This is DTI_MOST_WIDENING times what one tile needs, because
     * small messages are widened as a whole. */
    void *scratch;

    struct dti_counters counters;
};

#define DTI_WORKSPACE_BYTES (DTI_MOST_WIDENING * (DTI_SCRATCH_BYTES + DTI_TILE_BYTES))
_Static_assert(DTI_PAYLOAD_BYTES <= DTI_TILE_BYTES, "a workspace must hold the accumulators of a payload");

/* Two chunks of a message. */
#define DTI_STAGE_BYTES ((size_t)256 << 10)

struct dti_pending_ring;     /* pending_ring.h */
struct dti_exchange_buffers; /* exchange.c */
struct dti_helper_work;      /* helper_work.c */
struct dti_known_calls;      /* known_calls.h */
struct dti_started;          /* hosts/started.h */

/* Hashes of a list and its op: of everything that is checked, and of what must be equal on all replicas. */
struct dti_checked_list {
    uint64_t identity;
    uint64_t hash;
};

/* Hashes of the parts of the last exchanges that passed all checks (api_exchange.c). Equal ones are not
 * checked again. A program that exchanges two buffers in turn needs two of them. */
enum { DTI_CHECKED_EXCHANGES = 4 };
struct dti_checked_exchanges {
    uint64_t identity[DTI_CHECKED_EXCHANGES];
    uint32_t next; /* to be replaced */
};

/* Compares the lower halves of two numbers of meetings, or of operations, that are less than 2^31 apart. */
static inline bool dti_number_is_before(uint64_t a, uint64_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b) < 0;
}

/* Returns true if the wait with this number, of a meeting or of a started operation, lasts until `replica`
 * comes, which has not happened. Once it has returned false, it never returns true again. */
typedef bool dti_is_missing(const struct dti_sync *sync, uint32_t replica, uint64_t number);

/* What a replica waits for, while it waits for other replicas of `sync`. Peers read it (circle.h). */
struct dti_standstill {
    /* Odd while the replica waits. The other members belong to the wait with this version. */
    _Atomic uint64_t version;

    _Atomic(const struct dti_sync *) sync;
    _Atomic(dti_is_missing *) is_missing;
    _Atomic uint64_t number;
};

/* The state of one replica. */
struct dti_replica_state {
    /* The number of the last meeting that the replica entered. Mailboxes hold the lower half of it. This
     * member and the plain members below are not atomic, because only the replica itself uses them. */
    alignas(DTI_CACHE_LINE_PAIR) uint64_t seq;

    /* The state that has what messages say about the replica, whose collectives are counted over all its
     * groups. It is that of the whole team. Constant. */
    struct dti_replica_state *reported;

    /* The public name of the collective in which a function of the user's may be running now, or NULL. Such a
     * function may start no other collective. Like the members below that messages show, it is used in the
     * state of the whole team only (dti_reported_state). */
    const char *calling;

    uint64_t started;        /* operations that the replica has started (pending.h) */
    uint64_t consumed;       /* those of them that are consumed */
    uint64_t started_before; /* `started` when the function of this run began */

    /* The number of operations that the replica has started and not consumed, in all its groups. Used in the
     * state of the whole team only. */
    uint32_t unconsumed;

    /* The number of steps that the function of this run has started in parts and not finished. */
    uint32_t open_steps;

    /* In the state of the whole team, the first of the replica's copies in groups (replica.h) that have
     * started operations in this run. In the state of a group, the next one. */
    struct dti_replica *next_started;
    struct dti_workspace workspace;

    /* The last run whose function the replica began. All accesses to this member and to the next three are
     * relaxed, because they are used in messages only. The label and its version form a seqlock, whose orders
     * are in failure.c. */
    _Atomic uint64_t run;

    /* The number of the last collective of that run, and of the last one that the replica finished. */
    _Atomic uint32_t number;
    _Atomic uint32_t finished;

    /* The name of the last collective of that run, or NULL. */
    _Atomic(const char *) name;

    /* The last collective that has a label, or 0, and that label. */
    _Atomic uint64_t labelled;
    _Atomic uint64_t label[DTI_LABEL_BYTES / sizeof(uint64_t)];

    /* Where the replica waits, if that takes long and the strategy has groups. */
    struct dti_standstill standstill;

    /* The last list that passed all checks (call_arguments.c). An equal one is not checked again. */
    struct dti_checked_list checked_list;

    struct dti_checked_exchanges checked_exchanges;

    /* 1 while the replica may use other replicas' buffers (access.h). */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t accessing;

    /* [2 * most_rounds] The mailboxes, announcements, buffers, rings and payloads below are allocated in the
     * replica's own arena. */
    alignas(DTI_CACHE_LINE_PAIR) struct dti_mailbox *mailbox;

    struct dti_announcement *announcement; /* [2] */
    struct dti_known_calls *known_calls;

    /* [DTI_PAYLOAD_BYTES] The replica's own payload (in_mailboxes.c, neighbours.c), and the partial results
     * that it has passed on in the last round of a small all-reduce (in_mailboxes.c). `partials` is NULL if
     * every plan has one round. */
    unsigned char *own_payload;
    unsigned char *partials;

    /* [DTI_STAGE_BYTES] NULL unless there are two replicas, on one host and PUs of their own (staged.c). */
    unsigned char *stage;
    struct dti_rounds_view route[DITTO_IMPLEMENTATION_HIERARCHICAL + 1];

    /* [exchange ranges that the replica may own] NULL if there is one group. */
    struct dti_exchange_buffers *exchange_buffers;

    /* Operations that the replica has started, and their payloads: [DITTO_MAX_PENDING][DTI_PAYLOAD_BYTES]. */
    struct dti_pending_ring *pending;
    unsigned char *payloads;

    /* Work that the replica's helpers may join. NULL if it has no helpers. */
    struct dti_helper_work *helper_work;
};

/* Called when a function of a run begins. Collectives and started operations are numbered from 1 in each run.
 * All operations are relaxed, because the numbers are used in messages only and order no other data. */
static inline void dti_number_run(struct dti_replica_state *me, uint64_t run)
{
    atomic_store_explicit(&me->run, run, memory_order_relaxed);
    me->started_before = me->started;
    me->next_started = NULL;
    me->open_steps = 0;
    if (atomic_load_explicit(&me->number, memory_order_relaxed) == 0)
        return;
    atomic_store_explicit(&me->name, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&me->number, 0, memory_order_relaxed);
}

/* Stores the label of the collective with this number, for messages about this replica. failure.c has the
 * function. */
void dti_label_call(struct dti_replica_state *me, uint32_t number, const char *label);

/* Called when a collective begins. The number, the name and the label are for messages about this replica. */
static inline void dti_number_call(struct dti_replica_state *me, const struct dti_call *call)
{
    uint32_t number = atomic_load_explicit(&me->number, memory_order_relaxed) + 1;
    atomic_store_explicit(&me->number, number, memory_order_relaxed);
    atomic_store_explicit(&me->name, call->name, memory_order_relaxed);
    if (__builtin_expect(call->label != NULL, 0))
        dti_label_call(me, number, call->label);
}

static inline void dti_finish_call(struct dti_replica_state *me)
{
    atomic_store_explicit(&me->finished, atomic_load_explicit(&me->number, memory_order_relaxed),
                          memory_order_relaxed);
}

/* The replica is in its last collective again, in a function of the user's between two parts of a call. */
static inline void dti_reopen_call(struct dti_replica_state *me)
{
    atomic_store_explicit(&me->finished, atomic_load_explicit(&me->number, memory_order_relaxed) - 1,
                          memory_order_relaxed);
}

/* The groupings of a strategy (grouping.h). They change between runs only. */
struct dti_groupings {
    struct ditto_grouping **of_slot; /* [slots] NULL where one was destroyed */
    uint32_t slots;
    uint32_t count;
};

/* The state of the collectives of a team, or of a group of its replicas (src/sync/grouping). */
struct dti_sync {
    struct dti_team *team;

    /* [num_replicas] The replicas of the team, or their copies in the group (replica.h). */
    struct dti_replica *replica;

    /* The state of all replicas of the team in the same run. It is this one, unless this is that of a
     * group. */
    struct dti_sync *whole;

    uint32_t num_replicas;
    bool oversubscribed; /* replicas must share PUs */

    /* Of the strategy. All states of a team have the same. */
    struct dti_groupings *groupings;

    /* The states of the surrounding run and of a run inside this one, or NULL. Each level of runs has its own
     * state, so a run disturbs no other. */
    struct dti_sync *outer;
    struct dti_sync *inner;

    struct dti_replica_state *state; /* [n] */

    /* The two words of meetings by counter, which are the number of arrivals at the present meeting and the
     * last meeting that was released. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t arrived;
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t release;

    /* Over several hosts, 1 while a caller that only waits uses buffers of the replicas (access.h). */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t caller_accessing;

    /* In a meeting by counter, the result that the last replica to arrive has combined. All replicas read it
     * before they arrive again. This pointer and the members below are constant while the team runs. */
    alignas(DTI_CACHE_LINE_PAIR) unsigned char *result;

    dti_kernel_table *kernels;
    struct dti_machine_shape shape;
    struct dti_tree tree; /* over one value of each replica */
    struct dti_rounds rounds[DITTO_IMPLEMENTATION_HIERARCHICAL + 1];
    uint32_t most_rounds;

    /* The largest number of subtrees that a block passes on to the next round. 0 if there is one round. */
    uint32_t most_parts[DITTO_IMPLEMENTATION_HIERARCHICAL + 1];

    struct dti_groups groups;
    struct dti_tuning tuning;

    /* The other hosts of the strategy, and what operations that are started over hosts need
     * (hosts/started.h). NULL if there is one host. */
    struct dti_hosts *hosts;
    struct dti_started *started;

    /* The limit for started operations that corresponds to small_bytes of the tuning. The two limits differ,
     * because a started operation has no second meeting that sending the payload could save
     * (pending_start.c). */
    size_t small_started;

    ditto_reduce_options defaults; /* used where a call gives no value */

    /* Text for a debugger, with one line for each replica (api_tuning.c). */
    char *diagnosis;

    /* For messages: " in group 1 of \"rows\"", or "" if this is the state of a team. */
    char group_text[DTI_GROUP_TEXT_BYTES];
};

static inline struct dti_replica_state *dti_replica_state_of(const struct dti_replica *self)
{
    return &self->sync->state[self->index];
}

static inline struct dti_replica_state *dti_reported_state(const struct dti_replica *self)
{
    return dti_replica_state_of(self)->reported;
}

/* For messages: who makes the calls of a state. */
static inline const char *dti_participant(const struct dti_sync *sync)
{
    return sync == sync->whole ? "replica" : "member of a group";
}

/* Returns the id of the replica that has a rank, for messages. */
static inline uint32_t dti_id_of_rank(const struct dti_replica *self, uint32_t rank)
{
    return self->sync == self->sync->whole ? rank : dti_replica_peer(self, rank)->id;
}

static inline size_t dti_diagnosis_bytes(uint32_t replicas)
{
    return 128 + (128 + DTI_LABEL_BYTES) * (size_t)replicas;
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

/* Returns true if the replicas meet by counter, and false if they meet in rounds (meeting.h). The result is
 * equal on all replicas. A team that shares PUs meets by counter, unless the call requests an
 * implementation. */
static inline bool dti_meets_by_counter(const struct dti_sync *sync, const struct dti_call *call)
{
    return sync->oversubscribed && call->implementation == DITTO_IMPLEMENTATION_DEFAULT;
}

/* Returns zeroed memory in the replica's arena. If there is none, records NO_MEMORY and returns NULL. Must be
 * called on the replica's own thread. */
void *dti_allocate_zeroed(struct dti_replica *r, size_t bytes);

/* Allocates a workspace. Must be called on the replica's own thread. Fails with NO_MEMORY. */
ditto_status dti_workspace_make(struct dti_replica *r, struct dti_workspace *workspace);
/* Frees what dti_workspace_make has allocated, also if that has failed. Any thread, when the replica does not
 * use it. */
void dti_workspace_free(struct dti_replica *r, struct dti_workspace *workspace);

/* Calls refresh(word, number) for each word of the replica's buffers for exchanges (algorithms/exchange.c).
 * Must be called on the replica's own thread. */
void dti_exchange_buffers_refresh(const struct dti_replica *self, uint32_t number,
                                  void (*refresh)(_Atomic uint64_t *word, uint32_t number));

/* True if the two replicas are in different groups (groups.h). */
static inline bool dti_is_far(const struct dti_sync *sync, uint32_t a, uint32_t b)
{
    return sync->groups.of[a] != sync->groups.of[b];
}

#endif
