/* src/sync/kernel.c - elementwise combination for each dtype and op.
 *
 * Every kernel is one loop whose body is one expression; the compiler makes the vector code. No step depends on another
 * element, so vector width cannot change a bit, and -ffp-contract=off keeps a product and a sum apart. */
#include "sync/kernel.h"

#include <math.h>

/* The buffers are equal or disjoint (tree.h), so no iteration needs another one's result. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* One kernel pair: `value` is an expression of x and y. */
#define KERNEL(name, type, value)                                                                          \
    static void name(void *out, const void *left, const void *right, size_t count)                         \
    {                                                                                                      \
        type *o = out;                                                                                     \
        const type *a = left, *b = right;                                                                  \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                                     \
        {                                                                                                  \
            type x = a[i], y = b[i];                                                                       \
            o[i] = (value);                                                                                \
        }                                                                                                  \
    }                                                                                                      \
    static void name##_into_two(void *out0, void *out1, const void *left, const void *right, size_t count) \
    {                                                                                                      \
        type *o0 = out0, *o1 = out1;                                                                       \
        const type *a = left, *b = right;                                                                  \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                                     \
        {                                                                                                  \
            type x = a[i], y = b[i];                                                                       \
            o0[i] = o1[i] = (value);                                                                       \
        }                                                                                                  \
    }

#define DIVIDE(name, type)                                         \
    static void name(void *values, size_t count, uint32_t divisor) \
    {                                                              \
        type *v = values, d = (type)divisor;                       \
        for (size_t i = 0; i < count; i++)                         \
            v[i] /= d;                                             \
    }

/* IEEE 754-2019 minimum and maximum: a NaN on either side gives a NaN (x + y), and -0 is less than +0. */
#define MINIMUM(x, y) (x < y ? x : y < x ? y : x == y ? (signbit(x) ? x : y) : x + y)
#define MAXIMUM(x, y) (x > y ? x : y > x ? y : x == y ? (signbit(x) ? y : x) : x + y)

KERNEL(sum_f32, float, x + y)
KERNEL(min_f32, float, MINIMUM(x, y))
KERNEL(max_f32, float, MAXIMUM(x, y))
DIVIDE(divide_f32, float)
KERNEL(sum_f64, double, x + y)
KERNEL(min_f64, double, MINIMUM(x, y))
KERNEL(max_f64, double, MAXIMUM(x, y))
DIVIDE(divide_f64, double)
/* Integers wrap: unsigned arithmetic, whose overflow is defined. */
KERNEL(sum_i32, int32_t, (int32_t)((uint32_t)x + (uint32_t)y))
KERNEL(min_i32, int32_t, x < y ? x : y)
KERNEL(max_i32, int32_t, x > y ? x : y)
KERNEL(sum_i64, int64_t, (int64_t)((uint64_t)x + (uint64_t)y))
KERNEL(min_i64, int64_t, x < y ? x : y)
KERNEL(max_i64, int64_t, x > y ? x : y)

#define ROW(name, divide)             \
    {                                 \
        name, name##_into_two, divide \
    }
static const struct dti_kernel kernels[DITTO_BOOL + 1][DITTO_MAX + 1] = {
    [DITTO_F32] = { [DITTO_SUM] = ROW(sum_f32, NULL),
                    [DITTO_MEAN] = ROW(sum_f32, divide_f32),
                    [DITTO_MIN] = ROW(min_f32, NULL),
                    [DITTO_MAX] = ROW(max_f32, NULL) },
    [DITTO_F64] = { [DITTO_SUM] = ROW(sum_f64, NULL),
                    [DITTO_MEAN] = ROW(sum_f64, divide_f64),
                    [DITTO_MIN] = ROW(min_f64, NULL),
                    [DITTO_MAX] = ROW(max_f64, NULL) },
    [DITTO_I32] = { [DITTO_SUM] = ROW(sum_i32, NULL),
                    [DITTO_MIN] = ROW(min_i32, NULL),
                    [DITTO_MAX] = ROW(max_i32, NULL) },
    [DITTO_I64] = { [DITTO_SUM] = ROW(sum_i64, NULL),
                    [DITTO_MIN] = ROW(min_i64, NULL),
                    [DITTO_MAX] = ROW(max_i64, NULL) },
};

const struct dti_kernel *dti_kernel_of(ditto_dtype dtype, ditto_op op)
{
    return &kernels[dtype][op];
}

const char *ditto_op_name(ditto_op op)
{
    static const char *const names[] = { "unknown op", "SUM", "MEAN", "MIN", "MAX" };
    return names[op >= DITTO_SUM && op <= DITTO_MAX ? op : 0];
}
