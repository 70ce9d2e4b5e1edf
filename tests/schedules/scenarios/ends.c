/* tests/schedules/scenarios/ends.c - objects and strategies that end beside what still uses them: destroying,
 * limits of time, and replicas that never return in time. */
#include "scenarios.h"

#include <ditto/group.h>
#include <ditto/optimizer.h>
#include <ditto/trace.h>

#include <sched.h>
#include <stdatomic.h>

enum { REPLICAS = 3, COUNT = 40 };
static ditto_variable *variable, *stepped;
static ditto_optimizer *optimizer;
static ditto_grouping *row;
static ditto_value *value;

static void three_with_objects_and(uint32_t run_timeout_ms)
{
    static const ditto_mesh_axis axes[] = { { "all", REPLICAS } };
    ditto_strategy_options o = options_of(REPLICAS, FOUR_PUS);
    ditto_variable_options v = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_optimizer_options rule = DITTO_OPTIMIZER_OPTIONS_INIT;
    const ditto_tensor zeros = { .dtype = DITTO_I32, .rank = 1, .shape = { COUNT } };
    o.caller = DITTO_CALLER_WAITS;
    o.run_timeout_ms = run_timeout_ms;
    make_strategy(&o);
    v.aggregation = DITTO_AGGREGATE_SUM;
    EXPECT(ditto_variable_create(strategy, &zeros, &v, &variable) == DITTO_OK);
    EXPECT(ditto_variable_create(strategy, &zeros, &v, &stepped) == DITTO_OK);
    rule.rule = DITTO_RULE_ADD;
    rule.op = DITTO_SUM;
    EXPECT(ditto_optimizer_create(&stepped, 1, &rule, &optimizer) == DITTO_OK);
    EXPECT(ditto_strategy_mesh(strategy, axes, 1, &row) == DITTO_OK);
    EXPECT(ditto_variable_value(variable, &value) == DITTO_OK);
}
static void three_with_objects(void)
{
    three_with_objects_and(0);
}

/* -- an object is destroyed while a run uses it: that is refused, or waits until the run has ended -- */

enum object {
    VARIABLE,
    OPTIMIZER,
    GROUPING,
    STRATEGY,
    VALUE /* a run must not use it afterwards */,
    OBJECTS
};
static bool is_gone[OBJECTS];
static _Atomic uint32_t inside, left;

static ditto_status destroy(enum object which)
{
    switch (which) {
    case VARIABLE:
        return ditto_variable_destroy(variable);
    case VALUE:
        return ditto_value_destroy(value);
    case OPTIMIZER:
        return ditto_optimizer_destroy(optimizer);
    case GROUPING:
        return ditto_grouping_destroy(row);
    default:
        return ditto_strategy_destroy(strategy);
    }
}
static void destroy_rest(void)
{
    for (uint32_t k = 0, first = (uint32_t)random_below(OBJECTS); k < OBJECTS; k++) {
        enum object which = (enum object)((first + k) % OBJECTS);
        EXPECT(is_gone[which] || destroy(which) == DITTO_OK);
    }
    EXPECT(ditto_variable_destroy(stepped) == DITTO_OK);
}

static ditto_status use_all(ditto_replica *self, void *unused)
{
    int32_t ones[COUNT];
    ditto_tensor gradient = { .data = ones, .dtype = DITTO_I32, .rank = 1, .shape = { COUNT } }, component;
    ditto_reduce_options o = DITTO_REDUCE_OPTIONS_INIT;
    ditto_group group;
    (void)unused;
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    atomic_fetch_add_explicit(&inside, 1, memory_order_release);
    EXPECT(ditto_group_of(self, row, &group) == DITTO_OK);
    o.group = &group;
    EXPECT(ditto_barrier(self, &o) == DITTO_OK);
    EXPECT(ditto_assign(self, variable, DITTO_ASSIGN_ADD, ones) == DITTO_OK);
    EXPECT(ditto_local(self, value, &component) == DITTO_OK);
    EXPECT(*(const int32_t *)component.data == REPLICAS);
    EXPECT(ditto_apply(self, optimizer, &gradient, NULL) == DITTO_OK);
    EXPECT(ditto_barrier(self, &o) == DITTO_OK);
    atomic_fetch_add_explicit(&left, 1, memory_order_relaxed);
    return DITTO_OK;
}
static void *run_use_all(void *unused)
{
    (void)unused;
    run(use_all, NULL);
    return NULL;
}
static void destroyed_beside_a_run(void)
{
    enum object which = (enum object)random_below(VALUE);
    pthread_t other = thread_of(run_use_all, NULL);
    ditto_status status;
    while (atomic_load_explicit(&inside, memory_order_acquire) == 0)
        sched_yield();
    while ((status = destroy(which)) == DITTO_ERR_BUSY)
        sched_yield();
    EXPECT(status == DITTO_OK && left == REPLICAS);
    is_gone[which] = true;
    join(other);
    destroy_rest();
    W->outcomes |= 1u << which;
}

