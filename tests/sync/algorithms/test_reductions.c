/* tests/sync/algorithms/test_reductions.c - reductions of lists, reductions with user functions, and block
 * sums. */
#include "support/support.h"

#include "sync/reference.h"

/* -- A list has the same values as one call for each item -- */

enum { ITEMS_MOST = 40 };

struct list_task {
    struct report report;
    uint64_t seed;
    size_t length, bytes_per_pack;
    size_t count[ITEMS_MOST];
    ditto_dtype dtype[ITEMS_MOST];
    bool in_place;
};

static ditto_status reduce_list(ditto_replica *self, void *argument)
{
    struct list_task *t = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_list_item item[ITEMS_MOST];
    void *single[ITEMS_MOST];
    ditto_reduce_options options = OPTIONS(reduce, .bytes_per_pack = t->bytes_per_pack);
    for (size_t k = 0; k < t->length; k++) {
        size_t size = ditto_dtype_bytes(t->dtype[k]);
        char *src = malloc(t->count[k] * size + 1);
        for (size_t i = 0; i < t->count[k]; i++)
            reference_fill(t->dtype[k], t->seed + k, id, i, src + i * size);
        single[k] = malloc(t->count[k] * size + 1);
        item[k] = (ditto_list_item){ src, t->in_place ? src : malloc(t->count[k] * size + 1), t->count[k],
                                     t->dtype[k], NULL };
        DITTO_TRY(ditto_all_reduce(self, src, single[k], t->count[k], t->dtype[k], DITTO_SUM, NULL));
    }
    DITTO_TRY(ditto_all_reduce_list(self, item, t->length, DITTO_SUM, &options));
    for (size_t k = 0; k < t->length; k++) {
        EXPECT(&t->report, memcmp(item[k].dst, single[k], t->count[k] * ditto_dtype_bytes(t->dtype[k])) == 0);
        if (!t->in_place)
            free((void *)(uintptr_t)item[k].src);
        free(item[k].dst);
        free(single[k]);
    }
    return DITTO_OK;
}

