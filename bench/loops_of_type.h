/* bench/loops_of_type.h - the sums of one dtype. loops.c includes this file once for each dtype, and defines
 *     NAME           the short name of the dtype
 *     T              the type of an element
 *     A              the type in which elements are added
 *     WIDEN, NARROW  conversions from T to A and back
 *     LOOP           attributes of the functions
 *     TWO            a function that replaces the first one below, or nothing
 *     VECTOR, SUMS, WIDEN_ALL, ADD_ALL, NARROW_ALL
 *                    vectors of VECTOR_BYTES bytes, their sums, and what is done with them; or nothing
 * There is no include guard, because the file is included several times. */
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

#ifndef TWO
#define TWO JOIN(two_, NAME)
/* Computes x = a + b, and also writes the sum to y if y is not NULL. x and y may be equal to a and b. */
LOOP static void JOIN(two_, NAME)(char *x_, char *y_, const char *a_, const char *b_, struct span s)
{
    const T *a = (const void *)a_, *b = (const void *)b_;
    T *x = (void *)x_, *y = (void *)y_;
    size_t first = s.first / sizeof(T), end = s.end / sizeof(T);
    if (y == NULL) {
        WORK_INDEPENDENT
        for (size_t i = first; i < end; i++)
            x[i] = NARROW(WIDEN(a[i]) + WIDEN(b[i]));
    } else {
        WORK_INDEPENDENT
        for (size_t i = first; i < end; i++)
            x[i] = y[i] = NARROW(WIDEN(a[i]) + WIDEN(b[i]));
    }
}
#endif

/* Adds eight inputs in registers, in one pass, and writes the sum to eight results. */
LOOP static void JOIN(eight_, NAME)(char *const *out, const char *const *in, struct span s)
{
    const T *a = (const void *)in[0], *b = (const void *)in[1], *c = (const void *)in[2],
            *d = (const void *)in[3];
    const T *e = (const void *)in[4], *f = (const void *)in[5], *g = (const void *)in[6],
            *h = (const void *)in[7];
    T *l = (void *)out[0], *m = (void *)out[1], *n = (void *)out[2], *o = (void *)out[3];
    T *p = (void *)out[4], *q = (void *)out[5], *r = (void *)out[6], *t = (void *)out[7];
    size_t first = s.first / sizeof(T), end = s.end / sizeof(T);
    WORK_INDEPENDENT
    for (size_t i = first; i < end; i++) {
        A left = (WIDEN(a[i]) + WIDEN(b[i])) + (WIDEN(c[i]) + WIDEN(d[i]));
        A right = (WIDEN(e[i]) + WIDEN(f[i])) + (WIDEN(g[i]) + WIDEN(h[i]));
        l[i] = m[i] = n[i] = o[i] = p[i] = q[i] = r[i] = t[i] = NARROW(left + right);
    }
}

/* A vector in memory. By default it is also a vector of sums. */
#ifndef VECTOR
#define VECTOR JOIN(vector_, NAME)
typedef T VECTOR __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
#define SUMS          VECTOR
#define WIDEN_ALL(v)  (v)
#define ADD_ALL(s, v) ((s) + (v))
#define NARROW_ALL(s) (s)
#endif

/* Adds some vectors of all inputs in registers, and writes them to one result after the other. */
static inline void JOIN(part_, NAME)(char *const *out, uint32_t outs, const char *const *in, uint32_t ins,
                                     size_t at, const size_t vectors)
{
    SUMS sum[VECTORS];
    VECTOR part[VECTORS];
    for (size_t k = 0; k < vectors; k++)
        sum[k] = WIDEN_ALL(((const VECTOR *)(const void *)(in[0] + at))[k]);
    for (uint32_t r = 1; r < ins; r++)
        for (size_t k = 0; k < vectors; k++)
            sum[k] = ADD_ALL(sum[k], ((const VECTOR *)(const void *)(in[r] + at))[k]);
    for (size_t k = 0; k < vectors; k++)
        part[k] = NARROW_ALL(sum[k]);
    for (uint32_t i = 0; i < outs; i++)
        for (size_t k = 0; k < vectors; k++)
            ((VECTOR *)(void *)(out[i] + at))[k] = part[k];
}

/* Adds inputs in registers, VECTORS vectors at a time. Whole lines are stored one after the other then, and
 * not a part of a line to each result in turn. */
LOOP static void JOIN(registers_, NAME)(char *const *out, uint32_t outs, const char *const *in, uint32_t ins,
                                        struct span s)
{
    size_t at = s.first;
    for (; at + VECTORS * VECTOR_BYTES <= s.end; at += VECTORS * VECTOR_BYTES)
        JOIN(part_, NAME)(out, outs, in, ins, at, VECTORS);
    for (; at + VECTOR_BYTES <= s.end; at += VECTOR_BYTES)
        JOIN(part_, NAME)(out, outs, in, ins, at, 1);
    for (; at < s.end; at += sizeof(T)) {
        A rest = WIDEN(*(const T *)(const void *)(in[0] + at));
        for (uint32_t r = 1; r < ins; r++)
            rest += WIDEN(*(const T *)(const void *)(in[r] + at));
        for (uint32_t i = 0; i < outs; i++)
            *(T *)(void *)(out[i] + at) = NARROW(rest);
    }
}

/* Adds bytes `s` of `count` inputs. The range has at most BLOCK_BYTES bytes. */
LOOP static void JOIN(block_, NAME)(char *sum_, const char *const *in, uint32_t count, struct span s)
{
    A sum[BLOCK_BYTES / sizeof(T)];
    T *restrict out = (void *)sum_;
    size_t elements = (s.end - s.first) / sizeof(T);
    const T *restrict first = (const void *)(in[0] + s.first);
    for (size_t i = 0; i < elements; i++)
        sum[i] = WIDEN(first[i]);
    for (uint32_t r = 1; r < count; r++) {
        const T *restrict more = (const void *)(in[r] + s.first);
        for (size_t i = 0; i < elements; i++)
            sum[i] += WIDEN(more[i]);
    }
    for (size_t i = 0; i < elements; i++)
        out[i] = NARROW(sum[i]);
}

static const struct sums JOIN(sums_, NAME) = { TWO, JOIN(eight_, NAME), JOIN(registers_, NAME),
                                               JOIN(block_, NAME) };

#undef JOIN
#undef JOIN_
#undef NAME
#undef T
#undef A
#undef WIDEN
#undef NARROW
#undef VECTOR
#undef SUMS
#undef WIDEN_ALL
#undef ADD_ALL
#undef NARROW_ALL
#undef LOOP
#undef TWO
