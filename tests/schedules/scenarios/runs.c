/* tests/schedules/scenarios/runs.c - runs: their ends, inner runs, merge calls, time limits, destruction. */
#include "scenarios.h"

#include <stdatomic.h>

/* -- runs one after the other: each replica executes each function once -- */

static int executed[4];
static ditto_status count(ditto_replica *self, void *unused)
{
    (void)unused;
    executed[ditto_replica_id(self)]++;
    return DITTO_OK;
}
static void runs(void)
{
    for (int k = 1; k <= 3; k++) {
        run(count, NULL);
        for (uint32_t i = 0; i < ditto_strategy_num_replicas(strategy); i++)
            EXPECT(executed[i] == k);
    }
}

/* -- a replica fails: the others are woken, the run has its error, and the next run works -- */

static ditto_status fail_on_one(ditto_replica *self, void *unused)
{
    (void)unused;
    if (ditto_replica_id(self) == 1)
        return ditto_fail(self, 9, "it fails");
    ditto_status status = ditto_barrier(self, NULL);
    EXPECT(status == DITTO_ERR_PEER_STOPPED);
    return status;
}
static void failures(void)
{
    for (int k = 0; k < 2; k++) {
        EXPECT(ditto_strategy_run(strategy, fail_on_one, NULL) == DITTO_ERR_USER);
        EXPECT(strstr(ditto_last_error()->message, "it fails") != NULL);
        run(meet, NULL);
    }
}

/* Replicas that make different calls get DIVERGED, or are stopped. */
static ditto_status differ(ditto_replica *self, void *unused)
{
    double x = 1;
    (void)unused;
    return ditto_replica_id(self) == 0 ? ditto_barrier(self, NULL)
                                       : ditto_all_reduce(self, &x, &x, 1, DITTO_F64, DITTO_SUM, NULL);
}
/* One returns, and the others wait for it. */
static ditto_status return_or_meet(ditto_replica *self, void *unused)
{
    (void)unused;
    return ditto_replica_id(self) == 1 ? DITTO_OK : ditto_barrier(self, NULL);
}
static void divergence(void)
{
    EXPECT(ditto_strategy_run(strategy, differ, NULL) == DITTO_ERR_DIVERGED);
    EXPECT(ditto_strategy_run(strategy, return_or_meet, NULL) == DITTO_ERR_DIVERGED);
    run(meet, NULL);
}

/* A large all-reduce in which one replica fails instead of coming. */
static ditto_status fail_or_reduce(ditto_replica *self, void *unused)
{
    static int32_t data[3][2000];
    uint32_t id = ditto_replica_id(self);
    (void)unused;
    EXPECT(ditto_all_reduce(self, data[id], data[id], 2000, DITTO_I32, DITTO_SUM, NULL) == DITTO_OK);
    if (id == 2)
        return ditto_fail(self, 9, "it fails");
    ditto_status status = ditto_all_reduce(self, data[id], data[id], 2000, DITTO_I32, DITTO_SUM, NULL);
    EXPECT(status == DITTO_ERR_PEER_STOPPED);
    return status;
}
static void failing_all_reduce(void)
{
    EXPECT(ditto_strategy_run(strategy, fail_or_reduce, NULL) == DITTO_ERR_USER);
    run(meet, NULL);
}

/* -- merge calls, and runs inside them -- */

static int merged;
static ditto_status run_inside(ditto_strategy *s, ditto_value *const *arguments, uint32_t num_arguments,
                               void *user, ditto_value **result)
{
    (void)arguments, (void)num_arguments, (void)user, (void)result;
    for (uint32_t i = 0; i < ditto_strategy_num_replicas(s); i++)
        EXPECT(executed[i] == merged);
    merged++;
    return ditto_strategy_run(s, count, NULL);
}
static ditto_status merge(ditto_replica *self, void *unused)
{
    (void)unused;
    for (int k = 1; k <= 2; k++) {
        EXPECT(ditto_merge_call(self, run_inside, NULL, NULL, 0, NULL) == DITTO_OK);
        EXPECT(executed[ditto_replica_id(self)] == k);
    }
    return ditto_barrier(self, NULL);
}
static ditto_status merge_nothing(ditto_strategy *s, ditto_value *const *arguments, uint32_t num_arguments,
                                  void *user, ditto_value **result)
{
    return (void)s, (void)arguments, (void)num_arguments, (void)user, (void)result, DITTO_OK;
}

