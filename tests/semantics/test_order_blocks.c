/* tests/semantics/test_order_blocks.c - docs/semantics.md, "The order of reduction": with order_blocks, every
 * way to combine one value of each replica gives the bits of the same tree. */
#include "support/as_hosts.h"
#include "support/support.h"

#include "sync/reference.h"

enum { COUNT = 300, MOST = 64 };

/* What each replica contributes, and the results. */
struct ways {
    struct report report;
    uint32_t last; /* the last replica of this host, which stores its results here */
    float own[MOST][COUNT];
    float all_reduced[COUNT], started[COUNT], by_function[COUNT], listed[COUNT], at_root[COUNT];
    float merged[COUNT]; /* rows of one index, whose order has no blocks */
    ditto_variable *mirrored, *trained, *on_read;
    ditto_optimizer *optimizer;
};

static ditto_status add(void *out, const void *left, const void *right, size_t count, void *user)
{
    for (size_t i = 0; i < count; i++)
        ((float *)out)[i] = ((const float *)left)[i] + ((const float *)right)[i];
    return DITTO_OK;
}

static ditto_status combine_in_all_ways(ditto_replica *self, void *argument)
{
    struct ways *w = argument;
    uint32_t id = ditto_replica_id(self), root = ditto_num_replicas(self) - 1;
    float *own = w->own[id], out[5][COUNT];
    ditto_list_item items[] = { { own, out[3], 7, DITTO_F32, NULL },
                                { own + 7, out[3] + 7, COUNT - 7, DITTO_F32, NULL } };
    ditto_tensor gradient = { .data = own, .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } };
    ditto_pending pending;
    int64_t index = 0, merged_index;
    float merged[COUNT];
    ditto_slices rows = { &index, own, 1, COUNT, DITTO_F32 }, sum = { &merged_index, merged, 1, 0, 0 };
    DITTO_TRY(
        ditto_all_reduce_slices(self, &rows, &sum, DITTO_SUM, &OPTIONS(reduce, .flags = DITTO_SLICES_MERGE)));
    DITTO_TRY(ditto_all_reduce(self, own, out[0], COUNT, DITTO_F32, DITTO_SUM, NULL));
    DITTO_TRY(ditto_all_reduce_start(self, own, out[1], COUNT, DITTO_F32, DITTO_SUM, NULL, &pending));
    DITTO_TRY(ditto_wait(self, &pending, NULL));
    DITTO_TRY(ditto_all_reduce_with(self, own, out[2], COUNT, sizeof *own, add, NULL, NULL));
    DITTO_TRY(ditto_all_reduce_list(self, items, 2, DITTO_SUM, NULL));
    DITTO_TRY(ditto_reduce_to_root(self, own, out[4], COUNT, DITTO_F32, DITTO_SUM, root, NULL));
    DITTO_TRY(ditto_assign(self, w->mirrored, DITTO_ASSIGN, own));
    DITTO_TRY(ditto_assign(self, w->on_read, DITTO_ASSIGN, own));
    DITTO_TRY(ditto_apply(self, w->optimizer, &gradient, NULL));
    if (id == w->last) {
        memcpy(w->all_reduced, out[0], sizeof out[0]);
        memcpy(w->started, out[1], sizeof out[1]);
        memcpy(w->by_function, out[2], sizeof out[2]);
        memcpy(w->listed, out[3], sizeof out[3]);
        if (id == root)
            memcpy(w->at_root, out[4], sizeof out[4]);
        memcpy(w->merged, merged, sizeof merged);
    }
    return DITTO_OK;
}

static ditto_variable *make(ditto_strategy *s, ditto_synchronization synchronization)
{
    ditto_tensor zeros = { .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } };
    ditto_variable *v;
    assert_ok(ditto_variable_create(
        s, &zeros, &OPTIONS(variable, .synchronization = synchronization, .aggregation = DITTO_AGGREGATE_SUM),
        &v));
    return v;
}

static void expect_bits(const char *way, const float *expected, const float *found, uint32_t n,
                        uint32_t blocks)
{
    for (size_t i = 0; i < COUNT; i++)
        if (memcmp(&expected[i], &found[i], sizeof found[i]) != 0)
            fail_msg("%s of %u replicas in %u blocks: element %zu is %a, the tree gives %a", way, n, blocks,
                     i, (double)found[i], (double)expected[i]);
}

static void expect_variable(const char *way, const float *expected, ditto_variable *v, uint32_t n,
                            uint32_t blocks)
{
    float found[COUNT];
    assert_ok(ditto_variable_read(v, found, sizeof found));
    expect_bits(way, expected, found, n, blocks);
}

/* Reduces a value with one component per replica in cross-replica context. */
static void expect_reduced_value(ditto_strategy *s, struct ways *w, const float *expected, uint32_t n,
                                 uint32_t blocks)
{
    ditto_tensor part[MOST], sum;
    ditto_value *value, *result;
    for (uint32_t r = 0; r < n; r++)
        part[r] = (ditto_tensor){ .data = w->own[r], .dtype = DITTO_F32, .rank = 1, .shape = { COUNT } };
    assert_ok(ditto_strategy_value_from_tensors(s, part + first_local(s), 1, &value));
    assert_ok(ditto_strategy_reduce(s, DITTO_SUM, value, NULL, 0, &result));
    assert_ok(ditto_value_tensor(result, &sum));
    expect_bits("a reduced value", expected, sum.data, n, blocks);
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_value_destroy(value));
}

