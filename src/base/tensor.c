/* src/base/tensor.c - sizes of tensors. */
#include "base/dtype.h"

size_t ditto_tensor_count(const ditto_tensor *tensor)
{
    size_t count = 1;
    if (tensor->rank > DITTO_MAX_RANK)
        return 0;
    for (uint32_t i = 0; i < tensor->rank; i++) /* a 0 after an overflow still gives 0 */
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
    return dti_multiply(ditto_tensor_count(tensor), ditto_dtype_bytes(tensor->dtype), &bytes) ? bytes : 0;
}
