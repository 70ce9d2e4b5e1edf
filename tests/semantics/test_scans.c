/* tests/semantics/test_scans.c - docs/semantics.md, "Collectives": rule 6.11. tests/sync/ compares the bits
 * of scans for every dtype, operator and algorithm. */
#include "support/as_hosts.h"
#include "support/support.h"

#include "sync/reference.h"

#include <sched.h>

/* Elements of a small and of a large message. */
static const size_t sizes[] = { 1, 9, 5000 };
enum { SIZES = sizeof sizes / sizeof sizes[0], MOST = 5000, REPLICAS = 64 };

/* -- the bits -- */

struct task {
    struct report report;
    ditto_dtype dtype;
    size_t count;
};

/* Compares elements with the rule. `inputs` are those of all replicas. */
static bool follows_the_rule(const struct task *t, uint32_t n, uint32_t id, bool exclusive,
                             const char *inputs, const char *found)
{
    size_t bytes = ditto_dtype_bytes(t->dtype);
    for (size_t i = 0; i < t->count; i++) {
        const void *source[REPLICAS];
        char expected[16];
        for (uint32_t r = 0; r < n; r++)
            source[r] = inputs + (r * t->count + i) * bytes;
        if (reference_scan(t->dtype, DITTO_SUM, source, n, 1, id, exclusive, expected) &&
            !reference_same(t->dtype, expected, found + i * bytes))
            return false;
    }
    return true;
}

