/* bench/loops_of_type.h - the sums of one dtype. loops.c includes this file once for each dtype, and defines
 *     NAME           the short name of the dtype
 *     T              the type of an element
 *     A              the type in which elements are added
 *     WIDEN, NARROW  conversions from T to A and back
 *     LOOP           attributes of the functions
 *     TWO            a function that replaces the first one below, or nothing
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

static const struct sums JOIN(sums_, NAME) = { TWO, JOIN(eight_, NAME), JOIN(block_, NAME) };

#undef JOIN
#undef JOIN_
#undef NAME
#undef T
#undef A
#undef WIDEN
#undef NARROW
#undef LOOP
#undef TWO
