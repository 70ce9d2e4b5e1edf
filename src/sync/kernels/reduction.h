/* src/sync/kernels/reduction.h - combining values along the tree, with a kernel (pure) or with the caller's own function. */
#ifndef DTI_REDUCTION_H
#define DTI_REDUCTION_H

#include "sync/kernels/kernel.h"
#include "sync/kernels/tree.h"

#include <stdbool.h>

/* How elements become one. All zero but element_bytes: they are not combined, only moved. */
struct dti_reduction {
    const struct dti_kernel *kernel;
    /* The user's own function. Then there is no kernel. It is given accumulators alone, never the values. */
    ditto_combine_fn function;
    void *user;
    size_t element_bytes, accumulator_bytes; /* they differ for f16 and bf16 alone */
    ditto_status failed; /* the first error; nothing is computed, read or written after it */
};

struct dti_reduction dti_reduction_of(dti_kernel_table *kernels, ditto_dtype dtype,
                                      ditto_op op); /* op 0: moved */

/* The combination of replicas [first, end); of a single one: its element as it lies, not widened yet. */
struct dti_tree_value {
    size_t first, end;
    const void *data;
};

/* A tile: the accumulators that a reduction handles at once. One result and one scratch level stay in the first-level cache. */
#define DTI_TILE_BYTES    4096
#define DTI_SCRATCH_BYTES ((DTI_TREE_LEVELS + 1) * (size_t)DTI_TILE_BYTES)
static inline size_t dti_tile_count(const struct dti_reduction *r)
{
    return DTI_TILE_BYTES / r->accumulator_bytes;
}

/* Combines `count` elements, at most a tile, of the node `span` of the tree, whose values stand at *next in
 * order; moves *next past them. Gives accumulators: `out`, or the one value where it lies. `out` overlaps no
 * value; `scratch` has DTI_SCRATCH_BYTES. If a function of the user's combines, single values are copied
 * first, because their owners may leave while it runs. */
const void *dti_fold(struct dti_reduction *r, struct dti_span span, const struct dti_tree_value **next,
                     size_t count, void *out, void *scratch);

/* What comes after the last combination over n: MEAN's division, the one rounding. `accumulators` is what dti_fold gave; dst may
 * be the same. `out` is dti_fold's. */
void dti_finish(const struct dti_reduction *r, size_t n, const void *accumulators, void *out, size_t count,
                void *dst);

/* Both: dst = the tree over n single values, source[i] + first elements. dst overlaps no source. */
void dti_reduce_block(struct dti_reduction *r, const void *const *source, uint32_t n, size_t first,
                      size_t count, void *dst, void *scratch);

#endif
