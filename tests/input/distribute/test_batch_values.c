/* tests/input/distribute/test_batch_values.c - checks the specs of batches, batches that come as values, also
 * after calls that timed out, and calls for which the end of the input is no error (rules 9.9 and 9.10 of
 * docs/semantics.md). */
#include "input/distribute/distribution.h"

#include <stdatomic.h>

/* -- the spec of batches -- */

/* Asserts the batch dimension, and the number of rows of a full step over all replicas. */
static void assert_batch_rows(ditto_iterator *it, size_t rows, uint64_t rows_of_step)
{
    ditto_element_spec spec;
    assert_ok(ditto_iterator_spec(it, &spec));
    assert_int_equal(spec.component[0].shape[0], rows);
    assert_int_equal(spec.batch, rows_of_step);
}

/* Tries global batches of 8 and 10 rows for 4 replicas, with all options that decide whether there are only
 * whole steps. */
static void the_batch_dimension_is_known_if_all_batches_have_it(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    char *name[2] = { temporary_bytes((const char[96]){ 0 }, 96), temporary_bytes((const char[8]){ 0 }, 8) };
    ditto_dataset *rows[2] = { range(0, 30) };
    assert_ok(ditto_dataset_from_fixed(&(ditto_files){ (const char *const *)name, 2, 0 },
                                       &(ditto_tensor){ .dtype = DITTO_I64 }, 1, NULL, &rows[1]));
    for (int files = 0; files < 2; files++)
        for (uint64_t global = 8; global <= 10; global += 2)
            for (uint32_t pipelines = 1; pipelines <= 4; pipelines *= 2)
                for (int shard = files && pipelines <= 2 ? DITTO_SHARD_FILE : DITTO_SHARD_DATA;
                     shard <= DITTO_SHARD_OFF; shard++)
                    /* 0 is no option, 1 static shapes, 2 DROP_REMAINDER, 3 an infinite dataset. */
                    for (int how = 0; how < 4; how++) {
                        /* True if the pipelines may end in different steps. */
                        bool apart = shard == DITTO_SHARD_FILE && pipelines > 1;
                        bool known = global == 8 && (how == 1 || (how >= 2 && !apart));
                        ditto_dataset *repeated, *d;
                        struct distribution got;
                        if (how == 2 && apart)
                            continue; /* refused, because DROP_REMAINDER counts rows across files */
                        assert_ok(ditto_dataset_repeat(rows[files], how == 3 ? DITTO_REPEAT_FOREVER : 1,
                                                       &repeated));
                        d = then(repeated, how == 2 ? whole_batches_of : batch_of, global);
                        ditto_input_options options = OPTIONS(input, .num_pipelines = pipelines,
                                                              .shard = (ditto_shard_policy)shard,
                                                              .flags = how == 1 ? DITTO_INPUT_STATIC : 0);
                        assert_ok(ditto_strategy_iterate(s, d, &options, &got.iterator));
                        assert_batch_rows(got.iterator, known ? 2 : DITTO_ANY_SIZE, global);
                        begin(&got, s, got.iterator);
                        got.stop_after = 40;
                        run_all(s, consume, &got, &got.report);
                        for (uint32_t r = got.first; known && r < got.end; r++)
                            for (uint64_t i = 0; i < got.taken[r].steps; i++)
                                assert_int_equal(got.taken[r].size[i], 2);
                        end(&got);
                        assert_ok(ditto_dataset_destroy(d));
                    }
    for (int i = 0; i < 2; i++) {
        assert_ok(ditto_dataset_destroy(rows[i]));
        forget_file(name[i]);
    }
    assert_ok(ditto_strategy_destroy(s));
}

static ditto_status make_whole_batches(const ditto_input_context *context, void *user, ditto_dataset **out)
{
    *out = then(range(0, 22 + (int64_t)(*(uint64_t *)user * context->pipeline)), whole_batches_of, 3);
    return DITTO_OK;
}

/* With one pipeline, a last step in which only some replicas have a batch is dropped. Several pipelines end
 * in different steps, so their last batches are delivered. */
