/* tests/input/sources/text/test_packed_text.c - tests that compressed files of text and CSV have the rows of
 * the same files without compression, also after a saved position, and that their errors are named. */
#include "input/readers.h"

static ditto_status open_text(const char *const *names, uint32_t count, ditto_compression compression,
                              uint64_t max_bytes, ditto_dataset **out)
{
    return ditto_dataset_from_text(
        &(ditto_files){ names, count, 0 },
        &OPTIONS(text, .max_bytes = max_bytes, .skip_lines = 1, .compression = compression), out);
}

#ifdef DTI_HAVE_ZLIB
static struct made packed;

/* A number and a text of at most 16 bytes. */
static const ditto_csv_component columns[] = { { 0, 1, DITTO_I32, 0, 0, 0 }, { 1, 1, DITTO_U8, 16, 0, 0 } };

static ditto_status open_csv(const char *const *names, uint32_t count, ditto_compression compression,
                             ditto_dataset **out)
{
    return ditto_dataset_from_csv(&(ditto_files){ names, count, 0 }, columns, 2,
                                  &OPTIONS(csv, .skip_lines = 1, .compression = compression), out);
}

/* Writes a text as it is and compressed. The compressed file has a member for each `piece` bytes. */
static void write_both(const char *plain, const char *compressed, const char *text, size_t length,
                       size_t piece)
{
    write_bytes(plain, text, length);
    packed.length = 0;
    for (size_t at = 0; at < length; at += piece)
        add_member(&packed, text + at, length - at < piece ? length - at : piece);
    write_bytes(compressed, packed.bytes, packed.length);
}

/* Asserts that two datasets have equal rows, whole and shuffled, and positions from which they go on. */
static void are_alike(ditto_dataset *plain, ditto_dataset *compressed)
{
    struct taken expected = take_all(plain), found = take_all(compressed);
    assert_int_equal(found.rows, expected.rows);
    assert_int_equal(found.length, expected.length);
    assert_memory_equal(found.bytes, expected.bytes, expected.length);
    free(expected.bytes);
    free(found.bytes);
    restarts_anywhere(compressed);
    ditto_dataset *shuffled; /* its positions contain rows */
    assert_ok(ditto_dataset_shuffle(compressed, &OPTIONS(shuffle, .buffer_rows = 2), &shuffled));
    restarts_anywhere(shuffled);
    assert_ok(ditto_dataset_destroy(shuffled));
    assert_ok(ditto_dataset_destroy(plain));
    assert_ok(ditto_dataset_destroy(compressed));
}

static void compressed_files_have_the_same_rows(void **state)
{
    static const char first[] = "\xef\xbb\xbfid,\"name\r\n1,one\r\n2,\"two\nand\n\"\"half\"\"\"\n\n  \n-3,x",
                      second[] = "a heading\n4,four\n5,\"\"\n";
    const char *plain[2], *compressed[2];
    ditto_dataset *d, *other;
    for (size_t piece = 1; piece <= sizeof first; piece += 6) {
        write_both("0-even", "0-even.gz", first, sizeof first - 1, piece);
        write_both("1-odd", "1-odd.gz", second, sizeof second - 1, piece);
        plain[0] = own_path("0-even");
        plain[1] = own_path("1-odd");
        compressed[0] = own_path("0-even.gz");
        compressed[1] = own_path("1-odd.gz");
        assert_ok(open_csv(plain, 2, DITTO_COMPRESSION_DEFAULT, &d));
        assert_ok(open_csv(compressed, 2, DITTO_COMPRESSION_GZIP, &other));
        shards_take_turns(other);
        are_alike(d, other);
        assert_ok(open_text(plain, 2, DITTO_COMPRESSION_DEFAULT, 24, &d));
        assert_ok(open_text(compressed, 2, DITTO_COMPRESSION_GZIP, 24, &other));
        shards_take_turns(other);
        are_alike(d, other);
    }
}

static void compressed_lines_may_be_larger_than_a_read(void **state)
{
    enum { LONG = 400000, LINES = 4 };
    size_t length = 2 + (size_t)LINES * LONG;
    char *text = malloc(length);
    uint64_t random = test_seed(9);
    ditto_dataset *d, *other;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)('a' + test_random(&random) % 4);
    text[1] = '\n';
    for (size_t line = 1; line <= LINES; line++)
        text[1 + line * LONG - line] = '\n'; /* lines of different lengths */
    write_both("long", "long.gz", text, length, 300000);
    assert_ok(open_text((const char *[]){ own_path("long") }, 1, DITTO_COMPRESSION_DEFAULT, LONG, &d));
    assert_ok(open_text((const char *[]){ own_path("long.gz") }, 1, DITTO_COMPRESSION_GZIP, LONG, &other));
    are_alike(d, other);
    free(text);
}

