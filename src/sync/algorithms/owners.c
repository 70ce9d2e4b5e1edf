/* src/sync/algorithms/owners.c - replicas divide the indices. The owner of a range reads it from all sources,
 * combines it, and writes it to all destinations. */
#include "sync/algorithms/helper_work.h"
#include "sync/algorithms/neighbours.h"
#include "sync/algorithms/pair.h"

#include <string.h>

/* The length of chunks for non-temporal stores. Short chunks leave enough of a core's few line buffers for
 * both the loads and the non-temporal stores. 128 MiB out of place with 2 replicas took 14.8 ms in chunks of
 * 4 KiB, 12.4 ms with 1 KiB, 12.0 ms with 512 B and 13.3 ms with 256 B. */
#define STREAM_CHUNK_BYTES ((size_t)512)

/* The length of chunks if the target has a `finish`. assign_add of 4 MiB into one copy with 2 replicas took
 * 0.39 ms in chunks of 512 B, 0.37 ms with 1 KiB, 0.43 ms with 4 KiB, and 0.40 ms without prefetching. */
#define FINISH_CHUNK_BYTES ((size_t)1024)

#define MOVE_CHUNK_BYTES ((size_t)32 << 10)

/* The length of chunks if eight sources, which are destinations too, are combined in one pass, and a range
 * has at least WIDE_LEAST_BYTES. A chunk of all destinations stays in the first-level cache until it is
 * written. 2 MiB in place with 8 replicas on 2 PUs took 420 us in chunks of 4 KiB, and 390 us in chunks of
 * 512 B. 256 KiB took 65 and 69 us. */
#define WIDE_CHUNK_BYTES ((size_t)512)
#define WIDE_LEAST_BYTES ((size_t)128 << 10)

/* The state of a walk over a range of one segment. */
struct walk {
    struct dti_flow *flow;
    const struct dti_segment *segment;
    uint32_t sources, destinations, far_destinations;

    /* True if the first destination is also a source. */
    bool in_place;

    /* True if destinations are fetched for writing before sources are read. */
    bool fetches;
};

static bool is_a_source(const struct walk *w, const void *buffer)
{
    for (uint32_t i = 0; i < w->sources; i++)
        if (w->flow->workspace->source[i] == buffer)
            return true;
    return false;
}

/* Moves elements without combining them. If there are several buffers to write, it works in chunks, so that
 * each element is read from memory once for all of them. The chunks are long, because memcpy then uses the
 * processor's string instruction, which prefetches by itself. An all-gather of 512 KiB took 33 us in chunks
 * of 4 KiB, and 31 us in chunks of MOVE_CHUNK_BYTES. One buffer is written in one piece, because the string
 * instruction is slow on some processors, where memcpy does not use it for long pieces: a broadcast of 8 MiB
 * between two threads of a Zen 4 core took 230 us in chunks, and 90 us in one piece. */
static void move(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    const char *from = flow->workspace->source[0];
    size_t bytes = flow->reduction.element_bytes, chunk = MOVE_CHUNK_BYTES / bytes;
    uint32_t written = 0;
    for (uint32_t d = 0; d < w->destinations; d++)
        written += flow->workspace->destination[d] != from;
    for (size_t count; first < end; first += count) {
        count = end - first < chunk || written == 1 ? end - first : chunk;
        dti_flow_write(flow, from + first * bytes, first, count, w->destinations, w->far_destinations);
    }
}

/* Combines two sources into two destinations in one pass, if there is no other work on the elements. Returns
 * false if this is not possible. */
static bool combine_pair(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    const struct dti_kernel *kernel = flow->reduction.kernel;
    size_t element = flow->reduction.element_bytes;
    const struct dti_workspace *workspace = flow->workspace;
    if (w->sources != 2 || w->destinations != 2 || kernel == NULL || kernel->divide != NULL || flow->streams)
        return false;
    char *to[2] = { (char *)workspace->destination[0] + first * element,
                    (char *)workspace->destination[1] + first * element };
    const char *from[2] = { (const char *)workspace->source[0] + first * element,
                            (const char *)workspace->source[1] + first * element };
    dti_combine_pair(kernel, element, to, 2, from, end - first, w->fetches);
    flow->workspace->counters.written_near += (2 - w->far_destinations) * (end - first) * element;
    flow->workspace->counters.written_far += w->far_destinations * (end - first) * element;
    return true;
}

