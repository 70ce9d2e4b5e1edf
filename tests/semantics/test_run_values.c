/* tests/semantics/test_run_values.c - docs/semantics.md, "run": arguments, results, options and steps
 * (rules 2.2, 2.3 and 2.5 to 2.8). */
#include "support/as_hosts.h"
#include "support/support.h"

/* -- arguments and results -- */

/* Returns a value whose component of replica r is r, r + 1, r + 2 and so on. Components have 4 elements, and
 * that of replica 0 has `extra` more. */
static ditto_value *make_rows(ditto_strategy *strategy, size_t extra)
{
    uint32_t n = ditto_strategy_num_replicas(strategy);
    static double rows[64][8];
    ditto_tensor *t = calloc(n, sizeof *t);
    ditto_value *value;
    for (uint32_t r = 0; r < n; r++) {
        for (int i = 0; i < 8; i++)
            rows[r][i] = (double)r + i;
        t[r] = (ditto_tensor){
            .data = rows[r], .dtype = DITTO_F64, .rank = 1, .shape = { 4 + (r == 0 ? extra : 0) }
        };
    }
    assert_ok(ditto_strategy_value_from_tensors(strategy, t + first_local(strategy), 1, &value));
    free(t);
    return value;
}

static ditto_status mean_of_rows(ditto_replica *self, void *unused)
{
    ditto_tensor x;
    double sum = 0;
    DITTO_TRY(ditto_argument(self, NULL, &x));
    for (size_t i = 0; i < x.shape[0]; i++)
        sum += ((const double *)x.data)[i];
    return ditto_return_f64(self, NULL, sum / (double)x.shape[0]);
}

static void rule_2_2_each_replica_gets_its_component_and_results_are_in_order(void **state)
{
    for (size_t k = 0; k < replica_counts_length; k++) {
        uint32_t n = replica_counts[k];
        ditto_strategy *strategy = make_strategy(n, NULL);
        ditto_value *x = make_rows(strategy, 0), *means;
        double sum;
        assert_ok(ditto_strategy_run_values(strategy, mean_of_rows, NULL, x, NULL, &means));
        assert_int_equal(properties_of_value(means).kind,
                         DITTO_VALUE_PER_REPLICA); /* also with one replica */
        for (uint32_t r = first_local(strategy); r < end_local(strategy); r++) {
            ditto_tensor t;
            assert_ok(ditto_value_component(means, r, &t));
            assert_true(t.rank == 0 && *(double *)t.data == r + 1.5);
        }
        assert_ok(ditto_strategy_reduce_f64(strategy, DITTO_SUM, means, &sum));
        assert_true(sum == n * (n - 1) / 2.0 + 1.5 * n);
        assert_ok(ditto_value_destroy(means));
        assert_ok(ditto_value_destroy(x));
        assert_ok(ditto_strategy_destroy(strategy));
    }
}

struct seen {
    struct report report;
    const void *plain;
};

static ditto_status look_at_nest(ditto_replica *self, void *argument)
{
    struct seen *seen = argument;
    ditto_tensor t;
    DITTO_TRY(ditto_argument(self, "rows/0", &t));
    EXPECT(&seen->report, ((double *)t.data)[0] == ditto_replica_id(self));
    DITTO_TRY(ditto_argument(self, "scale", &t));
    EXPECT(&seen->report, t.data == seen->plain); /* all replicas get the plain value itself */
    EXPECT(&seen->report, ditto_argument(self, "rows", &t) == DITTO_ERR_INVALID);
    EXPECT(&seen->report, ditto_argument(self, "missing", &t) == DITTO_ERR_NOT_FOUND);
    return DITTO_OK;
}

