/* tests/semantics/test_variable_values.c - docs/semantics.md, "Variables": writes of every dtype that has a
 * sum (rules 8.6, 8.7, 8.9, 8.12 and 8.13), writes from values (rule 8.6), writes in parts (rule 8.11), reads
 * (rule 8.8), generations, and lists of variables. */
#include "support/as_hosts.h"
#include "support/support.h"

#include "sync/reference.h"

#define COUNT 37

static ditto_variable *make(ditto_strategy *s, ditto_dtype dtype, ditto_synchronization sync,
                            ditto_aggregation how, ditto_copies copies)
{
    ditto_tensor tensor = { .dtype = dtype, .rank = 1, .shape = { COUNT } };
    ditto_variable *v;
    ditto_variable_options options = OPTIONS(variable, .name = "v", .synchronization = sync,
                                             .aggregation = how, .copies = copies);
    assert_ok(ditto_variable_create(s, &tensor, &options, &v));
    return v;
}

/* Returns the next dtype that has a sum, which all have except bool, or a number above DTI_NUM_DTYPES. */
static int next_dtype(int dtype)
{
    do
        dtype++;
    while (dtype <= DTI_NUM_DTYPES && !reference_has((ditto_dtype)dtype, DITTO_SUM));
    return dtype;
}

/* Fills an array of any dtype except bool with small whole numbers, which every dtype represents exactly. */
static void put_all(ditto_dtype dtype, void *array, int factor)
{
    bool negative = reference_is_float(dtype) || reference_is_signed(dtype);
    for (int i = 0; i < COUNT; i++) {
        int x = (i % 5 - (negative ? 2 : 0)) * factor;
        struct element e = { .f = x, .u = (uint64_t)x };
        reference_store(dtype, e, (char *)array + (size_t)i * ditto_dtype_bytes(dtype));
    }
}

struct writing {
    struct report report;
    ditto_variable *v;
    ditto_dtype dtype;
    int add, subtract; /* how often each replica adds and subtracts */
};

static ditto_status add_and_subtract(ditto_replica *self, void *argument)
{
    struct writing *w = argument;
    char value[COUNT * 16];
    put_all(w->dtype, value, 1);
    for (int i = 0; i < w->add; i++)
        DITTO_TRY(ditto_assign(self, w->v, DITTO_ASSIGN_ADD, value));
    for (int i = 0; i < w->subtract; i++)
        DITTO_TRY(ditto_assign(self, w->v, DITTO_ASSIGN_SUB, value));
    return DITTO_OK;
}

static void expect(const struct writing *w, int factor)
{
    char found[COUNT * 16], expected[COUNT * 16];
    size_t bytes = COUNT * ditto_dtype_bytes(w->dtype);
    assert_ok(ditto_variable_read(w->v, found, bytes));
    put_all(w->dtype, expected, factor);
    if (memcmp(found, expected, bytes) != 0)
        fail_msg("%s: the bits are not those of %d times the value", ditto_dtype_name(w->dtype), factor);
}

static void rules_8_7_and_8_9_hold_for_every_dtype(void **state)
{
    for (int dtype = next_dtype(0); dtype <= DTI_NUM_DTYPES; dtype = next_dtype(dtype))
        for (uint32_t n = 1; n <= 3; n++)
            for (int sync = DITTO_ON_WRITE; sync <= DITTO_ON_READ; sync++) {
                ditto_strategy *s = make_strategy(n, NULL);
                struct writing w = { .dtype = (ditto_dtype)dtype, .add = 5, .subtract = 2 };
                w.v = make(s, w.dtype, (ditto_synchronization)sync, DITTO_AGGREGATE_SUM,
                           DITTO_COPIES_DEFAULT);
                run_all(s, add_and_subtract, &w, &w.report);
                expect(&w, 3 * (int)n);
                assert_ok(ditto_variable_destroy(w.v));
                assert_ok(ditto_strategy_destroy(s));
            }
}

static ditto_status scatter_rows(ditto_replica *self, void *argument)
{
    struct writing *w = argument;
    char value[COUNT * 16];
    int64_t indices[COUNT];
    ditto_slices slices = { indices, value, COUNT, 1, w->dtype };
    put_all(w->dtype, value, 4);
    for (int i = 0; i < COUNT; i++)
        indices[i] = i;
    return ditto_scatter(self, w->v, DITTO_SCATTER_ADD, &slices);
}