/* A variable is destroyed beside a run that does not use it. */
static void *run_meet(void *unused)
{
    (void)unused;
    run(meet, NULL);
    return NULL;
}
static void destroyed_while_used(void)
{
    pthread_t other = thread_of(run_meet, NULL);
    ditto_status status = ditto_value_destroy(value);
    while (status == DITTO_OK && (status = ditto_variable_destroy(variable)) == DITTO_ERR_BUSY)
        sched_yield();
    EXPECT(status == DITTO_OK);
    is_gone[VALUE] = is_gone[VARIABLE] = true;
    join(other);
    destroy_rest();
}

/* Other threads look at the strategy, and record what it does. */
static void *look(void *unused)
{
    ditto_strategy_properties s = DITTO_STRATEGY_PROPERTIES_INIT;
    ditto_variable_properties v = DITTO_VARIABLE_PROPERTIES_INIT;
    char text[600];
    size_t length;
    (void)unused;
    EXPECT(strstr(ditto_strategy_diagnose(strategy), "replica") != NULL);
    EXPECT(ditto_strategy_info(strategy, &s) == DITTO_OK);
    EXPECT(ditto_variable_info(variable, &v) == DITTO_OK);
    EXPECT(ditto_variable_describe(variable, text, sizeof text, &length) == DITTO_OK);
    return NULL;
}
static void *record(void *unused)
{
    ditto_operation_counters c = DITTO_OPERATION_COUNTERS_INIT;
    (void)unused;
    EXPECT(ditto_strategy_trace_start(strategy, NULL) == DITTO_OK);
    EXPECT(ditto_strategy_trace_stop(strategy) == DITTO_OK);
    ditto_status status = ditto_strategy_operation_stats(strategy, 0, &c);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_NOT_FOUND);
    return NULL;
}
static void watched_strategy(void)
{
    pthread_t looks = thread_of(look, NULL), records = thread_of(record, NULL);
    run(use_all, NULL);
    join(looks);
    join(records);
    destroy_rest();
}

/* -- replicas that return late, or after everything has been destroyed -- */

