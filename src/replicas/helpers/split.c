/* src/replicas/helpers/split.c - cuts tensors into blocks.
 * The checks and their order follow docs/semantics.md, logical devices. */
#include "base/errors/status.h"
#include "replicas/helpers/device_tensor.h"

#include <string.h>

ditto_status dti_split_check(const ditto_tensor *tensor, const uint32_t *parts, uint32_t num_parts,
                             uint32_t devices)
{
    uint64_t product = 1;
    if (num_parts != tensor->rank)
        return DTI_FAIL(DITTO_ERR_SHAPE,
                        "%u numbers of parts for a tensor of rank %u: give one per dimension", num_parts,
                        tensor->rank);
    for (uint32_t d = 0; d < num_parts; d++)
        if (parts[d] == 0 || tensor->shape[d] % parts[d] != 0)
            return DTI_FAIL(DITTO_ERR_SHAPE, "dimension %u has %zu elements, which %u parts do not divide", d,
                            tensor->shape[d], parts[d]);
    for (uint32_t d = 0; d < num_parts && product <= devices; d++) /* both factors are below 2^32 */
        product *= parts[d];
    if (product != devices)
        return DTI_FAIL(DITTO_ERR_SHAPE,
                        "the parts make %s%llu blocks, but the replica has %u logical devices: give parts "
                        "that make one block for each",
                        product > devices ? "at least " : "", (unsigned long long)product, devices);
    return DITTO_OK;
}

ditto_tensor dti_split_block(const ditto_tensor *tensor, const uint32_t *parts, uint32_t index)
{
    ditto_tensor block = *tensor;
    block.data = NULL;
    block.device = index;
    for (uint32_t d = 0; d < tensor->rank; d++)
        block.shape[d] /= parts[d];
    return block;
}

void dti_split_copy(const ditto_tensor *tensor, const uint32_t *parts, const ditto_tensor *block)
{
    size_t origin[DITTO_MAX_RANK] = { 0 }, at[DITTO_MAX_RANK] = { 0 },
           element = ditto_dtype_bytes(tensor->dtype);
    uint32_t rank = tensor->rank, last = rank > 0 ? rank - 1 : 0, rest = block->device;
    size_t row = (rank > 0 ? block->shape[last] : 1) * element, rows = ditto_tensor_bytes(block);
    for (uint32_t d = rank; d-- > 0; rest /= parts[d])
        origin[d] = rest % parts[d] * block->shape[d];
    rows = row > 0 ? rows / row : 0;
    for (size_t done = 0; done < rows; done++) {
        size_t offset = 0;
        for (uint32_t d = 0; d < rank; d++)
            offset = offset * tensor->shape[d] + origin[d] + at[d];
        memcpy((char *)block->data + done * row, (const char *)tensor->data + offset * element, row);
        /* Goes to the next row. The last dimension but one changes fastest. */
        for (uint32_t d = last; d-- > 0;) {
            if (++at[d] < block->shape[d])
                break;
            at[d] = 0;
        }
    }
}
