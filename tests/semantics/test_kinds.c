/* tests/semantics/test_kinds.c - docs/semantics.md, "Contexts" and "Losses, random numbers": the default
 * strategy (rules 1.1 to 1.3, 1.7 and 6.4), the kinds of strategy (8.15), and losses (11.1). */
#include "support/as_hosts.h"
#include "support/support.h"

#include "replicas/team/team_state.h"

#include <pthread.h>

/* -- the default strategy -- */

static ditto_status sum_argument(ditto_strategy *strategy, ditto_value *const *arguments, uint32_t count,
                                 void *user, ditto_value **result)
{
    if (count != 1 || context_here().kind != DITTO_CONTEXT_CROSS_REPLICA)
        return DITTO_ERR_USER;
    return ditto_strategy_reduce(strategy, DITTO_SUM, arguments[0], NULL, 0, result);
}

static ditto_status nothing(ditto_replica *self, void *unused)
{
    return DITTO_OK;
}

static ditto_status merge_with_cross_calls(ditto_strategy *strategy, ditto_value *const *arguments,
                                           uint32_t count, void *user, ditto_value **result)
{
    double one = 1;
    ditto_tensor t = { .data = &one, .dtype = DITTO_F64 };
    ditto_variable *variable;
    DITTO_TRY(ditto_strategy_run(strategy, nothing, NULL));
    DITTO_TRY(ditto_variable_create(strategy, &t, NULL, &variable));
    DITTO_TRY(ditto_variable_assign(variable, DITTO_ASSIGN, &one, sizeof one));
    DITTO_TRY(ditto_variable_destroy(variable));
    return ditto_strategy_value_from_tensors(strategy, &t, 1, result);
}

/* Makes replica calls on a thread that is in no strategy's scope. Returns 0 if all of them work. */
static int act_as_replica(void)
{
    ditto_replica *self = ditto_get_replica_context();
    double x[3] = { 1, 2, 3 }, y[3] = { 0 }, sum;
    ditto_tensor t = { .data = x, .dtype = DITTO_F64, .rank = 1, .shape = { 3 } }, all;
    const ditto_value *merged;
    ditto_pending pending;
    void *memory;
    REQUIRE(self != NULL && self == ditto_get_replica_context());
    REQUIRE(ditto_replica_id(self) == 0 && ditto_num_replicas(self) == 1);
    REQUIRE(ditto_all_reduce(self, x, y, 3, DITTO_F64, DITTO_MEAN, NULL) == DITTO_OK && y[2] == 3);
    REQUIRE(ditto_all_reduce(self, x, x, 3, DITTO_F64, DITTO_SUM, NULL) == DITTO_OK && x[0] == 1);
    REQUIRE(ditto_barrier(self, NULL) == DITTO_OK);
    REQUIRE(ditto_block_sum(self, x, &sum, 3, DITTO_F64, NULL) == DITTO_OK && sum == 6);
    REQUIRE(ditto_all_reduce_start(self, x, y, 3, DITTO_F64, DITTO_SUM, NULL, &pending) == DITTO_OK);
    REQUIRE(ditto_wait(self, &pending, NULL) == DITTO_OK && y[1] == 2);
    REQUIRE(ditto_all_gather_tensor(self, &t, 0, &all) == DITTO_OK && all.shape[0] == 3);
    REQUIRE(ditto_free(self, all.data) == DITTO_OK);
    REQUIRE(ditto_alloc(self, 1 << 20, 0, &memory) == DITTO_OK && ditto_free(self, memory) == DITTO_OK);
    REQUIRE(ditto_merge_call(self, sum_argument, NULL, &t, 1, &merged) == DITTO_OK);
    REQUIRE(ditto_local(self, merged, &all) == DITTO_OK && ((double *)all.data)[2] == 3);
    REQUIRE(ditto_merge_call(self, sum_argument, NULL, &t, 1, NULL) == DITTO_OK);
    REQUIRE(ditto_merge_call(self, merge_with_cross_calls, NULL, NULL, 0, NULL) == DITTO_OK);
    return 0;
}

static void *act_on_thread(void *failed)
{
    for (int i = 0; i < 50 && *(int *)failed == 0; i++)
        *(int *)failed = act_as_replica();
    return NULL;
}

