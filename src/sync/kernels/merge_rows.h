/* src/sync/kernels/merge_rows.h - sorts rows by their index, so that rows with equal indices can be merged.
 * Pure. */
#ifndef DTI_MERGE_ROWS_H
#define DTI_MERGE_ROWS_H

#include <stddef.h>
#include <stdint.h>

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

#endif
