/* tests/semantics/optimizer/test_optimizer.c - ditto_apply: compares every rule with its formula, element by
 * element, on variables with shared copies, with shards, and with a copy for each replica. Also tests slots,
 * options and errors. */
#include "semantics/optimizer/train_variables.h"
#include "support/as_hosts.h"
#include "sync/kernels/kernel.h"

#include <math.h>

#include "sync/sync.h"
#include "vars/optimizer/optimizer_step.h"

#define STEPS 3

/* An element and its slots as they should be, computed by the test. */
struct expected {
    double value, slot[2];
};

/* Updates one element by one step, in single or double precision. */
#define ARITHMETIC(type, root)                                                                             \
    static void expect_##type(struct expected *e, const ditto_optimizer_options *o, double gradient,       \
                              int step)                                                                    \
    {                                                                                                      \
        type x = (type)e->value, g = (type)gradient, m = (type)e->slot[0], v = (type)e->slot[1];           \
        type rate = (type)o->learning_rate, b1 = (type)o->beta1, b2 = (type)o->beta2,                      \
             mu = (type)o->momentum;                                                                       \
        if (o->weight_decay != 0)                                                                          \
            x = x - (type)(o->learning_rate * o->weight_decay) * x;                                        \
        if (o->rule == DITTO_RULE_SGD && mu == 0) {                                                        \
            x = x - rate * g;                                                                              \
        } else if (o->rule == DITTO_RULE_SGD) {                                                            \
            m = mu * m - rate * g;                                                                         \
            x = x + (o->nesterov ? mu * m - rate * g : m);                                                 \
        } else if (o->rule == DITTO_RULE_ADAM) {                                                           \
            m = b1 * m + (type)(1 - o->beta1) * g;                                                         \
            v = b2 * v + (type)(1 - o->beta2) * g * g;                                                     \
            type scaled = (type)(o->learning_rate / (1 - pow(o->beta1, step)));                            \
            x = x - scaled * m / (root(v) * (type)(1 / sqrt(1 - pow(o->beta2, step))) + (type)o->epsilon); \
        } else if (o->rule == DITTO_RULE_FUNCTION) {                                                       \
            m = m + g;                                                                                     \
            x = x - m * (type)step;                                                                        \
        } else {                                                                                           \
            x = o->rule == DITTO_RULE_ASSIGN ? g : o->rule == DITTO_RULE_ADD ? x + g : x - g;              \
        }                                                                                                  \
        *e = (struct expected){ x, { m, v } };                                                             \
    }
ARITHMETIC(float, sqrtf)
ARITHMETIC(double, sqrt)

/* A rule of the test: slot0 is the sum of all gradients, and x = x - slot0 * step. */
static void own_rule(const ditto_rule_range *range, void *user)
{
    for (size_t i = 0; i < range->count; i++) {
        double m = get(range->dtype, range->slot[0], i) + get(range->dtype, range->gradient, i);
        put(range->dtype, range->slot[0], i, m);
        double product = get(range->dtype, range->slot[0], i) * (double)range->step;
        put(range->dtype, range->value, i,
            range->dtype == DITTO_F32 ? (double)((float)get(range->dtype, range->value, i) - (float)product)
                                      : get(range->dtype, range->value, i) - product);
    }
}

