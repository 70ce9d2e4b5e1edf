/* src/base/types/types.h - checks of element types, sizes, tensors, buffers and option structs. */
#ifndef DTI_TYPES_H
#define DTI_TYPES_H

#include <ditto/tensor.h>

#include <stdbool.h>

/* The number of dtypes. Their values are 1 to this number, without a gap. */
#define DTI_COUNT_ONE(name, value, bytes, text) +1
enum { DTI_NUM_DTYPES = 0 DITTO_DTYPE_LIST(DTI_COUNT_ONE) };

/* Stands beside every table that has a row for each dtype, and stops the build when a dtype is added. Add the
 * row as docs/recipes.md describes, and then increase the number. */
#define DTI_KNOWS_DTYPES(number)               \
    _Static_assert(DTI_NUM_DTYPES == (number), \
                   "a dtype was added: add it here, as \"A dtype\" in docs/recipes.md says, then count it")

bool dti_dtype_valid(ditto_dtype dtype);

/* Returns the number of bytes of an element, a power of two, for a dtype that has been checked. For loops
 * over the items of a list, in which a call of ditto_dtype_bytes would take longer than all else. */
static inline size_t dti_element_bytes(ditto_dtype dtype)
{
    static const uint8_t element_bytes[DTI_NUM_DTYPES + 1] = {
#define DTI_ELEMENT_BYTES(name, value, bytes, text) [value] = bytes,
        DITTO_DTYPE_LIST(DTI_ELEMENT_BYTES)
    };
    return element_bytes[dtype];
}

/* What the elements of a dtype are. Code asks this, and never relies on the order of the dtypes' numbers. */
enum dti_dtype_class {
    DTI_CLASS_REAL = 1,    /* a floating-point number that is computed in its own type */
    DTI_CLASS_REAL_IN_F32, /* one that is widened to f32, computed there and rounded once */
    DTI_CLASS_COMPLEX,     /* two floating-point numbers */
    DTI_CLASS_SIGNED,
    DTI_CLASS_UNSIGNED,
    DTI_CLASS_BOOL,
};

/* The switch has no default, so that the compiler names a dtype that is missing. */
static inline enum dti_dtype_class dti_dtype_class_of(ditto_dtype dtype)
{
    switch (dtype) {
    case DITTO_F32:
    case DITTO_F64:
        return DTI_CLASS_REAL;
    case DITTO_F16:
    case DITTO_BF16:
        return DTI_CLASS_REAL_IN_F32;
    case DITTO_C64:
    case DITTO_C128:
        return DTI_CLASS_COMPLEX;
    case DITTO_I8:
    case DITTO_I16:
    case DITTO_I32:
    case DITTO_I64:
        return DTI_CLASS_SIGNED;
    case DITTO_U8:
    case DITTO_U16:
    case DITTO_U32:
    case DITTO_U64:
        return DTI_CLASS_UNSIGNED;
    case DITTO_BOOL:
        return DTI_CLASS_BOOL;
    }
    return (enum dti_dtype_class)0; /* of a number that is not a dtype */
}

/* Returns true for a real or complex floating-point type. A MEAN needs one, and each has kernels for SUM and
 * MEAN. */
static inline bool dti_dtype_is_float(ditto_dtype dtype)
{
    enum dti_dtype_class class = dti_dtype_class_of(dtype);
    return class == DTI_CLASS_REAL || class == DTI_CLASS_REAL_IN_F32 || class == DTI_CLASS_COMPLEX;
}

/* Sets *product to a * b. Returns false if the product does not fit into a size_t. */
bool dti_multiply(size_t a, size_t b, size_t *product);

/* Sets *bytes to the size of `count` elements.
 *   DITTO_ERR_INVALID  the dtype is unknown
 *   DITTO_ERR_RANGE    the size is more than PTRDIFF_MAX */
ditto_status dti_buffer_bytes(size_t count, ditto_dtype dtype, size_t *bytes);

/* Returns the number of elements: the product of the dimensions, 1 for a scalar. It is also 0 if the product
 * overflows or the rank is above DITTO_MAX_RANK, because no such array can exist. */
size_t dti_tensor_count(const ditto_tensor *tensor);

/* Checks dtype, rank and shape, and sets *bytes to the size of the tensor.
 *   DITTO_ERR_INVALID  the rank is above DITTO_MAX_RANK or was not set, or the dtype is unknown
 *   DITTO_ERR_RANGE    the size, with each dimension of 0 counted as 1, is more than PTRDIFF_MAX */
ditto_status dti_tensor_check(const ditto_tensor *tensor, size_t *bytes);

/* Returns true if dtype, rank and shape are equal. */
bool dti_spec_equal(const ditto_tensor *a, const ditto_tensor *b);

/* Writes dtype and shape as text, as in "f32 [3, 4]" or "i64 scalar". */
#define DTI_SPEC_TEXT_BYTES 400
void dti_spec_text(const ditto_tensor *spec, char buffer[DTI_SPEC_TEXT_BYTES]);

/* Checks that `found` has the dtype and shape of `spec`. The message reads "`name` is f32 [3], but `what` is
 * f32 [4]".
 *   DITTO_ERR_INVALID  the dtypes differ
 *   DITTO_ERR_SHAPE    the dtypes are equal and the shapes differ */
ditto_status dti_spec_check(const ditto_tensor *spec, const char *name, const ditto_tensor *found,
                            const char *what);

/* Returns DITTO_ERR_INVALID if `bytes` is above 0 and `buffer` is NULL or not aligned for an element of
 * `dtype`. `name` is the name of the parameter. */
ditto_status dti_buffer_check(const void *buffer, size_t bytes, ditto_dtype dtype, const char *name);

/* Copies an option struct of the caller into the library's own struct of `known_bytes`. The first field of
 * every option struct is size_t struct_size. NULL gives all defaults. A shorter struct is padded with zeros.
 * In a longer struct, the bytes after known_bytes must be zero.
 *   DITTO_ERR_INVALID      struct_size was never set, because the caller did not use the INIT macro
 *   DITTO_ERR_UNSUPPORTED  a byte after known_bytes is not zero: the caller uses a newer feature */
ditto_status dti_options_copy(void *known, size_t known_bytes, const void *given, const char *type_name);

/* Checks a struct that a public function fills. Its first field is size_t struct_size.
 *   DITTO_ERR_INVALID  out is NULL, or struct_size was never set (the caller did not use the INIT macro) */
ditto_status dti_result_check(const void *out, const char *type_name);

/* Copies `found` into the caller's struct, as much as fits. struct_size stays as the caller set it, and
 * fields that only a newer version knows become 0. */
void dti_result_store(void *out, const void *found, size_t found_bytes);

/* Records and returns DITTO_ERR_INVALID for a pointer that must not be NULL. `name` is the name of the
 * parameter. */
ditto_status dti_fail_null(const char *name);

static inline ditto_status dti_not_null(const void *pointer, const char *name)
{
    return __builtin_expect(pointer != NULL, 1) ? DITTO_OK : dti_fail_null(name);
}

/* Returns DITTO_ERR_INVALID if `flags` has a bit that is not in `known`. Unknown bits are never ignored. */
ditto_status dti_flags_check(uint32_t flags, uint32_t known, const char *field_name);

#endif
