/* src/sync/algorithms/owners.c - some replicas divide the indices; the owner of a range takes it from all
 * sources and writes it to all destinations. */
#include "sync/algorithms/helper_work.h"
#include "sync/algorithms/flow.h"
#include "sync/kernels/kernel.h"

#include <string.h>

#define PAIR_CHUNK_BYTES ((size_t)1024) /* 512 to 2048 are equally good */

/* Of what goes past the caches: short steps leave a core's few line buffers to what is fetched and to what is
 * streamed. 128 MiB out of place, 2 replicas: steps of 4 KiB 14.8 ms, 1 KiB 12.4, 512 B 12.0, 256 B 13.3. */
#define STREAM_CHUNK_BYTES ((size_t)512)

/* Of what is finished: assign_add into one copy, 2 replicas, 4 MiB: steps of 512 B 0.39 ms, 1 KiB 0.37, 4 KiB
 * 0.43; without asking ahead 0.40. */
#define FINISH_CHUNK_BYTES ((size_t)1024)

#define MOVE_CHUNK_BYTES ((size_t)32 << 10)

/* What a walk over one segment needs, set up once. */
struct walk {
    struct dti_flow *flow;
    const struct dti_segment *segment;
    uint32_t sources, destinations, far_destinations;
};

static bool is_a_source(const struct walk *w, const void *buffer)
{
    for (uint32_t i = 0; i < w->sources; i++)
        if (w->flow->workspace->source[i] == buffer)
            return true;
    return false;
}

/* Moved, not combined: a step at a time, so that it is read once for all destinations. A long one, which
 * memcpy gives to the processor's own string instruction: that asks for lines by itself (all-gather 512 KiB
 * 33 us in steps of 4 KiB, 31 in these). */
static void move(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    size_t bytes = flow->reduction.element_bytes, chunk = MOVE_CHUNK_BYTES / bytes;
    for (; first < end; first += chunk) {
        size_t count = end - first < chunk ? end - first : chunk;
        dti_flow_write(flow, (const char *)flow->workspace->source[0] + first * bytes, first, count,
                       w->destinations, w->far_destinations);
    }
}

static const struct dti_kernel *plain_kernel(const struct dti_flow *flow)
{
    const struct dti_kernel *kernel = flow->reduction.kernel;
    return kernel != NULL && kernel->divide == NULL && !flow->streams ? kernel : NULL;
}

/* Two sources, two destinations, nothing to be done in between: both results in one pass. A destination that
 * is a source comes with reading it. */
static bool combine_pair(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    const struct dti_kernel *kernel = plain_kernel(flow);
    size_t element = flow->reduction.element_bytes, chunk = PAIR_CHUNK_BYTES / element;
    const struct dti_workspace *workspace = flow->workspace;
    if (w->sources != 2 || w->destinations != 2 || kernel == NULL)
        return false;
    bool fetches = !is_a_source(w, workspace->destination[0]);
    for (size_t at = first; at < end; at += chunk) {
        size_t count = end - at < chunk ? end - at : chunk;
        char *to[2] = { (char *)workspace->destination[0] + at * element,
                        (char *)workspace->destination[1] + at * element };
        for (int i = 0; i < 2 && fetches; i++)
            dti_fetch_to_write(to[i], count * element);
        kernel->combine_into_two(to[0], to[1], (const char *)workspace->source[0] + at * element,
                                 (const char *)workspace->source[1] + at * element, count);
    }
    flow->workspace->counters.written_near += (2 - w->far_destinations) * (end - first) * element;
    flow->workspace->counters.written_far += w->far_destinations * (end - first) * element;
    return true;
}

/* What streams comes from memory, and what is finished from three places or more: the next step's sources are
 * on their way while this one is worked on. */
static void fetch_sources(const struct walk *w, size_t first, size_t count)
{
    size_t bytes = w->flow->reduction.element_bytes;
    for (uint32_t i = 0; i < w->sources; i++)
        for (size_t at = first * bytes; at < (first + count) * bytes; at += DTI_CACHE_LINE)
            __builtin_prefetch((const char *)w->flow->workspace->source[i] + at);
}

/* The copies have the old value: they are asked for as their owner before it is read, or every line would be
 * asked for twice. */
static void fetch_copies(const struct walk *w, size_t first, size_t count)
{
    size_t bytes = w->flow->reduction.element_bytes;
    for (uint32_t d = 0; d < w->destinations; d++)
        dti_fetch_to_write((char *)w->flow->workspace->destination[d] + first * bytes, count * bytes);
}

/* How many elements there are at `at`, at most a step. */
static size_t chunk_at(size_t at, size_t end, size_t chunk)
{
    return at >= end ? 0 : end - at < chunk ? end - at : chunk;
}