static void check_values(struct training *t, const ditto_optimizer_options *o, uint32_t n)
{
    static char found[5000 * 2 * 8], slot_values[5000 * 2 * 8];
    ditto_variable *slot = NULL;
    for (uint32_t k = 0; k < VARIABLES; k++) {
        size_t bytes = rows[k] * 2 * ditto_dtype_bytes(t->dtype);
        const char *name = o->rule == DITTO_RULE_ADAM       ? "m"
                           : o->rule == DITTO_RULE_FUNCTION ? "slot0"
                                                            : "momentum";
        ditto_optimizer_options own = *o; /* of this variable */
        if (o->rate_factors != NULL)
            own.learning_rate = o->learning_rate * o->rate_factors[k];
        if (o->weight_decays != NULL)
            own.weight_decay = o->weight_decays[k];
        bool has_slot = ditto_optimizer_slot(t->optimizer, k, name, &slot) == DITTO_OK;
        assert_int_equal(has_slot,
                         o->rule == DITTO_RULE_ADAM || o->rule == DITTO_RULE_FUNCTION || o->momentum != 0);
        assert_ok(ditto_variable_read(t->variable[k], found, bytes));
        if (has_slot)
            assert_ok(ditto_variable_read(slot, slot_values, bytes));
        for (size_t i = 0; i < rows[k] * 2; i++) {
            struct expected e = { first_value(k, i), { 0, 0 } };
            for (int step = 1; step <= STEPS; step++) {
                double gradient = summed(step, n, k, i);
                if (o->op == DITTO_MEAN)
                    gradient = t->dtype == DITTO_F32 ? (double)((float)gradient / (float)n) : gradient / n;
                (t->dtype == DITTO_F32 ? expect_float : expect_double)(&e, &own, gradient, step);
            }
            if (get(t->dtype, found, i) != e.value ||
                (has_slot && get(t->dtype, slot_values, i) != e.slot[0]))
                fail_msg("%u replicas, rule %d, variable %u, element %zu: %.17g, not %.17g", n, (int)o->rule,
                         k, i, get(t->dtype, found, i), e.value);
        }
    }
}

/* If near is not 0, reductions use the algorithm of groups, with groups of `near` replicas. */
static void train(uint32_t n, uint32_t near, ditto_dtype dtype, const ditto_optimizer_options *o)
{
    static struct training t;
    ditto_variable *iterations;
    int64_t steps;
    ditto_tuning tuning = {
        .struct_size = sizeof tuning, .hierarchical_bytes = 1, .block_bytes = 4096, .near_replicas = near
    };
    ditto_strategy *s = make_strategy(n, &OPTIONS(strategy, .tuning = near != 0 ? &tuning : NULL));
    t = (struct training){ .dtype = dtype };
    create_variables(s, &t);
    assert_ok(ditto_optimizer_create(t.variable, VARIABLES, o, &t.optimizer));
    for (t.step = 1; t.step <= STEPS; t.step++)
        run_all(s, take_step, &t, &t.report);
    check_values(&t, o, n);
    iterations = iterations_of(t.optimizer);
    assert_ok(ditto_variable_read(iterations, &steps, sizeof steps));
    assert_int_equal(steps, STEPS);
    destroy_all(s, &t);
}

static const double factors[VARIABLES] = { 0.1, 1, 0, 3 }, decays[VARIABLES] = { 0, 0.1, 0.25, 0 };

static const ditto_optimizer_options rules[] = {
    { .rule = DITTO_RULE_ASSIGN, .learning_rate = 0.5 },
    { .rule = DITTO_RULE_ADD, .learning_rate = 0.5, .op = DITTO_MEAN },
    { .rule = DITTO_RULE_SUB, .learning_rate = 0.5 },
    { .rule = DITTO_RULE_SGD, .learning_rate = 0.1 },
    { .rule = DITTO_RULE_SGD, .learning_rate = 0.1, .momentum = 0.9, .op = DITTO_MEAN },
    { .rule = DITTO_RULE_SGD, .learning_rate = 0.1, .momentum = 0.9, .nesterov = 1, .weight_decay = 0.01 },
    { .rule = DITTO_RULE_ADAM, .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8 },
    { .rule = DITTO_RULE_ADAM,
      .learning_rate = 0.1,
      .beta1 = 0.8,
      .beta2 = 0.99,
      .epsilon = 1e-3,
      .weight_decay = 0.1 },
    { .rule = DITTO_RULE_FUNCTION, .learning_rate = 0.1, .function = own_rule, .num_slots = 1 },
    { .rule = DITTO_RULE_SGD, .learning_rate = 0.1, .rate_factors = factors, .weight_decay = 0.25 },
    { .rule = DITTO_RULE_SGD, .learning_rate = 0.1, .momentum = 0.9, .weight_decays = decays },
    { .rule = DITTO_RULE_ADAM,
      .learning_rate = 0.1,
      .beta1 = 0.9,
      .beta2 = 0.999,
      .epsilon = 1e-8,
      .rate_factors = factors,
      .weight_decays = decays },
};

