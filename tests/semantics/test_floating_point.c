/* tests/semantics/test_floating_point.c - the floating-point environment of functions on replicas. No result
 * of the library depends on it. */
#include "support/as_hosts.h"
#include "support/support.h"

#include <ditto/optimizer.h>
#include <ditto/rows.h>
#include <ditto/slices.h>

#if defined(__x86_64__)

#define STANDARD 0x1f80u
#define FLUSH    0x8040u /* FTZ and DAZ */
#define UPWARD   0x4000u
static const unsigned environments[] = { STANDARD, STANDARD | FLUSH, STANDARD | UPWARD,
                                         STANDARD | FLUSH | UPWARD };
enum { ENVIRONMENTS = 4, REPLICAS = 4, DEVICES = 2, FEW = 8, MANY = 50000 };

static unsigned modes(void)
{
    return __builtin_ia32_stmxcsr() & ~0x3fu;
}
static void set_modes(unsigned modes)
{
    __builtin_ia32_ldmxcsr(modes);
}

/* Creates a strategy of REPLICAS replicas with DEVICES devices each, so that helpers work too. */
static ditto_strategy *make(ditto_floating floating, ditto_caller caller)
{
    return make_wide_strategy(REPLICAS, DEVICES, &OPTIONS(strategy, .floating = floating, .caller = caller));
}

/* -- the environment of a function -- */

struct seen {
    unsigned function[REPLICAS], inner[REPLICAS], update[REPLICAS];
    unsigned device[REPLICAS][DEVICES], loop[REPLICAS][DEVICES];
    unsigned merge, after_inner; /* in the merge function, before and after the run inside it */
    ditto_variable *variable;
    struct report report;
};
static ditto_status see_on_device(uint32_t device, void *seen)
{
    ((unsigned *)seen)[device] = modes();
    return DITTO_OK;
}
static ditto_status see_in_loop(size_t begin, size_t end, uint32_t device, void *seen)
{
    ((unsigned *)seen)[device] = modes();
    return DITTO_OK;
}
static ditto_status see_inside(ditto_replica *self, void *argument)
{
    ((struct seen *)argument)->inner[ditto_replica_id(self)] = modes();
    return DITTO_OK;
}
static ditto_status run_inside(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                               void *user, ditto_value **result)
{
    struct seen *s = user;
    s->merge = modes();
    ditto_status status = ditto_strategy_run(strategy, see_inside, s);
    s->after_inner = modes();
    return status;
}
static ditto_status see_update(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t count,
                               void *user, ditto_tensor *result)
{
    *(_Atomic unsigned *)user = modes();
    return DITTO_OK;
}
static ditto_status see(ditto_replica *self, void *argument)
{
    struct seen *s = argument;
    uint32_t id = ditto_replica_id(self);
    const ditto_value *merged = NULL;
    s->function[id] = modes();
    for (uint32_t d = 0; d < DEVICES; d++)
        EXPECT(&s->report, ditto_on_logical_device(self, d, see_on_device, s->device[id]) == DITTO_OK);
    EXPECT(&s->report, ditto_join(self) == DITTO_OK);
    EXPECT(&s->report, ditto_parallel_for(self, see_in_loop, s->loop[id], 0, DEVICES, 1,
                                          DITTO_SCHEDULE_STATIC) == DITTO_OK);
    EXPECT(&s->report,
           ditto_update(self, s->variable, see_update, &s->update[id], NULL, 0, NULL) == DITTO_OK);
    EXPECT(&s->report, ditto_merge_call(self, run_inside, s, NULL, 0, &merged) == DITTO_OK);
    EXPECT(&s->report, modes() == s->function[id]);
    return DITTO_OK;
}

static void expect_everywhere(const struct seen *seen, unsigned expected)
{
    assert_int_equal(seen->merge, expected);
    assert_int_equal(seen->after_inner, expected);
    for (uint32_t r = 0; r < REPLICAS; r++) {
        assert_int_equal(seen->function[r], expected);
        assert_int_equal(seen->inner[r], expected);
        assert_int_equal(seen->update[r], expected);
        for (uint32_t d = 0; d < DEVICES; d++) {
            assert_int_equal(seen->device[r][d], expected);
            assert_int_equal(seen->loop[r][d], expected);
        }
    }
}

