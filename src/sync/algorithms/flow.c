/* src/sync/algorithms/flow.c - the segments and the addresses of every pattern. */
#include "sync/algorithms/flow.h"
#include "replicas/team/stopping.h"
#include "replicas/team/team.h"
#include "sync/meeting/access.h"
#include "sync/meeting/pending_ring.h"

#include <string.h>

/* -- the segments of each pattern -- */

DTI_KNOWS_PATTERNS(15);

const struct dti_flow_shape dti_flow_shapes[DTI_NUM_PATTERNS] = {
    [DTI_PATTERN_ALL_REDUCE] = { DTI_END_EVERY, DTI_END_EVERY, false, false },
    [DTI_PATTERN_LIST] = { DTI_END_EVERY, DTI_END_EVERY, false, false },
    [DTI_PATTERN_REDUCE] = { DTI_END_EVERY, DTI_END_ROOT, false, false },
    [DTI_PATTERN_BROADCAST] = { DTI_END_ROOT, DTI_END_EVERY, false, false },
    [DTI_PATTERN_REDUCE_SCATTER] = { DTI_END_EVERY, DTI_END_EACH, true, false },
    [DTI_PATTERN_ALL_GATHER] = { DTI_END_EACH, DTI_END_EVERY, false, true },
    [DTI_PATTERN_GATHER] = { DTI_END_EACH, DTI_END_ROOT, false, true },
    [DTI_PATTERN_SCATTER] = { DTI_END_ROOT, DTI_END_EACH, true, false },
    [DTI_PATTERN_ALL_TO_ALL] = { DTI_END_EACH, DTI_END_EACH_ROW, true, true },
    [DTI_PATTERN_TARGET] = { DTI_END_EVERY, DTI_END_EVERY, false, false },
    [DTI_PATTERN_SCAN] = { DTI_END_EVERY, DTI_END_EVERY, false, false },
    [DTI_PATTERN_SCAN_EXCLUSIVE] = { DTI_END_EVERY, DTI_END_EVERY, false, false },
};

bool dti_flow_is_combined(const struct dti_call *call)
{
    /* True if the values of replica 0 are used as they are. */
    bool first_only = call->pattern == DTI_PATTERN_TARGET && call->op == 0;
    return dti_flow_shape(call)->from == DTI_END_EVERY && !first_only;
}

/* Returns the reduction of a dtype and op over the replicas. */
static struct dti_reduction reduction_of(const struct dti_sync *sync, ditto_dtype dtype, ditto_op op)
{
    struct dti_reduction r = dti_reduction_of(sync->kernels, dtype, op);
    r.tree = sync->tree;
    return r;
}

struct dti_reduction dti_flow_reduction(const struct dti_sync *sync, const struct dti_call *call)
{
    if (dti_call_has_items(call))
        /* Each segment sets its own reduction, and its sizes replace these. */
        return (struct dti_reduction){ .element_bytes = 1, .accumulator_bytes = 1 };
    if (call->dtype != 0)
        return reduction_of(sync, (ditto_dtype)call->dtype, (ditto_op)call->op);
    const struct dti_combine_call *combine_call = call->more;
    return (struct dti_reduction){ .function = combine_call->combine,
                                   .user = combine_call->user,
                                   .element_bytes = call->element_bytes,
                                   .accumulator_bytes = call->element_bytes,
                                   .tree = sync->tree };
}

void dti_flow_suspend_access(struct dti_flow *flow)
{
    dti_access_end(flow->self);
}

bool dti_flow_resume_access(struct dti_flow *flow)
{
    if (dti_access_begin(flow->self))
        return true;
    flow->reduction.failed = dti_team_stop_status(flow->self->team);
    return false;
}

static size_t number_of_segments(const struct dti_flow *flow)
{
    const struct dti_call *call = flow->call;
    size_t n = flow->self->all_replicas;
    enum dti_segment_end from = dti_flow_shape(call)->from, to = dti_flow_shape(call)->to;
    return dti_call_has_items(call)                     ? call->count
           : to == DTI_END_EACH_ROW                     ? n * n
           : from == DTI_END_EACH || to == DTI_END_EACH ? n
                                                        : 1;
}

static uint32_t replica_at(const struct dti_flow *flow, enum dti_segment_end end, size_t index)
{
    uint32_t n = flow->self->all_replicas;
    return end == DTI_END_EVERY      ? DTI_ALL
           : end == DTI_END_ROOT     ? flow->call->root
           : end == DTI_END_EACH_ROW ? (uint32_t)(index / n)
                                     : (uint32_t)(index % n);
}

