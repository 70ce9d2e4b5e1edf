/* src/values/reductions/axes.c - reductions along axes, see axes.h. */
#include "values/reductions/axes.h"
#include "base/types/convert.h"
#include "sync/kernels/local_reduction.h"
#include "sync/kernels/tree.h"
#include "sync/sync.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest size of the accumulators of one task. They stay in the second-level cache. */
#define SCRATCH_BYTES ((size_t)256 << 10)

ditto_status dti_axes_read(const int32_t *axes, uint32_t count, uint32_t rank, uint32_t *mask)
{
    *mask = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (rank == 0)
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "axis %d of a scalar: it has no axes, so give none (num_axes = 0)", axes[i]);
        int64_t axis = axes[i] < 0 ? (int64_t)axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return DTI_FAIL(DITTO_ERR_RANGE, "axis %d of a tensor of rank %u: axes are %d to %d", axes[i],
                            rank, -(int)rank, (int)rank - 1);
        if (*mask & 1u << axis)
            return DTI_FAIL(DITTO_ERR_INVALID, "axis %d is listed twice: list each axis once", axes[i]);
        *mask |= 1u << axis;
    }
    return DITTO_OK;
}

static bool is_reduced(const struct dti_column *c, uint32_t axis)
{
    return (c->reduced & 1u << axis) != 0;
}

static bool last_is_reduced(const struct dti_column *c)
{
    uint32_t rank = c->part[0].rank; /* is 0 for a scalar, which has no axis */
    return rank != 0 && is_reduced(c, rank - 1);
}

/* -- planning -- */

ditto_status dti_column_plan(struct dti_column *c)
{
    size_t bytes;
    ditto_dtype dtype = c->part[0].dtype;
    bool in_f32 = dti_dtype_class_of(dtype) == DTI_CLASS_REAL_IN_F32,
         converted = c->op == DITTO_MEAN && !dti_dtype_is_float(dtype);
    for (uint32_t i = 1; i < c->parts; i++)
        for (uint32_t d = 0; d < c->part[0].rank; d++)
            if (!is_reduced(c, d) && c->part[i].shape[d] != c->part[0].shape[d])
                return DTI_FAIL(DITTO_ERR_SHAPE,
                                "dimension %u is %zu on replica %u and %zu on replica 0, and is not reduced",
                                d, c->part[i].shape[d], i, c->part[0].shape[d]);
    c->arithmetic = in_f32 ? DITTO_F32 : converted ? DITTO_F64 : dtype;
    c->kernel = dti_kernel_of(c->arithmetic, c->op == DITTO_MEAN ? DITTO_SUM : c->op);
    c->accumulator_bytes = ditto_dtype_bytes(c->arithmetic);
    c->result = (ditto_tensor){ .dtype = converted ? DITTO_F64 : dtype };
    for (uint32_t d = 0; d < c->part[0].rank; d++)
        if (!is_reduced(c, d))
            c->result.shape[c->result.rank++] = c->part[0].shape[d];
    c->start[0] = 0;
    for (uint32_t i = 0; i < c->parts; i++) {
        size_t rows = 1;
        for (uint32_t d = 0; d < c->part[i].rank; d++)
            /* This overflows only if another dimension is 0, because the tensor is in memory. */
            rows *= is_reduced(c, d) ? c->part[i].shape[d] : 1;
        c->start[i + 1] = c->start[i] + rows;
    }
    c->rows = c->start[c->parts];
    /* An input without elements may have a result that is too large. */
    DTI_TRY(dti_tensor_check(&c->result, &bytes));
    c->kept = dti_tensor_count(&c->result);
    c->blocks = c->kept == 0 ? 0 : c->rows / DITTO_BLOCK_ELEMENTS + (c->rows % DITTO_BLOCK_ELEMENTS != 0);
    c->width = last_is_reduced(c) ? 1 : SCRATCH_BYTES / (DITTO_BLOCK_ELEMENTS * c->accumulator_bytes);
    c->tiles = c->kept / c->width + (c->kept % c->width != 0);
    if (!dti_multiply(c->blocks, c->kept, &bytes) || !dti_multiply(bytes, c->accumulator_bytes, &bytes))
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu blocks of %zu elements have more bytes than size_t can count",
                        c->blocks, c->kept);
    return DITTO_OK;
}

/* -- addresses of elements -- */

/* Returns the offset, in elements, of coordinate `at` along the reduced axes or along the kept axes. */
static size_t offset_of(const struct dti_column *c, const ditto_tensor *part, size_t at, bool reduced)
{
    size_t offset = 0, stride = 1;
    for (uint32_t d = part->rank; d-- > 0;) {
        if (is_reduced(c, d) == reduced) {
            offset += at % part->shape[d] * stride;
            at /= part->shape[d];
        }
        stride *= part->shape[d];
    }
    return offset;
}

/* Copies `count` elements from coordinate `at` on, one contiguous run after the other. The coordinate is that
 * along the reduced axes if the last axis is reduced, and that along the kept axes otherwise. `fixed` is the
 * offset that belongs to the other coordinate. */
