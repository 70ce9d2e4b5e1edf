/* include/ditto/dtype.h - the types of elements. */
#ifndef DITTO_DTYPE_H
#define DITTO_DTYPE_H

#include <ditto/status.h>

DITTO_BEGIN

/** @defgroup ditto_dtypes Dtypes
 *  The types of elements.
 *  @{ */

/** Every dtype with its name, value, bytes of one element, and short name. 0 is not a dtype, so that a field
 *  which was not set is detected. */
#define DITTO_DTYPE_LIST(X)      \
    X(DITTO_F16, 1, 2, "f16")    \
    X(DITTO_BF16, 2, 2, "bf16")  \
    X(DITTO_F32, 3, 4, "f32")    \
    X(DITTO_F64, 4, 8, "f64")    \
    X(DITTO_C64, 5, 8, "c64")    \
    X(DITTO_C128, 6, 16, "c128") \
    X(DITTO_I8, 7, 1, "i8")      \
    X(DITTO_I16, 8, 2, "i16")    \
    X(DITTO_I32, 9, 4, "i32")    \
    X(DITTO_I64, 10, 8, "i64")   \
    X(DITTO_U8, 11, 1, "u8")     \
    X(DITTO_U16, 12, 2, "u16")   \
    X(DITTO_U32, 13, 4, "u32")   \
    X(DITTO_U64, 14, 8, "u64")   \
    X(DITTO_BOOL, 15, 1, "bool")

/** The type of an element. The members are those of DITTO_DTYPE_LIST. */
typedef enum ditto_dtype {
#define DITTO_DTYPE_MEMBER(name, value, bytes, text) name = value,
    DITTO_DTYPE_LIST(DITTO_DTYPE_MEMBER)
#undef DITTO_DTYPE_MEMBER
} ditto_dtype;

/** Returns the number of bytes of one element.
 *
 *  @param dtype  the dtype
 *  @return the number; 0 if dtype is not a value of the enum
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API size_t ditto_dtype_bytes(ditto_dtype dtype);

/** Returns the short name of a dtype, for example "f32".
 *
 *  @param dtype  the dtype
 *  @return a constant string; "unknown dtype" if dtype is not a value of the enum
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API const char *ditto_dtype_name(ditto_dtype dtype);

/** @} */

DITTO_END
#endif
