/* tests/semantics/test_variables.c - docs/semantics.md, "Variables": rules 8.1 to 8.7 and 8.9 to 8.12, and
 * calls that are refused. */
#include "support/as_hosts.h"
#include "support/support.h"

#include "vars/registry/registry.h"
#include "vars/vars.h"

#include <stdatomic.h>

/* Executes the next statement once for each number of replicas, which is then in n. */
#define FOR_EACH_COUNT(n)                                 \
    for (size_t k_ = 0; k_ < replica_counts_length; k_++) \
        for (uint32_t n = replica_counts[k_], o_ = 1; o_; o_ = 0)

static const ditto_tensor f32_scalar = { .dtype = DITTO_F32 }, i64_scalar = { .dtype = DITTO_I64 };

static ditto_variable *make(ditto_strategy *s, ditto_tensor initial, ditto_synchronization sync,
                            ditto_aggregation how)
{
    ditto_variable *v;
    assert_ok(ditto_variable_create(
        s, &initial, &OPTIONS(variable, .synchronization = sync, .aggregation = how, .name = "v"), &v));
    return v;
}

static float read_f32(ditto_variable *v)
{
    float value;
    assert_ok(ditto_variable_read(v, &value, sizeof value));
    return value;
}

static int64_t read_i64(ditto_variable *v)
{
    int64_t value;
    assert_ok(ditto_variable_read(v, &value, sizeof value));
    return value;
}

/* Asserts what the components of this host are. */
static void expect_components(const ditto_strategy *s, ditto_variable *v, float expected)
{
    for (uint32_t r = first_local(s); r < end_local(s); r++) {
        const void *component;
        assert_ok(component_of(v, r, &component));
        assert_true(*(const float *)component == expected);
    }
}

