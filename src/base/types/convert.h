/* src/base/types/convert.h - elements as they lie in a file become elements as they lie in memory. */
#ifndef DTI_CONVERT_H
#define DTI_CONVERT_H

#include <ditto/dtype.h>

#include <stdbool.h>
#include <stddef.h>

/* Whether a file in this byte order differs from this machine's. */
static inline bool dti_elements_differ(bool big_endian)
{
    return big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* In place, at any alignment: bytes of each element turned round where `swap` says so (of each half of a complex number); a BOOL that is
 * neither 0 nor 1 becomes 1, since a program that reads another one as _Bool is undefined. */
void dti_elements_arrange(void *data, size_t bytes, ditto_dtype dtype, bool swap);

#endif
