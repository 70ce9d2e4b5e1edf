/* src/values/reductions/reduce_value.c - reduces a value over replicas, and along axes. */
#include "base/numbers/checksum.h"
#include "base/types/convert.h"
#include "sync/kernels/local_reduction.h"
#include "values/reductions/axes.h"
#include "values/reductions/reductions.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

/* -- checks -- */

bool dti_is_one_value(const ditto_value *v)
{
    return v->kind == DITTO_VALUE_PLAIN || v->kind == DITTO_VALUE_MIRRORED ||
           (v->kind == DITTO_VALUE_VARIABLE && v->variable->mirrored);
}

bool dti_is_read_alone(const ditto_value *v)
{
    return dti_is_one_value(v) && (v->kind != DITTO_VALUE_VARIABLE || !dti_variable_may_differ(v->variable));
}

ditto_dtype dti_reduce_dtype(ditto_op op, ditto_dtype dtype)
{
    return op == DITTO_MEAN && !dti_dtype_is_float(dtype) ? DITTO_F64 : dtype;
}

ditto_status dti_reduce_check(ditto_op op, ditto_dtype dtype)
{
    if (op == DITTO_AND || op == DITTO_OR || op == DITTO_XOR)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s: values are reduced by SUM, MEAN, MIN, MAX or PROD",
                        ditto_op_name(op));
    return dti_reduction_check(dti_reduce_dtype(op, dtype), op);
}

ditto_status dti_reduce_check_once(const ditto_strategy *strategy, ditto_op op)
{
    uint32_t n = dti_team_all_replicas(dti_team_of(strategy));
    if (n == 1 || (op != DITTO_SUM && op != DITTO_PROD))
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_INVALID,
        "%s of a value that is the same for all %u replicas would count it %u times: use it as it is, or "
        "MEAN, MIN or MAX",
        ditto_op_name(op), n, n);
}

ditto_status dti_reduce_check_shapes(const ditto_tensor *part, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t d = 0; d < part[0].rank; d++)
            if (part[i].shape[d] != part[0].shape[d])
                return DTI_FAIL(DITTO_ERR_SHAPE,
                                "dimension %u is %zu on replica %u and %zu on replica 0: without axes the "
                                "shapes must agree (give an axis to reduce along, or gather)",
                                d, part[i].shape[d], i, part[0].shape[d]);
    return DITTO_OK;
}

/* -- over replicas, elementwise -- */

/* Computes the mean of integers in f64, in pieces of PIECE elements. */
static ditto_status mean_of_integers(const ditto_tensor *part, const struct dti_tree *tree, size_t first,
                                     size_t end, double *dst)
{
    uint32_t n = (uint32_t)tree->n;
    enum { PIECE = 512 };
    double *wide = malloc((size_t)n * PIECE * sizeof *wide);
    const void **source = malloc(n * sizeof *source);
    ditto_status status = DITTO_OK;
    if (wide == NULL || source == NULL)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to reduce %u replicas' values", n);
    size_t element_bytes = ditto_dtype_bytes(part[0].dtype);
    for (size_t at = first; at < end && status == DITTO_OK; at += PIECE) {
        size_t count = end - at < PIECE ? end - at : PIECE;
        for (uint32_t i = 0; i < n; i++) {
            dti_to_f64(wide + (size_t)i * PIECE, part[i].dtype,
                       (const char *)part[i].data + at * element_bytes, count);
            source[i] = wide + (size_t)i * PIECE;
        }
        status = dti_reduce_local(DITTO_F64, DITTO_MEAN, tree, source, count, dst + at);
    }
    free(wide);
    free(source);
    return status;
}

