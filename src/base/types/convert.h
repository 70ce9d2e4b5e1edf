/* src/base/types/convert.h - converts elements from the form in which a file holds them into the form of this
 * machine. */
#ifndef DTI_CONVERT_H
#define DTI_CONVERT_H

#include <ditto/dtype.h>

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the byte order of a file differs from the byte order of this machine. */
static inline bool dti_elements_differ(bool big_endian)
{
    return big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Converts `bytes` bytes of elements in place, at any alignment. If `swap` is true, it reverses the bytes of
 * each element, or of each half of a complex number. A BOOL that is neither 0 nor 1 becomes 1, because
 * reading another value as _Bool is undefined behaviour. */
void dti_elements_arrange(void *data, size_t bytes, ditto_dtype dtype, bool swap);

#endif