/* Prefetches the sources of the next chunk, while the present one is processed. This helps with non-temporal
 * stores, because the sources are in memory, and with `finish`, because there are three buffers or more to
 * read. */
static void fetch_sources(const struct walk *w, size_t first, size_t count)
{
    size_t bytes = w->flow->reduction.element_bytes;
    for (uint32_t i = 0; i < w->sources; i++)
        for (size_t at = first * bytes; at < (first + count) * bytes; at += DTI_CACHE_LINE)
            __builtin_prefetch((const char *)w->flow->workspace->source[i] + at);
}

/* Prefetches the destinations for writing. If they are read first, as sources or as the old values for
 * `finish`, each line would otherwise be requested twice. */
static void fetch_destinations(const struct walk *w, size_t first, size_t count)
{
    size_t bytes = w->flow->reduction.element_bytes;
    for (uint32_t d = 0; d < w->destinations; d++)
        dti_fetch_to_write((char *)w->flow->workspace->destination[d] + first * bytes, count * bytes);
}

/* Returns the number of elements in the chunk that begins at `at`. */
static size_t chunk_count(size_t at, size_t end, size_t chunk)
{
    return at >= end ? 0 : end - at < chunk ? end - at : chunk;
}

/* Returns the number of elements that are combined before they are written. */
static size_t combined_chunk(const struct walk *w, size_t count)
{
    const struct dti_reduction *r = &w->flow->reduction;
    bool wide = w->sources == 8 && count * r->element_bytes >= WIDE_LEAST_BYTES && w->in_place;
    if (r->kernel != NULL && w->flow->streams)
        return STREAM_CHUNK_BYTES / r->element_bytes;
    if (r->kernel != NULL && r->kernel->combine_eight != NULL && wide)
        return WIDE_CHUNK_BYTES / r->element_bytes;
    return dti_tile_count(r);
}

/* Combines chunk by chunk. A single destination that is not a source is written directly, unless it is
 * written with non-temporal stores. Other destinations are written by way of the scratch memory. */
static void combine(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    struct dti_reduction *r = &flow->reduction;
    char *tile = flow->workspace->scratch, *scratch = tile + DTI_TILE_BYTES;
    size_t chunk = combined_chunk(w, end - first);
    bool directly = w->destinations == 1 && !flow->streams && !w->in_place;
    for (; first < end; first += chunk) {
        size_t count = chunk_count(first, end, chunk);
        if (flow->streams)
            fetch_sources(w, first + count, chunk_count(first + count, end, chunk));
        char *out = directly ? (char *)flow->workspace->destination[0] + first * r->element_bytes : tile;
        if (directly || (w->in_place && w->fetches))
            fetch_destinations(w, first, count);
        dti_reduce_block(r, flow->workspace->source, w->sources, first, count, out, scratch);
        if (r->failed != DITTO_OK)
            return;
        dti_flow_write(flow, out, first, count, w->destinations, w->far_destinations);
    }
}

/* Calls the target's `finish` for elements [first, first + count), which are in the tile, and writes them to
 * the destinations. Returns false if the run was stopped. */
static bool finish(const struct walk *w, size_t first, size_t count, char *tile)
{
    struct dti_flow *flow = w->flow;
    const struct dti_target *target = flow->target;
    size_t bytes = flow->reduction.element_bytes;
    char *out = w->destinations == 1 ? (char *)flow->workspace->destination[0] + first * bytes : tile;
    if (target->calls)
        dti_flow_suspend_access(flow);
    target->finish(target->context, flow->self->index, w->segment->index, first, count, tile, out);
    if (target->calls && !dti_flow_resume_access(flow))
        return false;
    dti_flow_write(flow, out, first, count, w->destinations, w->far_destinations);
    return true;
}

