/* tests/semantics/copies/test_copies.c - docs/semantics.md, rule 8.0: which copies variables have, and when
 * shared copies are split. */
#include "support/as_hosts.h"
#include "semantics/copies/split_variables.h"

#include <pthread.h>
#include <sys/resource.h>

/* -- when copies are split -- */

static void rule_8_0_copies_without_aggregation_are_shared_until_they_are_split(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *s = make_on_two_nodes(replica_counts[k]);
        uint32_t n = num_local(s), first_replica = first_local(s);
        ditto_variable *v = make(s, 5, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
        double ten = 10;
        char text[300], expected[40];
        ditto_tensor plain = { .data = &ten, .dtype = DITTO_F64 };
        ditto_value *ids = ids_from_1(s), *one;
        assert_ok(ditto_strategy_value(s, &plain, &one));
        assert_int_equal(count_copies(s, v), nodes_of(s));
        /* The argument is equal for all replicas, so components cannot differ and nothing is split. */
        assert_ok(update_with(v, one));
        assert_int_equal(calls, nodes_of(s));
        assert_int_equal(count_copies(s, v), nodes_of(s));
        const double *first = component(v, first_replica);
        uint64_t before = properties_of(v).generation;
        assert_ok(update_with(v, ids));
        assert_int_equal(calls, n);
        assert_int_equal(count_copies(s, v), n);
        assert_ptr_equal(component(v, first_replica), first); /* the owner of a copy keeps it */
        assert_int_equal(properties_of(v).generation, before + n);
        expect_components(s, v, 16, 1);
        assert_ok(ditto_variable_describe(v, text, sizeof text, NULL));
        snprintf(expected, sizeof expected, ", %u cop%s on NUMA node", n, n == 1 ? "y" : "ies");
        assert_non_null(strstr(text, expected));
        assert_ok(update_with(v, one)); /* is called once for each copy, split or not */
        assert_int_equal(calls, n);
        expect_components(s, v, 26, 1);
        double value[COUNT];
        assert_ok(ditto_variable_read(v, value, sizeof value));
        for (int i = 0; i < COUNT; i++) {
            assert_true(value[i] == 26 + first_replica); /* the first component of this host */
            value[i] = 26;
        }
        assert_ok(
            ditto_variable_assign(v, DITTO_ASSIGN, value, sizeof value)); /* makes all components equal */
        expect_components(s, v, 26, 0);
        assert_int_equal(count_copies(s, v), n); /* the copies stay split */
        assert_ok(ditto_value_destroy(ids));
        assert_ok(ditto_value_destroy(one));
        assert_ok(ditto_variable_destroy(v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

struct inside {
    struct report report;
    ditto_variable *v;
    const void *at[64]; /* the copies that the function of the update got */
};

static ditto_status note_and_add(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                 void *user, ditto_tensor *result)
{
    struct inside *in = user;
    in->at[context_here().update_replica] = copy->data;
    return add_argument(copy, arguments, count, NULL, result);
}

static ditto_status give_42(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                            void *user, ditto_value **result)
{
    static double number = 42;
    return ditto_strategy_value(strategy, &(ditto_tensor){ .data = &number, .dtype = DITTO_F64 }, result);
}

static ditto_status update_twice(ditto_replica *self, void *argument)
{
    struct inside *in = argument;
    double mine = ditto_replica_id(self) + 1.0;
    ditto_tensor t = { .data = &mine, .dtype = DITTO_F64 }, merged_tensor;
    const ditto_value *merged;
    const void *own;
    DITTO_TRY(ditto_merge_call(self, give_42, NULL, NULL, 0, &merged));
    for (int step = 1; step <= 2; step++) {
        uint64_t before = generation_of(in->v);
        DITTO_TRY(ditto_update(self, in->v, note_and_add, in, &t, 1, NULL));
        DITTO_TRY(ditto_read(self, in->v, &own));
        EXPECT(&in->report, ((const double *)own)[COUNT - 1] == 5 + step * mine);
        EXPECT(&in->report, in->at[ditto_replica_id(self)] == own);
        EXPECT(&in->report, generation_of(in->v) == before + 1);
    }
    /* A split does not release the result of the last merge_call. */
    DITTO_TRY(ditto_local(self, merged, &merged_tensor));
    EXPECT(&in->report, *(const double *)merged_tensor.data == 42);
    return DITTO_OK;
}

static void rule_8_0_an_update_by_all_replicas_splits_before_its_function_is_called(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        ditto_strategy *s = make_on_two_nodes(replica_counts[k]);
        uint32_t n = num_local(s);
        struct inside in = { .v = make(s, 5, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT) };
        calls = 0;
        run_all(s, update_twice, &in, &in.report);
        assert_int_equal(calls, 2 * n);
        assert_int_equal(count_copies(s, in.v), n);
        expect_components(s, in.v, 7, 2);
        assert_ok(ditto_variable_destroy(in.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static ditto_status update_another(ditto_replica *self, void *argument)
{
    ditto_variable **v = argument;
    double one = 1;
    return ditto_update(self, v[ditto_replica_id(self) % 2], add_argument, NULL,
                        &(ditto_tensor){ .data = &one, .dtype = DITTO_F64 }, 1, NULL);
}

static void updates_of_different_variables_are_refused_as_diverged(void **state)
{
    ditto_strategy *s = make_on_two_nodes(2 * test_hosts());
    ditto_variable *v[2] = { make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT),
                             make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT) };
    assert_status(ditto_strategy_run(s, update_another, v), DITTO_ERR_DIVERGED);
    for (int i = 0; i < 2; i++) {
        expect_components(s, v[i], 0, 0);
        assert_ok(ditto_variable_destroy(v[i]));
    }
    assert_ok(ditto_strategy_destroy(s));
}

static void update_with_components_that_differ(uint32_t n)
{
    ditto_strategy *s = make_on_two_nodes(n);
    ditto_variable *from = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *to = make(s, 100, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *sums = make(s, 100, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    ditto_value *value;
    assert_ok(ditto_variable_value(from, &value));
    assert_ok(update_with(to, value)); /* the components of `from` are still equal */
    assert_int_equal(calls, nodes_of(s));
    split(s, from);
    assert_ok(update_with(to, value));
    assert_int_equal(count_copies(s, to), num_local(s));
    expect_components(s, to, 101, 1);
    /* Two replicas share a copy of `sums`, but their arguments differ. */
    assert_status(update_with(sums, value), DITTO_ERR_INVALID);
    assert_message("it aggregates");
    assert_int_equal(calls, 0);
    expect_components(s, sums, 100, 0);
    assert_ok(ditto_value_destroy(value));
    ditto_variable *all[] = { from, to, sums };
    for (int i = 0; i < 3; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_0_an_argument_whose_components_differ_splits_the_updated_variable(void **state)
{
    update_with_components_that_differ(4 * test_hosts());
}

/* Over several hosts, there are hosts with one replica. */
static void rule_8_0_components_may_differ_where_hosts_have_one_replica(void **state)
{
    update_with_components_that_differ(3);
}

static void rule_8_0_a_colocated_variable_is_split_independently(void **state)
{
    ditto_strategy *s = make_on_two_nodes(4 * test_hosts());
    ditto_variable *v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT), *with_it, *counter, *later;
    ditto_tensor spec = spec_of(v);
    ditto_variable_options options = OPTIONS(variable, .colocate_with = v);
    assert_ok(ditto_variable_create(s, &spec, &options, &with_it));
    options.synchronization = DITTO_ON_READ; /* has one copy for each replica, on the same nodes */
    assert_ok(ditto_variable_create(s, &spec, &options, &counter));
    options.synchronization = DITTO_ON_WRITE;
    assert_int_equal(count_copies(s, with_it), 2);
    assert_int_equal(count_copies(s, counter), 4);
    split(s, v);
    assert_int_equal(count_copies(s, v), 4);
    assert_int_equal(count_copies(s, with_it), 2);
    split(s, with_it);
    assert_int_equal(count_copies(s, with_it), 4);
    expect_components(s, with_it, 1, 1);
    assert_ok(ditto_variable_create(s, &spec, &options, &later)); /* has copies like `v`, which is split */
    assert_int_equal(count_copies(s, later), 4);
    ditto_variable *all[] = { v, with_it, counter, later };
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_status update_here(ditto_replica *self, void *argument)
{
    struct inside *in = argument;
    double mine = ditto_replica_id(self) + 1.0;
    ditto_tensor t = { .data = &mine, .dtype = DITTO_F64 };
    EXPECT(&in->report, ditto_update(self, in->v, add_argument, NULL, &t, 1, NULL) == DITTO_ERR_INVALID);
    EXPECT(&in->report, ditto_barrier(self, NULL) == DITTO_OK); /* the run continues */
    return DITTO_OK;
}

static void expect_no_split(ditto_strategy *s, ditto_variable *v, const char *why)
{
    struct inside in = { .v = v };
    ditto_value *ids = ids_from_1(s);
    assert_status(update_with(v, ids), DITTO_ERR_INVALID);
    assert_message(why);
    run_all(s, update_here, &in, &in.report);
    assert_int_equal(calls, 0);
    assert_ok(ditto_value_destroy(ids));
}

static void never_split(uint32_t n)
{
    ditto_strategy *s = make_on_two_nodes(n), *central;
    ditto_variable *v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT), *sharded, *one, *steps;
    ditto_tensor spec = spec_of(v);
    ditto_optimizer *optimizer;
    ditto_variable_options options = OPTIONS(
        variable, .partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 3 });
    assert_ok(ditto_variable_create(s, &spec, &options, &sharded));
    expect_no_split(s, sharded, "cut into shards");
    assert_ok(ditto_optimizer_create(&v, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADD), &optimizer));
    steps = iterations_of(optimizer);
    expect_no_split(s, steps, "it belongs to an optimizer");
    assert_ok(ditto_optimizer_destroy(optimizer));
    assert_ok(ditto_strategy_create(DITTO_CENTRAL_STORAGE, &OPTIONS(strategy, .num_replicas = 3), &central));
    one = make(central, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    expect_no_split(central, one, "central storage");
    expect_components(central, one, 0, 0);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_variable_destroy(sharded));
    assert_ok(ditto_variable_destroy(one));
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(central));
}

static void rule_8_0_sharded_and_central_variables_and_slots_are_never_split(void **state)
{
    never_split(3 * test_hosts());
}

/* Over several hosts, there are hosts with one replica. */
static void rule_8_0_they_are_not_split_where_a_host_has_one_replica(void **state)
{
    never_split(3);
}

/* -- no memory -- */

#define LARGE ((size_t)96 << 20) /* bytes */

struct large {
    ditto_variable *v;
    _Atomic uint32_t failed, called;
};

static ditto_status count_call(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                               void *user, ditto_tensor *result)
{
    ((struct large *)user)->called++;
    *(char *)copy->data = (char)context_here().update_replica;
    return DITTO_OK;
}

static ditto_status update_large(ditto_replica *self, void *argument)
{
    struct large *l = argument;
    uint64_t before = generation_of(l->v);
    ditto_status status = ditto_update(self, l->v, count_call, l, NULL, 0, NULL);
    if (status == DITTO_ERR_NO_MEMORY && generation_of(l->v) == before)
        l->failed++;
    return ditto_barrier(self, NULL); /* the run continues */
}

/* Three replicas share a copy. There is memory for one more copy, but not for two. */
static int split_without_memory(void *unused)
{
    ditto_tensor spec = { .dtype = DITTO_U8, .rank = 1, .shape = { LARGE } };
    ditto_strategy *s;
    struct large l = { .failed = 0 };
    struct rlimit limit;
    ditto_value *each;
    unsigned char byte[3] = { 0 };
    ditto_tensor t[3];
    const void *component[3];
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .num_replicas = 3), &s) == DITTO_OK);
    REQUIRE(ditto_variable_create(s, &spec, NULL, &l.v) == DITTO_OK);
    for (int i = 0; i < 3; i++)
        t[i] = (ditto_tensor){ .data = &byte[i], .dtype = DITTO_U8 };
    REQUIRE(ditto_strategy_value_from_tensors(s, t, 1, &each) == DITTO_OK);
    REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
    rlim_t all = limit.rlim_cur;
    limit.rlim_cur = mapped_bytes() + LARGE + LARGE / 2;
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    /* Each round frees the copy that could be allocated, or the next round would have less memory. */
    for (int round = 0; round < 3; round++) {
        uint64_t before = properties_of(l.v).generation;
        REQUIRE(ditto_variable_update(l.v, count_call, &l, (const ditto_value *[]){ each }, 1, NULL, NULL) ==
                DITTO_ERR_NO_MEMORY);
        REQUIRE(properties_of(l.v).generation == before);
        l.failed = 0;
        REQUIRE(ditto_strategy_run(s, update_large, &l) == DITTO_OK);
        REQUIRE(l.failed == 3); /* the call fails on all replicas */
    }
    REQUIRE(l.called == 0);
    for (uint32_t i = 0; i < 3; i++)
        REQUIRE(component_of(l.v, i, &component[i]) == DITTO_OK && component[i] == component[0]);
    limit.rlim_cur = all;
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    REQUIRE(ditto_strategy_run(s, update_large, &l) == DITTO_OK); /* now there is enough memory */
    REQUIRE(l.called == 3);
    for (uint32_t i = 0; i < 3; i++)
        REQUIRE(component_of(l.v, i, &component[i]) == DITTO_OK && *(const char *)component[i] == (char)i);
    REQUIRE(ditto_value_destroy(each) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(l.v) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(s) == DITTO_OK);
    return 0;
}

static void rule_8_0_without_memory_a_split_fails_on_all_replicas_and_changes_nothing(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(split_without_memory, NULL, 60), 0);
}

/* -- another thread reads while copies are split -- */

struct watching {
    ditto_variable *v;
    uint32_t replica;  /* the last one of this host */
    ditto_value *part; /* the value of its component */
    _Atomic bool ready, over;
    int failures;
    const void *last;  /* the address that it read last */
    ditto_tensor seen; /* the tensor of `part` that it read last */
};

static void *watch(void *argument)
{
    struct watching *w = argument;
    char text[300];
    bool over;
    do { /* reads once more after `over` is set */
        over = w->over;
        if (component_of(w->v, w->replica, &w->last) != DITTO_OK ||
            ((const volatile double *)w->last)[0] != 1 ||
            ditto_variable_describe(w->v, text, sizeof text, NULL) != DITTO_OK ||
            ditto_value_tensor(w->part, &w->seen) != DITTO_OK ||
            ((const volatile double *)w->seen.data)[0] != 1)
            w->failures++;
        w->ready = true;
    } while (!over);
    return NULL;
}

static ditto_status set_nothing(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                void *user, ditto_tensor *result)
{
    return DITTO_OK;
}

static void a_thread_that_reads_during_a_split_sees_the_old_copies_or_the_new_ones(void **state)
{
    ditto_strategy *s = make_on_two_nodes(4 * test_hosts());
    ditto_value *ids = ids_from_1(s);
    for (int trial = 0; trial < test_trials(20); trial++) {
        struct watching w = { .v = make(s, 1, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT),
                              .replica = end_local(s) - 1 };
        pthread_t thread;
        ditto_value *value, *part[4];
        uint32_t count;
        const double *shared = component(w.v, w.replica);
        assert_ok(ditto_variable_value(w.v, &value));
        assert_ok(ditto_strategy_local_results(s, value, part, &count));
        w.part = part[3];
        assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
        while (!w.ready)
            sched_yield();
        assert_ok(
            ditto_variable_update(w.v, set_nothing, NULL, (const ditto_value *[]){ ids }, 1, NULL, NULL));
        w.over = true;
        pthread_join(thread, NULL);
        assert_int_equal(w.failures, 0);
        assert_ptr_not_equal(w.last, shared);
        assert_ptr_equal(w.last, component(w.v, w.replica));
        assert_ptr_equal(w.seen.data, component(w.v, w.replica));
        for (uint32_t r = 0; r < count; r++)
            assert_ok(ditto_value_destroy(part[r]));
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_variable_destroy(w.v));
    }
    assert_ok(ditto_value_destroy(ids));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- another thread reduces while runs update. Without ThreadSanitizer the test shows little -- */

struct updated {
    ditto_strategy *strategy;
    ditto_variable *v; /* one f32 */
    _Atomic bool over;
    _Atomic int failures;
};

static ditto_status add_one(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                            void *user, ditto_tensor *result)
{
    *(float *)copy->data += 1;
    return DITTO_OK;
}

static ditto_status update_in_run(ditto_replica *self, void *argument)
{
    struct updated *u = argument;
    float own = 1;
    return ditto_update(self, u->v, add_one, NULL, &(ditto_tensor){ .data = &own, .dtype = DITTO_F32 }, 1,
                        NULL);
}

static bool is_small_whole(double number)
{
    return number >= 0 && number <= 3 && number == (int)number;
}

/* Returns false if a call fails, or finds another number than 0 to 3. */
static bool reduce_in_all_ways(struct updated *u)
{
    ditto_value *value, *reduced, *part[3];
    uint32_t count;
    double number = -1, of_part = -1, of_reduced = -1;
    bool right = ditto_variable_value(u->v, &value) == DITTO_OK &&
                 ditto_strategy_reduce(u->strategy, DITTO_MEAN, value, NULL, 0, &reduced) == DITTO_OK &&
                 ditto_strategy_reduce_f64(u->strategy, DITTO_MEAN, value, &number) == DITTO_OK &&
                 ditto_strategy_local_results(u->strategy, value, part, &count) == DITTO_OK &&
                 ditto_value_destroy(reduced) == DITTO_OK && ditto_value_destroy(value) == DITTO_OK;
    for (uint32_t r = 0; right && r < count; r++)
        right = is_small_whole(number) && ditto_value_f64(part[r], &of_part) == DITTO_OK &&
                is_small_whole(of_part) &&
                ditto_strategy_reduce_f64(u->strategy, DITTO_MEAN, part[r], &of_reduced) == DITTO_OK &&
                is_small_whole(of_reduced) && ditto_value_destroy(part[r]) == DITTO_OK;
    return right;
}

static void *reduce_until_over(void *argument)
{
    struct updated *u = argument;
    do
        u->failures += !reduce_in_all_ways(u);
    while (!u->over && u->failures == 0);
    return NULL;
}

static void a_thread_that_reduces_during_updates_finds_whole_values(void **state)
{
    float zero = 0;
    pthread_t thread;
    struct updated u = { .strategy = make_strategy(3, NULL) };
    assert_ok(
        ditto_variable_create(u.strategy, &(ditto_tensor){ .data = &zero, .dtype = DITTO_F32 }, NULL, &u.v));
    assert_int_equal(pthread_create(&thread, NULL, reduce_until_over, &u), 0);
    for (int i = 0; i < test_trials(300); i++) {
        assert_ok(ditto_strategy_run(u.strategy, update_in_run, &u));
        if (i % 3 == 2)
            assert_ok(ditto_variable_assign(u.v, DITTO_ASSIGN, &zero, sizeof zero));
    }
    u.over = true;
    pthread_join(thread, NULL);
    assert_int_equal(u.failures, 0);
    assert_ok(ditto_variable_destroy(u.v));
    assert_ok(ditto_strategy_destroy(u.strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_8_0_copies_without_aggregation_are_shared_until_they_are_split),
        cmocka_unit_test(rule_8_0_an_update_by_all_replicas_splits_before_its_function_is_called),
        cmocka_unit_test(updates_of_different_variables_are_refused_as_diverged),
        cmocka_unit_test(rule_8_0_an_argument_whose_components_differ_splits_the_updated_variable),
        cmocka_unit_test(rule_8_0_components_may_differ_where_hosts_have_one_replica),
        cmocka_unit_test(rule_8_0_a_colocated_variable_is_split_independently),
        cmocka_unit_test(rule_8_0_sharded_and_central_variables_and_slots_are_never_split),
        cmocka_unit_test(rule_8_0_they_are_not_split_where_a_host_has_one_replica),
        one_host_test(rule_8_0_without_memory_a_split_fails_on_all_replicas_and_changes_nothing,
                      "it forks, and limits the memory of one process"),
        cmocka_unit_test(a_thread_that_reads_during_a_split_sees_the_old_copies_or_the_new_ones),
        one_host_test(a_thread_that_reduces_during_updates_finds_whole_values,
                      "several hosts make calls and runs in one order"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