static void rule_1_1_a_thread_without_a_strategy_is_replica_0_of_1(void **state)
{
    pthread_t thread[4];
    int failed[4] = { 0 };
    assert_false(context_here().has_strategy);
    assert_int_equal(context_here().kind, DITTO_CONTEXT_REPLICA);
    assert_int_equal(act_as_replica(), 0);
    for (int i = 0; i < 4; i++) /* each thread is a replica of its own, at the same time */
        assert_int_equal(pthread_create(&thread[i], NULL, act_on_thread, &failed[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(failed[i], 0);
    }
}

static ditto_status expect_contexts(ditto_replica *self, void *strategy)
{
    bool right = ditto_get_strategy() == strategy && ditto_get_replica_context() == self &&
                 context_here().has_strategy && context_here().kind == DITTO_CONTEXT_REPLICA &&
                 context_here().update_replica == DITTO_NO_REPLICA;
    return right ? DITTO_OK : ditto_fail(self, 1, "contexts");
}

static void rule_1_1_a_thread_is_in_exactly_one_context(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL), *plain = ditto_get_strategy();
    assert_non_null(plain);
    assert_int_equal(properties_of_strategy(plain).kind, DITTO_DEFAULT_STRATEGY);
    assert_ok(ditto_strategy_scope_enter(strategy));
    assert_ptr_equal(ditto_get_strategy(), strategy);
    assert_true(context_here().kind == DITTO_CONTEXT_CROSS_REPLICA && context_here().has_strategy);
    assert_null(ditto_get_replica_context());
    assert_ok(ditto_strategy_run(strategy, expect_contexts, strategy));
    assert_ok(ditto_strategy_scope_leave(strategy));
    assert_ptr_equal(ditto_get_strategy(), plain);
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_1_3_a_default_stays_until_it_is_replaced_or_cleared(void **state)
{
    ditto_strategy *one = make_strategy(2, NULL), *other = make_strategy(2, NULL);
    assert_ok(ditto_set_default(one));
    assert_ptr_equal(ditto_get_strategy(), one);
    assert_true(context_here().kind == DITTO_CONTEXT_CROSS_REPLICA);
    assert_ok(ditto_strategy_run(one, expect_contexts, one));
    assert_status(ditto_strategy_run(other, expect_contexts, other), DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_scope_enter(one));
    assert_status(ditto_set_default(other), DITTO_ERR_CONTEXT); /* is refused inside any scope */
    assert_ok(ditto_strategy_scope_leave(one));
    assert_status(ditto_strategy_scope_leave(one), DITTO_ERR_CONTEXT); /* a default is cleared, not left */
    assert_message("ditto_set_default(NULL)");
    assert_ok(ditto_set_default(other));
    assert_ptr_equal(ditto_get_strategy(), other);
    assert_status(ditto_strategy_destroy(other), DITTO_ERR_CONTEXT);
    assert_ok(ditto_set_default(NULL));
    assert_ok(ditto_set_default(NULL));
    assert_false(context_here().has_strategy);
    assert_ok(ditto_strategy_scope_enter(one));
    assert_status(ditto_set_default(NULL), DITTO_ERR_CONTEXT);
    assert_ok(ditto_strategy_scope_leave(one));
    assert_ok(ditto_strategy_destroy(one));
    assert_ok(ditto_strategy_destroy(other));
}

static void *set_default_and_end(void *strategy)
{
    return ditto_set_default(strategy) == DITTO_OK ? strategy : NULL;
}

static void rule_1_3_a_default_ends_with_its_thread(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    pthread_t thread;
    void *set;
    assert_int_equal(pthread_create(&thread, NULL, set_default_and_end, strategy), 0);
    pthread_join(thread, &set);
    assert_ptr_equal(set, strategy);
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status enter_and_forget(uint32_t replica, uint32_t num_replicas, void *strategy,
                                     ditto_tensor *component)
{
    static double zero;
    *component = (ditto_tensor){ .data = &zero, .dtype = DITTO_F64 };
    return replica == 0 ? ditto_strategy_scope_enter(strategy) : DITTO_OK;
}

static ditto_status initialize_and_forget(const ditto_tensor *value, size_t first_row, void *strategy)
{
    *(double *)value->data = 0;
    return ditto_strategy_scope_enter(strategy);
}

static ditto_status make_dataset_and_forget(const ditto_input_context *context, void *strategy,
                                            ditto_dataset **out)
{
    ditto_dataset *rows;
    DITTO_TRY(ditto_dataset_from_range(0, 8, 1, &rows));
    ditto_status status = ditto_dataset_batch(rows, 2, 0, out);
    DITTO_TRY(ditto_dataset_destroy(rows));
    return status == DITTO_OK ? ditto_strategy_scope_enter(strategy) : status;
}

/* Calls the functions above. Each of them is in the context of this function, and enters the scope of the
 * strategy without leaving it. */
static void call_functions_that_forget(ditto_strategy *plain, ditto_strategy *strategy)
{
    ditto_tensor initial = { .dtype = DITTO_F64 };
    ditto_variable *variable;
    ditto_iterator *iterator;
    ditto_value *value;
    if (plain != NULL) {
        assert_ok(ditto_strategy_value_from_function(plain, enter_and_forget, strategy, &value));
        assert_false(context_here().has_strategy);
        assert_ok(ditto_value_destroy(value));
    }
    assert_ok(ditto_variable_create(
        strategy, &initial,
        &OPTIONS(variable, .initialize = initialize_and_forget, .initialize_user = strategy), &variable));
    assert_int_equal(context_here().has_strategy, plain == NULL);
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(
        ditto_strategy_iterate_from_function(strategy, make_dataset_and_forget, strategy, NULL, &iterator));
    assert_int_equal(context_here().has_strategy, plain == NULL);
    assert_ok(ditto_iterator_destroy(iterator));
}

static void rule_1_2_a_scope_that_a_function_leaves_open_ends_with_the_call(void **state)
{
    ditto_strategy *plain = ditto_get_strategy(), *strategy = make_strategy(2, NULL);
    call_functions_that_forget(plain, strategy);
    assert_ok(ditto_strategy_scope_enter(strategy));
    call_functions_that_forget(NULL, strategy);
    assert_ok(ditto_strategy_scope_leave(strategy));
    assert_false(context_here().has_strategy);
    assert_ok(ditto_set_default(strategy));
    call_functions_that_forget(NULL, strategy);
    assert_ok(ditto_set_default(NULL));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_1_2_other_scopes_may_be_entered_inside_the_default_strategys(void **state)
{
    ditto_strategy *plain = ditto_get_strategy(), *real = make_strategy(2, NULL);
    assert_ok(ditto_strategy_scope_enter(plain));
    assert_true(context_here().kind == DITTO_CONTEXT_CROSS_REPLICA && !context_here().has_strategy);
    assert_ok(ditto_strategy_scope_enter(real)); /* another scope inside is allowed */
    assert_ptr_equal(ditto_get_strategy(), real);
    assert_status(ditto_strategy_scope_enter(plain), DITTO_ERR_CONTEXT); /* the reverse is not */
    assert_message("the default strategy's scope cannot be entered inside another strategy's");
    assert_ok(ditto_strategy_scope_leave(real));
    assert_ok(ditto_strategy_scope_leave(plain));
    assert_ok(ditto_strategy_destroy(real));
}

static void *get_strategy(void *unused)
{
    return ditto_get_strategy();
}

/* Returns the strategy of a thread that has entered no scope. */
static ditto_strategy *strategy_of_another_thread(void)
{
    pthread_t thread;
    void *strategy;
    assert_int_equal(pthread_create(&thread, NULL, get_strategy, NULL), 0);
    pthread_join(thread, &strategy);
    return strategy;
}

static ditto_status add_one(ditto_replica *self, void *variable)
{
    double one = 1;
    if (ditto_num_replicas(self) != 1)
        return ditto_fail(self, 1, "replicas");
    return ditto_assign(self, variable, DITTO_ASSIGN_ADD, &one);
}

static void rule_1_7_the_default_strategy_is_the_identity(void **state)
{
    ditto_strategy *plain = ditto_get_strategy(), *made;
    double x[2] = { 3, 4 }, number;
    uint32_t count;
    ditto_tensor t = { .data = x, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } };
    ditto_value *value, *result, *local[1];
    assert_int_equal(ditto_strategy_num_replicas(plain), 1);
    assert_ok(ditto_strategy_value(plain, &t, &value));
    assert_ok(ditto_strategy_reduce(plain, DITTO_SUM, value, NULL, 0, &result));
    assert_ptr_equal(result, value); /* the result is the value itself */
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_strategy_gather(plain, value, 0, &result));
    assert_ptr_equal(result, value);
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_strategy_local_results(plain, value, local, &count));
    assert_true(count == 1 && local[0] == value);
    assert_ok(ditto_value_destroy(local[0]));
    assert_ok(ditto_value_destroy(value));
    assert_ptr_equal(strategy_of_another_thread(), plain); /* there is one default strategy */
    assert_status(ditto_strategy_create(DITTO_DEFAULT_STRATEGY, NULL, &made), DITTO_ERR_RANGE);
    assert_status(ditto_strategy_destroy(plain), DITTO_ERR_CONTEXT);
    assert_null(properties_of_strategy(plain).placement); /* it has no devices */
    assert_int_equal(properties_of_strategy(plain).num_parameter_nodes, 0);
    /* A run and the replica of this thread can use a variable of the default strategy. */
    ditto_variable *variable;
    t.rank = 0;
    t.shape[0] = 0;
    assert_ok(
        ditto_variable_create(plain, &t, &OPTIONS(variable, .aggregation = DITTO_AGGREGATE_MEAN), &variable));
    assert_ok(ditto_strategy_run(plain, add_one, variable));
    assert_ok(add_one(ditto_get_replica_context(), variable));
    assert_ok(ditto_variable_read(variable, &number, sizeof number));
    assert_true(number == 5);
    assert_ptr_equal(properties_of(variable).strategy, plain);
    assert_ok(ditto_variable_destroy(variable));
}

/* Checks a plain value that is not `of` itself, and destroys its handle. */
static void expect_new_plain(ditto_value *result, const ditto_value *of, ditto_dtype dtype, double first)
{
    ditto_tensor t;
    assert_ptr_not_equal(result, of);
    assert_int_equal(properties_of_value(result).kind, DITTO_VALUE_PLAIN);
    assert_ok(ditto_value_tensor(result, &t));
    assert_int_equal(t.dtype, dtype);
    assert_true((dtype == DITTO_I32 ? *(int32_t *)t.data : *(double *)t.data) == first);
    assert_ok(ditto_value_destroy(result));
}

/* Checks that the only local result of `value` is a plain value that was taken from it. */
static void expect_one_local_result(ditto_strategy *strategy, const ditto_value *value, ditto_dtype dtype,
                                    double first)
{
    ditto_value *local[1];
    uint32_t count;
    assert_ok(ditto_strategy_local_results(strategy, value, local, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(properties_of_value(local[0]).container, value);
    expect_new_plain(local[0], value, dtype, first);
}

static void expect_per_replica_values_have_results(ditto_strategy *strategy)
{
    double x[2] = { 3, 4 };
    int32_t three = 3;
    ditto_tensor number = { .data = x, .dtype = DITTO_F64 }, integer = { .data = &three, .dtype = DITTO_I32 },
                 pair = { .data = x, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } };
    ditto_value *value, *result;
    assert_ok(ditto_strategy_value_from_tensors(strategy, &number, 1, &value));
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &result));
    expect_new_plain(result, value, DITTO_F64, 3);
    assert_status(ditto_strategy_gather(strategy, value, 0, &result), DITTO_ERR_SHAPE);
    expect_one_local_result(strategy, value, DITTO_F64, 3);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_value_from_tensors(strategy, &pair, 1, &value));
    assert_ok(ditto_strategy_gather(strategy, value, 0, &result));
    expect_new_plain(result, value, DITTO_F64, 3);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_strategy_value_from_tensors(strategy, &integer, 1, &value));
    assert_ok(ditto_strategy_reduce(strategy, DITTO_MEAN, value, NULL, 0, &result));
    expect_new_plain(result, value, DITTO_F64, 3);
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &result));
    expect_new_plain(result, value, DITTO_I32, 3);
    assert_ok(ditto_value_destroy(value));
}

