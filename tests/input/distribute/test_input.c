/* tests/input/distribute/test_input.c - tests iterators over arrays, with rules 9.1 to 9.4, 9.9 and 9.10 of
 * docs/semantics.md, and datasets that are refused. */
#include "input/written_rows.h"

#include <sched.h>
#include <stdatomic.h>

#include "input/distribute/rebatch.h"

/* -- the sizes of batches -- */

static uint64_t share(uint64_t rows, uint64_t g, uint32_t n, uint32_t r, bool even)
{
    struct dti_cut cut = { .global = g, .pipelines = 1, .replicas = n, .even = even };
    return dti_cut_before(&cut, 0, rows, r + 1) - dti_cut_before(&cut, 0, rows, r);
}

static void rule_9_1_sizes_add_up_and_differ_by_one_at_most(void **state)
{
    for (uint64_t g = 1; g < 70; g++)
        for (uint32_t n = 1; n < 20; n++) {
            uint64_t sum = 0;
            for (uint32_t r = 0; r < n; r++) {
                uint64_t size = dti_rebatch_full(g, n, r);
                assert_true(size == g / n || size == g / n + 1);
                assert_true(r == 0 || size <= dti_rebatch_full(g, n, r - 1));
                sum += size;
            }
            assert_int_equal(sum, g);
        }
}

static void rule_9_3_a_partial_step_fills_replica_0_first_or_is_even(void **state)
{
    assert_int_equal(share(6, 8, 2, 0, false), 4);
    assert_int_equal(share(6, 8, 2, 1, false), 2);
    assert_int_equal(share(6, 8, 2, 0, true), 3);
    assert_int_equal(share(6, 8, 2, 1, true), 3);
    for (uint64_t g = 1; g < 40; g++)
        for (uint64_t rows = 0; rows <= g; rows++)
            for (uint32_t n = 1; n < 12; n++)
                for (int even = 0; even < 2; even++) {
                    uint64_t sum = 0;
                    for (uint32_t r = 0; r < n; r++) {
                        uint64_t size = share(rows, g, n, r, even);
                        assert_true(size <= dti_rebatch_full(g, n, r) || even);
                        assert_true(size <= dti_rebatch_full(g, n, 0)); /* fits the slot */
                        sum += size;
                    }
                    assert_int_equal(sum, rows);
                }
}

/* -- iterating -- */

enum { MOST_ROWS = 3000 };
struct pass {
    struct report report;
    ditto_iterator *iterator;
    uint64_t global;
    _Atomic uint32_t seen[MOST_ROWS]; /* how often each row was delivered */

    /* The rows in the order of (step, replica, index). */
    uint32_t order[MOST_ROWS * 4];
    _Atomic uint64_t rows;

    /* The steps of every replica. UINT64_MAX until one of them has come to the end. */
    _Atomic uint64_t steps;

    /* The rows of each replica in the first 64 steps. UINT64_MAX if it has taken no batch there. */
    uint64_t sizes[64][DITTO_MAX_REPLICAS];
    unsigned yields; /* replicas sometimes yield, to vary the timing */
};

/* In every row x is its number and y is (2 x, 2 x + 1), which checks that components are cut at the same
 * rows. */
static ditto_status consume(ditto_replica *self, void *argument)
{
    struct pass *p = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    ditto_batch b;
    ditto_status status;
    uint64_t steps = 0, none = UINT64_MAX;
    while ((status = ditto_next(self, p->iterator, &b)) == DITTO_OK) {
        EXPECT(&p->report, b.step == steps && b.num_components == 2);
        EXPECT(&p->report, b.component[0].shape[0] == b.rows && b.component[1].shape[0] == b.rows);
        EXPECT(&p->report,
               b.component[0].rank == 1 && b.component[1].rank == 2 && b.component[1].shape[1] == 2);
        EXPECT(&p->report,
               (uintptr_t)b.component[0].data % 64 == 0 && (uintptr_t)b.component[1].data % 64 == 0);
        uint64_t before = 0; /* with FILL, the rows of the step before this batch */
        for (uint32_t r = 0; r < id; r++)
            before += dti_rebatch_full(p->global, n, r);
        for (uint64_t i = 0; i < b.rows; i++) {
            int32_t x = ((int32_t *)b.component[0].data)[i];
            float *y = (float *)b.component[1].data + 2 * i;
            EXPECT(&p->report,
                   x >= 0 && x < MOST_ROWS && y[0] == (float)(2 * x) && y[1] == (float)(2 * x + 1));
            atomic_fetch_add(&p->seen[x], 1);
            if (b.step * p->global + before + i < MOST_ROWS * 4)
                p->order[b.step * p->global + before + i] = (uint32_t)x;
        }
        if (steps < 64)
            p->sizes[steps][id] = b.rows;
        atomic_fetch_add(&p->rows, b.rows);
        if (p->yields && (steps + id) % 7 == 0)
            sched_yield();
        steps++;
    }
    EXPECT(&p->report, status == DITTO_END_OF_INPUT);
    EXPECT(&p->report, ditto_next(self, p->iterator, &b) == DITTO_END_OF_INPUT); /* again */
    /* Rule 9.4: all replicas have equally many steps. */
    EXPECT(&p->report, atomic_compare_exchange_strong(&p->steps, &none, steps) || p->steps == steps);
    return DITTO_OK;
}

