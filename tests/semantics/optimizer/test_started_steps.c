/* tests/semantics/optimizer/test_started_steps.c - steps in parts (ditto_apply_start and ditto_apply_finish).
 * They give the bits of ditto_apply, refuse what would disturb them, and end with a run that fails. */
#include "support/as_hosts.h"
#include "semantics/optimizer/train_variables.h"

#include <pthread.h>
#include <unistd.h>

#define STEPS 3

/* Two equal sets of variables. One is trained by ditto_apply, the other one in parts. */
struct pair {
    struct training whole, parts;
    uint64_t seed; /* of the parts, the same on all replicas */
    bool asks_norm;
};

static ditto_status make_gradients(ditto_replica *self, const struct training *t, ditto_tensor *gradient)
{
    for (uint32_t k = 0; k < VARIABLES; k++) {
        gradient[k] = spec_of(t->variable[k]);
        DITTO_TRY(ditto_alloc(self, rows[k] * 2 * ditto_dtype_bytes(t->dtype), 64, &gradient[k].data));
        for (size_t i = 0; i < rows[k] * 2; i++)
            put(t->dtype, gradient[k].data, i, gradient_of(t->step, ditto_replica_id(self), k, i) / 3);
    }
    return DITTO_OK;
}

static ditto_status free_gradients(ditto_replica *self, const ditto_tensor *gradient)
{
    for (uint32_t k = 0; k < VARIABLES; k++)
        DITTO_TRY(ditto_free(self, gradient[k].data));
    return DITTO_OK;
}

/* Fills `first` with the first variables of random parts, in a random order, and `count` with their lengths.
 * Returns the number of parts. */
static uint32_t random_parts(uint64_t *seed, uint32_t *first, uint32_t *count)
{
    uint32_t parts = 0;
    for (uint32_t at = 0; at < VARIABLES; at += count[parts++]) {
        first[parts] = at;
        count[parts] = 1 + (uint32_t)(test_random(seed) % (VARIABLES - at));
    }
    for (uint32_t i = parts; i > 1; i--) {
        uint32_t other = (uint32_t)(test_random(seed) % i), f = first[i - 1], c = count[i - 1];
        first[i - 1] = first[other];
        count[i - 1] = count[other];
        first[other] = f;
        count[other] = c;
    }
    return parts;
}

/* Something that other code does between the parts of a step. */
static ditto_status disturb(ditto_replica *self, struct report *report, uint64_t what)
{
    float mine = 1, sum[1000] = { 0 };
    ditto_pending pending;
    if (what % 4 == 0)
        DITTO_TRY(ditto_barrier(self, NULL));
    if (what % 4 == 1) {
        DITTO_TRY(ditto_all_reduce(self, &mine, sum, 1, DITTO_F32, DITTO_SUM, NULL));
        EXPECT(report, sum[0] == (float)ditto_num_replicas(self));
    }
    if (what % 4 == 2) {
        DITTO_TRY(ditto_all_reduce_start(self, sum, sum, 1000, DITTO_F32, DITTO_SUM, NULL, &pending));
        ditto_status status = ditto_wait(self, &pending, NULL);
        if (status != DITTO_OK)
            return ditto_abandon(self, status);
    }
    if (what % 4 == 3 && ditto_replica_id(self) == what / 4 % ditto_num_replicas(self))
        usleep(200);
    return DITTO_OK;
}

static ditto_status take_both_steps(ditto_replica *self, void *argument)
{
    struct pair *p = argument;
    uint32_t first[VARIABLES], count[VARIABLES], id = ditto_replica_id(self);
    uint64_t seed = p->seed;
    uint32_t parts = random_parts(&seed, first, count);
    ditto_tensor gradient[VARIABLES];
    ditto_apply_options options = OPTIONS(apply, .norm = p->asks_norm ? &p->whole.norm[id] : NULL);
    DITTO_TRY(make_gradients(self, &p->whole, gradient));
    DITTO_TRY(ditto_apply(self, p->whole.optimizer, gradient, &options));
    for (uint32_t i = 0; i < parts; i++) {
        DITTO_TRY(ditto_apply_start(self, p->parts.optimizer, first[i], count[i], &gradient[first[i]], NULL));
        DITTO_TRY(disturb(self, &p->parts.report, test_random(&seed)));
    }
    options.norm = p->asks_norm ? &p->parts.norm[id] : NULL;
    DITTO_TRY(ditto_apply_finish(self, p->parts.optimizer, &options));
    return free_gradients(self, gradient);
}

