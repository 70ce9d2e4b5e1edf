/* src/base/types/convert.c - see convert.h. */
#include "base/types/convert.h"
#include "base/errors/status.h"
#include "base/numbers/half.h"
#include "base/types/types.h"

#include <math.h>
#include <string.h>

/* -- elements of files -- */

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
    if (dti_dtype_class_of(dtype) == DTI_CLASS_COMPLEX)
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

/* -- elements and numbers -- */

#define CONVERT(name, type, number)                                   \
    static void name(double *out, const void *elements, size_t count) \
    {                                                                 \
        const type *in = elements;                                    \
        for (size_t i = 0; i < count; i++)                            \
            out[i] = (double)number(in[i]);                           \
    }
CONVERT(from_f16, uint16_t, dti_f32_of_f16)
CONVERT(from_bf16, uint16_t, dti_f32_of_bf16)
CONVERT(from_f32, float, )
CONVERT(from_f64, double, )
CONVERT(from_i8, int8_t, )
CONVERT(from_i16, int16_t, )
CONVERT(from_i32, int32_t, )
CONVERT(from_i64, int64_t, )
CONVERT(from_u8, uint8_t, )
CONVERT(from_u16, uint16_t, )
CONVERT(from_u32, uint32_t, )
CONVERT(from_u64, uint64_t, )

DTI_KNOWS_DTYPES(15);

/* One function for each dtype. It is NULL for complex dtypes. */
static void (*const convert[DTI_NUM_DTYPES + 1])(double *, const void *, size_t) = {
    [DITTO_F16] = from_f16, [DITTO_BF16] = from_bf16, [DITTO_F32] = from_f32, [DITTO_F64] = from_f64,
    [DITTO_I8] = from_i8,   [DITTO_I16] = from_i16,   [DITTO_I32] = from_i32, [DITTO_I64] = from_i64,
    [DITTO_U8] = from_u8,   [DITTO_U16] = from_u16,   [DITTO_U32] = from_u32, [DITTO_U64] = from_u64,
    [DITTO_BOOL] = from_u8,
};

void dti_to_f64(double *out, ditto_dtype dtype, const void *in, size_t count)
{
    convert[dtype](out, in, count);
}

ditto_status dti_tensor_number(const ditto_tensor *tensor, double *out)
{
    if (dti_tensor_count(tensor) != 1)
        return DTI_FAIL(DITTO_ERR_SHAPE, "%zu elements are not one number", dti_tensor_count(tensor));
    if (convert[tensor->dtype] == NULL)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "a %s element is not a real number",
                        ditto_dtype_name(tensor->dtype));
    dti_to_f64(out, tensor->dtype, tensor->data, 1);
    return DITTO_OK;
}

/* Returns an integer whose low bytes are the element. */
static uint64_t integer_of(ditto_dtype dtype, double value)
{
    bool is_signed = dti_dtype_class_of(dtype) == DTI_CLASS_SIGNED;
    int bits = 8 * (int)ditto_dtype_bytes(dtype) - is_signed;
    double end = ldexp(1, bits), least = is_signed ? -end : 0;
    if (dtype == DITTO_BOOL)
        return value > 0;
    if (isnan(value))
        return 0;
    if (value >= end)
        return UINT64_MAX >> (64 - bits);
    value = value < least ? least : value;
    return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

void dti_number_store(ditto_dtype dtype, void *element, double value)
{
    double f64[2] = { value, 0 };
    float f32[2] = { (float)value, 0 };
    size_t bytes = ditto_dtype_bytes(dtype);
    switch (dtype) { /* has no default, so that the compiler names a dtype that is missing */
    case DITTO_F16:
        dti_integer_store(element, bytes, dti_f16_of_f32(f32[0]));
        break;
    case DITTO_BF16:
        dti_integer_store(element, bytes, dti_bf16_of_f32(f32[0]));
        break;
    case DITTO_F32:
    case DITTO_C64:
        memcpy(element, f32, bytes);
        break;
    case DITTO_F64:
    case DITTO_C128:
        memcpy(element, f64, bytes);
        break;
    case DITTO_I8:
    case DITTO_I16:
    case DITTO_I32:
    case DITTO_I64:
    case DITTO_U8:
    case DITTO_U16:
    case DITTO_U32:
    case DITTO_U64:
    case DITTO_BOOL:
        dti_integer_store(element, bytes, integer_of(dtype, value));
    }
}

void dti_number_fill(ditto_dtype dtype, void *out, size_t count, double value)
{
    for (size_t i = 0, bytes = ditto_dtype_bytes(dtype); i < count; i++)
        dti_number_store(dtype, (char *)out + i * bytes, value);
}
