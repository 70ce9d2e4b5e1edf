/* tests/fault/test_pause_end.c - a run that is stopped while replica 0 ends a merge_call.
 *
 * Replica 0 ends the pause of a merge_call in two steps: it posts the end, and then stores that the pause is
 * open. A replica that takes the end at once, comes to the next merge_call and fails there in between sleeps
 * until the second step, which has to wake it. The test holds replica 0 once after each instruction between
 * its merge function and its return from the merge_call. */
#include "support/single_step.h"
#include "support/support.h"

#include <stdatomic.h>
#include <time.h>

#if SINGLE_STEPS

enum { RUN_LIMIT_S = 60 };

struct race {
    /* The number of instructions from the end of the merge function to the hold. */
    unsigned long steps;

    /* How long replica 0 gives the others to leave the first merge_call. */
    int patience_ms;

    /* The number of replicas other than 0, and how many of them have left the first merge_call, and the
     * second one. */
    int others;
    _Atomic int left_first, left_second;

    /* The results of the hold. If others_slept, all other replicas had left the first merge_call, and not all
     * of them had left the second one. */
    bool was_held, others_slept;
};

static bool wait_for(const _Atomic int *number, int wanted, int limit_ms)
{
    for (int i = 0; atomic_load(number) < wanted && i < 10 * limit_ms; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    return atomic_load(number) >= wanted;
}

/* Gives the other replicas time to leave the first merge_call, and then to fail in the second one or to fall
 * asleep there. They cannot leave the first one before the end of the pause is posted. If a replica needs
 * more time than this, the trial shows nothing, but it does not fail. */
static void hold_replica_0(void *argument)
{
    struct race *r = argument;
    if (wait_for(&r->left_first, r->others, r->patience_ms))
        r->others_slept = !wait_for(&r->left_second, r->others, 25 * r->patience_ms);
}

static ditto_status begin_steps(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                void *user, ditto_value **result)
{
    struct race *r = user;
    hold_after(r->steps, hold_replica_0, r);
    return DITTO_OK;
}

static ditto_status do_nothing(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *user, ditto_value **result)
{
    return DITTO_OK;
}

static ditto_status merge_twice(ditto_replica *self, void *argument)
{
    struct race *r = argument;
    bool is_replica_0 = ditto_replica_id(self) == 0;
    ditto_status status = ditto_merge_call(self, begin_steps, r, NULL, 0, NULL);
    if (is_replica_0)
        r->was_held = dont_hold();
    DITTO_TRY(status);
    atomic_fetch_add(&r->left_first, !is_replica_0);
    status = ditto_merge_call(self, do_nothing, NULL, NULL, 0, NULL);
    atomic_fetch_add(&r->left_second, !is_replica_0);
    return status;
}

static ditto_status return_at_once(ditto_replica *self, void *argument)
{
    return DITTO_OK;
}

/* Returns false if replica 0 left the merge_call within `steps` instructions. On a busy machine the time
 * limit may pass in the first merge_call, and the run is repeated. */
static bool try_hold(ditto_strategy *strategy, unsigned long steps, int patience_ms, int *num_asleep)
{
    struct race r;
    int tries = 0;
    do {
        r = (struct race){ .steps = steps,
                           .patience_ms = patience_ms,
                           .others = (int)ditto_strategy_num_replicas(strategy) - 1 };
        time_t begin = time(NULL);
        ditto_status status = ditto_strategy_run(strategy, merge_twice, &r);
        assert_true(status == DITTO_OK || status == DITTO_ERR_TIMED_OUT);
        /* A replica that is not woken sleeps until the time limit of the run. */
        if (time(NULL) - begin >= RUN_LIMIT_S - 1)
            fail_msg("held after %lu instructions, a replica was not woken: %s", steps,
                     ditto_last_error()->message);
        assert_ok(ditto_strategy_run(strategy, return_at_once, NULL));
    } while (atomic_load(&r.left_first) < r.others && ++tries < 1000);
    assert_true(tries < 1000);
    *num_asleep += r.others_slept;
    return r.was_held;
}

/* Holds replica 0 after each instruction. Returns the number of trials in which the others slept. */
static int hold_everywhere(uint32_t replicas, int patience_ms)
{
    enum { MOST_STEPS = 20000 }; /* a merge_call has fewer instructions */
    unsigned long steps = 1;
    int num_asleep = 0;
    ditto_strategy_options options = OPTIONS(strategy, .timeout_ms = (uint32_t)patience_ms * 5 / 2,
                                             .run_timeout_ms = 1000 * RUN_LIMIT_S, .spin_us = 1);
    ditto_strategy *strategy = make_strategy(replicas, &options);
    while (try_hold(strategy, steps, patience_ms, &num_asleep) && steps < MOST_STEPS)
        steps++;
    assert_true(steps < MOST_STEPS); /* every instruction of the merge_call has been tried */
    print_message("  %u replicas: replica 0 was held at %lu instructions, at %d of them another slept\n",
                  replicas, steps - 1, num_asleep);
    assert_ok(ditto_strategy_destroy(strategy));
    return num_asleep;
}

#endif

static void a_replica_that_fails_while_a_pause_ends_is_woken(void **state)
{
#if SINGLE_STEPS
    for (uint32_t n = 2; n <= 3; n++) {
        static const int patience_ms[] = { 2, 10, 50, 50, 50, 50 };
        int num_asleep = 0;
        /* They get more time, and more trials, if they never came so far because other programs used the PUs.
         * Three replicas on two PUs seldom come so far. */
        for (size_t i = 0; num_asleep == 0 && i < (n == 2 ? 6 : 2); i++)
            num_asleep = hold_everywhere(n, patience_ms[i]);
        assert_true(num_asleep > 0 || n > 2);
    }
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replica_that_fails_while_a_pause_ends_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
