/* src/sync/algorithms/flow.h - what a collective moves, and from where to where, once all buffer addresses
 * are known.
 *
 * The data of a call is a row of *segments*. A segment is a range of elements with a source (one replica, or
 * all replicas combined) and a destination (one replica, or all). The segments of a row form one index space,
 * which is divided into equal parts of whole cache lines. owners.c and exchange.c walk over the segments.
 * owners.c distinguishes all-reduce and all-to-all and gives scans to scan.c, and exchange.c distinguishes
 * reduce-scatter. */
#ifndef DTI_FLOW_H
#define DTI_FLOW_H

#include "sync/algorithms/target.h"
#include "sync/meeting/sync_state.h"

/* As the source or destination of a segment, this means all replicas. */
#define DTI_ALL UINT32_MAX

struct dti_flow {
    struct dti_replica *self;
    struct dti_sync *sync;
    struct dti_replica_state *me;

    /* Belongs to the thread that executes the flow, which is the leader or a helper. */
    struct dti_workspace *workspace;

    /* The call of this replica. */
    const struct dti_call *call;

    /* NULL if results go to the callers' buffers. */
    const struct dti_target *target;

    /* The meeting whose announcements hold the buffer addresses. */
    uint32_t seq;

    /* True if the sources are payloads, and not the callers' buffers. The payloads are in the mailboxes of
     * meeting seq or, for a started operation, in the ring of pending operations. */
    bool from_mailboxes;

    /* The payload of this replica, which is not read from its mailbox (see in_mailboxes.c). */
    const void *own_payload;

    /* The number of bytes of each payload, which decides where it is stored (dti_mailbox_payload). It is not
     * used for an all-gather, whose parts may differ in size. */
    size_t payload_bytes;

    /* The number of a started operation, or 0. The announcements of a started operation are in the ring of
     * pending operations (pending.h), and not in a meeting. */
    uint64_t pending_number;

    /* True if results may be written with non-temporal stores. */
    bool streams;

    /* True if a destination that is also a source, as in a call in place, is fetched for writing before it is
     * read. On some processors a line that another core has written, and that is read first, is transferred a
     * second time when it is written. */
    bool fetches;

    /* How elements of the present segment are combined. */
    struct dti_reduction reduction;
};

struct dti_segment {
    size_t index;
    size_t count;  /* elements */
    uint32_t from; /* a replica, or DTI_ALL */
    uint32_t to;   /* a replica, or DTI_ALL */

    /* The element of the source's and of the destination's buffer at which the segment begins. */
    size_t src_first;
    size_t dst_first;

    /* The byte of a mailbox's payload at which the item of the segment begins. */
    size_t mailbox_offset;
};

/* Which replicas a segment comes from, or goes to. */
enum dti_segment_end {
    DTI_END_EVERY, /* all of them. As sources they are combined. */
    DTI_END_ROOT,
    DTI_END_EACH, /* replica i for segment i */

    /* Each replica has a row of segments, one from each replica. */
    DTI_END_EACH_ROW,
};

/* Describes the segments of a pattern. There is a segment for each replica if it comes from each of them, or
 * goes to each, and otherwise one. A call that has items has a segment for each item instead. */
struct dti_flow_shape {
    enum dti_segment_end from, to;

    /* cuts_src is true if each segment follows the earlier ones in the buffer of the source, and cuts_dst if
     * it follows them in the buffer of the destination. Otherwise each begins at the start of the buffer. */
    bool cuts_src, cuts_dst;
};
extern const struct dti_flow_shape dti_flow_shapes[DTI_NUM_PATTERNS];

static inline const struct dti_flow_shape *dti_flow_shape(const struct dti_call *call)
{
    return &dti_flow_shapes[call->pattern];
}

/* Returns how the elements of the call are combined, if they all have one dtype. If the call has items, every
 * segment sets its own reduction. */
struct dti_reduction dti_flow_reduction(const struct dti_sync *sync, const struct dti_call *call);

/* True if elements are combined, false if they are only moved. */
bool dti_flow_is_combined(const struct dti_call *call);

/* The user's own function that combines. The call's `more` points to it. */
struct dti_combine_call {
    ditto_combine_fn combine;
    void *user;
};

/* Called before and after a function of the user's, which may take any time. In between this replica has no
 * access to other replicas' buffers (access.h), so peers that give up waiting can leave and reuse their
 * buffers. dti_flow_resume_access returns false if the run was stopped meanwhile. No buffer of a peer may be
 * touched then, and the flow's reduction has failed. */
void dti_flow_suspend_access(struct dti_flow *flow);
bool dti_flow_resume_access(struct dti_flow *flow);