static int32_t xs[MOST_ROWS];
static float ys[MOST_ROWS][2];
static ditto_dataset *numbers(size_t rows)
{
    ditto_tensor arrays[2] = { { .data = xs, .dtype = DITTO_I32, .rank = 1, .shape = { rows } },
                               { .data = ys, .dtype = DITTO_F32, .rank = 2, .shape = { rows, 2 } } };
    ditto_dataset *d;
    for (int i = 0; i < MOST_ROWS; i++) {
        xs[i] = i;
        ys[i][0] = (float)(2 * i);
        ys[i][1] = (float)(2 * i + 1);
    }
    assert_ok(ditto_dataset_from_arrays(arrays, 2, &d));
    return d;
}

static struct pass *iterate(ditto_strategy *s, ditto_dataset *d, const ditto_input_options *options,
                            uint64_t global)
{
    struct pass *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->global = global;
    p->steps = UINT64_MAX;
    memset(p->sizes, 0xff, sizeof p->sizes);
    p->yields = 1;
    assert_ok(ditto_strategy_iterate(s, d, options, &p->iterator));
    run_all(s, consume, p, &p->report);
    assert_ok(ditto_iterator_destroy(p->iterator));
    return p;
}

static void rule_9_10_every_row_is_delivered_exactly_once(void **state)
{
    static const uint64_t globals[] = { 1, 2, 5, 8, 64, 100 };
    static const size_t lengths[] = { 1, 7, 8, 64, 500 };
    size_t points = 0;
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *s = make_strategy(n, NULL);
        for (size_t g = 0; g < 6; g++)
            for (size_t l = 0; l < 5; l++)
                for (uint32_t producers = 1; producers <= 3; producers += 2) {
                    ditto_input_options options = OPTIONS(input, .num_producers = producers,
                                                          .buffer = 1 + producers % 2,
                                                          .global_batch = globals[g]);
                    ditto_dataset *d = numbers(lengths[l]);
                    struct pass *p = iterate(s, d, &options, globals[g]);
                    assert_ok(ditto_dataset_destroy(d));
                    assert_int_equal(p->steps, (lengths[l] + globals[g] - 1) / globals[g]); /* rule 9.4 */
                    for (size_t i = 0; i < MOST_ROWS; i++)
                        assert_int_equal(p->seen[i], i < lengths[l]);
                    /* Rule 9.2: rows are consecutive in replica order. */
                    for (size_t i = 0; i < lengths[l]; i++)
                        assert_int_equal(p->order[i], i);
                    free(p);
                    points++;
                }
        assert_ok(ditto_strategy_destroy(s));
    }
    print_message("  %zu combinations of G, N, length and producers\n", points);
}

