/* tests/input/distribute/test_file_errors.c - tests the errors of CSV files that are missing, damaged,
 * or become shorter while they are read, and of wrong descriptions of CSV files. */
#include "support/support.h"

#include <unistd.h>
#include <sys/stat.h>

static ditto_status drain(ditto_replica *self, void *argument)
{
    ditto_batch b;
    ditto_status status;
    while ((status = ditto_next(self, argument, &b)) == DITTO_OK)
        DITTO_TRY(ditto_barrier(self, NULL));
    ditto_status again = ditto_next(self, argument, &b);
    return again == status || again == DITTO_ERR_PEER_STOPPED
               ? status
               : ditto_fail(self, 1, "the last status is not returned again");
}

static ditto_status csv(const char *path, const ditto_csv_component *components, uint32_t count,
                        const ditto_csv_options *options, ditto_dataset **out)
{
    return ditto_dataset_from_csv(&(ditto_files){ .names = &path, .num_names = 1 }, components, count,
                                  options, out);
}

static const ditto_csv_component two_columns[] = {
    { .first_column = 0, .num_columns = 2, .dtype = DITTO_F32 },
    { .first_column = 2, .num_columns = 1, .dtype = DITTO_I32 }
};

/* Reads a CSV text with 1, 2 and 3 replicas. `expected` is the status of the run. If it is an error,
 * `message` is what its message has behind the file's name. */
static void expect_csv(const char *text, ditto_status expected, const char *message)
{
    char *path = temporary_file(text), wanted[256];
    ditto_dataset *d;
    for (uint32_t n = 1; n <= 3; n++) {
        ditto_strategy *s = make_strategy(n, NULL);
        ditto_iterator *it;
        assert_ok(csv(path, two_columns, 2, NULL, &d));
        assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 2), &it));
        assert_int_equal(ditto_strategy_run(s, drain, it), expected);
        if (expected != DITTO_END_OF_INPUT) {
            snprintf(wanted, sizeof wanted, "%s%s", path, message);
            assert_message(wanted);
            if (n == 2)
                print_message("  %s\n", ditto_last_error()->message);
        }
        assert_ok(ditto_iterator_destroy(it));
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(ditto_strategy_destroy(s));
    }
    remove(path);
    free(path);
}

static void a_malformed_line_is_named_by_file_line_and_column(void **state)
{
    expect_csv("1,2,3\n4,5,6\n", DITTO_END_OF_INPUT, "");
    expect_csv("1,2,3\r\n\n4,5,6", DITTO_END_OF_INPUT, "");
    expect_csv("1,2,3\n4,abc,6\n7,8,9\n", DITTO_ERR_CORRUPT,
               ":2: column 2: \"abc\" is not a number of type f32");
    expect_csv("1,2,3\n4,5,6\n7,8\n", DITTO_ERR_CORRUPT, ":3: column 3: the line has 2 columns, expected 3");
    expect_csv("1,2,3,4\n", DITTO_ERR_CORRUPT, ":1: column 4: the line has 4 columns, expected 3");
    expect_csv("1,2,3.5\n", DITTO_ERR_CORRUPT, ":1: column 3: \"3.5\" is not a number of type i32");
    expect_csv("1,2,3000000000\n", DITTO_ERR_CORRUPT, ":1: column 3");
    expect_csv("\xef\xbb\xbf"
               "1,2,3\n  \n4,5,6 \n",
               DITTO_END_OF_INPUT, ""); /* a byte order mark and spaces at line ends are ignored */
    expect_csv("1e39,2,3\n", DITTO_ERR_CORRUPT, ":1: column 1: \"1e39\" is not a number of type f32");
    expect_csv("nan,2,3\n", DITTO_ERR_CORRUPT, ":1: column 1");
    expect_csv("\033[31m,2,3\n", DITTO_ERR_CORRUPT, ":1: column 1: \"?[31m\" is not");
    expect_csv("1,,3\n", DITTO_ERR_CORRUPT, ":1: column 2: \"\" is not a number");
    expect_csv("1,2,3\n4\"4,5,6\n", DITTO_ERR_CORRUPT, ":2: column 1");
}

