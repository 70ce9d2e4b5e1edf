/* tests/input/sources/text/test_csv.c - tests the claims of source.h for CSV files: rows, quotes, files,
 * saved positions and errors. */
#include "input/sources/text/csv_rows.h"

#include <ditto/transform.h>

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input/dataset.h"

/* -- rows -- */

static void a_row_is_a_line_of_fields(void **state)
{
    expect_rows(&numbers, BYTES("1,2,3\n4,5,6\n"), "1|2|3|\n4|5|6|\n");
    expect_rows(&numbers, BYTES("1,2,3\r\n\n4,5,6"), "1|2|3|\n4|5|6|\n");
    expect_rows(&numbers, BYTES("\n\r\n \t \n1,2,3\n\n\n"), "1|2|3|\n");
    expect_rows(&numbers,
                BYTES("\xef\xbb\xbf"
                      "1,2,3\n  \n4,5,6 \n"),
                "1|2|3|\n4|5|6|\n"); /* byte order mark, spaces at line ends */
    expect_rows(&numbers, BYTES(" 1.5 ,\t-2e1\t, +3"), "1.5|-20|3|\n");
    expect_rows(&numbers, BYTES("\"1\",\" 2.5\",\"-3\"\n"), "1|2.5|-3|\n");
}

static void a_malformed_row_is_named_by_file_line_and_column(void **state)
{
    expect_error(&numbers, BYTES("1,2,3\n4,abc,6\n7,8,9\n"), 1,
                 ":2: column 2: \"abc\" is not a number of type f32");
    expect_error(&numbers, BYTES("1,2,3\n4,5,6\n7,8\n"), 2,
                 ":3: column 3: the line has 2 columns, expected 3");
    expect_error(&numbers, BYTES("1,2,3,4\n"), 0, ":1: column 4: the line has 4 columns, expected 3");
    expect_error(&numbers, BYTES("1,2,3,4,\"5,\n6\",\n"), 0,
                 ":1: column 4: the line has 6 columns, expected 3");
    expect_error(&numbers, BYTES("1,2,3,\n"), 0, ":1: column 4: the line has 4 columns, expected 3");
    expect_error(&numbers, BYTES("1,2,3.5\n"), 0, ":1: column 3: \"3.5\" is not a number of type i32");
    expect_error(&numbers, BYTES("1e39,2,3\n"), 0, ":1: column 1: \"1e39\" is not a number of type f32");
    expect_error(&numbers, BYTES("\033[31m,2,3\n"), 0, ":1: column 1: \"?[31m\" is not");
    expect_error(&numbers, BYTES("1\0,2,3\n"), 0, ":1: column 1: \"1?\" is not");
    expect_error(&numbers, BYTES("1,,3\n"), 0, ":1: column 2: \"\" is not a number");
    /* \r alone is not a line end. */
    expect_error(&numbers, BYTES("1,2,3\r"), 0, ":1: column 3: \"3?\" is not a number");
    expect_error(&numbers, BYTES("1,2,3\n\"4\n\",5,6\n"), 1,
                 ":2: column 1: \"4?\" is not a number of type f32");
    expect_error(&numbers, BYTES("\"1\n\n\",2,3\n4,5,6\n"), 0, ":1: column 1");
    expect_error(&texts, BYTES("\"a\n\n\",b\nc,d\ne\n"), 2,
                 ":5: column 2: the line has 1 columns, expected 2");
}

