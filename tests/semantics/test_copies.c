/* tests/semantics/test_copies.c - rule 8.0: which copies variables have, and when shared copies are split.
 *
 * The tests give half of the replicas another memory node, so that variables have two copies even on a
 * machine of one node. */
#include "replicas/team/team_private.h"
#include "support/support.h"

#include "vars/variables/copies.h"
#include "vars/vars.h"

#include <pthread.h>
#include <sys/resource.h>

enum { COUNT = 300 }; /* elements of a variable */

static ditto_strategy *make_on_two_nodes(uint32_t n)
{
    ditto_strategy *s = make_strategy(n, NULL);
    struct dti_team *team = dti_team_of(s);
    for (uint32_t i = (n + 1) / 2; i < n; i++)
        team->replica[i].pu.memory_node = team->replica[0].pu.memory_node + 1;
    return s;
}

static uint32_t nodes_of(uint32_t n)
{
    return n > 1 ? 2 : 1;
}

static ditto_variable *make(ditto_strategy *s, double start, ditto_aggregation how, ditto_copies copies)
{
    double values[COUNT];
    ditto_tensor t = { .data = values, .dtype = DITTO_F64, .rank = 1, .shape = { COUNT } };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_variable *v;
    for (int i = 0; i < COUNT; i++)
        values[i] = start;
    options.aggregation = how;
    options.copies = copies;
    assert_ok(ditto_variable_create(s, &t, &options, &v));
    return v;
}

static const double *component(ditto_variable *v, uint32_t replica)
{
    const void *data;
    assert_ok(ditto_variable_component(v, replica, &data));
    return data;
}

static uint32_t count_copies(ditto_variable *v, uint32_t n)
{
    uint32_t copies = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = 0;
        while (before < i && component(v, before) != component(v, i))
            before++;
        copies += before == i;
    }
    return copies;
}

static void expect_components(ditto_variable *v, uint32_t n, double first, double step)
{
    for (uint32_t r = 0; r < n; r++)
        for (int i = 0; i < COUNT; i++)
            if (component(v, r)[i] != first + step * r)
                fail_msg("element %d of component %u is %g, not %g", i, r, component(v, r)[i],
                         first + step * r);
}

/* Returns a value with a scalar for each replica: 1, 2, 3, ... */
static ditto_value *ids_from_1(ditto_strategy *s)
{
    double number[64];
    ditto_tensor t[64];
    ditto_value *value;
    for (uint32_t r = 0; r < 64; r++) {
        number[r] = r + 1.0;
        t[r] = (ditto_tensor){ .data = &number[r], .dtype = DITTO_F64 };
    }
    assert_ok(ditto_strategy_value_from_tensors(s, t, 1, &value));
    return value;
}

static _Atomic uint32_t calls;

/* An update function that adds its argument, a scalar or an array, to the elements of the copy. */
static ditto_status add_argument(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                 void *user, ditto_tensor *result)
{
    (void)count;
    (void)user;
    (void)result;
    for (int i = 0; i < COUNT; i++)
        ((double *)copy->data)[i] += ((const double *)arguments[0].data)[arguments[0].rank == 0 ? 0 : i];
    calls++;
    return DITTO_OK;
}

static ditto_status update_with(ditto_variable *v, const ditto_value *argument)
{
    calls = 0;
    return ditto_variable_update(v, add_argument, NULL, (const ditto_value *[]){ argument }, 1, NULL, NULL);
}

static void split(ditto_strategy *s, ditto_variable *v)
{
    ditto_value *ids = ids_from_1(s);
    assert_ok(update_with(v, ids));
    assert_ok(ditto_value_destroy(ids));
}

/* -- when copies are split -- */

