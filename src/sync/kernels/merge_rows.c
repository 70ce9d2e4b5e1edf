/* src/sync/kernels/merge_rows.c - see merge_rows.h. */
#include "sync/kernels/merge_rows.h"

#include <stdlib.h>
#include <string.h>

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

void dti_indexed_rows_fold(struct dti_reduction *r, const struct dti_indexed_row *row, size_t rows, size_t at,
                           size_t count, struct dti_tree_value *value, void *out, void *scratch)
{
    const struct dti_tree_value *next = value;
    for (size_t k = 0; k < rows; k++)
        value[k] = (struct dti_tree_value){ k, k + 1, row[k].values + at * r->element_bytes };
    const void *sum = dti_fold(r, (struct dti_span){ 0, rows }, &next, count, out, scratch);
    if (sum != out)
        memcpy(out, sum, count * r->accumulator_bytes);
}