static void rule_9_3_the_last_step_is_4_and_2_or_3_and_3(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = numbers(14), *batched;
    assert_ok(ditto_dataset_batch(d, 8, 0, &batched));
    struct pass *p = iterate(s, batched, NULL, 8);
    assert_int_equal(p->sizes[1][0], 4);
    assert_int_equal(p->sizes[1][1], 2);
    free(p);
    p = iterate(s, batched, &OPTIONS(input, .partial = DITTO_PARTIAL_EVEN), 8);
    assert_int_equal(p->sizes[1][0], 3);
    assert_int_equal(p->sizes[1][1], 3);
    free(p);
    assert_ok(ditto_dataset_destroy(batched));
    assert_ok(ditto_dataset_batch(d, 8, DITTO_BATCH_DROP_REMAINDER, &batched)); /* rule 9.4 */
    p = iterate(s, batched, NULL, 8);
    assert_int_equal(p->steps, 1);
    assert_int_equal(p->rows, 8);
    free(p);
    assert_ok(ditto_dataset_destroy(batched));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_4_replicas_without_rows_still_take_part(void **state)
{
    ditto_strategy *s = make_strategy(8, NULL);
    ditto_dataset *d = numbers(4), *batched;
    assert_ok(ditto_dataset_batch(d, 3, 0, &batched)); /* G < N */
    struct pass *p = iterate(s, batched, NULL, 3);
    assert_int_equal(p->steps, 2);
    for (uint32_t r = 0; r < 8; r++) {
        assert_int_equal(p->sizes[0][r], r < 3);
        assert_int_equal(p->sizes[1][r], r < 1);
    }
    free(p);
    assert_ok(ditto_dataset_destroy(batched));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_2_rows_flow_across_repetitions(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    ditto_dataset *d = numbers(10), *twice, *batched;
    assert_ok(ditto_dataset_batch(d, 8, 0, &batched));
    assert_ok(ditto_dataset_repeat(batched, 2, &twice));
    assert_ok(ditto_dataset_destroy(d)); /* `twice` has its own references */
    assert_ok(ditto_dataset_destroy(batched));
    struct pass *p = iterate(s, twice, NULL, 8);
    assert_int_equal(p->rows, 20);
    assert_int_equal(p->steps, 3);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(p->order[i], i % 10);
    free(p);
    assert_ok(ditto_dataset_destroy(twice));
    assert_ok(ditto_strategy_destroy(s));
}

static void shuffle_orders_by_seed_and_pass_alone(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL), *wide = make_strategy(4, NULL);
    ditto_dataset *d = numbers(1000);
    ditto_shuffle_options how = DITTO_SHUFFLE_OPTIONS_INIT;
    uint32_t first[1000];
    size_t moved = 0;
    ditto_input_options options = OPTIONS(input, .global_batch = 10);
    for (uint64_t buffer = 0; buffer <= 16; buffer += 16) {
        ditto_dataset *shuffled, *fixed, *other;
        how.seed = 5;
        how.buffer_rows = buffer;
        how.reshuffle = DITTO_RESHUFFLE_DEFAULT;
        assert_ok(ditto_dataset_shuffle(d, &how, &shuffled));
        how.reshuffle = DITTO_RESHUFFLE_NEVER;
        assert_ok(ditto_dataset_shuffle(d, &how, &fixed));
        how.seed = 6;
        assert_ok(ditto_dataset_shuffle(d, &how, &other));
        /* The order depends neither on the number of producers nor on the number of replicas. */
        for (uint32_t producers = 1; producers <= 4; producers++) {
            options.num_producers = producers;
            options.pass = 0;
            struct pass *p = iterate(producers % 2 ? s : wide, shuffled, &options, 10);
            for (size_t i = 0; i < 1000; i++) {
                assert_int_equal(p->seen[i], 1);
                moved += p->order[i] != i;
                if (buffer > 0)
                    assert_true(p->order[i] < i + buffer); /* drawn from the next `buffer` rows */
            }
            if (producers == 1)
                memcpy(first, p->order, sizeof first);
            assert_memory_equal(p->order, first, sizeof first);
            free(p);
        }
        options.pass = 1;
        struct pass *p = iterate(s, shuffled, &options, 10);
        assert_memory_not_equal(p->order, first, sizeof first);
        free(p);
        options.pass = 0;
        p = iterate(s, other, &options, 10);
        assert_memory_not_equal(p->order, first, sizeof first);
        free(p);
        options.pass = 1;
        p = iterate(s, fixed, &options, 10); /* with NEVER, pass 1 equals pass 0 */
        assert_memory_equal(p->order, first, sizeof first);
        free(p);
        assert_ok(ditto_dataset_destroy(shuffled));
        assert_ok(ditto_dataset_destroy(fixed));
        assert_ok(ditto_dataset_destroy(other));
    }
    assert_true(moved > 4000);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(wide));
}

static void take_and_skip_cut_a_dataset_in_two(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = numbers(100), *head, *tail;
    ditto_input_options options = OPTIONS(input, .global_batch = 7);
    assert_ok(ditto_dataset_take(d, 60, &head));
    assert_ok(ditto_dataset_skip(d, 60, &tail));
    struct pass *a = iterate(s, head, &options, 7), *b = iterate(s, tail, &options, 7);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(a->seen[i], i < 60);
        assert_int_equal(b->seen[i], i >= 60);
    }
    free(a);
    free(b);
    assert_ok(ditto_dataset_destroy(head));
    assert_ok(ditto_dataset_skip(d, 1000, &head)); /* no row is left, so there is no step */
    a = iterate(s, head, &options, 7);
    assert_int_equal(a->steps, 0);
    free(a);
    assert_ok(ditto_dataset_destroy(head));
    assert_ok(ditto_dataset_destroy(tail));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

