/* src/base/types/dtype.c - names and sizes of element types, and checks of dtypes, tensors and buffers. */
#include "base/errors/status.h"
#include "base/types/types.h"

static const struct {
    size_t bytes;
    const char *name;
} dtypes[] = { { 0, "unknown dtype" },
#define ROW(name, value, bytes, text) [value] = { bytes, text },
               DITTO_DTYPE_LIST(ROW)
#undef ROW
};

bool dti_dtype_valid(ditto_dtype dtype)
{
    return (unsigned)dtype < sizeof dtypes / sizeof dtypes[0] && dtypes[dtype].bytes != 0;
}

size_t ditto_dtype_bytes(ditto_dtype dtype)
{
    return dti_dtype_valid(dtype) ? dtypes[dtype].bytes : 0;
}

const char *ditto_dtype_name(ditto_dtype dtype)
{
    return dtypes[dti_dtype_valid(dtype) ? (unsigned)dtype : 0].name;
}

bool dti_multiply(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

ditto_status dti_buffer_bytes(size_t count, ditto_dtype dtype, size_t *bytes)
{
    if (!dti_dtype_valid(dtype))
        return DTI_FAIL(DITTO_ERR_INVALID, "%d is not a dtype: use one of DITTO_DTYPE_LIST", (int)dtype);
    if (!dti_multiply(count, ditto_dtype_bytes(dtype), bytes) || *bytes > PTRDIFF_MAX)
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu elements of %s are more bytes than an object can have", count,
                        ditto_dtype_name(dtype));
    return DITTO_OK;
}

ditto_status dti_tensor_check(const ditto_tensor *tensor, size_t *bytes)
{
    size_t count = 1;
    bool fits = true, empty = false;
    if (tensor->rank > DITTO_MAX_RANK)
        return DTI_FAIL(DITTO_ERR_INVALID, "rank %u: at most %d", tensor->rank, DITTO_MAX_RANK);
    if (tensor->rank == 0 && tensor->shape[0] != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "rank is 0, which makes a scalar, but shape[0] is %zu: set the rank, or no dimension",
                        tensor->shape[0]);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        empty |= tensor->shape[i] == 0;
        fits &= dti_multiply(count, tensor->shape[i] != 0 ? tensor->shape[i] : 1, &count);
    }
    if (!fits)
        return DTI_FAIL(DITTO_ERR_RANGE, "the shape has more elements than size_t can count");
    /* An empty tensor is checked too, because its rows must be countable. */
    DTI_TRY(dti_buffer_bytes(count, tensor->dtype, bytes));
    *bytes = empty ? 0 : *bytes;
    return DITTO_OK;
}

ditto_status dti_buffer_check(const void *buffer, size_t bytes, ditto_dtype dtype, const char *name)
{
    if (bytes == 0)
        return DITTO_OK;
    if (buffer == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s is NULL but should hold %zu bytes", name, bytes);
    /* An element is aligned to its size, and a complex number like its parts. */
    size_t alignment = ditto_dtype_bytes(dtype) / (dti_dtype_class_of(dtype) == DTI_CLASS_COMPLEX ? 2 : 1);
    if (alignment != 0 && (uintptr_t)buffer % alignment != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s = %p is not aligned for %s elements", name, buffer,
                        ditto_dtype_name(dtype));
    return DITTO_OK;
}
