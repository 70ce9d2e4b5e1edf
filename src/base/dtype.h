/* src/base/dtype.h - element types and sizes, checked. */
#ifndef DTI_DTYPE_H
#define DTI_DTYPE_H

#include "base/companion.h"
#include <ditto/tensor.h>

#include <stdbool.h>

bool dti_dtype_valid(ditto_dtype dtype);
bool dti_dtype_is_float(ditto_dtype dtype); /* real or complex: what a MEAN needs */

/* *product = a * b; false when it does not fit. */
bool dti_multiply(size_t a, size_t b, size_t *product);

/* DITTO_OK and *bytes, or INVALID (unknown dtype), RANGE (the product overflows). */
ditto_status dti_buffer_bytes(size_t count, ditto_dtype dtype, size_t *bytes);

/* DITTO_OK and *bytes, or INVALID (rank, unknown dtype), RANGE (the product of the dimensions overflows). */
DTI_COMPANION ditto_status dti_tensor_check(const ditto_tensor *tensor, size_t *bytes);

/* Same dtype, rank and shape. */
bool dti_spec_equal(const ditto_tensor *a, const ditto_tensor *b);
/* "f32 [3, 4]", "i64 scalar". */
#define DTI_SPEC_WORDS 400
void dti_spec_words(const ditto_tensor *spec, char words[DTI_SPEC_WORDS]);
/* INVALID: another dtype; SHAPE: another shape. "`name` is f32 [3], but `what` is f32 [4]". */
DTI_COMPANION ditto_status dti_spec_check(const ditto_tensor *spec, const char *name, const ditto_tensor *found,
                                          const char *what);

/* INVALID when a buffer of `bytes` > 0 is NULL or not aligned for its element; `name` is the parameter's. */
DTI_COMPANION ditto_status dti_buffer_check(const void *buffer, size_t bytes, ditto_dtype dtype, const char *name);

#endif
