/* src/values/reductions/axes.h - reductions along axes. All functions are pure.
 *
 * Each element of a tensor has two coordinates. Its position along the reduced axes, in row-major order, is
 * its row. Its position along the other axes is its kept element. The rows of all parts, in the order of the
 * parts, form one long column for each kept element. The column is cut into blocks of DITTO_BLOCK_ELEMENTS
 * rows. Each block is folded, and the results of the blocks are combined by the tree over blocks. The
 * result therefore does not depend on how the rows are distributed over the parts. */
#ifndef DTI_AXES_H
#define DTI_AXES_H

#include "sync/kernels/kernel.h"

/* A reduction along axes: its input, its plan and its intermediate results. */
struct dti_column {
    const ditto_tensor *part; /* [parts], of the same dtype and rank */
    uint32_t parts;
    uint32_t reduced; /* one bit for each reduced axis */
    ditto_op op;
    ditto_tensor result; /* dtype, rank and shape of the result */

    /* The dtype of accumulators: f32 for a dtype that is computed in f32, f64 for a mean of integers,
     * otherwise the dtype of the parts. */
    ditto_dtype arithmetic;
    const struct dti_kernel *kernel; /* applies op to accumulators */
    size_t accumulator_bytes;

    /* [parts + 1]. The number of rows before each part, and last the number of all rows. The memory is the
     * caller's. */
    size_t *start;
    size_t rows, kept, blocks;

    /* The number of kept elements in a tile. Those of one tile are processed together. */
    size_t width;
    size_t tiles;  /* the number of tiles */
    char *partial; /* [blocks][kept] accumulators in the caller's memory */
};

/* Converts a list of axes to a mask. Negative axes count from the end. Returns DITTO_ERR_RANGE if there is no
 * such axis, and DITTO_ERR_INVALID if an axis occurs twice. */
ditto_status dti_axes_read(const int32_t *axes, uint32_t count, uint32_t rank, uint32_t *mask);
/* Plans a reduction. The caller has set part, parts, reduced, op and start. This function fills the array
 * `start` and sets the other members, except result.data and partial. Returns DITTO_ERR_SHAPE if parts differ
 * along an axis that is kept, and DITTO_ERR_RANGE if size_t cannot hold the size of `partial`. */
ditto_status dti_column_plan(struct dti_column *column);
/* Executes tasks [first, end). A task folds one block of one tile, so there are blocks * tiles of them.
 * Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_column_fold(const struct dti_column *column, size_t first, size_t end);
/* Combines the results of the blocks into column->result.data. All tasks must have been executed. */
void dti_column_finish(const struct dti_column *column);

#endif
