/* src/sync/api_slices.c - the public function of include/ditto/slices.h. */
#include "base/numbers/checksum.h"
#include "sync/algorithms/slices.h"
#include "sync/call_arguments.h"
#include "sync/kernels/local_reduction.h"
#include "sync/overlap.h"
#include "sync/sync.h"

/* Checks slices and returns the bytes of their values in *bytes. Fails with INVALID or RANGE. */
static ditto_status check_slices(const ditto_slices *s, const char *name, size_t *bytes)
{
    size_t elements;
    DTI_TRY(dti_not_null(s, name));
    if (!dti_multiply(s->rows, s->row_count, &elements) || s->rows > SIZE_MAX / sizeof *s->indices)
        return DTI_FAIL(DITTO_ERR_RANGE, "%s: %zu rows of %zu elements are more than a size_t can count",
                        name, s->rows, s->row_count);
    DTI_TRY(dti_buffer_bytes(elements, s->dtype, bytes));
    DTI_TRY_OF(dti_buffer_check(s->values, *bytes, s->dtype, "values"), "%s", name);
    DTI_TRY_OF(dti_buffer_check(s->indices, s->rows * sizeof *s->indices, DITTO_I64, "indices"), "%s", name);
    return DITTO_OK;
}

static ditto_status check_apart_from_input(const struct dti_named_buffer *out, const ditto_slices *in,
                                           size_t bytes)
{
    struct dti_named_buffer values = { "src->values", in->values, bytes };
    struct dti_named_buffer indices = { "src->indices", in->indices, in->rows * sizeof *in->indices };
    DTI_TRY(dti_check_apart(out, &values));
    return dti_check_apart(out, &indices);
}

static ditto_status add_to_dense(struct dti_arguments *a, const ditto_slices *src, size_t src_bytes,
                                 const ditto_slices *dst)
{
    size_t elements, bytes;
    if (!dti_multiply(dst->rows, src->row_count, &elements))
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu rows of %zu elements are more than a size_t can count",
                        dst->rows, src->row_count);
    DTI_TRY(dti_buffer_bytes(elements, src->dtype, &bytes));
    DTI_TRY(dti_buffer_check(dst->values, bytes, src->dtype, "dst->values"));
    struct dti_named_buffer rows = { "dst->values", dst->values, bytes };
    DTI_TRY(check_apart_from_input(&rows, src, src_bytes));
    struct dti_slices own_slices = {
        .in = *src, .dense = dst->values, .dense_rows = dst->rows, .merge = true
    };
    a->call.hash = dti_hash_word(a->call.hash, dst->rows);
    return dti_reduce_slices(a->replica, &a->call, &own_slices, &a->deadline);
}

ditto_status ditto_all_reduce_slices(ditto_replica *self, const ditto_slices *src, ditto_slices *dst,
                                     ditto_op op, const ditto_reduce_options *options)
{
    struct dti_arguments a;
    size_t src_bytes, dst_bytes;
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_arguments_begin(&a, self, "ditto_all_reduce_slices", DTI_PATTERN_SLICES, options,
                                DITTO_SLICES_MERGE | DITTO_SLICES_DENSE));
    DTI_TRY(check_slices(src, "src", &src_bytes));
    DTI_TRY(dti_reduction_check(src->dtype, op));
    if (op != DITTO_SUM && op != DITTO_MEAN)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s of slices is not supported: use SUM or MEAN",
                        ditto_op_name(op));
    a.call.dtype = (uint8_t)src->dtype;
    a.call.op = (uint8_t)op;
    a.call.count = src->row_count;
    a.call.element_bytes = ditto_dtype_bytes(src->dtype);
    a.call.hash = dti_hash_word(a.call.hash, a.options.flags);
    DTI_TRY(dti_not_null(dst, "dst"));
    if ((a.options.flags & DITTO_SLICES_DENSE) != 0)
        return add_to_dense(&a, src, src_bytes, dst);
    ditto_slices result = { dst->indices, dst->values, dst->rows, src->row_count, src->dtype };
    DTI_TRY(check_slices(&result, "dst", &dst_bytes));
    struct dti_named_buffer values = { "dst->values", result.values, dst_bytes };
    struct dti_named_buffer indices = { "dst->indices", result.indices,
                                        result.rows * sizeof *result.indices };
    DTI_TRY(check_apart_from_input(&values, src, src_bytes));
    DTI_TRY(check_apart_from_input(&indices, src, src_bytes));
    DTI_TRY(dti_check_apart(&values, &indices));
    struct dti_slices own_slices = { .in = *src,
                                     .out = &result,
                                     .capacity = dst->rows,
                                     .merge = (a.options.flags & DITTO_SLICES_MERGE) != 0 };
    DTI_TRY(dti_reduce_slices(a.replica, &a.call, &own_slices, &a.deadline));
    *dst = result;
    return DITTO_OK;
}