static void the_batch_dimension_of_a_functions_datasets_is_known_if_all_batches_have_it(void **state)
{
    ditto_strategy *s = make_strategy(4, NULL);
    for (uint32_t pipelines = 1; pipelines <= 4; pipelines *= 2)
        for (uint32_t flags = 0; flags <= DITTO_INPUT_STATIC; flags += DITTO_INPUT_STATIC) {
            bool known = pipelines == 1 || flags != 0;
            uint64_t more = 9;
            struct distribution got;
            assert_ok(ditto_strategy_iterate_from_function(
                s, make_whole_batches, &more, &OPTIONS(input, .num_pipelines = pipelines, .flags = flags),
                &got.iterator));
            assert_batch_rows(got.iterator, known ? 3 : DITTO_ANY_SIZE, 4 * 3);
            begin(&got, s, got.iterator);
            run_all(s, consume, &got, &got.report);
            uint64_t rows = rows_of_all(&got, s);
            for (uint32_t r = got.first; r < got.end; r++)
                for (uint64_t i = 0; known && i < got.taken[r].steps; i++)
                    assert_int_equal(got.taken[r].size[i], 3);
            /* The pipelines have 7, 10, 13 and 16 whole batches. If the dimension is known, there are only
             * steps in which pipeline 0 has a batch for each of its replicas. */
            if (known)
                assert_int_equal(rows, 4 * 3 * (7 / (4 / pipelines)));
            else
                assert_int_equal(rows, pipelines == 2 ? 3 * (7 + 10) : 3 * (7 + 10 + 13 + 16));
            end(&got);
        }
    assert_ok(ditto_strategy_destroy(s));
}

static void the_spec_of_batches_is_known_after_the_strategy_is_destroyed(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_dataset *d = then(range(0, 9), whole_batches_of, 4);
    ditto_iterator *it;
    assert_ok(ditto_strategy_iterate(s, d, NULL, &it));
    assert_ok(ditto_strategy_destroy(s));
    assert_batch_rows(it, 2, 4);
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(d));
}

/* -- values -- */

/* Returns how many of the `rows` rows of a step the replicas before r get, if a full step has 4. */
static uint64_t rows_before(uint64_t rows, uint32_t n, uint32_t r)
{
    uint64_t before = 4 / n * r + (r < 4 % n ? r : 4 % n);
    return before < rows ? before : rows;
}