static void every_rule_computes_its_formula(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
            ditto_optimizer_options o = rules[r];
            o.struct_size = sizeof o;
            train(replica_counts[k], 0, r % 2 ? DITTO_F32 : DITTO_F64, &o);
            train(replica_counts[k], replica_counts[k] == 64 ? 16 : 2, r % 2 ? DITTO_F64 : DITTO_F32, &o);
        }
}

/* The loops of each instruction set that this machine has give the bits of the portable ones. */
static void the_loops_of_all_instruction_sets_give_the_same_bits(void **state)
{
    enum { COUNT = 1003 };
    static double start[4][COUNT], found[2][4][COUNT]; /* elements of f32 use half of each array */
    uint64_t random = test_seed(81);
    for (int which = DITTO_KERNELS_PORTABLE + 1; which <= DITTO_KERNELS_AVX512; which++) {
        dti_kernel_table *table;
        if (dti_kernels_choose((ditto_kernels)which, &table) != DITTO_OK)
            continue;
        for (size_t r = 3; r < 8; r++) /* SGD and Adam, whose loops depend on the instruction set */
            for (int wide = 0; wide < 2; wide++) {
                for (int k = 0; k < 4; k++)
                    for (size_t i = 0; i < COUNT; i++)
                        put(wide ? DITTO_F64 : DITTO_F32, start[k], i,
                            (double)(test_random(&random) % 100000) / 777 + 1);
                for (int side = 0; side < 2; side++) {
                    struct dti_optimizer_step step = dti_optimizer_step_of(&rules[r], 0.1, 3);
                    memcpy(found[side], start, sizeof start);
                    step.loops = dti_optimizer_loops_of(side ? (ditto_kernels)which : DITTO_KERNELS_PORTABLE);
                    ditto_rule_range range = { .dtype = wide ? DITTO_F64 : DITTO_F32,
                                               .count = COUNT,
                                               .gradient = found[side][1],
                                               .slot = { found[side][2], found[side][3] } };
                    dti_optimizer_step_apply(&step, &range, found[side][0], found[side][0]);
                }
                assert_memory_equal(found[0], found[1], sizeof found[0]);
            }
    }
}

/* -- settings of single variables -- */

/* x = x - rate g */
static void descend(const ditto_rule_range *range, void *user)
{
    for (size_t i = 0; i < range->count; i++)
        put(range->dtype, range->value, i,
            get(range->dtype, range->value, i) -
                range->learning_rate * get(range->dtype, range->gradient, i));
}

/* Makes a step, and checks that each variable moved with its own rate. With clipping, the gradients of all
 * variables have been scaled by one factor. */
static void step_with_factors(uint32_t n, ditto_rule rule, double clip)
{
    static struct training t;
    double squares = 0, own_factors[VARIABLES];
    ditto_strategy *s = make_strategy(n, NULL);
    t = (struct training){ .dtype = DITTO_F64, .step = 1 };
    create_variables(s, &t);
    memcpy(own_factors, factors, sizeof factors);
    ditto_optimizer_options o = OPTIONS(optimizer, .rule = rule,
                                        .function = rule == DITTO_RULE_FUNCTION ? descend : NULL,
                                        .learning_rate = 0.5, .rate_factors = own_factors, .clip_norm = clip);
    assert_ok(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer));
    memset(own_factors, 0, sizeof own_factors); /* they were copied */
    run_all(s, take_step, &t, &t.report);
    for (uint32_t k = 0; k < VARIABLES; k++)
        for (size_t i = 0; i < rows[k] * 2; i++)
            squares += summed(1, n, k, i) * summed(1, n, k, i);
    double scale = clip > 0 && sqrt(squares) > clip ? clip / sqrt(squares) : 1;
    for (uint32_t k = 0; k < VARIABLES; k++)
        for (size_t i = 0; i < rows[k] * 2; i += 7)
            assert_true(value_at(&t, k, i) ==
                        first_value(k, i) - 0.5 * factors[k] * (summed(1, n, k, i) * scale));
    destroy_all(s, &t);
}