static void files_that_cannot_be_read_are_refused(void **state)
{
    char *empty = temporary_file(""), *heading = temporary_file("a,b,c\n");
    ditto_csv_component bad = { .num_columns = 0, .dtype = DITTO_F32 };
    ditto_dataset *d;
    assert_status(csv("/nowhere/x.csv", two_columns, 2, NULL, &d), DITTO_ERR_NOT_FOUND);
    assert_message("/nowhere/x.csv");
    assert_status(csv("/tmp", two_columns, 2, NULL, &d), DITTO_ERR_IO);
    assert_status(csv(empty, two_columns, 2, NULL, &d), DITTO_ERR_INVALID);
    ditto_csv_options options = OPTIONS(csv, .skip_lines = 1);
    assert_status(csv(heading, two_columns, 2, &options, &d), DITTO_ERR_INVALID);
    assert_message("there is no row after the 1 lines");
    assert_status(csv(heading, &bad, 1, NULL, &d), DITTO_ERR_INVALID);
    bad = (ditto_csv_component){ .num_columns = 1, .dtype = DITTO_C64 };
    assert_status(csv(heading, &bad, 1, NULL, &d), DITTO_ERR_UNSUPPORTED);
    bad = (ditto_csv_component){ .first_column = UINT32_MAX, .num_columns = 2, .dtype = DITTO_F32 };
    assert_status(csv(heading, &bad, 1, NULL, &d), DITTO_ERR_INVALID);
    options.num_columns = 2;
    assert_status(csv(heading, two_columns, 2, &options, &d), DITTO_ERR_INVALID);
    assert_status(csv(NULL, two_columns, 2, NULL, &d), DITTO_ERR_INVALID);
    assert_status(csv(heading, NULL, 2, NULL, &d), DITTO_ERR_INVALID);
    options = (ditto_csv_options)DITTO_CSV_OPTIONS_INIT;
    options.num_columns = UINT32_MAX;
    assert_status(csv(heading, two_columns, 2, &options, &d), DITTO_ERR_INVALID);
    options.num_columns = 0;
    options.delimiter = '.';
    assert_status(csv(heading, two_columns, 2, &options, &d), DITTO_ERR_INVALID);
    remove(empty); /* a FIFO is refused and not waited for */
    assert_int_equal(mkfifo(empty, 0600), 0);
    assert_status(csv(empty, two_columns, 2, NULL, &d), DITTO_ERR_IO);
    remove(empty);
    remove(heading);
    free(empty);
    free(heading);
}

static ditto_status take_one(ditto_replica *self, void *argument)
{
    ditto_batch b;
    return ditto_next(self, argument, &b);
}

static void a_file_that_shrinks_while_it_is_read_is_an_error(void **state)
{
    char *path = temporary_file("1,2,3\n4,5,6\n7,8,9\n");
    ditto_strategy *s = make_strategy(1, NULL);
    ditto_shuffle_options how = DITTO_SHUFFLE_OPTIONS_INIT;
    ditto_dataset *d, *shuffled;
    ditto_iterator *it;
    assert_ok(csv(path, two_columns, 2, NULL, &d));
    /* The shuffle finds all lines at once. They are then read one by one. */
    assert_ok(ditto_dataset_shuffle(d, &how, &shuffled));
    assert_ok(ditto_strategy_iterate(s, shuffled, &OPTIONS(input, .global_batch = 1, .buffer = 1), &it));
    /* After this run all lines are found. The third one is not read yet, because the queue has two slots, and
     * replica 0 still holds the first batch. */
    assert_ok(ditto_strategy_run(s, take_one, it));
    assert_int_equal(truncate(path, 0), 0);
    assert_status(ditto_strategy_run(s, drain, it), DITTO_ERR_IO);
    assert_message("became shorter");
    assert_ok(ditto_iterator_destroy(it));
    assert_ok(ditto_dataset_destroy(shuffled));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(ditto_strategy_destroy(s));
    remove(path);
    free(path);
}

static void of_several_malformed_lines_the_first_is_named(void **state)
{
    char text[4000] = "", *path;
    ditto_dataset *d;
    /* The bad lines are in two steps, which two producers may read at the same time. */
    for (int line = 1; line <= 300; line++)
        strcat(text, line == 201 || line == 211 ? "1,bad,3\n" : "1,2,3\n");
    path = temporary_file(text);
    for (int i = 0; i < 50; i++) {
        ditto_strategy *s = make_strategy(1, NULL);
        ditto_iterator *it;
        assert_ok(csv(path, two_columns, 2, NULL, &d));
        assert_ok(ditto_strategy_iterate(s, d, &OPTIONS(input, .global_batch = 8, .num_producers = 4), &it));
        assert_status(ditto_strategy_run(s, drain, it), DITTO_ERR_CORRUPT);
        assert_message(":201: column 2");
        assert_ok(ditto_iterator_destroy(it));
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(ditto_strategy_destroy(s));
    }
    remove(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_malformed_line_is_named_by_file_line_and_column),
        cmocka_unit_test(files_that_cannot_be_read_are_refused),
        cmocka_unit_test(a_file_that_shrinks_while_it_is_read_is_an_error),
        cmocka_unit_test(of_several_malformed_lines_the_first_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
