/* src/sync/algorithms/scan.c - scans, in which each replica receives a combination of the first replicas.
 *
 * The owner of a range of indices reads it from all sources, and writes a prefix to each destination
 * (dti_scan_block). If the range is that of one replica alone, it reads only the sources that its own prefix
 * needs. */
#include "sync/algorithms/flow.h"

#include <string.h>

/* Adds what the walk reads and writes to the counters. */
static void count_bytes(struct dti_flow *flow, const struct dti_scan *scan, uint32_t far_sources,
                        size_t bytes)
{
    struct dti_counters *counters = &flow->workspace->counters;
    counters->read_near += (scan->values - far_sources) * bytes;
    counters->read_far += far_sources * bytes;
    for (uint32_t i = 0; i < scan->n; i++) {
        bool is_far = dti_is_far(flow->sync, flow->self->index, i);
        size_t written = scan->destination[i] != NULL ? bytes : 0;
        counters->written_far += is_far ? written : 0;
        counters->written_near += is_far ? 0 : written;
    }
}

/* Prefetches destinations for writing. Replica 0 in place has its result already. See `fetches` in flow.h. */
static void fetch_destinations(const struct dti_flow *flow, const struct dti_scan *scan, size_t first,
                               size_t count)
{
    size_t bytes = flow->reduction.element_bytes;
    for (uint32_t i = 0; i < scan->n; i++) {
        char *to = scan->destination[i];
        bool in_place = i < scan->values && to == scan->source[i];
        if (to != NULL && (!in_place || (flow->fetches && i > 0)))
            dti_fetch_to_write(to + first * bytes, count * bytes);
    }
}

void dti_flow_scan(struct dti_flow *flow, const struct dti_segment *segment, uint32_t group_first,
                   uint32_t group_end, size_t first, size_t end)
{
    struct dti_workspace *workspace = flow->workspace;
    struct dti_reduction *r = &flow->reduction;
    size_t bytes = r->element_bytes, chunk = dti_tile_count(r);
    uint32_t far, exclusive = flow->call->pattern == DTI_PATTERN_SCAN_EXCLUSIVE;
    struct dti_scan scan = { .n = flow->self->num_replicas,
                             .values = group_end - exclusive,
                             .exclusive = exclusive,
                             .source = workspace->source,
                             .destination = workspace->destination };
    if (scan.values == 0 || first == end)
        return;
    (void)dti_flow_sources(flow, segment, 0, scan.values, &far);
    for (uint32_t i = 0; i < scan.n; i++) {
        bool written = i >= group_first && i < group_end && i >= exclusive;
        workspace->destination[i] = written ? dti_flow_destination(flow, segment, i) : NULL;
    }
    count_bytes(flow, &scan, far, (end - first) * bytes);
    /* The prefix of one value is a copy. It is made in one piece, which is fastest (owners.c). */
    if (scan.values == 1) {
        char *to = dti_flow_destination(flow, segment, exclusive) + first * bytes;
        const char *from = (const char *)workspace->source[0] + first * bytes;
        if (to != from)
            memcpy(to, from, (end - first) * bytes);
        return;
    }
    for (size_t count; first < end && r->failed == DITTO_OK; first += count) {
        count = end - first < chunk ? end - first : chunk;
        if (!flow->from_mailboxes)
            fetch_destinations(flow, &scan, first, count);
        dti_scan_block(r, &scan, first, count, workspace->scratch);
    }
}