/* Sets the other members of a segment whose index and offsets are known. Returns false if there is no such
 * segment. */
static bool fill_in(struct dti_flow *flow, struct dti_segment *segment)
{
    const struct dti_call *call = flow->call;
    if (segment->index == number_of_segments(flow))
        return false;
    segment->count = dti_call_has_items(call) ? call->list[segment->index].count
                     : call->counts != NULL   ? call->counts[segment->index]
                                              : call->count;
    segment->from = dti_flow_is_combined(call) || dti_flow_shape(call)->from != DTI_END_EVERY
                        ? replica_at(flow, dti_flow_shape(call)->from, segment->index)
                        : call->root;
    segment->to = replica_at(flow, dti_flow_shape(call)->to, segment->index);
    if (call->pattern == DTI_PATTERN_ALL_TO_ALL) { /* whose parts are equally long */
        /* Each replica begins with the part of the next one, so that not all read the same one, and ends with
         * its own, which needs no transfer and would take room in the cache from those that do. */
        segment->from = (segment->from + segment->to + 1) % flow->self->all_replicas;
        segment->src_first = segment->to * call->count;
        segment->dst_first = segment->from * call->count;
    }
    if (dti_call_has_items(call))
        flow->reduction = reduction_of(flow->sync, call->list[segment->index].dtype, (ditto_op)call->op);
    return true;
}

bool dti_flow_begin(struct dti_flow *flow, struct dti_segment *segment)
{
    *segment = (struct dti_segment){ 0 };
    return fill_in(flow, segment);
}

bool dti_flow_begin_near(struct dti_flow *flow, struct dti_segment *segment, size_t grain, size_t *base)
{
    *segment = (struct dti_segment){ .count = flow->call->count };
    size_t grains = dti_flow_grains(flow, segment);
    /* Every replica would walk over the rows of all others. */
    if (flow->call->pattern == DTI_PATTERN_ALL_TO_ALL && grains != 0)
        segment->index = grain / grains;
    *base = segment->index * grains;
    return fill_in(flow, segment);
}

void dti_flow_item(struct dti_flow *flow, struct dti_segment *segment, size_t item)
{
    *segment = (struct dti_segment){ .index = item };
    (void)fill_in(flow, segment);
}

bool dti_flow_next(struct dti_flow *flow, struct dti_segment *segment)
{
    segment->src_first += dti_flow_shape(flow->call)->cuts_src ? segment->count : 0;
    segment->dst_first += dti_flow_shape(flow->call)->cuts_dst ? segment->count : 0;
    if (dti_call_has_items(flow->call))
        segment->mailbox_offset += dti_item_bytes(&flow->call->list[segment->index]);
    segment->index++;
    return fill_in(flow, segment);
}

size_t dti_flow_grains(const struct dti_flow *flow, const struct dti_segment *segment)
{
    size_t grain = dti_flow_grain(flow);
    return segment->count / grain + (segment->count % grain != 0);
}

bool dti_flow_cut(const struct dti_flow *flow, const struct dti_segment *segment, size_t base, size_t from,
                  size_t to, size_t *first, size_t *count)
{
    size_t grains = dti_flow_grains(flow, segment), grain = dti_flow_grain(flow);
    size_t end = to < base + grains ? (to - base) * grain : segment->count;
    *first = from > base ? (from - base) * grain : 0;
    end = end < segment->count ? end : segment->count;
    *count = *first < end ? end - *first : 0;
    return *count != 0;
}

size_t dti_flow_all_grains(const struct dti_flow *flow)
{
    if (dti_call_has_items(flow->call)) {
        size_t sum = 0;
        for (size_t i = 0; i < flow->call->count; i++)
            sum += dti_item_grains(&flow->call->list[i]);
        return sum;
    }
    struct dti_segment segment = { .count = flow->call->count };
    size_t grains = 0;
    if (flow->call->counts == NULL)
        return number_of_segments(flow) * dti_flow_grains(flow, &segment);
    struct dti_flow walk = *flow; /* a copy, because the walk changes its reduction */
    for (bool more = dti_flow_begin(&walk, &segment); more; more = dti_flow_next(&walk, &segment))
        grains += dti_flow_grains(&walk, &segment);
    return grains;
}