/* A rule of the test's own. */
static void halve(const ditto_rule_range *range, void *user)
{
    for (size_t i = 0; i < range->count; i++) {
        double m = get(range->dtype, range->slot[0], i) / 2 + get(range->dtype, range->gradient, i);
        put(range->dtype, range->slot[0], i, m);
        put(range->dtype, range->value, i, get(range->dtype, range->value, i) - range->learning_rate * m);
    }
}

/* Adds an argument of the replica's own to the first element. */
static ditto_status shift(const ditto_tensor *copy, const ditto_tensor *arguments, uint32_t num_arguments,
                          void *user, ditto_tensor *result)
{
    put(copy->dtype, copy->data, 0, get(copy->dtype, copy->data, 0) + get(DITTO_F64, arguments[0].data, 0));
    return DITTO_OK;
}

/* Makes the copies of variable 2 of both sets differ. */
static ditto_status shift_both(ditto_replica *self, void *argument)
{
    struct pair *p = argument;
    double by = ditto_replica_id(self);
    ditto_tensor own = { .data = &by, .dtype = DITTO_F64 };
    DITTO_TRY(ditto_update(self, p->whole.variable[2], shift, NULL, &own, 1, NULL));
    return ditto_update(self, p->parts.variable[2], shift, NULL, &own, 1, NULL);
}

static ditto_status change_nothing(const ditto_tensor *copy, const ditto_tensor *arguments,
                                   uint32_t num_arguments, void *user, ditto_tensor *result)
{
    return DITTO_OK;
}

/* Compares the values, and those of each copy if the variables are not sharded. */
static void expect_equal_variables(const ditto_strategy *s, ditto_variable *one, ditto_variable *other,
                                   const char *what)
{
    static char a[5000 * 2 * 8], b[5000 * 2 * 8];
    const void *left, *right;
    ditto_tensor spec = spec_of(one);
    size_t bytes = ditto_dtype_bytes(spec.dtype);
    for (uint32_t d = 0; d < spec.rank; d++)
        bytes *= spec.shape[d];
    assert_ok(ditto_variable_read(one, a, bytes));
    assert_ok(ditto_variable_read(other, b, bytes));
    bool equal = memcmp(a, b, bytes) == 0;
    for (uint32_t i = first_local(s); i < end_local(s) && component_of(one, i, &left) == DITTO_OK; i++) {
        assert_ok(component_of(other, i, &right));
        equal = equal && memcmp(left, right, bytes) == 0;
    }
    if (!equal)
        fail_msg("two variables \"%s\" of %u replicas differ in their %s", properties_of(one).name,
                 ditto_strategy_num_replicas(s), what);
}

static void expect_equal(const ditto_strategy *s, const struct pair *p)
{
    static const char *const slots[] = { "momentum", "m", "v", "slot0" };
    ditto_variable *one, *other;
    for (uint32_t k = 0; k < VARIABLES; k++) {
        expect_equal_variables(s, p->whole.variable[k], p->parts.variable[k], "values");
        for (size_t m = 0; m < sizeof slots / sizeof slots[0]; m++)
            if (ditto_optimizer_slot(p->whole.optimizer, k, slots[m], &one) == DITTO_OK) {
                assert_ok(ditto_optimizer_slot(p->parts.optimizer, k, slots[m], &other));
                expect_equal_variables(s, one, other, slots[m]);
            }
    }
    one = iterations_of(p->whole.optimizer);
    other = iterations_of(p->parts.optimizer);
    expect_equal_variables(s, one, other, "steps");
    for (uint32_t i = first_local(s); p->asks_norm && i < end_local(s); i++)
        assert_true(p->whole.norm[i] == p->parts.norm[i] &&
                    p->whole.norm[i] == p->whole.norm[first_local(s)]);
}

