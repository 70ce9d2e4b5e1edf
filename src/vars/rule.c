/* src/vars/rule.c - elementwise updates. Pure. */
#include "vars/rule.h"
#include "base/base.h"
#include "sync/sync.h"

#include <string.h>

#define SUBTRACT(name, type, value)                                                \
    static void name(void *out, const void *left, const void *right, size_t count) \
    {                                                                              \
        type *o = out;                                                             \
        const type *a = left, *b = right;                                          \
        for (size_t i = 0; i < count; i++) {                                       \
            type x = a[i], y = b[i];                                               \
            o[i] = (value);                                                        \
        }                                                                          \
    }
SUBTRACT(subtract_f32, float, x - y)
SUBTRACT(subtract_f64, double, x - y)
SUBTRACT(subtract_i32, int32_t, (int32_t)((uint32_t)x - (uint32_t)y)) /* integers wrap */
SUBTRACT(subtract_i64, int64_t, (int64_t)((uint64_t)x - (uint64_t)y))

static void (*const subtract[DITTO_BOOL + 1])(void *, const void *, const void *, size_t) = {
    [DITTO_F32] = subtract_f32, [DITTO_F64] = subtract_f64, [DITTO_I32] = subtract_i32, [DITTO_I64] = subtract_i64
};

ditto_status dti_rule_check(enum dti_rule rule, ditto_dtype dtype)
{
    if (rule != DTI_ASSIGN && subtract[dtype] == NULL)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s of %s: this version computes with f32, f64, i32 and i64",
                        rule == DTI_ADD ? "addition" : "subtraction", ditto_dtype_name(dtype));
    return DITTO_OK;
}

void dti_rule_apply(enum dti_rule rule, ditto_dtype dtype, void *new, const void *old, const void *value, size_t count)
{
    switch (rule) {
    case DTI_ASSIGN:
        memcpy(new, value, count * ditto_dtype_bytes(dtype));
        break;
    case DTI_ADD:
        dti_combine_two(dtype, DITTO_SUM, new, old, value, count);
        break;
    case DTI_SUB:
        subtract[dtype](new, old, value, count);
        break;
    }
}