static const struct dti_call *call_of(const struct dti_flow *flow, uint32_t replica)
{
    return flow->pending_number != 0
               ? &dti_pending_operation_of(flow->sync, replica, flow->pending_number)->call
               : dti_call_of(flow->sync, replica, flow->seq);
}

/* Returns the payload that a replica has announced with a small call. */
static const void *payload_of(const struct dti_flow *flow, uint32_t replica, size_t bytes)
{
    if (replica == flow->self->index)
        return flow->own_payload;
    return flow->pending_number != 0
               ? dti_pending_payload(flow->sync, replica, flow->pending_number, bytes)
               : dti_mailbox_payload(dti_mailbox_of(flow->sync, replica, flow->seq, 0), flow->call, bytes);
}

const char *dti_flow_source(const struct dti_flow *flow, const struct dti_segment *segment, uint32_t replica)
{
    size_t bytes = flow->reduction.element_bytes;
    if (flow->from_mailboxes) {
        bool parts = flow->call->pattern == DTI_PATTERN_ALL_GATHER;
        return (const char *)payload_of(flow, replica, parts ? segment->count * bytes : flow->payload_bytes) +
               segment->mailbox_offset + segment->src_first * bytes;
    }
    const struct dti_call *call = call_of(flow, replica);
    const void *src = dti_call_has_items(call) ? call->list[segment->index].src : call->src;
    return (const char *)src + segment->src_first * bytes;
}

char *dti_flow_destination(const struct dti_flow *flow, const struct dti_segment *segment, uint32_t replica)
{
    const struct dti_call *call = replica == flow->self->index ? flow->call : call_of(flow, replica);
    void *dst = dti_call_has_items(call) ? call->list[segment->index].dst : call->dst;
    return (char *)dst + segment->dst_first * flow->reduction.element_bytes;
}

uint32_t dti_flow_sources(struct dti_flow *flow, const struct dti_segment *segment, uint32_t first,
                          uint32_t end, uint32_t *far)
{
    uint32_t self = flow->self->index, found = 0;
    *far = 0;
    if (segment->from != DTI_ALL) {
        first = segment->from;
        end = first + 1;
    }
    for (uint32_t i = first; i < end; i++) {
        flow->workspace->source[found++] = dti_flow_source(flow, segment, i);
        *far += dti_is_far(flow->sync, self, i);
    }
    return found;
}

uint32_t dti_flow_destinations(struct dti_flow *flow, const struct dti_segment *segment, uint32_t first,
                               uint32_t end, uint32_t *far)
{
    const struct dti_copy_set *set = flow->target != NULL ? &flow->target->copy_set[segment->index] : NULL;
    uint32_t self = flow->self->index, found = 0, n = set != NULL ? set->copies : flow->sync->num_replicas;
    *far = 0;
    if (segment->to != DTI_ALL) { /* there is no target */
        if (segment->to < first || segment->to >= end)
            return 0;
        flow->workspace->destination[0] = dti_flow_destination(flow, segment, segment->to);
        *far = dti_is_far(flow->sync, self, segment->to);
        return 1;
    }
    /* Without a target, each replica begins with its own destination, so that the writers spread over the
     * buffers. */
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = set != NULL ? k : self + k < n ? self + k : self + k - n;
        uint32_t near_to = set != NULL ? set->copy[i].owner : i;
        if (near_to < first || near_to >= end)
            continue;
        flow->workspace->destination[found++] = set != NULL
                                                    ? (char *)set->copy[i].data +
                                                          segment->dst_first * flow->reduction.element_bytes
                                                    : dti_flow_destination(flow, segment, i);
        *far += dti_is_far(flow->sync, self, near_to);
    }
    return found;
}

void dti_flow_write(struct dti_flow *flow, const void *elements, size_t first, size_t count,
                    uint32_t destinations, uint32_t far)
{
    size_t bytes = count * flow->reduction.element_bytes, offset = first * flow->reduction.element_bytes;
    for (uint32_t d = 0; d < destinations; d++) {
        char *to = (char *)flow->workspace->destination[d] + offset;
        if (to == elements)
            continue;
        if (flow->streams)
            dti_stream(to, elements, bytes);
        else {
            /* From mailboxes a replica writes only its own buffer, which is in its cache already. */
            if (bytes <= DTI_TILE_BYTES && !flow->from_mailboxes)
                dti_fetch_to_write(to, bytes);
            memcpy(to, elements, bytes);
        }
    }
    flow->workspace->counters.written_near += (destinations - far) * bytes;
    flow->workspace->counters.written_far += far * bytes;
}
