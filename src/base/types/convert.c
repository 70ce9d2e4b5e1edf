/* src/base/types/convert.c - see convert.h. */
#include "base/types/convert.h"

#include <stdint.h>
#include <string.h>

/* Each function has a loop for one width, which the compiler turns into vector shuffles. */
#define SWAP_LOOP(bits)                                            \
    static void swap_##bits(char *data, size_t bytes)              \
    {                                                              \
        for (size_t i = 0; i + bits / 8 <= bytes; i += bits / 8) { \
            uint##bits##_t element;                                \
            memcpy(&element, data + i, sizeof element);            \
            element = __builtin_bswap##bits(element);              \
            memcpy(data + i, &element, sizeof element);            \
        }                                                          \
    }
SWAP_LOOP(16)
SWAP_LOOP(32)
SWAP_LOOP(64)

void dti_elements_arrange(void *data, size_t bytes, ditto_dtype dtype, bool swap)
{
    size_t width = ditto_dtype_bytes(dtype);
    if (dtype == DITTO_C64 || dtype == DITTO_C128)
        width /= 2;
    if (dtype == DITTO_BOOL)
        for (size_t i = 0; i < bytes; i++)
            ((unsigned char *)data)[i] = ((unsigned char *)data)[i] != 0;
    else if (swap && width == 2)
        swap_16(data, bytes);
    else if (swap && width == 4)
        swap_32(data, bytes);
    else if (swap && width == 8)
        swap_64(data, bytes);
}