static void expect_variables_have_results(ditto_strategy *strategy)
{
    double x[2] = { 3, 4 };
    ditto_tensor pair = { .data = x, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } };
    ditto_variable *variable;
    ditto_value *value, *result;
    assert_ok(ditto_variable_create(strategy, &pair, NULL, &variable));
    assert_ok(ditto_variable_value(variable, &value));
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, value, NULL, 0, &result));
    expect_new_plain(result, value, DITTO_F64, 3);
    assert_ok(ditto_strategy_gather(strategy, value, 0, &result));
    x[0] = 5;
    assert_ok(ditto_variable_assign(variable, DITTO_ASSIGN, x, sizeof x));
    expect_new_plain(result, value, DITTO_F64, 3); /* a copy, which the assignment does not change */
    expect_one_local_result(strategy, value, DITTO_F64, 5);
    assert_ok(ditto_value_destroy(value));
    assert_ok(ditto_variable_destroy(variable));
}

static void expect_member(const ditto_value *nest, const char *name, const ditto_value *member, bool same)
{
    const ditto_value *found;
    ditto_tensor t;
    assert_ok(ditto_value_member(nest, name, &found));
    assert_int_equal(found == member, same);
    assert_ok(ditto_value_tensor(found, &t));
    assert_true(*(double *)t.data == 3);
}

