/* tests/replicas/helpers/test_helper_threads.c - the claims of include/ditto/device.h about the threads of
 * devices: which PUs they run on, hooks, threads that do not return, and children of the process. */
#include "fault/late.h"
#include "support/support.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* -- threads -- */

/* Counts the threads of this process whose names begin with `prefix`. If wide_only is set, counts only those
 * of them that may run on more than one CPU. */
static int count_named(const char *prefix, bool wide_only)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[300], name[32] = "";
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fgets(name, sizeof name, file) != NULL &&
            strncmp(name, prefix, strlen(prefix)) == 0) {
            cpu_set_t set;
            sched_getaffinity((pid_t)atoi(entry->d_name), sizeof set, &set);
            count += !wide_only || CPU_COUNT(&set) > 1;
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(tasks);
    return count;
}

/* Waits until no thread of an earlier strategy is listed. The kernel lists a thread for a moment after it was
 * joined. */
static void await_earlier_threads(void)
{
    for (int i = 0; i < 120000 && count_named("ditto-r", false) > 0; i++)
        sleep_ms(1);
    assert_int_equal(count_named("ditto-r", false), 0);
}

static void helpers_are_pinned_and_end_with_the_strategy(void **state)
{
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    await_earlier_threads();
    long before = count_threads();
    ditto_strategy *s = make_wide_strategy(2, 3, NULL);
    assert_int_equal(count_named("ditto-r", false), 5); /* two replicas of three threads, less the caller */
    assert_int_equal(count_named("ditto-r", true), 0);
    assert_ok(ditto_strategy_replica_info(s, 1, 2, &info));
    assert_int_equal(info.cpu, info.planned.pu.number);
    assert_true(info.thread_id > 0);
    assert_status(ditto_strategy_replica_info(s, 1, 3, &info), DITTO_ERR_RANGE);
    assert_status(ditto_strategy_replica_info(s, 2, 0, &info), DITTO_ERR_RANGE);
    assert_ok(ditto_strategy_destroy(s));
    assert_true(has_threads(before));
}

struct mask_check {
    struct report report;
    int cpus[2];
};

static ditto_status look_at_mask(ditto_replica *self, void *argument)
{
    struct mask_check *m = argument;
    cpu_set_t set;
    EXPECT(&m->report, sched_getaffinity(0, sizeof set, &set) == 0);
    m->cpus[ditto_replica_id(self)] = CPU_COUNT(&set);
    return DITTO_OK;
}

static void without_helpers_the_leader_may_run_on_all_pus_of_its_replica(void **state)
{
    struct mask_check m = { 0 };
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto_topology *here;
    ditto_strategy *s;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    assert_ok(ditto_topology_destroy(here));
    ditto_strategy_options options = OPTIONS(strategy, .span = DITTO_SPAN_MACHINE);
    options.num_replicas = 2; /* both use all PUs */
    options.helpers = DITTO_SWITCH_OFF;
    await_earlier_threads();
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &s));
    run_all(s, look_at_mask, &m, &m.report);
    assert_int_equal(m.cpus[0], counts.pus);
    assert_int_equal(m.cpus[1], counts.pus);
    assert_int_equal(count_named("ditto-r", false), 1);
    assert_ok(ditto_strategy_destroy(s));
}

struct hooked {
    _Atomic int started, stopped;
};
static void started(uint32_t replica, void *user)
{
    atomic_fetch_add(&((struct hooked *)user)->started, 1);
}
static void stopped(uint32_t replica, void *user)
{
    atomic_fetch_add(&((struct hooked *)user)->stopped, 1);
}

static void hooks_are_called_for_helpers_too(void **state)
{
    struct hooked h = { 0 };
    ditto_strategy *s = make_wide_strategy(
        2, 3, &OPTIONS(strategy, .thread_start = started, .thread_stop = stopped, .thread_user = &h));
    assert_ok(ditto_strategy_destroy(s));
    assert_int_equal(h.started, 5);
    assert_int_equal(h.stopped, 5);
}

/* -- strategies side by side -- */

