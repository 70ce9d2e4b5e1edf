/* src/values/reductions/value_slices.c - concatenates and merges the slices of all replicas, and makes dense
 * arrays of them. The calling thread does all the work, in the library's floating-point environment. */
#include "sync/kernels/merge_rows.h"
#include "sync/sync.h"
#include "values/reductions/reductions.h"
#include "values/values.h"

#include <stdlib.h>
#include <string.h>

/* Makes a value of `rows` slices, like those of `like`, with memory for their elements and indices. All
 * replicas share the same slices. */
static ditto_status make_slices(const ditto_value *like, size_t rows, ditto_value **out)
{
    ditto_value *value;
    ditto_slices first = dti_slices_of(like, 0);
    size_t count, bytes;
    if (!dti_multiply(rows, first.row_count, &count) ||
        !dti_multiply(count, ditto_dtype_bytes(first.dtype), &bytes))
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu slices of %zu elements have more bytes than size_t can count",
                        rows, first.row_count);
    size_t aligned = (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
    DTI_TRY(dti_value_make(like->strategy, DITTO_VALUE_SLICES, &value));
    value->plain = (ditto_tensor){ .dtype = DITTO_U8,
                                   .rank = 1,
                                   .shape = { aligned + (rows + 8) * sizeof(int64_t) } };
    ditto_status status = dti_value_allocate(value);
    for (uint32_t i = 0; i < dti_base_of(like->strategy)->num_replicas && status == DITTO_OK; i++) {
        value->part[i] = (ditto_tensor){
            .data = value->plain.data, .dtype = first.dtype, .rank = 2, .shape = { rows, first.row_count }
        };
        value->index[i] = (int64_t *)(void *)((char *)value->plain.data + aligned);
    }
    value->dense_rows = like->dense_rows;
    return dti_value_finish(value, status, out);
}

/* Returns the number of parts that are reduced. It is 1 for a value that ditto_value_select or a reduction
 * has made, because such a value has the same slices for all replicas. */
static uint32_t parts_of(const ditto_value *v)
{
    uint32_t n = dti_base_of(v->strategy)->num_replicas;
    return n > 1 && v->index[0] == v->index[1] && v->part[0].data == v->part[1].data ? 1 : n;
}

/* Checks that op is SUM or MEAN, and that the dtype has it. If the slices are the same for all replicas, also
 * checks that op may be applied to such a value. */
static ditto_status check_op(const ditto_value *v, ditto_op op)
{
    if (op != DITTO_SUM && op != DITTO_MEAN)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s of slices is not supported: use SUM or MEAN",
                        ditto_op_name(op));
    DTI_TRY(dti_reduction_check(v->part[0].dtype, op));
    return parts_of(v) == 1 ? dti_reduce_check_once(v->strategy, op) : DITTO_OK;
}

ditto_status dti_concatenate_slices(const ditto_value *v, ditto_op op, ditto_value **out)
{
    uint32_t parts = parts_of(v);
    size_t rows = 0, row_bytes = v->part[0].shape[1] * ditto_dtype_bytes(v->part[0].dtype);
    DTI_TRY(check_op(v, op));
    for (uint32_t i = 0; i < parts; i++)
        rows += v->part[i].shape[0];
    DTI_TRY(make_slices(v, rows, out));
    ditto_slices joined = dti_slices_of(*out, 0);
    rows = 0;
    for (uint32_t i = 0; i < parts; i++) {
        ditto_slices part_slices = dti_slices_of(v, i);
        if (part_slices.rows != 0) {
            memcpy((char *)joined.values + rows * row_bytes, part_slices.values,
                   part_slices.rows * row_bytes);
            memcpy(joined.indices + rows, part_slices.indices,
                   part_slices.rows * sizeof *part_slices.indices);
        }
        rows += part_slices.rows;
    }
    struct dti_fenv saved = dti_fenv_enter();
    if (op == DITTO_MEAN && parts > 1)
        dti_divide(joined.dtype, joined.values, joined.values, rows * joined.row_count, parts);
    dti_fenv_leave(saved);
    return DITTO_OK;
}

/* -- merging -- */

/* The rows of all parts, sorted by their index. */
struct sorted {
    struct dti_indexed_row *indexed;
    struct dti_tree_value *value; /* [rows]: the inputs of one reduction */
    char *tile;                   /* a merge tile, and behind it the scratch memory of the tree */
    size_t rows;
};

static void release(struct sorted *s)
{
    free(s->indexed);
    free(s->value);
    free(s->tile);
}