static void quotes_are_those_of_rfc_4180(void **state)
{
    struct table raw = texts;
    expect_rows(&texts, BYTES("a,b\n"), "a|b|\n");
    expect_rows(&texts, BYTES(" a , b\t\n"), " a | b\t|\n"); /* spaces belong to the text */
    expect_rows(&texts, BYTES("\"a\",\"b\"\r\n\"c\",d"), "a|b|\nc|d|\n");
    expect_rows(&texts, BYTES("\"a,b\",\"c\nd\"\n\"e\r\nf\",\"\n\n\"\n"), "a,b|c\nd|\ne\r\nf|\n\n|\n");
    expect_rows(&texts, BYTES("\"a\"\"b\",\"\"\"\"\n\"\"\"a\",\"a\"\"\"\n"), "a\"b|\"|\n\"a|a\"|\n");
    expect_rows(&texts, BYTES("\"\"\"\"\"\"\"\",\"x\"\"\"\"y\"\n"), "\"\"\"|x\"\"y|\n");
    expect_rows(&texts, BYTES(",\n\"\",\"\"\n"), "||\n||\n"); /* missing text is empty */
    expect_rows(&texts, BYTES("a\r,\rb\n"), "a\r|\rb|\n");
    expect_rows(&texts, BYTES("\"\"\"\n\"\"\",b\n"), "\"\n\"|b|\n");
    expect_error(&texts, BYTES("a,b\nc\"d,e\n"), 1,
                 ":2: column 1: there is a quote in the middle of a field");
    expect_error(&texts, BYTES("a, \"b\"\n"), 0, ":1: column 2: there is a quote in the middle");
    expect_error(&texts, BYTES("\"a\"b,c\n"), 0, ":1: column 1: there is text after a closing quote");
    expect_error(&texts, BYTES("\"a\" ,c\n"), 0, ":1: column 1: there is text after a closing quote");
    expect_error(&texts, BYTES("\"a\"\r,c\n"), 0, ":1: column 1: there is text after a closing quote");
    expect_error(&texts, BYTES("a,b\n\nc,\"d\n,\n"), 1, ":3: column 2: its quote is not closed");
    expect_error(&texts, BYTES("a,\""), 0, ":1: column 2: its quote is not closed");
    expect_error(&numbers, BYTES("1,2,\"3\n"), 0, ":1: column 3: its quote is not closed");
    raw.options.no_quotes = 1;
    expect_rows(&raw, BYTES("\"a,b\"\nc\"d,\"\n"), "\"a|b\"|\nc\"d|\"|\n");
    raw.options = texts.options;
    raw.options.delimiter = '\t';
    /* A tab that is the delimiter is not a blank, so a line of one tab is a row. */
    expect_rows(&raw, BYTES("a,b\tc\n\t\n\"\t\"\td\n"), "a,b|c|\n||\n\t|d|\n");
}

static void unused_columns_are_scanned_only_for_their_ends(void **state)
{
    struct table t = { { { 1, 1, DITTO_I32, 0, 0, 0 }, { 3, 1, DITTO_F64, 0, 0, 0 }, TEXT_COLUMN(1) },
                       3,
                       DITTO_CSV_OPTIONS_INIT };
    /* A column may be used twice. */
    expect_rows(&t, BYTES("x,1,\xff,2\n,3,\"a,\"\"b\",4\n"), "1|2|1|\n3|4|3|\n");
    expect_error(&t, BYTES("x\"y,1,,2\n"), 0, ":1: column 1: there is a quote");
    t.options.num_columns = 5;
    expect_rows(&t, BYTES("x,1,y,2,z\n"), "1|2|1|\n");
    expect_error(&t, BYTES("x,1,y,2\n"), 0, ":1: column 5: the line has 4 columns, expected 5");
}

/* -- files -- */

/* Fields have 1 to 300000 bytes, with and without quotes, and line ends inside quotes. Rows therefore
 * begin and end anywhere in a read. */
static void rows_may_cross_the_boundaries_of_reads(void **state)
{
    struct table t = { { { 0, 1, DITTO_U8, 300000, 0, 0 }, { 1, 1, DITTO_I32, 0, 0, 0 } },
                       2,
                       DITTO_CSV_OPTIONS_INIT };
    uint64_t random = test_seed(262144);
    size_t room = (size_t)16 << 20, used = 0, wanted = 0;
    char *text = malloc(room), *expected = malloc(room);
    for (int row = 0; row < 60; row++) {
        size_t length = test_random(&random) % (row % 6 == 0 ? 300000 : 5000) + 1;
        bool quoted = test_random(&random) % 2;
        if (quoted)
            text[used++] = '"';
        for (size_t i = 0; i < length; i++) {
            char byte = (char)('a' + test_random(&random) % 26);
            uint64_t special = quoted ? test_random(&random) % 50 : 9;
            byte = special == 0 ? '\n' : special == 1 ? '"' : special == 2 ? ',' : special == 3 ? '\r' : byte;
            text[used++] = expected[wanted++] = byte;
            if (byte == '"')
                text[used++] = '"';
        }
        if (quoted)
            text[used++] = '"';
        used += (size_t)sprintf(text + used, ",%d%s", row, row % 2 ? "\r\n" : "\n");
        wanted += (size_t)sprintf(expected + wanted, "|%d|\n", row);
    }
    expect_rows(&t, text, used, expected);
    free(text);
    free(expected);
}

