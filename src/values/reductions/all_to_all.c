/* src/values/reductions/all_to_all.c - ditto_all_to_all_tensor, which exchanges parts of the tensors of all
 * replicas. */
#include "replicas/helpers/remote_memory.h"
#include "sync/sync.h"
#include "values/reductions/reductions.h"

#include <string.h>

/* What a replica needs for one call. */
struct tensor_exchange {
    uint32_t n, split_axis, concat_axis;
    ditto_tensor *part;    /* [n] the part that comes from each replica */
    size_t *gives, *takes; /* [n] elements of each part */
};

static ditto_status split(struct tensor_exchange *x)
{
    if (x->split_axis >= x->part[0].rank)
        return DTI_FAIL(DITTO_ERR_RANGE, "split_axis %u of tensors of rank %u: axes are 0 to %u",
                        x->split_axis, x->part[0].rank, x->part[0].rank - 1);
    for (uint32_t i = 0; i < x->n; i++) {
        size_t *length = &x->part[i].shape[x->split_axis];
        if (*length % x->n != 0)
            return DTI_FAIL(DITTO_ERR_SHAPE,
                            "split_axis %u has the length %zu on replica %u, which is no multiple of %u",
                            x->split_axis, *length, i, x->n);
        *length /= x->n;
        x->takes[i] = dti_tensor_count(&x->part[i]);
    }
    return DITTO_OK;
}

/* Copies the parts of a tensor to memory, one after the other. */
static void pack(const struct tensor_exchange *x, const ditto_tensor *in, const ditto_tensor *own_part,
                 char *to)
{
    size_t length = own_part->shape[x->split_axis], inner = ditto_dtype_bytes(in->dtype), outer = 1;
    for (uint32_t d = 0; d < x->split_axis; d++)
        outer *= in->shape[d];
    for (uint32_t d = x->split_axis + 1; d < in->rank; d++)
        inner *= in->shape[d];
    for (uint32_t k = 0; k < x->n; k++)
        for (size_t i = 0; i < outer && length * inner != 0; i++, to += length * inner)
            memcpy(to, (const char *)in->data + (i * x->n + k) * length * inner, length * inner);
}

/* `gathered` has the parts of all replicas, one after the other. */
static void join(const struct tensor_exchange *x, char *gathered, const ditto_tensor *out)
{
    size_t before = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        x->part[i].data = gathered;
        dti_gather_copy(&x->part[i], x->concat_axis, before, out);
        before += x->part[i].shape[x->concat_axis];
        gathered += ditto_tensor_bytes(&x->part[i]);
    }
}

/* Returns memory in *memory only if parts are not where the exchange reads, or writes, them. */
static ditto_status spare(struct dti_replica *r, uint32_t axis, size_t bytes, void **memory)
{
    *memory = NULL;
    return axis != 0 ? dti_replica_alloc(r, bytes, DTI_CACHE_LINE, memory) : DITTO_OK;
}

static ditto_status exchange(ditto_replica *self, struct dti_replica *r, const struct tensor_exchange *x,
                             const ditto_tensor *in, ditto_tensor *out)
{
    void *data, *packed, *gathered = NULL;
    DTI_TRY(dti_gather_shape(x->part, x->n, x->concat_axis, out));
    size_t bytes = ditto_tensor_bytes(out);
    DTI_TRY(dti_replica_alloc(r, bytes, DTI_CACHE_LINE, &data));
    out->data = data;
    DTI_TRY(spare(r, x->split_axis, ditto_tensor_bytes(in), &packed));
    ditto_status status = spare(r, x->concat_axis, bytes, &gathered);
    if (status == DITTO_OK) {
        for (uint32_t i = 0; i < x->n; i++)
            x->gives[i] = x->takes[r->rank];
        if (packed != NULL)
            pack(x, in, &x->part[r->rank], packed);
        const ditto_all_to_all_parts parts = { .src_counts = x->gives, .dst_counts = x->takes };
        status = DTI_OWN(ditto_all_to_all(self, packed != NULL ? packed : in->data,
                                          gathered != NULL ? gathered : data, 0, &parts, in->dtype, NULL));
    }
    if (status == DITTO_OK && gathered != NULL)
        join(x, gathered, out);
    dti_replica_free(r, packed);
    dti_replica_free(r, gathered);
    return status;
}

ditto_status dti_all_to_all_tensor(ditto_replica *self, struct dti_replica *r, const ditto_tensor *in,
                                   uint32_t split_axis, uint32_t concat_axis, ditto_tensor *out)
{
    struct tensor_exchange x = { .n = r->all_replicas, .split_axis = split_axis, .concat_axis = concat_axis };
    ditto_tensor whole = { .data = NULL };
    void *memory;
    DTI_TRY(dti_replica_alloc(r, x.n * (sizeof *x.part + 2 * sizeof(size_t)), DTI_CACHE_LINE, &memory));
    x.part = memory;
    x.gives = (size_t *)(void *)(x.part + x.n);
    x.takes = x.gives + x.n;
    ditto_status status = dti_all_gather_shapes(self, r, "ditto_all_to_all_tensor", in, concat_axis,
                                                split_axis, x.part);
    if (status == DITTO_OK)
        status = split(&x);
    if (status == DITTO_OK)
        status = exchange(self, r, &x, in, &whole);
    dti_replica_free(r, memory);
    if (status == DITTO_OK)
        *out = whole;
    else
        dti_replica_free(r, whole.data);
    return status;
}
