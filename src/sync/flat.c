/* src/sync/flat.c - some replicas divide the indices; the owner of a range takes it from all sources and writes it to all
 * destinations. */
#include "sync/aid.h"
#include "sync/flow.h"
#include "sync/stream.h"

#define PAIR_STEP_BYTES ((size_t)1024) /* 512 to 2048 are equally good */

/* Of what goes past the caches: short steps leave a core's few line buffers to what is fetched and to what is streamed. 128 MiB out of
 * place, 2 replicas: steps of 4 KiB 14.8 ms, 1 KiB 12.4, 512 B 12.0, 256 B 13.3. */
#define STREAM_STEP_BYTES ((size_t)512)

#define MOVE_STEP_BYTES ((size_t)32 << 10)

/* What a walk over one segment needs, set up once. */
struct walk {
    struct dti_flow *flow;
    const struct dti_segment *segment;
    uint32_t sources, destinations, far_destinations;
};

static bool is_a_source(const struct walk *w, const void *buffer)
{
    for (uint32_t i = 0; i < w->sources; i++)
        if (w->flow->desk->source[i] == buffer)
            return true;
    return false;
}

/* Moved, not combined: a step at a time, so that it is read once for all destinations. A long one, which memcpy gives to the
 * processor's own string instruction: that asks for lines by itself (all-gather 512 KiB 33 us in steps of 4 KiB, 31 in these). */
static void move(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    size_t bytes = flow->reduction.element_bytes, step = MOVE_STEP_BYTES / bytes;
    for (; first < end; first += step) {
        size_t count = end - first < step ? end - first : step;
        dti_flow_write(flow, (const char *)flow->desk->source[0] + first * bytes, first, count, w->destinations,
                       w->far_destinations);
    }
}

static const struct dti_kernel *plain_kernel(const struct dti_flow *flow)
{
    const struct dti_kernel *kernel = flow->reduction.kernel;
    bool plain = kernel != NULL && kernel->divide == NULL && !flow->streams &&
                 (flow->target == NULL || flow->target->finish == NULL);
    return plain ? kernel : NULL;
}

/* Two sources, two destinations, nothing to be done in between: both results in one pass. A destination that is a source comes
 * with reading it. */
static bool combine_pair(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    const struct dti_kernel *kernel = plain_kernel(flow);
    size_t element = flow->reduction.element_bytes, step = PAIR_STEP_BYTES / element;
    const struct dti_desk *desk = flow->desk;
    if (w->sources != 2 || w->destinations != 2 || kernel == NULL)
        return false;
    bool fetches = !is_a_source(w, desk->destination[0]);
    for (size_t at = first; at < end; at += step) {
        size_t count = end - at < step ? end - at : step;
        char *to[2] = { (char *)desk->destination[0] + at * element, (char *)desk->destination[1] + at * element };
        for (int i = 0; i < 2 && fetches; i++)
            dti_fetch_to_write(to[i], count * element);
        kernel->combine_into_two(to[0], to[1], (const char *)desk->source[0] + at * element,
                                 (const char *)desk->source[1] + at * element, count);
    }
    flow->desk->counters.written_near += (2 - w->far_destinations) * (end - first) * element;
    flow->desk->counters.written_far += w->far_destinations * (end - first) * element;
    return true;
}

/* What streams comes from memory: the next tile is on its way while this one is worked on. */
static void fetch_ahead(const struct walk *w, size_t first, size_t count)
{
    size_t bytes = w->flow->reduction.element_bytes;
    for (uint32_t i = 0; i < w->sources; i++)
        for (size_t at = first * bytes; at < (first + count) * bytes; at += DTI_LINE)
            __builtin_prefetch((const char *)w->flow->desk->source[i] + at);
}

