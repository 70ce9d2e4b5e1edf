/* src/vars/checkpoint/hdf5/little_endian.h - numbers of 1 to 8 bytes as they lie in a file, the smallest byte
 * first. */
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

/* Letters and small numbers that are written as a string; its end, a zero, is none of them. A memcpy of the
 * string itself looks to clang-tidy like one that forgets that zero (bugprone-not-null-terminated-result). */
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
