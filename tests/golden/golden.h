/* tests/golden/golden.h - hashes of the results of ditto's own arithmetic, whose bits must never change. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stddef.h>
#include <stdint.h>

enum golden_part {
    GOLDEN_LOG,
    GOLDEN_SINE,
    GOLDEN_COSINE,
    GOLDEN_POWER,
    GOLDEN_SUM_OF_PRODUCTS,
    GOLDEN_QUOTIENT_C64,
    GOLDEN_QUOTIENT_C128,
    GOLDEN_STEPS_F32,
    GOLDEN_STEPS_F64,
    GOLDEN_KERNELS_REAL,
    GOLDEN_KERNELS_COMPLEX,
    GOLDEN_KERNELS_HALF,
    GOLDEN_KERNELS_INTEGER,
    GOLDEN_PARTS,
};

/* One compilation of tests/golden/arithmetic.c. */
struct golden_variant {
    const char *name; /* compiler and flags */
    int needs_avx2_and_fma, needs_avx512;
    void (*compute)(uint64_t hash[GOLDEN_PARTS]);
};

/* Continues the FNV-1a hash `hash` with the bytes. */
static inline uint64_t golden_hash(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Returns the next pseudo-random number by xorshift. The numbers are the same on all machines. */
static inline uint64_t golden_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Returns a positive or negative number whose magnitude is at least 2^-10 and below 2^6. */
static inline double golden_number(uint64_t *state)
{
    uint64_t bits = golden_next(state);
    double fraction = 1 + (double)(bits >> 12) * 0x1p-52;
    double power = (double)(UINT64_C(1) << (bits & 15)) * 0x1p-10;
    return (bits & 16) != 0 ? fraction * power : -fraction * power;
}

#endif
