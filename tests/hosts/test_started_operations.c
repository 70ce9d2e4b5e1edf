/* tests/hosts/test_started_operations.c - operations that are started over several hosts are carried out
 * while replicas compute, and fail as others do. */
#include "support/hosts.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_HOSTS = 3, SMALL = 100, LARGE = 400000, STARTS = 100, WINDOW = 8 };

/* What the hosts of one test share. They are threads of this process. */
struct shared {
    ditto_caller caller;
    uint32_t replicas; /* of each host */
    _Atomic bool done[MOST_HOSTS];
    _Atomic uint32_t begun, timed_out;
};

/* One host, in a run. */
struct on_host {
    struct test_host *host;
    struct shared *shared;
};

static ditto_status make(struct test_host *host, uint32_t timeout_ms, ditto_strategy **out)
{
    const struct shared *shared = host->argument;
    ditto_strategy_options options = OPTIONS(strategy, .caller = shared->caller);
    if (timeout_ms != 0)
        options.timeout_ms = timeout_ms;
    return make_host_strategy(host, shared->replicas, &options, out);
}

static void await(const _Atomic bool *flag)
{
    while (!atomic_load(flag))
        sched_yield();
}

/* Calls `function` on `hosts` hosts, with callers that wait and with callers that are replicas. */
static void play(uint32_t hosts, uint32_t replicas, test_host_fn *function)
{
    const ditto_caller callers[] = { DITTO_CALLER_WAITS, DITTO_CALLER_IS_REPLICA_0 };
    for (int i = 0; i < 2; i++) {
        struct shared shared = { .caller = callers[i], .replicas = replicas };
        on_hosts(hosts, 50, function, &shared);
    }
}

/* -- progress -- */

static float element(uint32_t id, size_t i)
{
    return 1.0f / (float)(1 + (i + 31 * id) % 1009);
}

/* What every replica starts, and what comes out. */
struct operations {
    float *src, *large, *gathered, small[SMALL];
    ditto_pending pending[3];
};

static ditto_status start_all(ditto_replica *self, struct operations *o)
{
    uint32_t id = ditto_replica_id(self);
    void *memory;
    DITTO_TRY(ditto_alloc(self, LARGE * sizeof(float), 64, &memory));
    o->src = memory;
    DITTO_TRY(ditto_alloc(self, LARGE * sizeof(float), 64, &memory));
    o->large = memory;
    DITTO_TRY(ditto_alloc(self, (size_t)SMALL * ditto_num_replicas(self) * sizeof(float), 64, &memory));
    o->gathered = memory;
    for (size_t i = 0; i < LARGE; i++)
        o->src[i] = element(id, i);
    DITTO_TRY(
        ditto_all_reduce_start(self, o->src, o->small, SMALL, DITTO_F32, DITTO_SUM, NULL, &o->pending[0]));
    DITTO_TRY(
        ditto_all_reduce_start(self, o->src, o->large, LARGE, DITTO_F32, DITTO_SUM, NULL, &o->pending[1]));
    return ditto_all_gather_start(self, o->src, o->gathered, SMALL, DITTO_F32, NULL, &o->pending[2]);
}

/* Compares with the blocking calls. */
static ditto_status check_all(ditto_replica *self, struct report *report, struct operations *o)
{
    void *memory;
    DITTO_TRY(ditto_alloc(self, LARGE * sizeof(float), 64, &memory));
    DITTO_TRY(ditto_all_reduce(self, o->src, memory, LARGE, DITTO_F32, DITTO_SUM, NULL));
    EXPECT(report, memcmp(memory, o->large, LARGE * sizeof(float)) == 0);
    EXPECT(report, memcmp(memory, o->small, SMALL * sizeof(float)) == 0);
    for (uint32_t r = 0; r < ditto_num_replicas(self); r++)
        for (size_t i = 0; i < SMALL; i++)
            EXPECT(report, o->gathered[r * SMALL + i] == element(r, i));
    DITTO_TRY(ditto_barrier(self, NULL));
    DITTO_TRY(ditto_free(self, memory));
    DITTO_TRY(ditto_free(self, o->src));
    DITTO_TRY(ditto_free(self, o->large));
    return ditto_free(self, o->gathered);
}

/* One replica of each host looks until all operations are complete. The others make no call of ditto
 * before. If the caller is a replica it drives, so that one looks. */
