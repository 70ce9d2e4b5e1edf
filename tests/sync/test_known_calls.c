/* tests/sync/test_known_calls.c - calls that equal an earlier one are not checked again. Everything that may
 * differ between two equal calls must still be seen. */
#include "support/support.h"

#include "sync/algorithms/known_calls.h"

#include <stdatomic.h>

enum { MOST = 64, ROUNDS = 40, BUFFERS = 3 * DTI_KNOWN_CALLS };

struct task {
    struct report report;
    uint32_t odd_one;      /* the replica that makes another call */
    bool labelled;         /* calls differ in their labels alone, whose texts have one address */
    _Atomic uint32_t left; /* replicas that have left their last call */
    float sent[MOST], received[MOST];
};

/* -- data -- */

/* The number that replica `id` contributes in a round. All are small whole numbers, so sums are exact. */
static float given(uint32_t id, int round, int buffer)
{
    return (float)(id + 1) * (float)(round + 1) + (float)buffer;
}

static float sum(uint32_t n, int round, int buffer)
{
    float all = 0;
    for (uint32_t id = 0; id < n; id++)
        all += given(id, round, buffer);
    return all;
}

/* More different calls than are kept, in turn, so that calls are kept, replaced and kept again. Each buffer
 * is written anew before its call, and each call is made twice in a row. */
static ditto_status make_many_calls(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    float in[BUFFERS], out[BUFFERS];
    for (int round = 0; round < ROUNDS; round++)
        for (int b = 0; b < BUFFERS; b++)
            for (int again = 0; again < 2; again++) {
                /* The number of calls in the loop is 1, 2, ..., BUFFERS in turn. */
                if (b > round % BUFFERS)
                    continue;
                in[b] = given(id, round, b);
                out[b] = -1;
                DITTO_TRY(ditto_all_reduce(self, &in[b], &out[b], 1, DITTO_F32, DITTO_SUM, NULL));
                EXPECT(&t->report, out[b] == sum(n, round, b));
                DITTO_TRY(ditto_broadcast_from_root(self, &in[b], 1, DITTO_F32, (uint32_t)b % n, NULL));
                EXPECT(&t->report, in[b] == given((uint32_t)b % n, round, b));
                DITTO_TRY(ditto_barrier(self, NULL));
            }
    return DITTO_OK;
}

