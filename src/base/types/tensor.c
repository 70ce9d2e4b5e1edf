/* src/base/types/tensor.c - sizes and comparison of tensors. */
#include "base/errors/status.h"
#include "base/text/text.h"
#include "base/types/types.h"

#include <string.h>

size_t dti_tensor_count(const ditto_tensor *tensor)
{
    size_t count = 1;
    if (tensor->rank > DITTO_MAX_RANK)
        return 0;
    /* A dimension of 0 makes the count 0, also if the product of the dimensions before it overflows. */
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] == 0)
            return 0;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!dti_multiply(count, tensor->shape[i], &count))
            return 0;
    return count;
}

size_t ditto_tensor_bytes(const ditto_tensor *tensor)
{
    size_t bytes;
    return dti_multiply(dti_tensor_count(tensor), ditto_dtype_bytes(tensor->dtype), &bytes) ? bytes : 0;
}

bool dti_spec_equal(const ditto_tensor *a, const ditto_tensor *b)
{
    /* If the rank is 0 and shape[0] is not, the tensor is no scalar, but its rank was not set. Therefore
     * shape[0] is compared too. */
    size_t dimensions = a->rank != 0 ? a->rank : 1;
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, dimensions * sizeof *a->shape) == 0;
}

void dti_spec_text(const ditto_tensor *spec, char buffer[DTI_SPEC_TEXT_BYTES])
{
    struct dti_text text = { buffer, DTI_SPEC_TEXT_BYTES, 0 };
    dti_text_add(&text, "%s%s", ditto_dtype_name(spec->dtype), spec->rank == 0 ? " scalar" : " [");
    for (uint32_t i = 0; i < spec->rank; i++)
        dti_text_add(&text, "%s%zu", i > 0 ? ", " : "", spec->shape[i]);
    if (spec->rank > 0)
        dti_text_add(&text, "]");
}

ditto_status dti_spec_check(const ditto_tensor *spec, const char *name, const ditto_tensor *found,
                            const char *what)
{
    char is[DTI_SPEC_TEXT_BYTES], wants[DTI_SPEC_TEXT_BYTES];
    if (dti_spec_equal(spec, found))
        return DITTO_OK;
    dti_spec_text(found, is);
    dti_spec_text(spec, wants);
    return DTI_FAIL(spec->dtype != found->dtype ? DITTO_ERR_INVALID : DITTO_ERR_SHAPE,
                    "\"%s\" is %s, but %s is %s", name, wants, what, is);
}
