/* src/sync/hosts/combined.c - small collectives in which hosts combine what they pass on.
 *
 * Headers go in steps, and a step joins two neighbouring blocks of 2^s hosts (hosts/header_steps.c). A block
 * has the largest complete subtrees of the tree that lie in its range, as a host has. Those of the joined
 * block consist of those of both, so the bits are those of one host. If there are 2^k hosts with equally many
 * replicas, each block is one subtree, and a message has as many bytes in each step. All hosts together have
 * the whole tree. */
#include "sync/algorithms/flow.h"
#include "sync/hosts/hosts.h"

#include <string.h>

/* -- which calls -- */

static struct dti_span range_of(const struct dti_hosts *hosts, uint32_t first, uint32_t blocks)
{
    return (struct dti_span){ hosts->ranges.start[first], hosts->ranges.start[first + blocks] };
}

uint32_t dti_hosts_block_parts(const struct dti_hosts *hosts, const struct dti_tree *tree)
{
    struct dti_span found[DTI_TREE_PARTS];
    uint32_t count = dti_hosts_count(hosts), most = 1;
    if (!dti_headers_can_combine(hosts->cluster))
        return 0;
    for (uint32_t block = 1; block < count; block *= 2)
        for (uint32_t first = 0; first < count; first += block) {
            uint32_t parts = dti_tree_subtrees(tree, range_of(hosts, first, block), found);
            most = parts > most ? parts : most;
        }
    return most;
}

bool dti_hosts_combines(const struct dti_hosts_call *c, size_t most)
{
    /* A function of the user's may fail, or take its time, in the middle of an exchange. */
    if (c->hosts->most_block_parts == 0 || c->flow->reduction.function != NULL)
        return false;
    struct dti_flow walk = *c->flow;
    struct dti_segment segment;
    size_t bytes = 0, results = 0;
    for (bool more = dti_flow_begin(&walk, &segment); more; more = dti_flow_next(&walk, &segment)) {
        if (segment.from != DTI_ALL)
            return false;
        bytes += c->hosts->most_block_parts *
                 dti_small_bytes(segment.count * walk.reduction.accumulator_bytes);
        results += dti_small_bytes(segment.count * walk.reduction.element_bytes);
        if (bytes > most || results > DTI_SMALL_ROW_BYTES)
            return false;
    }
    return true;
}

/* -- arithmetic -- */

/* The parts of a block, and where the data of the next segment begin. */
struct block_of_hosts {
    struct dti_span part[DTI_TREE_PARTS];
    uint32_t parts;
    unsigned char *data;
};

static struct block_of_hosts block_of(const struct dti_hosts_call *c, uint32_t first, uint32_t blocks,
                                      const void *data)
{
    struct block_of_hosts b = { .data = (unsigned char *)data };
    b.parts = dti_tree_subtrees(&c->flow->reduction.tree, range_of(c->hosts, first, blocks), b.part);
    return b;
}

/* Moves the data of a block past those of a part, and returns where they were. */
static unsigned char *pass(struct block_of_hosts *b, uint32_t part, size_t count,
                           const struct dti_reduction *r)
{
    unsigned char *data = b->data;
    b->data += dti_small_bytes(count * dti_part_bytes(b->part[part], r));
    return data;
}

/* Stores the values of a segment in a block. Returns the end of them. */
static struct dti_tree_value *list_values(struct block_of_hosts *b, size_t count,
                                          const struct dti_reduction *r, struct dti_tree_value *to)
{
    for (uint32_t p = 0; p < b->parts; p++)
        *to++ = (struct dti_tree_value){ b->part[p].first, b->part[p].end, pass(b, p, count, r) };
    return to;
}

/* out = `count` elements of a part, which consists of the values from *next on. *next is moved past them. */
static void combine_part(struct dti_flow *flow, struct dti_span part, const struct dti_tree_value **next,
                         size_t count, unsigned char *out)
{
    struct dti_reduction *r = &flow->reduction;
    struct dti_tree_value value[2 * DTI_TREE_PARTS];
    uint32_t values = 0;
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): a part consists of some values */
    for (; (*next)[values].end < part.end; values++)
        ;
    values++;
    if (values == 1) {
        memcpy(out, (*next)->data, count * dti_part_bytes(part, r));
        ++*next;
        return;
    }
    size_t step = dti_tile_count(r);
    for (size_t at = 0; at < count; at += step) {
        size_t tile = count - at < step ? count - at : step;
        const struct dti_tree_value *first = value;
        for (uint32_t i = 0; i < values; i++) {
            struct dti_span span = { (*next)[i].first, (*next)[i].end };
            value[i] = (struct dti_tree_value){
                span.first, span.end, (const char *)(*next)[i].data + at * dti_part_bytes(span, r)
            };
        }
        unsigned char *to = out + at * r->accumulator_bytes;
        const void *sum = dti_fold(r, part, &first, tile, to, flow->workspace->scratch);
        if (sum != to)
            memcpy(to, sum, tile * r->accumulator_bytes);
    }
    *next += values;
}

size_t dti_hosts_combine_blocks(void *context, uint32_t first, uint32_t blocks, const void *low,
                                const void *high, void *out)
{
    const struct dti_hosts_call *c = context;
    struct dti_flow *flow = c->flow;
    struct block_of_hosts below = block_of(c, first, blocks, low),
                          above = block_of(c, first + blocks, blocks, high),
                          both = block_of(c, first, 2 * blocks, out);
    struct dti_tree_value value[2 * DTI_TREE_PARTS];
    struct dti_segment segment;
    for (bool more = dti_flow_begin(flow, &segment); more; more = dti_flow_next(flow, &segment)) {
        const struct dti_reduction *r = &flow->reduction;
        const struct dti_tree_value *next = value;
        (void)list_values(&above, segment.count, r, list_values(&below, segment.count, r, value));
        for (uint32_t p = 0; p < both.parts; p++)
            combine_part(flow, both.part[p], &next, segment.count, pass(&both, p, segment.count, r));
    }
    return (size_t)(both.data - (unsigned char *)out);
}

void dti_hosts_combined_results(const struct dti_hosts_call *c, const unsigned char *data,
                                unsigned char *result)
{
    struct dti_flow *flow = c->flow;
    struct dti_segment segment;
    for (bool more = dti_flow_begin(flow, &segment); more; more = dti_flow_next(flow, &segment)) {
        struct dti_reduction *r = &flow->reduction;
        size_t step = dti_tile_count(r);
        void *tile = flow->workspace->scratch; /* dti_finish overwrites the accumulators */
        for (size_t at = 0; at < segment.count; at += step) {
            size_t length = segment.count - at < step ? segment.count - at : step;
            memcpy(tile, data + at * r->accumulator_bytes, length * r->accumulator_bytes);
            dti_finish(r, r->tree.n, tile, tile, length, result + at * r->element_bytes);
        }
        data += dti_small_bytes(segment.count * r->accumulator_bytes);
        result += dti_small_bytes(segment.count * r->element_bytes);
    }
}