static const double factors[VARIABLES] = { 0.1, 1, 0, 3 }, decays[VARIABLES] = { 0, 0.1, 0.25, 0 };

static const ditto_optimizer_options rules[] = {
    { .rule = DITTO_RULE_ADD, .op = DITTO_MEAN },
    { .rule = DITTO_RULE_SGD, .momentum = 0.9, .op = DITTO_MEAN },
    { .rule = DITTO_RULE_SGD, .momentum = 0.9, .nesterov = 1, .clip_norm = 3 },
    { .rule = DITTO_RULE_ADAM, .weight_decay = 0.1 },
    { .rule = DITTO_RULE_ADAM, .clip_norm = 1e9, .rate_factors = factors, .weight_decays = decays },
    { .rule = DITTO_RULE_FUNCTION, .function = halve, .num_slots = 1 },
    { .rule = DITTO_RULE_FUNCTION, .function = halve, .num_slots = 1, .clip_norm = 2 },
};

/* Creates an optimizer of its own name for a set of variables. */
static void prepare(ditto_strategy *s, struct training *t, const ditto_optimizer_options *rule,
                    const char *name)
{
    ditto_optimizer_options options = *rule;
    options.struct_size = sizeof options;
    options.name = name;
    options.learning_rate = 0.1;
    create_variables(s, t);
    assert_ok(ditto_optimizer_create(t->variable, VARIABLES, &options, &t->optimizer));
}

static void finish(struct training *t)
{
    assert_ok(ditto_optimizer_destroy(t->optimizer));
    for (uint32_t k = 0; k < VARIABLES; k++)
        assert_ok(ditto_variable_destroy(t->variable[k]));
}

static void compare(ditto_strategy *s, const ditto_optimizer_options *rule, ditto_dtype dtype, bool asks_norm,
                    bool may_differ, uint64_t *random)
{
    static struct pair p;
    p = (struct pair){ .whole.dtype = dtype, .parts.dtype = dtype, .asks_norm = asks_norm };
    prepare(s, &p.whole, rule, "whole");
    prepare(s, &p.parts, rule, "parts");
    if (may_differ)
        run_all(s, shift_both, &p, &p.parts.report);
    for (int step = 1; step <= STEPS; step++) {
        p.whole.step = p.parts.step = step;
        p.seed = test_random(random);
        run_all(s, take_both_steps, &p, &p.parts.report);
    }
    expect_equal(s, &p);
    finish(&p.whole);
    finish(&p.parts);
}