static void rule_2_2_a_nest_is_given_leaf_by_leaf(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    double scale = 3;
    ditto_tensor t = { .data = &scale, .dtype = DITTO_F64 };
    struct seen seen = { .plain = &scale };
    ditto_value *rows = make_rows(strategy, 0), *plain, *list, *nest, *nothing = rows;
    assert_ok(ditto_strategy_value(strategy, &t, &plain));
    assert_ok(ditto_strategy_nest(strategy, NULL, (const ditto_value *[]){ rows }, 1, &list));
    assert_ok(ditto_strategy_nest(strategy, (const char *[]){ "rows", "scale" },
                                  (const ditto_value *[]){ list, plain }, 2, &nest));
    ditto_status status = ditto_strategy_run_values(strategy, look_at_nest, &seen, nest, NULL, &nothing);
    assert_string_equal(seen.report.first_failure, "");
    assert_ok(status);
    assert_null(nothing); /* the function returned nothing */
    ditto_value *all[] = { rows, plain, list, nest };
    for (int i = 0; i < 4; i++)
        assert_ok(ditto_value_destroy(all[i]));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status return_two(ditto_replica *self, void *numbered)
{
    double id = ditto_replica_id(self);
    float wide[3] = { 1, 2, (float)id };
    ditto_tensor t = { .data = wide, .dtype = DITTO_F32, .rank = 1, .shape = { 3 } };
    bool first = ditto_replica_is_first_of_host(self); /* this replica returns b first, and a twice */
    const char *a = numbered != NULL ? "0" : "id", *b = numbered != NULL ? "1" : "wide";
    if (first) { /* it writes b without a copy */
        t.data = NULL;
        DITTO_TRY(ditto_return(self, b, &t));
        memcpy(t.data, wide, sizeof wide);
    }
    if (first)
        DITTO_TRY(ditto_return_f64(self, a, -1)); /* is replaced by the next one of this name */
    DITTO_TRY(ditto_return_f64(self, a, id));
    return first ? DITTO_OK : ditto_return(self, b, &t);
}

static void rule_2_2_results_have_names_or_numbers_in_any_order(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    for (int numbered = 0; numbered < 2; numbered++) {
        ditto_value *results;
        const ditto_value *member;
        ditto_tensor t;
        assert_ok(ditto_strategy_run_values(strategy, return_two, numbered ? &numbered : NULL, NULL, NULL,
                                            &results));
        assert_int_equal(properties_of_value(results).num_members, 2);
        /* Numbers are sorted. Names have the order of the first replica of this host. */
        assert_string_equal(properties_of_value(results).members[0].name, numbered ? "0" : "wide");
        for (uint32_t r = first_local(strategy); r < end_local(strategy); r++) {
            assert_ok(ditto_value_member(results, numbered ? "1" : "wide", &member));
            assert_ok(ditto_value_component(member, r, &t));
            assert_true(((float *)t.data)[2] == (float)r && t.shape[0] == 3);
            assert_ok(ditto_value_member(results, numbered ? "0" : "id", &member));
            assert_ok(ditto_value_component(member, r, &t));
            assert_true(*(double *)t.data == r);
        }
        assert_ok(ditto_value_destroy(results));
    }
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status return_in_another_order(ditto_replica *self, void *unused)
{
    bool odd = ditto_replica_id(self) % 2 == 1;
    DITTO_TRY(ditto_return_f64(self, odd ? "b" : "a", odd ? 20 : 1));
    return ditto_return_f64(self, odd ? "a" : "b", odd ? 2 : 10);
}

static void rule_2_2_results_that_are_reduced_are_returned_in_any_order(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_result_op ops[] = { { "a", DITTO_SUM }, { "b", DITTO_SUM } };
    ditto_value *results;
    const ditto_value *a, *b;
    double of_a, of_b;
    assert_ok(ditto_strategy_run_values(strategy, return_in_another_order, NULL, NULL,
                                        &OPTIONS(run, .reduce = ops, .num_reduce = 2), &results));
    assert_ok(ditto_value_member(results, "a", &a));
    assert_ok(ditto_value_member(results, "b", &b));
    assert_ok(ditto_value_f64(a, &of_a));
    assert_ok(ditto_value_f64(b, &of_b));
    assert_true(of_a == 3 && of_b == 30);
    assert_ok(ditto_value_destroy(results));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* Returns the id. Then returns more memory than a process can have under the same name, and ignores the
 * error. */
static ditto_status return_id_then_too_much(ditto_replica *self, void *unused)
{
    ditto_tensor huge = { .dtype = DITTO_F64, .rank = 1, .shape = { (size_t)1 << 58 } };
    DITTO_TRY(ditto_return_f64(self, "id", ditto_replica_id(self)));
    return ditto_return(self, "id", &huge) == DITTO_ERR_NO_MEMORY ? DITTO_OK : DITTO_ERR_USER;
}

static void rule_2_2_a_return_that_fails_leaves_the_earlier_result(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_value *results;
    const ditto_value *id;
    ditto_tensor t;
    assert_ok(ditto_strategy_run_values(strategy, return_id_then_too_much, NULL, NULL, NULL, &results));
    assert_ok(ditto_value_member(results, "id", &id));
    for (uint32_t r = first_local(strategy); r < end_local(strategy); r++) {
        assert_ok(ditto_value_component(id, r, &t));
        assert_true(t.dtype == DITTO_F64 && t.rank == 0 && *(double *)t.data == r);
    }
    assert_ok(ditto_value_destroy(results));
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- results that differ between replicas, or are wrong on every replica -- */

enum wrong { EMPTY, MISSING, MORE, DTYPE, RANK, GAP, MIXED, MIXED_NUMBERS, LONG_NAME, SLASH, TOO_MANY, KIND };

/* MISSING, MORE, DTYPE, RANK and KIND are mistakes of the replicas 1, 4, 7 and so on. All replicas make the
 * others. */
static ditto_status return_wrongly(ditto_replica *self, void *argument)
{
    enum wrong wrong = *(const enum wrong *)argument;
    bool differs = ditto_replica_id(self) % 3 == 1;
    double x[2] = { 1, 2 };
    ditto_tensor t = { .data = x, .dtype = differs && wrong == DTYPE ? DITTO_I64 : DITTO_F64 };
    ditto_slices slices = { .row_count = 1, .dtype = DITTO_F64 };
    if (differs && wrong == RANK) {
        t.rank = 1;
        t.shape[0] = 2;
    }
    if (wrong == GAP) {
        /* The order in which a replica returns its results does not matter. */
        DITTO_TRY(ditto_return(self, differs ? "0" : "2", &t));
        return ditto_return(self, differs ? "2" : "0", &t);
    }
    if (wrong == MIXED || wrong == MIXED_NUMBERS) {
        DITTO_TRY(ditto_return(self, wrong == MIXED ? NULL : "0", &t));
        return ditto_return(self, "name", &t);
    }
    if (wrong == EMPTY)
        return ditto_return(self, "", &t);
    if (wrong == LONG_NAME)
        return ditto_return(self, "a name that is longer than the forty-seven characters that there are", &t);
    if (wrong == SLASH)
        return ditto_return(self, "a/b", &t);
    for (int i = 0; wrong == TOO_MANY && i < 40; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        DITTO_TRY(ditto_return(self, name, &t));
    }
    if (wrong == KIND && differs)
        return ditto_return_slices(self, "loss", &slices, 0);
    if (!(wrong == MISSING && differs))
        DITTO_TRY(ditto_return(self, "loss", &t));
    return wrong == MORE && differs ? ditto_return(self, "accuracy", &t) : DITTO_OK;
}

/* Also destroys the strategy. `between_hosts` is the message if the replicas whose results differ are on
 * different hosts. NULL: they are on one. */
static void check_wrong_results(ditto_strategy *strategy, const char *between_hosts)
{
    static const struct {
        enum wrong wrong;
        ditto_status status;
        const char *message;
    } cases[] = {
        { MISSING, DITTO_ERR_DIVERGED, "replica 0 returned the result loss, but replica 1 did not" },
        { MORE, DITTO_ERR_DIVERGED, "replica 1 returned the result accuracy, but replica 0 did not" },
        { DTYPE, DITTO_ERR_DIVERGED, "f64, rank 0 from replica 0, but a per-replica value of i64" },
        { RANK, DITTO_ERR_DIVERGED, "rank 1 from replica 1" },
        { KIND, DITTO_ERR_DIVERGED, "slices of f64" },
        { GAP, DITTO_ERR_INVALID, "the result \"1\" was never returned" },
        { MIXED, DITTO_ERR_INVALID, "one without a name, or all with names" },
        { MIXED_NUMBERS, DITTO_ERR_INVALID, "or all with numbers" },
        { LONG_NAME, DITTO_ERR_RANGE, "47" },
        { SLASH, DITTO_ERR_INVALID, "'/'" },
        { EMPTY, DITTO_ERR_INVALID, "it is empty" },
        { TOO_MANY, DITTO_ERR_RANGE, "more than 32" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum wrong wrong = cases[i].wrong;
        ditto_value *result = NULL;
        assert_status(ditto_strategy_run_values(strategy, return_wrongly, &wrong, NULL, NULL, &result),
                      cases[i].status);
        bool diverged = cases[i].status == DITTO_ERR_DIVERGED;
        assert_message(diverged && between_hosts != NULL ? between_hosts : cases[i].message);
        assert_null(result);
    }
    ditto_value *means, *x = make_rows(strategy, 0);
    /* A run works again. */
    assert_ok(ditto_strategy_run_values(strategy, mean_of_rows, NULL, x, NULL, &means));
    assert_ok(ditto_value_destroy(means));
    assert_ok(ditto_value_destroy(x));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_2_2_results_that_differ_are_refused_as_diverged(void **state)
{
    check_wrong_results(make_strategy(3 * test_hosts(), NULL), NULL); /* they differ on each host */
}

static void rule_2_2_results_that_differ_on_one_host_are_refused_on_all(void **state)
{
    /* Only replica 1 differs. It is alone on its host if there are three. */
    check_wrong_results(make_strategy(3, NULL), test_hosts() == 3 ? "calls the results of a run" : NULL);
}

static ditto_status return_more_on_the_last(ditto_replica *self, void *unused)
{
    DITTO_TRY(ditto_return_f64(self, "loss", 1));
    return ditto_replica_id(self) + 1 == ditto_num_replicas(self) ? ditto_return_f64(self, "accuracy", 1)
                                                                  : DITTO_OK;
}

static void rule_2_2_a_message_names_the_replicas_whose_results_differ(void **state)
{
    ditto_strategy *strategy = make_strategy(2 * test_hosts(), NULL);
    uint32_t last = ditto_strategy_num_replicas(strategy) - 1; /* on the last host, with the one before it */
    char expected[100];
    ditto_value *result = NULL;
    assert_status(ditto_strategy_run_values(strategy, return_more_on_the_last, NULL, NULL, NULL, &result),
                  DITTO_ERR_DIVERGED);
    snprintf(expected, sizeof expected, "replica %u returned the result accuracy, but replica", last);
    assert_message(expected);
    assert_null(result);
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status return_something(ditto_replica *self, void *report)
{
    ditto_tensor t;
    EXPECT((struct report *)report, ditto_return_f64(self, NULL, 1) == DITTO_ERR_CONTEXT);
    EXPECT((struct report *)report, strstr(ditto_last_error()->message, "ditto_strategy_run_values") != NULL);
    EXPECT((struct report *)report, ditto_argument(self, NULL, &t) == DITTO_ERR_NOT_FOUND);
    return DITTO_OK;
}

static void results_and_arguments_belong_to_run_values(void **state)
{
    struct report report = { 0 };
    ditto_strategy *strategy = make_strategy(2, NULL);
    run_all(strategy, return_something, &report, &report);
    assert_status(ditto_strategy_run_values(strategy, NULL, NULL, NULL, NULL, NULL), DITTO_ERR_INVALID);
    assert_message("function is NULL");
    ditto_value *x = make_rows(strategy, 0);
    assert_ok(ditto_strategy_run_values(strategy, mean_of_rows, NULL, x, NULL, NULL)); /* drops the results */
    ditto_strategy *other = make_strategy(2, NULL);
    assert_status(ditto_strategy_run_values(other, mean_of_rows, NULL, x, NULL, NULL), DITTO_ERR_CONTEXT);
    assert_message("mixing strategies");
    assert_ok(ditto_strategy_destroy(other));
    assert_ok(ditto_value_destroy(x));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status fail_on_one(ditto_replica *self, void *unused)
{
    DITTO_TRY(ditto_return_f64(self, "loss", 1));
    return ditto_replica_id(self) == 1 ? ditto_fail(self, 9, "no gradient") : DITTO_OK;
}

static void rule_2_3_the_original_error_reaches_the_caller_with_its_replica(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_value *result = NULL;
    assert_status(ditto_strategy_run_values(strategy, fail_on_one, NULL, NULL, NULL, &result),
                  DITTO_ERR_USER);
    assert_message("no gradient");
    assert_int_equal(ditto_last_error()->replica, 1);
    assert_int_equal(ditto_last_error()->user_code, 9);
    assert_null(result);
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_2_5_a_short_batch_is_refused_when_dynamic_batch_is_off(void **state)
{
    ditto_strategy *strategy = make_strategy(3 * test_hosts(), NULL);
    ditto_value *even = make_rows(strategy, 0), *uneven = make_rows(strategy, 2), *means;
    ditto_run_options fixed = OPTIONS(run, .dynamic_batch = DITTO_SWITCH_OFF);
    assert_ok(ditto_strategy_run_values(strategy, mean_of_rows, NULL, even, &fixed, &means));
    assert_ok(ditto_value_destroy(means));
    /* dynamic_batch is on by default. */
    assert_ok(ditto_strategy_run_values(strategy, mean_of_rows, NULL, uneven, NULL, &means));
    assert_ok(ditto_value_destroy(means));
    assert_status(ditto_strategy_run_values(strategy, mean_of_rows, NULL, uneven, &fixed, &means),
                  DITTO_ERR_SHAPE);
    assert_message("dynamic_batch is OFF");
    fixed.dynamic_batch = (ditto_switch)7;
    assert_status(ditto_strategy_run_values(strategy, mean_of_rows, NULL, even, &fixed, &means),
                  DITTO_ERR_RANGE);
    assert_ok(ditto_value_destroy(even));
    assert_ok(ditto_value_destroy(uneven));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void rule_2_5_shapes_that_differ_between_hosts_are_refused(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *uneven = make_rows(strategy, 2), *means;
    assert_status(ditto_strategy_run_values(strategy, mean_of_rows, NULL, uneven,
                                            &OPTIONS(run, .dynamic_batch = DITTO_SWITCH_OFF), &means),
                  DITTO_ERR_SHAPE);
    assert_ok(ditto_value_destroy(uneven));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status count_side_effect(ditto_replica *self, void *counts)
{
    ((_Atomic int *)counts)[ditto_replica_id(self)]++;
    return ditto_return_f64(self, NULL, 0);
}

static void rule_2_6_side_effects_happen_even_if_results_are_dropped(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    _Atomic int counts[3] = { 0 };
    assert_ok(ditto_strategy_run_values(strategy, count_side_effect, counts, NULL, NULL, NULL));
    for (uint32_t r = first_local(strategy); r < end_local(strategy); r++)
        assert_int_equal(counts[r], 1);
    assert_ok(ditto_strategy_destroy(strategy));
}

/* -- run_steps -- */

static ditto_status sum_batch(ditto_replica *self, const ditto_batch *batch, void *calls)
{
    double sum = 0;
    for (uint64_t i = 0; i < batch->rows; i++)
        sum += ((const double *)batch->component[0].data)[i];
    if (calls != NULL)
        ((_Atomic int *)calls)[0]++;
    DITTO_TRY(ditto_return_f64(self, "sum", sum));
    return ditto_return_f64(self, "rows", (double)batch->rows);
}

static void rule_2_7_run_steps_gives_the_results_of_the_last_step(void **state)
{
    double numbers[20];
    for (int i = 0; i < 20; i++)
        numbers[i] = i;
    ditto_tensor array = { .data = numbers, .dtype = DITTO_F64, .rank = 1, .shape = { 20 } };
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_dataset *source, *batched;
    ditto_iterator *iterator;
    ditto_value *result;
    const ditto_value *member;
    uint64_t done;
    double number;
    _Atomic int calls = 0;
    assert_ok(ditto_dataset_from_arrays(&array, 1, &source));
    assert_ok(ditto_dataset_batch(source, 4, 0, &batched));
    assert_ok(ditto_strategy_iterate(strategy, batched, NULL, &iterator));
    ditto_result_op ops[] = { { "sum", DITTO_SUM } };
    ditto_run_options options = OPTIONS(run, .reduce = ops, .num_reduce = 1);
    assert_ok(ditto_strategy_run_steps(strategy, sum_batch, &calls, iterator, 2, &options, &done, &result));
    assert_int_equal(done, 2);
    assert_int_equal(calls, 2 * num_local(strategy)); /* two replicas on all hosts, two steps */
    assert_ok(ditto_value_member(result, "sum", &member));
    assert_int_equal(properties_of_value(member).kind, DITTO_VALUE_PLAIN); /* it is reduced */
    assert_ok(ditto_value_f64(member, &number));
    assert_true(number == 4 + 5 + 6 + 7);
    assert_ok(ditto_value_member(result, "rows", &member));
    assert_int_equal(properties_of_value(member).kind, DITTO_VALUE_PER_REPLICA); /* it is not reduced */
    assert_ok(ditto_value_destroy(result));
    /* The input ends before the tenth step. The results are those of the last step that ran. */
    assert_int_equal(
        ditto_strategy_run_steps(strategy, sum_batch, &calls, iterator, 10, &options, &done, &result),
        DITTO_END_OF_INPUT);
    assert_int_equal(done, 3);
    assert_ok(ditto_value_member(result, "sum", &member));
    assert_ok(ditto_value_f64(member, &number));
    assert_true(number == 16 + 17 + 18 + 19);
    assert_ok(ditto_value_destroy(result));
    result = (ditto_value *)&done; /* becomes NULL, because no step runs */
    assert_int_equal(
        ditto_strategy_run_steps(strategy, sum_batch, &calls, iterator, 1, &options, &done, &result),
        DITTO_END_OF_INPUT);
    assert_int_equal(done, 0);
    assert_null(result);
    assert_ok(ditto_iterator_destroy(iterator));
    assert_ok(ditto_dataset_destroy(batched));
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status name_the_step(ditto_replica *self, const ditto_batch *batch, void *unused)
{
    char name[16];
    snprintf(name, sizeof name, "step %d", (int)batch->step);
    return ditto_return_f64(self, name, (double)batch->step);
}

static void rule_2_7_results_of_earlier_steps_are_dropped(void **state)
{
    double numbers[12] = { 0 };
    ditto_tensor array = { .data = numbers, .dtype = DITTO_F64, .rank = 1, .shape = { 12 } };
    ditto_strategy *strategy = make_strategy(3, NULL);
    ditto_dataset *source;
    ditto_iterator *iterator;
    ditto_value *result;
    assert_ok(ditto_dataset_from_arrays(&array, 1, &source));
    assert_ok(ditto_strategy_iterate(strategy, source, &OPTIONS(input, .global_batch = 3), &iterator));
    assert_ok(ditto_strategy_run_steps(strategy, name_the_step, NULL, iterator, 3, NULL, NULL, &result));
    assert_int_equal(properties_of_value(result).num_members, 1);
    assert_string_equal(properties_of_value(result).members[0].name, "step 2");
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_iterator_destroy(iterator));
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status stop_early(ditto_replica *self, const ditto_batch *batch, void *unused)
{
    return batch->step == 1 ? DITTO_END_OF_INPUT : DITTO_OK;
}

static void rule_2_7_short_fixed_batches_and_positive_statuses_of_steps_are_refused(void **state)
{
    double numbers[14] = { 0 };
    ditto_tensor array = { .data = numbers, .dtype = DITTO_F64, .rank = 1, .shape = { 14 } };
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_dataset *source;
    ditto_iterator *iterator;
    ditto_input_options input = OPTIONS(input, .global_batch = 8);
    assert_ok(ditto_dataset_from_arrays(&array, 1, &source));
    assert_ok(ditto_strategy_iterate(strategy, source, &input, &iterator));
    assert_status(ditto_strategy_run_steps(strategy, sum_batch, NULL, iterator, 5,
                                           &OPTIONS(run, .dynamic_batch = DITTO_SWITCH_OFF), NULL, NULL),
                  DITTO_ERR_SHAPE);
    assert_message("step 1 has 2 rows for replica 1, not 4");
    assert_ok(ditto_iterator_destroy(iterator));
    assert_ok(ditto_strategy_iterate(strategy, source, &input, &iterator));
    assert_status(ditto_strategy_run_steps(strategy, stop_early, NULL, iterator, 5, NULL, NULL, NULL),
                  DITTO_ERR_USER);
    assert_message("DITTO_END_OF_INPUT");
    assert_ok(ditto_iterator_destroy(iterator));
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status return_moments(ditto_replica *self, void *unused)
{
    DITTO_TRY(ditto_return_f64(self, "1st moment", 1));
    return ditto_return_f64(self, "2nd moment", 2);
}

static void rule_2_2_names_that_begin_with_digits_are_not_numbers(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *result;
    assert_ok(ditto_strategy_run_values(strategy, return_moments, NULL, NULL, NULL, &result));
    assert_string_equal(properties_of_value(result).members[1].name, "2nd moment");
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_strategy_destroy(strategy));
}

static void reductions_of_results_have_known_operators_and_different_names(void **state)
{
    ditto_strategy *strategy = make_strategy(2, NULL);
    ditto_value *result;
    ditto_result_op twice[] = { { "a", DITTO_SUM }, { "a", DITTO_MAX } },
                    unknown[] = { { "a", (ditto_op)99 } };
    ditto_run_options options = OPTIONS(run, .reduce = twice, .num_reduce = 2);
    assert_status(ditto_strategy_run_values(strategy, return_moments, NULL, NULL, &options, &result),
                  DITTO_ERR_INVALID);
    options.reduce = unknown;
    options.num_reduce = 1;
    assert_status(ditto_strategy_run_values(strategy, return_moments, NULL, NULL, &options, &result),
                  DITTO_ERR_RANGE);
    assert_ok(ditto_strategy_destroy(strategy));
}

static ditto_status return_variable(ditto_replica *self, void *variable)
{
    return ditto_return_variable(self, NULL, variable);
}

static void rule_2_8_a_returned_variable_is_that_variable(void **state)
{
    ditto_strategy *strategy = make_strategy(3, NULL);
    double zero = 0;
    ditto_tensor t = { .data = &zero, .dtype = DITTO_F64 };
    ditto_variable *variable;
    ditto_value *result;
    assert_ok(ditto_variable_create(strategy, &t, NULL, &variable));
    assert_ok(ditto_strategy_run_values(strategy, return_variable, variable, NULL, NULL, &result));
    assert_int_equal(properties_of_value(result).kind, DITTO_VALUE_VARIABLE);
    assert_ptr_equal(properties_of_value(result).variable, variable);
    assert_ok(ditto_value_destroy(result));
    assert_ok(ditto_variable_destroy(variable));
    assert_ok(ditto_strategy_destroy(strategy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_2_2_each_replica_gets_its_component_and_results_are_in_order),
        cmocka_unit_test(rule_2_2_a_nest_is_given_leaf_by_leaf),
        cmocka_unit_test(rule_2_2_results_have_names_or_numbers_in_any_order),
        cmocka_unit_test(rule_2_2_results_that_are_reduced_are_returned_in_any_order),
        cmocka_unit_test(rule_2_2_a_return_that_fails_leaves_the_earlier_result),
        cmocka_unit_test(rule_2_2_results_that_differ_are_refused_as_diverged),
        cmocka_unit_test(rule_2_2_results_that_differ_on_one_host_are_refused_on_all),
        cmocka_unit_test(rule_2_2_a_message_names_the_replicas_whose_results_differ),
        cmocka_unit_test(rule_2_2_names_that_begin_with_digits_are_not_numbers),
        cmocka_unit_test(reductions_of_results_have_known_operators_and_different_names),
        cmocka_unit_test(results_and_arguments_belong_to_run_values),
        cmocka_unit_test(rule_2_3_the_original_error_reaches_the_caller_with_its_replica),
        cmocka_unit_test(rule_2_5_a_short_batch_is_refused_when_dynamic_batch_is_off),
        cmocka_unit_test(rule_2_5_shapes_that_differ_between_hosts_are_refused),
        cmocka_unit_test(rule_2_6_side_effects_happen_even_if_results_are_dropped),
        cmocka_unit_test(rule_2_7_run_steps_gives_the_results_of_the_last_step),
        cmocka_unit_test(rule_2_7_results_of_earlier_steps_are_dropped),
        cmocka_unit_test(rule_2_7_short_fixed_batches_and_positive_statuses_of_steps_are_refused),
        cmocka_unit_test(rule_2_8_a_returned_variable_is_that_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