static void an_iterator_can_be_destroyed_while_rows_are_left(void **state)
{
    ditto_dataset *d = numbers(1000), *forever;
    ditto_iterator *one, *two;
    assert_ok(ditto_dataset_repeat(d, DITTO_REPEAT_FOREVER, &forever));
    ditto_input_options options = OPTIONS(input, .global_batch = 8, .num_producers = 3);
    long threads = count_threads();
    for (int i = 0; i < 30; i++) {
        ditto_strategy *s = make_strategy(3, NULL);
        assert_ok(ditto_strategy_iterate(s, forever, &options, &one));
        assert_ok(ditto_strategy_iterate(s, forever, &options, &two));
        assert_ok(ditto_iterator_destroy(one));
        assert_ok(ditto_strategy_destroy(s)); /* stops the producers of `two` */
        assert_ok(ditto_iterator_destroy(two));
    }
    assert_int_equal(count_threads(), threads);
    assert_ok(ditto_dataset_destroy(forever));
    assert_ok(ditto_dataset_destroy(d));
}

/* -- errors -- */

static void wrong_datasets_are_refused(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_tensor none = { .data = xs, .dtype = DITTO_I32, .rank = 1, .shape = { 0 } };
    ditto_tensor scalar = { .data = xs, .dtype = DITTO_I32 };
    ditto_tensor uneven[2] = { { .data = xs, .dtype = DITTO_I32, .rank = 1, .shape = { 3 } },
                               { .data = xs, .dtype = DITTO_I32, .rank = 1, .shape = { 4 } } };
    ditto_dataset *d, *batched, *other;
    ditto_iterator *it;
    assert_status(ditto_dataset_from_arrays(&none, 1, &d), DITTO_ERR_INVALID); /* 0 rows */
    assert_status(ditto_dataset_from_arrays(&scalar, 1, &d), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_from_arrays(uneven, 2, &d), DITTO_ERR_SHAPE);
    assert_status(ditto_dataset_from_arrays(NULL, 1, &d), DITTO_ERR_INVALID);
    ditto_tensor huge = { .data = xs, .dtype = DITTO_I32, .rank = 2, .shape = { 4, (size_t)1 << 62 } };
    assert_status(ditto_dataset_from_arrays(&huge, 1, &d), DITTO_ERR_RANGE);
    d = numbers(10);
    assert_status(ditto_strategy_iterate(s, d, NULL, &it), DITTO_ERR_INVALID); /* rule 9.1 */
    assert_message("batch it first");
    assert_status(ditto_dataset_batch(d, 0, 0, &batched), DITTO_ERR_RANGE); /* G = 0 */
    assert_status(ditto_dataset_batch(d, 4, 8, &batched), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_repeat(d, 0, &other), DITTO_ERR_RANGE);
    assert_status(ditto_dataset_take(d, 0, &other), DITTO_ERR_RANGE);
    assert_ok(ditto_dataset_repeat(d, DITTO_REPEAT_FOREVER, &batched));
    assert_status(ditto_dataset_shuffle(batched, NULL, &other), DITTO_ERR_INVALID);
    assert_message("without end");
    /* The skip would take for ever. Destroying the iterator does not wait for it. */
    assert_ok(ditto_dataset_skip(batched, UINT64_MAX - 1, &other));
    ditto_input_options options = OPTIONS(input, .global_batch = 4);
    assert_ok(ditto_strategy_iterate(s, other, &options, &it));
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(other));
    assert_ok(ditto_dataset_destroy(batched));
    assert_ok(ditto_dataset_batch(d, 4, 0, &batched));
    assert_status(ditto_dataset_batch(batched, 4, 0, &other), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_shuffle(batched, NULL, &other), DITTO_ERR_UNSUPPORTED);
    options.global_batch = 5;
    assert_status(ditto_strategy_iterate(s, batched, &options, &it), DITTO_ERR_INVALID);
    options.global_batch = (uint64_t)1 << 62;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_RANGE);
    options.global_batch = (uint64_t)1 << 50;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_NO_MEMORY);
    options.global_batch = 4;
    options.partial = (ditto_partial_policy)5;
    assert_status(ditto_strategy_iterate(s, d, &options, &it), DITTO_ERR_RANGE);
    assert_status(ditto_strategy_iterate(NULL, d, NULL, &it), DITTO_ERR_INVALID);
    assert_ok(ditto_dataset_destroy(batched));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- replicas that stop taking batches -- */

