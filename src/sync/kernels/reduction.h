/* src/sync/kernels/reduction.h - combines values along the tree, by a kernel or the user's function. */
#ifndef DTI_REDUCTION_H
#define DTI_REDUCTION_H

#include "sync/kernels/kernel.h"
#include "sync/kernels/tree.h"

#include <stdbool.h>

/* How elements are combined. If elements are only moved, kernel and function are NULL. */
struct dti_reduction {
    const struct dti_kernel *kernel;

    /* The user's own function, which replaces the kernel. Its arguments are always accumulators in memory of
     * the strategy, and never callers' buffers. */
    ditto_combine_fn function;

    void *user;

    /* The two differ only if the kernel widens elements. An accumulator is an f32 then. */
    size_t element_bytes;
    size_t accumulator_bytes;

    /* The order in which a row is combined. {0} is a row of any length that is combined by halves. */
    struct dti_tree tree;

    /* The first error. After an error nothing is computed, read or written. */
    ditto_status failed;
};

/* Returns the reduction of a dtype and op, by halves. Op 0 means that elements are only moved. */
struct dti_reduction dti_reduction_of(dti_kernel_table *kernels, ditto_dtype dtype, ditto_op op);

/* The combination of the values [first, end) of a row, most often those of replicas. If it is a single value,
 * `data` points to its elements, which are not widened yet. */
struct dti_tree_value {
    size_t first;
    size_t end;
    const void *data;
};

/* A tile is the accumulators that a reduction handles at once. DTI_TILE_BYTES is its size. A result and one
 * level of scratch memory of this size stay in the first-level cache. */
#define DTI_TILE_BYTES    4096
#define DTI_SCRATCH_BYTES ((DTI_TREE_LEVELS + 1) * (size_t)DTI_TILE_BYTES)
static inline size_t dti_tile_count(const struct dti_reduction *r)
{
    return DTI_TILE_BYTES / r->accumulator_bytes;
}

/* Combines the values of the tree's node `span`. The values stand at *next, in order, and *next is moved past
 * them. `count` is the number of elements of each value, at most a tile. Returns accumulators, which are in
 * `out`, or in the memory of the value if there is only one. `out` overlaps no value. `scratch` has
 * DTI_SCRATCH_BYTES. If a function of the user's combines, single values are copied first, because their
 * owners may leave while it runs. */
const void *dti_fold(struct dti_reduction *r, struct dti_span span, const struct dti_tree_value **next,
                     size_t count, void *out, void *scratch);

/* Completes a combination of n values. For MEAN it divides the accumulators, and it rounds once.
 * `accumulators` is the result of dti_fold, and `out` is the `out` that dti_fold was called with. If n > 1,
 * the accumulators must be in `out`, which is overwritten. dst may be the same memory as `out`. */
void dti_finish(const struct dti_reduction *r, size_t n, const void *accumulators, void *out, size_t count,
                void *dst);

/* A scan: the prefixes of a row of n values. The prefix of the first e values is the tree over the whole row
 * without the values from e on. At a node that has value e - 1 in its left half it is the prefix of the left
 * half. At other nodes it is the value of the left half, combined with the prefix of the right half. So the
 * prefix of all n values is their reduction. The inclusive scan at value i is the prefix of i + 1 values, and
 * the exclusive one that of i values. */
struct dti_scan {
    /* The number of values in the row, at most DITTO_MAX_REPLICAS, and of those that are needed. */
    uint32_t n;
    uint32_t values;

    /* 0 if destination[i] receives the prefix of i + 1 values, and 1 if it receives that of i values. */
    uint32_t exclusive;

    /* [values] */
    const void *const *source;

    /* [n] NULL if the prefix is not needed. Element 0 of an exclusive scan is not used. */
    void *const *destination;
};

/* Computes elements [first, first + count), at most a tile, of the prefixes. destination[i] may be source[i],
 * and overlaps no other source or destination. `scratch` has DTI_SCRATCH_BYTES. If a function of the user's
 * combines, no source and no destination is touched while it runs, nor after it has failed. */
void dti_scan_block(struct dti_reduction *r, const struct dti_scan *scan, size_t first, size_t count,
                    void *scratch);

/* Calls dti_fold and dti_finish. dst = the tree over n single values, at most DITTO_MAX_REPLICAS. Value i
 * begins at element `first` of source[i]. dst overlaps no source. */
void dti_reduce_block(struct dti_reduction *r, const void *const *source, uint32_t n, size_t first,
                      size_t count, void *dst, void *scratch);
/* The same for any number of values. `value` is room for n of them. */
void dti_reduce_values(struct dti_reduction *r, const void *const *source, uint32_t n, size_t first,
                       size_t count, void *dst, void *scratch, struct dti_tree_value *value);

#endif
