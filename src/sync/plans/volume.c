/* src/sync/plans/volume.c - calculates what hosts send to each other. Pure. */
#include "sync/plans/volume.h"

/* Returns the bytes of the parts of `hosts` hosts for each element, and sets *parts to their number. */
static size_t of_block(const struct dti_tree *tree, const struct dti_ranges *ranges, uint32_t first,
                       uint32_t hosts, const struct dti_volume_size *size, uint32_t *parts)
{
    struct dti_span part[DTI_TREE_PARTS];
    struct dti_span own = { ranges->start[first], ranges->start[first + hosts] };
    size_t bytes = 0;
    *parts = dti_tree_subtrees(tree, own, part);
    for (uint32_t p = 0; p < *parts; p++)
        bytes += part[p].end - part[p].first == 1 ? size->element_bytes : size->accumulator_bytes;
    return bytes;
}

size_t dti_volume_of_parts(const struct dti_tree *tree, const struct dti_ranges *ranges, uint32_t host,
                           const struct dti_volume_size *size, uint32_t *parts)
{
    return of_block(tree, ranges, host, 1, size, parts);
}

/* Returns the number of elements of a host's slice of a block. */
static size_t slice_of(const struct dti_ranges *ranges, uint32_t host, const struct dti_volume_size *size,
                       size_t block_count)
{
    size_t first, end;
    dti_tree_part(block_count, ranges->hosts, host, size->grain, &first, &end);
    return end - first;
}

/* Adds a message, which is not sent if it is empty. */
static void add(uint64_t *bytes, uint32_t *messages, size_t message)
{
    *bytes += message;
    *messages += message != 0;
}

static void add_block(struct dti_volume *v, const struct dti_tree *tree, const struct dti_ranges *ranges,
                      uint32_t host, const struct dti_volume_size *size, size_t block_count)
{
    uint32_t parts;
    size_t own_slice = slice_of(ranges, host, size, block_count);
    size_t own = dti_volume_of_parts(tree, ranges, host, size, &parts);
    for (uint32_t other = 0; other < ranges->hosts; other++) {
        size_t slice = slice_of(ranges, other, size, block_count);
        if (other == host)
            continue;
        add(&v->sent_bytes, &v->sent_messages, slice * own);
        add(&v->sent_bytes, &v->sent_messages, own_slice * size->element_bytes);
        add(&v->received_bytes, &v->received_messages,
            own_slice * dti_volume_of_parts(tree, ranges, other, size, &parts));
        add(&v->received_bytes, &v->received_messages, slice * size->element_bytes);
    }
}

struct dti_volume dti_volume_large(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                   uint32_t host, const struct dti_volume_size *size)
{
    struct dti_volume v = { 0 };
    for (size_t first = 0; first < size->count; first += size->block_count) {
        size_t left = size->count - first;
        add_block(&v, tree, ranges, host, size, left < size->block_count ? left : size->block_count);
    }
    return v;
}

struct dti_volume dti_volume_small_direct(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                          uint32_t host, const struct dti_volume_size *size)
{
    struct dti_volume v = { 0 };
    uint32_t parts;
    for (uint32_t other = 0; other < ranges->hosts; other++)
        if (other != host) {
            add(&v.sent_bytes, &v.sent_messages,
                size->count * dti_volume_of_parts(tree, ranges, host, size, &parts));
            add(&v.received_bytes, &v.received_messages,
                size->count * dti_volume_of_parts(tree, ranges, other, size, &parts));
        }
    return v;
}

/* Returns the bytes of the parts of `count` hosts from `first` on, in a ring. */
static size_t of_hosts(const struct dti_tree *tree, const struct dti_ranges *ranges, uint32_t first,
                       uint32_t count, const struct dti_volume_size *size)
{
    size_t bytes = 0;
    uint32_t parts;
    for (uint32_t i = 0; i < count; i++)
        bytes += size->count * dti_volume_of_parts(tree, ranges, (first + i) % ranges->hosts, size, &parts);
    return bytes;
}

struct dti_volume dti_volume_small_steps(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                         uint32_t host, const struct dti_volume_size *size)
{
    struct dti_volume v = { 0 };
    /* Before each step a host has the parts of `known` hosts, itself and those above it. */
    for (uint32_t known = 1; known < ranges->hosts; known *= 2) {
        uint32_t count = ranges->hosts - known < known ? ranges->hosts - known : known;
        add(&v.sent_bytes, &v.sent_messages, of_hosts(tree, ranges, host, count, size));
        add(&v.received_bytes, &v.received_messages,
            of_hosts(tree, ranges, (host + known) % ranges->hosts, count, size));
    }
    return v;
}

struct dti_volume dti_volume_small_combined(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                            uint32_t host, const struct dti_volume_size *size)
{
    struct dti_volume v = { 0 };
    uint32_t parts;
    for (uint32_t block = 1; block < ranges->hosts; block *= 2) {
        uint32_t own = host / block * block, other = own ^ block;
        add(&v.sent_bytes, &v.sent_messages, size->count * of_block(tree, ranges, own, block, size, &parts));
        add(&v.received_bytes, &v.received_messages,
            size->count * of_block(tree, ranges, other, block, size, &parts));
    }
    return v;
}

double dti_volume_factor(const struct dti_tree *tree, const struct dti_ranges *ranges)
{
    const struct dti_volume_size one = { .element_bytes = 1, .accumulator_bytes = 1 };
    uint32_t most = 1, parts;
    for (uint32_t host = 0; host < ranges->hosts; host++) {
        dti_volume_of_parts(tree, ranges, host, &one, &parts);
        most = parts > most ? parts : most;
    }
    return (most + 1) / 2.0;
}