static void each_variable_has_its_own_rate_and_all_have_one_norm(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++)
        for (int clips = 0; clips < 2; clips++) {
            step_with_factors(replica_counts[k], DITTO_RULE_SGD, clips ? 2.5 : 0);
            step_with_factors(replica_counts[k], DITTO_RULE_FUNCTION, clips ? 2.5 : 0);
        }
}

static void wrong_settings_of_variables_are_refused(void **state)
{
    static struct training t;
    double numbers[VARIABLES] = { 1, 1, 1, 1 };
    ditto_strategy *s = make_strategy(2, NULL);
    t = (struct training){ .dtype = DITTO_F64 };
    create_variables(s, &t);
    ditto_optimizer_options o = OPTIONS(optimizer, .rule = DITTO_RULE_ADD, .rate_factors = numbers);
    assert_status(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer), DITTO_ERR_INVALID);
    assert_message("rate_factors are set, but rule 2 has no learning rate");
    o.rule = DITTO_RULE_SGD;
    numbers[2] = -1;
    assert_status(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer), DITTO_ERR_RANGE);
    assert_message("rate_factors[2] = -1: it must be at least 0 and finite");
    o.rate_factors = NULL;
    o.weight_decays = numbers;
    numbers[2] = NAN;
    assert_status(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer), DITTO_ERR_RANGE);
    assert_message("weight_decays[2] = ");
    numbers[2] = 0;
    o.weight_decay = 0.5;
    assert_status(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer), DITTO_ERR_INVALID);
    assert_message("weight_decay = 0.5 and weight_decays are both set");
    o.weight_decay = 0;
    o.rule = DITTO_RULE_FUNCTION;
    o.function = descend;
    assert_status(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer), DITTO_ERR_INVALID);
    assert_message("weight_decays are set, but only SGD and ADAM");
    o.rule = DITTO_RULE_SGD;
    o.weight_decays = NULL;
    o.rate_factors = numbers;
    o.learning_rate = 1e300;
    numbers[2] = 1e300; /* each is finite, but not their product */
    assert_ok(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer));
    t.step = 1;
    assert_status(ditto_strategy_run(s, take_step, &t), DITTO_ERR_RANGE);
    assert_message("times the largest of rate_factors, 1e+300, is infinite");
    destroy_all(s, &t);
}

/* -- options that are set to 0 -- */

static void a_learning_rate_can_be_set_to_0(void **state)
{
    static struct training t;
    struct step_with w = { .t = &t, .options = DITTO_APPLY_OPTIONS_INIT };
    ditto_strategy *s = make_strategy(3, NULL);
    t = (struct training){ .dtype = DITTO_F64, .step = 1 };
    create_variables(s, &t);
    ditto_optimizer_options o = OPTIONS(optimizer, .rule = DITTO_RULE_SGD, .learning_rate = 0.5);
    assert_ok(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer));
    w.options.has_learning_rate = 1; /* the rate of this step is 0 */
    assert_ok(ditto_strategy_run(s, take_step_with, &w));
    assert_true(value_at(&t, 3, 1234) == first_value(3, 1234));
    w.options.learning_rate = 0.25;
    assert_ok(ditto_strategy_run(s, take_step_with, &w));
    assert_true(value_at(&t, 3, 1234) == first_value(3, 1234) - 0.25 * summed(1, 3, 3, 1234));
    w.options = (ditto_apply_options)DITTO_APPLY_OPTIONS_INIT; /* the rate of the optimizer is used */
    assert_ok(ditto_strategy_run(s, take_step_with, &w));
    assert_true(value_at(&t, 3, 1234) == first_value(3, 1234) - 0.75 * summed(1, 3, 3, 1234));
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    o.learning_rate = 0;
    o.has_learning_rate = 1; /* the rate of the optimizer is 0 */
    assert_ok(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer));
    assert_ok(ditto_strategy_run(s, take_step_with, &w));
    assert_true(value_at(&t, 3, 1234) == first_value(3, 1234) - 0.75 * summed(1, 3, 3, 1234));
    destroy_all(s, &t);
}

