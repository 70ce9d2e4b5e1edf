/* src/sync/kernels/kernel_loops_of_type.h - the operators and loops of one element type.
 *
 * kernel_loops.c includes this file once for each type. NAME is the prefix of what comes out (f32, u8),
 * TYPE the type in which operators compute, and KIND is REAL, UNSIGNED, SIGNED or HALF. A HALF also has
 * ELEMENT, the type in which its elements are stored, and WIDEN and NARROW, the conversions between ELEMENT
 * and TYPE, which is float. If an ELEMENT is the upper half of a TYPE, ROUND rounds a TYPE so that its upper
 * half is the element. There is no include guard, because the file is included several times. */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define OF(name)    JOIN(NAME, name)

#if KIND == HALF
_Static_assert(sizeof(TYPE) == sizeof(float), "dti_reduction_of expects accumulators of f32");
_Static_assert(sizeof(TYPE) <= DTI_MOST_WIDENING * sizeof(ELEMENT),
               "accumulators are larger than the memory for them: see DTI_MOST_WIDENING");
#else
#define ELEMENT   TYPE
#define WIDEN(x)  (x)
#define NARROW(x) (x)
#endif

/* -- operators -- */

/* clang-format off */
#define OPERATOR(name, value) static inline TYPE OF(name)(TYPE x, TYPE y) { return (TYPE)(value); }
/* clang-format on */

#if KIND == REAL || KIND == HALF
OPERATOR(sum, x + y)
OPERATOR(prod, x *y)
/* The minimum and maximum of IEEE 754-2019: a NaN on either side gives a NaN (x + y), and -0 is less than
 * +0. */
OPERATOR(min, x < y ? x : y < x ? y : x == y ? (signbit(x) ? x : y) : x + y)
OPERATOR(max, x > y ? x : y > x ? y : x == y ? (signbit(x) ? y : x) : x + y)
#define OPERATORS(X) X(sum) X(prod) X(min) X(max)
#else
OPERATOR(min, x < y ? x : y)
OPERATOR(max, x > y ? x : y)
#define OPERATORS(X) X(min) X(max)
#endif
/* Signed integers are added, multiplied and combined bitwise as unsigned ones, which wrap. Without 1u, the
 * product of two 16-bit numbers would be an int, and could overflow. */
#if KIND == UNSIGNED
OPERATOR(sum, x + y)
OPERATOR(prod, 1u * x * y)
OPERATOR(and, x &y)
OPERATOR(or, x | y)
OPERATOR(xor, x ^ y)
#undef OPERATORS
#define OPERATORS(X) X(sum) X(prod) X(min) X(max) X(and) X(or) X(xor)
#endif

/* -- loops: each kernel below calls one with a constant operator, which is inlined -- */

ALWAYS_INLINE void OF(combine)(void *out, const void *left, const void *right, size_t count,
                               TYPE op(TYPE, TYPE))
{
    TYPE *o = out;
    const TYPE *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        o[i] = op(a[i], b[i]);
}

#ifdef ROUND
/* Returns the two elements that result from two pairs of elements. All arithmetic is on words of 32 bits.
 * gcc 12 needs twice the time if elements are widened and narrowed one by one. */
ALWAYS_INLINE uint32_t OF(combine_words)(uint32_t a, uint32_t b, TYPE op(TYPE, TYPE))
{
    uint32_t low = ROUND(op(dti_f32_of_bits(a << 16), dti_f32_of_bits(b << 16)));
    uint32_t high = ROUND(op(dti_f32_of_bits(a & 0xffff0000u), dti_f32_of_bits(b & 0xffff0000u)));
    return (high & 0xffff0000u) | low >> 16;
}

ALWAYS_INLINE void OF(combine_into_two)(void *out0, void *out1, const void *left, const void *right,
                                        size_t count, TYPE op(TYPE, TYPE))
{
    two_elements *o0 = out0, *o1 = out1;
    const two_elements *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < count / 2; i++)
        o0[i] = o1[i] = OF(combine_words)(a[i], b[i], op);
    if (count % 2 != 0) {
        ELEMENT *last0 = out0, *last1 = out1;
        const ELEMENT *last_a = left, *last_b = right;
        last0[count - 1] = last1[count - 1] = NARROW(op(WIDEN(last_a[count - 1]), WIDEN(last_b[count - 1])));
    }
}
#else
ALWAYS_INLINE void OF(combine_into_two)(void *out0, void *out1, const void *left, const void *right,
                                        size_t count, TYPE op(TYPE, TYPE))
{
    ELEMENT *o0 = out0, *o1 = out1;
    const ELEMENT *a = left, *b = right;
    DTI_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        o0[i] = o1[i] = NARROW(op(WIDEN(a[i]), WIDEN(b[i])));
}
#endif

ALWAYS_INLINE void OF(combine_four)(void *out, const void *const in[4], size_t count, TYPE op(TYPE, TYPE))
{
    TYPE *o = out;
    const TYPE *a = in[0], *b = in[1], *c = in[2], *d = in[3];
    DTI_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        o[i] = op(op(a[i], b[i]), op(c[i], d[i]));
}