static ditto_status scan_sums(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t bytes = ditto_dtype_bytes(t->dtype), all = t->count * bytes;
    char *inputs = malloc(n * all), *own = inputs + id * all, *kept = malloc(all), *scan = malloc(all),
         *sum = malloc(all);
    for (uint32_t r = 0; r < n; r++)
        for (size_t i = 0; i < t->count; i++)
            reference_fill(t->dtype, 7, r, i, inputs + r * all + i * bytes);
    memcpy(kept, own, all);
    EXPECT(&t->report, ditto_all_reduce(self, own, sum, t->count, t->dtype, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&t->report, ditto_scan(self, own, scan, t->count, t->dtype, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&t->report, follows_the_rule(t, n, id, false, inputs, scan));
    for (size_t i = 0; id == n - 1 && i < t->count; i++) /* the last replica has the reduction */
        EXPECT(&t->report, reference_same(t->dtype, scan + i * bytes, sum + i * bytes));
    EXPECT(&t->report,
           ditto_scan_exclusive(self, own, scan, t->count, t->dtype, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&t->report, follows_the_rule(t, n, id, true, inputs, scan));
    EXPECT(&t->report, memcmp(kept, own, all) == 0);
    /* In place. Replica 0 of an exclusive scan keeps its elements, as the reference does. */
    EXPECT(&t->report,
           ditto_scan_exclusive(self, kept, kept, t->count, t->dtype, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&t->report, follows_the_rule(t, n, id, true, inputs, kept));
    EXPECT(&t->report, id > 0 || memcmp(kept, own, all) == 0);
    memcpy(kept, own, all);
    EXPECT(&t->report, ditto_scan(self, kept, kept, t->count, t->dtype, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&t->report, follows_the_rule(t, n, id, false, inputs, kept));
    free(inputs);
    free(kept);
    free(scan);
    free(sum);
    return DITTO_OK;
}

/* Also of f16 and bf16, each of whose sums is rounded once. */
static void rule_6_11_a_scan_follows_the_tree(void **state)
{
    static const ditto_dtype dtypes[] = { DITTO_F32, DITTO_F16, DITTO_BF16, DITTO_I32 };
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (int d = 0; d < 4; d++)
            for (int s = 0; s < SIZES; s++) {
                struct task t = { .dtype = dtypes[d], .count = sizes[s] };
                if (replica_counts[k] <= 8 || t.count < MOST)
                    run_all(strategy, scan_sums, &t, &t.report);
            }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- the destination of replica 0, and a negative zero -- */

static ditto_status leave_out_the_own(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    static const double untouched = 42;
    uint32_t id = ditto_replica_id(self);
    double *src = malloc(t->count * sizeof *src), *dst = malloc(t->count * sizeof *dst);
    for (size_t i = 0; i < t->count; i++) {
        src[i] = -0.0;
        dst[i] = untouched;
    }
    ditto_status status = ditto_scan_exclusive(self, src, dst, t->count, DITTO_F64, DITTO_SUM, NULL);
    for (size_t i = 0; status == DITTO_OK && i < t->count; i++)
        EXPECT(&t->report, id == 0 ? dst[i] == untouched : dst[i] == 0 && signbit(dst[i]));
    if (status == DITTO_OK) /* replica 0 may give none */
        status = ditto_scan_exclusive(self, src, id == 0 ? NULL : dst, t->count, DITTO_F64, DITTO_MAX, NULL);
    free(src);
    free(dst);
    return status;
}

static void rule_6_11_an_exclusive_scan_adds_nothing_and_leaves_replica_0_alone(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (int s = 0; s < SIZES; s++) {
            struct task t = { .count = sizes[s] };
            run_all(strategy, leave_out_the_own, &t, &t.report);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_6_11_without_a_strategy_a_scan_returns_its_input(void **state)
{
    ditto_replica *self = ditto_get_replica_context();
    double x[2] = { 1, 2 }, y[2] = { 0, 0 };
    assert_ok(ditto_scan(self, x, y, 2, DITTO_F64, DITTO_SUM, NULL));
    assert_true(y[0] == 1 && y[1] == 2);
    x[0] = 3;
    assert_ok(ditto_scan_exclusive(self, x, y, 1, DITTO_F64, DITTO_PROD, NULL));
    assert_true(y[0] == 1); /* the only replica receives nothing */
}

/* -- functions -- */

enum { BYTES = 4096 };

/* Replicas first to last, in order. */
struct joined {
    uint32_t first, last;
    char padding[BYTES - 2 * sizeof(uint32_t)];
};

struct joining {
    struct report report;
    size_t count, element_bytes;

    /* The call of a function at which replica `fails` returns an error, or at which it is slow. */
    uint32_t fails;
    bool is_slow;
    int exclusive;
    _Atomic int left; /* replicas that have given up */
};

struct caller {
    struct joining *task;
    uint32_t id;
};

/* Does not commute: the right replicas must follow the left ones. */
static ditto_status join(void *out, const void *left, const void *right, size_t count, void *user)
{
    const struct caller *c = user;
    size_t bytes = c->task->element_bytes;
    for (size_t i = 0; i < count; i++) {
        struct joined l, r;
        memcpy(&l, (const char *)left + i * bytes, 2 * sizeof(uint32_t));
        memcpy(&r, (const char *)right + i * bytes, 2 * sizeof(uint32_t));
        EXPECT(&c->task->report, l.last + 1 == r.first);
        r.first = l.first;
        memcpy((char *)out + i * bytes, &r, 2 * sizeof(uint32_t));
    }
    if (c->id != c->task->fails)
        return DITTO_OK;
    if (!c->task->is_slow)
        return ditto_fail(NULL, 5, "as it should");
    while (c->task->left == 0)
        sched_yield();
    return DITTO_OK;
}

static ditto_status scan_with_join(ditto_replica *self, void *argument)
{
    struct joining *t = argument;
    uint32_t id = ditto_replica_id(self);
    struct caller caller = { t, id };
    size_t bytes = t->element_bytes;
    char *src = calloc(t->count, bytes), *dst = calloc(t->count, bytes);
    ditto_reduce_options options = OPTIONS(reduce, .timeout_ms = t->is_slow && id != t->fails ? 50 : 60000);
    for (size_t i = 0; i < t->count; i++)
        memcpy(src + i * bytes, (const uint32_t[]){ id, id }, 2 * sizeof id);
    ditto_status status = ditto_scan_with(self, src, dst, t->count, bytes, join, &caller, t->exclusive,
                                          &options);
    t->left += status != DITTO_OK && id != t->fails;
    for (size_t i = 0; status == DITTO_OK && i < t->count; i++) {
        uint32_t found[2], last = id - (t->exclusive != 0);
        memcpy(found, dst + i * bytes, sizeof found);
        EXPECT(&t->report, id == 0 || (found[0] == 0 && found[1] == last));
    }
    /* Nobody may use the buffers after the call. */
    memset(src, 0xff, t->count * bytes);
    memset(dst, 0xff, t->count * bytes);
    free(src);
    free(dst);
    return status;
}

static void rule_6_11_a_function_combines_in_the_order_of_the_replicas(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (int which = 0; which < 8; which++) {
            struct joining t = { .fails = UINT32_MAX, .exclusive = which % 2 };
            t.count = which / 2 % 2 == 0 ? 1 : 40;
            t.element_bytes = which / 4 == 0 ? 2 * sizeof(uint32_t) : BYTES;
            run_all(strategy, scan_with_join, &t, &t.report);
        }
        struct joining many = { .fails = UINT32_MAX, .count = MOST, .element_bytes = 12 };
        run_all(strategy, scan_with_join, &many, &many.report);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

static void rule_6_11_a_function_that_fails_or_is_slow_ends_the_run(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        for (int which = 0; n > 2 && which < 6; which++) {
            struct joining t = { .fails = n - 1, .exclusive = which % 2, .element_bytes = 8 };
            struct joining next = { .fails = UINT32_MAX, .count = 40, .element_bytes = 8 };
            /* In a small message no replica waits for the function of another one. */
            t.count = which < 2 ? 3 : MOST;
            t.is_slow = which >= 4;
            assert_status(ditto_strategy_run(strategy, scan_with_join, &t),
                          t.is_slow ? DITTO_ERR_TIMED_OUT : DITTO_ERR_USER);
            assert_message(t.is_slow ? "waited" : "as it should");
            assert_string_equal(t.report.first_failure, "");
            run_all(strategy, scan_with_join, &next, &next.report);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- what is refused -- */

static bool failed_with(ditto_status found, ditto_status expected, const char *words)
{
    return found == expected && strstr(ditto_last_error()->message, words) != NULL;
}

static ditto_status refused_arguments(ditto_replica *self, void *argument)
{
    struct report *r = argument;
    struct caller none = { NULL, 0 };
    uint32_t id = ditto_replica_id(self);
    double x[4] = { 0 };
    int32_t i[4] = { 0 };
    EXPECT(r, failed_with(ditto_scan(self, x, x, 4, DITTO_F64, DITTO_MEAN, NULL), DITTO_ERR_UNSUPPORTED,
                          "MEAN in ditto_scan: "));
    EXPECT(r, failed_with(ditto_scan_exclusive(self, x, x, 4, DITTO_F64, DITTO_MEAN, NULL),
                          DITTO_ERR_UNSUPPORTED, "MEAN in ditto_scan_exclusive: "));
    EXPECT(r, ditto_scan(self, i, i, 4, DITTO_I32, DITTO_MEAN, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_scan(self, x, x, 4, DITTO_F64, DITTO_AND, NULL) == DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_scan(self, x, x, 4, DITTO_F64, (ditto_op)99, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_scan(self, x, x + 1, 3, DITTO_F64, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_scan(self, x, NULL, 3, DITTO_F64, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_scan_exclusive(self, NULL, x, 3, DITTO_F64, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    /* Replica 0 of an exclusive scan has no destination, so all of them may be wrong there. */
    if (id > 0)
        EXPECT(r, ditto_scan_exclusive(self, x, x + 1, 3, DITTO_F64, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, failed_with(ditto_scan_with(self, x, x, 4, 8, NULL, NULL, 0, NULL), DITTO_ERR_INVALID,
                          "combine is NULL"));
    EXPECT(r, ditto_scan_with(self, x, x, 4, 0, join, &none, 0, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_scan_with(self, x, x, 4, BYTES + 1, join, &none, 1, NULL) == DITTO_ERR_RANGE);
    EXPECT(r, ditto_scan_with(self, x, x + 1, 3, 8, join, &none, 0, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_scan_with(self, x, NULL, 3, 8, join, &none, 0, NULL) == DITTO_ERR_INVALID);
    return DITTO_OK;
}

static ditto_status exclude_differently(ditto_replica *self, void *argument)
{
    struct joining *t = argument;
    struct caller caller = { t, ditto_replica_id(self) };
    uint32_t own[2] = { caller.id, caller.id }, scan[2];
    return ditto_scan_with(self, own, scan, 1, sizeof own, join, &caller, caller.id == 1, NULL);
}

static ditto_status share_a_destination(ditto_replica *self, void *argument)
{
    static double shared[MOST], own[2][MOST];
    return ditto_scan(self, own[ditto_replica_id(self)], shared, MOST, DITTO_F64, DITTO_SUM, NULL);
}

static void rule_6_11_bad_arguments_are_refused(void **state)
{
    struct report report = { 0 };
    struct joining t = { .fails = UINT32_MAX, .element_bytes = 8 };
    ditto_strategy *strategy = make_strategy(2, NULL);
    run_all(strategy, refused_arguments, &report, &report);
    assert_status(ditto_strategy_run(strategy, exclude_differently, &t), DITTO_ERR_DIVERGED);
    assert_message("function of the caller, exclusive)");
    assert_status(ditto_strategy_run(strategy, share_a_destination, NULL), DITTO_ERR_INVALID);
    assert_message("give the same destination");
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- several hosts -- */

static ditto_status scan_over_hosts(ditto_replica *self, void *argument)
{
    struct joining *t = argument;
    struct caller caller = { t, 0 };
    double x = 1, sum;
    EXPECT(&t->report, failed_with(ditto_scan(self, &x, &sum, 1, DITTO_F64, DITTO_SUM, NULL),
                                   DITTO_ERR_UNSUPPORTED, "ditto_scan works on one host only"));
    EXPECT(&t->report, failed_with(ditto_scan_exclusive(self, &x, &sum, 1, DITTO_F64, DITTO_SUM, NULL),
                                   DITTO_ERR_UNSUPPORTED, "ditto_scan_exclusive works on one host only"));
    EXPECT(&t->report, failed_with(ditto_scan_with(self, &x, &sum, 1, sizeof x, join, &caller, 0, NULL),
                                   DITTO_ERR_UNSUPPORTED, "ditto_scan_with works on one host only"));
    return ditto_barrier(self, NULL);
}

static void rule_6_11_over_several_hosts_a_scan_is_refused_by_name(void **state)
{
    struct joining t = { .fails = UINT32_MAX };
    ditto_strategy *strategy = make_strategy(8, NULL);
    if (is_spread(strategy))
        run_all(strategy, scan_over_hosts, &t, &t.report);
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    static const char *const reason = "scans work on one host only";
    const struct CMUnitTest tests[] = {
        one_host_test(rule_6_11_a_scan_follows_the_tree, reason),
        one_host_test(rule_6_11_an_exclusive_scan_adds_nothing_and_leaves_replica_0_alone, reason),
        one_host_test(rule_6_11_without_a_strategy_a_scan_returns_its_input, reason),
        one_host_test(rule_6_11_a_function_combines_in_the_order_of_the_replicas, reason),
        one_host_test(rule_6_11_a_function_that_fails_or_is_slow_ends_the_run, reason),
        one_host_test(rule_6_11_bad_arguments_are_refused, reason),
        cmocka_unit_test(rule_6_11_over_several_hosts_a_scan_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