static void expect_nests_have_results(ditto_strategy *strategy)
{
    static const char *const names[] = { "plain", "per_replica" };
    double x[2] = { 3, 4 };
    ditto_tensor pair = { .data = x, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } };
    ditto_value *member[2], *nest, *result[3];
    uint32_t count;
    assert_ok(ditto_strategy_value(strategy, &pair, &member[0]));
    assert_ok(ditto_strategy_value_from_tensors(strategy, &pair, 1, &member[1]));
    assert_ok(ditto_strategy_nest(strategy, names, (const ditto_value *const *)member, 2, &nest));
    assert_ok(ditto_strategy_reduce(strategy, DITTO_SUM, nest, NULL, 0, &result[0]));
    assert_ok(ditto_strategy_gather(strategy, nest, 0, &result[1]));
    assert_ok(ditto_strategy_local_results(strategy, nest, &result[2], &count));
    assert_int_equal(count, 1);
    for (int i = 0; i < 3; i++) {
        expect_member(result[i], names[0], member[0], true);
        expect_member(result[i], names[1], member[1], false);
        assert_ok(ditto_value_destroy(result[i]));
    }
    assert_ok(ditto_value_destroy(nest));
    assert_ok(ditto_value_destroy(member[0]));
    assert_ok(ditto_value_destroy(member[1]));
}