ditto_status dti_reduce_range(ditto_op op, const ditto_tensor *part, const struct dti_tree *tree,
                              size_t first, size_t end, void *dst)
{
    size_t element_bytes = ditto_dtype_bytes(part[0].dtype);
    if (dti_reduce_dtype(op, part[0].dtype) != part[0].dtype)
        return mean_of_integers(part, tree, first, end, dst);
    const void **source = malloc(tree->n * sizeof *source);
    if (source == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to reduce %zu replicas' values", tree->n);
    for (uint32_t i = 0; i < tree->n; i++)
        source[i] = (const char *)part[i].data + first * element_bytes;
    ditto_status status = dti_reduce_local(part[0].dtype, op, tree, source, end - first,
                                           (char *)dst + first * element_bytes);
    free(source);
    return status;
}

struct elementwise {
    ditto_op op;
    const ditto_tensor *part;
    const struct dti_tree *tree;
    void *dst;
};

static ditto_status reduce_elements(size_t first, size_t end, void *context)
{
    const struct elementwise *e = context;
    return dti_reduce_range(e->op, e->part, e->tree, first, end, e->dst);
}

static ditto_status reduce_over_replicas(ditto_strategy *strategy, ditto_op op, const ditto_tensor *part,
                                         uint32_t n, ditto_value *out)
{
    DTI_TRY(dti_reduce_check_shapes(part, n));
    out->plain = part[0];
    out->plain.dtype = dti_reduce_dtype(op, part[0].dtype);
    out->plain.device = 0;
    DTI_TRY(dti_value_allocate(out));
    struct elementwise e = { op, part, dti_team_tree(dti_team_of(strategy)), out->plain.data };
    size_t count = dti_tensor_count(&part[0]), bytes = count * ditto_dtype_bytes(part[0].dtype);
    return dti_share(dti_team_of(strategy), bytes * n, count, DTI_CACHE_LINE, reduce_elements, &e);
}

/* -- along axes -- */

static ditto_status fold_tasks(size_t first, size_t end, void *context)
{
    return dti_column_fold(context, first, end);
}

static ditto_status reduce_column(ditto_strategy *strategy, struct dti_column *c, ditto_value *out)
{
    DTI_TRY(dti_column_plan(c));
    out->plain = c->result;
    DTI_TRY(dti_value_allocate(out));
    c->result.data = out->plain.data;
    size_t bytes = c->blocks * c->kept * c->accumulator_bytes;
    c->partial = aligned_alloc(DTI_CACHE_LINE, bytes / DTI_CACHE_LINE * DTI_CACHE_LINE + DTI_CACHE_LINE);
    if (c->partial == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %zu blocks of %zu elements", c->blocks, c->kept);
    ditto_status status = dti_share(dti_team_of(strategy),
                                    c->rows * c->kept * ditto_dtype_bytes(c->part[0].dtype),
                                    c->blocks * c->tiles, 1, fold_tasks, c);
    struct dti_fenv saved = dti_fenv_enter();
    if (status == DITTO_OK)
        dti_column_finish(c);
    dti_fenv_leave(saved);
    free(c->partial);
    return status;
}

static ditto_status reduce_along_axes(ditto_strategy *strategy, ditto_op op, const ditto_tensor *part,
                                      uint32_t parts, const int32_t *axes, uint32_t num_axes,
                                      ditto_value *out)
{
    uint32_t mask;
    DTI_TRY(dti_axes_read(axes, num_axes, part[0].rank, &mask));
    size_t *start = malloc(((size_t)parts + 1) * sizeof *start);
    if (start == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to reduce %u replicas' values", parts);
    struct dti_column column = { .part = part, .parts = parts, .reduced = mask, .op = op, .start = start };
    ditto_status status = reduce_column(strategy, &column, out);
    free(start);
    return status;
}

/* -- leaves and nests -- */

struct byte_copy {
    const char *from;
    char *to;
};

static ditto_status copy_bytes(size_t first, size_t end, void *context)
{
    const struct byte_copy *c = context;
    memcpy(c->to + first, c->from + first, end - first);
    return DITTO_OK;
}

/* Copies the tensor of a mirrored value or of a variable, so that the result owns its memory. */
static ditto_status copy_one(ditto_strategy *strategy, const ditto_tensor *one, ditto_value *out)
{
    size_t bytes = ditto_tensor_bytes(one);
    out->plain = *one;
    DTI_TRY(dti_value_allocate(out));
    struct byte_copy copying = { one->data, out->plain.data };
    return dti_share(dti_team_of(strategy), 2 * bytes, bytes, DTI_CACHE_LINE, copy_bytes, &copying);
}

/* Reduces a leaf into `out`. A value that is the same for all replicas counts as one part. `names` is a hash
 * of the names of the members of nests that it is in, which hosts compare. */
static ditto_status reduce_parts(ditto_strategy *strategy, ditto_op op, const ditto_value *v,
                                 const int32_t *axes, uint32_t num_axes, uint64_t names, ditto_value *out)
{
    struct dti_all_parts parts;
    bool one = dti_is_one_value(v);
    uint64_t digest = dti_hash_word(names, op);
    if (axes != NULL)
        digest = dti_hash_bytes(digest, axes, num_axes * sizeof *axes);
    DTI_TRY(dti_all_parts_open(v, digest, &parts));
    ditto_status status;
    if (axes != NULL)
        status = reduce_along_axes(strategy, op, parts.part, one ? 1 : parts.n, axes, num_axes, out);
    else
        status = one ? copy_one(strategy, parts.part, out)
                     : reduce_over_replicas(strategy, op, parts.part, parts.n, out);
    dti_all_parts_close(&parts);
    return status;
}

static ditto_status reduce_named(ditto_strategy *strategy, ditto_op op, const ditto_value *v,
                                 const int32_t *axes, uint32_t num_axes, uint64_t names, ditto_value **out)
{
    ditto_value *result;
    ditto_tensor spec;
    if (v->kind == DITTO_VALUE_NEST) {
        ditto_status status = DITTO_OK;
        DTI_TRY(dti_value_make(strategy, DITTO_VALUE_NEST, &result));
        for (uint32_t i = 0; i < v->members && status == DITTO_OK; i++) {
            const char *name = v->member[i].name;
            ditto_value *member;
            status = reduce_named(strategy, op, v->member[i].value, axes, num_axes,
                                  dti_hash_bytes(names, name, strlen(name) + 1), &member);
            if (status == DITTO_OK)
                status = dti_nest_add(result, name, member);
        }
        return dti_value_finish(result, status, out);
    }
    if (v->kind == DITTO_VALUE_SLICES && axes != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "slices are reduced by concatenation: give no axes");
    if (v->kind == DITTO_VALUE_SLICES)
        return dti_concatenate_slices(v, op, names, out);
    DTI_TRY(dti_inspect_component(v, 0, &spec));
    DTI_TRY(dti_reduce_check(op, spec.dtype));
    if (dti_is_one_value(v))
        DTI_TRY(dti_reduce_check_once(strategy, op));
    if (v->kind == DITTO_VALUE_PLAIN && axes == NULL) {
        *out = dti_value_keep(v);
        return DITTO_OK;
    }
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_PLAIN, &result));
    return dti_value_finish(result, reduce_parts(strategy, op, v, axes, num_axes, names, result), out);
}

ditto_status dti_reduce_value(ditto_strategy *strategy, ditto_op op, const ditto_value *v,
                              const int32_t *axes, uint32_t num_axes, ditto_value **out)
{
    return reduce_named(strategy, op, v, axes, num_axes, DTI_HASH_SEED, out);
}
