/* src/base/numbers/half.h - conversions between f32 and the 16-bit floating-point formats f16 and bf16.
 *
 * Rounding is to nearest, ties to even. The functions select between results and have no branches, so that
 * the compiler can make vector code of loops over them. */
#ifndef DTI_HALF_H
#define DTI_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t dti_bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float dti_f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The multiplication by 2^112 corrects the bias of the exponent. It also turns denormal numbers of f16 into
 * normal numbers of f32. */
static inline float dti_f32_of_f16(uint16_t half)
{
    uint32_t bits = dti_bits_of_f32(dti_f32_of_bits((uint32_t)(half & 0x7fff) << 13) * 0x1p112f);
    bits |= (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0; /* infinity and NaN */
    return dti_f32_of_bits(bits | (uint32_t)(half & 0x8000) << 16);
}

/* There are three ranges. Large numbers become infinity, and a NaN stays a NaN. Numbers that are denormal
 * in f16 are shifted and rounded by a floating-point addition. For normal numbers the rounding is added to
 * the bits, and a carry goes into the exponent. */
static inline uint16_t dti_f16_of_f32(float value)
{
    const uint32_t shift = (127u - 15 + 23 - 10 + 1) << 23;
    uint32_t bits = dti_bits_of_f32(value), sign = bits & 0x80000000u, magnitude = bits ^ sign;
    uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t small = dti_bits_of_f32(dti_f32_of_bits(magnitude) + dti_f32_of_bits(shift)) - shift;
    uint32_t rounding = 0xfffu + (magnitude >> 13 & 1);
    uint32_t normal = (magnitude + 0xc8000000u + rounding) >> 13; /* 0xc8000000: (15 - 127) << 23 */
    uint32_t half = magnitude >= 0x47800000u ? large : magnitude < 0x38800000u ? small : normal;
    return (uint16_t)(half | sign >> 16);
}

static inline float dti_f32_of_bf16(uint16_t half)
{
    return dti_f32_of_bits((uint32_t)half << 16);
}

/* Rounds to a bf16, which is the upper half of the result. The lower half is arbitrary. */
static inline uint32_t dti_rounded_to_bf16(float value)
{
    uint32_t bits = dti_bits_of_f32(value), rounded = bits + 0x7fffu + (bits >> 16 & 1);
    uint32_t quiet_nan = bits | 0x400000u;
    return (bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded;
}

static inline uint16_t dti_bf16_of_f32(float value)
{
    return (uint16_t)(dti_rounded_to_bf16(value) >> 16);
}

#endif