static void rule_9_9_across_replicas_batches_come_as_values(void **state)
{
    for (uint32_t n = 1; n <= 3; n++) {
        ditto_strategy *s = make_strategy(n, NULL);
        ditto_dataset *one = range(0, 10), *two, *d;
        ditto_value *value, *kept = NULL;
        ditto_iterator *it;
        ditto_tensor t;
        assert_ok(ditto_dataset_zip((ditto_dataset *[]){ one, one }, 2, &two));
        d = then(two, batch_of, 4);
        assert_ok(ditto_strategy_iterate(s, d, NULL, &it));
        for (int step = 0; step < 3; step++) {
            assert_ok(ditto_iterator_next(it, &value));
            assert_int_equal(properties_of_value(value).kind, DITTO_VALUE_NEST);
            const ditto_value *member;
            assert_ok(ditto_value_member(value, "1", &member));
            uint64_t rows = step < 2 ? 4 : 2;
            for (uint32_t r = first_local(s); r < end_local(s); r++) {
                uint64_t before = rows_before(rows, n, r);
                assert_ok(ditto_value_component(member, r, &t));
                assert_int_equal(t.shape[0], rows_before(rows, n, r + 1) - before);
                for (size_t i = 0; i < t.shape[0]; i++)
                    assert_int_equal(((int64_t *)t.data)[i], 4 * step + (int64_t)(before + i));
            }
            if (step == 0)
                kept = value; /* must stay valid while others are taken */
            else
                assert_ok(ditto_value_destroy(value));
        }
        for (int i = 0; i < 2; i++)
            assert_status(ditto_iterator_next(it, &value), DITTO_END_OF_INPUT);
        const ditto_value *member;
        assert_ok(ditto_value_member(kept, "0", &member));
        assert_ok(ditto_value_component(member, first_local(s), &t));
        assert_int_equal(((int64_t *)t.data)[0], rows_before(4, n, first_local(s)));
        assert_ok(ditto_value_destroy(kept));
        struct distribution got;
        begin(&got, s, it);
        assert_status(ditto_strategy_run(s, consume, &got), DITTO_ERR_CONTEXT);
        assert_message("mixing contexts");
        end(&got);
        assert_ok(ditto_strategy_iterate(
            s, one, &(ditto_input_options){ .struct_size = sizeof(ditto_input_options), .global_batch = 4 },
            &it));
        begin(&got, s, it);
        run_all(s, consume, &got, &got.report);
        value = kept = (ditto_value *)&got; /* an output keeps its value if the call fails */
        assert_status(ditto_iterator_next(it, &value), DITTO_ERR_CONTEXT);
        assert_true(value == kept);
        end(&got);
        assert_ok(ditto_dataset_destroy(one));
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* A map that copies rows. It waits on row `held` until may_go is set, and fails on row `bad`. */
struct held_input {
    int64_t held, bad;
    _Atomic int may_go;
};
static ditto_status wait_on_row(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                                void *user)
{
    struct held_input *h = user;
    int64_t row = *(const int64_t *)in[0].data;
    while (row == h->held && !atomic_load(&h->may_go))
        sleep_ms(1);
    *(int64_t *)out[0].data = row;
    return row == h->bad ? DITTO_ERR_CORRUPT : DITTO_OK;
}

/* Takes all batches of the n replicas, and asserts that their rows are first, first + 1, ... in the order of
 * the replicas. Calls again after DITTO_ERR_TIMED_OUT. After the second one of these it lets row `held` go.
 * If `state` is not NULL, it then also saves the position, and *saved_row is set to the next row. Returns
 * the row after the last one, and sets *status to the status of the end. */
static int64_t take_all_again(ditto_iterator *it, uint32_t n, int64_t first, struct held_input *h,
                              ditto_input_options *state, int64_t *saved_row, ditto_status *status)
{
    int64_t row = first;
    ditto_value *value;
    int timed_out = 0;
    while ((*status = ditto_iterator_next(it, &value)) == DITTO_OK || *status == DITTO_ERR_TIMED_OUT) {
        if (*status == DITTO_ERR_TIMED_OUT && ++timed_out == 2) {
            if (state != NULL) {
                void *bytes;
                assert_ok(ditto_iterator_save(it, &bytes, &state->state_bytes));
                state->state = bytes;
                *saved_row = row;
            }
            atomic_store(&h->may_go, 1);
        }
        for (uint32_t r = 0; *status == DITTO_OK && r < n; r++) {
            ditto_tensor t;
            assert_ok(ditto_value_component(value, r, &t));
            for (size_t i = 0; i < t.shape[0]; i++)
                assert_int_equal(((const int64_t *)t.data)[i], row++);
        }
        if (*status == DITTO_OK)
            assert_ok(ditto_value_destroy(value));
    }
    assert_true(state == NULL || timed_out >= 2);
    return row;
}

/* Ends the trace, and returns the bytes that it has for ditto_next. */
static uint64_t traced_input_bytes(ditto_strategy *s)
{
    ditto_operation_counters t = DITTO_OPERATION_COUNTERS_INIT;
    assert_ok(ditto_strategy_trace_stop(s));
    for (uint32_t i = 0;; i++) {
        assert_ok(ditto_strategy_operation_stats(s, i, &t));
        if (strcmp(t.name, "ditto_next") == 0)
            return t.bytes;
    }
}

/* Each replica gets two rows in each of four steps, or the input fails on row `bad`. The map waits on one of
 * the rows, so the other replicas have their batches of this step when the call fails. */
static void rule_9_10_a_call_across_replicas_that_times_out_loses_no_rows(void **state)
{
    for (uint32_t n = 1; n <= 3; n++) {
        ditto_strategy *s = make_strategy(n, &OPTIONS(strategy, .timeout_ms = 20));
        assert_ok(ditto_strategy_trace_start(s, NULL));
        uint64_t taken_bytes = 0;
        for (int64_t held = 0; held < 8 * n - 3; held += 3)
            for (int fails = 0; fails < 2; fails++) {
                struct held_input h = { .held = held, .bad = fails ? 8 * (int64_t)n - 3 : -1 };
                int64_t end = fails ? h.bad : 8 * (int64_t)n, saved_row = -1;
                ditto_dataset *source = range(0, 8 * n), *d;
                ditto_iterator_counters stats = DITTO_ITERATOR_COUNTERS_INIT;
                ditto_iterator *it;
                ditto_status status;
                assert_ok(ditto_dataset_map(source, wait_on_row, &h, NULL, &d));
                ditto_input_options options = OPTIONS(input, .global_batch = 2 * n, .num_producers = 1);
                assert_ok(ditto_strategy_iterate(s, d, &options, &it));
                assert_int_equal(take_all_again(it, n, 0, &h, &options, &saved_row, &status), end);
                assert_int_equal(status, fails ? DITTO_ERR_CORRUPT : DITTO_END_OF_INPUT);
                assert_ok(ditto_iterator_stats(it, DITTO_ALL_REPLICAS, &stats));
                assert_int_equal(stats.rows, end);
                assert_int_equal(stats.bytes, end * 8);
                taken_bytes += stats.bytes;
                assert_in_range(saved_row, 0, held);
                assert_ok(ditto_iterator_destroy(it));
                assert_ok(ditto_strategy_iterate(s, d, &options, &it));
                assert_int_equal(take_all_again(it, n, saved_row, &h, NULL, NULL, &status), end);
                assert_ok(ditto_iterator_stats(it, DITTO_ALL_REPLICAS, &stats));
                taken_bytes += stats.bytes;
                assert_int_equal(status, fails ? DITTO_ERR_CORRUPT : DITTO_END_OF_INPUT);
                assert_ok(ditto_iterator_destroy(it));
                ditto_state_free((void *)(uintptr_t)options.state);
                assert_ok(ditto_dataset_destroy(d));
                assert_ok(ditto_dataset_destroy(source));
            }
        assert_int_equal(traced_input_bytes(s), taken_bytes);
        assert_ok(ditto_strategy_destroy(s));
    }
}

/* Runs are refused its batches, as after a call that has returned batches. */
static void an_iterator_can_be_destroyed_after_a_call_across_replicas_that_timed_out(void **state)
{
    struct held_input h = { .held = 3, .bad = -1 };
    ditto_dataset *source = range(0, 100), *d;
    ditto_iterator *it;
    ditto_value *value;
    ditto_strategy *s = make_strategy(2, &OPTIONS(strategy, .timeout_ms = 20));
    assert_ok(ditto_dataset_map(source, wait_on_row, &h, NULL, &d));
    assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 4), &it));
    assert_status(ditto_iterator_next(it, &value), DITTO_ERR_TIMED_OUT);
    struct distribution got;
    begin(&got, s, it);
    assert_status(ditto_strategy_run(s, consume, &got), DITTO_ERR_CONTEXT);
    assert_message("mixing contexts");
    assert_status(ditto_iterator_next(it, &value), DITTO_ERR_TIMED_OUT);
    atomic_store(&h.may_go, 1);
    end(&got);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_dataset_destroy(source));
    assert_ok(ditto_strategy_destroy(s));
}