static ditto_status one_looks(ditto_replica *self, void *argument)
{
    const struct on_host *on = argument;
    _Atomic bool *done = &on->shared->done[on->host->host];
    bool driver = ditto_replica_is_first_of_host(self);
    struct operations o;
    DITTO_TRY(start_all(self, &o));
    if (driver != (on->shared->caller == DITTO_CALLER_WAITS)) {
        for (int i = 0; i < 3; i++) {
            ditto_status status;
            while ((status = ditto_test(self, &o.pending[i])) == DITTO_PENDING)
                sched_yield();
            DITTO_TRY(status);
        }
        atomic_store(done, true);
    } else {
        await(done);
        for (int i = 3; i-- > 0;)
            DITTO_TRY(ditto_wait(self, &o.pending[i], NULL));
    }
    return check_all(self, on->host->report, &o);
}

static ditto_status looks(struct test_host *host)
{
    struct on_host on = { host, host->argument };
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 0, &strategy));
    for (int run = 0; run < 3; run++) {
        atomic_store(&on.shared->done[host->host], false);
        DITTO_TRY(ditto_strategy_run(strategy, one_looks, &on));
    }
    return ditto_strategy_destroy(strategy);
}

static void operations_end_while_replicas_compute(void **state)
{
    play(1, 2, looks);
    play(2, 2, looks);
    play(3, 3, looks);
}

/* All replicas wait, so all take shares. Some start far ahead of others. */
static ditto_status in_a_window(ditto_replica *self, void *argument)
{
    const struct on_host *on = argument;
    uint32_t id = ditto_replica_id(self), n = ditto_num_replicas(self);
    ditto_pending pending[WINDOW];
    int64_t in[WINDOW], out[WINDOW];
    for (int k = 0; k < STARTS + WINDOW; k++) {
        int slot = k % WINDOW;
        if (k >= WINDOW) {
            DITTO_TRY(ditto_wait(self, &pending[slot], NULL));
            EXPECT(on->host->report, out[slot] == (int64_t)n * (k - WINDOW) + n * (n - 1) / 2);
        }
        if ((uint32_t)k % n == id)
            sched_yield();
        if (k % 10 == 0) {
            ditto_pending barrier;
            DITTO_TRY(ditto_all_reduce_start(self, NULL, NULL, 0, DITTO_F32, DITTO_SUM, NULL, &barrier));
            DITTO_TRY(ditto_wait(self, &barrier, NULL));
        }
        in[slot] = k + (int64_t)id;
        if (k < STARTS)
            DITTO_TRY(ditto_all_reduce_start(self, &in[slot], &out[slot], 1, DITTO_I64, DITTO_SUM, NULL,
                                             &pending[slot]));
    }
    return DITTO_OK;
}

static ditto_status start_inside(ditto_strategy *strategy, ditto_value *const *arguments,
                                 uint32_t num_arguments, void *user, ditto_value **result)
{
    return ditto_strategy_run(strategy, in_a_window, user);
}

/* Operations of a run, of a run inside it, and of the first one again. */
static ditto_status on_two_levels(ditto_replica *self, void *argument)
{
    struct operations o;
    const struct on_host *on = argument;
    DITTO_TRY(start_all(self, &o));
    DITTO_TRY(ditto_merge_call(self, start_inside, argument, NULL, 0, NULL));
    for (int i = 0; i < 3; i++)
        DITTO_TRY(ditto_wait(self, &o.pending[i], NULL));
    DITTO_TRY(in_a_window(self, argument));
    return check_all(self, on->host->report, &o);
}

static ditto_status windows(struct test_host *host)
{
    struct on_host on = { host, host->argument };
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 0, &strategy));
    for (int run = 0; run < test_trials(10); run++)
        DITTO_TRY(ditto_strategy_run(strategy, in_a_window, &on));
    for (int run = 0; run < 2; run++)
        DITTO_TRY(ditto_strategy_run(strategy, on_two_levels, &on));
    return ditto_strategy_destroy(strategy);
}

static void operations_are_started_ahead_and_in_inner_runs(void **state)
{
    play(2, 1, windows);
    play(2, 3, windows);
    play(3, 2, windows);
}

/* -- limits -- */

/* The limit holds in ditto_strategy_create_on too, which has to end within it on a busy machine. */
#define PATIENCE_MS 3000

/* The replicas of host 0 compute for longer than the limit, until those of host 1 begin. A limit counts in
 * waits only, so nothing fails. */
static ditto_status late_host(ditto_replica *self, void *argument)
{
    const struct on_host *on = argument;
    ditto_pending pending;
    int32_t in = 1, out = 0;
    if (on->host->host == 1)
        usleep((PATIENCE_MS + 500) * 1000);
    DITTO_TRY(ditto_all_reduce_start(self, &in, &out, 1, DITTO_I32, DITTO_SUM, NULL, &pending));
    if (on->host->host == 1)
        atomic_fetch_add(&on->shared->begun, 1);
    while (atomic_load(&on->shared->begun) < on->shared->replicas)
        usleep(1000);
    DITTO_TRY(ditto_wait(self, &pending, &OPTIONS(reduce, .timeout_ms = 60000)));
    EXPECT(on->host->report, out == (int32_t)ditto_num_replicas(self));
    return DITTO_OK;
}