/* With betas of 0, Adam keeps nothing of earlier gradients: x = x - rate g / (|g| + epsilon). */
static void betas_and_epsilon_can_be_set_to_0(void **state)
{
    static struct training t;
    struct step_with w = { .t = &t, .options = DITTO_APPLY_OPTIONS_INIT };
    double expected[2];
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_optimizer_options o = OPTIONS(optimizer, .rule = DITTO_RULE_ADAM, .learning_rate = 0.5);
    o.has_beta1 = o.has_beta2 = o.has_epsilon = 1;
    t = (struct training){ .dtype = DITTO_F64, .step = 1 };
    create_variables(s, &t);
    assert_ok(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer));
    for (size_t i = 0; i < 2; i++) {
        double g = summed(1, 2, 0, i);
        assert_true(g != 0);
        expected[i] = first_value(0, i) - (g > 0 ? 1.0 : -1.0); /* two steps of 0.5 */
    }
    assert_ok(ditto_strategy_run(s, take_step_with, &w));
    assert_ok(ditto_strategy_run(s, take_step_with, &w));
    for (size_t i = 0; i < 2; i++)
        assert_true(value_at(&t, 0, i) == expected[i]);
    destroy_all(s, &t);
}

static void two_optimizers_of_one_name_are_refused(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL), *other = make_strategy(1, NULL);
    ditto_tensor spec = { .dtype = DITTO_F32 };
    ditto_optimizer *first, *second, *elsewhere;
    ditto_variable *v, *w, *far;
    size_t count;
    assert_ok(ditto_variable_create(s, &spec, NULL, &v));
    assert_ok(ditto_variable_create(s, &spec, NULL, &w));
    assert_ok(ditto_variable_create(other, &spec, NULL, &far));
    ditto_optimizer_options o = OPTIONS(optimizer, .rule = DITTO_RULE_ADAM);
    assert_ok(ditto_optimizer_create(&v, 1, &o, &first));
    o.name = "optimizer"; /* the default name, which the first optimizer has */
    assert_status(ditto_optimizer_create(&w, 1, &o, &second), DITTO_ERR_INVALID);
    assert_message("an optimizer called \"optimizer\" already");
    assert_ok(ditto_strategy_variables(s, NULL, 0, &count));
    assert_int_equal(count, 2 + 3); /* the refused optimizer has left no variables */
    /* Names in another strategy do not matter. */
    assert_ok(ditto_optimizer_create(&far, 1, &o, &elsewhere));
    o.name = "second";
    assert_ok(ditto_optimizer_create(&w, 1, &o, &second));
    assert_ok(ditto_optimizer_destroy(first));
    o.name = NULL;
    assert_ok(ditto_optimizer_create(&v, 1, &o, &first)); /* the name is free again */
    assert_ok(ditto_optimizer_destroy(second));
    assert_ok(ditto_optimizer_destroy(first));
    assert_ok(ditto_optimizer_destroy(elsewhere));
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_variable_destroy(w));
    assert_ok(ditto_variable_destroy(far));
    assert_ok(ditto_strategy_destroy(s));
    assert_ok(ditto_strategy_destroy(other));
}

/* -- errors -- */

struct diverging {
    struct training *t;
    double rate[2];
};

static ditto_status apply_with_rates(ditto_replica *self, void *argument)
{
    struct diverging *d = argument;
    static double zeros[2][5000 * 2];
    ditto_tensor gradient[VARIABLES];
    uint32_t id = ditto_replica_id(self);
    for (uint32_t k = 0; k < VARIABLES; k++) {
        gradient[k] = spec_of(d->t->variable[k]);
        gradient[k].data = zeros[id];
    }
    return ditto_apply(self, d->t->optimizer, gradient, &OPTIONS(apply, .learning_rate = d->rate[id]));
}

