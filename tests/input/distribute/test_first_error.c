/* tests/input/distribute/test_first_error.c - checks that all rows before a row that fails are delivered, and
 * that the first error in the order of rows is returned: rules 9.9 and 9.10 of docs/semantics.md. */
#include "input/distribute/distribution.h"

#include <stdatomic.h>

static ditto_status consume_to_error(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    struct taken *t = &d->taken[ditto_replica_id(self)];
    ditto_batch b;
    ditto_status status;
    while ((status = ditto_next(self, d->iterator, &b)) == DITTO_OK) {
        memcpy(t->row + t->rows, b.component[0].data, b.rows * sizeof(int64_t));
        t->size[t->steps++] = b.rows;
        t->rows += b.rows;
    }
    EXPECT(&d->report, status == DITTO_ERR_CORRUPT && strstr(ditto_last_error()->message, "on row") != NULL);
    return DITTO_OK;
}

/* The map fails while a batch is filled. If a filter follows the map, it fails earlier, when rows are chosen.
 * Both are tried with and without dropped remainders. */
static void no_row_before_a_failure_is_lost(void **state)
{
    ditto_strategy *s = make_strategy(3, NULL);
    for (int64_t bad = 0; bad < 100; bad += 9)
        for (uint32_t producers = 1; producers <= 3; producers++)
            for (int how = 0; how < 4; how++) {
                bool filtered = how % 2, whole = how / 2;
                ditto_dataset *source = range(0, 200), *mapped, *d;
                struct distribution got;
                bool seen[200] = { false };
                assert_ok(ditto_dataset_map(source, fail_on_row, (void *)(uintptr_t)bad, NULL, &mapped));
                assert_ok(ditto_dataset_destroy(source));
                d = filtered ? then(mapped, keep_residues, 1000) : mapped;
                d = then(d, whole ? whole_batches_of : batch_of, 10);
                assert_ok(
                    ditto_strategy_iterate(s, d, &OPTIONS(input, .num_producers = producers), &got.iterator));
                begin(&got, s, got.iterator);
                run_all(s, consume_to_error, &got, &got.report);
                for (uint32_t r = 0; r < 3; r++)
                    for (uint64_t i = 0; i < got.taken[r].rows; i++)
                        seen[got.taken[r].row[i]] = true;
                for (int64_t row = filtered; row < bad; row++) /* the filter drops row 0 */
                    assert_true(seen[row]);
                assert_false(seen[bad]);
                end(&got);
                assert_ok(ditto_dataset_destroy(d));
            }
    assert_ok(ditto_strategy_destroy(s));
}

/* Rows 8 and 10 fail, in one step and in the batches of different replicas. Row 8 waits for the call with
 * row 10, and then 20 ms longer, so that it nearly always fails later. */
static ditto_status fail_twice(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *row_10_was_read)
{
    int64_t row = *(const int64_t *)in[0].data;
    *(int64_t *)out[0].data = row;
    if (row == 10)
        atomic_store((_Atomic int *)row_10_was_read, 1);
    for (int ms = 0; row == 8 && atomic_load((_Atomic int *)row_10_was_read) == 0 && ms < 60000; ms++)
        sleep_ms(1);
    if (row == 8)
        sleep_ms(20);
    return row == 8 || row == 10 ? DITTO_ERR_CORRUPT : DITTO_OK;
}

static ditto_status consume_to_first_error(ditto_replica *self, void *argument)
{
    struct distribution *d = argument;
    ditto_batch b;
    ditto_status status;
    while ((status = ditto_next(self, d->iterator, &b)) == DITTO_OK)
        ;
    EXPECT(&d->report, status == DITTO_ERR_CORRUPT);
    EXPECT(&d->report, strstr(ditto_last_error()->message, "on row 8 of") != NULL);
    return DITTO_OK;
}

/* Replica 1 gets the error of row 8 too, although row 10 is its own. */
static void rule_9_10_the_first_error_in_the_order_of_rows_counts(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    for (int i = 0; i < 20; i++) {
        _Atomic int row_10_was_read = 0;
        ditto_dataset *source = range(0, 40), *d;
        struct distribution got;
        assert_ok(ditto_dataset_map(source, fail_twice, (void *)&row_10_was_read, NULL, &d));
        assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 4, .num_producers = 2),
                                         &got.iterator));
        begin(&got, s, got.iterator);
        run_all(s, consume_to_first_error, &got, &got.report);
        end(&got);
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(ditto_dataset_destroy(source));
    }
    assert_ok(ditto_strategy_destroy(s));
}