static ditto_status is_patient(struct test_host *host)
{
    struct on_host on = { host, host->argument };
    ditto_strategy *strategy;
    DITTO_TRY(make(host, PATIENCE_MS, &strategy));
    DITTO_TRY(ditto_strategy_run(strategy, late_host, &on));
    return ditto_strategy_destroy(strategy);
}

static void computing_does_not_count(void **state)
{
    /* A caller that only waits is in the operation all the time. */
    struct shared shared = { .caller = DITTO_CALLER_WAITS, .replicas = 2 };
    on_hosts(2, 0, is_patient, &shared);
    shared = (struct shared){ .caller = DITTO_CALLER_IS_REPLICA_0, .replicas = 2 };
    on_hosts(2, 0, is_patient, &shared);
}

/* Host 1 does not start the operation before host 0 has given up. */
static ditto_status host_1_is_late(ditto_replica *self, void *argument)
{
    const struct on_host *on = argument;
    ditto_pending pending;
    int32_t in = 1, out;
    if (on->host->host == 1)
        await(&on->shared->done[0]);
    DITTO_TRY(ditto_all_reduce_start(self, &in, &out, 1, DITTO_I32, DITTO_SUM, NULL, &pending));
    ditto_status status = ditto_wait(self, &pending,
                                     &OPTIONS(reduce, .timeout_ms = 50 + 10 * ditto_replica_id(self)));
    if (on->host->host == 0)
        atomic_fetch_add(&on->shared->timed_out, status == DITTO_ERR_TIMED_OUT);
    atomic_store(&on->shared->done[on->host->host], true);
    return status;
}

static ditto_status is_late(struct test_host *host)
{
    struct on_host on = { host, host->argument };
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 0, &strategy));
    DITTO_TRY(
        expect(host, ditto_strategy_run(strategy, host_1_is_late, &on), DITTO_ERR_TIMED_OUT, "for host 1"));
    DITTO_TRY(expect(host, DITTO_ERR_TIMED_OUT, DITTO_ERR_TIMED_OUT, "ditto_all_reduce_start #1"));
    if (host->host == 0) /* one replica gave up, and the others were stopped by it */
        CHECK(host, atomic_load(&on.shared->timed_out) == 1);
    for (int run = 0; run < 3; run++)
        DITTO_TRY(ditto_strategy_run(strategy, in_a_window, &on));
    return ditto_strategy_destroy(strategy);
}

static void who_waits_too_long_learns_for_which_host(void **state)
{
    play(2, 1, is_late);
    play(2, 3, is_late);
}

/* The replicas of host 0 look until the run is over. Host 1 waits for that, so its own limit is longer. */
static ditto_status host_1_never_starts(ditto_replica *self, void *argument)
{
    const struct on_host *on = argument;
    ditto_pending pending;
    ditto_status status;
    int32_t in = 1, out;
    if (on->host->host == 1) {
        await(&on->shared->done[0]);
        return DITTO_OK;
    }
    DITTO_TRY(ditto_all_reduce_start(self, &in, &out, 1, DITTO_I32, DITTO_SUM, NULL, &pending));
    while ((status = ditto_test(self, &pending)) == DITTO_PENDING)
        sched_yield();
    atomic_store(&on->shared->done[0], true);
    return status;
}

static ditto_status run_is_over(struct test_host *host)
{
    struct on_host on = { host, host->argument };
    ditto_strategy *strategy;
    ditto_strategy_options options = OPTIONS(strategy, .caller = on.shared->caller,
                                             .run_timeout_ms = host->host == 0 ? 200 : 60000);
    DITTO_TRY(make_host_strategy(host, on.shared->replicas, &options, &strategy));
    DITTO_TRY(expect(host, ditto_strategy_run(strategy, host_1_never_starts, &on), DITTO_ERR_TIMED_OUT,
                     "run_timeout_ms = 200 passed"));
    return ditto_strategy_destroy(strategy);
}

static void the_limit_of_a_run_holds_for_the_driver(void **state)
{
    play(2, 2, run_is_over);
}

/* Replica 1 of each host waits while the driver computes. */
static ditto_status driver_computes(ditto_replica *self, void *argument)
{
    const struct on_host *on = argument;
    _Atomic bool *done = &on->shared->done[on->host->host];
    ditto_pending pending;
    int32_t in = 1, out;
    DITTO_TRY(ditto_all_reduce_start(self, &in, &out, 1, DITTO_I32, DITTO_SUM, NULL, &pending));
    if (ditto_replica_is_first_of_host(self)) {
        await(done);
        return ditto_wait(self, &pending, NULL);
    }
    ditto_status status = ditto_wait(self, &pending, &OPTIONS(reduce, .timeout_ms = 50));
    EXPECT(on->host->report, status == DITTO_ERR_TIMED_OUT);
    EXPECT(on->host->report,
           strstr(ditto_last_error()->message, ", which exchanges messages with other hosts") != NULL);
    atomic_store(done, true);
    return status;
}

