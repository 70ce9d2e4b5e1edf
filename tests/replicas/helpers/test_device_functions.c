/* tests/replicas/helpers/test_device_functions.c - the claims of include/ditto/device.h about functions that
 * devices run: their order, failures, and leaders that do not wait for them. */
#include "fault/late.h"
#include "support/support.h"

#include <sched.h>
#include <stdatomic.h>

/* -- the order of functions, alone and with loops, and more functions than a ring holds -- */

struct order {
    struct report report;

    /* For each device, the number of the item that must come next. */
    uint32_t next[64];

    _Atomic uint32_t wrong, ran;
};
struct item {
    struct order *order;
    uint32_t number;
};

static ditto_status in_order(uint32_t device, void *argument)
{
    struct item *item = argument;
    if (item->order->next[device]++ != item->number)
        atomic_fetch_add(&item->order->wrong, 1);
    atomic_fetch_add(&item->order->ran, 1);
    return DITTO_OK;
}

static ditto_status do_nothing(uint32_t device, void *argument)
{
    return DITTO_OK;
}

static ditto_status after_all_functions(size_t begin, size_t end, uint32_t device, void *argument)
{
    struct order *o = argument;
    if (o->next[device] != 300) /* the functions of a device run before its part of a loop */
        atomic_fetch_add(&o->wrong, 1);
    return DITTO_OK;
}

static ditto_status post_many(ditto_replica *self, void *argument)
{
    struct order *o = argument;
    static struct item items[300];
    uint32_t devices = ditto_num_logical_devices(self);
    for (uint32_t i = 0; i < 300; i++) {
        items[i] = (struct item){ o, i };
        for (uint32_t d = 0; d < devices; d++)
            EXPECT(&o->report, ditto_on_logical_device(self, d, in_order, &items[i]) == DITTO_OK);
    }
    EXPECT(&o->report, ditto_parallel_for(self, after_all_functions, o, 0, devices, 1,
                                          DITTO_SCHEDULE_STATIC) == DITTO_OK);
    /* The loop has waited for all functions. */
    EXPECT(&o->report, o->wrong == 0 && o->ran == 300 * devices);
    EXPECT(&o->report, ditto_join(self) == DITTO_OK);
    memset(o->next, 0, sizeof o->next);
    for (uint32_t d = 0; d < devices; d++) /* the end of post_many waits for these */
        EXPECT(&o->report, ditto_on_logical_device(self, d, in_order, &items[0]) == DITTO_OK);
    return DITTO_OK;
}