static void rule_1_7_the_default_strategy_treats_values_as_any_strategy_of_one_replica(void **state)
{
    ditto_strategy *one = make_strategy(1, NULL), *strategies[2] = { ditto_get_strategy(), one };
    for (int i = 0; i < 2; i++) {
        expect_per_replica_values_have_results(strategies[i]);
        expect_variables_have_results(strategies[i]);
        expect_nests_have_results(strategies[i]);
    }
    assert_ok(ditto_strategy_destroy(one));
}

/* The variables that threads without a strategy share. Each round of a thread adds 1 to each of them several
 * times. */
struct shared {
    ditto_variable *mirrored, *on_read, *rows, *trained;
    ditto_optimizer *optimizer;
    pthread_barrier_t all_threads;
    int rounds;
};

static void count_step(const ditto_rule_range *range, void *user)
{
    for (size_t i = 0; i < range->count; i++) {
        ((double *)range->slot[0])[i] += 1;
        ((double *)range->value)[i] -= ((const double *)range->gradient)[i];
    }
}

static ditto_status add_one_to_copy(const ditto_tensor *copy, const ditto_tensor *arguments,
                                    uint32_t num_arguments, void *user, ditto_tensor *result)
{
    *(double *)copy->data += 1;
    return DITTO_OK;
}

static int write_shared(struct shared *s)
{
    ditto_replica *self = ditto_get_replica_context();
    double one = 1, minus_one = -1, found, norm;
    int64_t row = 1;
    ditto_slices slices = { .indices = &row, .values = &one, .rows = 1, .row_count = 1, .dtype = DITTO_F64 };
    ditto_tensor gradient = { .data = &minus_one, .dtype = DITTO_F64 };
    void *component;
    pthread_barrier_wait(&s->all_threads);
    for (int i = 0; i < s->rounds; i++) {
        REQUIRE(ditto_assign(self, s->mirrored, DITTO_ASSIGN_ADD, &one) == DITTO_OK);
        REQUIRE(ditto_variable_assign(s->mirrored, DITTO_ASSIGN_ADD, &one, sizeof one) == DITTO_OK);
        REQUIRE(ditto_update(self, s->mirrored, add_one_to_copy, NULL, NULL, 0, NULL) == DITTO_OK);
        REQUIRE(ditto_variable_read(s->mirrored, &found, sizeof found) == DITTO_OK && found >= 3 * (i + 1));
        REQUIRE(ditto_assign(self, s->on_read, DITTO_ASSIGN_ADD, &one) == DITTO_OK);
        REQUIRE(ditto_component(self, s->on_read, &component) == DITTO_OK);
        REQUIRE(ditto_scatter(self, s->rows, DITTO_SCATTER_ADD, &slices) == DITTO_OK);
        REQUIRE(ditto_lookup(self, s->rows, &row, 1, &found) == DITTO_OK && found >= i + 1);
        REQUIRE(ditto_apply(self, s->optimizer, &gradient, &OPTIONS(apply, .norm = &norm)) == DITTO_OK &&
                norm == 1);
    }
    return 0;
}

static void *write_shared_on_thread(void *shared)
{
    return write_shared(shared) == 0 ? shared : NULL;
}

static void make_shared(struct shared *s, uint32_t num_threads)
{
    double zeros[2] = { 0, 0 };
    ditto_tensor scalar = { .data = zeros, .dtype = DITTO_F64 },
                 pair = { .data = zeros, .dtype = DITTO_F64, .rank = 1, .shape = { 2 } };
    ditto_strategy *plain = ditto_get_strategy();
    ditto_variable_options options = OPTIONS(variable, .aggregation = DITTO_AGGREGATE_SUM);
    assert_ok(ditto_variable_create(plain, &scalar, &options, &s->mirrored));
    assert_ok(ditto_variable_create(plain, &pair, &options, &s->rows));
    assert_ok(ditto_variable_create(plain, &scalar, &options, &s->trained));
    options.synchronization = DITTO_ON_READ;
    assert_ok(ditto_variable_create(plain, &scalar, &options, &s->on_read));
    ditto_optimizer_options rule = OPTIONS(optimizer, .rule = DITTO_RULE_FUNCTION, .function = count_step,
                                           .num_slots = 1);
    rule.clip_norm = 2; /* more than the norm of the gradients */
    assert_ok(ditto_optimizer_create(&s->trained, 1, &rule, &s->optimizer));
    s->rounds = test_trials(5000);
    assert_int_equal(pthread_barrier_init(&s->all_threads, NULL, num_threads), 0);
}

