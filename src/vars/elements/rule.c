/* src/vars/elements/rule.c - elementwise updates. Sums, products, minima and maxima use the kernels of the
 * reductions. Differences and quotients are computed here. Quotients of complex numbers are in quotient.c.
 * All functions are pure. */
#include "sync/kernels/local_reduction.h"
#include "sync/sync.h"
#include "vars/elements/elements.h"

#include <string.h>

/* Defines one kernel of one dtype. In `value`, x is an element of the old value, and y is an element of the
 * given value. */
#define ELEMENTWISE(name, type, value)                                            \
    static void name(void *new, const void *old, const void *given, size_t count) \
    {                                                                             \
        type *o = new;                                                            \
        const type *a = old, *b = given;                                          \
        for (size_t i = 0; i < count; i++) {                                      \
            type x = a[i], y = b[i];                                              \
            o[i] = (value);                                                       \
        }                                                                         \
    }
#define FLOATING(suffix, type)                  \
    ELEMENTWISE(subtract_##suffix, type, x - y) \
    ELEMENTWISE(divide_##suffix, type, x / y)
/* Computes in uint64_t, where overflow is defined. The smallest number divided by -1 therefore wraps to
 * itself. */
#define WRAPPED(type, x, op, y) (type)((uint64_t)(x)op(uint64_t)(y))
#define SIGNED(suffix, type)                                     \
    ELEMENTWISE(subtract_##suffix, type, WRAPPED(type, x, -, y)) \
    ELEMENTWISE(divide_##suffix, type, (type)(y == 0 ? 0 : y == -1 ? WRAPPED(type, 0, -, x) : x / y))
#define UNSIGNED(suffix, type)                                   \
    ELEMENTWISE(subtract_##suffix, type, WRAPPED(type, x, -, y)) \
    ELEMENTWISE(divide_##suffix, type, (type)(y == 0 ? 0 : x / y))

FLOATING(f32, float)
FLOATING(f64, double)
SIGNED(i8, int8_t)
SIGNED(i16, int16_t)
SIGNED(i32, int32_t)
SIGNED(i64, int64_t)
UNSIGNED(u8, uint8_t)
UNSIGNED(u16, uint16_t)
UNSIGNED(u32, uint32_t)
UNSIGNED(u64, uint64_t)

/* A difference of complex numbers is the differences of their parts. */
static void subtract_c64(void *new, const void *old, const void *given, size_t count)
{
    subtract_f32(new, old, given, 2 * count);
}
static void subtract_c128(void *new, const void *old, const void *given, size_t count)
{
    subtract_f64(new, old, given, 2 * count);
}

/* f16 and bf16 are computed in f32, and the result is rounded once. */
#define TILE 256
static void in_f32(ditto_dtype dtype, dti_combine *f, void *new, const void *old, const void *given,
                   size_t count)
{
    const struct dti_kernel *kernel = dti_kernel_of(dtype, DITTO_SUM);
    size_t element_bytes = ditto_dtype_bytes(dtype);
    float x[TILE], y[TILE];
    for (size_t i = 0; i < count; i += TILE) {
        size_t part = count - i < TILE ? count - i : TILE;
        kernel->widen(x, (const char *)old + i * element_bytes, part);
        kernel->widen(y, (const char *)given + i * element_bytes, part);
        f(x, x, y, part);
        kernel->narrow((char *)new + i *element_bytes, x, part);
    }
}
#define HALF(suffix, dtype)                                                                    \
    static void subtract_##suffix(void *new, const void *old, const void *given, size_t count) \
    {                                                                                          \
        in_f32(dtype, subtract_f32, new, old, given, count);                                   \
    }                                                                                          \
    static void divide_##suffix(void *new, const void *old, const void *given, size_t count)   \
    {                                                                                          \
        in_f32(dtype, divide_f32, new, old, given, count);                                     \
    }
HALF(f16, DITTO_F16)
HALF(bf16, DITTO_BF16)

DTI_KNOWS_DTYPES(15);

static const struct {
    dti_combine *subtract, *divide; /* NULL for bool */
} computed_here[DTI_NUM_DTYPES + 1] = {
    [DITTO_F16] = { subtract_f16, divide_f16 },       [DITTO_BF16] = { subtract_bf16, divide_bf16 },
    [DITTO_F32] = { subtract_f32, divide_f32 },       [DITTO_F64] = { subtract_f64, divide_f64 },
    [DITTO_C64] = { subtract_c64, dti_quotient_c64 }, [DITTO_C128] = { subtract_c128, dti_quotient_c128 },
    [DITTO_I8] = { subtract_i8, divide_i8 },          [DITTO_I16] = { subtract_i16, divide_i16 },
    [DITTO_I32] = { subtract_i32, divide_i32 },       [DITTO_I64] = { subtract_i64, divide_i64 },
    [DITTO_U8] = { subtract_u8, divide_u8 },          [DITTO_U16] = { subtract_u16, divide_u16 },
    [DITTO_U32] = { subtract_u32, divide_u32 },       [DITTO_U64] = { subtract_u64, divide_u64 },
};

static const struct {
    const char *name;
    ditto_op op; /* 0 if the rule is in `computed_here`, or is assignment */
} rules[] = {
    [DTI_RULE_ASSIGN] = { "assignment", (ditto_op)0 }, [DTI_RULE_ADD] = { "addition", DITTO_SUM },
    [DTI_RULE_SUB] = { "subtraction", (ditto_op)0 },   [DTI_RULE_MUL] = { "multiplication", DITTO_PROD },
    [DTI_RULE_DIV] = { "division", (ditto_op)0 },      [DTI_RULE_MIN] = { "minimum", DITTO_MIN },
    [DTI_RULE_MAX] = { "maximum", DITTO_MAX },
};

ditto_status dti_rule_check(enum dti_rule rule, ditto_dtype dtype)
{
    bool has = rule == DTI_RULE_ASSIGN ||
               (rules[rule].op != 0 ? dti_kernel_of(dtype, rules[rule].op)->combine != NULL
                                    : computed_here[dtype].divide != NULL);
    if (!has)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "%s of %s: the dtype has no such operation (bool has no arithmetic, complex numbers no order)",
            rules[rule].name, ditto_dtype_name(dtype));
    return DITTO_OK;
}

void dti_rule_apply(enum dti_rule rule, ditto_dtype dtype, void *new, const void *old, const void *value,
                    size_t count)
{
    if (count == 0)
        return;
    if (rule == DTI_RULE_ASSIGN)
        memmove(new, value, count * ditto_dtype_bytes(dtype)); /* memmove, because `new` may be `value` */
    else if (rule == DTI_RULE_SUB)
        computed_here[dtype].subtract(new, old, value, count);
    else if (rule == DTI_RULE_DIV)
        computed_here[dtype].divide(new, old, value, count);
    else
        dti_combine_two(dtype, rules[rule].op, new, old, value, count);
}

bool dti_has_integer_zero(ditto_dtype dtype, const void *value, size_t count)
{
    static const unsigned char zero[8];
    size_t element_bytes = ditto_dtype_bytes(dtype);
    for (size_t i = 0; i < count && !dti_dtype_is_float(dtype); i++)
        if (memcmp((const char *)value + i * element_bytes, zero, element_bytes) == 0)
            return true;
    return false;
}