static void many_different_calls_in_turn_have_their_own_results(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        struct task t = { 0 };
        ditto_strategy *strategy = make_strategy(replica_counts[i], NULL);
        run_all(strategy, make_many_calls, &t, &t.report);
        run_all(strategy, make_many_calls, &t, &t.report); /* what the first run kept is still known */
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* Calls that differ in one argument only. The buffers are the same, so the call before would give a wrong
 * result or an access outside the buffer. */
static ditto_status change_one_argument(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    int32_t in[2], out[2 * DITTO_MAX_REPLICAS], many[2 * DITTO_MAX_REPLICAS];
    for (uint32_t k = 0; k < 2 * n; k++)
        many[k] = (int32_t)(id * 1000 + k);
    for (int round = 0; round < ROUNDS; round++) {
        in[0] = (int32_t)id + 1;
        in[1] = 5;
        out[1] = -1;
        DITTO_TRY(ditto_all_reduce(self, in, out, 1, DITTO_I32, DITTO_SUM, NULL));
        EXPECT(&t->report, out[0] == (int32_t)(n * (n + 1) / 2) && out[1] == -1);
        DITTO_TRY(ditto_all_reduce(self, in, out, 2, DITTO_I32, DITTO_SUM, NULL));
        EXPECT(&t->report, out[0] == (int32_t)(n * (n + 1) / 2) && out[1] == (int32_t)(5 * n));
        DITTO_TRY(ditto_all_reduce(self, in, out, 2, DITTO_I32, DITTO_MAX, NULL));
        EXPECT(&t->report, out[0] == (int32_t)n && out[1] == 5);
        DITTO_TRY(ditto_all_reduce(self, in, out, 2, DITTO_U32, DITTO_MIN, NULL));
        EXPECT(&t->report, out[0] == 1 && out[1] == 5);
        DITTO_TRY(ditto_all_gather(self, in, out, 2, NULL, DITTO_I32, NULL));
        for (uint32_t k = 0; k < n; k++)
            EXPECT(&t->report, out[2 * k] == (int32_t)k + 1 && out[2 * k + 1] == 5);
        DITTO_TRY(ditto_scan(self, in, out, 1, DITTO_I32, DITTO_SUM, NULL));
        EXPECT(&t->report, out[0] == (int32_t)((id + 1) * (id + 2) / 2) && out[1] == 5);
        out[0] = 0; /* replica 0 keeps it */
        DITTO_TRY(ditto_scan_exclusive(self, in, out, 1, DITTO_I32, DITTO_SUM, NULL));
        EXPECT(&t->report, out[0] == (int32_t)(id * (id + 1) / 2) && out[1] == 5);
        for (uint32_t root = 0; root < n; root++) {
            out[0] = -1;
            DITTO_TRY(ditto_reduce_to_root(self, in, out, 1, DITTO_I32, DITTO_SUM, root, NULL));
            EXPECT(&t->report, out[0] == (root == id ? (int32_t)(n * (n + 1) / 2) : -1));
            DITTO_TRY(ditto_gather_to_root(self, in, out, 1, NULL, NULL, DITTO_I32, root, NULL));
            for (uint32_t k = 0; root == id && k < n; k++)
                EXPECT(&t->report, out[k] == (int32_t)k + 1);
            DITTO_TRY(ditto_scatter_from_root(self, many, out, 1, NULL, NULL, DITTO_I32, root, NULL));
            EXPECT(&t->report, out[0] == (int32_t)(root * 1000 + id));
        }
        for (size_t count = 1; count <= 2; count++) {
            DITTO_TRY(ditto_all_to_all(self, many, out, count, NULL, DITTO_I32, NULL));
            for (uint32_t k = 0; k < n; k++)
                EXPECT(&t->report, out[count * k] == (int32_t)(k * 1000 + count * id));
        }
    }
    return DITTO_OK;
}

static void a_call_that_differs_in_one_argument_is_another_call(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        struct task t = { 0 };
        run_once(replica_counts[i], NULL, change_one_argument, &t, &t.report);
    }
}

/* -- bad arguments -- */

/* Makes a call with bad arguments several times after a good one that differs in one argument only. */
static ditto_status repeat_bad_calls(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    float buffer[3] = { 0 };
    for (int again = 0; again < 3; again++) {
        DITTO_TRY(ditto_all_reduce(self, buffer, buffer + 2, 1, DITTO_F32, DITTO_SUM, NULL));
        EXPECT(&t->report, ditto_all_reduce(self, buffer, buffer + 1, 2, DITTO_F32, DITTO_SUM, NULL) ==
                               DITTO_ERR_INVALID);
        EXPECT(&t->report, ditto_all_reduce(self, buffer, buffer + 2, 1, (ditto_dtype)99, DITTO_SUM, NULL) ==
                               DITTO_ERR_INVALID);
        EXPECT(&t->report, ditto_all_reduce(self, buffer, buffer + 2, 1, DITTO_F32, DITTO_XOR, NULL) ==
                               DITTO_ERR_UNSUPPORTED);
        EXPECT(&t->report,
               ditto_all_reduce(self, NULL, buffer + 2, 1, DITTO_F32, DITTO_SUM, NULL) == DITTO_ERR_INVALID);
        DITTO_TRY(ditto_broadcast_from_root(self, buffer, 1, DITTO_F32, 0, NULL));
        EXPECT(&t->report, ditto_broadcast_from_root(self, buffer, 1, DITTO_F32, ditto_num_replicas(self),
                                                     NULL) == DITTO_ERR_RANGE);
        EXPECT(&t->report,
               ditto_broadcast_from_root(self, buffer, 1, DITTO_F32, UINT32_MAX, NULL) == DITTO_ERR_RANGE);
        EXPECT(&t->report, ditto_reduce_to_root(self, buffer, buffer + 2, 1, DITTO_F32, DITTO_SUM, UINT32_MAX,
                                                NULL) == DITTO_ERR_RANGE);
    }
    return DITTO_OK;
}

static void bad_arguments_are_refused_each_time(void **state)
{
    struct task t = { 0 };
    run_once(3, NULL, repeat_bad_calls, &t, &t.report);
}

/* -- what may change between two equal calls -- */