static void rule_8_1_auto_is_trainable_and_on_read_is_not(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_variable *a = make(s, f32_scalar, DITTO_SYNCHRONIZATION_DEFAULT, DITTO_AGGREGATE_SUM);
    ditto_variable *b = make(s, f32_scalar, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
    assert_true(properties_of(a).trainable);
    assert_false(properties_of(b).trainable);
    assert_ok(ditto_variable_destroy(a));
    assert_ok(ditto_variable_destroy(b));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_1_none_and_mean_of_integers_are_refused_at_creation(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    ditto_tensor bad = f32_scalar;
    ditto_variable *v;
    options.synchronization = (ditto_synchronization)3; /* ditto has no NONE as TensorFlow has */
    assert_status(ditto_variable_create(s, &f32_scalar, &options, &v), DITTO_ERR_RANGE);
    options.synchronization = DITTO_ON_READ;
    options.aggregation = DITTO_AGGREGATE_MEAN;
    assert_status(ditto_variable_create(s, &i64_scalar, &options, &v), DITTO_ERR_INVALID);
    options.name = "w";                                 /* messages name the variable and the option */
    options.aggregation = (ditto_aggregation)DITTO_SUM; /* an operator is no aggregation */
    assert_status(ditto_variable_create(s, &f32_scalar, &options, &v), DITTO_ERR_RANGE);
    assert_message("options->aggregation of the variable \"w\" is 1");
    assert_message("DITTO_AGGREGATE_SUM, not DITTO_SUM");
    options.aggregation = DITTO_AGGREGATE_DEFAULT;
    options.synchronization = (ditto_synchronization)4;
    assert_status(ditto_variable_create(s, &f32_scalar, &options, &v), DITTO_ERR_RANGE);
    assert_message("options->synchronization of the variable \"w\" is 4");
    options.synchronization = DITTO_ON_WRITE;
    options.copies = (ditto_copies)2;
    assert_status(ditto_variable_create(s, &f32_scalar, &options, &v), DITTO_ERR_RANGE);
    assert_message("options->copies of the variable \"w\" is 2");
    options.copies = DITTO_COPIES_DEFAULT;
    options.trainable = (ditto_switch)-1;
    assert_status(ditto_variable_create(s, &f32_scalar, &options, &v), DITTO_ERR_RANGE);
    assert_message("options->trainable of the variable \"w\" is -1");
    assert_status(ditto_variable_create(s, NULL, NULL, &v), DITTO_ERR_INVALID);
    bad.dtype = (ditto_dtype)0;
    assert_status(ditto_variable_create(s, &bad, NULL, &v), DITTO_ERR_INVALID);
    bad = (ditto_tensor){ .dtype = DITTO_F64, .rank = 2, .shape = { SIZE_MAX / 2, 4 } };
    assert_status(ditto_variable_create(s, &bad, NULL, &v), DITTO_ERR_RANGE);
    bad = (ditto_tensor){ .dtype = DITTO_F64, .rank = 1, .shape = { (size_t)1 << 50 } };
    assert_status(ditto_variable_create(s, &bad, NULL, &v), DITTO_ERR_NO_MEMORY);
    v = make(s, f32_scalar, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE); /* the strategy is still usable */
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

static _Atomic int evaluations;
static ditto_status fill_with_seven(const ditto_tensor *value, size_t first_row, void *user)
{
    atomic_fetch_add(&evaluations, 1);
    for (size_t i = 0; i < elements_in(value); i++)
        ((float *)value->data)[i] = 7;
    return *(ditto_status *)user;
}

static void rule_8_2_one_initial_value_is_evaluated_once_and_copied_to_all(void **state)
{
    float one = 1;
    ditto_tensor initial = f32_scalar;
    initial.data = &one;
    FOR_EACH_COUNT(n)
    {
        ditto_strategy *s = make_strategy(n, NULL);
        ditto_status result = DITTO_OK;
        ditto_variable *v;
        ditto_variable_options options = OPTIONS(variable, .initialize = fill_with_seven,
                                                 .initialize_user = &result,
                                                 .synchronization = DITTO_ON_READ);
        atomic_store(&evaluations, 0);
        assert_ok(ditto_variable_create(s, &f32_scalar, &options, &v));
        assert_int_equal(evaluations, first_local(s) == 0); /* on the first host */
        expect_components(s, v, 7);
        assert_ok(ditto_variable_destroy(v));
        result = DITTO_ERR_IO;
        assert_status(ditto_variable_create(s, &f32_scalar, &options, &v), DITTO_ERR_IO);
        v = make(s, initial, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
        assert_true(read_f32(v) == (float)n); /* the sum of n components of 1.0 */
        assert_ok(ditto_variable_destroy(v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static uint32_t node_of(ditto_strategy *s, uint32_t replica)
{
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    assert_ok(ditto_strategy_replica_info(s, replica, 0, &info));
    return info.planned.pu.memory_node;
}

static void components_that_cannot_differ_share_a_copy(void **state)
{
    uint32_t n = 3 * test_hosts();
    ditto_strategy *s = make_strategy(n, NULL);
    uint32_t r = first_local(s);
    const void *first, *second;
    ditto_variable *v = make(s, f32_scalar, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM);
    assert_ok(component_of(v, r, &first));
    assert_ok(component_of(v, r + 1, &second));
    assert_int_equal(first == second, node_of(s, r) == node_of(s, r + 1)); /* each node has one copy */
    assert_status(component_of(v, n, &second), DITTO_ERR_RANGE);
    if (num_local(s) < n) {
        assert_status(component_of(v, (r + 3) % n, &second), DITTO_ERR_RANGE);
        assert_message("on another host");
    }
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_variable_create(
        s, &f32_scalar,
        &OPTIONS(variable, .copies = DITTO_COPIES_PER_REPLICA, .aggregation = DITTO_AGGREGATE_SUM), &v));
    assert_ok(component_of(v, r, &first));
    assert_ok(component_of(v, r + 1, &second));
    assert_ptr_not_equal(first, second);
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- ON_WRITE -- */

static void rule_8_6_a_cross_write_goes_to_every_component(void **state)
{
    float two = 2, three = 3;
    FOR_EACH_COUNT(n)
    for (int copies = DITTO_COPIES_DEFAULT; copies <= DITTO_COPIES_PER_REPLICA; copies++) {
        ditto_strategy *s = make_strategy(n, NULL);
        ditto_variable *v;
        assert_ok(
            ditto_variable_create(s, &f32_scalar, &OPTIONS(variable, .copies = (ditto_copies)copies), &v));
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN, &three, sizeof three));
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN_ADD, &three, sizeof three));
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN_SUB, &two, sizeof two));
        expect_components(s, v, 4);
        assert_status(ditto_variable_assign(v, DITTO_ASSIGN, &three, 8), DITTO_ERR_SHAPE);
        assert_status(ditto_variable_read(v, NULL, 4), DITTO_ERR_INVALID);
        assert_ok(ditto_variable_destroy(v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

struct writing {
    struct report report;
    ditto_variable *v;
    int what; /* 0: assign, 1: assign_add, 2: assign_sub */
    ditto_status expected;
};
static ditto_status write_id(ditto_replica *self, void *argument)
{
    struct writing *w = argument;
    float id = (float)ditto_replica_id(self);
    const void *data;
    ditto_status status = w->what == 0   ? ditto_assign(self, w->v, DITTO_ASSIGN, &id)
                          : w->what == 1 ? ditto_assign(self, w->v, DITTO_ASSIGN_ADD, &id)
                                         : ditto_assign(self, w->v, DITTO_ASSIGN_SUB, &id);
    EXPECT(&w->report, status == w->expected);
    if (status == DITTO_OK) { /* all replicas see the same value when the call returns */
        DITTO_TRY(ditto_read(self, w->v, &data));
        float seen = *(const float *)data, least = seen, most = seen;
        DITTO_TRY(ditto_all_reduce(self, &least, &least, 1, DITTO_F32, DITTO_MIN, NULL));
        DITTO_TRY(ditto_all_reduce(self, &most, &most, 1, DITTO_F32, DITTO_MAX, NULL));
        EXPECT(&w->report, least == most);
    }
    return DITTO_OK;
}

static float written(ditto_strategy *s, ditto_aggregation how, int what, ditto_status expected)
{
    float one = 1;
    ditto_tensor initial = f32_scalar;
    initial.data = &one;
    struct writing w = { .v = make(s, initial, DITTO_ON_WRITE, how), .what = what, .expected = expected };
    run_all(s, write_id, &w, &w.report);
    float value = read_f32(w.v);
    assert_ok(ditto_variable_destroy(w.v));
    return value;
}

static void rule_8_7_replicas_values_are_reduced_and_applied_once(void **state)
{
    FOR_EACH_COUNT(n)
    {
        ditto_strategy *s = make_strategy(n, NULL);
        float sum = (float)(n * (n - 1) / 2), mean = sum / (float)n;
        assert_true(written(s, DITTO_AGGREGATE_MEAN, 1, DITTO_OK) == 1 + mean);
        assert_true(written(s, DITTO_AGGREGATE_SUM, 1, DITTO_OK) == 1 + sum);
        assert_true(written(s, DITTO_AGGREGATE_SUM, 2, DITTO_OK) == 1 - sum);
        assert_true(written(s, DITTO_AGGREGATE_SUM, 0, DITTO_OK) == sum);
        assert_true(written(s, DITTO_AGGREGATE_MEAN, 0, DITTO_OK) == mean);
        assert_true(written(s, DITTO_AGGREGATE_ONLY_FIRST_REPLICA, 0, DITTO_OK) == 0);
        assert_true(written(s, DITTO_AGGREGATE_ONLY_FIRST_REPLICA, 1, DITTO_OK) == 1);
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_8_7_without_aggregation_a_write_in_a_run_is_refused(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    assert_true(written(s, DITTO_AGGREGATE_NONE, 1, DITTO_ERR_INVALID) == 1);
    assert_ok(ditto_strategy_destroy(s));
}

enum { LARGE = 30011 };
struct large {
    struct report report;
    ditto_variable *v;
};
static ditto_status add_large(ditto_replica *self, void *argument)
{
    struct large *l = argument;
    void *memory;
    const void *data;
    DITTO_TRY(ditto_alloc(self, LARGE * sizeof(int64_t), 0, &memory));
    int64_t *value = memory;
    for (int i = 0; i < LARGE; i++)
        value[i] = i * (int64_t)(ditto_replica_id(self) + 1);
    DITTO_TRY(ditto_assign(self, l->v, DITTO_ASSIGN_ADD, value));
    DITTO_TRY(ditto_assign(self, l->v, DITTO_ASSIGN_SUB, value));
    DITTO_TRY(ditto_assign(self, l->v, DITTO_ASSIGN_ADD, value));
    int64_t n = ditto_num_replicas(self);
    DITTO_TRY(ditto_read(self, l->v, &data));
    for (int i = 0; i < LARGE; i++)
        EXPECT(&l->report, ((const int64_t *)data)[i] == i * (n * (n + 1) / 2));
    return ditto_free(self, memory);
}

static void rule_8_7_holds_for_large_variables_and_every_copy(void **state)
{
    FOR_EACH_COUNT(n)
    for (int copies = DITTO_COPIES_DEFAULT; copies <= DITTO_COPIES_PER_REPLICA; copies++) {
        ditto_strategy *s = make_strategy(n, NULL);
        ditto_tensor spec = { .dtype = DITTO_I64, .rank = 1, .shape = { LARGE } };
        struct large l = { 0 };
        assert_ok(ditto_variable_create(
            s, &spec, &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM, .copies = (ditto_copies)copies),
            &l.v));
        run_all(s, add_large, &l, &l.report);
        assert_ok(ditto_variable_destroy(l.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static ditto_status write_different_variables(ditto_replica *self, void *argument)
{
    ditto_variable **v = argument;
    float one = 1;
    return ditto_assign(self, v[ditto_replica_id(self) % 2], DITTO_ASSIGN_ADD, &one);
}

static void write_different(uint32_t n)
{
    ditto_strategy *s = make_strategy(n, NULL);
    ditto_variable *v[2] = { make(s, f32_scalar, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM),
                             make(s, f32_scalar, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM) };
    assert_status(ditto_strategy_run(s, write_different_variables, v), DITTO_ERR_DIVERGED);
    assert_message("ditto_assign (ADD)");
    assert_ok(ditto_variable_destroy(v[0]));
    assert_ok(ditto_variable_destroy(v[1]));
    assert_ok(ditto_strategy_destroy(s));
}

static void writes_to_different_variables_are_refused_as_diverged(void **state)
{
    write_different(2 * test_hosts());
}

static void writes_to_different_variables_are_also_refused_if_each_host_writes_to_one(void **state)
{
    write_different(test_hosts() > 1 ? test_hosts() : 2);
}

/* -- ON_READ -- */

static ditto_status count_locally(ditto_replica *self, void *argument)
{
    struct writing *w = argument;
    int64_t id = ditto_replica_id(self), one = 1;
    const void *data;
    EXPECT(&w->report, ditto_assign(self, w->v, DITTO_ASSIGN, &id) == DITTO_OK);
    EXPECT(&w->report, ditto_assign(self, w->v, DITTO_ASSIGN_ADD, &one) == DITTO_OK);
    EXPECT(&w->report, ditto_assign(self, w->v, DITTO_ASSIGN_ADD, &one) == DITTO_OK);
    EXPECT(&w->report, ditto_assign(self, w->v, DITTO_ASSIGN_SUB, &one) == DITTO_OK);
    EXPECT(&w->report, ditto_read(self, w->v, &data) == DITTO_OK);
    EXPECT(&w->report, *(const int64_t *)data == id + 1);
    return DITTO_OK;
}

static void rule_8_9_a_replica_reads_and_writes_only_its_own_component(void **state)
{
    FOR_EACH_COUNT(n)
    {
        ditto_strategy *s = make_strategy(n, NULL);
        struct writing w = { .v = make(s, i64_scalar, DITTO_ON_READ, DITTO_AGGREGATE_SUM) };
        run_all(s, count_locally, &w, &w.report);
        assert_int_equal(read_i64(w.v), n * (n + 1) / 2); /* rule 8.10: a cross read aggregates */
        assert_ok(ditto_variable_destroy(w.v));
        w.v = make(s, i64_scalar, DITTO_ON_READ, DITTO_AGGREGATE_NONE); /* the aggregation does not matter */
        run_all(s, count_locally, &w, &w.report);
        assert_ok(ditto_variable_destroy(w.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rules_8_10_and_8_11_without_aggregation_cross_reads_and_assigns_are_refused(void **state)
{
    FOR_EACH_COUNT(n)
    {
        ditto_strategy *s = make_strategy(n, NULL);
        struct writing w = { .expected = DITTO_OK };
        w.v = make(s, f32_scalar, DITTO_ON_READ, DITTO_AGGREGATE_NONE);
        float value;
        assert_status(ditto_variable_read(w.v, &value, sizeof value), DITTO_ERR_INVALID);
        assert_status(ditto_variable_assign(w.v, DITTO_ASSIGN, &value, sizeof value), DITTO_ERR_INVALID);
        assert_ok(ditto_variable_destroy(w.v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static ditto_status put_id(ditto_replica *self, void *argument)
{
    float id = (float)ditto_replica_id(self);
    return ditto_assign(self, argument, DITTO_ASSIGN, &id);
}

static void rule_8_10_a_cross_read_is_the_mean_or_the_first_component(void **state)
{
    FOR_EACH_COUNT(n)
    {
        ditto_strategy *s = make_strategy(n, NULL);
        struct report report = { 0 };
        ditto_variable *mean = make(s, f32_scalar, DITTO_ON_READ, DITTO_AGGREGATE_MEAN);
        ditto_variable *first = make(s, f32_scalar, DITTO_ON_READ, DITTO_AGGREGATE_ONLY_FIRST_REPLICA);
        run_all(s, put_id, mean, &report);
        run_all(s, put_id, first, &report);
        assert_true(read_f32(mean) == (float)(n * (n - 1) / 2) / (float)n);
        assert_true(read_f32(first) == 0);
        assert_ok(ditto_variable_destroy(mean));
        assert_ok(ditto_variable_destroy(first));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_8_11_a_cross_assign_of_sum_is_spread_so_that_integers_add_up(void **state)
{
    static const int64_t values[] = { 0, 1, 7, -7, 1000003, INT64_MIN, INT64_MAX };
    FOR_EACH_COUNT(n)
    {
        ditto_strategy *s = make_strategy(n, NULL);
        ditto_variable *v = make(s, i64_scalar, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
        const void *component;
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            int64_t quotient = values[i] / (int64_t)n, remainder = values[i] % (int64_t)n;
            assert_ok(ditto_variable_assign(v, DITTO_ASSIGN, &values[i], sizeof values[i]));
            assert_true(read_i64(v) == values[i]);
            for (int64_t r = first_local(s); r < end_local(s); r++) {
                /* The first components get the remainder. */
                int64_t more = r < remainder ? 1 : r < -remainder ? -1 : 0;
                assert_ok(component_of(v, (uint32_t)r, &component));
                assert_true(*(const int64_t *)component == quotient + more);
            }
        }
        assert_ok(ditto_variable_destroy(v));
        float value = 6;
        v = make(s, f32_scalar, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN, &value, sizeof value));
        assert_ok(component_of(v, end_local(s) - 1, &component));
        assert_true(*(const float *)component == 6 / (float)n);
        assert_ok(ditto_variable_destroy(v));
        v = make(s, f32_scalar, DITTO_ON_READ, DITTO_AGGREGATE_MEAN);
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN, &value, sizeof value));
        assert_ok(component_of(v, end_local(s) - 1, &component));
        assert_true(*(const float *)component == 6);
        assert_ok(ditto_variable_destroy(v));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void rule_8_12_a_cross_add_needs_mean_or_only_first_replica(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    float one = 1, three = 3;
    ditto_variable *v = make(s, f32_scalar, DITTO_ON_READ, DITTO_AGGREGATE_SUM);
    assert_status(ditto_variable_assign(v, DITTO_ASSIGN_ADD, &one, sizeof one), DITTO_ERR_INVALID);
    assert_message("aggregates by SUM, so only a plain assign is defined across replicas");
    assert_status(ditto_variable_assign(v, DITTO_ASSIGN_SUB, &one, sizeof one), DITTO_ERR_INVALID);
    assert_ok(ditto_variable_destroy(v));
    v = make(s, f32_scalar, DITTO_ON_READ, DITTO_AGGREGATE_NONE);
    assert_status(ditto_variable_assign(v, DITTO_ASSIGN_ADD, &one, sizeof one), DITTO_ERR_INVALID);
    assert_ok(ditto_variable_destroy(v));
    for (int first = 0; first < 2; first++) {
        v = make(s, f32_scalar, DITTO_ON_READ,
                 first ? DITTO_AGGREGATE_ONLY_FIRST_REPLICA : DITTO_AGGREGATE_MEAN);
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN_ADD, &three, sizeof three));
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN_SUB, &one, sizeof one));
        expect_components(s, v, 2);
        assert_true(read_f32(v) == 2);
        assert_ok(ditto_variable_destroy(v));
    }
    assert_ok(ditto_strategy_destroy(s));
}

struct foreign {
    struct report report;
    ditto_variable *v;
};
static ditto_status touch_foreign(ditto_replica *self, void *argument)
{
    struct foreign *f = argument;
    float one = 1;
    const void *data;
    EXPECT(&f->report, ditto_assign(self, f->v, DITTO_ASSIGN_ADD, &one) == DITTO_ERR_CONTEXT);
    EXPECT(&f->report, ditto_read(self, f->v, &data) == DITTO_ERR_CONTEXT);
    EXPECT(&f->report, ditto_read(self, NULL, &data) == DITTO_ERR_INVALID);
    return DITTO_OK;
}

static void a_variable_of_another_strategy_is_refused(void **state)
{
    ditto_strategy *a = make_strategy(2, NULL), *b = make_strategy(2, NULL);
    struct foreign f = { .v = make(b, f32_scalar, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM) };
    run_all(a, touch_foreign, &f, &f.report);
    assert_ok(ditto_variable_destroy(f.v));
    assert_ok(ditto_strategy_destroy(a));
    assert_ok(ditto_strategy_destroy(b));
}

struct creating {
    struct report report;
    ditto_variable *made[64];

    /* The name that replica 0 gives, and the name that the others give. */
    const char *names[2];

    int extra;  /* how many more variables replica 0 creates */
    int unset;  /* replica 1 does not use DITTO_VARIABLE_OPTIONS_INIT */
    int longer; /* replica 1 creates a vector */
};

static ditto_status create_inside(ditto_replica *self, void *argument)
{
    struct creating *c = argument;
    uint32_t id = ditto_replica_id(self);
    double start[2] = { 5 + id }, one = 1;
    bool longer = c->longer && id == 1;
    ditto_tensor t = { .data = start, .dtype = DITTO_F64, .rank = longer, .shape = { longer ? 2 : 0 } };
    ditto_variable *second;
    ditto_variable_options options = OPTIONS(variable, .name = c->names[id != 0],
                                             .aggregation = DITTO_AGGREGATE_SUM);
    if (c->unset && id == 1) {
        options.struct_size = 0;
        options.name = (const char *)1; /* must not be read */
    }
    DITTO_TRY(ditto_create_variable(self, &t, &options, &c->made[id]));
    DITTO_TRY(ditto_assign(self, c->made[id], DITTO_ASSIGN_ADD, &one)); /* it can be used at once */
    for (int i = 0; i < c->extra && id == 0; i++)
        DITTO_TRY(ditto_create_variable(self, &t, &options, &second));
    return DITTO_OK;
}

static void rule_8_3_a_variable_created_in_a_run_is_one_variable(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        struct creating c = { .names = { "weights", "weights" } };
        double value;
        uint32_t f = first_local(strategy);
        run_all(strategy, create_inside, &c, &c.report);
        for (uint32_t i = f + 1; i < end_local(strategy); i++)
            assert_ptr_equal(c.made[i], c.made[f]);
        assert_ok(ditto_variable_read(c.made[f], &value, sizeof value));
        assert_true(value == 5.0 + n); /* the initial value is that of replica 0 */
        ditto_variable *first = c.made[f];
        run_all(strategy, create_inside, &c, &c.report);
        assert_true(c.made[f] != first); /* the next run creates another variable */
        assert_ok(ditto_variable_destroy(first));
        assert_ok(ditto_variable_destroy(c.made[f]));
        if (n > 1) {
            bool are_apart = n == test_hosts(); /* replicas 0 and 1 are on different hosts */
            c.names[1] = "biases";
            assert_status(ditto_strategy_run(strategy, create_inside, &c), DITTO_ERR_DIVERGED);
            assert_message(are_apart ? "calls ditto_variable_create of \"biases\""
                                     : "replica 1 creates the variable \"biases\", replica 0 creates "
                                       "\"weights\"");
            c.names[1] = "weights";
            c.longer = 1;
            assert_status(ditto_strategy_run(strategy, create_inside, &c), DITTO_ERR_DIVERGED);
            assert_message(are_apart ? "calls ditto_variable_create of \"weights\""
                                     : "replica 1 creates the variable \"weights\", f64 [2], replica 0 "
                                       "creates \"weights\", f64 scalar");
            c.longer = 0;
            c.extra = 1;
            assert_status(ditto_strategy_run(strategy, create_inside, &c), DITTO_ERR_DIVERGED);
            assert_message("ditto_create_variable");
            assert_ok(ditto_variable_destroy(c.made[f]));
            c.unset = 1;
            assert_status(ditto_strategy_run(strategy, create_inside, &c), DITTO_ERR_INVALID);
            assert_message("struct_size is 0");
        }
        assert_ok(ditto_strategy_destroy(strategy));
    }
    double one = 1; /* the default strategy can create variables too */
    ditto_tensor t = { .data = &one, .dtype = DITTO_F64 };
    ditto_variable *alone;
    assert_ok(ditto_create_variable(ditto_get_replica_context(), &t, NULL, &alone));
    assert_ok(ditto_variable_destroy(alone));
}

static void rule_8_4_variables_have_names(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_tensor t = { .dtype = DITTO_F64 };
    ditto_variable *named, *unnamed;
    assert_ok(ditto_variable_create(strategy, &t, &OPTIONS(variable, .name = "w"), &named));
    assert_ok(ditto_variable_create(strategy, &t, NULL, &unnamed));
    assert_string_equal(properties_of(unnamed).name, "Variable");
    assert_string_equal(properties_of(named).name, "w");
    assert_ok(ditto_variable_destroy(named));
    assert_ok(ditto_variable_destroy(unnamed));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Asserts that the replicas share the copies of both variables in the same way, and that each copy is in
 * memory of the same node. */
static void expect_same_copies(const ditto_variable *a, const ditto_variable *b, uint32_t copies)
{
    assert_int_equal(a->copies, copies);
    assert_int_equal(b->copies, copies);
    for (uint32_t r = 0; r < a->num_replicas; r++) {
        assert_int_equal(a->copy_of[r], b->copy_of[r]);
        for (uint32_t other = 0; other < r; other++)
            assert_int_equal(dti_variable_component(a, r) == dti_variable_component(a, other),
                             dti_variable_component(b, r) == dti_variable_component(b, other));
    }
    for (uint32_t c = 0; c < copies; c++) {
        assert_int_equal(a->copy[c].owner,
                         b->copy[c].owner); /* whose node it is, unless copy_node names one */
        assert_int_equal(a->copy_node[c], b->copy_node[c]);
    }
}

static void rule_8_5_colocated_variables_have_copies_on_the_same_nodes(void **state)
{
    ditto_strategy *strategy = make_on_two_nodes(3), *other = make_strategy(2, NULL);
    double one = 1;
    ditto_tensor t = { .data = &one, .dtype = DITTO_F64 };
    ditto_variable *apart, *with_apart, *shared, *with_shared, *refused;
    ditto_variable_options options = OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM);
    assert_ok(ditto_variable_create(strategy, &t, &options, &shared));
    options.copies = DITTO_COPIES_PER_REPLICA;
    assert_ok(ditto_variable_create(strategy, &t, &options, &apart));
    options.copies = DITTO_COPIES_DEFAULT;
    options.colocate_with = apart;
    assert_ok(ditto_variable_create(strategy, &t, &options, &with_apart));
    options.colocate_with = shared;
    assert_ok(ditto_variable_create(strategy, &t, &options, &with_shared));
    expect_same_copies(with_apart, apart, 3);
    expect_same_copies(with_shared, shared, 2); /* one for each node */
    assert_ptr_equal(properties_of(with_apart).strategy, strategy);
    assert_status(ditto_variable_create(other, &t, &options, &refused), DITTO_ERR_INVALID);
    assert_message("another strategy");
    options.synchronization = DITTO_ON_READ;
    assert_status(ditto_variable_create(strategy, &t, &options, &refused), DITTO_ERR_INVALID);
    assert_message("shares its copies");
    ditto_variable *all[] = { apart, with_apart, shared, with_shared };
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(strategy));
    assert_ok(ditto_strategy_destroy(other));
}

static void a_kept_value_for_which_there_is_no_memory_leaves_the_earlier_one(void **state)
{
#if SANITIZED
    skip(); /* the allocator of a sanitizer ends the process */
#else
    ditto_strategy *strategy = make_strategy(2, NULL);
    float three = 3, zero = 0, found = 0;
    ditto_tensor initial = { .data = &zero, .dtype = DITTO_F32 };
    struct dti_named_value small = { .name = "w", .value = { .data = &three, .dtype = DITTO_F32 } };
    struct dti_named_value huge = small;
    huge.value.rank = 1;
    huge.value.shape[0] = (size_t)1 << 45;
    ditto_variable *variable;
    size_t num_values;
    assert_ok(dti_restore_values(strategy, &small, 1));
    assert_status(dti_restore_values(strategy, &huge, 1), DITTO_ERR_NO_MEMORY);
    assert_ok(ditto_strategy_held_values(strategy, NULL, 0, NULL, &num_values));
    assert_int_equal(num_values, 1);
    assert_ok(ditto_variable_create(strategy, &initial, &OPTIONS(variable, .name = "w"), &variable));
    assert_ok(ditto_variable_read(variable, &found, sizeof found));
    assert_true(found == three);
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_strategy_destroy(strategy));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_8_3_a_variable_created_in_a_run_is_one_variable),
        cmocka_unit_test(rule_8_4_variables_have_names),
        one_host_test(rule_8_5_colocated_variables_have_copies_on_the_same_nodes,
                      "it pretends that the replicas of one host are on two nodes"),
        cmocka_unit_test(rule_8_1_auto_is_trainable_and_on_read_is_not),
        cmocka_unit_test(rule_8_1_none_and_mean_of_integers_are_refused_at_creation),
        cmocka_unit_test(rule_8_2_one_initial_value_is_evaluated_once_and_copied_to_all),
        cmocka_unit_test(components_that_cannot_differ_share_a_copy),
        cmocka_unit_test(rule_8_6_a_cross_write_goes_to_every_component),
        cmocka_unit_test(rule_8_7_replicas_values_are_reduced_and_applied_once),
        cmocka_unit_test(rule_8_7_without_aggregation_a_write_in_a_run_is_refused),
        cmocka_unit_test(rule_8_7_holds_for_large_variables_and_every_copy),
        cmocka_unit_test(writes_to_different_variables_are_refused_as_diverged),
        cmocka_unit_test(writes_to_different_variables_are_also_refused_if_each_host_writes_to_one),
        cmocka_unit_test(rule_8_9_a_replica_reads_and_writes_only_its_own_component),
        cmocka_unit_test(rules_8_10_and_8_11_without_aggregation_cross_reads_and_assigns_are_refused),
        cmocka_unit_test(rule_8_10_a_cross_read_is_the_mean_or_the_first_component),
        cmocka_unit_test(rule_8_11_a_cross_assign_of_sum_is_spread_so_that_integers_add_up),
        cmocka_unit_test(rule_8_12_a_cross_add_needs_mean_or_only_first_replica),
        cmocka_unit_test(a_variable_of_another_strategy_is_refused),
        one_host_test(a_kept_value_for_which_there_is_no_memory_leaves_the_earlier_one,
                      "hosts compare all bytes of a value, and this one has fewer than it says"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