static void overlapping_strategies_are_described_as_shared_and_disjoint_ones_are_not(void **state)
{
    char text[4096];
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    ditto_topology *here;
    ditto_pu first, last;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    ditto_strategy *one, *other;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    assert_ok(ditto_topology_pu(here, 0, &first));
    assert_ok(ditto_topology_pu(here, counts.pus - 1, &last));
    assert_ok(ditto_topology_destroy(here));
    ditto_placement_options placing = OPTIONS(placement, .pus = &first.number, .num_pus = 1);
    ditto_strategy_options options = OPTIONS(strategy, .placement_options = &placing);
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &one));
    assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &other));
    assert_ok(ditto_strategy_replica_info(one, 0, 0, &info));
    assert_int_equal(info.num_foreign_threads, 1);
    assert_ok(ditto_strategy_describe(one, text, sizeof text, NULL));
    assert_non_null(strstr(text, "PU shared with 1 thread of other strategies"));
    assert_ok(ditto_strategy_destroy(other));
    assert_ok(ditto_strategy_replica_info(one, 0, 0, &info));
    assert_int_equal(info.num_foreign_threads, 0);
    if (counts.pus > 1) {
        placing.pus = &last.number;
        assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &other));
        assert_ok(ditto_strategy_replica_info(one, 0, 0, &info));
        assert_int_equal(info.num_foreign_threads, 0);
        assert_ok(ditto_strategy_describe(one, text, sizeof text, NULL));
        assert_null(strstr(text, "PU shared with"));
        assert_ok(ditto_strategy_describe(other, text, sizeof text, NULL));
        assert_null(strstr(text, "PU shared with"));
        assert_ok(ditto_strategy_destroy(one));
        /* The replica shares a PU with `other` that is not the PU of its leader, with helpers and without. */
        ditto_strategy_options wide = OPTIONS(strategy, .span = DITTO_SPAN_MACHINE);
        for (int helpers = DITTO_SWITCH_ON; helpers <= DITTO_SWITCH_OFF; helpers++) {
            wide.helpers = (ditto_switch)helpers;
            assert_ok(ditto_strategy_create(DITTO_MIRRORED, &wide, &one));
            assert_ok(ditto_strategy_replica_info(one, 0, 0, &info));
            assert_int_equal(info.num_foreign_threads, 1);
            assert_ok(ditto_strategy_replica_info(other, 0, 0, &info));
            assert_int_equal(info.num_foreign_threads, 1);
            if (helpers == DITTO_SWITCH_ON)
                assert_ok(ditto_strategy_destroy(one));
        }
        assert_ok(ditto_strategy_destroy(other));
    }
    assert_ok(ditto_strategy_destroy(one));
}

struct side {
    ditto_strategy *strategy;
    struct report report;
    pthread_t thread;
    float sum;
};

static ditto_status sum_many_times(ditto_replica *self, void *argument)
{
    struct side *side = argument;
    for (int i = 0; i < 2000; i++) {
        float value = (float)(ditto_replica_id(self) + 1);
        DITTO_TRY(ditto_all_reduce(self, &value, &value, 1, DITTO_F32, DITTO_SUM, NULL));
        if (ditto_replica_id(self) == 0)
            side->sum = value;
    }
    return DITTO_OK;
}

static void *run_side(void *argument)
{
    struct side *side = argument;
    for (int run = 0; run < 5; run++)
        if (ditto_strategy_run(side->strategy, sum_many_times, side) != DITTO_OK)
            report_failure(&side->report, __FILE__, __LINE__, "%s", ditto_last_error()->message);
    return NULL;
}

/* Two threads run two strategies at the same time. Both replicas of a strategy are on one PU. The strategies
 * have different PUs if there is more than one. */
static void two_strategies_work_side_by_side(void **state)
{
    struct side side[2] = { 0 };
    ditto_topology *here;
    ditto_topology_counts counts = DITTO_TOPOLOGY_COUNTS_INIT;
    assert_ok(ditto_topology_create(NULL, &here));
    assert_ok(ditto_topology_count(here, &counts));
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t pus[2] = { 0 };
        for (uint32_t k = 0; k < 2; k++) {
            ditto_pu pu;
            assert_ok(ditto_topology_pu(here, counts.pus > 1 ? i * (counts.pus / 2) : 0, &pu));
            pus[k] = pu.number;
        }
        ditto_placement_options placing = OPTIONS(placement, .pus = pus, .num_pus = 2,
                                                  .flags = DITTO_PLACEMENT_SHARE);
        ditto_strategy_options options = OPTIONS(strategy, .placement_options = &placing,
                                                 .caller = i == 0 ? DITTO_CALLER_DEFAULT
                                                                  : DITTO_CALLER_WAITS);
        assert_ok(ditto_strategy_create(DITTO_MIRRORED, &options, &side[i].strategy));
    }
    assert_ok(ditto_topology_destroy(here));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&side[i].thread, NULL, run_side, &side[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(side[i].thread, NULL);
    for (int i = 0; i < 2; i++) {
        ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
        assert_string_equal(side[i].report.first_failure, "");
        assert_true(side[i].sum == 3);
        assert_ok(ditto_strategy_replica_info(side[i].strategy, 0, 0, &info));
        if (counts.pus > 1)
            assert_int_equal(info.num_foreign_threads, 0);
        assert_ok(ditto_strategy_destroy(side[i].strategy));
    }
}