/* Set the first segment, and the next one. They return false if there is no such segment. If the call has
 * items, they also set the reduction of the flow to that of the segment. */
bool dti_flow_begin(struct dti_flow *flow, struct dti_segment *segment);
bool dti_flow_next(struct dti_flow *flow, struct dti_segment *segment);

/* As dti_flow_begin, but may set a later segment, if grain `grain` of the whole row is not in those before
 * it. *base is the number of grains in them. */
bool dti_flow_begin_near(struct dti_flow *flow, struct dti_segment *segment, size_t grain, size_t *base);

/* A grain is the number of elements in a cache line, at least 1. Indices are divided at multiples of a
 * grain. */
static inline size_t dti_flow_grain(const struct dti_flow *flow)
{
    return flow->reduction.element_bytes < DTI_CACHE_LINE ? DTI_CACHE_LINE / flow->reduction.element_bytes
                                                          : 1;
}

/* Returns the number of bytes that an item of a list takes in a mailbox's payload. Items begin at multiples
 * of 16. */
static inline size_t dti_item_bytes(const ditto_list_item *item)
{
    return (item->count * dti_element_bytes(item->dtype) + 15) / 16 * 16;
}

/* Returns the number of grains of an item, whose elements have a power of two of bytes. */
static inline size_t dti_item_grains(const ditto_list_item *item)
{
    return (item->count * dti_element_bytes(item->dtype) + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE;
}

/* Sets the segment of an item of the call, and the reduction of the flow. The item's place in a mailbox is
 * not set. */
void dti_flow_item(struct dti_flow *flow, struct dti_segment *segment, size_t item);

/* Return the number of grains of a segment, and of all segments. */
size_t dti_flow_grains(const struct dti_flow *flow, const struct dti_segment *segment);
size_t dti_flow_all_grains(const struct dti_flow *flow);

/* Finds which elements of a segment belong to the grains [from, to) of the whole row. The segment begins at
 * grain `base` < to. Returns false if there are none. */
bool dti_flow_cut(const struct dti_flow *flow, const struct dti_segment *segment, size_t base, size_t from,
                  size_t to, size_t *first, size_t *count);

/* Return the address of the segment's first element in the source and in the destination of a replica. */
const char *dti_flow_source(const struct dti_flow *flow, const struct dti_segment *segment, uint32_t replica);
char *dti_flow_destination(const struct dti_flow *flow, const struct dti_segment *segment, uint32_t replica);

/* Stores in flow->workspace->destination the addresses of those of the segment's destinations that belong to
 * replicas [first, end). Returns their number, and in *far how many of them are in another group than this
 * replica. */
uint32_t dti_flow_destinations(struct dti_flow *flow, const struct dti_segment *segment, uint32_t first,
                               uint32_t end, uint32_t *far);

/* The same for sources, in flow->workspace->source. If the segment has one source, it is stored whichever
 * replica it belongs to. */
uint32_t dti_flow_sources(struct dti_flow *flow, const struct dti_segment *segment, uint32_t first,
                          uint32_t end, uint32_t *far);

/* Copies elements to every destination, beginning at element `first` of the segment. Skips a destination if
 * the elements are already there. */
void dti_flow_write(struct dti_flow *flow, const void *elements, size_t first, size_t count,
                    uint32_t destinations, uint32_t far);

/* -- Walks over a flow. The caller has access to other replicas' buffers (access.h) -- */

/* Replicas [group_first, group_end), of which this is one, divide all indices. Each writes its own part to
 * all destinations that belong to them. Returns DITTO_OK, the error of the user's own function, or the error
 * of the run if the run was stopped around a call of the user's function. */
ditto_status dti_flow_flat(struct dti_flow *flow, uint32_t group_first, uint32_t group_end);

/* The same for the grains [from, to), whichever replica they belong to. The error is in the flow's
 * reduction. */
void dti_flow_range(struct dti_flow *flow, size_t from, size_t to, uint32_t group_first, uint32_t group_end);

/* Processes all indices on this replica alone. Used for small calls. */
void dti_flow_whole(struct dti_flow *flow, uint32_t group_first, uint32_t group_end);

/* Scans elements [first, end) of the call's only segment, and writes them to those destinations that belong
 * to replicas [group_first, group_end). The error is in the flow's reduction. */
void dti_flow_scan(struct dti_flow *flow, const struct dti_segment *segment, uint32_t group_first,
                   uint32_t group_end, size_t first, size_t end);

/* Groups combine, exchange and write (exchange.h). Fails with TIMED_OUT or the error of the stopped run, with
 * FORKED, or with the error of the user's own function. */
ditto_status dti_flow_exchange(struct dti_flow *flow, uint32_t timeout_ms);

#endif
