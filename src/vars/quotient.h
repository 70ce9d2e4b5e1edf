/* src/vars/quotient.h - quotients of complex numbers. Pure; runs in the default floating-point
 * environment. */
#ifndef DTI_QUOTIENT_H
#define DTI_QUOTIENT_H

#include <stddef.h>

/* new[i] = old[i] / given[i] for `count` complex numbers, each two parts of f32 (c64) or f64 (c128). `new`
 * may be `old` or `given`. */
void dti_quotient_c64(void *new, const void *old, const void *given, size_t count);
void dti_quotient_c128(void *new, const void *old, const void *given, size_t count);

#endif