/* The odd one makes a call that all replicas know, but the others repeat another call that they know. */
static ditto_status diverge(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self);
    float *a = &t->sent[id], *b = &t->received[id];
    char label[8];
    ditto_reduce_options labelled = OPTIONS(reduce, .label = label);
    for (int i = 0; i <= 2 * ROUNDS; i++) {
        ditto_op op = i % 2 == 0 && (i < 2 * ROUNDS || id != t->odd_one) ? DITTO_SUM : DITTO_MAX;
        snprintf(label, sizeof label, "%s", ditto_op_name(op));
        DITTO_TRY(ditto_all_reduce(self, a, b, 1, DITTO_F32, t->labelled ? DITTO_MIN : op,
                                   t->labelled ? &labelled : NULL));
    }
    return DITTO_OK;
}

static ditto_status agree(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    uint32_t id = ditto_replica_id(self);
    t->sent[id] = 1;
    DITTO_TRY(ditto_all_reduce(self, &t->sent[id], &t->received[id], 1, DITTO_F32, DITTO_SUM, NULL));
    EXPECT(&t->report, t->received[id] == (float)ditto_num_replicas(self));
    return DITTO_OK;
}

static void replicas_that_repeat_different_calls_have_diverged(void **state)
{
    for (uint32_t n = 2; n <= 3; n++)
        for (uint32_t i = 0; i < 2 * n; i++) {
            struct task t = { .odd_one = i / 2, .labelled = i % 2 != 0 };
            ditto_strategy *strategy = make_strategy(n, NULL);
            assert_status(ditto_strategy_run(strategy, diverge, &t), DITTO_ERR_DIVERGED);
            assert_message("SUM");
            assert_message("MAX");
            run_all(strategy, agree, &t, &t.report); /* the strategy can be used again */
            assert_ok(ditto_strategy_destroy(strategy));
        }
}

/* Two replicas give the same destination. This is no other call for the replica that gives its own. */
static ditto_status share_destination(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    static float large[2][1 << 16];
    uint32_t id = ditto_replica_id(self);
    for (int round = 0; round < ROUNDS; round++)
        DITTO_TRY(ditto_all_reduce(self, large[id], large[id], 1 << 16, DITTO_F32, DITTO_MAX, NULL));
    EXPECT(&t->report, ditto_all_reduce(self, large[id], large[0], 1 << 16, DITTO_F32, DITTO_MAX, NULL) < 0);
    return DITTO_ERR_INVALID;
}