static void lines_are_counted_through_quotes_and_files(void **state)
{
    char *first = temporary_file("heading \"\n\"a\n\n\",b\n\n\"\"\"\n\",d\n"),
         *second = temporary_file("h\n1,2\n\"x\n\",y\nz\n"), message[128];
    const char *names[] = { first, second };
    struct table t = texts;
    struct rows r = { 0 };
    ditto_dataset *d;
    t.options.skip_lines = 1; /* quotes in this line do not count */
    assert_ok(ditto_dataset_from_csv(&(ditto_files){ names, 2, 0 }, t.component, 2, &t.options, &d));
    assert_status(ditto_dataset_reduce(d, collect_row, &(struct seen){ &r, 2 }, 0), DITTO_ERR_CORRUPT);
    snprintf(message, sizeof message, "%s:5: column 2: the line has 1 columns", second);
    assert_message(message);
    add(&r, "", 1);
    assert_string_equal(r.text, "a\n\n|b|\n\"\n|d|\n1|2|\nx\n|y|\n");
    free(r.text);
    assert_ok(ditto_dataset_destroy(d));
    forget_file(first);
    forget_file(second);
}

static void an_endless_row_does_not_use_memory(void **state)
{
    char *name = temporary_file("1,2,3\n1,2,\"3");
    char message[128];
    assert_int_equal(truncate(name, 1l << 30), 0); /* a hole needs no disk space */
    ditto_dataset *d = csv_of(name, &numbers);
    struct rows r = { 0 };
    assert_status(ditto_dataset_reduce(d, collect_row, &(struct seen){ &r, 2 }, 0), DITTO_ERR_CORRUPT);
    snprintf(message, sizeof message,
             "%s:2: the row has more than 16777216 bytes: a quote in it is not closed", name);
    assert_message(message);
    assert_int_equal(r.rows, 1);
    assert_true(resident_kib() < 300 << 10);
    free(r.text);
    assert_ok(ditto_dataset_destroy(d));
    forget_file(name);
}

/* The file is cut when the first row has been read. All rows were chosen before that, because the dataset is
 * shuffled. Rows are long, so that one read does not get several. */
struct cut {
    const char *name;
    int rows;
};

static ditto_status cut_file(const ditto_tensor *row, void *state)
{
    struct cut *cut = state;
    cut->rows++;
    return truncate(cut->name, 0) == 0 ? DITTO_OK : DITTO_ERR_USER;
}

static void a_file_that_shrinks_while_it_is_read_is_an_error(void **state)
{
    enum { ROWS = 8, WIDE = 100000 };
    struct table t = { { { 0, WIDE, DITTO_I32, 0, 0, 0 } }, 1, DITTO_CSV_OPTIONS_INIT };
    char *name = temporary_file("");
    FILE *file = fopen(name, "w");
    for (int i = 0; i < ROWS * WIDE; i++)
        fprintf(file, "%d%c", i, i % WIDE == WIDE - 1 ? '\n' : ',');
    fclose(file);
    ditto_dataset *d = csv_of(name, &t), *shuffled;
    assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
    struct cut cut = { name, 0 };
    assert_status(ditto_dataset_reduce(shuffled, cut_file, &cut, 0), DITTO_ERR_IO);
    assert_message("became shorter");
    assert_message("line ");
    assert_int_equal(cut.rows, 1);
    assert_ok(ditto_dataset_destroy(shuffled));
    assert_ok(ditto_dataset_destroy(d));
    forget_file(name);
}

/* -- internal functions: positions, shards, rows of a state -- */

/* Reads a pass, `step` rows at a time, each time with a new cursor that is restored from the state of the
 * previous one. */
static void read_in_steps(ditto_dataset *d, const struct dti_pass *pass, size_t step, struct rows *r)
{
    struct dti_bytes state = { 0 };
    struct dti_reader reader = { 0 };
    ditto_status status = DITTO_OK;
    for (int round = 0; status == DITTO_OK || round < 3; round++) { /* the end is returned every time */
        struct dti_cursor *cursor;
        uint64_t word[8 * 3];
        struct dti_rows rows = { word, 3 };
        struct dti_bytes_reader from = { state.data, state.data + state.length, false };
        size_t got;
        assert_ok(dti_cursor_open(d, pass, &cursor));
        if (round > 0)
            assert_ok(dti_cursor_restore(cursor, &from));
        assert_false(from.failed);
        status = dti_cursor_next(cursor, rows, step, &got);
        assert_true(status == (got == step ? DITTO_OK : DITTO_END_OF_INPUT));
        for (size_t i = 0; i < got; i++) {
            char first[24], second[24];
            ditto_tensor row[DITTO_MAX_COMPONENTS] = { 0 };
            assert_ok(
                dti_dataset_fill(d, &reader, dti_rows_from(rows, i), 1, (void *const[]){ first, second }));
            dti_row_tensors(d, (void *const[]){ first, second }, row);
            assert_ok(collect(row, r));
        }
        dti_bytes_free(&state);
        assert_ok(dti_cursor_save(cursor, &state));
        dti_cursor_close(cursor);
    }
    dti_bytes_free(&state);
    dti_reader_free(&reader);
}