struct uneven {
    ditto_iterator *iterator;
    uint32_t batches[2]; /* how many each replica asks for */
    uint32_t taken[2];   /* how many it gets */
};
static ditto_status take_unevenly(ditto_replica *self, void *argument)
{
    struct uneven *u = argument;
    uint32_t id = ditto_replica_id(self);
    ditto_batch b;
    for (; u->taken[id] < u->batches[id]; u->taken[id]++)
        DITTO_TRY(ditto_next(self, u->iterator, &b));
    return DITTO_OK;
}

static void how_far_a_replica_may_be_ahead_does_not_depend_on_timing(void **state)
{
    ditto_dataset *d = numbers(1000), *forever;
    assert_ok(ditto_dataset_repeat(d, DITTO_REPEAT_FOREVER, &forever));
    ditto_input_options options = OPTIONS(input, .global_batch = 4);
    /* A queue holds the batch in use and one more. The fifth batch of replica 1 is therefore made although
     * replica 0 still uses its fourth. The sixth is never made, because replica 0's sixth comes before it. */
    options.buffer = 1;
    ditto_strategy *s = make_strategy(2, NULL);
    for (uint32_t i = 0; i < 300; i++) {
        struct uneven u = { .batches = { 4, 5 + i % 2 } };
        assert_ok(ditto_strategy_iterate(s, forever, &options, &u.iterator));
        assert_status(ditto_strategy_run(s, take_unevenly, &u), i % 2 ? DITTO_ERR_DIVERGED : DITTO_OK);
        if (i % 2)
            assert_message("replica 0 has returned");
        assert_int_equal(u.taken[1], 5);
        assert_ok(ditto_iterator_destroy(u.iterator));
    }
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_dataset_destroy(forever));
    assert_ok(ditto_dataset_destroy(d));
}

static void rule_9_9_a_replica_that_leaves_the_others_without_rows_is_named(void **state)
{
    ditto_dataset *d = numbers(1000), *forever;
    assert_ok(ditto_dataset_repeat(d, DITTO_REPEAT_FOREVER, &forever));
    for (uint32_t producers = 1; producers <= 3; producers++)
        for (uint32_t n = 2; n <= 8; n += 3)
            for (uint32_t leaver = 0; leaver < n; leaver += n - 1) {
                ditto_strategy *s = make_strategy(n, NULL);
                struct leaving l = { .leaver = leaver };
                assert_ok(ditto_strategy_iterate(
                    s, forever, &OPTIONS(input, .global_batch = 2 * n, .num_producers = producers),
                    &l.iterator));
                assert_status(ditto_strategy_run(s, one_leaves, &l), DITTO_ERR_DIVERGED);
                char text[64];
                snprintf(text, sizeof text, "replica %u has returned", leaver);
                assert_message(text);
                assert_others_stopped(&l, n);
                l.fails = true;
                assert_status(ditto_strategy_run(s, one_leaves, &l), DITTO_ERR_USER);
                assert_others_stopped(&l, n);
                assert_ok(ditto_iterator_destroy(l.iterator));
                assert_ok(ditto_strategy_destroy(s));
            }
    assert_ok(ditto_dataset_destroy(forever));
    assert_ok(ditto_dataset_destroy(d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_9_1_sizes_add_up_and_differ_by_one_at_most),
        cmocka_unit_test(rule_9_3_a_partial_step_fills_replica_0_first_or_is_even),
        cmocka_unit_test(rule_9_10_every_row_is_delivered_exactly_once),
        cmocka_unit_test(rule_9_3_the_last_step_is_4_and_2_or_3_and_3),
        cmocka_unit_test(rule_9_4_replicas_without_rows_still_take_part),
        cmocka_unit_test(rule_9_2_rows_flow_across_repetitions),
        cmocka_unit_test(shuffle_orders_by_seed_and_pass_alone),
        cmocka_unit_test(take_and_skip_cut_a_dataset_in_two),
        cmocka_unit_test(an_iterator_can_be_destroyed_while_rows_are_left),
        cmocka_unit_test(wrong_datasets_are_refused),
        cmocka_unit_test(how_far_a_replica_may_be_ahead_does_not_depend_on_timing),
        cmocka_unit_test(rule_9_9_a_replica_that_leaves_the_others_without_rows_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