/* Returns in how many elements the order in blocks gives other bits than the usual order. */
static size_t compare_all_ways(uint32_t n, uint32_t blocks, uint64_t seed)
{
    static struct ways w;
    float expected[COUNT], negative[COUNT], by_halves[COUNT];
    size_t unlike = 0;
    memset(&w, 0, sizeof w);
    ditto_strategy *s = make_strategy(n, &OPTIONS(strategy, .order_blocks = blocks));
    w.last = end_local(s) - 1;
    for (uint32_t r = 0; r < n; r++)
        for (size_t i = 0; i < COUNT; i++) /* no NaN, whose bits are not specified */
            do
                reference_fill(DITTO_F32, seed++, r, i, &w.own[r][i]);
            while (!isfinite(w.own[r][i]));
    for (size_t i = 0; i < COUNT; i++) {
        const void *source[MOST];
        for (uint32_t r = 0; r < n; r++)
            source[r] = &w.own[r][i];
        reference_reduce_blocks(DITTO_F32, DITTO_SUM, source, n, blocks > 1 ? blocks : 1, &expected[i]);
        reference_reduce(DITTO_F32, DITTO_SUM, source, n, &by_halves[i]);
        unlike += memcmp(&by_halves[i], &expected[i], sizeof expected[i]) != 0;
        negative[i] = 0 - expected[i];
    }
    w.mirrored = make(s, DITTO_ON_WRITE);
    w.trained = make(s, DITTO_ON_WRITE);
    w.on_read = make(s, DITTO_ON_READ);
    assert_ok(ditto_optimizer_create(
        &w.trained, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .learning_rate = 1, .op = DITTO_SUM),
        &w.optimizer));
    run_all(s, combine_in_all_ways, &w, &w.report);
    expect_bits("an all-reduce", expected, w.all_reduced, n, blocks);
    expect_bits("a started all-reduce", expected, w.started, n, blocks);
    expect_bits("an all-reduce by a function", expected, w.by_function, n, blocks);
    expect_bits("an all-reduce of a list", expected, w.listed, n, blocks);
    if (w.last == n - 1)
        expect_bits("a reduce to a root", expected, w.at_root, n, blocks);
    expect_bits("merged slices", by_halves, w.merged, n, blocks);
    expect_variable("an assignment", expected, w.mirrored, n, blocks);
    expect_variable("a read", expected, w.on_read, n, blocks);
    expect_variable("a step", negative, w.trained, n, blocks);
    expect_reduced_value(s, &w, expected, n, blocks);
    assert_ok(ditto_optimizer_destroy(w.optimizer));
    assert_ok(ditto_variable_destroy(w.mirrored));
    assert_ok(ditto_variable_destroy(w.trained));
    assert_ok(ditto_variable_destroy(w.on_read));
    assert_ok(ditto_strategy_destroy(s));
    return unlike;
}

static void every_way_to_combine_has_the_bits_of_the_same_tree(void **state)
{
    uint64_t seed = test_seed(61);
    size_t unlike = 0;
    for (uint32_t n = 1; n <= 12; n++)
        for (uint32_t blocks = 0; blocks <= n; blocks++)
            unlike += compare_all_ways(n, blocks, test_random(&seed));
    for (size_t i = 0; i < replica_counts_length; i++)
        unlike += compare_all_ways(replica_counts[i], (replica_counts[i] + 2) / 3, test_random(&seed));
    assert_true(unlike > 0); /* or the option would have no effect on these values */
}

static void more_blocks_than_replicas_are_refused(void **state)
{
    ditto_strategy *s = NULL;
    ditto_strategy_options options = OPTIONS(
        strategy, .placement_options = &OPTIONS(placement, .num_replicas = 3), .order_blocks = 4);
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &s), DITTO_ERR_RANGE);
    assert_message("order_blocks = 4, but the strategy has 3 replicas");
    assert_null(s);
    options.order_blocks = UINT32_MAX;
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &s), DITTO_ERR_RANGE);
}

static void the_description_names_the_blocks(void **state)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    char text[4000];
    for (options.order_blocks = 1; options.order_blocks <= 3; options.order_blocks += 2) {
        ditto_strategy *s = make_strategy(3, &options);
        assert_ok(ditto_strategy_describe(s, text, sizeof text, NULL));
        assert_int_equal(strstr(text, "replicas are combined in 3 blocks (order_blocks)\n") != NULL,
                         options.order_blocks == 3);
        assert_ok(ditto_strategy_destroy(s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_combine_has_the_bits_of_the_same_tree),
        cmocka_unit_test(more_blocks_than_replicas_are_refused),
        cmocka_unit_test(the_description_names_the_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