/* Replica 1 fails in the first meeting of a merge call, or before it. */
static ditto_status fail_or_merge(ditto_replica *self, void *argument)
{
    if (ditto_replica_id(self) == 1)
        return ditto_fail(self, 9, "it fails");
    for (int k = 0; k < 2; k++) {
        ditto_status status = ditto_merge_call(self, run_inside, argument, NULL, 0, NULL);
        EXPECT(status == DITTO_ERR_PEER_STOPPED);
        if (status != DITTO_OK)
            return status;
    }
    return DITTO_OK;
}
/* All merge, and then replica 1 fails while the others may still be in the pause. */
static ditto_status merge_and_fail(ditto_replica *self, void *unused)
{
    (void)unused;
    ditto_status status = ditto_merge_call(self, run_inside, NULL, NULL, 0, NULL);
    if (ditto_replica_id(self) == 1) {
        EXPECT(status == DITTO_OK);
        return ditto_fail(self, 9, "it fails");
    }
    if (status == DITTO_OK)
        status = ditto_merge_call(self, run_inside, NULL, NULL, 0, NULL);
    EXPECT(status == DITTO_ERR_PEER_STOPPED);
    return status;
}
static void failing_merges(void)
{
    EXPECT(ditto_strategy_run(strategy, fail_or_merge, NULL) == DITTO_ERR_USER);
    EXPECT(ditto_strategy_run(strategy, merge_and_fail, NULL) == DITTO_ERR_USER);
    EXPECT(merged == 1);
    run(meet, NULL);
}
static void merges(void)
{
    run(merge, NULL);
    EXPECT(merged == 2);
}

/* -- a limit of time: the run ends with TIMED_OUT, and never hangs -- */

static void three_with_a_limit(void)
{
    ditto_strategy_options o = options_of(3, FOUR_PUS);
    o.caller = DITTO_CALLER_WAITS;
    o.run_timeout_ms = 5;
    make_strategy(&o);
}
static _Atomic int is_released;
static ditto_status wait_for_release(ditto_replica *self, void *unused)
{
    (void)unused;
    while (ditto_replica_id(self) == 1 && atomic_load_explicit(&is_released, memory_order_acquire) == 0)
        sched_yield();
    return ditto_barrier(self, NULL);
}
static void *release(void *unused)
{
    (void)unused;
    atomic_store_explicit(&is_released, 1, memory_order_release);
    return NULL;
}
static void time_limits(void)
{
    pthread_t other = thread_of(release, NULL);
    ditto_status status = ditto_strategy_run(strategy, wait_for_release, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_TIMED_OUT);
    join(other);
    end_perhaps_poisoned();
}

/* -- several threads use one strategy, and one of them destroys it -- */

static void *run_once(void *status)
{
    *(ditto_status *)status = ditto_strategy_run(strategy, meet, NULL);
    return NULL;
}
static void two_callers(void)
{
    ditto_status of[2];
    pthread_t other = thread_of(run_once, &of[0]);
    run_once(&of[1]);
    join(other);
    EXPECT(of[0] == DITTO_OK && of[1] == DITTO_OK);
    end_strategy();
}

/* Two strategies, each used by a thread of its own. */
static ditto_strategy *second_strategy;
static void another(void)
{
    ditto_strategy_options o = options_of(2, FOUR_PUS);
    two();
    EXPECT(ditto_strategy_create(DITTO_MIRRORED, &o, &second_strategy) == DITTO_OK);
}
static void *use_second(void *unused)
{
    (void)unused;
    for (int k = 0; k < 2; k++)
        EXPECT(ditto_strategy_run(second_strategy, meet, NULL) == DITTO_OK);
    EXPECT(ditto_strategy_destroy(second_strategy) == DITTO_OK);
    return NULL;
}
static void two_strategies(void)
{
    pthread_t other = thread_of(use_second, NULL);
    run(meet, NULL);
    run(meet, NULL);
    end_strategy();
    join(other);
}

