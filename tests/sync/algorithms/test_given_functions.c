/* tests/sync/algorithms/test_given_functions.c - ditto_all_reduce_through and ditto_block_sum_with, which
 * call functions of the program: their results, and functions that fail, are slow, or call what they must
 * not. The values of ditto_block_sum_with are also compared with those of ditto_block_sum in
 * test_reductions.c. */
#include "support/support.h"

#include <fenv.h>
#include <sched.h>
#include <unistd.h>

/* True if additions are rounded to the nearest number. fegetround would look at another register on x86. */
static bool rounds_to_nearest(void)
{
    volatile double one = 1, little = 1e-18, sum = one + little, difference = one - little;
    return sum == 1 && difference == 1;
}

/* -- the results of ditto_all_reduce_through -- */

enum { MOST = 30000, LIMIT_MS = 2000 };

struct through_task {
    struct report report;
    size_t count;
    ditto_op op;
    bool in_place;
    ditto_implementation implementation;
    _Atomic int calls;
};

struct scaling {
    struct through_task *task;
    double factor;
};

/* It also changes the floating-point environment, which must not reach the library or the replica. */
static ditto_status scale(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    const struct scaling *s = user;
    double *x = buffer;
    EXPECT(&s->task->report, rounds_to_nearest());
    EXPECT(&s->task->report, dtype == DITTO_F64 && count == s->task->count);
    for (size_t i = 0; i < count; i++)
        x[i] = x[i] * s->factor + (double)i;
    fesetround(FE_UPWARD);
    s->task->calls++;
    return DITTO_OK;
}

static ditto_status reduce_through(ditto_replica *self, void *argument)
{
    struct through_task *t = argument;
    uint32_t id = ditto_replica_id(self);
    /* The pointers of replicas other than 0 must not be used. */
    struct scaling scaling = { t, id == 0 ? 0.3 : 1e9 };
    size_t bytes = t->count * sizeof(double) + 1;
    double *in = malloc(bytes), *sum = malloc(bytes), *out = t->in_place ? in : malloc(bytes);
    ditto_reduce_options options = OPTIONS(reduce, .implementation = t->implementation);
    for (size_t i = 0; i < t->count; i++)
        in[i] = 1.0 / (double)(3 + i + 1000 * id);
    ditto_status status = ditto_all_reduce(self, in, sum, t->count, DITTO_F64, t->op, &options);
    if (status == DITTO_OK)
        status = ditto_all_reduce_through(self, in, out, t->count, DITTO_F64, t->op, scale, &scaling,
                                          &options);
    bool same = rounds_to_nearest();
    for (size_t i = 0; status == DITTO_OK && i < t->count; i++) {
        double expected = sum[i] * 0.3 + (double)i;
        same = same && memcmp(&expected, &out[i], sizeof expected) == 0;
    }
    free(sum);
    if (!t->in_place)
        free(out);
    free(in);
    DITTO_TRY(status);
    EXPECT(&t->report, same);
    return DITTO_OK;
}