static void functions_of_a_device_run_in_order_and_before_loops(void **state)
{
    for (uint32_t devices = 1; devices <= 8; devices += devices < 3 ? 1 : 5) {
        struct order o = { 0 };
        ditto_strategy *s = make_wide_strategy(1, devices, NULL);
        run_all(s, post_many, &o, &o.report);
        assert_int_equal(o.wrong, 0);
        assert_int_equal(o.ran, 301 * devices);
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- a leader that fails while its devices work -- */

struct leaving {
    struct report report;
    _Atomic int begun, ended, ran;
    _Atomic bool stop_noticed;
    ditto_status other_status;
};

/* Returns after the other replica has noticed the stop. If the stop began only after this function, it would
 * wait for two minutes, and fail with code 3. */
static ditto_status until_released(uint32_t device, void *argument)
{
    struct leaving *l = argument;
    atomic_fetch_add(&l->begun, 1);
    for (int i = 0; i < 120000 && !atomic_load(&l->stop_noticed); i++)
        sleep_ms(1);
    atomic_fetch_add(&l->ended, 1);
    return atomic_load(&l->stop_noticed) ? ditto_fail(NULL, 2, "later")
                                         : ditto_fail(NULL, 3, "no stop was noticed");
}

static ditto_status count_runs(uint32_t device, void *argument)
{
    struct leaving *l = argument;
    atomic_fetch_add(&l->ran, 1);
    return DITTO_OK;
}

static ditto_status leave_without_joining(ditto_replica *self, void *argument)
{
    struct leaving *l = argument;
    if (ditto_replica_id(self) == 0) {
        l->other_status = ditto_barrier(self, NULL);
        atomic_store(&l->stop_noticed, true);
        return l->other_status;
    }
    DITTO_TRY(ditto_on_logical_device(self, 1, until_released, l));
    while (atomic_load(&l->begun) == 0)
        sched_yield();
    for (int i = 0; i < 20; i++) /* these have not begun when the leader fails, so they never run */
        DITTO_TRY(ditto_on_logical_device(self, 1, count_runs, l));
    return ditto_fail(self, 1, "the leader fails first");
}

static void a_failing_leader_reports_at_once_and_waits_for_functions_that_have_begun(void **state)
{
    struct leaving l = { 0 };
    ditto_strategy *s = make_wide_strategy(2, 2, NULL);
    assert_status(ditto_strategy_run(s, leave_without_joining, &l), DITTO_ERR_USER);
    assert_int_equal(ditto_last_error()->user_code, 1);
    assert_int_equal(l.other_status, DITTO_ERR_PEER_STOPPED);
    assert_int_equal(l.ended, 1);
    assert_int_equal(l.ran, 0);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- placing a tensor on a device does not report errors of the user's functions -- */

static ditto_status fail_late(uint32_t device, void *may_fail)
{
    for (int i = 0; i < 120000 && !atomic_load((_Atomic bool *)may_fail); i++)
        sleep_ms(1);
    return ditto_fail(NULL, 9, "the user's own");
}

static ditto_status assign_beside_a_failure(ditto_replica *self, void *argument)
{
    static _Atomic bool may_fail;
    struct report *report = argument;
    float values[4] = { 1, 2, 3, 4 };
    ditto_tensor placed, t = { .data = values, .dtype = DITTO_F32, .rank = 1, .shape = { 4 } };
    EXPECT(report, ditto_on_logical_device(self, 2, fail_late, &may_fail) == DITTO_OK);
    /* The function of device 2 does not affect device 1. */
    EXPECT(report, ditto_assign_to_logical_device(self, &t, 1, &placed) == DITTO_OK);
    EXPECT(report, memcmp(placed.data, values, sizeof values) == 0);
    EXPECT(report, ditto_free(self, placed.data) == DITTO_OK);
    atomic_store(&may_fail, true);
    ditto_status status = ditto_join(self);
    EXPECT(report, status == DITTO_ERR_USER && ditto_last_error()->user_code == 9);
    EXPECT(report, strcmp(ditto_last_error()->function, "ditto_fail") == 0);
    /* The run is stopped, so functions that would never run are refused. */
    EXPECT(report, ditto_on_logical_device(self, 1, fail_late, &may_fail) == DITTO_ERR_PEER_STOPPED);
    EXPECT(report, ditto_assign_to_logical_device(self, &t, 1, &placed) == DITTO_ERR_PEER_STOPPED);
    return status;
}

/* Here the function of device 1 fails before the tensor is copied there. The run is stopped then, so nothing
 * is copied, but the call returns no error of the function. */
static ditto_status assign_after_a_failure(ditto_replica *self, void *argument)
{
    static _Atomic bool may_fail = true;
    struct report *report = argument;
    float value = 1;
    ditto_tensor placed = { .data = NULL }, t = { .data = &value, .dtype = DITTO_F32 };
    EXPECT(report, ditto_on_logical_device(self, 1, fail_late, &may_fail) == DITTO_OK);
    EXPECT(report, ditto_assign_to_logical_device(self, &t, 1, &placed) == DITTO_ERR_PEER_STOPPED);
    EXPECT(report, placed.data == NULL);
    ditto_status status = ditto_join(self);
    EXPECT(report, status == DITTO_ERR_USER && ditto_last_error()->user_code == 9);
    return status;
}

static void placing_a_tensor_leaves_errors_of_functions_to_join(void **state)
{
    static const ditto_replica_fn functions[] = { assign_beside_a_failure, assign_after_a_failure };
    ditto_strategy *s = make_wide_strategy(1, 3, NULL);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        struct report report = { 0 };
        ditto_status status = ditto_strategy_run(s, functions[i], &report);
        assert_string_equal(report.first_failure, "");
        assert_int_equal(status, DITTO_ERR_USER);
    }
    assert_ok(ditto_strategy_destroy(s));
}

/* -- a fork inside a run -- */

static int use_devices_in_child(void *argument)
{
    ditto_replica *self = argument;
    struct order order = { 0 };
    REQUIRE(ditto_parallel_for(self, after_all_functions, &order, 0, 100, 1, DITTO_SCHEDULE_STATIC) ==
            DITTO_ERR_FORKED);
    REQUIRE(ditto_on_logical_device(self, 1, do_nothing, NULL) == DITTO_ERR_FORKED);
    REQUIRE(ditto_join(self) == DITTO_ERR_FORKED);
    float value = 1;
    ditto_tensor out[2], t = { .data = &value, .dtype = DITTO_F32 };
    REQUIRE(ditto_replicate(self, &t, out) == DITTO_ERR_FORKED);
    return 0;
}

static ditto_status fork_inside(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    EXPECT(report, ditto_on_logical_device(self, 1, do_nothing, NULL) == DITTO_OK);
    EXPECT(report, in_child(use_devices_in_child, self, 60) == 0);
    return ditto_join(self);
}

static void a_child_that_forked_inside_a_run_gets_FORKED(void **state)
{
    struct report report = { 0 };
    ditto_strategy *s = make_wide_strategy(1, 2, NULL);
    run_all(s, fork_inside, &report, &report);
    assert_ok(ditto_strategy_destroy(s));
}

/* -- a helper that does not return -- */

static ditto_status wait_as_replica_0(ditto_replica *self, void *argument)
{
    struct leaving *l = argument;
    if (ditto_replica_id(self) == 1) {
        l->other_status = ditto_barrier(self, NULL);
        atomic_store(&l->stop_noticed, true);
        return l->other_status;
    }
    DITTO_TRY(ditto_on_logical_device(self, 1, until_released, l));
    return ditto_join(self);
}

/* The caller works as replica 0, so the run cannot return before the function on its helper has returned. But
 * when the time limit has passed, the other replicas are stopped. */
static void a_caller_that_waits_too_long_for_its_helper_stops_the_run(void **state)
{
    struct leaving l = { 0 };
    ditto_strategy *s = make_wide_strategy(2, 2, &OPTIONS(strategy, .run_timeout_ms = 50));
    assert_status(ditto_strategy_run(s, wait_as_replica_0, &l), DITTO_ERR_TIMED_OUT);
    assert_message("logical device 1 of replica 0 had not returned");
    assert_true(await_all_returned(s)); /* on a busy machine the run may give up on replica 1 */
    assert_int_equal(l.other_status, DITTO_ERR_PEER_STOPPED);
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_a_device_run_in_order_and_before_loops),
        cmocka_unit_test(a_caller_that_waits_too_long_for_its_helper_stops_the_run),
        cmocka_unit_test(a_failing_leader_reports_at_once_and_waits_for_functions_that_have_begun),
        cmocka_unit_test(placing_a_tensor_leaves_errors_of_functions_to_join),
        cmocka_unit_test(a_child_that_forked_inside_a_run_gets_FORKED),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