static void rule_8_0_copies_without_aggregation_are_shared_until_they_are_split(void **state)
{
    (void)state;
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *s = make_on_two_nodes(n);
        ditto_variable *v = make(s, 5, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
        double ten = 10;
        char text[300], expected[40];
        ditto_tensor plain = { .data = &ten, .dtype = DITTO_F64 };
        ditto_value *ids = ids_from_1(s), *one;
        assert_ok(ditto_strategy_value(s, &plain, &one));
        assert_int_equal(count_copies(v, n), nodes_of(n));
        /* The argument is equal for all replicas, so components cannot differ and nothing is split. */
        assert_ok(update_with(v, one));
        assert_int_equal(calls, nodes_of(n));
        assert_int_equal(count_copies(v, n), nodes_of(n));
        const double *first = component(v, 0);
        uint64_t before = ditto_variable_generation(v);
        assert_ok(update_with(v, ids));
        assert_int_equal(calls, n);
        assert_int_equal(count_copies(v, n), n);
        assert_ptr_equal(component(v, 0), first); /* the owner of a copy keeps it */
        assert_int_equal(ditto_variable_generation(v), before + n);
        expect_components(v, n, 16, 1);
        assert_ok(ditto_variable_describe(v, text, sizeof text, NULL));
        snprintf(expected, sizeof expected, ", %u cop%s on NUMA node", n, n == 1 ? "y" : "ies");
        assert_non_null(strstr(text, expected));
        assert_ok(update_with(v, one)); /* is called once for each copy, split or not */
        assert_int_equal(calls, n);
        expect_components(v, n, 26, 1);
        double value[COUNT];
        assert_ok(ditto_variable_read(v, value, sizeof value));
        assert_true(value[COUNT - 1] == 26);
        assert_ok(ditto_variable_assign(v, value, sizeof value)); /* makes all components equal */
        expect_components(v, n, 26, 0);
        assert_int_equal(count_copies(v, n), n); /* the copies stay split */
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
    in->at[ditto_get_update_replica()] = copy->data;
    return add_argument(copy, arguments, count, NULL, result);
}

static ditto_status give_42(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                            void *user, ditto_value **result)
{
    static double number = 42;
    (void)arguments, (void)count, (void)user;
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
        uint64_t before = ditto_generation(self, in->v);
        DITTO_TRY(ditto_update(self, in->v, note_and_add, in, &t, 1, NULL));
        DITTO_TRY(ditto_read(self, in->v, &own));
        EXPECT(&in->report, ((const double *)own)[COUNT - 1] == 5 + step * mine);
        EXPECT(&in->report, in->at[ditto_replica_id(self)] == own);
        EXPECT(&in->report, ditto_generation(self, in->v) == before + 1);
    }
    /* A split does not release the result of the last merge_call. */
    DITTO_TRY(ditto_local(self, merged, &merged_tensor));
    EXPECT(&in->report, *(const double *)merged_tensor.data == 42);
    return DITTO_OK;
}