/* Checks that the variable, of one or two f64, ends with this value. Then destroys it. */
static void expect_last(ditto_variable *variable, double expected)
{
    double found[2];
    ditto_tensor spec = spec_of(variable);
    size_t count = elements_in(&spec);
    assert_ok(ditto_variable_read(variable, found, count * sizeof(double)));
    assert_true(found[count - 1] == expected);
    assert_ok(ditto_variable_destroy(variable));
}

static void rule_6_4_threads_without_a_strategy_lose_no_write_to_a_shared_variable(void **state)
{
    for (uint32_t num_threads = 2; num_threads <= 8; num_threads *= 4) {
        struct shared s;
        pthread_t thread[8];
        void *worked[8];
        int64_t steps;
        make_shared(&s, num_threads);
        for (uint32_t i = 0; i < num_threads; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, write_shared_on_thread, &s), 0);
        for (uint32_t i = 0; i < num_threads; i++)
            pthread_join(thread[i], &worked[i]);
        for (uint32_t i = 0; i < num_threads; i++)
            assert_ptr_equal(worked[i], &s);
        double writes = (double)num_threads * s.rounds;
        ditto_variable *iterations;
        iterations = iterations_of(s.optimizer);
        assert_ok(ditto_variable_read(iterations, &steps, sizeof steps));
        assert_true((double)steps == writes);
        assert_ok(ditto_optimizer_destroy(s.optimizer));
        expect_last(s.mirrored, 3 * writes);
        expect_last(s.on_read, writes);
        expect_last(s.rows, writes);
        expect_last(s.trained, writes);
        pthread_barrier_destroy(&s.all_threads);
    }
}