static void errors_name_the_row(void **state)
{
    static const char text[] = "h\n1,a\n2,b\nthree,c\n";
    const char *names[1];
    ditto_dataset *d;
    write_both("bad", "bad.gz", text, sizeof text - 1, 100);
    names[0] = own_path("bad.gz");
    assert_ok(open_csv(names, 1, DITTO_COMPRESSION_GZIP, &d));
    struct taken t = nothing_taken(d);
    assert_status(ditto_dataset_reduce(d, take_row, &t, 0), DITTO_ERR_CORRUPT);
    assert_message("bad.gz:4: column 1: \"three\" is not a number of type i32");
    assert_int_equal(t.rows, 2);
    free(t.bytes);
    assert_ok(ditto_dataset_destroy(d));
    /* The first row is read when the dataset is made. */
    write_both("bad", "bad.gz", "h\nx,a\n", 6, 100);
    assert_status(open_csv(names, 1, DITTO_COMPRESSION_GZIP, &d), DITTO_ERR_CORRUPT);
    assert_message("bad.gz:2: column 1: \"x\"");
    write_both("bad", "bad.gz", "h\n", 2, 100);
    assert_status(open_csv(names, 1, DITTO_COMPRESSION_GZIP, &d), DITTO_ERR_INVALID);
    assert_message("no row");
    /* Compressed twice, cut, and not compressed. */
    struct made once = packed;
    write_both("twice", "twice.gz", (const char *)once.bytes, once.length, 100);
    names[0] = own_path("twice.gz");
    assert_status(open_text(names, 1, DITTO_COMPRESSION_GZIP, 0, &d), DITTO_ERR_CORRUPT);
    assert_message("the contents of ");
    assert_message("twice.gz is a gzip file");
    names[0] = write_bytes("cut.gz", packed.bytes, packed.length - 5);
    assert_status(open_text(names, 1, DITTO_COMPRESSION_GZIP, 0, &d), DITTO_ERR_CORRUPT);
    assert_message("cut off");
    names[0] = write_bytes("plain.gz", "1,a\n", 4);
    assert_status(open_text(names, 1, DITTO_COMPRESSION_GZIP, 0, &d), DITTO_ERR_CORRUPT);
    assert_message("plain.gz: there is no gzip stream at offset 0");
    names[0] = write_bytes("page.gz", "<html>", 6);
    assert_status(open_text(names, 1, DITTO_COMPRESSION_GZIP, 0, &d), DITTO_ERR_CORRUPT);
    assert_message("there is no gzip stream at offset 0: the file is an HTML page");
    assert_status(open_text(names, 1, (ditto_compression)2, 0, &d), DITTO_ERR_RANGE);
    assert_status(open_csv(names, 1, (ditto_compression)-1, &d), DITTO_ERR_RANGE);
}

static void a_state_of_a_changed_file_is_refused(void **state)
{
    struct dti_pass pass = { 0 };
    struct dti_cursor *cursor;
    struct dti_bytes bytes = { 0 };
    const char *names[1] = { own_path("state.gz") };
    ditto_dataset *d;
    write_both("state", "state.gz", "h\n1,a\n2,b\n3,c\n", 14, 100);
    assert_ok(open_csv(names, 1, DITTO_COMPRESSION_GZIP, &d));
    struct taken all = take_all(d);
    assert_ok(dti_cursor_open(d, &pass, &cursor));
    read_some(d, cursor, &all, 0, 3);
    assert_ok(dti_cursor_save(cursor, &bytes));
    dti_cursor_close(cursor);
    assert_ok(ditto_dataset_destroy(d));
    write_both("state", "state.gz", "h\n1,a\n", 6, 100);
    assert_ok(open_csv(names, 1, DITTO_COMPRESSION_GZIP, &d));
    assert_ok(dti_cursor_open(d, &pass, &cursor));
    struct dti_bytes_reader from = { bytes.data, bytes.data + bytes.length, false };
    assert_status(dti_cursor_restore(cursor, &from), DITTO_ERR_CORRUPT);
    assert_message("state.gz: its contents end at offset 6, but were read up to offset 14");
    dti_cursor_close(cursor);
    dti_bytes_free(&bytes);
    free(all.bytes);
    assert_ok(ditto_dataset_destroy(d));
}
#else
static void compressed_files_need_zlib(void **state)
{
    ditto_dataset *d;
    const char *name = write_bytes("a.gz", "x", 1);
    assert_status(open_text(&name, 1, DITTO_COMPRESSION_GZIP, 0, &d), DITTO_ERR_UNSUPPORTED);
    assert_message("zlib");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef DTI_HAVE_ZLIB
        cmocka_unit_test(compressed_files_have_the_same_rows),
        cmocka_unit_test(compressed_lines_may_be_larger_than_a_read),
        cmocka_unit_test(errors_name_the_row),
        cmocka_unit_test(a_state_of_a_changed_file_is_refused),
#else
        cmocka_unit_test(compressed_files_need_zlib),
#endif
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
