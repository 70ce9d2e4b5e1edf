/* src/sync/kernels/merge_rows.c - see merge_rows.h. */
#include "sync/kernels/merge_rows.h"

#include <stdlib.h>

static int by_index_then_order(const void *left, const void *right)
{
    const struct dti_indexed_row *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

void dti_indexed_rows_sort(struct dti_indexed_row *row, size_t count)
{
    qsort(row, count, sizeof *row, by_index_then_order);
}

size_t dti_indexed_rows_distinct(const struct dti_indexed_row *row, size_t count)
{
    size_t distinct = 0;
    for (size_t first = 0; first < count; first = dti_indexed_rows_end(row, count, first))
        distinct++;
    return distinct;
}