static void positions_are_saved_and_shards_take_whole_files(void **state)
{
    char *names[2] = { temporary_file("\xef\xbb\xbfh\na,b\n\n\"c\nd\",e\nf,g"), temporary_file("h\ni,j\n") };
    const char *const *files = (const char *const *)names;
    struct table t = texts;
    ditto_dataset *d;
    t.options.skip_lines = 1;
    assert_ok(ditto_dataset_from_csv(&(ditto_files){ files, 2, 0 }, t.component, 2, &t.options, &d));
    for (size_t step = 1; step < 8; step++) {
        struct rows r = { 0 };
        read_in_steps(d, &(struct dti_pass){ 0 }, step, &r);
        /* The second file has number 4. */
        read_in_steps(d, &(struct dti_pass){ .shards = 2, .shard = 0, .first_file = 3 }, step, &r);
        read_in_steps(d, &(struct dti_pass){ .shards = 2, .shard = 1, .first_file = 3 }, step, &r);
        read_in_steps(d, &(struct dti_pass){ .shards = 9, .shard = 1, .first_file = 3 }, step, &r);
        add(&r, "", 1);
        assert_string_equal(r.text, "a|b|\nc\nd|e|\nf|g|\ni|j|\ni|j|\na|b|\nc\nd|e|\nf|g|\n");
        free(r.text);
    }
    assert_ok(ditto_dataset_destroy(d));
    for (int i = 0; i < 2; i++)
        forget_file(names[i]);
}

/* Words that no row has must give an error, and no number of the file is stored. */
static void rows_of_a_damaged_state_are_refused(void **state)
{
    static const uint64_t damaged[][3] = {
        { 0, (uint64_t)1 << 32 | 5, 1 }, { UINT64_MAX - 3, 5, 1 }, { 0, UINT64_MAX, 1 }, { 1000, 5, 1 }
    };
    char *name = temporary_file("1,2,3\n");
    ditto_dataset *d = csv_of(name, &numbers);
    struct dti_reader reader = { 0 };
    for (size_t n = 0; n < sizeof damaged / sizeof damaged[0]; n++) {
        uint64_t word[3];
        float f[2] = { -1, -1 };
        int32_t i = -1;
        struct dti_bytes saved = { 0 };
        assert_ok(dti_row_save(d, damaged[n], &saved));
        ditto_status status = dti_row_load(
            d, word, &(struct dti_bytes_reader){ saved.data, saved.data + saved.length, false });
        dti_bytes_free(&saved);
        if (status == DITTO_OK) /* whether a file has so many bytes is known when it is read */
            status = dti_dataset_fill(d, &reader, (struct dti_rows){ word, 3 }, 1, (void *const[]){ f, &i });
        assert_status(status, damaged[n][0] == 1000 ? DITTO_ERR_IO : DITTO_ERR_CORRUPT);
        assert_true(f[0] == -1 && f[1] == -1 && i == -1);
    }
    dti_reader_free(&reader);
    assert_ok(ditto_dataset_destroy(d));
    forget_file(name);
}

/* -- errors -- */

static void refuse(ditto_csv_component component, ditto_csv_options options, ditto_status status,
                   const char *message)
{
    char *name = temporary_file("1,2,3\n");
    ditto_dataset *d;
    assert_status(ditto_dataset_from_csv(&(ditto_files){ (const char *const *)&name, 1, 0 }, &component, 1,
                                         &options, &d),
                  status);
    assert_message(message);
    forget_file(name);
}