static void parts_give_the_bits_of_one_call(void **state)
{
    uint64_t random = test_seed(31);
    for (size_t i = 0; i < replica_counts_length; i++) {
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
            compare(s, &rules[r], r % 2 ? DITTO_F32 : DITTO_F64, false, false, &random);
            compare(s, &rules[r], r % 2 ? DITTO_F64 : DITTO_F32, true, true, &random);
        }
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- errors -- */

/* Expects a status, and words in its message. */
#define REFUSED(report, call, expected, words) \
    EXPECT((report), (call) == (expected) && strstr(ditto_last_error()->message, (words)) != NULL)

static ditto_status misuse(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    struct report *report = &t->report;
    ditto_optimizer *o = t->optimizer;
    ditto_tensor gradient[VARIABLES];
    double norm, one = 1;
    ditto_tensor small = { .data = &one, .dtype = DITTO_F64 };
    ditto_apply_options asks = DITTO_APPLY_OPTIONS_INIT, slow = DITTO_APPLY_OPTIONS_INIT;
    asks.norm = &norm;
    slow.learning_rate = 0.5;
    DITTO_TRY(make_gradients(self, t, gradient));
    REFUSED(report, ditto_apply_finish(self, o, NULL), DITTO_ERR_INVALID, "no step");
    REFUSED(report, ditto_apply_start(self, o, 0, 0, gradient, NULL), DITTO_ERR_RANGE, "at least one");
    REFUSED(report, ditto_apply_start(self, o, VARIABLES, 1, gradient, NULL), DITTO_ERR_RANGE, "first = 4");
    REFUSED(report, ditto_apply_start(self, o, 3, 2, gradient, NULL), DITTO_ERR_RANGE, "first = 3");
    REFUSED(report, ditto_apply_start(self, o, 1, UINT32_MAX, gradient, NULL), DITTO_ERR_RANGE, "first = 1");
    REFUSED(report, ditto_apply_start(self, o, 0, 1, NULL, NULL), DITTO_ERR_INVALID, "gradients");
    REFUSED(report, ditto_apply_start(self, o, 0, 1, &small, NULL), DITTO_ERR_SHAPE, "gradients[0]");
    REFUSED(report, ditto_apply_start(self, o, 0, 1, gradient, &asks), DITTO_ERR_INVALID, "norm");
    /* None of these has started a step, so that a whole one can be taken. */
    DITTO_TRY(ditto_apply(self, o, gradient, NULL));

    DITTO_TRY(ditto_apply_start(self, o, 1, 2, &gradient[1], NULL));
    REFUSED(report, ditto_apply_start(self, o, 0, 2, gradient, NULL), DITTO_ERR_INVALID, "given");
    REFUSED(report, ditto_apply_start(self, o, 0, 1, gradient, &slow), DITTO_ERR_INVALID, "0.5");
    REFUSED(report, ditto_apply(self, o, gradient, NULL), DITTO_ERR_INVALID, "ditto_apply_finish");
    REFUSED(report, ditto_apply_finish(self, o, NULL), DITTO_ERR_INVALID, "2 of 4");
    REFUSED(report, ditto_apply_finish(self, o, &slow), DITTO_ERR_INVALID, "learning_rate");
    REFUSED(report, ditto_update(self, t->variable[2], change_nothing, NULL, NULL, 0, NULL),
            DITTO_ERR_INVALID, "ditto_apply_finish");
    DITTO_TRY(ditto_update(self, t->variable[0], change_nothing, NULL, NULL, 0, NULL));
    DITTO_TRY(ditto_apply_start(self, o, 0, 1, gradient, NULL));
    DITTO_TRY(ditto_apply_start(self, o, 3, 1, &gradient[3], NULL));
    DITTO_TRY(ditto_apply_finish(self, o, &asks));
    REFUSED(report, ditto_apply_finish(self, o, NULL), DITTO_ERR_INVALID, "no step");
    DITTO_TRY(ditto_update(self, t->variable[2], change_nothing, NULL, NULL, 0, NULL));
    EXPECT(report, norm > 0);
    return free_gradients(self, gradient);
}

static void what_disturbs_a_started_step_is_an_error(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        struct training t = { .dtype = DITTO_F64, .step = 1 };
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        prepare(s, &t, &rules[1], "parts");
        run_all(s, misuse, &t, &t.report);
        finish(&t);
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* A run of the two replicas of `fails` ends with a status, and with words in the message. */
static void fails_with(struct training *t, ditto_strategy *s, ditto_replica_fn function, ditto_status status,
                       const char *words)
{
    assert_status(ditto_strategy_run(s, function, t), status);
    if (strstr(ditto_last_error()->message, words) == NULL)
        fail_msg("\"%s\" is not in: %s", words, ditto_last_error()->message);
}

static ditto_status start_one(ditto_replica *self, struct training *t, uint32_t k, double learning_rate)
{
    ditto_tensor gradient[VARIABLES];
    DITTO_TRY(make_gradients(self, t, gradient)); /* in the replica's arena, until the strategy ends */
    return ditto_apply_start(self, t->optimizer, k, 1, &gradient[k],
                             &OPTIONS(apply, .learning_rate = learning_rate));
}

static ditto_status forget_to_finish(ditto_replica *self, void *argument)
{
    return start_one(self, argument, 0, 0);
}

static ditto_status start_different_parts(ditto_replica *self, void *argument)
{
    DITTO_TRY(start_one(self, argument, ditto_replica_id(self), 0));
    DITTO_TRY(start_one(self, argument, 1 - ditto_replica_id(self), 0));
    DITTO_TRY(start_one(self, argument, 2, 0));
    DITTO_TRY(start_one(self, argument, 3, 0));
    return ditto_apply_finish(self, ((struct training *)argument)->optimizer, NULL);
}

static ditto_status start_with_different_rates(ditto_replica *self, void *argument)
{
    for (uint32_t k = 0; k < VARIABLES; k++)
        DITTO_TRY(start_one(self, argument, k, 0.1 * (1 + ditto_replica_id(self))));
    return ditto_apply_finish(self, ((struct training *)argument)->optimizer, NULL);
}

static ditto_status fail_after_start(ditto_replica *self, void *argument)
{
    DITTO_TRY(start_one(self, argument, 0, 0));
    if (ditto_replica_id(self) == 1)
        return ditto_fail(self, 1, "as asked");
    for (uint32_t k = 1; k < VARIABLES; k++)
        DITTO_TRY(start_one(self, argument, k, 0));
    return ditto_apply_finish(self, ((struct training *)argument)->optimizer, NULL);
}

static ditto_status finish_alone(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    if (ditto_replica_id(self) == 1)
        return DITTO_OK;
    for (uint32_t k = 0; k < VARIABLES; k++)
        DITTO_TRY(start_one(self, argument, k, 0));
    return ditto_apply_finish(self, t->optimizer, NULL);
}

static ditto_status take_parts(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    for (uint32_t k = 0; k < VARIABLES; k++)
        DITTO_TRY(start_one(self, argument, k, 0));
    return ditto_apply_finish(self, t->optimizer, NULL);
}

/* With each kind of rule, because they start different operations. */
static void a_run_that_fails_gives_the_step_up(void **state)
{
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
        struct training t = { .dtype = DITTO_F64, .step = 1 };
        ditto_strategy *s = make_strategy(2, NULL);
        prepare(s, &t, &rules[r], "parts");
        fails_with(&t, s, forget_to_finish, DITTO_ERR_INVALID, "ditto_apply_start #1");
        run_all(s, take_parts, &t, &t.report);
        fails_with(&t, s, start_different_parts, DITTO_ERR_DIVERGED, "ditto_apply_start");
        fails_with(&t, s, start_with_different_rates, DITTO_ERR_DIVERGED, "ditto_apply_start");
        fails_with(&t, s, fail_after_start, DITTO_ERR_USER, "as asked");
        fails_with(&t, s, finish_alone, DITTO_ERR_DIVERGED, "ditto_apply_start");
        run_all(s, take_parts, &t, &t.report);
        fails_with(&t, s, forget_to_finish, DITTO_ERR_INVALID, "ditto_apply_start #1");
        finish(&t);
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- other contexts -- */

static ditto_status do_nothing(ditto_strategy *strategy, ditto_value *const *arguments,
                               uint32_t num_arguments, void *user, ditto_value **result)
{
    return DITTO_OK;
}

/* A merge function could read and write the variables of the step. */
static ditto_status merge_between_parts(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    DITTO_TRY(start_one(self, t, 0, 0));
    REFUSED(&t->report, ditto_merge_call(self, do_nothing, NULL, NULL, 0, NULL), DITTO_ERR_INVALID,
            "ditto_apply_finish");
    for (uint32_t k = 1; k < VARIABLES; k++)
        DITTO_TRY(start_one(self, t, k, 0));
    DITTO_TRY(ditto_apply_finish(self, t->optimizer, NULL));
    return ditto_merge_call(self, do_nothing, NULL, NULL, 0, NULL);
}

static ditto_status fail_inside(ditto_strategy *strategy, ditto_value *const *arguments,
                                uint32_t num_arguments, void *user, ditto_value **result)
{
    struct training *t = user;
    EXPECT(&t->report, ditto_strategy_run(strategy, forget_to_finish, t) == DITTO_ERR_INVALID);
    if (!is_spread(strategy)) /* over several hosts, the outer run has now ended, too */
        EXPECT(&t->report, ditto_strategy_run(strategy, take_parts, t) == DITTO_OK);
    return DITTO_OK;
}

static ditto_status merge_then_take_parts(ditto_replica *self, void *argument)
{
    DITTO_TRY(ditto_merge_call(self, fail_inside, argument, NULL, 0, NULL));
    return take_parts(self, argument);
}

static void a_step_belongs_to_its_run(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        struct training t = { .dtype = DITTO_F64, .step = 1 };
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        prepare(s, &t, &rules[1], "parts");
        run_all(s, merge_between_parts, &t, &t.report);
        if (!is_spread(s))
            run_all(s, merge_then_take_parts, &t, &t.report);
        else
            fails_with(&t, s, merge_then_take_parts, DITTO_ERR_INVALID, "ditto_apply_start #1");
        finish(&t);
        assert_ok(ditto_strategy_destroy(s));
    }
}

static void the_default_strategy_has_started_steps(void **state)
{
    struct training t = { .dtype = DITTO_F64, .step = 1 };
    double value = 0, gradient = 1;
    ditto_tensor initial = { .data = &value, .dtype = DITTO_F64 };
    ditto_tensor gradients[2] = { { .data = &gradient, .dtype = DITTO_F64 },
                                  { .data = &gradient, .dtype = DITTO_F64 } };
    ditto_replica *self = ditto_get_replica_context();
    for (int k = 0; k < 2; k++)
        assert_ok(ditto_variable_create(ditto_get_strategy(), &initial, NULL, &t.variable[k]));
    assert_ok(
        ditto_optimizer_create(t.variable, 2, &OPTIONS(optimizer, .rule = DITTO_RULE_SUB), &t.optimizer));
    for (int step = 1; step <= 2; step++) {
        assert_ok(ditto_apply_start(self, t.optimizer, 1, 1, &gradients[1], NULL));
        assert_ok(ditto_variable_read(t.variable[0], &value, sizeof value));
        assert_ok(ditto_apply_start(self, t.optimizer, 0, 1, &gradients[0], NULL));
        assert_ok(ditto_apply_finish(self, t.optimizer, NULL));
        for (int k = 0; k < 2; k++) {
            assert_ok(ditto_variable_read(t.variable[k], &value, sizeof value));
            assert_true(value == -step);
        }
    }
    /* The optimizer can be destroyed while a step is open, because nothing uses its memory. */
    assert_ok(ditto_apply_start(self, t.optimizer, 1, 1, &gradients[1], NULL));
    assert_ok(ditto_optimizer_destroy(t.optimizer));
    for (int k = 0; k < 2; k++)
        assert_ok(ditto_variable_destroy(t.variable[k]));
    assert_ok(ditto_barrier(self, NULL));
}

static void *finish_in_another_thread(void *argument)
{
    return ditto_apply_finish(ditto_get_replica_context(), argument, NULL) == DITTO_OK ? argument : NULL;
}

/* The threads of the default strategy share a step, as they share the variables. */
static void another_thread_can_go_on_with_a_step_of_the_default_strategy(void **state)
{
    double value = 0, gradient = 1;
    ditto_tensor initial = { .data = &value, .dtype = DITTO_F64 },
                 tensor = { .data = &gradient, .dtype = DITTO_F64 };
    ditto_variable *variable;
    ditto_optimizer *optimizer;
    pthread_t thread;
    void *result;
    assert_ok(ditto_variable_create(ditto_get_strategy(), &initial, NULL, &variable));
    assert_ok(ditto_optimizer_create(&variable, 1, &OPTIONS(optimizer, .rule = DITTO_RULE_ADD), &optimizer));
    assert_ok(ditto_apply_start(ditto_get_replica_context(), optimizer, 0, 1, &tensor, NULL));
    pthread_create(&thread, NULL, finish_in_another_thread, optimizer);
    pthread_join(thread, &result);
    assert_ptr_equal(result, optimizer);
    assert_ok(ditto_apply(ditto_get_replica_context(), optimizer, &tensor, NULL));
    assert_ok(ditto_variable_read(variable, &value, sizeof value));
    assert_true(value == 2);
    assert_ok(ditto_optimizer_destroy(optimizer));
    assert_ok(ditto_variable_destroy(variable));
}

/* -- two optimizers -- */

struct two {
    struct report report;
    ditto_optimizer *one, *other;
    ditto_tensor *gradient; /* of one element */
    ditto_replica *self;    /* of the one replica, for the function of a rule */
};

static ditto_status use_both(ditto_replica *self, void *argument)
{
    struct two *t = argument;
    double gradient = 1;
    ditto_tensor tensor = { .data = &gradient, .dtype = DITTO_F64 };
    const void *data;
    ditto_variable *steps;
    DITTO_TRY(ditto_apply_start(self, t->one, 0, 1, &tensor, NULL));
    REFUSED(&t->report, ditto_apply(self, t->other, &tensor, NULL), DITTO_ERR_INVALID, "optimizer \"one\"");
    REFUSED(&t->report, ditto_apply_start(self, t->other, 0, 1, &tensor, NULL), DITTO_ERR_INVALID,
            "optimizer \"one\"");
    steps = iterations_of(t->one);
    DITTO_TRY(ditto_read(self, steps, &data));
    DITTO_TRY(ditto_apply_finish(self, t->one, NULL));
    return ditto_apply(self, t->other, &tensor, NULL);
}

/* A rule of a program that breaks the contract: it calls ditto. */
static void finish_inside(const ditto_rule_range *range, void *user)
{
    struct two *t = user;
    if (ditto_apply_finish(t->self, t->one, NULL) != DITTO_ERR_CONTEXT ||
        ditto_apply_start(t->self, t->one, 0, 1, t->gradient, NULL) != DITTO_ERR_CONTEXT)
        report_failure(&t->report, __FILE__, __LINE__, "a call in a rule was not refused");
}

static ditto_status apply_with_calls(ditto_replica *self, void *argument)
{
    struct two *t = argument;
    double gradient = 1;
    ditto_tensor tensor = { .data = &gradient, .dtype = DITTO_F64 };
    t->self = self;
    t->gradient = &tensor;
    DITTO_TRY(ditto_apply_start(self, t->one, 0, 1, &tensor, NULL));
    DITTO_TRY(ditto_apply(self, t->other, &tensor, NULL));
    return ditto_apply_finish(self, t->one, NULL);
}

static void two_optimizers_do_not_disturb_each_other(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        struct two t = { .one = NULL };
        double value = 0;
        ditto_variable *variable[2];
        ditto_tensor initial = { .data = &value, .dtype = DITTO_F64 };
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        for (int k = 0; k < 2; k++)
            assert_ok(ditto_variable_create(s, &initial, NULL, &variable[k]));
        ditto_optimizer_options options = OPTIONS(optimizer, .rule = DITTO_RULE_ADD, .name = "one");
        assert_ok(ditto_optimizer_create(&variable[0], 1, &options, &t.one));
        options.name = "other";
        assert_ok(ditto_optimizer_create(&variable[0], 1, &options, &t.other));
        run_all(s, use_both, &t, &t.report);
        assert_ok(ditto_variable_read(variable[0], &value, sizeof value));
        assert_true(value == 2.0 * replica_counts[i]);
        assert_ok(ditto_optimizer_destroy(t.other));
        options.rule = DITTO_RULE_FUNCTION;
        options.function = finish_inside;
        options.user = &t;
        assert_ok(ditto_optimizer_create(&variable[1], 1, &options, &t.other));
        if (replica_counts[i] == 1)
            run_all(s, apply_with_calls, &t, &t.report);
        assert_ok(ditto_strategy_destroy(s));
        assert_ok(ditto_optimizer_destroy(t.one));
        assert_ok(ditto_optimizer_destroy(t.other));
        for (int k = 0; k < 2; k++)
            assert_ok(ditto_variable_destroy(variable[k]));
    }
}

/* One part stays open while the program starts and waits for many operations of its own. */
static ditto_status start_many_others(ditto_replica *self, void *argument)
{
    struct training *t = argument;
    float one = 1, sum = 0;
    DITTO_TRY(start_one(self, t, 0, 0));
    for (int i = 0; i < 3 * DITTO_MAX_PENDING; i++) {
        ditto_pending pending;
        DITTO_TRY(ditto_all_reduce_start(self, &one, &sum, 1, DITTO_F32, DITTO_SUM, NULL, &pending));
        DITTO_TRY(ditto_wait(self, &pending, NULL));
    }
    for (uint32_t k = 1; k < VARIABLES; k++)
        DITTO_TRY(start_one(self, t, k, 0));
    return ditto_apply_finish(self, t->optimizer, NULL);
}

/* The part has made room for other operations, so no operation of the step is open any more. */
static ditto_status forget_to_finish_after_many(ditto_replica *self, void *argument)
{
    float one = 1, sum = 0;
    DITTO_TRY(start_one(self, argument, 0, 0));
    for (int i = 0; i < 2 * DITTO_MAX_PENDING; i++) {
        ditto_pending pending;
        DITTO_TRY(ditto_all_reduce_start(self, &one, &sum, 1, DITTO_F32, DITTO_SUM, NULL, &pending));
        DITTO_TRY(ditto_wait(self, &pending, NULL));
    }
    return DITTO_OK;
}

static void an_open_part_leaves_room_for_other_operations(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        struct training t = { .dtype = DITTO_F64, .step = 1 };
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        prepare(s, &t, &rules[1], "parts");
        run_all(s, start_many_others, &t, &t.report);
        fails_with(&t, s, forget_to_finish_after_many, DITTO_ERR_INVALID, "end it with ditto_apply_finish");
        run_all(s, start_many_others, &t, &t.report);
        finish(&t);
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* -- more parts than pending operations -- */

enum { MANY = 3 * DITTO_MAX_PENDING };

struct many {
    struct report report;
    ditto_optimizer *optimizer;
};

static ditto_status take_many_parts(ditto_replica *self, void *argument)
{
    struct many *m = argument;
    double gradient[MANY];
    ditto_status status = DITTO_OK;
    for (uint32_t k = 0; k < MANY && status == DITTO_OK; k++) {
        ditto_tensor tensor = { .data = &gradient[k], .dtype = DITTO_F64 };
        gradient[k] = k;
        status = ditto_apply_start(self, m->optimizer, k, 1, &tensor, NULL);
    }
    if (status == DITTO_OK)
        status = ditto_apply_finish(self, m->optimizer, NULL);
    return status == DITTO_OK ? status : ditto_abandon(self, status);
}

static void a_step_may_have_any_number_of_parts(void **state)
{
    for (size_t i = 0; i < replica_counts_length; i++) {
        static ditto_variable *variable[MANY];
        struct many m = { .optimizer = NULL };
        double value = 0;
        ditto_tensor initial = { .data = &value, .dtype = DITTO_F64 };
        ditto_strategy *s = make_strategy(replica_counts[i], NULL);
        for (uint32_t k = 0; k < MANY; k++)
            assert_ok(ditto_variable_create(s, &initial, NULL, &variable[k]));
        assert_ok(ditto_optimizer_create(variable, MANY, &OPTIONS(optimizer, .rule = DITTO_RULE_ADD),
                                         &m.optimizer));
        for (int step = 0; step < 3; step++)
            run_all(s, take_many_parts, &m, &m.report);
        for (uint32_t k = 0; k < MANY; k++) {
            assert_ok(ditto_variable_read(variable[k], &value, sizeof value));
            assert_true(value == 3.0 * k * replica_counts[i]);
        }
        assert_ok(ditto_strategy_destroy(s));
        assert_ok(ditto_optimizer_destroy(m.optimizer));
        for (uint32_t k = 0; k < MANY; k++)
            assert_ok(ditto_variable_destroy(variable[k]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_give_the_bits_of_one_call),
        cmocka_unit_test(what_disturbs_a_started_step_is_an_error),
        cmocka_unit_test(a_run_that_fails_gives_the_step_up),
        cmocka_unit_test(a_step_belongs_to_its_run),
        cmocka_unit_test(the_default_strategy_has_started_steps),
        cmocka_unit_test(another_thread_can_go_on_with_a_step_of_the_default_strategy),
        cmocka_unit_test(two_optimizers_do_not_disturb_each_other),
        cmocka_unit_test(an_open_part_leaves_room_for_other_operations),
        cmocka_unit_test(a_step_may_have_any_number_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
