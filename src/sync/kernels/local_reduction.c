/* src/sync/kernels/local_reduction.c - reductions by one thread, and the check of dtype and op. See
 * local_reduction.h. */
#include "sync/kernels/local_reduction.h"
#include "base/errors/status.h"
#include "sync/kernels/reduction.h"

#include <stdlib.h>
#include <string.h>

void dti_combine_two(ditto_dtype dtype, ditto_op op, void *out, const void *left, const void *right,
                     size_t count)
{
    (*dti_kernels_best())[dtype][op].combine_into_two(out, out, left, right, count);
}

void dti_divide(ditto_dtype dtype, void *out, const void *value, size_t count, uint32_t divisor)
{
    struct dti_reduction r = dti_reduction_of(dti_kernels_best(), dtype, DITTO_MEAN);
    alignas(DTI_CACHE_LINE) char tile[1024]; /* of accumulators, which may be wider than elements */
    size_t chunk = sizeof tile / r.accumulator_bytes;
    for (size_t at = 0; at < count; at += chunk) {
        size_t part = count - at < chunk ? count - at : chunk;
        const char *from = (const char *)value + at * r.element_bytes;
        if (r.kernel->widen != NULL)
            r.kernel->widen(tile, from, part);
        else
            memcpy(tile, from, part * r.element_bytes);
        dti_finish(&r, divisor, tile, tile, part, (char *)out + at * r.element_bytes);
    }
}

ditto_status dti_reduce_local(ditto_dtype dtype, ditto_op op, const struct dti_tree *tree,
                              const void *const *source, size_t count, void *dst)
{
    struct dti_reduction r = dti_reduction_of(dti_kernels_best(), dtype, op);
    r.tree = *tree;
    size_t chunk = dti_tile_count(&r);
    uint32_t n = (uint32_t)tree->n;
    char *scratch = malloc(DTI_SCRATCH_BYTES);
    struct dti_tree_value *value = n > DITTO_MAX_REPLICAS ? malloc(n * sizeof *value) : NULL;
    if (scratch == NULL || (n > DITTO_MAX_REPLICAS && value == NULL)) {
        free(scratch);
        free(value);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a reduction of %u values", n);
    }
    for (size_t first = 0; first < count; first += chunk) {
        size_t part = count - first < chunk ? count - first : chunk;
        char *to = (char *)dst + first * r.element_bytes;
        if (value == NULL)
            dti_reduce_block(&r, source, n, first, part, to, scratch);
        else
            dti_reduce_values(&r, source, n, first, part, to, scratch, value);
    }
    free(value);
    free(scratch);
    return DITTO_OK;
}

void dti_fold_rows(const struct dti_kernel *kernel, void *rows, size_t num_rows, size_t row_count,
                   size_t accumulator_bytes)
{
    for (size_t half; num_rows > 1; num_rows = half) {
        half = (num_rows + 1) / 2;
        kernel->combine(rows, rows, (char *)rows + half * row_count * accumulator_bytes,
                        (num_rows - half) * row_count);
    }
}

ditto_status dti_reduction_check(ditto_dtype dtype, ditto_op op)
{
    if (!dti_dtype_valid(dtype))
        return DTI_FAIL(DITTO_ERR_INVALID, "%d is not a dtype: use one of DITTO_DTYPE_LIST", (int)dtype);
    if (op < DITTO_SUM || op > DITTO_XOR)
        return DTI_FAIL(DITTO_ERR_RANGE, "%d is not an op: SUM, MEAN, MIN, MAX, PROD, AND, OR or XOR",
                        (int)op);
    if (op == DITTO_MEAN && !dti_dtype_is_float(dtype))
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "MEAN of %s: the result is not an integer. Use SUM and divide, or use a floating dtype",
            ditto_dtype_name(dtype));
    if ((*dti_kernels_best())[dtype][op].combine == NULL)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "%s of %s: the dtype has no such operation (complex numbers have no order, floats have no "
            "bitwise operations, and bool has AND, OR and XOR only)",
            ditto_op_name(op), ditto_dtype_name(dtype));
    return DITTO_OK;
}
