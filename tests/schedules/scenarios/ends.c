/* tests/schedules/scenarios/ends.c - objects and strategies that end while others use them: destroying,
 * limits of time, and replicas that return late. */
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

/* A run must not use the value after it was destroyed, so that comes last. */
enum object { VARIABLE, OPTIMIZER, GROUPING, STRATEGY, VALUE, OBJECTS };
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

/* Calls on objects go on while their strategy is destroyed. They make that busy, or find that it has
 * ended. */
enum { LOOKS = 4 };
static void *read_until_the_end(void *unused)
{
    ditto_status status = DITTO_OK;
    int32_t found[COUNT];
    (void)unused;
    for (int k = 0; k < LOOKS && status == DITTO_OK; k++)
        status = ditto_variable_read(variable, found, sizeof found);
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CONTEXT);
    return NULL;
}
static void *look_until_the_end(void *unused)
{
    ditto_status status = DITTO_OK;
    (void)unused;
    for (int k = 0; k < LOOKS && status == DITTO_OK; k++) {
        ditto_optimizer_properties o = DITTO_OPTIMIZER_PROPERTIES_INIT;
        ditto_value_properties v = DITTO_VALUE_PROPERTIES_INIT;
        status = ditto_optimizer_info(optimizer, &o);
        if (status == DITTO_OK)
            status = ditto_value_info(value, &v);
    }
    EXPECT(status == DITTO_OK || status == DITTO_ERR_CONTEXT);
    return NULL;
}
static void used_until_the_end(void)
{
    pthread_t a = thread_of(read_until_the_end, NULL), b = thread_of(look_until_the_end, NULL);
    ditto_status status;
    while ((status = ditto_strategy_destroy(strategy)) == DITTO_ERR_BUSY)
        sched_yield();
    EXPECT(status == DITTO_OK);
    is_gone[STRATEGY] = true;
    join(a);
    join(b);
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

static void three_with_objects_and_a_limit(void)
{
    three_with_objects_and(5);
}
static ditto_status be_late(ditto_replica *self, void *unused)
{
    int32_t zeros[COUNT] = { 0 };
    ditto_status status;
    (void)unused;
    if (ditto_replica_id(self) != 1)
        return ditto_barrier(self, NULL);
    late_enter();
    late_wait();
    status = ditto_barrier(self, NULL); /* perhaps just before the limit */
    if (status != DITTO_OK)             /* its variable may be destroyed meanwhile */
        EXPECT(ditto_assign(self, stepped, DITTO_ASSIGN_ADD, zeros) != DITTO_OK);
    late_leave();
    return status;
}
/* Replica 1, which has a thread of its own, and all others pause for a function that is late. */
static ditto_status do_late(ditto_strategy *s, ditto_value *const *arguments, uint32_t num_arguments,
                            void *user, ditto_value **result)
{
    (void)s, (void)arguments, (void)num_arguments, (void)user, (void)result;
    late_enter();
    late_wait();
    late_leave();
    return DITTO_OK;
}
static ditto_status merge_late(ditto_replica *self, void *unused)
{
    (void)unused;
    return ditto_merge_call(self, do_late, NULL, NULL, 0, NULL);
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
static void end_beside_late_replica(ditto_replica_fn function, bool interrupts)
{
    pthread_t lets_go = let_go_within(1000),
              other = thread_of(interrupts ? interrupt_late : do_nothing, NULL);
    ditto_status status = ditto_strategy_run(strategy, function, NULL);
    /* The limit or the interrupt may come before the run, or after it. */
    EXPECT(status == (interrupts ? DITTO_ERR_CANCELLED : DITTO_ERR_TIMED_OUT) || status == DITTO_OK);
    join(other);
    EXPECT(ditto_optimizer_destroy(optimizer) == DITTO_OK);
    EXPECT(ditto_value_destroy(value) == DITTO_OK);
    EXPECT(ditto_variable_destroy(variable) == DITTO_OK);
    is_gone[GROUPING] = random_below(2) == 0;
    EXPECT(!is_gone[GROUPING] || ditto_grouping_destroy(row) == DITTO_OK);
    end_perhaps_poisoned();
    EXPECT(ditto_variable_destroy(stepped) == DITTO_OK); /* after its strategy */
    EXPECT(is_gone[GROUPING] || ditto_grouping_destroy(row) == DITTO_OK);
    await_late(lets_go);
}
static void late_replica(void)
{
    end_beside_late_replica(be_late, false);
}
static void interrupted_late_replica(void)
{
    end_beside_late_replica(be_late, true);
}
static void late_merge(void)
{
    end_beside_late_replica(merge_late, false);
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
    { .name = "used_until_the_end", .setup = three_with_objects, .body = used_until_the_end },
    { .name = "watched_strategy", .setup = three_with_objects, .body = watched_strategy },
    { .name = "late_replica",
      .setup = three_with_objects_and_a_limit,
      .body = late_replica,
      .longest_ms = 20,
      .outcomes = 3 },
    { .name = "late_merge",
      .setup = three_with_objects_and_a_limit,
      .body = late_merge,
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
