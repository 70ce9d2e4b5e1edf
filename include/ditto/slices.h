/* include/ditto/slices.h - all-reduce of sparse values: rows of a larger array with their indices.
 *
 * The function is collective, in replica context. The rules of ditto/collective.h hold. */
#ifndef DITTO_SLICES_H
#define DITTO_SLICES_H

#include <ditto/collective.h>

DITTO_BEGIN

/** Rows of an array of shape [*, row_count]. Row k of `values` belongs to row indices[k] of the array.
 *  Indices may be repeated. */
typedef struct ditto_slices {
    int64_t *indices; /**< array of `rows` indices, none negative */
    void *values;     /**< array of shape [rows, row_count] */
    size_t rows;      /**< number of rows. It may differ between replicas */

    /** Number of elements in one row. It must be equal on all replicas. */
    size_t row_count;

    ditto_dtype dtype; /**< dtype of `values` */
} ditto_slices;

/** Flag of ditto_reduce_options for ditto_all_reduce_slices: rows with the same index become one row, and
 *  indices ascend. */
#define DITTO_SLICES_MERGE 1u

/** Flag of ditto_reduce_options for ditto_all_reduce_slices: the rows are merged, and added to a dense array
 *  that each replica has. */
#define DITTO_SLICES_DENSE 2u

/** All-reduce of slices: every replica receives the rows of all replicas.
 *
 *  Without DITTO_SLICES_MERGE the result is the concatenation in replica order, with repeated indices. With
 *  this flag there is one row for each index, in ascending order. The rows of an index are combined by the
 *  reduction tree over these rows, in the order of the concatenation.
 *
 *  With DITTO_SLICES_DENSE dst->values is an array of shape [dst->rows, row_count], and dst->rows is equal on
 *  all replicas. The combined row of each index is added to that row of the array, and rounded once. Rows
 *  without slices are unchanged. The other fields of dst are neither read nor set.
 *
 *  @param self     the calling replica
 *  @param src      the slices of this replica
 *  @param dst      [in, out] the result. Before the call, `rows` is the capacity of `indices` and `values`,
 *                  which overlap neither each other nor any input. On DITTO_OK, `rows` is the number of rows
 *                  of the result, and row_count and dtype are set. With DITTO_SLICES_DENSE see above
 *  @param op       DITTO_SUM, or DITTO_MEAN: every value is divided by the number of replicas, once, at the
 *                  end
 *  @param options  the options, or NULL for the defaults
 *  @return DITTO_OK, an error of ditto_all_reduce, or one of:
 *  @retval DITTO_ERR_RANGE        an index on any replica is negative, and the message names the replica and
 *                                 the index. Or the capacity of a replica is too small, and the message names
 *                                 the replica and the capacity that is needed. Or, with DITTO_SLICES_DENSE,
 *                                 an index is not that of a row, and nothing is written. All replicas return
 *                                 the same error, and the run continues
 *  @retval DITTO_ERR_DIVERGED     dtype, row_count, op or flags differ between replicas, or dst->rows with
 *                                 DITTO_SLICES_DENSE
 *  @retval DITTO_ERR_UNSUPPORTED  op is neither DITTO_SUM nor DITTO_MEAN, or the dtype does not have it
 *  @retval DITTO_ERR_NO_MEMORY    the replica's arena has no memory for merging, which needs about 50 bytes
 *                                 for each row of all replicas. The run is stopped
 *  @par Cost
 *  The call takes two meetings. Every replica reads all rows. With a flag every replica also sorts all
 *  indices. With DITTO_SLICES_DENSE nothing is allocated. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_slices(ditto_replica *self, const ditto_slices *src,
                                                               ditto_slices *dst, ditto_op op,
                                                               const ditto_reduce_options *options);

DITTO_END
#endif
