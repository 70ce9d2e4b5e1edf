/* src/sync/kernels/local_reduction.h - reductions by one thread, and the check of dtype and op. Any
 * thread may call these functions, in the default floating-point environment. */
#ifndef DTI_LOCAL_REDUCTION_H
#define DTI_LOCAL_REDUCTION_H

#include "sync/kernels/kernel.h"
#include "sync/kernels/tree.h"

/* Returns the arithmetic of a dtype and op that have passed dti_reduction_check. */
static inline const struct dti_kernel *dti_kernel_of(ditto_dtype dtype, ditto_op op)
{
    return &(*dti_kernels_best())[dtype][op];
}

/* out = left op right, elementwise. `out` may be either of the two. */
void dti_combine_two(ditto_dtype dtype, ditto_op op, void *out, const void *left, const void *right,
                     size_t count);

/* out = value / divisor, elementwise, rounded once. For floating and complex dtypes. `out` may be `value`. */
void dti_divide(ditto_dtype dtype, void *out, const void *value, size_t count, uint32_t divisor);

/* dst = source[0..n) combined along the tree over n values (tree.h), by the calling thread alone. dst
 * overlaps no source. Fails with NO_MEMORY. */
ditto_status dti_reduce_local(ditto_dtype dtype, ditto_op op, const struct dti_tree *tree,
                              const void *const *source, size_t count, void *dst);

/* Combines rows of accumulators, at least one, in the memory of the first row. Of m rows, row j + ceil(m / 2)
 * is combined with row j, and this is repeated until one row is left. */
void dti_fold_rows(const struct dti_kernel *kernel, void *rows, size_t num_rows, size_t row_count,
                   size_t accumulator_bytes);

/* Fails with INVALID, RANGE or UNSUPPORTED if a collective cannot combine dtype by op. */
ditto_status dti_reduction_check(ditto_dtype dtype, ditto_op op);

#endif
