/* include/ditto/slices.h - sparse values: some rows of a larger array, each with its index.
 *
 * All functions here: replica context, collective, with the rules of ditto/collective.h. */
#ifndef DITTO_SLICES_H
#define DITTO_SLICES_H

#include <ditto/collective.h>

DITTO_BEGIN

/** Rows of an array [*, row_count]: row k of `values` belongs to row indices[k] of the array. Indices may repeat. */
typedef struct ditto_slices {
    int64_t *indices; /**< [rows], not negative */
    void *values;     /**< [rows, row_count] */
    size_t rows;      /**< may differ between replicas */
    size_t row_count; /**< elements of a row; equal on all replicas */
    ditto_dtype dtype;
} ditto_slices;

/** Flags of ditto_reduce_options, for these functions. */
#define DITTO_SLICES_MERGE 1u /**< rows of one index become one row, and indices ascend */

/** All-reduce of slices: every replica receives the rows of all.
 *      without DITTO_SLICES_MERGE   the concatenation in replica order, repeated indices kept
 *      with it                      one row for each index, ascending; the rows of an index are combined by the tree over them,
 *                                   in the order of the concatenation
 *  @param in   [in]
 *  @param out  [out] indices and values have room for `rows` rows, and no overlap with each other or with any input; on
 *              DITTO_OK `rows` is the number of rows that there are, and row_count and dtype are set
 *  @param op   SUM, or MEAN: every value is divided by the number of replicas, once, at the end
 *  @retval DITTO_ERR_RANGE        a negative index; some replica's room is too small: the message names it and the room that is
 *                                 needed. This is found by all replicas together, and the run goes on
 *  @retval DITTO_ERR_INVALID      NULL; an unknown flag; buffers of this replica that overlap
 *  @retval DITTO_ERR_UNSUPPORTED  another op; MEAN of integers
 *  @retval DITTO_ERR_NO_MEMORY    merging needs some 50 bytes for each row of all, in the replica's arena
 *  Cost    two meetings; every replica reads all rows. Merging sorts all indices on every replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_slices(ditto_replica *self, const ditto_slices *in,
                                                               ditto_slices *out, ditto_op op,
                                                               const ditto_reduce_options *options);

/** All-reduce of slices into a dense array of each replica's own: for each index the rows of all replicas are combined as with
 *  DITTO_SLICES_MERGE, and the result is added to that row of `dense`, rounded once. Rows without slices stay as they are.
 *  @param dense       [in, out] shape [dense_rows, row_count], no overlap with any input
 *  @param dense_rows  equal on all replicas
 *  @retval DITTO_ERR_RANGE  an index outside [0, dense_rows) on any replica: found by all together, named, and nothing is
 *                           written. The run goes on */
DITTO_API DITTO_NODISCARD ditto_status ditto_all_reduce_slices_into(ditto_replica *self,
                                                                    const ditto_slices *in, void *dense,
                                                                    size_t dense_rows, ditto_op op,
                                                                    const ditto_reduce_options *options);

DITTO_END
#endif