static void the_default_strategy_is_not_counted_as_sharing_pus(void **state)
{
    ditto_strategy *strategy = make_strategy(1, NULL);
    ditto_replica_info info = DITTO_REPLICA_INFO_INIT;
    assert_non_null(ditto_get_replica_context());
    assert_ok(ditto_strategy_replica_info(strategy, 0, 0, &info));
    assert_int_equal(info.num_foreign_threads, 0);
    ditto_strategy *other = make_strategy(1, NULL); /* has the same PU, and is counted */
    assert_ok(ditto_strategy_replica_info(strategy, 0, 0, &info));
    assert_int_equal(info.num_foreign_threads, 1);
    assert_ok(ditto_strategy_destroy(other));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* The replica of the parent's thread. In the child no call may wait for the turn, because the thread that has
 * it may not exist there. */
static ditto_replica *parents_self;

/* The new strategy may have the address of the parent's, which is freed. So the test compares what belongs to
 * them. */
static int use_default_strategy(void *parents_variable)
{
    double number = 5;
    ditto_tensor t = { .data = &number, .dtype = DITTO_F64 };
    ditto_variable *own;
    REQUIRE(ditto_assign(parents_self, parents_variable, DITTO_ASSIGN_ADD, &number) == DITTO_ERR_FORKED);
    REQUIRE(ditto_variable_read(parents_variable, &number, sizeof number) == DITTO_ERR_FORKED);
    ditto_strategy *fresh = ditto_get_strategy();
    REQUIRE(fresh != NULL && ditto_strategy_num_replicas(fresh) == 1);
    ditto_variable_properties properties = DITTO_VARIABLE_PROPERTIES_INIT;
    REQUIRE(ditto_variable_info(parents_variable, &properties) == DITTO_OK && properties.strategy == NULL);
    REQUIRE(ditto_variable_read(parents_variable, &number, sizeof number) == DITTO_ERR_CONTEXT);
    REQUIRE(ditto_variable_create(fresh, &t, NULL, &own) == DITTO_OK);
    REQUIRE(ditto_variable_info(own, &properties) == DITTO_OK && properties.strategy == fresh);
    REQUIRE(ditto_variable_destroy(own) == DITTO_OK);
    REQUIRE(act_as_replica() == 0);
    return 0;
}

static void after_fork_there_is_another_default_strategy(void **state)
{
    double three = 3, number = 0;
    ditto_tensor t = { .data = &three, .dtype = DITTO_F64 };
    ditto_variable *variable;
    parents_self = ditto_get_replica_context();
    assert_non_null(parents_self);
    assert_ok(ditto_variable_create(ditto_get_strategy(), &t, NULL, &variable));
    assert_int_equal(in_child(use_default_strategy, variable, 60), 0);
    assert_ok(ditto_variable_read(variable, &number, sizeof number));
    assert_true(number == 3);
    assert_ok(ditto_variable_destroy(variable));
    assert_int_equal(act_as_replica(), 0);
}

/* -- central storage and one device -- */

static ditto_status add_ids(ditto_replica *self, void *variable)
{
    double id = ditto_replica_id(self);
    return ditto_assign(self, variable, DITTO_ASSIGN_ADD, &id);
}

static void rule_8_15_central_storage_keeps_one_copy(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        uint32_t node = 0;
        ditto_strategy *strategy;
        assert_ok(ditto_strategy_create(
            DITTO_CENTRAL_STORAGE,
            &OPTIONS(strategy, .num_replicas = n, .parameter_node = node, .has_parameter_node = 1),
            &strategy));
        assert_int_equal(properties_of_strategy(strategy).kind, DITTO_CENTRAL_STORAGE);
        assert_int_equal(properties_of_strategy(strategy).num_parameter_nodes, 1);
        assert_int_equal(properties_of_strategy(strategy).parameter_nodes[0], 0);
        double zero = 0, number, parts[64];
        ditto_tensor t = { .data = &zero, .dtype = DITTO_F64 }, each[64];
        ditto_variable_options requested = DITTO_VARIABLE_OPTIONS_INIT;
        ditto_variable *variable, *unaggregated, *refused;
        requested.copies = DITTO_COPIES_PER_REPLICA; /* is ignored */
        requested.aggregation = DITTO_AGGREGATE_SUM;
        assert_ok(ditto_variable_create(strategy, &t, &requested, &variable));
        const void *first, *last;
        assert_ok(component_of(variable, 0, &first));
        assert_ok(component_of(variable, n - 1, &last));
        assert_ptr_equal(first, last);
        assert_ok(ditto_strategy_run(strategy, add_ids, variable));
        assert_ok(ditto_variable_read(variable, &number, sizeof number));
        assert_true(number == n * (n - 1) / 2.0);
        assert_ok(ditto_variable_create(strategy, &t, NULL, &unaggregated));
        /* Writes in a run need an aggregation. */
        assert_status(ditto_strategy_run(strategy, add_ids, unaggregated), DITTO_ERR_INVALID);
        assert_message("aggregation");
        for (uint32_t r = 0; r < n; r++) {
            parts[r] = r;
            each[r] = (ditto_tensor){ .data = &parts[r], .dtype = DITTO_F64 };
        }
        ditto_value *value;
        assert_ok(ditto_strategy_value_from_tensors(strategy, each, 1, &value));
        /* Updates with per-replica arguments are refused before the function is called. */
        if (n > 1)
            assert_status(ditto_variable_update(variable, (ditto_update_fn)(uintptr_t)add_ids, NULL,
                                                (const ditto_value *[]){ value }, 1, NULL, NULL),
                          DITTO_ERR_INVALID);
        requested.synchronization = DITTO_ON_READ;
        assert_status(ditto_variable_create(strategy, &t, &requested, &refused), DITTO_ERR_UNSUPPORTED);
        assert_ok(ditto_value_destroy(value));
        assert_ok(ditto_variable_destroy(variable));
        assert_ok(ditto_variable_destroy(unaggregated));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* tests/numa/test_numa_variables.c tries a node that exists and has no memory, on an emulated machine. */
static void rule_8_15_a_parameter_node_must_exist(void **state)
{
    uint32_t node = 999;
    ditto_strategy *strategy;
    ditto_strategy_options options = OPTIONS(strategy, .num_replicas = 2, .parameter_node = node,
                                             .has_parameter_node = 1);
    assert_status(ditto_strategy_create(DITTO_CENTRAL_STORAGE, &options, &strategy), DITTO_ERR_RANGE);
    assert_message("parameter_node 999");
    assert_status(ditto_strategy_create(DITTO_MIRRORED, &options, &strategy), DITTO_ERR_INVALID);
    assert_message("central storage");
}

static void rule_8_15_one_device_has_one_replica(void **state)
{
    ditto_strategy *strategy;
    char text[2048];
    assert_ok(ditto_strategy_create(DITTO_ONE_DEVICE, NULL, &strategy));
    assert_int_equal(ditto_strategy_num_replicas(strategy), 1);
    assert_ok(ditto_strategy_describe(strategy, text, sizeof text, NULL));
    assert_non_null(strstr(text, "one device strategy, 1 replica"));
    assert_ok(ditto_strategy_destroy(strategy));
    assert_status(ditto_strategy_create(DITTO_ONE_DEVICE, &OPTIONS(strategy, .num_replicas = 2), &strategy),
                  DITTO_ERR_INVALID);
}

/* -- options that can be set to 0 -- */

static void spinning_can_be_set_to_0_us(void **state)
{
    for (int has_zero = 0; has_zero < 2; has_zero++) {
        ditto_strategy_options options = OPTIONS(strategy, .has_spin_us = has_zero);
        ditto_strategy *strategy = make_strategy(2, &options);
        assert_int_equal(dti_team_of(strategy)->options.has_spin_us, has_zero);
        assert_int_equal(dti_team_of(strategy)->options.spin_us, 0);
        assert_ok(ditto_strategy_run(strategy, nothing, NULL));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

/* -- losses -- */

static ditto_status average(ditto_replica *self, void *argument)
{
    struct report *report = argument;
    float loss[4] = { 1, 2, 3, 4 }, weight[2] = { 2, 0 };
    double out;
    uint32_t n = ditto_num_replicas(self);
    ditto_tensor losses = { .data = loss, .dtype = DITTO_F32, .rank = 2, .shape = { 2, 2 } };
    ditto_tensor weights = { .data = weight, .dtype = DITTO_F32, .rank = 1, .shape = { 2 } };
    EXPECT(report, ditto_average_loss(self, &losses, NULL, 0, &out) == DITTO_OK && out == 10.0 / (2 * n));
    EXPECT(report, ditto_average_loss(self, &losses, NULL, 5, &out) == DITTO_OK && out == 2);
    EXPECT(report, ditto_average_loss(self, &losses, &weights, 0, &out) == DITTO_OK && out == 6.0 / (2 * n));
    weights.shape[0] = 1;
    EXPECT(report, ditto_average_loss(self, &losses, &weights, 0, &out) == DITTO_ERR_SHAPE);
    /* A scalar is the weight of all losses. It does not change the divisor. */
    weights = (ditto_tensor){ .data = weight, .dtype = DITTO_F32 };
    EXPECT(report, ditto_average_loss(self, &losses, &weights, 0, &out) == DITTO_OK && out == 20.0 / (2 * n));
    EXPECT(report, ditto_average_loss(self, &losses, &weights, 5, &out) == DITTO_OK && out == 4);
    losses.rank = 0;
    losses.shape[0] = 0;
    EXPECT(report, ditto_average_loss(self, &losses, NULL, 0, &out) == DITTO_ERR_SHAPE);
    losses = (ditto_tensor){ .data = loss, .dtype = DITTO_I32, .rank = 1, .shape = { 4 } };
    EXPECT(report, ditto_average_loss(self, &losses, NULL, 0, &out) == DITTO_ERR_UNSUPPORTED);
    losses = (ditto_tensor){ .dtype = DITTO_F32, .rank = 1, .shape = { 0 } };
    EXPECT(report, ditto_average_loss(self, &losses, NULL, 8, &out) == DITTO_OK && out == 0);
    return DITTO_OK;
}

static void rule_11_1_losses_add_up_to_the_global_mean(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        struct report report = { 0 };
        ditto_strategy *strategy = make_strategy(replica_counts[k], NULL);
        run_all(strategy, average, &report, &report);
        double out;
        ditto_tensor t = { .dtype = DITTO_F32, .rank = 1 };
        assert_ok(ditto_strategy_scope_enter(strategy)); /* cross-replica context */
        assert_status(ditto_average_loss((ditto_replica *)&t, &t, NULL, 1, &out), DITTO_ERR_CONTEXT);
        assert_status(ditto_average_loss(ditto_get_replica_context(), &t, NULL, 1, &out), DITTO_ERR_CONTEXT);
        assert_ok(ditto_strategy_scope_leave(strategy));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_1_1_a_thread_without_a_strategy_is_replica_0_of_1),
        cmocka_unit_test(rule_1_1_a_thread_is_in_exactly_one_context),
        cmocka_unit_test(rule_1_2_other_scopes_may_be_entered_inside_the_default_strategys),
        cmocka_unit_test(rule_1_3_a_default_stays_until_it_is_replaced_or_cleared),
        cmocka_unit_test(rule_1_3_a_default_ends_with_its_thread),
        cmocka_unit_test(rule_1_2_a_scope_that_a_function_leaves_open_ends_with_the_call),
        cmocka_unit_test(rule_1_7_the_default_strategy_is_the_identity),
        cmocka_unit_test(rule_1_7_the_default_strategy_treats_values_as_any_strategy_of_one_replica),
        cmocka_unit_test(rule_6_4_threads_without_a_strategy_lose_no_write_to_a_shared_variable),
        cmocka_unit_test(the_default_strategy_is_not_counted_as_sharing_pus),
        cmocka_unit_test(after_fork_there_is_another_default_strategy),
        cmocka_unit_test(rule_8_15_central_storage_keeps_one_copy),
        cmocka_unit_test(rule_8_15_a_parameter_node_must_exist),
        cmocka_unit_test(rule_8_15_one_device_has_one_replica),
        cmocka_unit_test(spinning_can_be_set_to_0_us),
        cmocka_unit_test(rule_11_1_losses_add_up_to_the_global_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