static void a_shared_destination_is_found_after_equal_calls(void **state)
{
    struct task t = { 0 };
    ditto_strategy *strategy = make_strategy(2, NULL);
    assert_status(ditto_strategy_run(strategy, share_destination, &t), DITTO_ERR_INVALID);
    assert_string_equal(t.report.first_failure, "");
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Where a known call is not allowed: in a merge function, and with the handle of an earlier run. */
struct elsewhere {
    struct report report;
    ditto_replica *handle;
    float sent, received;
    ditto_status in_merge;
};

static ditto_status call_in_merge(ditto_strategy *strategy, ditto_value *const *arguments,
                                  uint32_t num_arguments, void *user, ditto_value **result)
{
    struct elsewhere *e = user;
    e->in_merge = ditto_all_reduce(e->handle, &e->sent, &e->received, 1, DITTO_F32, DITTO_SUM, NULL);
    return DITTO_OK;
}

static ditto_status call_elsewhere(ditto_replica *self, void *argument)
{
    struct elsewhere *e = argument;
    if (e->handle != NULL) /* the second run */
        EXPECT(&e->report, ditto_all_reduce(e->handle, &e->sent, &e->received, 1, DITTO_F32, DITTO_SUM,
                                            NULL) == DITTO_ERR_CONTEXT);
    e->handle = self;
    for (int round = 0; round < 3; round++) {
        e->sent = 7;
        e->received = 0;
        DITTO_TRY(ditto_all_reduce(self, &e->sent, &e->received, 1, DITTO_F32, DITTO_SUM, NULL));
        EXPECT(&e->report, e->received == 7);
        DITTO_TRY(ditto_merge_call(self, call_in_merge, e, NULL, 0, NULL));
        EXPECT(&e->report, e->in_merge == DITTO_ERR_CONTEXT);
    }
    return DITTO_OK;
}

static void a_known_call_is_refused_in_another_context(void **state)
{
    struct elsewhere e = { 0 };
    ditto_strategy *strategy = make_strategy(1, NULL);
    run_all(strategy, call_elsewhere, &e, &e.report);
    run_all(strategy, call_elsewhere, &e, &e.report);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* An inner run makes the calls of the run around it, with the same buffers. */
static ditto_status run_inside(ditto_strategy *strategy, ditto_value *const *arguments,
                               uint32_t num_arguments, void *user, ditto_value **result)
{
    return ditto_strategy_run(strategy, agree, user);
}

static ditto_status agree_inside_and_outside(ditto_replica *self, void *argument)
{
    for (int round = 0; round < 3; round++) {
        DITTO_TRY(agree(self, argument));
        DITTO_TRY(ditto_merge_call(self, run_inside, argument, NULL, 0, NULL));
        DITTO_TRY(agree(self, argument));
    }
    return DITTO_OK;
}

static void a_run_inside_a_run_makes_the_same_calls(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        struct task t = { 0 };
        run_once(replica_counts[i], NULL, agree_inside_and_outside, &t, &t.report);
    }
}

/* The time limit holds for a call that is known, too. */
static ditto_status come_late(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    for (int round = 0; round < 3; round++)
        DITTO_TRY(agree(self, t));
    if (ditto_replica_id(self) == t->odd_one)
        while (atomic_load(&t->left) == 0)
            sleep_ms(1);
    ditto_status status = agree(self, t);
    atomic_fetch_add(&t->left, 1);
    return status;
}

static void the_time_limit_of_the_strategy_holds_for_a_known_call(void **state)
{
    struct task t = { .odd_one = 1 };
    ditto_strategy *strategy = make_strategy(2, &OPTIONS(strategy, .timeout_ms = 50));
    assert_status(ditto_strategy_run(strategy, come_late, &t), DITTO_ERR_TIMED_OUT);
    assert_message("ditto_all_reduce #4");
    assert_ok(ditto_strategy_destroy(strategy));
}

#if defined(__x86_64__)

#define FLUSH_TO_ZERO 0x8040u

/* A replica sets flush-to-zero between two equal calls, and takes it back between the next two. */
static ditto_status flush_between_calls(ditto_replica *self, void *argument)
{
    struct task *t = argument;
    const float denormal = 1e-40f;
    uint32_t standard = __builtin_ia32_stmxcsr();
    uint32_t n = ditto_num_replicas(self);
    float in[MOST], out[MOST];
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t wanted = round % 2 == 0 ? standard : standard | FLUSH_TO_ZERO;
        for (int i = 0; i < MOST; i++)
            memcpy(&in[i], &denormal, sizeof denormal);
        __builtin_ia32_ldmxcsr(wanted);
        ditto_status status = ditto_all_reduce(self, in, out, MOST, DITTO_F32, DITTO_MEAN, NULL);
        uint32_t left = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(standard);
        DITTO_TRY(status);
        EXPECT(&t->report, ((left ^ wanted) & ~0x3fu) == 0);
        /* The mean of n equal numbers: the sum of a few denormals is exact, and so is the quotient. */
        for (int i = 0; i < MOST && n <= 2; i++)
            EXPECT(&t->report, memcmp(&out[i], &denormal, sizeof denormal) == 0);
        for (int i = 0; i < MOST; i++)
            EXPECT(&t->report, out[i] != 0);
    }
    return DITTO_OK;
}

static void flush_to_zero_between_equal_calls_changes_no_bit(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        struct task t = { 0 };
        run_once(replica_counts[i], NULL, flush_between_calls, &t, &t.report);
    }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_different_calls_in_turn_have_their_own_results),
        cmocka_unit_test(a_call_that_differs_in_one_argument_is_another_call),
        cmocka_unit_test(bad_arguments_are_refused_each_time),
        cmocka_unit_test(replicas_that_repeat_different_calls_have_diverged),
        cmocka_unit_test(a_shared_destination_is_found_after_equal_calls),
        cmocka_unit_test(a_known_call_is_refused_in_another_context),
        cmocka_unit_test(a_run_inside_a_run_makes_the_same_calls),
        cmocka_unit_test(the_time_limit_of_the_strategy_holds_for_a_known_call),
#if defined(__x86_64__)
        cmocka_unit_test(flush_to_zero_between_equal_calls_changes_no_bit),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
