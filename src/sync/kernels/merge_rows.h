/* src/sync/kernels/merge_rows.h - sorts rows by their index, and combines rows with equal indices. Pure. */
#ifndef DTI_MERGE_ROWS_H
#define DTI_MERGE_ROWS_H

#include "sync/kernels/reduction.h"

#include <stddef.h>
#include <stdint.h>

/* Rows are combined in tiles of this number of bytes of accumulators. Their scratch memory is enough for a
 * tree of 48 levels. No address space holds the indices of 2^48 rows. */
#define DTI_MERGE_TILE_BYTES    ((size_t)DTI_TILE_BYTES / 2)
#define DTI_MERGE_SCRATCH_BYTES (48 * DTI_MERGE_TILE_BYTES)

/* A row of the slices of any replica. */
struct dti_indexed_row {
    int64_t index;
    size_t order; /* the row's number among the rows of all replicas */
    const char *values;
};

/* Sorts rows by index, and rows of the same index by order. */
void dti_indexed_rows_sort(struct dti_indexed_row *row, size_t count);

/* Returns the end of the sorted rows that have the same index as row `first`. */
static inline size_t dti_indexed_rows_end(const struct dti_indexed_row *row, size_t count, size_t first)
{
    size_t end = first + 1;
    while (end < count && row[end].index == row[first].index)
        end++;
    return end;
}

/* Returns the number of different indices of sorted rows. */
size_t dti_indexed_rows_distinct(const struct dti_indexed_row *row, size_t count);

/* Combines elements [at, at + count) of `rows` rows along the tree over these rows. `count` is at most a
 * merge tile. Stores accumulators, not yet divided, in `out`. `value` has room for `rows` values, and
 * `scratch` has DTI_MERGE_SCRATCH_BYTES. The reduction has a kernel. */
void dti_indexed_rows_fold(struct dti_reduction *r, const struct dti_indexed_row *row, size_t rows, size_t at,
                           size_t count, struct dti_tree_value *value, void *out, void *scratch);

#endif