static ditto_status apply_wrongly(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    ditto_tensor gradient[VARIABLES];
    for (uint32_t k = 0; k < VARIABLES; k++) {
        gradient[k] = spec_of(t->variable[k]);
        gradient[k].data = t->norm; /* is aligned, and is not read */
    }
    gradient[1].shape[0]++;
    EXPECT(&t->report, ditto_apply(self, t->optimizer, gradient, NULL) == DITTO_ERR_SHAPE);
    EXPECT(&t->report, strstr(ditto_last_error()->message,
                              "\"b/c\" is f64 [300, 2], but its gradient is f64 [301, 2]") != NULL);
    gradient[1] = spec_of(t->variable[1]);
    EXPECT(&t->report, ditto_apply(self, t->optimizer, gradient, NULL) == DITTO_ERR_INVALID);
    EXPECT(&t->report, strstr(ditto_last_error()->message, "a gradient's data is NULL") != NULL);
    gradient[1].data = t->norm;
    gradient[1].dtype = DITTO_F32;
    EXPECT(&t->report, ditto_apply(self, t->optimizer, gradient, NULL) == DITTO_ERR_INVALID);
    EXPECT(&t->report, strstr(ditto_last_error()->message,
                              "\"b/c\" is f64 [300, 2], but its gradient is f32 [300, 2]") != NULL);
    EXPECT(&t->report, ditto_apply(self, NULL, gradient, NULL) == DITTO_ERR_INVALID);
    EXPECT(&t->report, ditto_apply(self, t->optimizer, NULL, NULL) == DITTO_ERR_INVALID);
    return DITTO_OK;
}

static void wrong_gradients_and_rates_are_refused(void **state)
{
    static struct training t;
    ditto_variable *slot;
    ditto_strategy *s = make_strategy(2, NULL), *other = make_strategy(1, NULL);
    t = (struct training){ .dtype = DITTO_F64 };
    create_variables(s, &t);
    ditto_optimizer_options o = OPTIONS(optimizer, .rule = DITTO_RULE_ADAM, .name = "adam");
    assert_ok(ditto_optimizer_create(t.variable, VARIABLES, &o, &t.optimizer));
    run_all(s, apply_wrongly, &t, &t.report);
    struct diverging d = { &t, { 0.1, 0.2 } };
    assert_status(ditto_strategy_run(s, apply_with_rates, &d), DITTO_ERR_DIVERGED);
    d.rate[0] = d.rate[1] = -1;
    assert_status(ditto_strategy_run(s, apply_with_rates, &d), DITTO_ERR_RANGE);
    d.t = &t;
    assert_status(ditto_strategy_run(other, apply_with_rates, &d), DITTO_ERR_CONTEXT);
    assert_status(ditto_optimizer_slot(t.optimizer, 0, "momentum", &slot), DITTO_ERR_NOT_FOUND);
    assert_message("\"m\", \"v\"");
    assert_status(ditto_optimizer_slot(t.optimizer, VARIABLES, "m", &slot), DITTO_ERR_RANGE);
    assert_ok(ditto_optimizer_slot(t.optimizer, 1, "v", &slot));
    assert_string_equal(properties_of(slot).name, "adam/v/b/c");
    assert_false(properties_of(slot).trainable);
    assert_status(ditto_variable_destroy(slot), DITTO_ERR_BUSY); /* the optimizer owns it */
    assert_int_equal(properties_of(slot).num_shards, 1);
    assert_true(shard_of(slot, 0).first_row == 0 && shard_of(slot, 0).rows == rows[1]);
    ditto_optimizer *second;
    assert_status(ditto_optimizer_create(&slot, 1, &o, &second), DITTO_ERR_INVALID);
    assert_ok(ditto_strategy_destroy(other));
    destroy_all(s, &t);
}