static void without_pinning_threads_are_not_bound(void **state)
{
    struct mask_check m = { 0 };
    cpu_set_t caller_cpus;
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    sched_getaffinity(0, sizeof caller_cpus, &caller_cpus);
    await_earlier_threads();
    ditto_strategy *s = make_wide_strategy(2, 2, &OPTIONS(strategy, .pin = DITTO_PIN_NONE));
    run_all(s, look_at_mask, &m, &m.report);
    assert_int_equal(m.cpus[0], CPU_COUNT(&caller_cpus));
    assert_int_equal(m.cpus[1], CPU_COUNT(&caller_cpus));
    assert_int_equal(count_named("ditto-r", true), CPU_COUNT(&caller_cpus) > 1 ? 3 : 0);
    assert_ok(ditto_strategy_replica_info(s, 1, 1, &info));
    assert_int_equal(info.cpu, -1);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- a helper that does not return -- */

struct stuck {
    _Atomic int has_begun;
    _Atomic bool release;
};

static ditto_status stay(uint32_t device, void *argument)
{
    struct stuck *stuck = argument;
    atomic_store(&stuck->has_begun, 1);
    while (!atomic_load(&stuck->release))
        sleep_ms(1);
    return DITTO_OK;
}

static ditto_status wait_for_stuck_helper(ditto_replica *self, void *argument)
{
    struct stuck *stuck = argument;
    if (ditto_replica_id(self) != 1)
        return DITTO_OK;
    DITTO_TRY(ditto_on_logical_device(self, 1, stay, stuck));
    return ditto_join(self);
}

/* Creates a strategy of two replicas, and runs wait_for_stuck_helper until the time limit passes. If the
 * helper of replica 1 has not begun its function by then, it tries again with another strategy and twice the
 * limit. Returns NULL if this does not succeed. */
static ditto_strategy *run_into_a_stuck_helper(uint32_t devices, ditto_strategy_options *options,
                                               struct stuck *stuck)
{
    for (options->run_timeout_ms = 50; options->run_timeout_ms <= LONGEST_LIMIT_MS;
         options->run_timeout_ms *= 2) {
        ditto_strategy *s = make_wide_strategy(2, devices, options);
        if (ditto_strategy_run(s, wait_for_stuck_helper, stuck) != DITTO_ERR_TIMED_OUT)
            return NULL;
        if (has_begun(s, 1, &stuck->has_begun))
            return s;
        if (!await_all_returned(s) || ditto_strategy_destroy(s) != DITTO_OK)
            return NULL;
    }
    return NULL;
}

/* Runs in a child process, because the strategy stays in memory if its leader never returns. */
static int return_after_the_time_limit(void *unused)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    static struct stuck stuck;
    long before = count_threads();
    ditto_strategy *s = run_into_a_stuck_helper(2, &options, &stuck);
    REQUIRE(s != NULL);
    REQUIRE(strstr(ditto_last_error()->message, "had not returned: 1") != NULL);
    REQUIRE(ditto_strategy_run(s, wait_for_stuck_helper, &stuck) == DITTO_ERR_POISONED);
    atomic_store(&stuck.release, true);
    REQUIRE(await_all_returned(s));
    REQUIRE(ditto_strategy_destroy(s) == DITTO_OK);
    REQUIRE(has_threads(before));
    return 0;
}

static void a_poisoned_strategy_is_destroyed_after_its_stuck_helper_returns(void **state)
{
    assert_int_equal(in_child(return_after_the_time_limit, NULL, 240), 0);
}

/* The strategy is destroyed before the function of the helper returns. When it returns, all threads of its
 * replica end. Runs in a child process, because the poisoned strategy stays in memory. */
static int give_up_on_a_helper(void *unused)
{
    static struct stuck stuck;
    static struct hooked hooked;
    ditto_strategy *s = run_into_a_stuck_helper(
        3, &OPTIONS(strategy, .thread_start = started, .thread_stop = stopped, .thread_user = &hooked),
        &stuck);
    REQUIRE(s != NULL);
    REQUIRE(ditto_strategy_destroy(s) == DITTO_ERR_POISONED);
    REQUIRE(hooked.stopped < hooked.started);
    atomic_store(&stuck.release, true);
    for (int i = 0; i < 120000 && hooked.stopped < hooked.started; i++)
        sleep_ms(1);
    REQUIRE(hooked.stopped == hooked.started);
    return 0;
}

static void threads_of_a_poisoned_strategy_end_when_they_return(void **state)
{
    assert_int_equal(in_child(give_up_on_a_helper, NULL, 240), 0);
}

/* -- forks -- */

static int destroy_in_child(void *argument)
{
    REQUIRE(ditto_strategy_run(argument, look_at_mask, NULL) == DITTO_ERR_FORKED);
    REQUIRE(ditto_strategy_destroy(argument) == DITTO_OK);
    return 0;
}

static void a_child_process_destroys_a_strategy_with_helpers(void **state)
{
    ditto_strategy *s = make_wide_strategy(2, 2, NULL);
    assert_int_equal(in_child(destroy_in_child, s, 60), 0);
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helpers_are_pinned_and_end_with_the_strategy),
        cmocka_unit_test(without_helpers_the_leader_may_run_on_all_pus_of_its_replica),
        cmocka_unit_test(hooks_are_called_for_helpers_too),
        cmocka_unit_test(overlapping_strategies_are_described_as_shared_and_disjoint_ones_are_not),
        cmocka_unit_test(two_strategies_work_side_by_side),
        cmocka_unit_test(without_pinning_threads_are_not_bound),
        cmocka_unit_test(a_poisoned_strategy_is_destroyed_after_its_stuck_helper_returns),
        cmocka_unit_test(threads_of_a_poisoned_strategy_end_when_they_return),
        cmocka_unit_test(a_child_process_destroys_a_strategy_with_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
