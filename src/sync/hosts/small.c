/* src/sync/hosts/small.c - small collectives over hosts, whose data ride behind the headers.
 *
 * Each host sends the parts of every segment that it combines, and its replicas' elements of every segment
 * that is moved. Every host combines all parts, or hosts combine what they pass on (combined.c), so no second
 * message is needed. The results stand one segment after the other, each at a multiple of 16 bytes, and so do
 * the data behind a header. */
#include "base/errors/status.h"
#include "sync/algorithms/flow.h"
#include "sync/hosts/hosts.h"

#include <string.h>

/* Returns the bytes of a segment's data that ride behind the header of a host. */
static size_t ridden_bytes(const struct dti_hosts_call *c, const struct dti_segment *segment, uint32_t host)
{
    const struct dti_reduction *r = &c->flow->reduction;
    const struct dti_hosts *hosts = c->hosts;
    size_t bytes = 0;
    if (segment->from != DTI_ALL)
        return dti_hosts_of(hosts, segment->from) == host ? dti_small_bytes(segment->count * r->element_bytes)
                                                          : 0;
    for (uint32_t p = hosts->part_start[host]; p < hosts->part_start[host + 1]; p++)
        bytes += dti_small_bytes(segment->count * dti_part_bytes(hosts->part[p], r));
    return bytes;
}

/* The driver alone combines the sources of its host. If they are more than this, all replicas of the host had
 * better combine them (large.c). */
#define DRIVER_BYTES ((size_t)256 << 10)

/* Returns the most bytes behind a header for which there is room for `payload`. */
static size_t most_bytes(const struct dti_hosts *hosts, size_t payload)
{
    size_t most = DRIVER_BYTES / hosts->most_replicas;
    most = most < DTI_HEADER_PAYLOAD ? DTI_HEADER_PAYLOAD : most;
    return most < payload ? most : payload;
}

/* Returns true if hosts combine what they pass on. */
static bool combines(const struct dti_hosts_call *c)
{
    return dti_hosts_combines(c, most_bytes(c->hosts, DTI_HEADER_COMBINED_PAYLOAD));
}

bool dti_hosts_is_small(const struct dti_hosts_call *c)
{
    struct dti_segment segment;
    size_t results = 0, most = most_bytes(c->hosts, dti_header_payload(c->hosts->cluster));
    if (c->flow->target != NULL)
        return false;
    if (combines(c))
        return true;
    for (uint32_t host = 0; host < dti_hosts_count(c->hosts); host++) {
        struct dti_flow walk = *c->flow;
        struct dti_hosts_call walking = *c;
        walking.flow = &walk;
        size_t bytes = 0;
        results = 0;
        for (bool more = dti_flow_begin(&walk, &segment); more; more = dti_flow_next(&walk, &segment)) {
            bytes += ridden_bytes(&walking, &segment, host);
            results += dti_small_bytes(segment.count * walk.reduction.element_bytes);
            if (bytes > most || results > DTI_SMALL_ROW_BYTES)
                return false;
        }
    }
    return true;
}

/* Writes this host's data of a segment, and returns their end. */
static unsigned char *write_data(const struct dti_hosts_call *c, const struct dti_segment *segment,
                                 unsigned char *to)
{
    const struct dti_reduction *r = &c->flow->reduction;
    const struct dti_hosts *hosts = c->hosts;
    uint32_t host = dti_hosts_own(hosts), first = hosts->part_start[host];
    if (segment->from != DTI_ALL) {
        if (dti_hosts_of(hosts, segment->from) != host)
            return to;
        memcpy(to, dti_flow_source(c->flow, segment, segment->from - hosts->first),
               segment->count * r->element_bytes);
        return to + dti_small_bytes(segment->count * r->element_bytes);
    }
    unsigned char *out[DTI_TREE_PARTS];
    for (uint32_t p = 0; p < dti_hosts_parts(hosts, host); p++) {
        out[p] = to;
        to += dti_small_bytes(segment->count * dti_part_bytes(hosts->part[first + p], r));
    }
    dti_hosts_combine_parts(c, segment, 0, segment->count, out);
    return to;
}

/* Writes the result of a segment. data[h] is moved past the data of the segment that host h has sent. */
static void write_result(const struct dti_hosts_call *c, const struct dti_segment *segment,
                         const unsigned char **data, unsigned char *result)
{
    const struct dti_reduction *r = &c->flow->reduction;
    const struct dti_hosts *hosts = c->hosts;
    struct dti_tree_value *value = dti_hosts_values(hosts, c->slot);
    if (segment->from != DTI_ALL) {
        uint32_t host = dti_hosts_of(hosts, segment->from);
        memcpy(result, data[host], segment->count * r->element_bytes);
        data[host] += dti_small_bytes(segment->count * r->element_bytes);
        return;
    }
    for (uint32_t host = 0; host < dti_hosts_count(hosts); host++)
        for (uint32_t p = hosts->part_start[host]; p < hosts->part_start[host + 1]; p++) {
            value[p] = (struct dti_tree_value){ hosts->part[p].first, hosts->part[p].end, data[host] };
            data[host] += dti_small_bytes(segment->count * dti_part_bytes(hosts->part[p], r));
        }
    dti_hosts_finish(c, segment->count, value, result);
}

/* Writes the results of all segments from the data of each host. */
static void write_results(const struct dti_hosts_call *c, unsigned char *result)
{
    struct dti_hosts *hosts = c->hosts;
    struct dti_flow *flow = c->flow;
    struct dti_segment segment;
    for (uint32_t h = 0; h < dti_hosts_count(hosts); h++)
        hosts->data[h] = dti_header_in(hosts->cluster, h);
    for (bool more = dti_flow_begin(flow, &segment); more && flow->reduction.failed == DITTO_OK;
         more = dti_flow_next(flow, &segment)) {
        write_result(c, &segment, hosts->data, result);
        result += dti_small_bytes(segment.count * flow->reduction.element_bytes);
    }
}

ditto_status dti_hosts_small(const struct dti_hosts_call *c)
{
    struct dti_hosts *hosts = c->hosts;
    struct dti_flow *flow = c->flow;
    struct dti_segment segment;
    unsigned char *payload = dti_header_out(hosts->cluster), *to = payload;
    bool are_combined = combines(c);
    for (bool more = dti_flow_begin(flow, &segment); more && flow->reduction.failed == DITTO_OK;
         more = dti_flow_next(flow, &segment))
        to = write_data(c, &segment, to);
    if (flow->reduction.failed != DITTO_OK)
        return flow->reduction.failed;
    DTI_TRY(dti_hosts_begin(c, (size_t)(to - payload), are_combined ? dti_hosts_combine_blocks : NULL));
    if (are_combined)
        dti_hosts_combined_results(c, dti_header_in(hosts->cluster, 0), hosts->small_results);
    else
        write_results(c, hosts->small_results);
    return flow->reduction.failed;
}

void dti_hosts_small_results(const struct dti_hosts_call *c)
{
    struct dti_flow *flow = c->flow;
    struct dti_segment segment;
    const unsigned char *result = c->hosts->small_results;
    for (bool more = dti_flow_begin(flow, &segment); more; more = dti_flow_next(flow, &segment)) {
        size_t bytes = flow->reduction.element_bytes;
        if (segment.count != 0 && (segment.to == DTI_ALL || segment.to == c->self->id))
            memcpy((char *)(dti_call_has_items(c->call) ? c->call->list[segment.index].dst : c->call->dst) +
                       segment.dst_first * bytes,
                   result, segment.count * bytes);
        result += dti_small_bytes(segment.count * bytes);
    }
}