/* Interrupting ends a run, or comes before or after it. */
static void interrupted_runs(void)
{
    pthread_t other = thread_of(interrupt, NULL);
    ditto_status status = ditto_strategy_run(strategy, meet, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
    join(other);
    meet_or_be_poisoned();
    end_perhaps_poisoned();
}

/* Two threads run, one after the other, and a third one interrupts. */
static void *run_or_be_interrupted(void *unused)
{
    (void)unused;
    ditto_status status = ditto_strategy_run(strategy, meet, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
    return NULL;
}
static void two_interrupted_callers(void)
{
    pthread_t a = thread_of(interrupt, NULL), b = thread_of(run_or_be_interrupted, NULL);
    run_or_be_interrupted(NULL);
    join(a);
    join(b);
    meet_or_be_poisoned();
    end_perhaps_poisoned();
}

/* A limit of time passes in a run that a merge function makes. */
static ditto_status run_late(ditto_strategy *s, ditto_value *const *arguments, uint32_t num_arguments,
                             void *user, ditto_value **result)
{
    (void)arguments, (void)num_arguments, (void)user, (void)result;
    return ditto_strategy_run(s, wait_for_release, NULL);
}
static ditto_status merge_late(ditto_replica *self, void *unused)
{
    (void)unused;
    return ditto_merge_call(self, run_late, NULL, NULL, 0, NULL);
}
static void inner_time_limits(void)
{
    pthread_t other = thread_of(release, NULL);
    ditto_status status = ditto_strategy_run(strategy, merge_late, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_TIMED_OUT);
    join(other);
    end_perhaps_poisoned();
}

/* A merge call that is interrupted: some replicas have met, and others have not. */
static ditto_status merge_twice(ditto_replica *self, void *unused)
{
    ditto_status status = DITTO_OK;
    (void)unused;
    for (int k = 0; k < 2 && status == DITTO_OK; k++)
        status = ditto_merge_call(self, merge_nothing, NULL, NULL, 0, NULL);
    return status;
}
static void interrupted_merges(void)
{
    pthread_t other = thread_of(interrupt, NULL);
    ditto_status status = ditto_strategy_run(strategy, merge_twice, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
    join(other);
    meet_or_be_poisoned();
}

/* A collective that is interrupted: when the call has returned, no other replica uses the buffers. */
static ditto_status reduce_and_write(ditto_replica *self, void *unused)
{
    static int32_t src[3][3000], dst[3][3000];
    uint32_t id = ditto_replica_id(self);
    (void)unused;
    ditto_status status = ditto_all_reduce(self, src[id], dst[id], 3000, DITTO_I32, DITTO_SUM, NULL);
    memset(src[id], 1, sizeof src[id]);
    memset(dst[id], 1, sizeof dst[id]);
    return status;
}
static void interrupted_all_reduce(void)
{
    pthread_t other = thread_of(interrupt, NULL);
    ditto_status status = ditto_strategy_run(strategy, reduce_and_write, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CANCELLED);
    join(other);
}

/* -- a strategy from its creation to its end, in which allocations may be refused -- */

/* Objects that all strategies of a process share are there before. */
static void lived_before(void)
{
    two();
    end_strategy();
}
static void lives(void)
{
    ditto_strategy_options o = options_of(2, FOUR_PUS);
    size_t blocks = W->now.blocks;
    ditto_status status = ditto_strategy_create(DITTO_MIRRORED, &o, &strategy);
    if (status == DITTO_OK) {
        run(meet, NULL);
        end_strategy();
    } else {
        EXPECT(status == DITTO_ERR_NO_MEMORY || status == DITTO_ERR_SYSTEM);
    }
    W->outcomes |= status == DITTO_OK ? 1 : status == DITTO_ERR_NO_MEMORY ? 2 : 4;
    EXPECT(W->now.blocks == blocks); /* nothing is leaked */
}

const struct scenario run_scenarios[] = {
    { .name = "runs", .setup = three, .body = runs },
    { .name = "runs_on_two_pus", .setup = three_on_two_pus, .body = runs },
    { .name = "failures", .setup = three, .body = failures },
    { .name = "failures_on_two_pus", .setup = three_on_two_pus, .body = failures },
    { .name = "divergence", .setup = three, .body = divergence },
    { .name = "divergence_on_two_pus", .setup = three_on_two_pus, .body = divergence },
    { .name = "failing_all_reduce", .setup = three, .body = failing_all_reduce },
    { .name = "merges", .setup = three, .body = merges },
    { .name = "failing_merges", .setup = three, .body = failing_merges },
    { .name = "failing_merges_on_two_pus", .setup = three_on_two_pus, .body = failing_merges },
    { .name = "merges_on_two_pus", .setup = three_on_two_pus, .body = merges },
    { .name = "time_limits", .setup = three_with_a_limit, .body = time_limits },
    { .name = "inner_time_limits", .setup = three_with_a_limit, .body = inner_time_limits },
    { .name = "two_interrupted_callers", .setup = two, .body = two_interrupted_callers },
    { .name = "two_strategies", .setup = another, .body = two_strategies },
    { .name = "two_callers", .setup = two, .body = two_callers },
    { .name = "interrupted_runs", .setup = three, .body = interrupted_runs },
    { .name = "interrupted_merges_without_membarrier",
      .setup = three,
      .body = interrupted_merges,
      .no_membarrier = true },
    { .name = "interrupted_merges", .setup = three, .body = interrupted_merges },
    { .name = "interrupted_all_reduce", .setup = three, .body = interrupted_all_reduce },
    { .name = "lives", .setup = lived_before, .body = lives, .may_refuse = true, .outcomes = 7 },
    { 0 },
};
