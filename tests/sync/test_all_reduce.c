/* tests/sync/test_all_reduce.c - the claims of include/ditto/collective.h: the tree's bits, on every replica, everywhere. */
#include "support.h"

#include "reference.h"

#include <math.h>

/* Values whose sum depends on the order: exponents spread over 40 bits, and now and then a special one. */
static double value_at(uint64_t seed, uint32_t replica, size_t i)
{
    uint64_t state = seed ^ replica * 0x9e3779b97f4a7c15u ^ i * 0xc2b2ae3d27d4eb4fu, bits = test_random(&state);
    double sign = bits & 1 ? -1.0 : 1.0, mantissa = 1.0 + (double)(bits >> 12 & 0xffffff) * 0x1p-24;
    switch (bits >> 56) {
    case 0:
        return sign * 0.0;
    case 1:
        return sign * 1e-41; /* denormal as f32 */
    case 2:
        return bits >> 50 & 1 ? (double)NAN : sign * (double)INFINITY;
    default:
        return ldexp(sign * mantissa, (int)(bits >> 40 & 0xff) * 40 / 256 - 20);
    }
}

static void fill(void *data, ditto_dtype dtype, uint64_t seed, uint32_t replica, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double v = value_at(seed, replica, i);
        uint64_t state = seed + replica * 77 + i * 1009, bits = test_random(&state);
        switch (dtype) {
        case DITTO_F32:
            ((float *)data)[i] = (float)v;
            break;
        case DITTO_F64:
            ((double *)data)[i] = v;
            break;
        case DITTO_I32:
            ((int32_t *)data)[i] = (int32_t)bits;
            break;
        default:
            ((int64_t *)data)[i] = (int64_t)bits;
        }
    }
}

struct task {
    struct report report;
    size_t count;
    ditto_dtype dtype;
    ditto_op op;
    bool in_place, flush_to_zero;
    uint64_t seed;
    void *result[DITTO_MAX_REPLICAS]; /* malloced by the replicas, compared afterwards */
};

static ditto_status reduce(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self);
    size_t bytes = t->count * ditto_dtype_bytes(t->dtype);
    void *src, *dst;
    DITTO_TRY(ditto_alloc(self, bytes, 0, &src));
    DITTO_TRY(ditto_alloc(self, bytes, 0, &dst));
    fill(src, t->dtype, t->seed, id, t->count);
#if defined(__x86_64__)
    uint32_t mxcsr = __builtin_ia32_stmxcsr();
    if (t->flush_to_zero)
        __builtin_ia32_ldmxcsr(mxcsr | 0x8040u);
#endif
    ditto_status status = ditto_all_reduce(self, src, t->in_place ? src : dst, t->count, t->dtype, t->op, NULL);
#if defined(__x86_64__)
    if (t->flush_to_zero)
        EXPECT(&t->report, (__builtin_ia32_stmxcsr() & 0x8040u) == 0x8040u);
    __builtin_ia32_ldmxcsr(mxcsr);
#endif
    DITTO_TRY(status);
    memcpy(t->result[id], t->in_place ? src : dst, bytes);
    DITTO_TRY(ditto_free(self, src));
    return ditto_free(self, dst);
}