struct endless {
    bool is_endless[2]; /* the dataset of each pipeline */
};
static ditto_status make_finite_or_endless(const ditto_input_context *context, void *user,
                                           ditto_dataset **out)
{
    const struct endless *e = user;
    *out = then(
        then(range(0, 8), ditto_dataset_repeat, e->is_endless[context->pipeline] ? DITTO_REPEAT_FOREVER : 1),
        batch_of, 2);
    return DITTO_OK;
}

static void the_spec_is_infinite_if_the_iterator_has_no_end(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    for (int is_static = 0; is_static < 2; is_static++)
        for (int which = 0; which < 4; which++) {
            struct endless e = { { which & 1, which & 2 } };
            ditto_element_spec spec;
            ditto_iterator *it;
            ditto_input_options options = OPTIONS(input, .replication = DITTO_REPLICATION_PER_REPLICA,
                                                  .flags = is_static ? DITTO_INPUT_STATIC : 0);
            assert_ok(ditto_strategy_iterate_from_function(s, make_finite_or_endless, &e, &options, &it));
            assert_ok(ditto_iterator_spec(it, &spec));
            assert_int_equal(spec.infinite, is_static ? which == 3 : which != 0);
            struct distribution got;
            begin(&got, s, it);
            got.stop_after = 10; /* more steps than a finite dataset has */
            run_all(s, consume, &got, &got.report);
            assert_int_equal(got.taken[got.first].steps == 10, spec.infinite);
            end(&got);
        }
    assert_ok(ditto_strategy_destroy(s));
}

/* The first input has whole batches only. The second one has 10 rows, or 8 if it drops the remainder. */
static void rule_9_4_a_zip_drops_the_remainder_only_if_all_its_inputs_do(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    for (int dropping = 0; dropping < 4; dropping++) {
        ditto_dataset *d, *inputs[] = {
            then(range(0, 12), dropping & 1 ? whole_batches_of : batch_of, 4),
            then(range(0, 10), dropping & 2 ? whole_batches_of : batch_of, 4),
        };
        struct distribution got;
        ditto_element_spec spec;
        uint64_t rows = dropping & 2 ? 8 : 10;
        assert_ok(ditto_dataset_zip(inputs, 2, &d));
        distribute(&got, s, d, NULL);
        assert_int_equal(rows_of_all(&got, s), rows);
        assert_ok(ditto_iterator_spec(got.iterator, &spec));
        assert_int_equal(spec.component[0].shape[0], dropping == 3 ? 2 : DITTO_ANY_SIZE);
        end(&got);
        for (int i = 0; i < 2; i++)
            assert_ok(ditto_dataset_destroy(inputs[i]));
        assert_ok(ditto_dataset_destroy(d));
    }
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_batch_dimension_is_known_if_all_batches_have_it),
        cmocka_unit_test(the_batch_dimension_of_a_functions_datasets_is_known_if_all_batches_have_it),
        cmocka_unit_test(the_spec_of_batches_is_known_after_the_strategy_is_destroyed),
        cmocka_unit_test(rule_9_9_across_replicas_batches_come_as_values),
        one_host_test(rule_9_10_a_call_across_replicas_that_times_out_loses_no_rows,
                      "a timeout of 20 ms is too short for hosts to meet"),
        one_host_test(an_iterator_can_be_destroyed_after_a_call_across_replicas_that_timed_out,
                      "a timeout of 20 ms is too short for hosts to meet"),
        cmocka_unit_test(the_spec_is_infinite_if_the_iterator_has_no_end),
        cmocka_unit_test(rule_9_4_a_zip_drops_the_remainder_only_if_all_its_inputs_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
