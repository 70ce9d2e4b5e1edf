/* src/values/reductions/all_gather.c - ditto_all_gather_tensor, which concatenates the tensors of all
 * replicas. Each replica gets the result. */
#include "replicas/helpers/remote_memory.h"
#include "sync/sync.h"
#include "values/reductions/reductions.h"

#include <string.h>

/* The dtype and shape of a replica's tensor, and the axes that the replica passed. They are gathered before
 * the data. */
struct shape {
    uint64_t shape[DITTO_MAX_RANK];
    uint32_t dtype, rank, axis, split_axis;
};

static ditto_status fail_different(const struct shape *one, uint32_t i, const struct shape *first)
{
    const char *own = ditto_dtype_name((ditto_dtype)one->dtype),
               *other = ditto_dtype_name((ditto_dtype)first->dtype);
    if (one->split_axis == first->split_axis)
        return DTI_FAIL(DITTO_ERR_INVALID, "replica %u gathers %s along axis %u, replica 0 %s along axis %u",
                        i, own, one->axis, other, first->axis);
    return DTI_FAIL(DITTO_ERR_INVALID, "replica %u splits %s along axis %u, replica 0 %s along axis %u", i,
                    own, one->split_axis, other, first->split_axis);
}

/* All replicas check the same shapes. Therefore all of them return the same error, and the run continues. */
static ditto_status check_shapes(const struct shape *shapes, uint32_t n, ditto_tensor *part)
{
    for (uint32_t i = 0; i < n; i++) {
        part[i] = (ditto_tensor){ .dtype = (ditto_dtype)shapes[i].dtype, .rank = shapes[i].rank };
        for (uint32_t d = 0; d < shapes[i].rank; d++)
            part[i].shape[d] = (size_t)shapes[i].shape[d];
        if (shapes[i].dtype != shapes[0].dtype || shapes[i].axis != shapes[0].axis ||
            shapes[i].split_axis != shapes[0].split_axis)
            return fail_different(&shapes[i], i, &shapes[0]);
    }
    return dti_gather_check(part, n, shapes[0].axis);
}

ditto_status dti_all_gather_shapes(ditto_replica *self, struct dti_replica *r, const char *name,
                                   const ditto_tensor *in, uint32_t axis, uint32_t split_axis,
                                   ditto_tensor *part)
{
    struct shape own = {
        .dtype = (uint32_t)in->dtype, .rank = in->rank, .axis = axis, .split_axis = split_axis
    };
    uint32_t n = r->all_replicas;
    void *shapes;
    for (uint32_t d = 0; d < in->rank; d++)
        own.shape[d] = in->shape[d];
    DTI_TRY(dti_replica_alloc(r, n * sizeof own, DTI_CACHE_LINE, &shapes));
    ditto_status status = dti_all_gather(self,
                                         &(struct dti_gathering){ .name = name,
                                                                  .src = &own,
                                                                  .dst = shapes,
                                                                  .count = sizeof own,
                                                                  .dtype = DITTO_U8,
                                                                  .is_internal = true },
                                         NULL);
    if (status == DITTO_OK)
        status = check_shapes(shapes, n, part);
    dti_replica_free(r, shapes);
    return status;
}

static ditto_status gather(ditto_replica *self, struct dti_replica *r, const ditto_tensor *in,
                           const ditto_tensor *part, size_t *counts, uint32_t axis, ditto_tensor *out)
{
    uint32_t n = r->all_replicas;
    void *data, *parts;
    DTI_TRY(dti_gather_shape(part, n, axis, out));
    for (uint32_t i = 0; i < n; i++)
        counts[i] = dti_tensor_count(&part[i]);
    size_t bytes = ditto_tensor_bytes(out);
    DTI_TRY(dti_replica_alloc(r, bytes, DTI_CACHE_LINE, &data));
    out->data = data;
    struct dti_gathering values = {
        .name = "ditto_all_gather_tensor", .src = in->data, .dst = data, .counts = counts, .dtype = in->dtype
    };
    if (axis == 0)
        return dti_all_gather(self, &values, NULL);
    /* The tensors are gathered one after the other, and then joined along the axis. */
    DTI_TRY(dti_replica_alloc(r, bytes, DTI_CACHE_LINE, &parts));
    values.dst = parts;
    ditto_status status = dti_all_gather(self, &values, NULL);
    size_t before = 0, offset = 0;
    for (uint32_t i = 0; status == DITTO_OK && i < n; i++) {
        ditto_tensor one = part[i];
        one.data = (char *)parts + offset;
        dti_gather_copy(&one, axis, before, out);
        before += one.shape[axis];
        offset += ditto_tensor_bytes(&one);
    }
    dti_replica_free(r, parts);
    return status;
}

ditto_status dti_all_gather_tensor(ditto_replica *self, struct dti_replica *r, const ditto_tensor *in,
                                   uint32_t axis, ditto_tensor *out)
{
    ditto_tensor *part, whole = { .data = NULL };
    uint32_t n = r->all_replicas;
    void *memory;
    DTI_TRY(dti_replica_alloc(r, n * (sizeof *part + sizeof(size_t)), DTI_CACHE_LINE, &memory));
    part = memory;
    ditto_status status = dti_all_gather_shapes(self, r, "ditto_all_gather_tensor", in, axis, 0, part);
    if (status == DITTO_OK)
        status = gather(self, r, in, part, (size_t *)(void *)(part + n), axis, &whole);
    dti_replica_free(r, memory);
    if (status == DITTO_OK)
        *out = whole;
    else
        dti_replica_free(r, whole.data);
    return status;
}