/* Bit for bit, but any NaN for a NaN. */
static bool same_f64(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

struct tally {
    size_t cases, elements, unlike_left_fold;
};

static void compare(const struct task *t, uint32_t n, struct tally *tally)
{
    size_t size = ditto_dtype_bytes(t->dtype);
    char *input = malloc(n * size), *inputs = malloc(n * t->count * size);
    for (uint32_t r = 0; r < n; r++)
        fill(inputs + r * t->count * size, t->dtype, t->seed, r, t->count);
    for (uint32_t r = 1; r < n; r++)
        if (memcmp(t->result[r], t->result[0], t->count * size) != 0)
            fail_msg("replica %u has other bits than replica 0", r);
    for (size_t i = 0; i < t->count; i++) {
        bool equal;
        double fold = 0;
        for (uint32_t r = 0; r < n; r++)
            memcpy(input + r * size, inputs + (r * t->count + i) * size, size);
        if (t->dtype == DITTO_F32) {
            float expected = reference_f32((float *)input, 0, n, t->op), found = ((float *)t->result[0])[i];
            expected = t->op == DITTO_MEAN ? expected / (float)n : expected;
            equal = same_f64((double)expected, (double)found);
            float left = ((float *)input)[0];
            for (uint32_t r = 1; r < n; r++)
                left += ((float *)input)[r];
            fold = (double)left;
            tally->unlike_left_fold += t->op == DITTO_SUM && !same_f64(fold, (double)found);
        } else if (t->dtype == DITTO_F64) {
            double expected = reference_f64((double *)input, 0, n, t->op);
            equal = same_f64(t->op == DITTO_MEAN ? expected / n : expected, ((double *)t->result[0])[i]);
        } else {
            int64_t wide[64];
            for (uint32_t r = 0; r < n; r++)
                wide[r] = t->dtype == DITTO_I32 ? ((int32_t *)input)[r] : ((int64_t *)input)[r];
            int64_t expected = reference_i64(wide, 0, n, t->op);
            equal = t->dtype == DITTO_I32 ? (int32_t)expected == ((int32_t *)t->result[0])[i]
                                          : expected == ((int64_t *)t->result[0])[i];
        }
        if (!equal)
            fail_msg("%s %s of %u replicas: element %zu of %zu differs from the tree", ditto_dtype_name(t->dtype),
                     ditto_op_name(t->op), n, i, t->count);
    }
    tally->cases++;
    tally->elements += t->count;
    free(input);
    free(inputs);
}

static void reduce_and_compare(ditto_strategy *strategy, struct task *t, struct tally *tally)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    for (uint32_t r = 0; r < n; r++)
        t->result[r] = malloc(t->count * 8 + 8);
    run_all(strategy, reduce, t, &t->report);
    compare(t, n, tally);
    for (uint32_t r = 0; r < n; r++)
        free(t->result[r]);
}

static void every_replica_has_the_bits_of_the_tree(void **state)
{
    static const uint32_t replicas[] = { 1, 2, 3, 5, 6, 7, 8, 12, 64 };
    static const size_t counts[] = { 0, 1, 2, 3, 17, 63, 255, 513, 1000, 1025, 4099, 20011 };
    static const ditto_dtype dtypes[] = { DITTO_F32, DITTO_F64, DITTO_I32, DITTO_I64 };
    static struct tally tally;
    uint64_t seed = test_seed(20241);
    (void)state;
    for (size_t k = 0; k < sizeof replicas / sizeof replicas[0]; k++) {
        ditto_strategy *strategy = make_strategy(replicas[k], NULL);
        assert_ok(ditto_strategy_scope_enter(strategy));
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
            for (size_t d = 0; d < 4; d++)
                for (int op = DITTO_SUM; op <= DITTO_MAX; op++) {
                    bool floating = dtypes[d] == DITTO_F32 || dtypes[d] == DITTO_F64;
                    if (op == DITTO_MEAN && !floating)
                        continue;
                    struct task t = { .count = counts[c],
                                      .dtype = dtypes[d],
                                      .op = (ditto_op)op,
                                      .in_place = (c + d) % 2 == 0,
                                      .seed = seed++ };
                    reduce_and_compare(strategy, &t, &tally);
                    t.in_place = !t.in_place;
                    t.flush_to_zero = floating;
                    reduce_and_compare(strategy, &t, &tally);
                }
        assert_ok(ditto_strategy_scope_leave(strategy));
        assert_ok(ditto_strategy_destroy(strategy));
    }
    print_message("%zu cases, %zu elements; %zu differ from a left fold\n", tally.cases, tally.elements,
                  tally.unlike_left_fold);
    assert_true(tally.unlike_left_fold > 0);
}