static void impossible_components_are_refused(void **state)
{
    ditto_csv_options plain = DITTO_CSV_OPTIONS_INIT, o = plain;
    ditto_csv_component good = { 0, 3, DITTO_F32, 0, 0, 0 };
    static const char delimiters[] = "\n\r.+-eE\"0123456789";
    refuse((ditto_csv_component){ 0, 0, DITTO_F32, 0, 0, 0 }, plain, DITTO_ERR_INVALID,
           "components[0] has 0 columns");
    refuse((ditto_csv_component){ UINT32_MAX, 2, DITTO_F32, 0, 0, 0 }, plain, DITTO_ERR_INVALID,
           "at most 1000000");
    refuse((ditto_csv_component){ 0, 1, DITTO_F16, 0, 0, 0 }, plain, DITTO_ERR_UNSUPPORTED, "f16");
    refuse((ditto_csv_component){ 0, 1, DITTO_C64, 0, 0, 0 }, plain, DITTO_ERR_UNSUPPORTED, "c64");
    refuse((ditto_csv_component){ 0, 1, (ditto_dtype)99, 0, 0, 0 }, plain, DITTO_ERR_UNSUPPORTED,
           "unknown dtype");
    refuse((ditto_csv_component){ 0, 1, DITTO_F32, 8, 0, 0 }, plain, DITTO_ERR_UNSUPPORTED, "text as u8");
    refuse((ditto_csv_component){ 0, 2, DITTO_U8, 8, 0, 0 }, plain, DITTO_ERR_INVALID, "2 columns of text");
    refuse((ditto_csv_component){ 0, 1, DITTO_F32, 0, (ditto_csv_missing)3, 0 }, plain, DITTO_ERR_RANGE,
           "missing = 3");
    o.num_columns = 2;
    refuse(good, o, DITTO_ERR_INVALID, "a row has 2");
    o.num_columns = UINT32_MAX;
    refuse(good, o, DITTO_ERR_INVALID, "at most 1000000");
    for (size_t i = 0; i < sizeof delimiters - 1; i++) {
        o = plain;
        o.delimiter = delimiters[i];
        refuse(good, o, DITTO_ERR_INVALID, "options->delimiter");
    }
    static const struct {
        ditto_dtype dtype;
        double value;
    } cannot[] = { { DITTO_F32, 1e39 },   { DITTO_I8, 128 },       { DITTO_I8, -129 },
                   { DITTO_U8, -1 },      { DITTO_U8, 256 },       { DITTO_I32, 0.5 },
                   { DITTO_I64, 0x1p63 }, { DITTO_I64, NAN },      { DITTO_U64, 0x1p64 },
                   { DITTO_U64, -1 },     { DITTO_BOOL, 2 },       { DITTO_I16, HUGE_VAL },
                   { DITTO_BOOL, 0.5 },   { DITTO_I64, -0x1.1p63 } };
    for (size_t i = 0; i < sizeof cannot / sizeof cannot[0]; i++)
        refuse((ditto_csv_component){ 0, 1, cannot[i].dtype, 0, DITTO_CSV_MISSING_VALUE, cannot[i].value },
               plain, DITTO_ERR_INVALID, "missing_value");
}

static void files_that_cannot_be_read_are_refused(void **state)
{
    char *empty = temporary_file(""), *heading = temporary_file("a,b,c\n\n \n");
    const char *names[] = { empty, heading };
    ditto_files files = { names, 2, 0 };
    ditto_dataset *d;
    assert_status(ditto_dataset_from_csv(&files, numbers.component, 2, &OPTIONS(csv, .skip_lines = 1), &d),
                  DITTO_ERR_INVALID);
    assert_message("no row");
    files.num_names = 1;
    assert_status(ditto_dataset_from_csv(&files, numbers.component, 2, NULL, &d), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_from_csv(&files, NULL, 2, NULL, &d), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_from_csv(&files, numbers.component, 2, NULL, NULL), DITTO_ERR_INVALID);
    names[0] = "/nowhere/x.csv";
    assert_status(ditto_dataset_from_csv(&files, numbers.component, 2, NULL, &d), DITTO_ERR_NOT_FOUND);
    assert_message("/nowhere/x.csv");
    names[0] = "/tmp";
    assert_status(ditto_dataset_from_csv(&files, numbers.component, 2, NULL, &d), DITTO_ERR_IO);
    names[0] = empty;
    remove(empty); /* a FIFO is refused and not waited for */
    assert_int_equal(mkfifo(empty, 0600), 0);
    assert_status(ditto_dataset_from_csv(&files, numbers.component, 2, NULL, &d), DITTO_ERR_IO);
    forget_file(empty);
    forget_file(heading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_a_line_of_fields),
        cmocka_unit_test(a_malformed_row_is_named_by_file_line_and_column),
        cmocka_unit_test(quotes_are_those_of_rfc_4180),
        cmocka_unit_test(unused_columns_are_scanned_only_for_their_ends),
        cmocka_unit_test(rows_may_cross_the_boundaries_of_reads),
        cmocka_unit_test(lines_are_counted_through_quotes_and_files),
        cmocka_unit_test(an_endless_row_does_not_use_memory),
        cmocka_unit_test(a_file_that_shrinks_while_it_is_read_is_an_error),
        cmocka_unit_test(positions_are_saved_and_shards_take_whole_files),
        cmocka_unit_test(rows_of_a_damaged_state_are_refused),
        cmocka_unit_test(impossible_components_are_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