/* By tiles: into one destination that is no source directly, else by way of scratch. */
static void combine(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    struct dti_reduction *r = &flow->reduction;
    char *tile = flow->workspace->scratch, *below = tile + DTI_TILE_BYTES;
    size_t chunk =
        flow->streams && r->kernel != NULL ? STREAM_CHUNK_BYTES / r->element_bytes : dti_tile_count(r);
    bool directly =
        w->destinations == 1 && !flow->streams && !is_a_source(w, flow->workspace->destination[0]);
    for (; first < end; first += chunk) {
        size_t count = chunk_at(first, end, chunk);
        if (flow->streams)
            fetch_sources(w, first + count, chunk_at(first + count, end, chunk));
        char *out = directly ? (char *)flow->workspace->destination[0] + first * r->element_bytes : tile;
        if (directly)
            dti_fetch_to_write(out, count * r->element_bytes);
        dti_reduce_block(r, flow->workspace->source, w->sources, first, count, out, below);
        if (r->failed != DITTO_OK)
            return;
        dti_flow_write(flow, out, first, count, w->destinations, w->far_destinations);
    }
}

/* Finishes elements [first, first + count), which are in the tile, and writes them to where they go. Returns
 * false if the run was stopped. */
static bool finish(const struct walk *w, size_t first, size_t count, char *tile)
{
    struct dti_flow *flow = w->flow;
    const struct dti_target *target = flow->target;
    size_t bytes = flow->reduction.element_bytes;
    char *out = w->destinations == 1 ? (char *)flow->workspace->destination[0] + first * bytes : tile;
    if (target->calls)
        dti_flow_suspend_access(flow);
    target->finish(target->context, flow->self->id, w->segment->index, first, count, tile, out);
    if (target->calls && !dti_flow_resume_access(flow))
        return false;
    dti_flow_write(flow, out, first, count, w->destinations, w->far_destinations);
    return true;
}

/* Combined, or one replica's, with something to be done to them before they are written. */
static void combine_and_finish(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    struct dti_reduction *r = &flow->reduction;
    char *tile = flow->workspace->scratch, *below = tile + DTI_TILE_BYTES;
    size_t chunk = FINISH_CHUNK_BYTES / r->accumulator_bytes;
    fetch_copies(w, first, chunk_at(first, end, chunk));
    for (; first < end; first += chunk) {
        size_t count = chunk_at(first, end, chunk), next = chunk_at(first + count, end, chunk);
        fetch_sources(w, first + count, next);
        fetch_copies(w, first + count, next);
        if (w->segment->from == DTI_ALL)
            dti_reduce_block(r, flow->workspace->source, w->sources, first, count, tile, below);
        else
            memcpy(tile, (const char *)flow->workspace->source[0] + first * r->element_bytes,
                   count * r->element_bytes);
        if (!finish(w, first, count, tile))
            return;
    }
}

static void walk_range(struct dti_flow *flow, const struct dti_segment *segment, uint32_t group_first,
                       uint32_t group_end, size_t first, size_t end)
{
    uint32_t far;
    struct walk w = { .flow = flow, .segment = segment };
    size_t bytes = (end - first) * flow->reduction.element_bytes;
    w.destinations = dti_flow_destinations(flow, segment, group_first, group_end, &w.far_destinations);
    bool finishes = flow->target != NULL && flow->target->finish != NULL;
    if (first == end || (w.destinations == 0 && !(finishes && segment->from == DTI_ALL)))
        return;
    w.sources = dti_flow_sources(flow, segment, 0, flow->sync->team->n, &far);
    flow->workspace->counters.read_near += (w.sources - far) * bytes;
    flow->workspace->counters.read_far += far * bytes;
    bool streams = flow->streams;
    /* a line that has just been read, as a source or as the old value, is in this core's cache: to write it
     * past the caches costs more than it saves */
    flow->streams = streams && !finishes && !is_a_source(&w, flow->workspace->destination[0]);
    if (finishes) {
        combine_and_finish(&w, first, end);
    } else if (segment->from == DTI_ALL) {
        if (!combine_pair(&w, first, end))
            combine(&w, first, end);
    } else {
        move(&w, first, end);
    }
    flow->streams = streams;
}

void dti_flow_whole(struct dti_flow *flow, uint32_t group_first, uint32_t group_end)
{
    struct dti_segment segment;
    for (bool more = dti_flow_begin(flow, &segment); more; more = dti_flow_next(flow, &segment)) {
        if (segment.count != 0)
            walk_range(flow, &segment, group_first, group_end, 0, segment.count);
        if (flow->reduction.failed != DITTO_OK)
            break;
    }
}

void dti_flow_range(struct dti_flow *flow, size_t from, size_t to, uint32_t group_first, uint32_t group_end)
{
    struct dti_segment segment;
    size_t base = 0;
    for (bool more = dti_flow_begin(flow, &segment); more && base < to;
         more = dti_flow_next(flow, &segment)) {
        size_t first, count;
        if (dti_flow_cut(flow, &segment, base, from, to, &first, &count))
            walk_range(flow, &segment, group_first, group_end, first, first + count);
        /* the next segment begins a new reduction, without the error */
        if (flow->reduction.failed != DITTO_OK)
            break;
        base += dti_flow_grains(flow, &segment);
    }
    if (flow->streams)
        dti_stream_end();
}

ditto_status dti_flow_flat(struct dti_flow *flow, uint32_t group_first, uint32_t group_end)
{
    size_t from, to;
    dti_tree_part(dti_flow_all_grains(flow), group_end - group_first, flow->self->id - group_first, 1, &from,
                  &to);
    if (!dti_helper_work_range(flow, from, to, group_first, group_end))
        dti_flow_range(flow, from, to, group_first, group_end);
    return flow->reduction.failed;
}
