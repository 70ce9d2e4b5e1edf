/* src/sync/plans/volume.h - calculates what hosts send to each other in a collective, without a network.
 * Pure.
 *
 * A host combines its own replicas first. What it passes on are the largest complete subtrees of the tree
 * over all replicas that lie in its range (dti_tree_subtrees), its *parts*. The bits of the result are
 * therefore those of one host. A part of one replica is that replica's element, and a larger one is an
 * accumulator, which is wider for f16 and bf16.
 *
 * A *large* message is cut into slices, one for each host. Each host sends its parts of a slice to the host
 * of the slice, which combines them and sends the result to all. That is 2 M (H - 1) / H bytes for each host
 * if each host is one part, as in the best algorithms for M bytes on H hosts (Rabenseifner, Optimization of
 * Collective Reduction Operations, ICCS 2004). It is more if hosts have several parts.
 *
 * Of a *small* message every host gets the parts of all other hosts, and combines all of them. Either each
 * host sends its parts to each other host, or the parts go in ceil(log2 H) steps: in step k a host sends to
 * the host that is 2^k below it what it has so far (Bruck et al., IEEE TPDS 8(11), 1997).
 *
 * 2^k hosts can combine what they pass on. In step s each sends the parts of its block of 2^s hosts to the
 * host at the same place of the block beside it. These are M log2 H bytes if each block is one part. */
#ifndef DTI_VOLUME_H
#define DTI_VOLUME_H

#include "cluster/ranges.h"
#include "sync/kernels/tree.h"

/* An all-reduce of `count` elements, in blocks of `block_count` elements if it is large. Slices begin at
 * multiples of `grain` elements. */
struct dti_volume_size {
    size_t count;
    size_t block_count;
    size_t grain;
    size_t element_bytes;
    size_t accumulator_bytes;
};

/* What one host sends and receives, without headers. */
struct dti_volume {
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint32_t sent_messages;
    uint32_t received_messages;
};

/* Returns the bytes of a host's parts for each element of the message. Sets *parts to their number. */
size_t dti_volume_of_parts(const struct dti_tree *tree, const struct dti_ranges *ranges, uint32_t host,
                           const struct dti_volume_size *size, uint32_t *parts);

struct dti_volume dti_volume_large(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                   uint32_t host, const struct dti_volume_size *size);
struct dti_volume dti_volume_small_direct(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                          uint32_t host, const struct dti_volume_size *size);
struct dti_volume dti_volume_small_steps(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                         uint32_t host, const struct dti_volume_size *size);
/* The number of hosts must be a power of two. */
struct dti_volume dti_volume_small_combined(const struct dti_tree *tree, const struct dti_ranges *ranges,
                                            uint32_t host, const struct dti_volume_size *size);

/* Returns how many times the bytes of hosts of one part the busiest host sends for a large message whose
 * accumulators are not wider than its elements. 1 is the best. It is (p + 1) / 2 for p parts. */
double dti_volume_factor(const struct dti_tree *tree, const struct dti_ranges *ranges);

#endif