/* Misaligned for vectors and lines, aligned for elements; guards on both sides. */
struct guarded {
    struct report report;
    size_t offset, count;
};
static ditto_status reduce_guarded(ditto_replica *self, void *argument)
{
    struct guarded *g = argument;
    void *memory;
    DITTO_TRY(ditto_alloc(self, (g->count + 64) * sizeof(float), 64, &memory));
    float *all = memory, *own = all + g->offset;
    for (size_t i = 0; i < g->count + 64; i++)
        all[i] = -7.0f;
    for (size_t i = 0; i < g->count; i++)
        own[i] = (float)i;
    DITTO_TRY(ditto_all_reduce(self, own, own, g->count, DITTO_F32, DITTO_SUM, NULL));
    for (size_t i = 0; i < g->count + 64; i++) {
        float expected = i < g->offset || i >= g->offset + g->count
                             ? -7.0f
                             : (float)(i - g->offset) * (float)ditto_num_replicas(self);
        EXPECT(&g->report, all[i] == expected);
    }
    return ditto_free(self, memory);
}

static void nothing_beside_the_buffer_is_touched(void **state)
{
    (void)state;
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (size_t count = 1; count < 40000; count = count * 3 + 1) {
            struct guarded g = { .offset = 1 + count % 15, .count = count };
            run_all(strategy, reduce_guarded, &g, &g.report);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

struct exchange {
    struct report report;
    uint32_t rounds;
    uint32_t written[DITTO_MAX_REPLICAS]; /* plain: only the barrier orders them */
};
static ditto_status exchange(ditto_replica *self, void *argument)
{
    struct exchange *x = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    for (uint32_t round = 1; round <= x->rounds; round++) {
        x->written[id] = round;
        DITTO_TRY(ditto_barrier(self, NULL));
        for (uint32_t i = 0; i < n; i++)
            EXPECT(&x->report, x->written[i] == round);
        DITTO_TRY(ditto_barrier(self, NULL));
    }
    return DITTO_OK;
}

static void writes_before_a_barrier_are_seen_by_all_after_it(void **state)
{
    (void)state;
    for (size_t k = 0; k < replica_counts_length; k++) {
        static struct exchange x;
        x.rounds = 20000 / (replica_counts[k] * replica_counts[k] / 4 + 1) + 20;
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        run_all(strategy, exchange, &x, &x.report);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

struct bad {
    struct report report;
};
static ditto_status ask_for_nonsense(ditto_replica *self, void *argument)
{
    struct report *r = &((struct bad *)argument)->report;
    static float shared_a[64];
    float b[64];
    ditto_reduce_options options = DITTO_REDUCE_OPTIONS_INIT;
    options.flags = 1;
    EXPECT(r, ditto_all_reduce(self, NULL, b, 4, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, b, NULL, 4, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, (char *)b + 1, b, 4, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, b, b + 2, 4, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, (ditto_dtype)0, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_F32, (ditto_op)9, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_F32, (ditto_op)0x41, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, SIZE_MAX / 2, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_I32, DITTO_MEAN, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_U8, DITTO_SUM, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_F32, DITTO_SUM, &options) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, NULL, NULL, 0, DITTO_F32, DITTO_SUM, NULL) == DITTO_OK);
    return ditto_barrier(self, NULL); /* refused calls were not part of the sequence */
}

static void nonsense_is_refused_before_anyone_waits(void **state)
{
    struct bad bad = { 0 };
    ditto_strategy *strategy = make_strategy(3, NULL);
    (void)state;
    run_all(strategy, ask_for_nonsense, &bad, &bad.report);
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_replica_has_the_bits_of_the_tree),
        cmocka_unit_test(nothing_beside_the_buffer_is_touched),
        cmocka_unit_test(writes_before_a_barrier_are_seen_by_all_after_it),
        cmocka_unit_test(nonsense_is_refused_before_anyone_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