/* Row `bad` fails when batches are filled, or when rows are chosen. */
static void rule_9_10_with_static_shapes_no_batch_is_short_in_front_of_an_error(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    for (int64_t bad = 0; bad < 40; bad++)
        for (int filtered = 0; filtered < 2; filtered++) {
            ditto_dataset *source = range(0, 80), *d;
            struct distribution got;
            assert_ok(ditto_dataset_map(source, fail_on_row, (void *)(uintptr_t)bad, NULL, &d));
            d = filtered ? then(d, keep_residues, 1000) : d; /* keeps all rows except row 0 */
            assert_ok(ditto_strategy_iterate(
                s, d, &OPTIONS(input, .global_batch = 10, .flags = DITTO_INPUT_STATIC), &got.iterator));
            begin(&got, s, got.iterator);
            run_all(s, consume_to_error, &got, &got.report);
            for (uint32_t r = 0; r < 2; r++)
                for (uint64_t i = 0; i < got.taken[r].steps; i++)
                    assert_int_equal(got.taken[r].size[i], 5);
            end(&got);
            assert_ok(ditto_dataset_destroy(d));
            assert_ok(ditto_dataset_destroy(source));
        }
    assert_ok(ditto_strategy_destroy(s));
}

static void rule_9_9_across_replicas_no_row_before_a_failure_is_lost(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    for (int64_t bad = 16; bad < 24; bad++) {
        ditto_dataset *source = range(0, 40), *d;
        ditto_iterator *it;
        ditto_value *value;
        ditto_status status;
        int64_t rows = 0;
        assert_ok(ditto_dataset_map(source, fail_on_row, (void *)(uintptr_t)bad, NULL, &d));
        assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 8), &it));
        while ((status = ditto_iterator_next(it, &value)) == DITTO_OK) {
            for (uint32_t r = 0; r < 2; r++) {
                ditto_tensor t;
                assert_ok(ditto_value_component(value, r, &t));
                for (size_t i = 0; i < t.shape[0]; i++)
                    assert_int_equal(((const int64_t *)t.data)[i], rows++);
            }
            assert_ok(ditto_value_destroy(value));
        }
        assert_int_equal(status, DITTO_ERR_CORRUPT);
        assert_int_equal(rows, bad);
        assert_status(ditto_iterator_next(it, &value), DITTO_ERR_CORRUPT); /* every time */
        assert_message("on row");
        assert_ok(ditto_iterator_destroy(it));
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(ditto_dataset_destroy(source));
    }
    assert_ok(ditto_strategy_destroy(s));
}

/* Writes a file of 20 rows whose row `bad` is no number. */
static char *csv_with_bad_row(int bad)
{
    char text[200];
    size_t length = 0;
    for (int row = 0; row < 20; row++)
        length += (size_t)snprintf(text + length, sizeof text - length, row == bad ? "x\n" : "%d\n", row);
    return temporary_file(text);
}

/* Takes all batches across replicas, and asserts that the error is the one of the named file, twice. */
static void assert_first_file_error(ditto_iterator *it, const char *name, ditto_error *first)
{
    ditto_status status;
    ditto_value *value;
    ditto_error before = *ditto_last_error();
    while ((status = ditto_iterator_next(it, &value)) == DITTO_OK) {
        /* A replica may have found the error already, but the call has succeeded. */
        assert_string_equal(ditto_last_error()->message, before.message);
        assert_ok(ditto_value_destroy(value));
    }
    for (int i = 0; i < 2; i++) {
        assert_status(status, DITTO_ERR_CORRUPT);
        assert_message(name);
        if (first->message[0] == '\0')
            *first = *ditto_last_error();
        assert_string_equal(ditto_last_error()->message, first->message);
        assert_int_equal(ditto_last_error()->replica, first->replica);
        assert_string_equal(ditto_last_error()->function, "ditto_iterator_next");
        status = ditto_iterator_next(it, &value);
    }
}

/* Two pipelines read one file each, and both files have a bad row. Either file may have the earlier one. */
static void rule_9_10_across_replicas_the_first_error_of_all_pipelines_is_returned(void **state)
{
    ditto_strategy *s = make_strategy(2, NULL);
    ditto_csv_component column = { .num_columns = 1, .dtype = DITTO_I64 };
    for (int early = 0; early < 2; early++) {
        char *name[2] = { csv_with_bad_row(early == 0 ? 4 : 9), csv_with_bad_row(early == 1 ? 4 : 9) };
        ditto_error first = { .message = "" };
        ditto_dataset *d;
        assert_ok(
            ditto_dataset_from_csv(&(ditto_files){ (const char *const *)name, 2, 0 }, &column, 1, NULL, &d));
        for (int i = 0; i < test_trials(300); i++) {
            ditto_iterator *it;
            assert_ok(ditto_strategy_iterate(
                s, d, &OPTIONS(input, .global_batch = 4, .num_pipelines = 2, .shard = DITTO_SHARD_FILE),
                &it));
            assert_first_file_error(it, name[early], &first);
            assert_ok(ditto_iterator_destroy(it));
        }
        assert_int_equal(first.replica, early); /* the one whose batch has the bad row */
        assert_ok(ditto_dataset_destroy(d));
        forget_file(name[0]);
        forget_file(name[1]);
    }
    assert_ok(ditto_strategy_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_9_9_across_replicas_no_row_before_a_failure_is_lost),
        cmocka_unit_test(no_row_before_a_failure_is_lost),
        cmocka_unit_test(rule_9_10_the_first_error_in_the_order_of_rows_counts),
        cmocka_unit_test(rule_9_10_across_replicas_the_first_error_of_all_pipelines_is_returned),
        cmocka_unit_test(rule_9_10_with_static_shapes_no_batch_is_short_in_front_of_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
