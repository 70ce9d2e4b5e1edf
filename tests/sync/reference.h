/* tests/sync/reference.h - the documented tree, written once more, as plainly as can be: the judge of every reduction. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <ditto/collective.h>

#include <math.h>

static inline double reference_f64(const double *x, uint32_t a, uint32_t b, ditto_op op)
{
    if (b - a == 1)
        return x[a];
    uint32_t m = a + (b - a + 1) / 2;
    double l = reference_f64(x, a, m, op), r = reference_f64(x, m, b, op);
    if (op == DITTO_MIN || op == DITTO_MAX) {
        if (isnan(l) || isnan(r))
            return NAN;
        if (l == r)
            return (op == DITTO_MIN) == !!signbit(l) ? l : r;
        return (op == DITTO_MIN) == (l < r) ? l : r;
    }
    return l + r;
}

static inline float reference_f32(const float *x, uint32_t a, uint32_t b, ditto_op op)
{
    if (b - a == 1)
        return x[a];
    uint32_t m = a + (b - a + 1) / 2;
    float l = reference_f32(x, a, m, op), r = reference_f32(x, m, b, op);
    if (op == DITTO_MIN || op == DITTO_MAX) {
        double pair[2] = { (double)l, (double)r };
        return (float)reference_f64(pair, 0, 2, op);
    }
    return l + r;
}

static inline int64_t reference_i64(const int64_t *x, uint32_t a, uint32_t b, ditto_op op)
{
    if (b - a == 1)
        return x[a];
    uint32_t m = a + (b - a + 1) / 2;
    int64_t l = reference_i64(x, a, m, op), r = reference_i64(x, m, b, op);
    if (op == DITTO_SUM)
        return (int64_t)((uint64_t)l + (uint64_t)r);
    return (op == DITTO_MIN) == (l < r) ? l : r;
}

#endif