/* Combines elements, or copies those of one replica, and calls the target's `finish` before they are
 * written. */
static void combine_and_finish(const struct walk *w, size_t first, size_t end)
{
    struct dti_flow *flow = w->flow;
    struct dti_reduction *r = &flow->reduction;
    char *tile = flow->workspace->scratch, *scratch = tile + DTI_TILE_BYTES;
    size_t chunk = FINISH_CHUNK_BYTES / r->accumulator_bytes;
    fetch_destinations(w, first, chunk_count(first, end, chunk));
    for (; first < end; first += chunk) {
        size_t count = chunk_count(first, end, chunk), next = chunk_count(first + count, end, chunk);
        fetch_sources(w, first + count, next);
        fetch_destinations(w, first + count, next);
        if (w->segment->from == DTI_ALL)
            dti_reduce_block(r, flow->workspace->source, w->sources, first, count, tile, scratch);
        else
            memcpy(tile, (const char *)flow->workspace->source[0] + first * r->element_bytes,
                   count * r->element_bytes);
        if (!finish(w, first, count, tile))
            return;
    }
}

/* Moves a part of an all-to-all in place. Its destination is the source of the part in the other direction,
 * so the two change places. Each of the two replicas does this for one half of the elements. Returns false if
 * neither replica is in place, or if it is the replica's part for itself. */
static bool swap_parts(struct dti_flow *flow, const struct dti_segment *segment, size_t first, size_t end)
{
    struct dti_segment back = { .from = segment->to,
                                .to = segment->from,
                                .src_first = segment->dst_first,
                                .dst_first = segment->src_first };
    size_t bytes = flow->reduction.element_bytes, half = segment->count / 2;
    uint32_t far;
    if (flow->from_mailboxes || segment->from == segment->to)
        return false;
    char *to = flow->workspace->destination[0], *to_other;
    dti_flow_destinations(flow, &back, back.to, back.to + 1, &far);
    to_other = flow->workspace->destination[0];
    flow->workspace->destination[0] = to;
    const char *from = dti_flow_source(flow, segment, segment->from),
               *from_other = dti_flow_source(flow, &back, back.from);
    if (to != from_other && to_other != from)
        return false;
    if (segment->to < segment->from)
        end = end < half ? end : half;
    else
        first = first > half ? first : half;
    if (first < end)
        dti_swap_parts(to + first * bytes, from + first * bytes, to_other + first * bytes,
                       from_other + first * bytes, (end - first) * bytes);
    flow->workspace->counters.written_near += first < end ? 2 * (end - first) * bytes : 0;
    return true;
}

