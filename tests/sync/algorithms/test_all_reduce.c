/* tests/sync/algorithms/test_all_reduce.c - tests all-reduce and barrier over dtypes, operators, sizes and
 * numbers of replicas. */
#include "support/support.h"

#include "sync/reference.h"

static void fill(void *data, ditto_dtype dtype, uint64_t seed, uint32_t replica, size_t count)
{
    for (size_t i = 0; i < count; i++)
        reference_fill(dtype, seed, replica, i, (char *)data + i * ditto_dtype_bytes(dtype));
}

struct task {
    struct report report;
    size_t count;
    ditto_dtype dtype;
    ditto_op op;
    bool in_place, flush_to_zero;
    ditto_implementation implementation;
    uint64_t seed;
    void *result[DITTO_MAX_REPLICAS]; /* allocated by the test, compared after the run */
};

static ditto_status reduce(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self);
    size_t bytes = t->count * ditto_dtype_bytes(t->dtype);
    ditto_reduce_options options = OPTIONS(reduce, .implementation = t->implementation);
    void *src, *dst;
    DITTO_TRY(ditto_alloc(self, bytes, 0, &src));
    DITTO_TRY(ditto_alloc(self, bytes, 0, &dst));
    fill(src, t->dtype, t->seed, id, t->count);
#if defined(__x86_64__)
    uint32_t mxcsr = __builtin_ia32_stmxcsr();
    if (t->flush_to_zero)
        __builtin_ia32_ldmxcsr(mxcsr | 0x8040u);
#endif
    ditto_status status = ditto_all_reduce(self, src, t->in_place ? src : dst, t->count, t->dtype, t->op,
                                           &options);
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

static void compare(const struct task *t, uint32_t n, struct reference_tally *tally)
{
    size_t size = ditto_dtype_bytes(t->dtype);
    char *inputs = malloc(n * t->count * size + 1);
    size_t differing = tally->differing_elements;
    for (uint32_t r = 0; r < n; r++)
        fill(inputs + r * t->count * size, t->dtype, t->seed, r, t->count);
    for (uint32_t r = 1; r < n; r++)
        if (memcmp(t->result[r], t->result[0], t->count * size) != 0)
            fail_msg("replica %u has other bits than replica 0", r);
    for (size_t i = 0; i < t->count; i++) {
        const void *source[64], *found = (char *)t->result[0] + i * size;
        char expected[16];
        for (uint32_t r = 0; r < n; r++)
            source[r] = inputs + (r * t->count + i) * size;
        reference_reduce(t->dtype, t->op, source, n, expected);
        if (!reference_same(t->dtype, expected, found))
            fail_msg("%s %s of %u replicas: element %zu of %zu differs from the tree",
                     ditto_dtype_name(t->dtype), ditto_op_name(t->op), n, i, t->count);
        tally->differing_elements += reference_differs_from_left_fold(t->dtype, t->op, source, n, found);
    }
    tally->cases++;
    tally->differing_cases += tally->differing_elements != differing;
    tally->elements += t->count;
    free(inputs);
}

static void reduce_and_compare(ditto_strategy *strategy, struct task *t, struct reference_tally *tally)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    for (uint32_t r = 0; r < n; r++)
        t->result[r] = malloc(t->count * 16 + 16);
    run_all(strategy, reduce, t, &t->report);
    compare(t, n, tally);
    for (uint32_t r = 0; r < n; r++)
        free(t->result[r]);
}

/* Tries all sizes with four dtypes, and the first three with the others. With DITTO_TEST_SHORT it tries
 * fewer, because the reference implementation takes most of the time under sanitizers. */
static void try_dtype(ditto_strategy *strategy, ditto_dtype dtype, uint64_t *seed,
                      struct reference_tally *tally)
{
    static const size_t counts[] = { 3, 513, 4099, 0, 1, 2, 17, 63, 255, 1000, 1025, 20011 };
    bool all = dtype == DITTO_F32 || dtype == DITTO_F64 || dtype == DITTO_I32 || dtype == DITTO_I64;
    enum { MOST_ELEMENTS = 100000 };
    uint32_t n = ditto_strategy_num_replicas(strategy);
    /* More than 12 replicas add no new case for the other dtypes. */
    if (!all && n > 12)
        return;
    size_t sizes = !all ? 3 : test_is_short() ? 5 : sizeof counts / sizeof counts[0];
    for (size_t c = 0; c < sizes; c++)
        for (int op = DITTO_SUM; op <= DITTO_XOR; op++) {
            /* Large sizes are divided alike for all operators, which one to three replicas try with all. */
            if (!reference_has(dtype, (ditto_op)op) || (op != DITTO_SUM && counts[c] * n > MOST_ELEMENTS))
                continue;
            struct task t = { .count = counts[c],
                              .dtype = dtype,
                              .op = (ditto_op)op,
                              .in_place = (c + dtype) % 2 == 0,
                              .seed = ++*seed };
            reduce_and_compare(strategy, &t, tally);
            t.in_place = !t.in_place;
            t.flush_to_zero = reference_is_float(dtype);
            if (all)
                reduce_and_compare(strategy, &t, tally);
        }
}

