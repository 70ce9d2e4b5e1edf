/* src/values/reductions/axes.h - reductions along axes: the rows of all replicas, one after the other, in blocks. Pure.
 *
 * A tensor's elements have two coordinates: along the reduced axes (its row, in row-major order), and along the kept
 * ones. The rows of all parts, in order, make one long column per kept element; it is cut into blocks of DITTO_BLOCK, a
 * block is folded, and the blocks' results are combined by the tree over blocks. So how rows are spread over parts does
 * not matter. */
#ifndef DTI_AXES_H
#define DTI_AXES_H

#include <ditto/tensor.h>

#include "sync/sync.h"

struct dti_column {
    const ditto_tensor *part; /* [parts], of one dtype and rank */
    uint32_t parts;
    uint32_t reduced; /* a bit for each axis */
    ditto_op op;
    ditto_tensor result; /* dtype, rank and shape of what comes out */
    ditto_dtype
        arithmetic; /* of accumulators: f32 for halves, f64 for a mean of integers, else the dtype itself */
    const struct dti_kernel *kernel; /* of the op, on accumulators */
    size_t accumulator_bytes;
    size_t *start; /* [parts + 1] rows before each part; the caller's memory */
    size_t rows, kept, blocks;
    size_t width, tiles; /* kept elements that are worked on together; how many such tiles there are */
    char *partial;       /* [blocks][kept] accumulators; the caller's memory */
};

/* Reads axes: negative ones count from the end. RANGE, INVALID (twice). */
ditto_status dti_axes_read(const int32_t *axes, uint32_t count, uint32_t rank, uint32_t *mask);
/* Fills in the rest. SHAPE: parts differ along an axis that is kept. RANGE: more than memory has. */
ditto_status dti_column_plan(struct dti_column *column);
/* Blocks' results of tasks [first, end), of blocks x tiles. NO_MEMORY. */
ditto_status dti_column_fold(const struct dti_column *column, size_t first, size_t end);
/* When all are there: column->result.data. */
void dti_column_finish(const struct dti_column *column);

#endif
