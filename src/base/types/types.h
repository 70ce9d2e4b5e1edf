/* src/base/types/types.h - element types and sizes, checked. */
#ifndef DTI_TYPES_H
#define DTI_TYPES_H

#include "base/platform.h"
#include <ditto/tensor.h>

#include <stdbool.h>
#include <ditto/status.h>

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
DTI_COMPANION ditto_status dti_spec_check(const ditto_tensor *spec, const char *name,
                                          const ditto_tensor *found, const char *what);

/* INVALID when a buffer of `bytes` > 0 is NULL or not aligned for its element; `name` is the parameter's. */
DTI_COMPANION ditto_status dti_buffer_check(const void *buffer, size_t bytes, ditto_dtype dtype,
                                            const char *name);

/* One rule for every option struct. */

/* Copies a caller's option struct (first field: size_t struct_size) into the library's own, of `known_bytes`.
 * NULL gives all defaults; a shorter struct is padded with zeros; a longer one must be zero where we know no field.
 *   DITTO_ERR_INVALID      struct_size was never set (an INIT macro was forgotten)
 *   DITTO_ERR_UNSUPPORTED  the tail that this version does not know is not zero: the caller asks for something newer */
DTI_COMPANION ditto_status dti_options_copy(void *known, size_t known_bytes, const void *given,
                                            const char *type_name);

/* DITTO_ERR_INVALID when a pointer that is needed is NULL; `name` is the parameter's. */
DTI_COMPANION ditto_status dti_fail_null(const char *name);
static inline ditto_status dti_not_null(const void *pointer, const char *name)
{
    return __builtin_expect(pointer != NULL, 1) ? DITTO_OK : dti_fail_null(name);
}

/* DITTO_ERR_INVALID when `flags` has a bit outside `known`: refused, never ignored. */
ditto_status dti_flags_check(uint32_t flags, uint32_t known, const char *field_name);

#endif