static void wrong_options_are_refused(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL), *other = make_strategy(1, NULL);
    ditto_tensor real = { .dtype = DITTO_F32 }, whole = { .dtype = DITTO_I32 };
    ditto_variable *v, *i, *foreign, *local, *list[2];
    ditto_optimizer *out;
    assert_ok(ditto_variable_create(s, &real, NULL, &v));
    assert_ok(ditto_variable_create(s, &whole, NULL, &i));
    assert_ok(ditto_variable_create(other, &real, NULL, &foreign));
    assert_ok(ditto_variable_create(s, &real, &OPTIONS(variable, .synchronization = DITTO_ON_READ), &local));
    const struct {
        ditto_variable *first, *second;
        ditto_optimizer_options options;
        ditto_status status;
    } wrong[] = {
        { v, NULL, { .rule = 0 }, DITTO_ERR_RANGE },
        { v, NULL, { .rule = DITTO_RULE_FUNCTION }, DITTO_ERR_INVALID },
        { v, NULL, { .rule = DITTO_RULE_SGD, .momentum = 1 }, DITTO_ERR_RANGE },
        { v, NULL, { .rule = DITTO_RULE_SGD, .learning_rate = NAN }, DITTO_ERR_RANGE },
        { v, NULL, { .rule = DITTO_RULE_SGD, .op = DITTO_MAX }, DITTO_ERR_RANGE },
        { v, NULL, { .rule = DITTO_RULE_ADAM, .beta2 = -0.1 }, DITTO_ERR_RANGE },
        { v, NULL, { .rule = DITTO_RULE_FUNCTION, .function = own_rule, .num_slots = 5 }, DITTO_ERR_RANGE },
        { v, v, { .rule = DITTO_RULE_SGD }, DITTO_ERR_INVALID },
        { v, local, { .rule = DITTO_RULE_SGD }, DITTO_ERR_INVALID },
        { v, foreign, { .rule = DITTO_RULE_SGD }, DITTO_ERR_CONTEXT },
        { v, i, { .rule = DITTO_RULE_SGD }, DITTO_ERR_UNSUPPORTED },
        { v, i, { .rule = DITTO_RULE_ADD, .op = DITTO_MEAN }, DITTO_ERR_UNSUPPORTED },
        { i, NULL, { .rule = DITTO_RULE_ADD, .clip_norm = 1 }, DITTO_ERR_UNSUPPORTED },
    };
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        ditto_optimizer_options o = wrong[k].options;
        o.struct_size = sizeof o;
        list[0] = wrong[k].first;
        list[1] = wrong[k].second;
        assert_status(ditto_optimizer_create(list, wrong[k].second != NULL ? 2 : 1, &o, &out),
                      wrong[k].status);
    }
    ditto_optimizer_options o = OPTIONS(optimizer, .rule = DITTO_RULE_ADD);
    assert_status(ditto_optimizer_create(list, 0, &o, &out), DITTO_ERR_INVALID);
    list[0] = v;
    list[1] = i; /* has another dtype, which is allowed for DITTO_RULE_ADD */
    assert_ok(ditto_optimizer_create(list, 2, &o, &out));
    ditto_variable *steps;
    steps = iterations_of(out);
    assert_ok(ditto_strategy_destroy(s));
    assert_status(ditto_variable_destroy(steps), DITTO_ERR_BUSY);
    assert_ok(ditto_optimizer_destroy(out)); /* after the destruction of its strategy */
    assert_ok(ditto_variable_destroy(v));
    assert_ok(ditto_variable_destroy(i));
    assert_ok(ditto_variable_destroy(local));
    assert_ok(ditto_variable_destroy(foreign));
    assert_ok(ditto_strategy_destroy(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_computes_its_formula),
        cmocka_unit_test(the_loops_of_all_instruction_sets_give_the_same_bits),
        cmocka_unit_test(each_variable_has_its_own_rate_and_all_have_one_norm),
        cmocka_unit_test(wrong_settings_of_variables_are_refused),
        cmocka_unit_test(a_learning_rate_can_be_set_to_0),
        cmocka_unit_test(betas_and_epsilon_can_be_set_to_0),
        cmocka_unit_test(two_optimizers_of_one_name_are_refused),
        cmocka_unit_test(wrong_gradients_and_rates_are_refused),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