static void rule_8_0_an_update_by_all_replicas_splits_before_its_function_is_called(void **state)
{
    (void)state;
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *s = make_on_two_nodes(n);
        struct inside in = { .v = make(s, 5, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT) };
        calls = 0;
        run_all(s, update_twice, &in, &in.report);
        assert_int_equal(calls, 2 * n);
        assert_int_equal(count_copies(in.v, n), n);
        expect_components(in.v, n, 7, 2);
        assert_ok(ditto_variable_destroy(in.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static ditto_status update_another(ditto_replica *self, void *argument)
{
    ditto_variable **v = argument;
    double one = 1;
    return ditto_update(self, v[ditto_replica_id(self)], add_argument, NULL,
                        &(ditto_tensor){ .data = &one, .dtype = DITTO_F64 }, 1, NULL);
}

static void updates_of_different_variables_are_refused_as_diverged(void **state)
{
    (void)state;
    ditto_strategy *s = make_on_two_nodes(2);
    ditto_variable *v[2] = { make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT),
                             make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT) };
    assert_status(ditto_strategy_run(s, update_another, v), DITTO_ERR_DIVERGED);
    for (int i = 0; i < 2; i++) {
        expect_components(v[i], 2, 0, 0);
        assert_ok(ditto_variable_destroy(v[i]));
    }
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_0_an_argument_whose_components_differ_splits_the_updated_variable(void **state)
{
    (void)state;
    uint32_t n = 4;
    ditto_strategy *s = make_on_two_nodes(n);
    ditto_variable *from = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *to = make(s, 100, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *sums = make(s, 100, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    ditto_value *value;
    assert_ok(ditto_variable_value(from, &value));
    assert_ok(update_with(to, value)); /* the components of `from` are still equal */
    assert_int_equal(calls, 2);
    split(s, from);
    assert_ok(update_with(to, value));
    assert_int_equal(count_copies(to, n), n);
    expect_components(to, n, 101, 1);
    /* Two replicas share a copy of `sums`, but their arguments differ. */
    assert_status(update_with(sums, value), DITTO_ERR_INVALID);
    assert_message("it aggregates");
    assert_int_equal(calls, 0);
    expect_components(sums, n, 100, 0);
    assert_ok(ditto_value_destroy(value));
    ditto_variable *all[] = { from, to, sums };
    for (int i = 0; i < 3; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_0_a_colocated_variable_is_split_independently(void **state)
{
    (void)state;
    uint32_t n = 4;
    ditto_strategy *s = make_on_two_nodes(n);
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_variable *v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT), *with_it, *counter, *later;
    ditto_tensor spec = spec_of(v);
    options.colocate_with = v;
    assert_ok(ditto_variable_create(s, &spec, &options, &with_it));
    options.synchronization = DITTO_ON_READ; /* has one copy for each replica, on the same nodes */
    assert_ok(ditto_variable_create(s, &spec, &options, &counter));
    options.synchronization = DITTO_ON_WRITE;
    assert_int_equal(count_copies(with_it, n), 2);
    assert_int_equal(count_copies(counter, n), n);
    split(s, v);
    assert_int_equal(count_copies(v, n), n);
    assert_int_equal(count_copies(with_it, n), 2);
    split(s, with_it);
    assert_int_equal(count_copies(with_it, n), n);
    expect_components(with_it, n, 1, 1);
    assert_ok(ditto_variable_create(s, &spec, &options, &later)); /* has copies like `v`, which is split */
    assert_int_equal(count_copies(later, n), n);
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

static void rule_8_0_sharded_and_central_variables_and_slots_are_never_split(void **state)
{
    (void)state;
    ditto_strategy *s = make_on_two_nodes(3), *central;
    ditto_strategy_options three = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_optimizer_options rule = DITTO_OPTIMIZER_OPTIONS_INIT;
    ditto_variable *v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT), *sharded, *one, *steps;
    ditto_tensor spec = spec_of(v);
    ditto_optimizer *optimizer;
    options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 3 };
    assert_ok(ditto_variable_create(s, &spec, &options, &sharded));
    expect_no_split(s, sharded, "cut into shards");
    rule.rule = DITTO_RULE_ADD;
    assert_ok(ditto_optimizer_create(&v, 1, &rule, &optimizer));
    assert_ok(ditto_optimizer_iterations(optimizer, &steps));
    expect_no_split(s, steps, "an optimizer's own");
    assert_ok(ditto_optimizer_destroy(optimizer));
    three.num_replicas = 3;
    assert_ok(ditto_strategy_create(DITTO_CENTRAL_STORAGE, &three, &central));
    one = make(central, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    expect_no_split(central, one, "central storage");
    expect_components(one, 3, 0, 0);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_variable_destroy(sharded));
    assert_ok(ditto_variable_destroy(one));
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(central));
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
    (void)arguments, (void)count, (void)result;
    ((struct large *)user)->called++;
    *(char *)copy->data = (char)ditto_get_update_replica();
    return DITTO_OK;
}

static ditto_status update_large(ditto_replica *self, void *argument)
{
    struct large *l = argument;
    uint64_t before = ditto_generation(self, l->v);
    ditto_status status = ditto_update(self, l->v, count_call, l, NULL, 0, NULL);
    if (status == DITTO_ERR_NO_MEMORY && ditto_generation(self, l->v) == before)
        l->failed++;
    return ditto_barrier(self, NULL); /* the run continues */
}

/* Three replicas share a copy. There is memory for one more copy, but not for two. */
static int split_without_memory(void *unused)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_tensor spec = { .dtype = DITTO_U8, .rank = 1, .shape = { LARGE } };
    ditto_strategy *s;
    struct large l = { .failed = 0 };
    struct rlimit limit;
    ditto_value *each;
    unsigned char byte[3] = { 0 };
    ditto_tensor t[3];
    const void *component[3];
    (void)unused;
    options.num_replicas = 3;
    REQUIRE(ditto_strategy_create(DITTO_MIRRORED, &options, &s) == DITTO_OK);
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
        uint64_t before = ditto_variable_generation(l.v);
        REQUIRE(ditto_variable_update(l.v, count_call, &l, (const ditto_value *[]){ each }, 1, NULL, NULL) ==
                DITTO_ERR_NO_MEMORY);
        REQUIRE(ditto_variable_generation(l.v) == before);
        l.failed = 0;
        REQUIRE(ditto_strategy_run(s, update_large, &l) == DITTO_OK);
        REQUIRE(l.failed == 3); /* the call fails on all replicas */
    }
    REQUIRE(l.called == 0);
    for (uint32_t i = 0; i < 3; i++)
        REQUIRE(ditto_variable_component(l.v, i, &component[i]) == DITTO_OK && component[i] == component[0]);
    limit.rlim_cur = all;
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    REQUIRE(ditto_strategy_run(s, update_large, &l) == DITTO_OK); /* now there is enough memory */
    REQUIRE(l.called == 3);
    for (uint32_t i = 0; i < 3; i++)
        REQUIRE(ditto_variable_component(l.v, i, &component[i]) == DITTO_OK &&
                *(const char *)component[i] == (char)i);
    REQUIRE(ditto_value_destroy(each) == DITTO_OK);
    REQUIRE(ditto_variable_destroy(l.v) == DITTO_OK);
    REQUIRE(ditto_strategy_destroy(s) == DITTO_OK);
    return 0;
}

static void rule_8_0_without_memory_a_split_fails_on_all_replicas_and_changes_nothing(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    assert_int_equal(in_child(split_without_memory, NULL, 60), 0);
}

/* -- operations on copies after a split -- */

enum { STEPS = 2 };

struct training {
    struct report report;
    ditto_optimizer *optimizer;
    ditto_variable *v;

    /* If not 0, the only replica uses the sum of the gradients of this many replicas. */
    uint32_t sum_of;
};

static double gradient_of(uint32_t replica, int i)
{
    return (double)((int)(replica * 3) % 7 + i % 5) - 4;
}

static ditto_status train(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    double values[COUNT] = { 0 };
    uint32_t id = ditto_replica_id(self);
    ditto_tensor gradient = spec_of(t->v);
    gradient.data = values;
    for (int i = 0; i < COUNT; i++)
        for (uint32_t r = id; r < (t->sum_of != 0 ? t->sum_of : id + 1); r++)
            values[i] += gradient_of(r, i); /* sums of small whole numbers are exact in any order */
    for (int step = 0; step < STEPS; step++)
        DITTO_TRY(ditto_apply(self, t->optimizer, &gradient, NULL));
    return DITTO_OK;
}

/* A rule in which the slot sums all gradients, and the new value depends on the old one. */
static void halve_and_add(const ditto_rule_range *range, void *user)
{
    (void)user;
    for (size_t i = 0; i < range->count; i++) {
        double *x = range->value, *sum = range->slot[0];
        sum[i] += ((const double *)range->gradient)[i];
        x[i] = x[i] / 2 + sum[i];
    }
}

static const struct {
    ditto_optimizer_options options;
    const char *slot;
} rules[] = {
    { { .rule = DITTO_RULE_ADD }, NULL },
    { { .rule = DITTO_RULE_SGD, .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1 }, "momentum" },
    { { .rule = DITTO_RULE_ADAM, .learning_rate = 0.1, .weight_decay = 0.1 }, "v" },
    { { .rule = DITTO_RULE_FUNCTION, .learning_rate = 0.1, .function = halve_and_add, .num_slots = 1 },
      "slot0" },
    { { .rule = DITTO_RULE_ADAM, .learning_rate = 0.1, .clip_norm = 3 }, "m" },
};

/* Trains a variable of a strategy of one replica, whose elements begin as `start`. Returns its value, and its
 * slot if the rule has one. */
static void train_alone(size_t rule, uint32_t n, double start, double *value, double *slot)
{
    ditto_optimizer_options o = rules[rule].options;
    ditto_strategy *s = make_strategy(1, NULL);
    struct training t = { .v = make(s, start, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT), .sum_of = n };
    ditto_variable *remembered;
    o.struct_size = sizeof o;
    assert_ok(ditto_optimizer_create(&t.v, 1, &o, &t.optimizer));
    run_all(s, train, &t, &t.report);
    assert_ok(ditto_variable_read(t.v, value, COUNT * sizeof *value));
    if (rules[rule].slot != NULL) {
        assert_ok(ditto_optimizer_slot(t.optimizer, 0, rules[rule].slot, &remembered));
        assert_ok(ditto_variable_read(remembered, slot, COUNT * sizeof *slot));
    }
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    assert_ok(ditto_variable_destroy(t.v));
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_strategy *make_in_groups(uint32_t n, bool in_groups)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_tuning tuning = DITTO_TUNING_INIT;
    tuning.hierarchical_bytes = in_groups ? 1 : SIZE_MAX;
    tuning.near_replicas = 2;
    options.tuning = &tuning;
    return make_strategy(n, &options);
}

static void train_split(size_t rule, uint32_t n, ditto_copies copies, bool split_first, bool in_groups)
{
    ditto_optimizer_options o = rules[rule].options;
    ditto_strategy *s = make_in_groups(n, in_groups);
    struct training t = { .v = make(s, 0, DITTO_AGGREGATE_NONE, copies) };
    ditto_variable *remembered;
    double value[COUNT], slot[COUNT], found[COUNT];
    o.struct_size = sizeof o;
    if (split_first)
        split(s, t.v);
    assert_ok(ditto_optimizer_create(&t.v, 1, &o, &t.optimizer));
    if (!split_first)
        split(s, t.v);
    run_all(s, train, &t, &t.report);
    for (uint32_t r = 0; r < n; r++) {
        train_alone(rule, n, r + 1.0, value, slot);
        assert_memory_equal(component(t.v, r), value, sizeof value);
    }
    if (rules[rule].slot != NULL) { /* the slot is updated once for all components */
        assert_ok(ditto_optimizer_slot(t.optimizer, 0, rules[rule].slot, &remembered));
        assert_ok(ditto_variable_read(remembered, found, sizeof found));
        assert_memory_equal(found, slot, sizeof slot);
    }
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    assert_ok(ditto_variable_destroy(t.v));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_0_an_optimizer_updates_every_copy_from_its_own_value(void **state)
{
    (void)state;
    for (size_t rule = 0; rule < sizeof rules / sizeof rules[0]; rule++)
        for (int way = 0; way < 8; way++)
            train_split(rule, way & 4 ? 5 : 2, way & 1 ? DITTO_COPIES_PER_REPLICA : DITTO_COPIES_DEFAULT,
                        way & 2, way & 4);
}

/* The variable is split after its optimizer is created, and then gets one value by an assignment. The
 * optimizer must notice both. */
static void train_equal_again(size_t rule, uint32_t n, bool in_groups)
{
    double values[COUNT], slot[COUNT];
    struct training t;
    ditto_optimizer_options o = rules[rule].options;
    o.struct_size = sizeof o;
    train_alone(rule, n, 7, values, slot);
    ditto_strategy *s = make_in_groups(n, in_groups);
    t = (struct training){ .v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT) };
    assert_ok(ditto_optimizer_create(&t.v, 1, &o, &t.optimizer));
    split(s, t.v);
    double sevens[COUNT];
    for (int i = 0; i < COUNT; i++)
        sevens[i] = 7;
    assert_ok(ditto_variable_assign(t.v, sevens, sizeof sevens));
    run_all(s, train, &t, &t.report);
    for (uint32_t r = 0; r < n; r++)
        assert_memory_equal(component(t.v, r), values, sizeof values);
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    assert_ok(ditto_variable_destroy(t.v));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_0_after_an_assignment_an_optimizer_updates_all_components_alike(void **state)
{
    (void)state;
    for (size_t rule = 0; rule < sizeof rules / sizeof rules[0]; rule++)
        for (int in_groups = 0; in_groups < 2; in_groups++)
            train_equal_again(rule, in_groups ? 5 : 2, in_groups);
}

/* -- writes whose value is a component of the variable -- */

struct from_own {
    struct report report;
    ditto_variable *v;
};

static ditto_status write_own_component(ditto_replica *self, void *argument)
{
    struct from_own *f = argument;
    const void *own;
    DITTO_TRY(ditto_read(self, f->v, &own));
    DITTO_TRY(ditto_assign_add(self, f->v, own));
    DITTO_TRY(ditto_assign(self, f->v, own));
    DITTO_TRY(ditto_assign_add(self, f->v, own));
    return DITTO_OK;
}

static void write_own(uint32_t n, size_t count, ditto_aggregation how, bool in_groups, ditto_copies copies)
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_variable_options wish = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tuning tuning = DITTO_TUNING_INIT;
    tuning.hierarchical_bytes = in_groups ? 1 : SIZE_MAX;
    tuning.near_replicas = (n + 1) / 2;
    options.tuning = &tuning;
    ditto_strategy *s = make_strategy(n, &options);
    for (uint32_t i = (n + 1) / 2; i < n; i++)
        dti_team_of(s)->replica[i].pu.memory_node++;
    double *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)(i % 100) + 1;
    ditto_tensor t = { .data = values, .dtype = DITTO_F64, .rank = 1, .shape = { count } };
    struct from_own f = { .v = NULL };
    wish.aggregation = how;
    wish.copies = copies;
    assert_ok(ditto_variable_create(s, &t, &wish, &f.v));
    run_all(s, write_own_component, &f, &f.report);
    double factor = how == DITTO_AGGREGATE_SUM ? (1.0 + n) * n * (1.0 + n) : 4;
    assert_ok(ditto_variable_read(f.v, values, count * sizeof *values));
    for (size_t i = 0; i < count; i++)
        assert_true(values[i] == factor * ((double)(i % 100) + 1));
    for (uint32_t r = 0; r < n; r++)
        assert_memory_equal(component(f.v, r), values, count * sizeof *values);
    free(values);
    assert_ok(ditto_variable_destroy(f.v));
    assert_ok(ditto_strategy_destroy(s));
}