static char *copy_runs(const struct dti_column *c, const ditto_tensor *part, size_t fixed, size_t at,
                       size_t count, char *to)
{
    size_t element_bytes = ditto_dtype_bytes(part->dtype), run = 1;
    for (uint32_t d = part->rank; d-- > 0 && is_reduced(c, d) == last_is_reduced(c);)
        run *= part->shape[d];
    while (count != 0) {
        size_t left = run - at % run, piece = left < count ? left : count;
        size_t from = fixed + offset_of(c, part, at, last_is_reduced(c));
        memcpy(to, (const char *)part->data + from * element_bytes, piece * element_bytes);
        to += piece * element_bytes;
        at += piece;
        count -= piece;
    }
    return to;
}

/* -- folding -- */

static void widen(const struct dti_column *c, const void *elements, size_t count, void *accumulators)
{
    ditto_dtype dtype = c->part[0].dtype;
    if (dtype == c->arithmetic)
        memcpy(accumulators, elements, count * c->accumulator_bytes);
    else if (c->arithmetic == DITTO_F64)
        dti_to_f64(accumulators, dtype, elements, count);
    else
        dti_kernel_of(dtype, DITTO_SUM)->widen(accumulators, elements, count);
}

/* Copies kept elements [k, k + width) of rows [first, end). If the last axis is kept, the result has shape
 * [end - first][width]. */
static void collect_block(const struct dti_column *c, size_t first, size_t end, size_t k, size_t width,
                          char *to)
{
    for (uint32_t i = 0; first < end; i++) {
        if (c->start[i + 1] <= first)
            continue;
        size_t upto = c->start[i + 1] < end ? c->start[i + 1] : end;
        if (last_is_reduced(c)) /* width is 1 */
            to = copy_runs(c, &c->part[i], offset_of(c, &c->part[i], k, false), first - c->start[i],
                           upto - first, to);
        else
            for (size_t row = first - c->start[i]; row < upto - c->start[i]; row++)
                to = copy_runs(c, &c->part[i], offset_of(c, &c->part[i], row, true), k, width, to);
        first = upto;
    }
}

static void fold_task(const struct dti_column *c, size_t task, char *elements, char *accumulators)
{
    size_t block = task / c->tiles, k = task % c->tiles * c->width, first = block * DITTO_BLOCK_ELEMENTS;
    size_t end = c->rows - first < DITTO_BLOCK_ELEMENTS ? c->rows : first + DITTO_BLOCK_ELEMENTS;
    size_t width = c->kept - k < c->width ? c->kept - k : c->width, rows = end - first;
    collect_block(c, first, end, k, width, elements);
    widen(c, elements, rows * width, accumulators);
    dti_fold_rows(c->kernel, accumulators, rows, width, c->accumulator_bytes);
    memcpy(c->partial + (block * c->kept + k) * c->accumulator_bytes, accumulators,
           width * c->accumulator_bytes);
}

ditto_status dti_column_fold(const struct dti_column *c, size_t first, size_t end)
{
    size_t elements = DITTO_BLOCK_ELEMENTS * c->width;
    char *accumulators = aligned_alloc(DTI_CACHE_LINE, elements * c->accumulator_bytes * 2);
    if (accumulators == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to reduce along axes");
    for (size_t task = first; task < end; task++)
        fold_task(c, task, accumulators + elements * c->accumulator_bytes, accumulators);
    free(accumulators);
    return DITTO_OK;
}

/* -- combining blocks -- */

/* Combines blocks [first, end) in the memory of the first of them, and returns that memory. */
static char *combine_blocks(const struct dti_column *c, size_t first, size_t end)
{
    char *left = c->partial + first * c->kept * c->accumulator_bytes;
    if (end - first == 1)
        return left;
    size_t middle = dti_tree_split(first, end);
    combine_blocks(c, first, middle);
    c->kernel->combine(left, left, combine_blocks(c, middle, end), c->kept);
    return left;
}

/* Divides f32 in f64. Rounding the quotient of two f32 values first to f64 and then to f32 gives the same
 * result as rounding it once, because 53 >= 2 * 24 + 2 bits (Figueroa, SIGNUM Newsletter 30(3), 1995). */
static void divide(ditto_dtype arithmetic, void *accumulators, size_t count, double by)
{
    size_t reals = dti_dtype_class_of(arithmetic) == DTI_CLASS_COMPLEX ? 2 * count : count;
    if (arithmetic == DITTO_F32 || arithmetic == DITTO_C64)
        for (size_t i = 0; i < reals; i++)
            ((float *)accumulators)[i] = (float)((double)((float *)accumulators)[i] / by);
    else
        for (size_t i = 0; i < reals; i++)
            ((double *)accumulators)[i] /= by;
}

void dti_column_finish(const struct dti_column *c)
{
    if (c->kept == 0)
        return;
    if (c->rows == 0) { /* the neutral element of the operator, or NaN for MEAN */
        double neutral = c->op == DITTO_MIN    ? INFINITY
                         : c->op == DITTO_MAX  ? -INFINITY
                         : c->op == DITTO_PROD ? 1
                         : c->op == DITTO_MEAN ? NAN
                                               : 0;
        dti_number_fill(c->result.dtype, c->result.data, c->kept, neutral);
        return;
    }
    char *all = combine_blocks(c, 0, c->blocks);
    if (c->op == DITTO_MEAN)
        divide(c->arithmetic, all, c->kept, (double)c->rows);
    if (c->arithmetic == DITTO_F32 && c->result.dtype != DITTO_F32)
        dti_kernel_of(c->result.dtype, DITTO_SUM)->narrow(c->result.data, all, c->kept);
    else
        memcpy(c->result.data, all, c->kept * c->accumulator_bytes);
}
