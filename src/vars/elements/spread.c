/* src/vars/elements/spread.c - divides a value into parts that add up to it; see elements.h. */
#include "sync/kernels/local_reduction.h"
#include "sync/sync.h"
#include "vars/elements/elements.h"

#include <string.h>

/* An integer as a sign and a magnitude, so that one function computes all eight integer types. */
struct integer {
    bool negative;
    uint64_t magnitude;
};

static struct integer of_signed(int64_t x)
{
    return (struct integer){ x < 0, x < 0 ? 0 - (uint64_t)x : (uint64_t)x };
}

static struct integer of_unsigned(uint64_t x)
{
    return (struct integer){ false, x };
}

static struct integer load(ditto_dtype dtype, const void *at)
{
    switch (dtype) {
    case DITTO_I8:
        return of_signed(*(const int8_t *)at);
    case DITTO_I16:
        return of_signed(*(const int16_t *)at);
    case DITTO_I32:
        return of_signed(*(const int32_t *)at);
    case DITTO_I64:
        return of_signed(*(const int64_t *)at);
    case DITTO_U8:
        return of_unsigned(*(const uint8_t *)at);
    case DITTO_U16:
        return of_unsigned(*(const uint16_t *)at);
    case DITTO_U32:
        return of_unsigned(*(const uint32_t *)at);
    default: /* u64, because the other dtypes are not integers or have no SUM */
        return of_unsigned(*(const uint64_t *)at);
    }
}

/* Stores a number in an integer of 1, 2, 4 or 8 bytes. In two's complement the low bytes of `number` are the
 * result. */
static void store(size_t bytes, uint64_t number, void *at)
{
    uint8_t one = (uint8_t)number;
    uint16_t two = (uint16_t)number;
    uint32_t four = (uint32_t)number;
    const void *from = bytes == 1   ? &one
                       : bytes == 2 ? (const void *)&two
                       : bytes == 4 ? (const void *)&four
                                    : &number;
    memcpy(at, from, bytes);
}

void dti_spread_part(ditto_dtype dtype, const void *value, uint32_t i, uint32_t n, void *part, size_t count)
{
    size_t element_bytes = ditto_dtype_bytes(dtype);
    if (dti_dtype_is_float(dtype)) {
        dti_divide(dtype, part, value, count, n);
        return;
    }
    for (size_t k = 0; k < count; k++) {
        struct integer w = load(dtype, (const char *)value + k * element_bytes);
        uint64_t share = w.magnitude / n + (i < w.magnitude % n);
        store(element_bytes, w.negative ? 0 - share : share, (char *)part + k * element_bytes);
    }
}