ALWAYS_INLINE void OF(combine_eight)(void *out, const void *const in[8], size_t count, TYPE op(TYPE, TYPE))
{
    TYPE *o = out;
    const TYPE *a = in[0], *b = in[1], *c = in[2], *d = in[3], *e = in[4], *f = in[5], *g = in[6], *h = in[7];
    DTI_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        o[i] = op(op(op(a[i], b[i]), op(c[i], d[i])), op(op(e[i], f[i]), op(g[i], h[i])));
}

/* -- kernels. For a HALF, only into_two is used -- */

#define KERNELS(name)                                                                                   \
    UNUSED_OR_NOT static void OF(name##_combine)(void *out, const void *a, const void *b, size_t count) \
    {                                                                                                   \
        OF(combine)(out, a, b, count, OF(name));                                                        \
    }                                                                                                   \
    UNUSED_OR_NOT static void OF(name##_into_two)(void *out0, void *out1, const void *a, const void *b, \
                                                  size_t count)                                         \
    {                                                                                                   \
        OF(combine_into_two)(out0, out1, a, b, count, OF(name));                                        \
    }                                                                                                   \
    UNUSED_OR_NOT static void OF(name##_four)(void *out, const void *a, const void *b, const void *c,   \
                                              const void *d, size_t count)                              \
    {                                                                                                   \
        OF(combine_four)(out, (const void *const[]){ a, b, c, d }, count, OF(name));                    \
    }                                                                                                   \
    UNUSED_OR_NOT static void OF(name##_eight)(void *out, const void *const in[8], size_t count)        \
    {                                                                                                   \
        OF(combine_eight)(out, in, count, OF(name));                                                    \
    }
OPERATORS(KERNELS)

#if KIND == HALF
static void OF(widen)(void *out, const void *in, size_t count)
{
    TYPE *o = out;
    const ELEMENT *a = in;
    DTI_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        o[i] = WIDEN(a[i]);
}

static void OF(narrow)(void *out, const void *in, size_t count)
{
    ELEMENT *o = out;
    const TYPE *a = in;
    DTI_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        o[i] = NARROW(a[i]);
}
#endif

#if KIND == REAL
static void OF(divide)(void *values, size_t count, uint32_t divisor)
{
    TYPE *v = values, d = (TYPE)divisor;
    for (size_t i = 0; i < count; i++)
        v[i] /= d;
}

/* -- complex numbers are pairs of TYPE, and are added like twice as many real numbers -- */

static void OF(pair_sum_combine)(void *out, const void *a, const void *b, size_t count)
{
    OF(sum_combine)(out, a, b, 2 * count);
}

static void OF(pair_sum_into_two)(void *out0, void *out1, const void *a, const void *b, size_t count)
{
    OF(sum_into_two)(out0, out1, a, b, 2 * count);
}

static void OF(pair_sum_four)(void *out, const void *a, const void *b, const void *c, const void *d,
                              size_t count)
{
    OF(sum_four)(out, a, b, c, d, 2 * count);
}

static void OF(pair_sum_eight)(void *out, const void *const in[8], size_t count)
{
    OF(sum_eight)(out, in, 2 * count);
}

static void OF(pair_divide)(void *values, size_t count, uint32_t divisor)
{
    OF(divide)(values, 2 * count, divisor);
}

/* (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each part rounded as it stands. Infinities are not treated
 * specially. Real and imaginary parts have loops of their own, because gcc 12 makes fused multiply-adds of
 * the whole pattern where AVX-512 has them, whatever -ffp-contract says, and those have other bits
 * (tests/sync/kernels/test_kernels.c). */
static void OF(pair_prod_block)(TYPE *o, const TYPE *a, const TYPE *b, size_t count)
{
    TYPE re[PAIR_BLOCK], im[PAIR_BLOCK];
    for (size_t i = 0; i < count; i++)
        re[i] = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1];
    for (size_t i = 0; i < count; i++)
        im[i] = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
    for (size_t i = 0; i < count; i++) {
        o[2 * i] = re[i];
        o[2 * i + 1] = im[i];
    }
}

static void OF(pair_prod_combine)(void *out, const void *left, const void *right, size_t count)
{
    for (size_t i = 0; i < count; i += PAIR_BLOCK)
        OF(pair_prod_block)
    ((TYPE *)out + 2 * i, (const TYPE *)left + 2 * i, (const TYPE *)right + 2 * i,
     count - i < PAIR_BLOCK ? count - i : PAIR_BLOCK);
}

static void OF(pair_prod_into_two)(void *out0, void *out1, const void *left, const void *right, size_t count)
{
    OF(pair_prod_combine)(out0, left, right, count);
    if (out1 != out0)
        memcpy(out1, out0, count * 2 * sizeof(TYPE));
}
#endif

#undef NAME
#undef TYPE
#undef KIND
#undef ELEMENT
#undef WIDEN
#undef NARROW
#undef ROUND
#undef OPERATOR
#undef OPERATORS
#undef KERNELS
