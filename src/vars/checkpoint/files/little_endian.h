/* src/vars/checkpoint/files/little_endian.h - writes and reads little-endian numbers of 1 to 8 bytes. */
#ifndef DTI_LITTLE_ENDIAN_H
#define DTI_LITTLE_ENDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void dti_put_number(unsigned char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

/* Copies bytes from a string literal without its terminating zero. If memcpy is called with the literal
 * directly, clang-tidy reports that the zero is missing (bugprone-not-null-terminated-result). */
static inline void dti_put_bytes(unsigned char *at, const char *bytes, size_t count)
{
    memcpy(at, bytes, count);
}

static inline uint64_t dti_get_number(const unsigned char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}

#endif
