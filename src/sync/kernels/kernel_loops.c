/* src/sync/kernels/kernel_loops.c - elementwise combination for each dtype and operator.
 *
 * The file is compiled once for each instruction set, and DTI_KERNEL_TABLE names the table that comes out
 * (src/meson.build). Operators are inline functions, and the loops over them are written once, in
 * kernel_loops_of_type.h. The compiler makes the vector code. No element depends on another one, so the width
 * of vectors cannot change a bit, and -ffp-contract=off keeps a product and a sum apart. Therefore all tables
 * give the same bits (tests/sync/kernels/test_kernels.c). f16 and bf16 are computed in f32 and rounded once,
 * to nearest even. */
#include "base/numbers/half.h"
#include "base/platform.h"
#include "sync/kernels/kernel.h"

#include <math.h>
#include <string.h>

#define ALWAYS_INLINE __attribute__((always_inline)) static inline
#define UNUSED_OR_NOT __attribute__((unused))
#define PAIR_BLOCK    128 /* complex numbers that are multiplied at a time */

#define REAL     1
#define HALF     2
#define UNSIGNED 3
#define SIGNED   4

#define NAME f32
#define TYPE float
#define KIND REAL
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME f64
#define TYPE double
#define KIND REAL
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME u8
#define TYPE uint8_t
#define KIND UNSIGNED
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME u16
#define TYPE uint16_t
#define KIND UNSIGNED
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME u32
#define TYPE uint32_t
#define KIND UNSIGNED
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME u64
#define TYPE uint64_t
#define KIND UNSIGNED
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME i8
#define TYPE int8_t
#define KIND SIGNED
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME i16
#define TYPE int16_t
#define KIND SIGNED
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME i32
#define TYPE int32_t
#define KIND SIGNED
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME i64
#define TYPE int64_t
#define KIND SIGNED
#include "sync/kernels/kernel_loops_of_type.h"

#define NAME    f16
#define TYPE    float
#define ELEMENT uint16_t
#define KIND    HALF
#define WIDEN   dti_f32_of_f16
#define NARROW  dti_f16_of_f32
#include "sync/kernels/kernel_loops_of_type.h"

/* Two neighbouring elements as one word. In which half the first one is does not matter, because both halves
 * are treated alike. */
typedef uint32_t __attribute__((may_alias, aligned(2))) two_elements;

#define NAME    bf16
#define TYPE    float
#define ELEMENT uint16_t
#define KIND    HALF
#define WIDEN   dti_f32_of_bf16
#define NARROW  dti_bf16_of_f32
#define ROUND   dti_rounded_to_bf16
#include "sync/kernels/kernel_loops_of_type.h"

/* -- the table -- */

#define ROW(op, kernel) \
    [DITTO_##op] = { kernel##_combine, kernel##_into_two, kernel##_four, kernel##_eight, NULL, NULL, NULL }
#define MEAN_ROW(sum, divide) \
    [DITTO_MEAN] = { sum##_combine, sum##_into_two, sum##_four, sum##_eight, divide, NULL, NULL }
#define REAL_ROWS(type)                                                                    \
    {                                                                                      \
        ROW(SUM, type##_sum), MEAN_ROW(type##_sum, type##_divide), ROW(PROD, type##_prod), \
            ROW(MIN, type##_min), ROW(MAX, type##_max)                                     \
    }
/* No kernel multiplies four or eight complex numbers in one pass. */
#define COMPLEX_ROWS(type)                                                                         \
    {                                                                                              \
        ROW(SUM, type##_pair_sum), MEAN_ROW(type##_pair_sum, type##_pair_divide), [DITTO_PROD] = { \
            type##_pair_prod_combine,                                                              \
            type##_pair_prod_into_two,                                                             \
            NULL,                                                                                  \
            NULL,                                                                                  \
            NULL,                                                                                  \
            NULL,                                                                                  \
            NULL                                                                                   \
        }                                                                                          \
    }
/* Accumulators are f32. An operator that the dtype does not have is left out. */
#define HALF_ROW(op, name, type, divide)                                                               \
    [DITTO_##op] = { f32_##name##_combine, type##_##name##_into_two, NULL, NULL, divide, type##_widen, \
                     type##_narrow }
#define HALF_ROWS(type)                                                                                      \
    {                                                                                                        \
        HALF_ROW(SUM, sum, type, NULL), HALF_ROW(MEAN, sum, type, f32_divide),                               \
            HALF_ROW(PROD, prod, type, NULL), HALF_ROW(MIN, min, type, NULL), HALF_ROW(MAX, max, type, NULL) \
    }
#define BITWISE_ROWS(type) ROW(AND, type##_and), ROW(OR, type##_or), ROW(XOR, type##_xor)
#define INTEGER_ROWS(sign, bits)                                                        \
    {                                                                                   \
        ROW(SUM, u##bits##_sum), ROW(PROD, u##bits##_prod), ROW(MIN, sign##bits##_min), \
            ROW(MAX, sign##bits##_max), BITWISE_ROWS(u##bits)                           \
    }

DTI_KNOWS_DTYPES(15);

dti_kernel_table DTI_KERNEL_TABLE = {
    [DITTO_F16] = HALF_ROWS(f16),      [DITTO_BF16] = HALF_ROWS(bf16),    [DITTO_F32] = REAL_ROWS(f32),
    [DITTO_F64] = REAL_ROWS(f64),      [DITTO_C64] = COMPLEX_ROWS(f32),   [DITTO_C128] = COMPLEX_ROWS(f64),
    [DITTO_I8] = INTEGER_ROWS(i, 8),   [DITTO_I16] = INTEGER_ROWS(i, 16), [DITTO_I32] = INTEGER_ROWS(i, 32),
    [DITTO_I64] = INTEGER_ROWS(i, 64), [DITTO_U8] = INTEGER_ROWS(u, 8),   [DITTO_U16] = INTEGER_ROWS(u, 16),
    [DITTO_U32] = INTEGER_ROWS(u, 32), [DITTO_U64] = INTEGER_ROWS(u, 64), [DITTO_BOOL] = { BITWISE_ROWS(u8) },
};