/* By tiles: into one destination that is no source directly, else by way of scratch. */
static void combine(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    struct dti_reduction *r = &flow->reduction;
    const struct dti_target *target = flow->target;
    char *tile = flow->desk->scratch, *below = tile + DTI_TILE_BYTES;
    size_t step = flow->streams && r->kernel != NULL ? STREAM_STEP_BYTES / r->element_bytes : dti_tile_count(r);
    bool finishes = target != NULL && target->finish != NULL;
    bool directly = w->destinations == 1 && !finishes && !flow->streams && !is_a_source(w, flow->desk->destination[0]);
    for (; first < end; first += step) {
        size_t count = end - first < step ? end - first : step;
        if (flow->streams && first + count < end)
            fetch_ahead(w, first + count, end - first - count < step ? end - first - count : step);
        char *out = directly ? (char *)flow->desk->destination[0] + first * r->element_bytes : tile;
        if (directly)
            dti_fetch_to_write(out, count * r->element_bytes);
        dti_reduce_block(r, flow->desk->source, w->sources, first, count, out, below);
        if (finishes)
            target->finish(target->context, flow->self->id, w->segment->dst_first + first, count, tile);
        dti_flow_write(flow, out, first, count, w->destinations, w->far_destinations);
    }
}

/* Elements of one replica, but with something to be done to them. */
static void move_and_finish(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    const struct dti_target *target = flow->target;
    size_t bytes = flow->reduction.element_bytes, step = DTI_TILE_BYTES / bytes;
    for (; first < end; first += step) {
        size_t count = end - first < step ? end - first : step;
        memcpy(flow->desk->scratch, (const char *)flow->desk->source[0] + first * bytes, count * bytes);
        target->finish(target->context, flow->self->id, w->segment->dst_first + first, count, flow->desk->scratch);
        dti_flow_write(flow, flow->desk->scratch, first, count, w->destinations, w->far_destinations);
    }
}

static void walk_range(struct dti_flow *flow, const struct dti_segment *segment, uint32_t group_first,
                       uint32_t group_end, size_t first, size_t end)
{
    uint32_t far;
    struct walk w = { .flow = flow, .segment = segment };
    size_t bytes = (end - first) * flow->reduction.element_bytes;
    w.destinations = dti_flow_destinations(flow, segment, group_first, group_end, &w.far_destinations);
    if (w.destinations == 0 || first == end)
        return;
    w.sources = dti_flow_sources(flow, segment, 0, flow->sync->team->n, &far);
    flow->desk->counters.read_near += (w.sources - far) * bytes;
    flow->desk->counters.read_far += far * bytes;
    bool streams = flow->streams;
    /* a line that has just been read as a source is in this core's cache: to write it past the caches costs more than it saves */
    flow->streams = streams && !is_a_source(&w, flow->desk->destination[0]);
    if (segment->from == DTI_ALL) {
        if (!combine_pair(&w, first, end))
            combine(&w, first, end);
    } else if (flow->target != NULL && flow->target->finish != NULL) {
        move_and_finish(&w, first, end);
    } else {
        move(&w, first, end);
    }
    flow->streams = streams;
}

void dti_flow_whole(struct dti_flow *flow, uint32_t group_first, uint32_t group_end)
{
    struct dti_segment segment;
    for (bool more = dti_flow_begin(flow, &segment); more; more = dti_flow_next(flow, &segment))
        if (segment.count != 0)
            walk_range(flow, &segment, group_first, group_end, 0, segment.count);
}

void dti_flow_range(struct dti_flow *flow, size_t from, size_t to, uint32_t group_first, uint32_t group_end)
{
    struct dti_segment segment;
    size_t base = 0;
    for (bool more = dti_flow_begin(flow, &segment); more && base < to; more = dti_flow_next(flow, &segment)) {
        size_t grains = dti_flow_grains(flow, &segment), grain = dti_flow_grain(flow);
        size_t first = from > base ? (from - base) * grain : 0;
        size_t end = to < base + grains ? (to - base) * grain : segment.count;
        if (first < segment.count)
            walk_range(flow, &segment, group_first, group_end, first, end < segment.count ? end : segment.count);
        base += grains;
    }
    if (flow->streams)
        dti_stream_end();
}

ditto_status dti_flow_flat(struct dti_flow *flow, uint32_t group_first, uint32_t group_end)
{
    size_t from, to;
    dti_tree_part(dti_flow_all_grains(flow), group_end - group_first, flow->self->id - group_first, 1, &from, &to);
    if (!dti_aid_range(flow, from, to, group_first, group_end))
        dti_flow_range(flow, from, to, group_first, group_end);
    return flow->reduction.failed;
}