static void a_replicas_own_component_may_be_the_value_of_a_write(void **state)
{
    (void)state;
    for (int how = DITTO_AGGREGATE_SUM; how <= DITTO_AGGREGATE_ONLY_FIRST_REPLICA; how++)
        for (int way = 0; way < 8; way++)
            for (uint32_t n = 2; n <= 8; n *= 2)
                write_own(n, way & 1 ? 100000 : 50, (ditto_aggregation)how, way & 2,
                          way & 4 ? DITTO_COPIES_PER_REPLICA : DITTO_COPIES_DEFAULT);
}

struct adding {
    struct report report;
    ditto_variable *v;
    ditto_slices slices;
};

static ditto_status add_ids(ditto_replica *self, void *argument)
{
    struct adding *a = argument;
    double values[COUNT];
    const void *own;
    for (int i = 0; i < COUNT; i++)
        values[i] = ditto_replica_id(self) + 1.0;
    DITTO_TRY(ditto_assign_add(self, a->v, values));
    DITTO_TRY(ditto_scatter(self, a->v, DITTO_SCATTER_ADD, &a->slices));
    DITTO_TRY(ditto_read(self, a->v, &own));
    return ditto_assign_sub(self, a->v, own); /* the value is the replica's own component */
}

/* Components that differ keep their differences, because the aggregated value is added to each. */
static void rule_8_7_an_add_in_a_run_changes_each_component_that_differs(void **state)
{
    static int64_t row = COUNT - 1;
    static double more = 1000;
    (void)state;
    for (int how = DITTO_AGGREGATE_SUM; how <= DITTO_AGGREGATE_ONLY_FIRST_REPLICA; how++) {
        uint32_t n = 4;
        ditto_strategy *s = make_on_two_nodes(n);
        struct adding a = { .v = make(s, 0, (ditto_aggregation)how, DITTO_COPIES_PER_REPLICA),
                            .slices = { &row, &more, 1, 1, DITTO_F64 } };
        split(s, a.v); /* the components are 1, 2, 3 and 4 */
        run_all(s, add_ids, &a, &a.report);
        double added = how == DITTO_AGGREGATE_SUM ? 10 : how == DITTO_AGGREGATE_MEAN ? 2.5 : 1;
        double rows = how == DITTO_AGGREGATE_SUM ? 4000 : 1000;
        for (uint32_t r = 0; r < n; r++)
            for (int i = 0; i < COUNT; i++) {
                double own = r + 1 + added, taken = 0, first = 1 + added;
                double extra = i == row ? rows : 0;
                if (how == DITTO_AGGREGATE_SUM)
                    taken = 10 + n * (added + extra);
                else if (how == DITTO_AGGREGATE_MEAN)
                    taken = 2.5 + added + extra;
                else
                    taken = first + extra;
                assert_true(component(a.v, r)[i] == own + extra - taken);
            }
        assert_ok(ditto_variable_destroy(a.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_8_6_an_assignment_from_components_that_differ_splits(void **state)
{
    (void)state;
    uint32_t n = 4;
    ditto_strategy *s = make_on_two_nodes(n);
    ditto_variable *from = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *to = make(s, 10, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *shared = make(s, 10, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    ditto_value *value;
    assert_ok(ditto_variable_value(from, &value));
    assert_ok(ditto_variable_assign_value(to, value)); /* the components of `from` are still equal */
    assert_int_equal(count_copies(to, n), 2);
    split(s, from);
    assert_ok(ditto_variable_assign_add_value(to, value));
    assert_ok(ditto_variable_assign_add_value(to, value));
    expect_components(to, n, 2, 2);
    /* This variable is never split, so all its components get the first component of `from`. */
    assert_ok(ditto_variable_assign_value(shared, value));
    assert_int_equal(count_copies(shared, n), 2);
    expect_components(shared, n, 1, 0);
    ditto_variable *all[] = { from, to, shared };
    assert_ok(ditto_value_destroy(value));
    for (int i = 0; i < 3; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_status look_up_own(ditto_replica *self, void *argument)
{
    struct adding *a = argument;
    int64_t rows[2] = { 7, COUNT - 1 };
    double found[2], id = ditto_replica_id(self);
    DITTO_TRY(ditto_lookup(self, a->v, rows, 2, found));
    EXPECT(&a->report, found[0] == id + 1 && found[1] == id + 1001);
    return DITTO_OK;
}

static void lookups_gathers_and_indexed_updates_see_the_components_of_a_split_variable(void **state)
{
    static int64_t row = COUNT - 1;
    static double more = 1000;
    (void)state;
    uint32_t n = 4;
    ditto_strategy *s = make_on_two_nodes(n);
    struct adding a = { .v = make(s, 0, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT),
                        .slices = { &row, &more, 1, 1, DITTO_F64 } };
    ditto_value *value, *all, *part[4];
    ditto_tensor t;
    uint32_t count;
    split(s, a.v);
    assert_ok(ditto_variable_scatter(a.v, DITTO_SCATTER_ADD, &a.slices)); /* adds once to every copy */
    run_all(s, look_up_own, &a, &a.report);
    assert_ok(ditto_variable_value(a.v, &value));
    assert_ok(ditto_strategy_gather(s, value, 0, &all));
    assert_ok(ditto_value_component(all, 0, &t));
    assert_int_equal(t.shape[0], n * COUNT);
    for (uint32_t r = 0; r < n; r++)
        assert_true(((double *)t.data)[r * COUNT] == r + 1 &&
                    ((double *)t.data)[r * COUNT + row] == r + 1001);
    assert_ok(ditto_strategy_local_results(s, value, part, &count));
    assert_int_equal(count, n);
    for (uint32_t r = 0; r < n; r++) {
        assert_ok(ditto_value_tensor(part[r], &t));
        assert_ptr_equal(t.data, component(a.v, r));
        assert_ok(ditto_value_destroy(part[r]));
    }
    assert_ok(ditto_value_destroy(all));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_variable_destroy(a.v));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- another thread reads while copies are split -- */

struct watching {
    ditto_variable *v;
    _Atomic bool ready, over;
    int failures;
    const void *last; /* the address that it read last */
};

static void *watch(void *argument)
{
    struct watching *w = argument;
    char text[300];
    bool over;
    do { /* reads once more after `over` is set */
        over = w->over;
        if (ditto_variable_component(w->v, 3, &w->last) != DITTO_OK ||
            ((const volatile double *)w->last)[0] != 1 ||
            ditto_variable_describe(w->v, text, sizeof text, NULL) != DITTO_OK)
            w->failures++;
        w->ready = true;
    } while (!over);
    return NULL;
}

static ditto_status set_nothing(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                                void *user, ditto_tensor *result)
{
    (void)copy, (void)arguments, (void)count, (void)user, (void)result;
    return DITTO_OK;
}

static void a_thread_that_reads_during_a_split_sees_the_old_copies_or_the_new_ones(void **state)
{
    (void)state;
    ditto_strategy *s = make_on_two_nodes(4);
    ditto_value *ids = ids_from_1(s);
    for (int trial = 0; trial < test_trials(20); trial++) {
        struct watching w = { .v = make(s, 1, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT) };
        pthread_t thread;
        const double *shared = component(w.v, 3);
        assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
        while (!w.ready)
            sched_yield();
        assert_ok(
            ditto_variable_update(w.v, set_nothing, NULL, (const ditto_value *[]){ ids }, 1, NULL, NULL));
        w.over = true;
        pthread_join(thread, NULL);
        assert_int_equal(w.failures, 0);
        assert_ptr_not_equal(w.last, shared);
        assert_ptr_equal(w.last, component(w.v, 3));
        assert_ok(ditto_variable_destroy(w.v));
    }
    assert_ok(ditto_value_destroy(ids));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- shards -- */

static void rule_8_0_shards_of_all_variables_are_placed_on_the_nodes_in_turn(void **state)
{
    (void)state;
    ditto_strategy *s = make_on_two_nodes(4);
    uint32_t home = dti_team_of(s)->replica[0].pu.memory_node, on[2] = { 0 };
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor spec = { .dtype = DITTO_F32, .rank = 1, .shape = { 9 } },
                 wrong = { .dtype = DITTO_F32, .rank = 1 };
    ditto_variable *v[3], *whole, *none;
    options.partitioner = (ditto_partitioner){ .kind = DITTO_PARTITION_FIXED, .num_shards = 3 };
    for (uint32_t k = 0; k < 3; k++) {
        assert_ok(ditto_variable_create(s, &spec, &options, &v[k]));
        /* Neither a variable without shards nor a creation that fails changes where the next shard goes. */
        assert_ok(ditto_variable_create(s, &spec, NULL, &whole));
        assert_ok(ditto_variable_destroy(whole));
        wrong.dtype = DITTO_I32;
        options.aggregation = DITTO_AGGREGATE_MEAN;
        assert_status(ditto_variable_create(s, &wrong, &options, &none), DITTO_ERR_INVALID);
        options.aggregation = DITTO_AGGREGATE_DEFAULT;
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(v[k]->copy_node[i], home + (3 * k + i) % 2);
            on[v[k]->copy_node[i] - home]++;
        }
    }
    assert_int_equal(on[0], 5); /* not 6 and 3, as if each variable began on the first node */
    assert_int_equal(on[1], 4);
    for (int k = 0; k < 3; k++)
        assert_ok(ditto_variable_destroy(v[k]));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- assignments make components equal -- */

struct assigning {
    struct report report;
    ditto_variable *v;
};

static ditto_status assign_7(ditto_replica *self, void *argument)
{
    struct assigning *a = argument;
    double values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = 7;
    return ditto_assign(self, a->v, values);
}

static ditto_status differ_once_more(ditto_replica *self, void *argument)
{
    struct assigning *a = argument;
    double mine = ditto_replica_id(self);
    DITTO_TRY(assign_7(self, argument));
    return ditto_update(self, a->v, add_argument, NULL, &(ditto_tensor){ .data = &mine, .dtype = DITTO_F64 },
                        1, NULL);
}

static const char *const ways_to_assign[] = { "in cross-replica context", "a plain value", "a variable",
                                              "in a run" };

/* Assigns 7 to all components. */
static void assign(ditto_strategy *s, ditto_variable *v, size_t way)
{
    struct assigning a = { .v = v };
    double values[COUNT];
    ditto_tensor t = { .data = values, .dtype = DITTO_F64, .rank = 1, .shape = { COUNT } };
    ditto_variable *like = make(s, 7, DITTO_AGGREGATE_NONE, DITTO_COPIES_PER_REPLICA);
    ditto_value *value;
    for (int i = 0; i < COUNT; i++)
        values[i] = 7;
    if (way == 1)
        assert_ok(ditto_strategy_value(s, &t, &value));
    else
        assert_ok(ditto_variable_value(like, &value));
    if (way == 0)
        assert_ok(ditto_variable_assign(v, values, sizeof values));
    else if (way == 3)
        run_all(s, assign_7, &a, &a.report);
    else
        assert_ok(ditto_variable_assign_value(v, value));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_variable_destroy(like));
}

static void rule_8_0_an_assignment_makes_components_equal_again(void **state)
{
    (void)state;
    for (size_t way = 0; way < sizeof ways_to_assign / sizeof ways_to_assign[0]; way++) {
        uint32_t n = 4;
        print_message("%s\n", ways_to_assign[way]);
        ditto_strategy *s = make_on_two_nodes(n);
        ditto_variable *from = make(s, 0, DITTO_AGGREGATE_MEAN, DITTO_COPIES_PER_REPLICA);
        ditto_variable *sums = make(s, 100, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
        ditto_variable *shared = make(s, 100, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
        struct assigning a = { .v = from };
        ditto_value *value;
        assert_ok(ditto_variable_value(from, &value));
        split(s, from);
        assert_status(update_with(sums, value), DITTO_ERR_INVALID);
        assign(s, from, way);
        expect_components(from, n, 7, 0);
        assert_ok(update_with(sums, value)); /* the components of the argument are equal again */
        assert_int_equal(calls, 2);
        assert_ok(update_with(shared, value));
        assert_ok(ditto_variable_assign_value(shared, value));
        assert_int_equal(count_copies(shared, n), 2); /* nothing was split */
        run_all(s, differ_once_more, &a, &a.report);
        expect_components(from, n, 7, 1);
        assert_status(update_with(sums, value), DITTO_ERR_INVALID);
        assert_ok(ditto_value_destroy(value));
        ditto_variable *all[] = { from, sums, shared };
        for (int i = 0; i < 3; i++)
            assert_ok(ditto_variable_destroy(all[i]));
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- central storage -- */

static void rule_8_4_a_request_for_copies_that_central_storage_ignores_is_reported(void **state)
{
    (void)state;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *s;
    char text[400];
    options.num_replicas = 2;
    assert_ok(ditto_strategy_create(DITTO_CENTRAL_STORAGE, &options, &s));
    ditto_variable *wished = make(s, 0, DITTO_AGGREGATE_SUM, DITTO_COPIES_PER_REPLICA);
    ditto_variable *plain = make(s, 0, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    assert_ok(ditto_variable_describe(wished, text, sizeof text, NULL));
    assert_non_null(strstr(text, "f64 [300], central, SUM"));
    assert_null(strstr(text, "mirrored"));
    assert_non_null(strstr(text, "not used: COPIES_PER_REPLICA"));
    assert_ok(ditto_variable_describe(plain, text, sizeof text, NULL));
    assert_non_null(strstr(text, "central"));
    assert_null(strstr(text, "not used"));
    assert_ok(ditto_variable_destroy(wished));
    assert_ok(ditto_variable_destroy(plain));
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_8_0_copies_without_aggregation_are_shared_until_they_are_split),
        cmocka_unit_test(rule_8_0_an_update_by_all_replicas_splits_before_its_function_is_called),
        cmocka_unit_test(updates_of_different_variables_are_refused_as_diverged),
        cmocka_unit_test(rule_8_0_an_argument_whose_components_differ_splits_the_updated_variable),
        cmocka_unit_test(rule_8_0_a_colocated_variable_is_split_independently),
        cmocka_unit_test(rule_8_0_sharded_and_central_variables_and_slots_are_never_split),
        cmocka_unit_test(rule_8_0_without_memory_a_split_fails_on_all_replicas_and_changes_nothing),
        cmocka_unit_test(rule_8_0_an_optimizer_updates_every_copy_from_its_own_value),
        cmocka_unit_test(rule_8_0_after_an_assignment_an_optimizer_updates_all_components_alike),
        cmocka_unit_test(a_replicas_own_component_may_be_the_value_of_a_write),
        cmocka_unit_test(rule_8_7_an_add_in_a_run_changes_each_component_that_differs),
        cmocka_unit_test(rule_8_6_an_assignment_from_components_that_differ_splits),
        cmocka_unit_test(lookups_gathers_and_indexed_updates_see_the_components_of_a_split_variable),
        cmocka_unit_test(a_thread_that_reads_during_a_split_sees_the_old_copies_or_the_new_ones),
        cmocka_unit_test(rule_8_0_shards_of_all_variables_are_placed_on_the_nodes_in_turn),
        cmocka_unit_test(rule_8_0_an_assignment_makes_components_equal_again),
        cmocka_unit_test(rule_8_4_a_request_for_copies_that_central_storage_ignores_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