static void functions_run_in_the_standard_environment_or_in_that_of_the_caller(void **state)
{
    static const ditto_floating floating[] = { DITTO_FLOATING_DEFAULT, DITTO_FLOATING_STANDARD,
                                               DITTO_FLOATING_CALLER };
    unsigned before = modes();
    for (ditto_caller caller = DITTO_CALLER_IS_REPLICA_0; caller <= DITTO_CALLER_WAITS; caller++)
        for (int f = 0; f < 3; f++) {
            ditto_strategy *s = make(floating[f], caller);
            double zero = 0;
            ditto_tensor initial = { .data = &zero, .dtype = DITTO_F64 };
            ditto_variable *v;
            assert_ok(ditto_variable_create(s, &initial,
                                            &OPTIONS(variable, .copies = DITTO_COPIES_PER_REPLICA), &v));
            for (int e = 0; e < ENVIRONMENTS; e++) {
                struct seen seen = { .variable = v };
                _Atomic unsigned across = 0;
                unsigned expected = floating[f] == DITTO_FLOATING_CALLER ? environments[e] : STANDARD;
                set_modes(environments[e]);
                ditto_status ran = ditto_strategy_run(s, see, &seen);
                unsigned after = modes();
                ditto_status updated = ditto_variable_update(v, see_update, (void *)&across, NULL, 0, NULL,
                                                             NULL);
                unsigned after_update = modes();
                set_modes(before);
                assert_string_equal(seen.report.first_failure, "");
                assert_ok(ran);
                assert_ok(updated);
                assert_int_equal(after, environments[e]);
                assert_int_equal(after_update, environments[e]);
                assert_int_equal(across, expected);
                expect_everywhere(&seen, expected);
            }
            assert_ok(ditto_variable_destroy(v));
            assert_ok(ditto_strategy_destroy(s));
        }
}

static void the_default_strategys_loops_restore_the_callers_environment(void **state)
{
    unsigned before = modes(), seen = 0;
    for (int e = 0; e < ENVIRONMENTS; e++) {
        set_modes(environments[e]);
        ditto_status ran = ditto_parallel_for(ditto_get_replica_context(), see_in_loop, &seen, 0, 1, 1,
                                              DITTO_SCHEDULE_STATIC);
        unsigned after = modes();
        set_modes(before);
        assert_ok(ran);
        assert_int_equal(after, environments[e]);
        assert_int_equal(seen, STANDARD);
    }
}

static void an_unknown_environment_is_refused(void **state)
{
    ditto_strategy *s;
    assert_status(
        ditto_strategy_create(DITTO_MIRRORED, &OPTIONS(strategy, .floating = (ditto_floating)3), &s),
        DITTO_ERR_RANGE);
    assert_message("floating = 3");
}

/* -- results of the library -- */

/* Returns a random number. Sums and products of such numbers are rounded, and some of the numbers are
 * denormal. They are made from integers, so no environment changes them. */
