/* tests/sync/meeting/test_wrap.c - large numbers of meetings and runs. Meetings are compared by 32 bits of
 * their number, which wrap after some minutes of barriers. One test sets the number to a value shortly before
 * the wrap. Runs are compared by 64 bits, and another test has two runs whose lower 32 bits are equal. */
#include "support/support.h"

#include "replicas/team/team_state.h"
#include "sync/meeting/sync_state.h"
#include "sync/pending/pending.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { REPLICAS = 4, LARGE = 50000, MEETINGS = 600 };

/* Which implementation each meeting requests. ONCE requests a hierarchical one for the meeting whose 32 bits
 * are 0, and a flat one for all others. */
enum order { AUTOMATIC, IN_TURN, ONCE };

struct wrapping {
    struct report report;
    enum order order;
    uint64_t start;
};

static ditto_implementation implementation_of(enum order order, uint64_t next)
{
    if (order == AUTOMATIC)
        return DITTO_IMPLEMENTATION_DEFAULT;
    bool rounds = order == IN_TURN ? next / 2 % 2 != 0 : (uint32_t)next == 0;
    return rounds ? DITTO_IMPLEMENTATION_HIERARCHICAL : DITTO_IMPLEMENTATION_FLAT;
}

static ditto_status sum_large(ditto_replica *self, struct report *report, int *numbers, int step)
{
    uint32_t n = ditto_num_replicas(self);
    for (size_t k = 0; k < LARGE; k++)
        numbers[k] = (int)ditto_replica_id(self) + step;
    DITTO_TRY(ditto_all_reduce(self, numbers, numbers, LARGE, DITTO_I32, DITTO_SUM, NULL));
    EXPECT(report, numbers[LARGE - 1] == (int)(n * (uint32_t)step + n * (n - 1) / 2));
    return DITTO_OK;
}

static ditto_status sum_started(ditto_replica *self, struct report *report, int step)
{
    uint32_t n = ditto_num_replicas(self);
    int value = (int)ditto_replica_id(self) + step, sum = 0;
    ditto_pending pending;
    DITTO_TRY(ditto_all_reduce_start(self, &value, &sum, 1, DITTO_I32, DITTO_SUM, NULL, &pending));
    DITTO_TRY(ditto_wait(self, &pending, NULL));
    EXPECT(report, sum == (int)(n * (uint32_t)step + n * (n - 1) / 2));
    return DITTO_OK;
}

static ditto_status meet_past_the_wrap(ditto_replica *self, void *argument)
{
    struct wrapping *w = argument;
    struct dti_replica *r;
    DITTO_TRY(dti_self(self, &r));
    struct dti_replica_state *me = &r->sync->state[r->index];
    static int memory[REPLICAS][LARGE];
    uint32_t n = ditto_num_replicas(self);
    me->seq = w->start;
    for (int i = 0; i < MEETINGS; i++) {
        int value = (int)r->id + i, sum = 0;
        DITTO_TRY(
            ditto_all_reduce(self, &value, &sum, 1, DITTO_I32, DITTO_SUM,
                             &OPTIONS(reduce, .implementation = implementation_of(w->order, me->seq + 1))));
        EXPECT(&w->report, sum == (int)(n * (uint32_t)i + n * (n - 1) / 2));
        if (w->order != ONCE && i % 16 == 0) {
            DITTO_TRY(sum_large(self, &w->report, memory[r->index], i));
            DITTO_TRY(sum_started(self, &w->report, i));
        }
    }
    return DITTO_OK;
}

static void meetings_continue_when_their_numbers_wrap(void **state)
{
    for (int order = AUTOMATIC; order <= ONCE; order++) {
        ditto_tuning tuning = DITTO_TUNING_INIT;
        struct wrapping w = { .order = (enum order)order, .start = 0xfffffe00u };
        tuning.near_replicas = 2; /* two groups, which exchange partial results */
        run_once(REPLICAS, &OPTIONS(strategy, .tuning = &tuning, .timeout_ms = 60000), meet_past_the_wrap, &w,
                 &w.report);
    }
}

/* -- Runs -- */

static ditto_status nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

struct inner_run {
    struct report report;

    /* The thread of replica 0, or 0 until it is about to enter the barrier. */
    _Atomic int sleeper_id;
};

/* Sets the number of the outer run so that it differs from the number of the next inner run by 2^32. Their
 * lower 32 bits are then equal. */
static ditto_status run_after_a_wrap(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                     void *unused, ditto_value **result)
{
    struct dti_team *team = dti_team_of(strategy);
    /* The first inner run also publishes jobs that allocate what inner runs need. */
    DITTO_TRY(ditto_strategy_run(strategy, nothing, NULL));
    atomic_store(&team->run, (uint32_t)atomic_load(&team->go) + 1u + ((uint64_t)1 << 32));
    return ditto_strategy_run(strategy, nothing, NULL);
}

/* Replica 1 arrives at the barrier after replica 0 has gone to sleep there, so replica 0 checks whether
 * replica 1 has returned. */
static ditto_status merge_then_meet(ditto_replica *self, void *argument)
{
    struct inner_run *i = argument;
    DITTO_TRY(ditto_merge_call(self, run_after_a_wrap, NULL, NULL, 0, NULL));
    if (ditto_replica_id(self) == 0)
        atomic_store(&i->sleeper_id, (int)syscall(SYS_gettid));
    else
        EXPECT(&i->report, await_sleep(&i->sleeper_id));
    return ditto_barrier(self, &OPTIONS(reduce, .implementation = DITTO_IMPLEMENTATION_FLAT));
}

static void an_inner_run_differs_from_the_outer_one_after_any_number_of_runs(void **state)
{
    struct inner_run i = { .sleeper_id = 0 };
    run_once(2, NULL, merge_then_meet, &i, &i.report);
}

/* A replica that has gone further in the same slot is not missing, also across the wrap. */
static void numbers_are_compared_by_their_order(void **state)
{
    static const uint64_t numbers[] = {
        0, 1, 2, 0x7ffffffe, 0xfffffffe, 0xffffffff, 0x100000000, 0x100000001
    };
    for (int i = 0; i < 8; i++) {
        assert_false(dti_number_is_before(numbers[i], numbers[i]));
        assert_true(dti_number_is_before(numbers[i], numbers[i] + 2));
        assert_false(dti_number_is_before(numbers[i] + 2, numbers[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meetings_continue_when_their_numbers_wrap),
        cmocka_unit_test(numbers_are_compared_by_their_order),
        cmocka_unit_test(an_inner_run_differs_from_the_outer_one_after_any_number_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
