/* src/sync/algorithms/flow.h - what a collective moves from where to where, once everyone's addresses are known.
 *
 * The data of every pattern is a row of *segments*, each a range of elements with a source (one replica, or all, combined) and a
 * destination (one replica, or all). Segments in a row are one index space, which is divided into equal parts of whole lines.
 * owners.c and exchange.c walk over it; neither knows the patterns. */
#ifndef DTI_FLOW_H
#define DTI_FLOW_H

#include "sync/meeting/meeting.h"
#include "sync/sync.h"

#define DTI_ALL UINT32_MAX

struct dti_flow {
    struct dti_replica *self;
    struct dti_sync *sync;
    struct dti_replica_state *me;
    struct dti_workspace *workspace; /* of the thread that works: the leader's, or a helper's */
    const struct dti_call *call;     /* this replica's own */
    const struct dti_target *target; /* NULL: the callers' buffers */
    uint32_t seq;                    /* of the meeting whose cards tell the addresses, */
    bool from_mailboxes;             /* or whose slots hold the sources, */
    size_t payload_bytes;            /* so many of each replica; not used where parts differ */
    uint64_t
        pending_number; /* or, of a started operation, its number: its posts tell them (pending.h); 0: none */
    bool streams;       /* results go past the caches */
    struct dti_reduction reduction; /* of the present segment */
};

struct dti_segment {
    size_t index, count; /* elements */
    uint32_t from, to;   /* a replica or DTI_ALL */
    size_t src_first,
        dst_first;         /* element of the source's and the destination's buffer that it begins with */
    size_t mailbox_offset; /* before it in a slot's payload */
};

/* How the call's elements are combined, if they are all of one dtype; a list's reduction changes with its segments. */
struct dti_reduction dti_flow_reduction(const struct dti_sync *sync, const struct dti_call *call);
bool dti_flow_is_combined(const struct dti_call *call); /* else moved */

/* The caller's own function of a call: its `more`. */
struct dti_combine_call {
    ditto_combine_fn combine;
    void *user;
};

/* Stand around a call of a function of the user's, which may take any time. While this replica is outside
 * (access.h), peers that give up waiting can leave, and take their buffers with them. dti_flow_resume_access
 * returns false if the run was stopped meanwhile. Then no peer's buffer may be touched any more, and the
 * flow's reduction has failed. */
void dti_flow_suspend_access(struct dti_flow *flow);
bool dti_flow_resume_access(struct dti_flow *flow);

/* The first segment, then one after the other; false: there is none (any more). Sets the flow's reduction. */
bool dti_flow_begin(struct dti_flow *flow, struct dti_segment *segment);
bool dti_flow_next(struct dti_flow *flow, struct dti_segment *segment);
/* Lines' worth of elements: indices are divided at multiples of this. */
static inline size_t dti_flow_grain(const struct dti_flow *flow)
{
    return flow->reduction.element_bytes < DTI_CACHE_LINE ? DTI_CACHE_LINE / flow->reduction.element_bytes
                                                          : 1;
}
/* Of a list's item in a slot's payload: items begin at multiples of 16. */
static inline size_t dti_item_bytes(const ditto_list_item *item)
{
    return (item->count * ditto_dtype_bytes(item->dtype) + 15) / 16 * 16;
}
/* A segment's grains, and those of all segments. */
size_t dti_flow_grains(const struct dti_flow *flow, const struct dti_segment *segment);
size_t dti_flow_all_grains(const struct dti_flow *flow);
/* What grains [from, to) of all have of a segment that begins at grain `base` < to; false: nothing. */
bool dti_flow_cut(const struct dti_flow *flow, const struct dti_segment *segment, size_t base, size_t from,
                  size_t to, size_t *first, size_t *count);

/* Addresses of the segment's first element. */
const char *dti_flow_source(const struct dti_flow *flow, const struct dti_segment *segment, uint32_t replica);
/* Those destinations of the segment that are near replicas [first, end), into flow->desk->destination; how many, and how many of
 * them are in another group than this replica. */
uint32_t dti_flow_destinations(struct dti_flow *flow, const struct dti_segment *segment, uint32_t first,
                               uint32_t end, uint32_t *far);
/* The same for sources, into flow->desk->source. */
uint32_t dti_flow_sources(struct dti_flow *flow, const struct dti_segment *segment, uint32_t first,
                          uint32_t end, uint32_t *far);
/* Elements from `out` to every destination, at element `first` of the segment; the one where they lie already is left out. */
void dti_flow_write(struct dti_flow *flow, const void *elements, size_t first, size_t count,
                    uint32_t destinations, uint32_t far);

/* -- the ways to walk; the caller is inside (access.h) -- */

/* Replicas [first, end), of which this is one, divide all indices; each writes its own ones to all destinations near them.
 * Errors: what the caller's own function returned. */
ditto_status dti_flow_flat(struct dti_flow *flow, uint32_t first, uint32_t end);
/* The same for grains [from, to) alone, whoever's they are. */
void dti_flow_range(struct dti_flow *flow, size_t from, size_t to, uint32_t first, uint32_t end);
/* All of it, by this replica alone: for what is small. */
void dti_flow_whole(struct dti_flow *flow, uint32_t first, uint32_t end);
/* Groups combine, swap and write: see exchange.h. Errors: PEER_STOPPED, DIVERGED (the run is stopping), TIMED_OUT, or what
 * the caller's own function returned. */
ditto_status dti_flow_exchange(struct dti_flow *flow, uint32_t timeout_ms);

#endif