static _Atomic bool let_go;
static _Atomic uint32_t still_inside;
static void three_with_objects_and_a_limit(void)
{
    three_with_objects_and(5);
}
static ditto_status be_late(ditto_replica *self, void *unused)
{
    (void)unused;
    if (ditto_replica_id(self) != 1)
        return ditto_barrier(self, NULL);
    atomic_store_explicit(&still_inside, 1, memory_order_relaxed);
    while (!atomic_load_explicit(&let_go, memory_order_acquire))
        sleep_for(10000000);
    ditto_status status = ditto_barrier(self, NULL); /* perhaps just before the limit */
    atomic_store_explicit(&still_inside, 0, memory_order_release);
    return status;
}
static void *let_it_go(void *unused)
{
    (void)unused;
    sleep_for(1 + random_below(1000000000));
    atomic_store_explicit(&let_go, true, memory_order_release);
    return NULL;
}
static void *do_nothing(void *unused)
{
    return unused;
}
static void *interrupt_late(void *unused)
{
    (void)unused;
    sleep_for(1000000);
    EXPECT(ditto_strategy_interrupt(strategy) == DITTO_OK);
    return NULL;
}
/* Destroys all, while the late replica may still be in its function, or in the library. */
static void end_beside_late_replica(bool interrupts)
{
    pthread_t other = thread_of(let_it_go, NULL),
              third = thread_of(interrupts ? interrupt_late : do_nothing, NULL);
    ditto_status status = ditto_strategy_run(strategy, be_late, NULL);
    /* What ends the run may come before it, or after it. */
    EXPECT(status == (interrupts ? DITTO_ERR_CANCELLED : DITTO_ERR_TIMED_OUT) || status == DITTO_OK);
    join(third);
    EXPECT(ditto_optimizer_destroy(optimizer) == DITTO_OK);
    EXPECT(ditto_value_destroy(value) == DITTO_OK);
    EXPECT(ditto_variable_destroy(variable) == DITTO_OK);
    if (random_below(2) == 0) {
        is_gone[GROUPING] = true;
        EXPECT(ditto_grouping_destroy(row) == DITTO_OK);
    }
    ditto_status end = ditto_strategy_destroy(strategy);
    EXPECT(end == DITTO_OK || end == DITTO_ERR_POISONED);
    EXPECT(ditto_variable_destroy(stepped) == DITTO_OK); /* after its strategy */
    EXPECT(is_gone[GROUPING] || ditto_grouping_destroy(row) == DITTO_OK);
    W->outcomes |= end == DITTO_OK ? 1 : 2;
    join(other);
    while (atomic_load_explicit(&still_inside, memory_order_acquire) != 0)
        sleep_for(1000000);
    sleep_long(); /* the thread of the late replica ends, and uses nothing that is gone */
}
static void late_replica(void)
{
    end_beside_late_replica(false);
}
static void interrupted_late_replica(void)
{
    end_beside_late_replica(true);
}

/* A limit of one call: the run ends with its error, and the next run works. */
static ditto_status meet_in_time(ditto_replica *self, void *unused)
{
    ditto_reduce_options o = DITTO_REDUCE_OPTIONS_INIT;
    (void)unused;
    o.timeout_ms = 3;
    if (ditto_replica_id(self) == 1)
        sleep_for(1 + random_below(6000000));
    return ditto_barrier(self, &o);
}
static void limit_of_a_call(void)
{
    ditto_status status = ditto_strategy_run(strategy, meet_in_time, NULL);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_TIMED_OUT);
    W->outcomes |= status == DITTO_OK ? 1 : 2;
    run(meet, NULL);
    destroy_rest();
}

/* -- the strategy of threads that are in no other -- */

static void *use_default(void *unused)
{
    int32_t x = 7;
    ditto_replica *self = ditto_get_replica_context();
    (void)unused;
    EXPECT(self != NULL && ditto_num_replicas(self) == 1);
    EXPECT(ditto_all_reduce(self, &x, &x, 1, DITTO_I32, DITTO_SUM, NULL) == DITTO_OK && x == 7);
    EXPECT(ditto_get_strategy() != NULL);
    return NULL;
}
static void default_strategy(void)
{
    pthread_t a = thread_of(use_default, NULL), b = thread_of(use_default, NULL);
    use_default(NULL);
    join(a);
    join(b);
}

const struct scenario end_scenarios[] = {
    { .name = "destroyed_beside_a_run",
      .setup = three_with_objects,
      .body = destroyed_beside_a_run,
      .outcomes = (1 << VALUE) - 1 },
    { .name = "destroyed_while_used", .setup = three_with_objects, .body = destroyed_while_used },
    { .name = "watched_strategy", .setup = three_with_objects, .body = watched_strategy },
    { .name = "late_replica",
      .setup = three_with_objects_and_a_limit,
      .body = late_replica,
      .longest_ms = 20,
      .outcomes = 3 },
    { .name = "interrupted_late_replica",
      .setup = three_with_objects,
      .body = interrupted_late_replica,
      .longest_ms = 20,
      .outcomes = 3 },
    { .name = "limit_of_a_call",
      .setup = three_with_objects,
      .body = limit_of_a_call,
      .longest_ms = 10,
      .outcomes = 3 },
    { .name = "default_strategy", .body = default_strategy },
    { 0 },
};