static ditto_status driver_is_late(struct test_host *host)
{
    struct on_host on = { host, host->argument };
    ditto_strategy *strategy;
    DITTO_TRY(make(host, 0, &strategy));
    DITTO_TRY(expect(host, ditto_strategy_run(strategy, driver_computes, &on), DITTO_ERR_TIMED_OUT, ""));
    for (int run = 0; run < 3; run++)
        DITTO_TRY(ditto_strategy_run(strategy, in_a_window, &on));
    return ditto_strategy_destroy(strategy);
}

static void who_waits_for_the_driver_learns_it(void **state)
{
    struct shared shared = { .caller = DITTO_CALLER_IS_REPLICA_0, .replicas = 2 };
    on_hosts(2, 0, driver_is_late, &shared);
}

/* -- faults -- */

struct fault {
    const char *what;
    ditto_status status;
    const char *message;
};

static ditto_status has_fault(ditto_replica *self, void *argument)
{
    const struct on_host *on = argument;
    uint32_t host = on->host->host, id = ditto_replica_id(self);
    const struct fault *fault = on->host->argument;
    ditto_pending pending[2];
    static int32_t in[10], out[MOST_HOSTS * 3][10];
    size_t count = 10;
    if (strcmp(fault->what, "another count on host 1") == 0 && host == 1)
        count = 9;
    if (strcmp(fault->what, "another count on replica 1") == 0 && id == 1)
        count = 8;
    DITTO_TRY(ditto_all_reduce_start(self, in, out[id], count, DITTO_I32, DITTO_SUM, NULL, &pending[0]));
    if (strcmp(fault->what, "replica 3 returns") == 0 && id == 3)
        return DITTO_OK;
    if (strcmp(fault->what, "replica 2 fails") == 0 && id == 2)
        return ditto_abandon(self, ditto_fail(self, DITTO_ERR_USER, "as it should"));
    if (strcmp(fault->what, "host 1 starts one more") == 0 && host == 1)
        DITTO_TRY(ditto_all_reduce_start(self, in, out[id], count, DITTO_I32, DITTO_SUM, NULL, &pending[1]));
    ditto_status status = ditto_wait(self, &pending[0], NULL);
    if (status == DITTO_OK)
        status = ditto_barrier(self, NULL);
    return status == DITTO_OK ? status : ditto_abandon(self, status);
}

static ditto_status fails(struct test_host *host)
{
    const struct fault *fault = host->argument;
    struct shared shared = { .replicas = 2 };
    struct on_host on = { host, &shared };
    const ditto_caller callers[] = { DITTO_CALLER_WAITS, DITTO_CALLER_IS_REPLICA_0 };
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    for (int i = 0; i < 2; i++) {
        ditto_strategy *strategy;
        options.caller = callers[i];
        DITTO_TRY(make_host_strategy(host, 2, &options, &strategy));
        for (int run = 0; run < 3; run++) {
            DITTO_TRY(
                expect(host, ditto_strategy_run(strategy, has_fault, &on), fault->status, fault->message));
            DITTO_TRY(ditto_strategy_run(strategy, in_a_window, &on));
        }
        DITTO_TRY(ditto_strategy_destroy(strategy));
    }
    return DITTO_OK;
}

static void faults_end_in_one_error_on_all_hosts(void **state)
{
    static struct fault faults[] = {
        { "another count on host 1", DITTO_ERR_DIVERGED, "9 x i32" },
        { "another count on replica 1", DITTO_ERR_DIVERGED, "8 x i32" },
        { "replica 3 returns", DITTO_ERR_INVALID, "replica 3's function returned with 1 pending operation" },
        { "replica 2 fails", DITTO_ERR_USER, "as it should" },
        { "host 1 starts one more", DITTO_ERR_DIVERGED, "ditto_all_reduce_start #2" },
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        print_message("%s\n", faults[i].what);
        on_hosts(2, 0, fails, &faults[i]);
        on_hosts(3, 50, fails, &faults[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_end_while_replicas_compute),
        cmocka_unit_test(operations_are_started_ahead_and_in_inner_runs),
        cmocka_unit_test(computing_does_not_count),
        cmocka_unit_test(who_waits_too_long_learns_for_which_host),
        cmocka_unit_test(the_limit_of_a_run_holds_for_the_driver),
        cmocka_unit_test(who_waits_for_the_driver_learns_it),
        cmocka_unit_test(faults_end_in_one_error_on_all_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