static float number(uint64_t *random)
{
    uint32_t bits = (uint32_t)test_random(random);
    bits = bits % 3 == 0 ? bits & 0x807fffffu : (bits & 0x83ffffffu) | 0x3c000000u;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

struct results {
    float small[FEW], large[MANY], mean[FEW], product[FEW], own_part[FEW], started[MANY], rows[4 * FEW],
        dense[FEW], assigned[FEW], scattered[FEW], counted[FEW], trained[FEW], descended[FEW], block;
    double normal[9], average;

    /* The value of the counter outside of the run, only in the results of replica 0. */
    float across[FEW];
};
struct computing {
    ditto_variable *mirrored, *table, *counter, *trained, *descended;
    ditto_optimizer *adam, *sgd;
    struct results *results; /* shape [REPLICAS] */
    struct report report;
};

static ditto_status keep(ditto_replica *self, struct computing *c, ditto_variable *v, float *to)
{
    const void *value;
    EXPECT(&c->report, ditto_read(self, v, &value) == DITTO_OK);
    memcpy(to, value, FEW * sizeof *to);
    return DITTO_OK;
}

static ditto_status compute_slices(ditto_replica *self, struct computing *c, float *numbers)
{
    struct results *r = &c->results[ditto_replica_id(self)];
    int64_t index[2] = { 1, 1 }, merged_index[8];
    float merged[8];
    ditto_slices in = { .indices = index, .values = numbers, .rows = 2, .row_count = 1, .dtype = DITTO_F32 };
    ditto_slices out = {
        .indices = merged_index, .values = merged, .rows = 8, .row_count = 1, .dtype = DITTO_F32
    };
    EXPECT(&c->report, ditto_all_reduce_slices(self, &in, &out, DITTO_MEAN,
                                               &OPTIONS(reduce, .flags = DITTO_SLICES_MERGE)) == DITTO_OK);
    memcpy(r->rows, merged, out.rows * sizeof *merged);
    EXPECT(&c->report, add_slices_to_dense(self, &in, r->dense, FEW, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&c->report, ditto_scatter(self, c->table, DITTO_SCATTER_ADD, &in) == DITTO_OK);
    return keep(self, c, c->table, r->scattered);
}

static ditto_status compute_variables(ditto_replica *self, struct computing *c, float *numbers)
{
    struct results *r = &c->results[ditto_replica_id(self)];
    ditto_tensor gradient = { .data = numbers, .dtype = DITTO_F32, .rank = 1, .shape = { FEW } };
    EXPECT(&c->report, ditto_assign(self, c->mirrored, DITTO_ASSIGN_ADD, numbers) == DITTO_OK);
    DITTO_TRY(keep(self, c, c->mirrored, r->assigned));
    EXPECT(&c->report, ditto_assign(self, c->counter, DITTO_ASSIGN_ADD, numbers) == DITTO_OK);
    EXPECT(&c->report, ditto_assign(self, c->counter, DITTO_ASSIGN_ADD, numbers + FEW) == DITTO_OK);
    DITTO_TRY(keep(self, c, c->counter, r->counted));
    for (int step = 0; step < 3; step++) {
        EXPECT(&c->report, ditto_apply(self, c->adam, &gradient, NULL) == DITTO_OK);
        EXPECT(&c->report, ditto_apply(self, c->sgd, &gradient, NULL) == DITTO_OK);
    }
    DITTO_TRY(keep(self, c, c->trained, r->trained));
    return keep(self, c, c->descended, r->descended);
}

static ditto_status compute(ditto_replica *self, void *argument)
{
    struct computing *c = argument;
    uint32_t id = ditto_replica_id(self);
    struct results *r = &c->results[id];
    uint64_t seed = 17 + id;
    float *numbers = malloc(MANY * sizeof *numbers);
    ditto_tensor losses = { .data = numbers, .dtype = DITTO_F32, .rank = 1, .shape = { 1000 } };
    ditto_pending pending;
    ditto_random random = ditto_random_make(1, id);
    EXPECT(&c->report, numbers != NULL);
    for (size_t i = 0; i < MANY; i++)
        numbers[i] = number(&seed);
    EXPECT(&c->report,
           ditto_all_reduce(self, numbers, r->small, FEW, DITTO_F32, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&c->report,
           ditto_all_reduce(self, numbers, r->large, MANY, DITTO_F32, DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&c->report,
           ditto_all_reduce(self, numbers, r->mean, FEW, DITTO_F32, DITTO_MEAN, NULL) == DITTO_OK);
    EXPECT(&c->report,
           ditto_all_reduce(self, numbers, r->product, FEW, DITTO_F32, DITTO_PROD, NULL) == DITTO_OK);
    EXPECT(&c->report, ditto_reduce_scatter(self, numbers, r->own_part, FEW / REPLICAS, NULL, DITTO_F32,
                                            DITTO_SUM, NULL) == DITTO_OK);
    EXPECT(&c->report, ditto_all_reduce_start(self, numbers, r->started, MANY, DITTO_F32, DITTO_SUM, NULL,
                                              &pending) == DITTO_OK);
    EXPECT(&c->report, ditto_wait(self, &pending, NULL) == DITTO_OK);
    EXPECT(&c->report, ditto_block_sum(self, numbers, &r->block, MANY, DITTO_F32, NULL) == DITTO_OK);
    EXPECT(&c->report, ditto_average_loss(self, &losses, NULL, 0, &r->average) == DITTO_OK);
    ditto_random_normal_f64(&random, r->normal, 9);
    ditto_status status = compute_slices(self, c, numbers);
    if (status == DITTO_OK)
        status = compute_variables(self, c, numbers);
    free(numbers);
    return status;
}

static ditto_variable *make_variable(ditto_strategy *s, ditto_synchronization synchronization)
{
    float values[FEW];
    uint64_t seed = 5;
    ditto_tensor initial = { .data = values, .dtype = DITTO_F32, .rank = 1, .shape = { FEW } };
    ditto_variable *v;
    for (int i = 0; i < FEW; i++)
        values[i] = number(&seed);
    assert_ok(ditto_variable_create(
        s, &initial,
        &OPTIONS(variable, .synchronization = synchronization, .aggregation = DITTO_AGGREGATE_MEAN), &v));
    return v;
}

static ditto_optimizer *make_optimizer(ditto_variable *v, ditto_rule rule)
{
    ditto_optimizer *o;
    ditto_optimizer_options options = OPTIONS(
        optimizer, .name = rule == DITTO_RULE_ADAM ? "adam" : "sgd", .rule = rule, .learning_rate = 0.1,
        .momentum = rule == DITTO_RULE_SGD ? 0.9 : 0, .weight_decay = 0.01,
        .clip_norm = rule == DITTO_RULE_ADAM ? 0.5 : 0, .op = DITTO_MEAN);
    assert_ok(ditto_optimizer_create(&v, 1, &options, &o));
    return o;
}

static void compute_all(unsigned environment, struct results *results)
{
    ditto_strategy *s = make(DITTO_FLOATING_CALLER, DITTO_CALLER_DEFAULT);
    struct computing c = { .mirrored = make_variable(s, DITTO_ON_WRITE),
                           .table = make_variable(s, DITTO_ON_WRITE),
                           .counter = make_variable(s, DITTO_ON_READ),
                           .trained = make_variable(s, DITTO_ON_WRITE),
                           .descended = make_variable(s, DITTO_ON_WRITE),
                           .results = results };
    unsigned before = modes();
    c.adam = make_optimizer(c.trained, DITTO_RULE_ADAM);
    c.sgd = make_optimizer(c.descended, DITTO_RULE_SGD);
    set_modes(environment);
    ditto_status status = ditto_strategy_run(s, compute, &c);
    unsigned after = modes();
    ditto_status read = ditto_variable_read(c.counter, results[0].across, sizeof results[0].across);
    set_modes(before);
    assert_string_equal(c.report.first_failure, "");
    assert_ok(status);
    assert_ok(read);
    assert_int_equal(after, environment);
    assert_ok(ditto_optimizer_destroy(c.adam));
    assert_ok(ditto_optimizer_destroy(c.sgd));
    ditto_variable *const variables[] = { c.mirrored, c.table, c.counter, c.trained, c.descended };
    for (int i = 0; i < 5; i++)
        assert_ok(ditto_variable_destroy(variables[i]));
    assert_ok(ditto_strategy_destroy(s));
}

static void results_of_the_library_have_the_same_bits_in_every_environment(void **state)
{
    struct results *first = calloc(REPLICAS, sizeof *first), *later = calloc(REPLICAS, sizeof *later);
    assert_true(first != NULL && later != NULL);
    for (int e = 0; e < ENVIRONMENTS; e++) {
        struct results *to = e == 0 ? first : later;
        memset(to, 0, REPLICAS * sizeof *to);
        compute_all(environments[e], to);
        for (int r = 0; e > 0 && r < REPLICAS; r++) {
#define SAME(member) assert_memory_equal(&later[r].member, &first[r].member, sizeof later[r].member)
            SAME(small);
            SAME(large);
            SAME(mean);
            SAME(product);
            SAME(own_part);
            SAME(started);
            SAME(rows);
            SAME(dense);
            SAME(assigned);
            SAME(scattered);
            SAME(counted);
            SAME(trained);
            SAME(descended);
            SAME(block);
            SAME(normal);
            SAME(average);
            SAME(across);
        }
    }
    free(first);
    free(later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_run_in_the_standard_environment_or_in_that_of_the_caller),
        cmocka_unit_test(the_default_strategys_loops_restore_the_callers_environment),
        cmocka_unit_test(an_unknown_environment_is_refused),
        cmocka_unit_test(results_of_the_library_have_the_same_bits_in_every_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: the test sets modes of x86-64 */
}

#endif