static ditto_status sort(const ditto_value *v, struct sorted *s)
{
    size_t order = 0, row_bytes = v->part[0].shape[1] * ditto_dtype_bytes(v->part[0].dtype);
    *s = (struct sorted){ .rows = 0 };
    for (uint32_t i = 0; i < parts_of(v); i++)
        s->rows += v->part[i].shape[0];
    s->indexed = malloc((s->rows + 1) * sizeof *s->indexed);
    s->value = malloc((s->rows + 1) * sizeof *s->value);
    s->tile = malloc(DTI_MERGE_TILE_BYTES + DTI_MERGE_SCRATCH_BYTES);
    if (s->indexed == NULL || s->value == NULL || s->tile == NULL) {
        release(s);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to sort %zu slices", s->rows);
    }
    for (uint32_t i = 0; i < parts_of(v); i++)
        for (size_t k = 0; k < v->part[i].shape[0]; k++, order++)
            s->indexed[order] = (struct dti_indexed_row){ v->index[i][k], order,
                                                          (const char *)v->part[i].data + k * row_bytes };
    dti_indexed_rows_sort(s->indexed, s->rows);
    return DITTO_OK;
}

/* Combines the rows of one index in the order of the reduction tree. For MEAN the result is divided by
 * `divisor` before it is rounded, so that a sum that the dtype cannot represent does no harm. */
static void combine_rows(const struct sorted *s, struct dti_reduction *r, size_t first, size_t end,
                         uint32_t divisor, size_t row_count, char *dst)
{
    size_t chunk = DTI_MERGE_TILE_BYTES / r->accumulator_bytes;
    for (size_t at = 0; at < row_count; at += chunk) {
        size_t count = row_count - at < chunk ? row_count - at : chunk;
        dti_indexed_rows_fold(r, s->indexed + first, end - first, at, count, s->value, s->tile,
                              s->tile + DTI_MERGE_TILE_BYTES);
        dti_finish(r, divisor, s->tile, s->tile, count, dst + at * r->element_bytes);
    }
}

/* Writes one row for each index. */
static void merge_rows(const struct sorted *s, const ditto_slices *merged)
{
    struct dti_reduction sum = dti_reduction_of(dti_kernels_best(), merged->dtype, DITTO_SUM);
    size_t row_bytes = merged->row_count * sum.element_bytes, row = 0;
    for (size_t first = 0, end; first < s->rows; first = end, row++) {
        end = dti_indexed_rows_end(s->indexed, s->rows, first);
        merged->indices[row] = s->indexed[first].index;
        combine_rows(s, &sum, first, end, 1, merged->row_count, (char *)merged->values + row * row_bytes);
    }
}

ditto_status dti_merge_slices(const ditto_value *v, ditto_value **out)
{
    struct sorted sorted;
    ditto_value *slices;
    DTI_TRY(dti_reduction_check(v->part[0].dtype, DITTO_SUM));
    DTI_TRY(sort(v, &sorted));
    ditto_status status = make_slices(v, dti_indexed_rows_distinct(sorted.indexed, sorted.rows), &slices);
    if (status == DITTO_OK) {
        ditto_slices merged = dti_slices_of(slices, 0);
        struct dti_fenv saved = dti_fenv_enter();
        merge_rows(&sorted, &merged);
        dti_fenv_leave(saved);
        status = dti_value_finish(slices, DITTO_OK, out);
    }
    release(&sorted);
    return status;
}

/* -- dense -- */

ditto_status dti_slices_to_dense(const ditto_value *v, ditto_op op, size_t rows, void *dst)
{
    struct sorted sorted;
    size_t row_count = v->part[0].shape[1], row_bytes = row_count * ditto_dtype_bytes(v->part[0].dtype);
    DTI_TRY(check_op(v, op));
    DTI_TRY(sort(v, &sorted));
    struct dti_reduction r = dti_reduction_of(dti_kernels_best(), v->part[0].dtype, op);
    ditto_status status = DITTO_OK;
    if (sorted.rows != 0 && (uint64_t)sorted.indexed[sorted.rows - 1].index >= rows)
        status = DTI_FAIL(DITTO_ERR_RANGE, "a slice of row %lld: the destination has rows 0 to %zu",
                          (long long)sorted.indexed[sorted.rows - 1].index, rows - 1);
    if (status == DITTO_OK && rows * row_bytes != 0)
        memset(dst, 0, rows * row_bytes);
    struct dti_fenv saved = dti_fenv_enter();
    for (size_t first = 0, end; first < sorted.rows && status == DITTO_OK; first = end) {
        end = dti_indexed_rows_end(sorted.indexed, sorted.rows, first);
        char *row = (char *)dst + (size_t)sorted.indexed[first].index * row_bytes;
        combine_rows(&sorted, &r, first, end, parts_of(v), row_count, row);
    }
    dti_fenv_leave(saved);
    release(&sorted);
    return status;
}
