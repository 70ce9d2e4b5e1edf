/* src/vars/checkpoint/hdf5/hdf5_format.c - encodes datatypes; see hdf5_format.h. */
#include "vars/checkpoint/hdf5/hdf5_format.h"
#include "base/types/types.h"
#include "vars/checkpoint/files/little_endian.h"

#include <stdbool.h>
#include <string.h>

/* Values are written in the byte order of the machine, and the datatypes are marked as little-endian. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "checkpoints are written on little-endian machines");

const char *const dti_h5_synchronizations[2] = { "ON_WRITE", "ON_READ" };
const char *const dti_h5_aggregations[4] = { "NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA" };

/* The classes of datatypes. The upper half of the byte is the version, which is 1. */
enum { FIXED = 0x10, FLOATING = 0x11, TEXT = 0x13, COMPOUND = 0x16, ENUMERATION = 0x18 };

enum { FIXED_BYTES = 12, FLOATING_BYTES = 20, NAME_BYTES = 8, MEMBER_BYTES = 32 };

static size_t integer(unsigned char *at, size_t bytes, bool has_sign)
{
    memset(at, 0, FIXED_BYTES);
    at[0] = FIXED;
    at[1] = has_sign ? 0x08 : 0;
    dti_put_number(at + 4, bytes, 4);
    dti_put_number(at + 10, 8 * bytes, 2); /* precision */
    return FIXED_BYTES;
}

static size_t floating(unsigned char *at, size_t bytes, int exponent_bits, int fraction_bits)
{
    memset(at, 0, FLOATING_BYTES);
    at[0] = FLOATING;
    at[1] = 0x20;                           /* the leading 1 is not stored */
    at[2] = (unsigned char)(8 * bytes - 1); /* the position of the sign bit */
    dti_put_number(at + 4, bytes, 4);
    dti_put_number(at + 10, 8 * bytes, 2); /* precision */
    at[12] = (unsigned char)fraction_bits; /* the position of the exponent's lowest bit */
    at[13] = (unsigned char)exponent_bits;
    at[15] = (unsigned char)fraction_bits;
    dti_put_number(at + 16, (1u << (exponent_bits - 1)) - 1, 4);
    return FLOATING_BYTES;
}

static size_t member(unsigned char *at, const char *name, size_t offset, size_t bytes)
{
    memset(at, 0, NAME_BYTES + MEMBER_BYTES);
    dti_put_bytes(at, name, strlen(name));
    dti_put_number(at + NAME_BYTES, offset, 4);
    return NAME_BYTES + MEMBER_BYTES +
           floating(at + NAME_BYTES + MEMBER_BYTES, bytes, bytes == 4 ? 8 : 11, bytes == 4 ? 23 : 52);
}

static size_t complex_number(unsigned char *at, size_t bytes)
{
    memset(at, 0, 8);
    at[0] = COMPOUND;
    at[1] = 2; /* members */
    dti_put_number(at + 4, 2 * bytes, 4);
    size_t length = 8;
    length += member(at + length, "r", 0, bytes);
    length += member(at + length, "i", bytes, bytes);
    return length;
}

static size_t boolean(unsigned char *at)
{
    memset(at, 0, 8);
    at[0] = ENUMERATION;
    at[1] = 2; /* members */
    dti_put_number(at + 4, 1, 4);
    size_t length = 8 + integer(at + 8, 1, true);
    dti_put_bytes(at + length, "FALSE\0\0\0TRUE\0\0\0\0\0\1", 18); /* two names, then their two values */
    return length + 18;
}

DTI_KNOWS_DTYPES(15);

size_t dti_h5_type(ditto_dtype dtype, unsigned char out[DTI_H5_TYPE_BYTES])
{
    switch (dtype) {
    case DITTO_F16:
        return floating(out, 2, 5, 10);
    case DITTO_BF16:
        return floating(out, 2, 8, 7);
    case DITTO_F32:
        return floating(out, 4, 8, 23);
    case DITTO_F64:
        return floating(out, 8, 11, 52);
    case DITTO_C64:
        return complex_number(out, 4);
    case DITTO_C128:
        return complex_number(out, 8);
    case DITTO_I8:
    case DITTO_I16:
    case DITTO_I32:
    case DITTO_I64:
        return integer(out, ditto_dtype_bytes(dtype), true);
    case DITTO_U8:
    case DITTO_U16:
    case DITTO_U32:
    case DITTO_U64:
        return integer(out, ditto_dtype_bytes(dtype), false);
    case DITTO_BOOL:
        return boolean(out);
    }
    return 0;
}

size_t dti_h5_text_type(size_t bytes, unsigned char out[DTI_H5_TYPE_BYTES])
{
    memset(out, 0, 8);
    out[0] = TEXT;
    out[1] = 0x10; /* UTF-8, terminated by a zero */
    dti_put_number(out + 4, bytes, 4);
    return 8;
}
