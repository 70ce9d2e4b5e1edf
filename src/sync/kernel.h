/* src/sync/kernel.h - the arithmetic of reductions, by table. Pure; runs in the default floating-point environment.
 *
 * An element is combined as an *accumulator*: itself, or, for f16 and bf16, the f32 that it is widened to. */
#ifndef DTI_KERNEL_H
#define DTI_KERNEL_H

#include <ditto/collective.h>
#include <ditto/strategy.h> /* ditto_kernels */

#include "sync/tree.h"

struct dti_kernel {
    dti_combine *combine; /* of accumulators; NULL: the dtype does not have this op */
    /* a op b of elements into two places in one pass, rounded once; each of them may be a or b itself */
    void (*combine_into_two)(void *out0, void *out1, const void *a, const void *b, size_t count);
    void (*divide)(void *accumulators, size_t count, uint32_t divisor); /* for MEAN; NULL: none */
    dti_widen *widen; /* elements to accumulators; NULL: they are the same */
    void (*narrow)(void *elements, const void *accumulators, size_t count); /* back; with widen */
};

typedef const struct dti_kernel dti_kernel_table[DITTO_BOOL + 1][DITTO_XOR + 1];

/* The table for a wish. UNSUPPORTED: this processor, or this build, does not have it. RANGE: no such wish. */
ditto_status dti_kernels_choose(ditto_kernels wish, dti_kernel_table **out);
dti_kernel_table *dti_kernels_best(void); /* what DITTO_KERNELS_DEFAULT gives */

/* Bytes of an accumulator. */
static inline size_t dti_accumulator_bytes(const struct dti_kernel *kernel, ditto_dtype dtype)
{
    return kernel->widen != NULL ? sizeof(float) : ditto_dtype_bytes(dtype);
}

/* Elements of a block that dti_reduce_block can take at once. */
#define DTI_TILE_BYTES    4096 /* one result and one scratch level stay in the first-level cache */
#define DTI_SCRATCH_BYTES ((DTI_TREE_LEVELS + 1) * (size_t)DTI_TILE_BYTES)
static inline size_t dti_block_count(const struct dti_kernel *kernel, ditto_dtype dtype)
{
    return DTI_TILE_BYTES / dti_accumulator_bytes(kernel, dtype);
}

/* dst[0 .. count) = the tree over source[0 .. n)[first .. first + count), MEAN divided, rounded once; count is at most
 * dti_block_count. dst overlaps no source; `scratch` has DTI_SCRATCH_BYTES. */
void dti_reduce_block(const struct dti_kernel *kernel, ditto_dtype dtype, const void *const *source, uint32_t n,
                      size_t first, size_t count, void *dst, void *scratch);

#endif