static void walk_range(struct dti_flow *flow, const struct dti_segment *segment, uint32_t group_first,
                       uint32_t group_end, size_t first, size_t end)
{
    uint32_t far;
    struct walk w = { .flow = flow, .segment = segment };
    if (dti_call_scans(flow->call)) {
        dti_flow_scan(flow, segment, group_first, group_end, first, end);
        return;
    }
    size_t bytes = (end - first) * flow->reduction.element_bytes;
    w.destinations = dti_flow_destinations(flow, segment, group_first, group_end, &w.far_destinations);
    bool finishes = flow->target != NULL && flow->target->finish != NULL;
    if (first == end || (w.destinations == 0 && !(finishes && segment->from == DTI_ALL)))
        return;
    if (flow->call->pattern == DTI_PATTERN_ALL_TO_ALL && swap_parts(flow, segment, first, end))
        return;
    w.sources = dti_flow_sources(flow, segment, 0, flow->sync->num_replicas, &far);
    flow->workspace->counters.read_near += (w.sources - far) * bytes;
    flow->workspace->counters.read_far += far * bytes;
    bool streams = flow->streams;
    w.in_place = w.destinations != 0 && is_a_source(&w, flow->workspace->destination[0]);
    w.fetches = flow->fetches || !w.in_place;
    /* A line that was just read, as a source or as the old value, is in this core's cache. A non-temporal
     * store to it would cost more than it saves. What is only moved is not written to where it was read. */
    flow->streams = streams && !finishes && (segment->from != DTI_ALL || !w.in_place);
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

static void segments_in_range(struct dti_flow *flow, size_t from, size_t to, uint32_t group_first,
                              uint32_t group_end)
{
    struct dti_segment segment;
    size_t base;
    for (bool more = dti_flow_begin_near(flow, &segment, from, &base); more && base < to;
         more = dti_flow_next(flow, &segment)) {
        size_t first, count;
        if (dti_flow_cut(flow, &segment, base, from, to, &first, &count))
            walk_range(flow, &segment, group_first, group_end, first, first + count);
        /* The next segment would begin a new reduction, and the error would be lost. */
        if (flow->reduction.failed != DITTO_OK)
            break;
        base += dti_flow_grains(flow, &segment);
    }
}

void dti_flow_whole(struct dti_flow *flow, uint32_t group_first, uint32_t group_end)
{
    struct dti_segment segment;
    if (flow->call->pattern == DTI_PATTERN_ALL_TO_ALL) { /* in which each replica has its row of grains */
        size_t row = dti_flow_all_grains(flow) / flow->self->all_replicas;
        segments_in_range(flow, group_first * row, group_end * row, group_first, group_end);
        return;
    }
    for (bool more = dti_flow_begin(flow, &segment); more; more = dti_flow_next(flow, &segment)) {
        if (segment.count != 0)
            walk_range(flow, &segment, group_first, group_end, 0, segment.count);
        if (flow->reduction.failed != DITTO_OK)
            break;
    }
}

/* The same as dti_flow_range for a call with items, of which most are short. Items outside the range cost
 * little. */
static void items_in_range(struct dti_flow *flow, size_t from, size_t to, uint32_t group_first,
                           uint32_t group_end)
{
    struct dti_segment segment;
    size_t base = 0;
    for (size_t i = 0; i < flow->call->count && base < to && flow->reduction.failed == DITTO_OK; i++) {
        size_t grains = dti_item_grains(&flow->call->list[i]), first, count;
        if (base + grains > from) {
            dti_flow_item(flow, &segment, i);
            if (dti_flow_cut(flow, &segment, base, from, to, &first, &count))
                walk_range(flow, &segment, group_first, group_end, first, first + count);
        }
        base += grains;
    }
}

void dti_flow_range(struct dti_flow *flow, size_t from, size_t to, uint32_t group_first, uint32_t group_end)
{
    if (dti_call_has_items(flow->call))
        items_in_range(flow, from, to, group_first, group_end);
    else
        segments_in_range(flow, from, to, group_first, group_end);
    if (flow->streams)
        dti_stream_end();
}

/* Returns true if each of two replicas should compute the whole result for itself. Scans follow the same
 * rule as all-reduces, most of which pair.c computes. */
static bool each_computes_whole(const struct dti_flow *flow)
{
    const struct dti_call *call = flow->call;
    return flow->sync->num_replicas == 2 && !flow->streams &&
           (call->pattern == DTI_PATTERN_ALL_REDUCE || dti_call_scans(call)) &&
           dti_each_computes_whole(call, dti_call_of(flow->sync, 1 - flow->self->index, flow->seq),
                                   flow->reduction.kernel);
}

ditto_status dti_flow_flat(struct dti_flow *flow, uint32_t group_first, uint32_t group_end)
{
    size_t from, to;
    if (each_computes_whole(flow)) {
        group_first = flow->self->index;
        group_end = group_first + 1;
    }
    dti_tree_part(dti_flow_all_grains(flow), group_end - group_first, flow->self->index - group_first, 1,
                  &from, &to);
    if (!dti_helper_work_range(flow, from, to, group_first, group_end))
        dti_flow_range(flow, from, to, group_first, group_end);
    return flow->reduction.failed;
}
