/* src/base/dtype.h - element types and sizes, checked. */
#ifndef DTI_DTYPE_H
#define DTI_DTYPE_H

#include <ditto/tensor.h>

#include <stdbool.h>

bool dti_dtype_valid(ditto_dtype dtype);
bool dti_dtype_is_float(ditto_dtype dtype); /* real or complex: what a MEAN needs */

/* *product = a * b; false when it does not fit. */
bool dti_multiply(size_t a, size_t b, size_t *product);

/* DITTO_OK and *bytes, or INVALID (unknown dtype), RANGE (the product overflows). */
ditto_status dti_buffer_bytes(size_t count, ditto_dtype dtype, size_t *bytes);

/* DITTO_OK and *bytes, or INVALID (rank, unknown dtype), RANGE (the product of the dimensions overflows). */
ditto_status dti_tensor_check(const ditto_tensor *tensor, size_t *bytes);

/* INVALID when a buffer of `bytes` > 0 is NULL or not aligned for its element; `name` is the parameter's. */
ditto_status dti_buffer_check(const void *buffer, size_t bytes, ditto_dtype dtype, const char *name);

#endif
