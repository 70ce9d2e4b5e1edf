/* src/values/reductions/gather_value.c - concatenates the components of a value along an axis. */
#include "sync/sync.h"
#include "values/reductions/reductions.h"
#include "values/values.h"

#include <string.h>

ditto_status dti_gather_check(const ditto_tensor *part, uint32_t n, uint32_t axis)
{
    if (part[0].rank == 0)
        return DTI_FAIL(DITTO_ERR_SHAPE,
                        "the components are scalars: they have no axis to be gathered along");
    for (uint32_t i = 1; i < n; i++)
        if (part[i].rank != part[0].rank)
            return DTI_FAIL(DITTO_ERR_SHAPE, "replica %u's tensor has rank %u, replica 0's %u", i,
                            part[i].rank, part[0].rank);
    if (axis >= part[0].rank)
        return DTI_FAIL(DITTO_ERR_RANGE, "axis %u of tensors of rank %u: axes are 0 to %u", axis,
                        part[0].rank, part[0].rank - 1);
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t d = 0; d < part[0].rank; d++)
            if (d != axis && part[i].shape[d] != part[0].shape[d])
                return DTI_FAIL(DITTO_ERR_SHAPE,
                                "dimension %u is %zu on replica %u and %zu on replica 0: tensors may differ "
                                "only along the axis, %u",
                                d, part[i].shape[d], i, part[0].shape[d], axis);
    return DITTO_OK;
}

ditto_status dti_gather_shape(const ditto_tensor *part, uint32_t n, uint32_t axis, ditto_tensor *whole)
{
    size_t bytes;
    *whole = part[0];
    whole->data = NULL;
    whole->device = 0;
    for (uint32_t i = 1; i < n; i++)
        if (__builtin_add_overflow(whole->shape[axis], part[i].shape[axis], &whole->shape[axis]))
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "axis %u of the %u tensors together is longer than size_t can count", axis, n);
    return dti_tensor_check(whole, &bytes);
}

void dti_gather_copy(const ditto_tensor *part, uint32_t axis, size_t before, const ditto_tensor *whole)
{
    size_t outer = 1, inner = ditto_dtype_bytes(whole->dtype);
    for (uint32_t d = 0; d < axis; d++)
        outer *= whole->shape[d];
    for (uint32_t d = axis + 1; d < whole->rank; d++)
        inner *= whole->shape[d];
    size_t part_bytes = part->shape[axis] * inner, whole_bytes = whole->shape[axis] * inner;
    for (size_t i = 0; i < outer && part_bytes != 0; i++)
        memcpy((char *)whole->data + i * whole_bytes + before * inner,
               (const char *)part->data + i * part_bytes, part_bytes);
}

struct gather_parts_task {
    const ditto_tensor *part;
    uint32_t axis;
    const ditto_tensor *whole;
};

/* Copies parts [first, end) into the result. */
static ditto_status copy_parts(size_t first, size_t end, void *context)
{
    const struct gather_parts_task *g = context;
    size_t before = 0;
    for (size_t i = 0; i < end; i++) {
        if (i >= first)
            dti_gather_copy(&g->part[i], g->axis, before, g->whole);
        before += g->part[i].shape[g->axis];
    }
    return DITTO_OK;
}

static ditto_status gather_parts(ditto_strategy *strategy, const ditto_tensor *part, uint32_t n,
                                 uint32_t axis, ditto_value *out)
{
    DTI_TRY(dti_gather_check(part, n, axis));
    DTI_TRY(dti_gather_shape(part, n, axis, &out->plain));
    DTI_TRY(dti_value_allocate(out));
    struct gather_parts_task gathering = { part, axis, &out->plain };
    return dti_share(dti_team_of(strategy), ditto_tensor_bytes(&out->plain), n, 1, copy_parts, &gathering);
}

static ditto_status gather_nest(ditto_strategy *strategy, const ditto_value *v, uint32_t axis,
                                ditto_value *nest)
{
    for (uint32_t i = 0; i < v->members; i++) {
        ditto_value *member;
        DTI_TRY(dti_gather_value(strategy, v->member[i].value, axis, &member));
        DTI_TRY(dti_nest_add(nest, v->member[i].name, member));
    }
    return DITTO_OK;
}

ditto_status dti_gather_value(ditto_strategy *strategy, const ditto_value *v, uint32_t axis,
                              ditto_value **out)
{
    ditto_value *result;
    struct dti_all_parts parts;
    if (v->kind == DITTO_VALUE_NEST) {
        DTI_TRY(dti_value_make(strategy, DITTO_VALUE_NEST, &result));
        return dti_value_finish(result, gather_nest(strategy, v, axis, result), out);
    }
    if (v->kind == DITTO_VALUE_SLICES)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "slices cannot be gathered: reduce them, which concatenates them");
    if (v->kind == DITTO_VALUE_PLAIN) {
        *out = dti_value_keep(v);
        return DITTO_OK;
    }
    DTI_TRY(dti_all_parts_open(v, axis, &parts));
    ditto_status status = dti_value_make(strategy, DITTO_VALUE_PLAIN, &result);
    if (status == DITTO_OK)
        status = dti_value_finish(result, gather_parts(strategy, parts.part, parts.n, axis, result), out);
    dti_all_parts_close(&parts);
    return status;
}