static void a_list_has_the_values_of_its_items(void **state)
{
    uint64_t seed = test_seed(17);
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (int trial = 0; trial < test_trials(40); trial++) {
            struct list_task t = { .seed = test_random(&seed), .in_place = trial % 2 == 0 };
            t.length = test_random(&seed) % ITEMS_MOST;
            t.bytes_per_pack = trial % 3 == 0 ? 1 + test_random(&seed) % 3000 : 0;
            for (size_t i = 0; i < t.length; i++) {
                t.count[i] = test_random(&seed) % (trial % 4 == 0 ? 20 : 900);
                do
                    t.dtype[i] = (ditto_dtype)(1 + test_random(&seed) % DTI_NUM_DTYPES);
                while (!reference_has(t.dtype[i], DITTO_SUM));
            }
            run_all(strategy, reduce_list, &t, &t.report);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static ditto_status bad_lists(ditto_replica *self, void *argument)
{
    struct report *r = argument;
    float a[8] = { 0 }, b[8], c[8];
    ditto_list_item item[3] = { { a, b, 4, DITTO_F32, NULL },
                                { a, b, 4, DITTO_F32, NULL },
                                { a, a + 1, 4, DITTO_F32, NULL } };
    EXPECT(r, ditto_all_reduce_list(self, NULL, 1, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_list(self, item, 3, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, strstr(ditto_last_error()->message, "item 2 of 3") != NULL);
    /* The destination of item 0 overlaps the source of item 1. */
    item[1] = (ditto_list_item){ b + 2, b + 2, 4, DITTO_F32, NULL };
    EXPECT(r, ditto_all_reduce_list(self, item, 2, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, strstr(ditto_last_error()->message, "item 1") != NULL);
    /* Sources may overlap. */
    item[1] = (ditto_list_item){ a + 1, c, 4, DITTO_F32, NULL };
    EXPECT(r, ditto_all_reduce_list(self, item, 2, DITTO_SUM, NULL) == DITTO_OK);
    /* The list has been accepted, but not for this op. */
    EXPECT(r, ditto_all_reduce_list(self, item, 2, DITTO_AND, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_all_reduce_list(self, item, 2, DITTO_MAX, NULL) == DITTO_OK);
    item[1].dst = b + 3;
    EXPECT(r, ditto_all_reduce_list(self, item, 2, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    item[1].dtype = DITTO_BOOL;
    EXPECT(r, ditto_all_reduce_list(self, item, 2, DITTO_SUM, NULL) == DITTO_ERR_UNSUPPORTED);
    item[1] = (ditto_list_item){ a, b, SIZE_MAX / 2, DITTO_F32, NULL };
    EXPECT(r, ditto_all_reduce_list(self, item, 2, DITTO_SUM, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_all_reduce_list(self, NULL, 0, DITTO_SUM, NULL) == DITTO_OK); /* a barrier */
    return DITTO_OK;
}

static void bad_lists_are_refused(void **state)
{
    struct report report = { 0 };
    run_once(2, NULL, bad_lists, &report, &report);
}

/* -- User functions. They multiply matrices, which does not commute. -- */

/* A matrix has 24 bytes, which is no power of two, and no padding. */
struct matrix {
    uint32_t a[2][2];
    char label[8];
};

struct function_task {
    struct report report;
    size_t count;
    int fails; /* the replica whose function fails, or -1 */
    ditto_implementation implementation;
};

static void multiply(struct matrix *out, const struct matrix *l, const struct matrix *r)
{
    struct matrix m = { .label = "matrix" };
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            m.a[i][k] = l->a[i][0] * r->a[0][k] + l->a[i][1] * r->a[1][k];
    *out = m;
}

static ditto_status multiply_all(void *out, const void *left, const void *right, size_t count, void *user)
{
    int *fails = user;
    if (fails != NULL && *fails)
        return DITTO_ERR_USER;
    for (size_t i = 0; i < count; i++)
        multiply((struct matrix *)out + i, (const struct matrix *)left + i, (const struct matrix *)right + i);
    return DITTO_OK;
}

static struct matrix matrix_of(uint32_t replica, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + replica * 40503u;
    return (struct matrix){ { { x | 1, x >> 7 }, { x >> 13, (x >> 3) | 1 } }, "matrix" };
}

static ditto_status reduce_matrices(ditto_replica *self, void *argument)
{
    struct function_task *t = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    struct matrix *m = malloc(t->count * sizeof *m + 1), expected;
    int fails = t->fails == (int)id;
    ditto_reduce_options options = OPTIONS(reduce, .implementation = t->implementation);
    for (size_t i = 0; i < t->count; i++)
        m[i] = matrix_of(id, i);
    ditto_status status = ditto_all_reduce_with(self, m, m, t->count, sizeof *m, multiply_all, &fails,
                                                &options);
    for (size_t i = 0; status == DITTO_OK && i < t->count; i++) {
        expected = matrix_of(0, i);
        for (uint32_t r = 1; r < n; r++) {
            struct matrix next = matrix_of(r, i);
            multiply(&expected, &expected, &next);
        }
        EXPECT(&t->report, memcmp(&m[i], &expected, sizeof expected) == 0);
    }
    memset(m, 0xff, t->count * sizeof *m);
    free(m);
    return status;
}

static void a_function_need_not_commute_and_may_fail(void **state)
{
    static const size_t counts[] = { 0, 1, 3, 40, 1000, 30000 };
    for (size_t k = 0; k < replica_counts_length; k++)
        for (uint32_t near = 0; near < 3; near++) {
            ditto_tuning tuning = { .struct_size = sizeof tuning, .near_replicas = near };
            ditto_strategy *strategy = make_strategy(replica_counts[k],
                                                     &OPTIONS(strategy, .tuning = &tuning));
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                struct function_task t = { .count = counts[c] / (replica_counts[k] > 8 ? 20 : 1),
                                           .fails = -1 };
                t.implementation = near != 0 ? DITTO_IMPLEMENTATION_HIERARCHICAL : DITTO_IMPLEMENTATION_FLAT;
                run_all(strategy, reduce_matrices, &t, &t.report);
                /* With fewer elements, the replica that fails may have nothing to combine. */
                if (t.count * sizeof(struct matrix) < 8192 * replica_counts[k] || replica_counts[k] == 1)
                    continue;
                t.fails = (int)replica_counts[k] - 1;
                assert_status(ditto_strategy_run(strategy, reduce_matrices, &t), DITTO_ERR_USER);
                assert_message("function given to ditto_all_reduce_with returned DITTO_ERR_USER");
                assert_int_equal(ditto_last_error()->replica, t.fails);
                t.fails = -1;
                run_all(strategy, reduce_matrices, &t, &t.report);
            }
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

/* Makes calls that take part in collectives. Each of them is refused. The error of the last one ends the
 * run. */
static ditto_status meet_inside(void *out, const void *left, const void *right, size_t count, void *user)
{
    ditto_pending none = { 0 };
    float x = 0;
    if (ditto_test(user, &none) != DITTO_ERR_CONTEXT || ditto_abandon(user, DITTO_OK) != DITTO_ERR_CONTEXT ||
        ditto_wait(user, &none, NULL) != DITTO_ERR_CONTEXT ||
        ditto_all_reduce_start(user, &x, &x, 1, DITTO_F32, DITTO_SUM, NULL, &none) != DITTO_ERR_CONTEXT)
        return DITTO_ERR_CORRUPT;
    return ditto_barrier(user, NULL);
}

static ditto_status meet_in_a_function(ditto_replica *self, void *argument)
{
    size_t count = *(const size_t *)argument;
    struct matrix *m = calloc(count, sizeof *m);
    ditto_status status = ditto_all_reduce_with(self, m, m, count, sizeof *m, meet_inside, self, NULL);
    free(m);
    return status;
}

static void a_function_that_calls_a_collective_is_refused(void **state)
{
    static const size_t counts[] = { 1, 30000 };
    struct report next = { 0 };
    ditto_strategy *strategy = make_strategy(2, NULL);
    for (int c = 0; c < 2; c++) {
        size_t count = counts[c];
        assert_status(ditto_strategy_run(strategy, meet_in_a_function, &count), DITTO_ERR_CONTEXT);
        assert_message("was called inside the function that was given to ditto_all_reduce_with");
    }
    run_all(strategy, bad_lists, &next, &next);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* An element of 16 bytes that is aligned to 8. */
struct largest {
    double value;
    int replica;
};

static ditto_status keep_largest(void *out, const void *left, const void *right, size_t count, void *user)
{
    const struct largest *l = left, *r = right;
    for (size_t i = 0; i < count; i++)
        ((struct largest *)out)[i] = l[i].value < r[i].value ? r[i] : l[i];
    return user == NULL ? DITTO_OK : DITTO_ERR_USER;
}

static ditto_status find_largest(ditto_replica *self, void *argument)
{
    static const size_t counts[] = { 1, 100, 30000 };
    struct report *report = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        char *memory = aligned_alloc(16, counts[c] * sizeof(struct largest) + 16);
        struct largest *x = (struct largest *)(void *)(memory + 8);
        bool same = true;
        for (size_t i = 0; i < counts[c]; i++)
            x[i] = (struct largest){ .value = (double)((i + id) % n), .replica = (int)id };
        ditto_status status = ditto_all_reduce_with(self, x, x, counts[c], sizeof *x, keep_largest, NULL,
                                                    NULL);
        for (size_t i = 0; i < counts[c]; i++)
            same = same && x[i].value == n - 1 && (i + (size_t)x[i].replica) % n == n - 1;
        free(memory);
        DITTO_TRY(status);
        EXPECT(report, same);
    }
    return DITTO_OK;
}

static void elements_are_aligned_as_their_type_is(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct report report = { 0 };
        run_once(replica_counts[k], NULL, find_largest, &report, &report);
    }
}

static ditto_status bad_functions(ditto_replica *self, void *argument)
{
    struct report *r = argument;
    struct matrix m[4] = { 0 };
    EXPECT(r, ditto_all_reduce_with(self, m, m, 1, sizeof *m, NULL, NULL, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_with(self, m, m, 1, 0, multiply_all, NULL, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_all_reduce_with(self, m, m, 1, 5000, multiply_all, NULL, NULL) == DITTO_ERR_RANGE);
    EXPECT(r,
           ditto_all_reduce_with(self, m, m, SIZE_MAX / 8, 24, multiply_all, NULL, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_all_reduce_with(self, NULL, m, 1, 24, multiply_all, NULL, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_with(self, m, m + 1, 2, sizeof *m, multiply_all, NULL, NULL) ==
                  DITTO_ERR_INVALID);
    return DITTO_OK;
}

static void bad_functions_are_refused(void **state)
{
    struct report report = { 0 };
    run_once(2, NULL, bad_functions, &report, &report);
}

/* -- Block sums -- */

struct sum_task {
    struct report report;
    ditto_dtype dtype;
    uint64_t seed;

    /* Replica i has the elements start[i] to start[i + 1] - 1. */
    size_t start[65];

    /* The result of replica 0. */
    char sum[16];
};

/* The values are finite. Otherwise most sums would be NaN, and would not depend on the order. */
static void fill_finite(const struct sum_task *t, size_t i, void *out)
{
    reference_fill(t->dtype, t->seed, 0, i, out);
    struct element e = reference_load(t->dtype, out), one = { .f = 1, .g = 1 };
    if (reference_is_float(t->dtype) && !(isfinite(e.f) && isfinite(e.g)))
        reference_store(t->dtype, one, out);
}

/* A dot product is the sum of products that were stored as elements. */
static ditto_status compare_products(ditto_replica *self, struct sum_task *t, const char *values,
                                     size_t count)
{
    size_t size = ditto_dtype_bytes(t->dtype);
    char *product = malloc(count * size + 1), *reversed = malloc(count * size + 1), sum[16], dot[16];
    for (size_t i = 0; i < count; i++) {
        memcpy(reversed + i * size, values + (count - 1 - i) * size, size);
        struct element pair[2] = { reference_load(t->dtype, values + i * size),
                                   reference_load(t->dtype, reversed + i * size) };
        reference_store(t->dtype, reference_tree(t->dtype, DITTO_PROD, pair, 0, 2), product + i * size);
    }
    ditto_status status = ditto_block_dot(self, values, reversed, dot, count, t->dtype, NULL);
    if (status == DITTO_OK)
        status = ditto_block_sum(self, product, sum, count, t->dtype, NULL);
    free(product);
    free(reversed);
    DITTO_TRY(status);
    EXPECT(&t->report, reference_same(t->dtype, sum, dot));
    return DITTO_OK;
}

struct stored {
    const char *values;
    size_t size;
};

/* A ditto_elements_fn that takes the elements from an array. */
static ditto_status take_stored(void *out, size_t first, size_t count, void *user)
{
    const struct stored *s = user;
    memcpy(out, s->values + first * s->size, count * s->size);
    return DITTO_OK;
}

static ditto_status compare_computed(ditto_replica *self, struct sum_task *t, const char *values,
                                     size_t count, const char *expected)
{
    struct stored stored = { values, ditto_dtype_bytes(t->dtype) };
    char sum[16];
    DITTO_TRY(ditto_block_sum_with(self, take_stored, &stored, sum, count, t->dtype, NULL));
    EXPECT(&t->report, memcmp(sum, expected, stored.size) == 0);
    return DITTO_OK;
}

static ditto_status sum_blocks(ditto_replica *self, void *argument)
{
    struct sum_task *t = argument;
    uint32_t id = ditto_replica_id(self);
    size_t count = t->start[id + 1] - t->start[id], size = ditto_dtype_bytes(t->dtype);
    char *values = malloc(count * size + 1), sum[16];
    /* An element has the same value on whichever replica it is. */
    for (size_t i = 0; i < count; i++)
        fill_finite(t, t->start[id] + i, values + i * size);
    ditto_status status = ditto_block_sum(self, values, sum, count, t->dtype, NULL);
    if (status == DITTO_OK)
        status = compare_products(self, t, values, count);
    if (status == DITTO_OK)
        status = compare_computed(self, t, values, count, sum);
    free(values);
    DITTO_TRY(status);
    if (id == 0)
        memcpy(t->sum, sum, size);
    DITTO_TRY(ditto_barrier(self, NULL));
    EXPECT(&t->report, memcmp(t->sum, sum, size) == 0);
    return ditto_barrier(self, NULL);
}

/* The definition in include/ditto/collective.h, computed one element at a time. */
static void reference_block_sum(const struct sum_task *t, size_t total, void *out)
{
    size_t blocks = (total + DITTO_BLOCK_ELEMENTS - 1) / DITTO_BLOCK_ELEMENTS,
           size = ditto_dtype_bytes(t->dtype);
    struct element *sums = malloc((blocks + 1) * sizeof *sums), e[DITTO_BLOCK_ELEMENTS];
    for (size_t b = 0; b < blocks; b++) {
        size_t m = total - b * DITTO_BLOCK_ELEMENTS < DITTO_BLOCK_ELEMENTS ? total - b * DITTO_BLOCK_ELEMENTS
                                                                           : DITTO_BLOCK_ELEMENTS;
        for (size_t i = 0; i < m; i++) {
            char element[16];
            fill_finite(t, b * DITTO_BLOCK_ELEMENTS + i, element);
            e[i] = reference_load(t->dtype, element);
        }
        for (; m > 1; m = (m + 1) / 2)
            for (size_t i = 0; i + (m + 1) / 2 < m; i++) {
                struct element pair[2] = { e[i], e[i + (m + 1) / 2] };
                e[i] = reference_tree(t->dtype, DITTO_SUM, pair, 0, 2);
            }
        sums[b] = e[0];
    }
    memset(out, 0, size);
    if (blocks != 0)
        reference_store(t->dtype, reference_tree(t->dtype, DITTO_SUM, sums, 0, (uint32_t)blocks), out);
    free(sums);
}

static void block_sums_depend_on_the_elements_alone(void **state)
{
    static const size_t totals[] = { 0, 1, 2, 1023, 1024, 1025, 5000, 70001 };
    uint64_t seed = test_seed(23);
    size_t unlike = 0, cases = 0;
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        for (size_t c = 0; c < sizeof totals / sizeof totals[0]; c++)
            for (int d = 1; d <= DTI_NUM_DTYPES; d++) {
                if (!reference_has((ditto_dtype)d, DITTO_SUM))
                    continue;
                cases++;
                struct sum_task t = { .dtype = (ditto_dtype)d, .seed = 1000 + c };
                char expected[16], fold[16];
                /* The elements are distributed at random, and for every fifth dtype all are on one
                 * replica. */
                for (uint32_t r = 1; r < n; r++)
                    t.start[r] = d % 5 == 0
                                     ? totals[c]
                                     : t.start[r - 1] + test_random(&seed) % (totals[c] - t.start[r - 1] + 1);
                t.start[n] = totals[c];
                run_all(strategy, sum_blocks, &t, &t.report);
                reference_block_sum(&t, totals[c], expected);
                if (!reference_same(t.dtype, expected, t.sum))
                    fail_msg("%s, %zu elements on %u replicas: another sum", ditto_dtype_name(t.dtype),
                             totals[c], n);
                struct element left = { 0 };
                for (size_t i = 0; i < totals[c] && reference_is_float(t.dtype); i++) {
                    fill_finite(&t, i, fold);
                    left = reference_float(t.dtype, DITTO_SUM, left, reference_load(t.dtype, fold));
                }
                reference_store(t.dtype, left, fold);
                unlike += reference_is_float(t.dtype) && !reference_same(t.dtype, fold, t.sum);
            }
        assert_ok(ditto_strategy_destroy(strategy));
    }
    print_message("%zu cases; %zu differ from a left fold\n", cases, unlike);
    assert_true(unlike > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_the_values_of_its_items),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(a_function_need_not_commute_and_may_fail),
        cmocka_unit_test(elements_are_aligned_as_their_type_is),
        cmocka_unit_test(bad_functions_are_refused),
        cmocka_unit_test(a_function_that_calls_a_collective_is_refused),
        cmocka_unit_test(block_sums_depend_on_the_elements_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