static void every_replica_has_the_bits_of_the_tree(void **state)
{
    static const uint32_t replicas[] = { 1, 2, 3, 5, 6, 7, 8, 12, 64 };
    static struct reference_tally tally;
    uint64_t seed = test_seed(20241);
    for (size_t k = 0; k < sizeof replicas / sizeof replicas[0] && replicas[k] <= most_replicas(); k++) {
        ditto_strategy *strategy = make_strategy(
            replicas[k],
            &OPTIONS(strategy, .kernels = k % 3 == 1 ? DITTO_KERNELS_PORTABLE : DITTO_KERNELS_DEFAULT));
        assert_ok(ditto_strategy_scope_enter(strategy));
        for (int dtype = 1; dtype <= DTI_NUM_DTYPES; dtype++)
            try_dtype(strategy, (ditto_dtype)dtype, &seed, &tally);
        assert_ok(ditto_strategy_scope_leave(strategy));
        assert_ok(ditto_strategy_destroy(strategy));
    }
    print_message("%zu of %zu cases and %zu of %zu elements differ from a left fold\n", tally.differing_cases,
                  tally.cases, tally.differing_elements, tally.elements);
    assert_true(tally.differing_elements > 0);
}

/* The largest payloads of mailboxes. Their accumulators must fit where they are combined and passed on. The
 * tuning sends as much as possible through mailboxes. */
static void large_payloads_of_every_dtype_have_the_bits_of_the_tree(void **state)
{
    static const struct {
        uint32_t replicas;
        ditto_implementation implementation;
    } ways[] = { { 3, (ditto_implementation)0 },
                 { 3, DITTO_IMPLEMENTATION_FLAT },
                 { 7, DITTO_IMPLEMENTATION_HIERARCHICAL } };
    static const size_t counts[] = { 1000, 2000, 2049, 3000, 4096 };
    static struct reference_tally tally;
    uint64_t seed = test_seed(20243);
    for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++) {
        ditto_tuning tuning = { .struct_size = sizeof tuning, .small_bytes = SIZE_MAX, .near_replicas = 2 };
        ditto_strategy *strategy = make_strategy(ways[k].replicas, &OPTIONS(strategy, .tuning = &tuning));
        for (int dtype = 1; dtype <= DTI_NUM_DTYPES; dtype++)
            for (int op = DITTO_SUM; op <= DITTO_XOR; op++)
                for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                    struct task t = { .count = counts[c],
                                      .dtype = (ditto_dtype)dtype,
                                      .op = (ditto_op)op,
                                      .in_place = c % 2 == 0,
                                      .implementation = ways[k].implementation,
                                      .seed = ++seed };
                    if ((op == DITTO_SUM || op == DITTO_MEAN || op == DITTO_OR) &&
                        reference_has(t.dtype, t.op))
                        reduce_and_compare(strategy, &t, &tally);
                }
        assert_ok(ditto_strategy_destroy(strategy));
    }
    print_message("%zu cases, %zu elements\n", tally.cases, tally.elements);
}

struct guarded {
    struct report report;
    size_t offset, count;
};

/* Reduces in a buffer that is aligned for its elements, but not for vectors and cache lines. The buffer has
 * guard elements on both sides. */
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

static void only_the_destination_is_written(void **state)
{
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
    uint32_t written[DITTO_MAX_REPLICAS]; /* not atomic, because the barrier orders them */
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
    for (size_t k = 0; k < replica_counts_length; k++) {
        static struct exchange x;
        x.rounds = 20000 / (replica_counts[k] * replica_counts[k] / 4 + 1) + 20;
        run_once(replica_counts[k], NULL, exchange, &x, &x.report);
    }
}

static ditto_status call_with_invalid_arguments(ditto_replica *self, void *argument)
{
    struct report *r = argument;
    static float shared_a[64];
    float b[64];
    EXPECT(r, ditto_all_reduce(self, NULL, b, 4, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, b, NULL, 4, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, (char *)b + 1, b, 4, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, b, b + 2, 4, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, (ditto_dtype)0, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_F32, (ditto_op)9, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_F32, (ditto_op)0x41, NULL) == DITTO_ERR_RANGE);
    EXPECT(r,
           ditto_all_reduce(self, b, shared_a, SIZE_MAX / 2, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_I32, DITTO_MEAN, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_C64, DITTO_MAX, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_BOOL, DITTO_SUM, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_F32, DITTO_XOR, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_all_reduce(self, b, shared_a, 4, DITTO_F32, DITTO_SUM, &OPTIONS(reduce, .flags = 1)) ==
                  DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce(self, NULL, NULL, 0, DITTO_F32, DITTO_SUM, NULL) == DITTO_OK);
    /* The barrier still matches, because refused calls take no part in the meeting. */
    return ditto_barrier(self, NULL);
}

static void invalid_arguments_are_refused_before_a_replica_waits(void **state)
{
    struct report report = { 0 };
    run_once(3, NULL, call_with_invalid_arguments, &report, &report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_replica_has_the_bits_of_the_tree),
        cmocka_unit_test(large_payloads_of_every_dtype_have_the_bits_of_the_tree),
        cmocka_unit_test(only_the_destination_is_written),
        cmocka_unit_test(writes_before_a_barrier_are_seen_by_all_after_it),
        cmocka_unit_test(invalid_arguments_are_refused_before_a_replica_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