static void all_replicas_receive_what_the_function_leaves(void **state)
{
    static const size_t counts[] = { 0, 1, 3, 200, 5000, MOST };
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (int trial = 0; trial < 24; trial++) {
            struct through_task t = { .count = counts[trial % 6] };
            t.op = trial % 5 == 0 ? DITTO_MEAN : DITTO_SUM;
            t.in_place = trial % 4 < 2;
            t.implementation = trial % 3 == 0 ? DITTO_IMPLEMENTATION_FLAT : DITTO_IMPLEMENTATION_DEFAULT;
            run_all(strategy, reduce_through, &t, &t.report);
            assert_int_equal(t.calls, 1);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- the results of ditto_block_sum_with -- */

struct range_task {
    struct report report;
    size_t total;
};

struct part {
    struct range_task *task;
    size_t first, count;
};

static double element(size_t i)
{
    return 1.0 / (double)(i + 7);
}

static ditto_status compute(void *out, size_t first, size_t count, void *user)
{
    const struct part *p = user;
    double *x = out;
    EXPECT(&p->task->report, rounds_to_nearest());
    EXPECT(&p->task->report, count >= 1 && count <= DITTO_BLOCK_ELEMENTS && first + count <= p->count);
    for (size_t i = 0; i < count; i++)
        x[i] = element(p->first + first + i);
    fesetround(FE_DOWNWARD);
    return DITTO_OK;
}

/* The parts of the replicas have different sizes. */
static ditto_status sum_range(ditto_replica *self, void *argument)
{
    struct range_task *t = argument;
    size_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    size_t begin = t->total * id * id / (n * n), end = t->total * (id + 1) * (id + 1) / (n * n);
    struct part part = { t, begin, end - begin };
    double *array = malloc((end - begin) * sizeof(double) + 1), sum, expected;
    for (size_t i = begin; i < end; i++)
        array[i - begin] = element(i);
    ditto_status status = ditto_block_sum(self, array, &expected, end - begin, DITTO_F64, NULL);
    free(array);
    DITTO_TRY(status);
    DITTO_TRY(ditto_block_sum_with(self, compute, &part, &sum, part.count, DITTO_F64, NULL));
    EXPECT(&t->report, rounds_to_nearest());
    EXPECT(&t->report, memcmp(&sum, &expected, sizeof sum) == 0);
    return DITTO_OK;
}

static void a_computed_row_has_the_sum_of_an_array(void **state)
{
    static const size_t totals[] = { 0, 1, 1023, 1024, 1025, 10000, 100001 };
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
            struct range_task t = { .total = totals[i] };
            run_all(strategy, sum_range, &t, &t.report);
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- functions that do what they must not -- */

/* What the function of replica `replica` does when it is asked for elements from `first` on. */
struct fault {
    ditto_replica *self[64];
    uint32_t replica;
    size_t first;
    enum { RETURNS_AN_ERROR, SETS_A_MESSAGE, RETURNS_1, CALLS_A_BARRIER, IS_SLOW } what;
    _Atomic int left;
};

struct faulty {
    struct fault *fault;
    uint32_t id;
};

/* Waits until another replica has left its call with an error. */
static ditto_status misbehave(const struct faulty *f)
{
    switch (f->fault->what) {
    case RETURNS_AN_ERROR:
        return DITTO_ERR_IO;
    case SETS_A_MESSAGE:
        return ditto_fail(NULL, 5, "as it should");
    case RETURNS_1:
        return (ditto_status)1;
    case CALLS_A_BARRIER:
        return ditto_barrier(f->fault->self[f->id], NULL);
    case IS_SLOW:
        while (f->fault->left == 0)
            sched_yield();
    }
    return DITTO_OK;
}

static ditto_status faulty_elements(void *out, size_t first, size_t count, void *user)
{
    const struct faulty *f = user;
    memset(out, 0, count * sizeof(double));
    return f->id == f->fault->replica && first >= f->fault->first ? misbehave(f) : DITTO_OK;
}

static ditto_status faulty_change(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    return misbehave(user);
}

static ditto_status call_faulty(ditto_replica *self, struct fault *fault, bool through)
{
    enum { COUNT = 5000 };
    uint32_t id = ditto_replica_id(self);
    struct faulty f = { fault, id };
    double *x = calloc(COUNT, sizeof *x);
    /* The replica whose function is slow is patient, so the others give up. */
    ditto_reduce_options options = OPTIONS(
        reduce, .timeout_ms = fault->what == IS_SLOW && id != fault->replica ? 50 : 60000);
    fault->self[id] = self;
    ditto_status status = through ? ditto_all_reduce_through(self, x, x, COUNT, DITTO_F64, DITTO_SUM,
                                                             faulty_change, &f, &options)
                                  : ditto_block_sum_with(self, faulty_elements, &f, x, COUNT, DITTO_F64,
                                                         &options);
    fault->left += status != DITTO_OK && id != fault->replica;
    /* Nobody may use the buffer after the call. */
    memset(x, 0xff, COUNT * sizeof *x);
    free(x);
    return status;
}

static ditto_status elements(ditto_replica *self, void *argument)
{
    return call_faulty(self, argument, false);
}

static ditto_status through(ditto_replica *self, void *argument)
{
    return call_faulty(self, argument, true);
}

static const struct {
    int what;
    ditto_status status;
    const char *message;
} faults[] = {
    { RETURNS_AN_ERROR, DITTO_ERR_IO, "returned DITTO_ERR_IO (-" },
    { SETS_A_MESSAGE, DITTO_ERR_USER, "as it should" },
    { RETURNS_1, DITTO_ERR_USER, "returned 1 (DITTO_END_OF_INPUT): return DITTO_OK, or an error" },
    { CALLS_A_BARRIER, DITTO_ERR_CONTEXT, "was called inside the function that was given to ditto_" },
    { IS_SLOW, DITTO_ERR_TIMED_OUT, "waited" },
};

static void try_faults(ditto_strategy *strategy, uint32_t n, ditto_replica_fn function, uint32_t replica,
                       size_t first)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct fault fault = { .replica = replica, .first = first };
        struct through_task next = { .count = 100, .op = DITTO_SUM };
        fault.what = faults[i].what;
        if (fault.what == IS_SLOW && n == 1)
            continue; /* no other replica waits for it */
        assert_status(ditto_strategy_run(strategy, function, &fault), faults[i].status);
        assert_message(faults[i].message);
        if (fault.what != IS_SLOW)
            assert_int_equal(ditto_last_error()->replica, replica);
        run_all(strategy, reduce_through, &next, &next.report);
    }
}

static void a_function_that_fails_ends_the_run(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        try_faults(strategy, n, through, 0, 0);
        /* Elements that are computed before the replicas meet, and elements of later blocks. */
        try_faults(strategy, n, elements, n - 1, 0);
        try_faults(strategy, n, elements, 0, 0);
        try_faults(strategy, n, elements, n - 1, DITTO_BLOCK_ELEMENTS);
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- time, numbers and memory -- */

struct slow {
    uint32_t replica;
    bool was_called;
};

/* The first call takes longer than the time limit on all replicas. One is later than another by less than
 * that. */
static ditto_status slow_elements(void *out, size_t first, size_t count, void *user)
{
    struct slow *slow = user;
    if (!slow->was_called)
        usleep((LIMIT_MS + 500 + 300 * slow->replica) * 1000);
    slow->was_called = true;
    memset(out, 0, count * sizeof(double));
    return DITTO_OK;
}

static ditto_status sum_slowly(ditto_replica *self, void *argument)
{
    struct slow slow = { ditto_replica_id(self), false };
    double sum;
    DITTO_TRY(ditto_barrier(self, NULL)); /* now all begin at about the same time */
    return ditto_block_sum_with(self, slow_elements, &slow, &sum, 5000, DITTO_F64,
                                &OPTIONS(reduce, .timeout_ms = LIMIT_MS));
}

static void the_time_of_the_own_function_does_not_count(void **state)
{
    /* With a limit of the run, the deadline of a wait is a fixed time from the beginning of the call on. */
    ditto_strategy *strategy = make_strategy(2, &OPTIONS(strategy, .run_timeout_ms = 60000));
    assert_ok(ditto_strategy_run(strategy, sum_slowly, NULL));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status sum_too_many(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    struct fault none = { .replica = UINT32_MAX };
    struct faulty f = { &none, 0 };
    char sum;
    size_t count = ditto_replica_id(self) % 2 == 0 ? 5000 : PTRDIFF_MAX;
    ditto_status status = ditto_block_sum_with(self, faulty_elements, &f, &sum, count, DITTO_I8, NULL);
    EXPECT(report, status == DITTO_ERR_RANGE || status == DITTO_ERR_PEER_STOPPED);
    return status;
}

static void too_many_elements_are_refused(void **state)
{
    struct report report = { 0 };
    ditto_strategy *strategy = make_strategy(8, NULL);
    assert_status(ditto_strategy_run(strategy, sum_too_many, &report), DITTO_ERR_RANGE);
    assert_message("are more than a size_t can count");
    assert_string_equal(report.first_failure, "");
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- arguments -- */

static ditto_status other_change(void *buffer, size_t count, ditto_dtype dtype, void *user)
{
    return DITTO_OK;
}

static ditto_status other_elements(void *out, size_t first, size_t count, void *user)
{
    memset(out, 0, count * sizeof(double));
    return DITTO_OK;
}

static ditto_status bad_arguments(ditto_replica *self, void *argument)
{
    struct report *r = argument;
    double x[4] = { 0 };
    EXPECT(r, ditto_all_reduce_through(self, x, x, 4, DITTO_F64, DITTO_SUM, NULL, NULL, NULL) ==
                  DITTO_ERR_INVALID);
    EXPECT(r, strstr(ditto_last_error()->message, "through is NULL") != NULL);
    EXPECT(r, ditto_all_reduce_through(self, x, x + 1, 3, DITTO_F64, DITTO_SUM, other_change, NULL, NULL) ==
                  DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_through(self, x, NULL, 3, DITTO_F64, DITTO_SUM, other_change, NULL, NULL) ==
                  DITTO_ERR_INVALID);
    EXPECT(r, ditto_all_reduce_through(self, x, x, 3, DITTO_I32, DITTO_MEAN, other_change, NULL, NULL) ==
                  DITTO_ERR_UNSUPPORTED);
    EXPECT(r, ditto_block_sum_with(self, NULL, NULL, x, 4, DITTO_F64, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, strstr(ditto_last_error()->message, "elements is NULL") != NULL);
    EXPECT(r,
           ditto_block_sum_with(self, other_elements, NULL, NULL, 4, DITTO_F64, NULL) == DITTO_ERR_INVALID);
    EXPECT(r, ditto_block_sum_with(self, other_elements, NULL, x, SIZE_MAX / 4, DITTO_F64, NULL) ==
                  DITTO_ERR_RANGE);
    EXPECT(r,
           ditto_block_sum_with(self, other_elements, NULL, x, 4, DITTO_BOOL, NULL) == DITTO_ERR_UNSUPPORTED);
    return DITTO_OK;
}

static ditto_status other_functions(ditto_replica *self, void *argument)
{
    const bool *is_through = argument;
    double x[4] = { 0 };
    struct fault none = { .replica = UINT32_MAX };
    struct faulty f = { &none, 0 };
    bool other = ditto_replica_id(self) == 1;
    if (*is_through)
        return ditto_all_reduce_through(self, x, x, 4, DITTO_F64, DITTO_SUM,
                                        other ? other_change : faulty_change, &f, NULL);
    return ditto_block_sum_with(self, other ? other_elements : faulty_elements, &f, x, 4, DITTO_F64, NULL);
}

static void bad_arguments_are_refused(void **state)
{
    struct report report = { 0 };
    ditto_strategy *strategy = make_strategy(3, NULL);
    run_all(strategy, bad_arguments, &report, &report);
    for (int i = 0; i < 2; i++) {
        bool is_through = i == 0;
        assert_status(ditto_strategy_run(strategy, other_functions, &is_through), DITTO_ERR_DIVERGED);
    }
    run_all(strategy, bad_arguments, &report, &report);
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_replicas_receive_what_the_function_leaves),
        cmocka_unit_test(a_computed_row_has_the_sum_of_an_array),
        cmocka_unit_test(a_function_that_fails_ends_the_run),
        cmocka_unit_test(the_time_of_the_own_function_does_not_count),
        cmocka_unit_test(too_many_elements_are_refused),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
