/* src/values/number.c - converts elements of tensors to and from numbers. All functions are pure. */
#include "strategy/strategy.h"

#include <float.h>
#include <string.h>

#define CONVERT(name, type)                                           \
    static void name(double *out, const void *elements, size_t count) \
    {                                                                 \
        const type *in = elements;                                    \
        for (size_t i = 0; i < count; i++)                            \
            out[i] = (double)in[i];                                   \
    }
CONVERT(from_f32, float)
CONVERT(from_f64, double)
CONVERT(from_i8, int8_t)
CONVERT(from_i16, int16_t)
CONVERT(from_i32, int32_t)
CONVERT(from_i64, int64_t)
CONVERT(from_u8, uint8_t)
CONVERT(from_u16, uint16_t)
CONVERT(from_u32, uint32_t)
CONVERT(from_u64, uint64_t)

static void (*const convert[DITTO_BOOL + 1])(double *, const void *, size_t) = {
    [DITTO_F32] = from_f32, [DITTO_F64] = from_f64, [DITTO_I8] = from_i8,   [DITTO_I16] = from_i16,
    [DITTO_I32] = from_i32, [DITTO_I64] = from_i64, [DITTO_U8] = from_u8,   [DITTO_U16] = from_u16,
    [DITTO_U32] = from_u32, [DITTO_U64] = from_u64, [DITTO_BOOL] = from_u8,
};

static bool is_half(ditto_dtype dtype)
{
    return dtype == DITTO_F16 || dtype == DITTO_BF16;
}

static void from_halves(double *out, ditto_dtype dtype, const void *in, size_t count)
{
    enum { PIECE = 64 };
    float wide[PIECE];
    for (size_t i = 0; i < count; i += PIECE) {
        size_t piece = count - i < PIECE ? count - i : PIECE;
        dti_kernel_of(dtype, DITTO_SUM)->widen(wide, (const char *)in + 2 * i, piece);
        from_f32(out + i, wide, piece);
    }
}

void dti_to_f64(double *out, ditto_dtype dtype, const void *in, size_t count)
{
    if (is_half(dtype))
        from_halves(out, dtype, in, count);
    else
        convert[dtype](out, in, count);
}

ditto_status dti_tensor_number(const ditto_tensor *tensor, double *out)
{
    if (ditto_tensor_count(tensor) != 1)
        return DTI_FAIL(DITTO_ERR_SHAPE, "%zu elements are not one number", ditto_tensor_count(tensor));
    if (convert[tensor->dtype] == NULL && !is_half(tensor->dtype))
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s is no real number", ditto_dtype_name(tensor->dtype));
    dti_to_f64(out, tensor->dtype, tensor->data, 1);
    return DITTO_OK;
}

/* Returns the value as an element of an integer dtype. An infinity becomes the end of the dtype's range. */
static uint64_t integer_of(ditto_dtype dtype, float value)
{
    unsigned bits = 8 * (unsigned)ditto_dtype_bytes(dtype);
    bool is_signed = dtype >= DITTO_I8 && dtype <= DITTO_I64;
    if (dtype == DITTO_BOOL)
        return value > 0;
    if (value > FLT_MAX)
        return UINT64_MAX >> (64 - bits + is_signed);
    if (value < -FLT_MAX)
        return is_signed ? UINT64_C(1) << (bits - 1) : 0;
    return (uint64_t)(int64_t)value;
}

void dti_number_fill(ditto_dtype dtype, void *out, size_t count, float value)
{
    double complex_f64[2] = { (double)value, 0 };
    float complex_f32[2] = { value, 0 };
    /* Integers have no NaN. No caller passes one with an integer dtype. */
    uint64_t integer = integer_of(dtype, value == value ? value : 0);
    const void *element = &integer; /* its first bytes: the CPU is little-endian */
    if (dtype == DITTO_F64 || dtype == DITTO_C128)
        element = complex_f64;
    else if (dtype == DITTO_F32 || dtype == DITTO_C64)
        element = complex_f32;
    else if (is_half(dtype))
        dti_kernel_of(dtype, DITTO_SUM)->narrow(&integer, &value, 1);
    for (size_t i = 0, bytes = ditto_dtype_bytes(dtype); i < count; i++)
        memcpy((char *)out + i * bytes, element, bytes);
}