static void rule_8_13_holds_for_every_dtype(void **state)
{
    for (int dtype = next_dtype(0); dtype <= DTI_NUM_DTYPES; dtype = next_dtype(dtype))
        for (uint32_t n = 1; n <= 2; n++)
            for (int mean = 0; mean <= reference_is_float((ditto_dtype)dtype); mean++) {
                ditto_strategy *s = make_strategy(n, NULL);
                struct writing w = { .dtype = (ditto_dtype)dtype };
                w.v = make(s, w.dtype, DITTO_ON_WRITE, mean ? DITTO_AGGREGATE_MEAN : DITTO_AGGREGATE_SUM,
                           DITTO_COPIES_PER_REPLICA);
                run_all(s, scatter_rows, &w, &w.report);
                expect(&w, mean ? 4 : 4 * (int)n);
                assert_ok(ditto_variable_destroy(w.v));
                assert_ok(ditto_strategy_destroy(s));
            }
}

static void rules_8_6_and_8_12_hold_for_every_dtype(void **state)
{
    char value[COUNT * 16];
    ditto_strategy *s = make_strategy(3, NULL);
    for (int dtype = next_dtype(0); dtype <= DTI_NUM_DTYPES; dtype = next_dtype(dtype))
        for (int sync = DITTO_ON_WRITE; sync <= DITTO_ON_READ; sync++) {
            size_t bytes = COUNT * ditto_dtype_bytes((ditto_dtype)dtype);
            struct writing w = { .dtype = (ditto_dtype)dtype };
            w.v = make(s, w.dtype, (ditto_synchronization)sync, DITTO_AGGREGATE_ONLY_FIRST_REPLICA,
                       DITTO_COPIES_PER_REPLICA);
            put_all(w.dtype, value, 4);
            assert_ok(ditto_variable_assign(w.v, DITTO_ASSIGN, value, bytes));
            assert_ok(ditto_variable_assign(w.v, DITTO_ASSIGN_ADD, value, bytes));
            put_all(w.dtype, value, 3);
            assert_ok(ditto_variable_assign(w.v, DITTO_ASSIGN_SUB, value, bytes));
            expect(&w, 5);
            assert_ok(ditto_variable_destroy(w.v));
        }
    ditto_variable *flags = make(s, DITTO_BOOL, DITTO_ON_WRITE, DITTO_AGGREGATE_ONLY_FIRST_REPLICA,
                                 DITTO_COPIES_DEFAULT);
    memset(value, 1, COUNT);
    assert_ok(ditto_variable_assign(flags, DITTO_ASSIGN, value, COUNT));
    assert_status(ditto_variable_assign(flags, DITTO_ASSIGN_ADD, value, COUNT), DITTO_ERR_UNSUPPORTED);
    assert_ok(ditto_variable_destroy(flags));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_11_parts_of_every_integer_add_up(void **state)
{
    static const int64_t extremes[] = {
        INT64_MIN, INT64_MAX, -1, 0, 1, 7, -13, 1000003, -128, 127, 255, 65535
    };
    for (size_t c = 0; c < replica_counts_length; c++)
        for (int dtype = next_dtype(0); dtype <= DTI_NUM_DTYPES; dtype = next_dtype(dtype)) {
            if (reference_is_float((ditto_dtype)dtype))
                continue;
            ditto_strategy *s = make_strategy(replica_counts[c], NULL);
            ditto_variable *v = make(s, (ditto_dtype)dtype, DITTO_ON_READ, DITTO_AGGREGATE_SUM,
                                     DITTO_COPIES_DEFAULT);
            size_t bytes = ditto_dtype_bytes((ditto_dtype)dtype);
            char value[COUNT * 8], found[COUNT * 8];
            for (size_t i = 0; i < COUNT; i++)
                memcpy(value + i * bytes, &extremes[i % (sizeof extremes / sizeof extremes[0])], bytes);
            assert_ok(ditto_variable_assign(v, DITTO_ASSIGN, value, COUNT * bytes));
            assert_ok(ditto_variable_read(v, found, COUNT * bytes));
            assert_memory_equal(found, value, COUNT * bytes);
            assert_ok(ditto_variable_destroy(v));
            assert_ok(ditto_strategy_destroy(s));
        }
}

/* -- values -- */

static ditto_status fill_copy(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                              void *user, ditto_tensor *result)
{
    memcpy(copy->data, arguments[0].data, ditto_tensor_bytes(copy));
    return DITTO_OK;
}

/* Sets the component of replica i to i + 1, and returns these numbers as a per-replica value. */
static void make_different(ditto_strategy *s, ditto_variable *v, ditto_value **each)
{
    static double components[8][COUNT];
    ditto_tensor tensors[8];
    for (uint32_t i = 0; i < num_local(s); i++) {
        for (int k = 0; k < COUNT; k++)
            components[i][k] = first_local(s) + i + 1;
        tensors[i] = (ditto_tensor){
            .data = components[i], .dtype = DITTO_F64, .rank = 1, .shape = { COUNT }
        };
    }
    assert_ok(ditto_strategy_value_from_tensors(s, tensors, 1, each));
    const ditto_value *arguments[] = { *each };
    assert_ok(ditto_variable_update(v, fill_copy, NULL, arguments, 1, NULL, NULL));
}

static double component(ditto_variable *v, uint32_t replica)
{
    const void *data;
    assert_ok(component_of(v, replica, &data));
    for (int i = 1; i < COUNT; i++)
        assert_true(((const double *)data)[i] == ((const double *)data)[0]);
    return *(const double *)data;
}

static void rule_8_6_an_assignment_from_a_mirrored_variable_goes_component_by_component(void **state)
{
    ditto_value *each, *value, *foreign;
    ditto_strategy *s = make_strategy(4, NULL), *other = make_strategy(1, NULL);
    ditto_variable *from = make(s, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *to = make(s, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *of_f32 = make(s, DITTO_F32, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    ditto_variable *far = make(other, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    make_different(s, from, &each);
    assert_ok(ditto_variable_value(from, &value));
    assert_ok(ditto_variable_assign_value(to, DITTO_ASSIGN, value));
    assert_ok(ditto_variable_assign_value(to, DITTO_ASSIGN_ADD, value));
    for (uint32_t i = first_local(s); i < end_local(s); i++)
        assert_true(component(to, i) == 2 * (i + 1));
    assert_ok(ditto_variable_assign_value(to, DITTO_ASSIGN_SUB, value));
    /* A per-replica value is refused. */
    assert_status(ditto_variable_assign_value(to, DITTO_ASSIGN, each), DITTO_ERR_INVALID);
    assert_message("reduce it first");
    assert_status(ditto_variable_assign_value(of_f32, DITTO_ASSIGN, value), DITTO_ERR_INVALID);
    assert_status(ditto_variable_assign_value(to, DITTO_ASSIGN, NULL), DITTO_ERR_INVALID);
    assert_status(ditto_variable_assign_value(to, (ditto_assign_op)4, value), DITTO_ERR_RANGE);
    assert_ok(ditto_variable_value(far, &foreign));
    assert_status(ditto_variable_assign_value(to, DITTO_ASSIGN, foreign), DITTO_ERR_CONTEXT);
    for (uint32_t i = first_local(s); i < end_local(s); i++)
        assert_true(component(to, i) == i + 1);
    assert_ok(ditto_value_destroy(each));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_value_destroy(foreign));
    ditto_variable *all[] = { from, to, of_f32, far };
    for (size_t i = 0; i < 4; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(other));
}

static void rule_8_6_a_variable_that_takes_one_value_is_assigned_the_first_component(void **state)
{
    ditto_value *each, *value;
    ditto_strategy *s = make_strategy(4, NULL);
    ditto_variable *from = make(s, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT);
    ditto_variable *shared = make(s, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    ditto_variable *total = make(s, DITTO_F64, DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    make_different(s, from, &each);
    assert_ok(ditto_variable_value(from, &value));
    assert_ok(ditto_variable_assign_value(shared, DITTO_ASSIGN, value));
    assert_true(component(shared, end_local(s) - 1) == 1);
    assert_ok(ditto_variable_assign_value(total, DITTO_ASSIGN, value));
    double whole[COUNT];
    assert_ok(ditto_variable_read(total, whole, sizeof whole));
    assert_true(whole[0] == 1);
    assert_ok(ditto_value_destroy(each));
    assert_ok(ditto_value_destroy(value));
    ditto_variable *all[] = { from, shared, total };
    for (size_t i = 0; i < 3; i++)
        assert_ok(ditto_variable_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(s));
}

/* A variable of which a component is written back to it. */
static const struct {
    const char *name;
    ditto_synchronization sync;
    ditto_aggregation how;
    ditto_copies copies;
    bool differ; /* the components differ before the write */
} written_back[] = {
    { "equal copies", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_COPIES_PER_REPLICA, false },
    { "copies that differ", DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_COPIES_PER_REPLICA, true },
    { "split copies", DITTO_ON_WRITE, DITTO_AGGREGATE_NONE, DITTO_COPIES_DEFAULT, true },
    { "sync-on-read, SUM", DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT, true },
    { "sync-on-read, MEAN", DITTO_ON_READ, DITTO_AGGREGATE_MEAN, DITTO_COPIES_DEFAULT, true },
};

/* Writes the component of replica `from` to the whole variable and checks all components. If there are
 * several hosts, each writes a component of its own replicas, and they have to be equal. */
static void write_back(size_t k, uint32_t n, ditto_assign_op how, uint32_t from)
{
    ditto_strategy *s = make_strategy(n, NULL);
    ditto_variable *v = make(s, DITTO_F64, written_back[k].sync, written_back[k].how, written_back[k].copies);
    bool sum = written_back[k].sync == DITTO_ON_READ && written_back[k].how == DITTO_AGGREGATE_SUM;
    bool differ = written_back[k].differ, refused = sum && how != DITTO_ASSIGN;
    bool diverge = differ && num_local(s) < n; /* the hosts write different components */
    ditto_value *each = NULL, *value, *part[8];
    double five[COUNT];
    uint32_t count;
    for (int i = 0; i < COUNT; i++)
        five[i] = 5;
    if (differ)
        make_different(s, v, &each);
    else
        assert_ok(ditto_variable_assign(v, DITTO_ASSIGN, five, sizeof five));
    assert_ok(ditto_variable_value(v, &value));
    assert_ok(ditto_strategy_local_results(s, value, part, &count));
    assert_int_equal(count, num_local(s));
    assert_status(ditto_variable_assign_value(v, how, part[from % count]), diverge   ? DITTO_ERR_DIVERGED
                                                                           : refused ? DITTO_ERR_INVALID
                                                                                     : DITTO_OK);
    for (uint32_t r = first_local(s); r < end_local(s); r++) {
        double written = differ ? from + 1 : 5, old = differ ? r + 1 : 5;
        double expected = diverge || refused        ? old
                          : how == DITTO_ASSIGN     ? written / (sum ? n : 1)
                          : how == DITTO_ASSIGN_ADD ? old + written
                                                    : old - written;
        if (component(v, r) != expected)
            fail_msg("%s, %u replicas, write %d, component %u: component %u is %g, not %g",
                     written_back[k].name, n, (int)how, from, r, component(v, r), expected);
    }
    for (uint32_t i = 0; i < count; i++)
        assert_ok(ditto_value_destroy(part[i]));
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_value_destroy(each));
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_8_6_a_component_of_a_variable_may_be_written_to_the_whole_variable(void **state)
{
    for (size_t k = 0; k < sizeof written_back / sizeof written_back[0]; k++)
        for (uint32_t n = 1; n <= 3; n++)
            for (int how = DITTO_ASSIGN; how <= DITTO_ASSIGN_SUB; how++)
                for (uint32_t from = 0; from < n; from++)
                    write_back(k, n, (ditto_assign_op)how, from);
}

struct reading {
    struct report report;
    ditto_variable *v;
};

static ditto_status read_own(ditto_replica *self, void *argument)
{
    struct reading *r = argument;
    const void *data;
    DITTO_TRY(ditto_read(self, r->v, &data));
    EXPECT(&r->report, *(const double *)data == ditto_replica_id(self) + 1);
    return DITTO_OK;
}

static void rule_8_8_a_mirrored_read_is_the_nearest_component_and_never_aggregates(void **state)
{
    ditto_value *each;
    double found[COUNT];
    ditto_strategy *s = make_strategy(3, NULL);
    struct reading r = { .v = make(s, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_NONE,
                                   DITTO_COPIES_DEFAULT) };
    make_different(s, r.v, &each);
    run_all(s, read_own, &r, &r.report);
    assert_ok(ditto_variable_read(r.v, found, sizeof found));
    assert_true(found[0] == first_local(s) + 1);
    assert_ok(ditto_value_destroy(each));
    assert_ok(ditto_variable_destroy(r.v));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- generations, own components, lists -- */

struct counting {
    struct report report;
    ditto_variable *mirrored, *on_read;
};

static ditto_status count_writes(ditto_replica *self, void *argument)
{
    struct counting *c = argument;
    double value[COUNT] = { 0 };
    void *data;
    const void *seen;
    uint64_t mirrored_before = generation_of(c->mirrored), on_read_before = generation_of(c->on_read);
    DITTO_TRY(ditto_read(self, c->mirrored, &seen));
    EXPECT(&c->report, ditto_assign(self, c->mirrored, (ditto_assign_op)0, value) == DITTO_ERR_RANGE);
    EXPECT(&c->report, generation_of(c->mirrored) == mirrored_before);
    DITTO_TRY(ditto_assign(self, c->mirrored, DITTO_ASSIGN_ADD, value));
    EXPECT(&c->report, generation_of(c->mirrored) == mirrored_before + 1);
    if (ditto_replica_id(self) != 0)
        return DITTO_OK;
    DITTO_TRY(ditto_assign(self, c->on_read, DITTO_ASSIGN_ADD, value)); /* works on one replica alone */
    DITTO_TRY(ditto_component(self, c->on_read, &data));
    *(double *)data += 5;
    EXPECT(&c->report, generation_of(c->on_read) == on_read_before + 2);
    EXPECT(&c->report, ditto_component(self, c->mirrored, &data) == DITTO_ERR_INVALID);
    return DITTO_OK;
}

static void generations_say_whether_a_variable_was_written(void **state)
{
    double value[COUNT] = { 0 };
    for (size_t i = 0; i < replica_counts_length; i++) {
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        struct counting c = {
            .mirrored = make(s, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT),
            .on_read = make(s, DITTO_F64, DITTO_ON_READ, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT)
        };
        uint64_t before = properties_of(c.mirrored).generation,
                 on_read_before = properties_of(c.on_read).generation;
        run_all(s, count_writes, &c, &c.report);
        assert_true(properties_of(c.mirrored).generation > before);
        /* The two writes of replica 0 are counted on its host. */
        assert_true(properties_of(c.on_read).generation == on_read_before + (first_local(s) == 0 ? 2 : 0));
        before = properties_of(c.mirrored).generation;
        assert_ok(ditto_variable_read(c.mirrored, value, sizeof value));
        assert_status(ditto_variable_assign(c.mirrored, (ditto_assign_op)4, value, sizeof value),
                      DITTO_ERR_RANGE);
        assert_true(properties_of(c.mirrored).generation == before);
        assert_ok(ditto_variable_read(c.on_read, value, sizeof value));
        assert_true(value[0] == 5);
        assert_ok(ditto_variable_assign(c.mirrored, DITTO_ASSIGN, value, sizeof value));
        assert_true(properties_of(c.mirrored).generation > before);
        assert_ok(ditto_variable_destroy(c.mirrored));
        assert_ok(ditto_variable_destroy(c.on_read));
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void a_strategy_lists_its_variables_in_order(void **state)
{
    ditto_variable *v[3], *found[3];
    size_t count;
    ditto_strategy *s = make_strategy(2, NULL), *other = make_strategy(1, NULL);
    for (int i = 0; i < 3; i++)
        v[i] = make(i == 1 ? other : s, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    assert_ok(ditto_strategy_variables(s, found, 1, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(found[0], v[0]);
    assert_ok(ditto_strategy_variables(s, found, 3, &count));
    assert_ptr_equal(found[1], v[2]);
    assert_ok(ditto_variable_destroy(v[2]));
    v[2] = make(s, DITTO_F64, DITTO_ON_WRITE, DITTO_AGGREGATE_SUM, DITTO_COPIES_DEFAULT);
    assert_ok(ditto_variable_destroy(v[0]));
    assert_ok(ditto_strategy_variables(s, found, 3, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(found[0], v[2]);
    assert_ok(ditto_strategy_destroy(s)); /* before its variables are destroyed */
    assert_ok(ditto_variable_destroy(v[1]));
    assert_ok(ditto_variable_destroy(v[2]));
    assert_ok(ditto_strategy_destroy(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_8_7_and_8_9_hold_for_every_dtype),
        cmocka_unit_test(rule_8_13_holds_for_every_dtype),
        cmocka_unit_test(rules_8_6_and_8_12_hold_for_every_dtype),
        cmocka_unit_test(rule_8_11_parts_of_every_integer_add_up),
        cmocka_unit_test(rule_8_6_an_assignment_from_a_mirrored_variable_goes_component_by_component),
        cmocka_unit_test(rule_8_6_a_variable_that_takes_one_value_is_assigned_the_first_component),
        cmocka_unit_test(rule_8_6_a_component_of_a_variable_may_be_written_to_the_whole_variable),
        cmocka_unit_test(rule_8_8_a_mirrored_read_is_the_nearest_component_and_never_aggregates),
        cmocka_unit_test(generations_say_whether_a_variable_was_written),
        cmocka_unit_test(a_strategy_lists_its_variables_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
