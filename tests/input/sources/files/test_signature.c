/* tests/input/sources/files/test_signature.c - tests that the message about a file that cannot be read says
 * what the file is. The bytes are those that other programs write. */
#include "input/readers.h"

#include "input/sources/files/signature.h"

/* The first bytes of files, with the words by which the message names the format. */
#define GZIP    "\x1f\x8b\b\0\0\0\0\0\0\3\xcb\x48\xcd\xc9\xc9\x07\0"
#define PAGE    "<!DOCTYPE html><html><head><title>Virus scan warning</title></head>"
#define POINTER "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
#define WIDE    "1\0.\0005\0\t\0002\0\r\0\n\0"
#define ARCHIVE "PK\3\4\24\0\0\0\b\0\0\0\0\0\0\0\0\0x.npy"

static const struct {
    const char *bytes;
    size_t length;
    const char *format;
    bool in_text; /* sources of text refuse it at once */
} formats[] = {
#define BYTES(literal) literal, sizeof(literal) - 1
    { BYTES(GZIP), "a gzip file", true },
    { BYTES("x\x9c\xcbH\xcd\xc9\xc9\x07\0\6,\2\x15 and more"), "compressed by zlib", false },
    { BYTES("BZh91AY&SY\x19\x31\x65\x3d\0\0\0\x81"), "compressed by bzip2", false },
    { BYTES("\xfd"
            "7zXZ\0\0\4\xe6\xd6\xb4\x46\2\0\x21\1"),
      "compressed by xz", true },
    { BYTES("(\xb5/\xfd\4X)\0\0hello\n\xfc\xcf"), "compressed by zstd", true },
    { BYTES(ARCHIVE), "a zip archive, as .npz", true },
    { BYTES("\xff\xfe" WIDE), "text in UTF-16", true },
    { BYTES("\xfe\xff\0001\0,\0002\0\n"), "text in UTF-16", true },
    { BYTES(WIDE), "text in UTF-16", true },
    { BYTES("\0001\0,\0002\0\r\0\n"), "text in UTF-16", true },
    { BYTES("\xff\xfe\0\0001\0\0\0,\0\0\0"), "UTF-32", true },
    { BYTES("\x93NUMPY\1\0\x76\0{'descr': '<f4'"), "a .npy file", true },
    { BYTES("\x89HDF\r\n\x1a\n\0\0\0\0\0\10"), "an HDF5 file", true },
    { BYTES("PAR1\x15\4\x15\x10\x15\x14\x4c\x15\4\x15\0"), "a Parquet file", false },
    { BYTES(POINTER), "a Git LFS pointer", true },
    { BYTES(PAGE), "an HTML page", false },
    { BYTES("<html><body>404 Not Found</body></html>\n"), "an HTML page", false },
#undef BYTES
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* Two columns of numbers. */
static const ditto_csv_component columns[] = { { 0, 1, DITTO_F64, 0, 0, 0 }, { 1, 1, DITTO_F64, 0, 0, 0 } };

static ditto_status ignore(const ditto_tensor *row, void *unused)
{
    return DITTO_OK;
}

/* Reads all rows, unless the dataset could not be made. Returns the first error. */
static ditto_status drain(ditto_status made_status, ditto_dataset *d)
{
    if (made_status != DITTO_OK)
        return made_status;
    ditto_status status = ditto_dataset_reduce(d, ignore, NULL, 0);
    assert_ok(ditto_dataset_destroy(d));
    return status;
}

static ditto_status read_text(const char *path)
{
    ditto_dataset *d = NULL;
    ditto_status made_status = ditto_dataset_from_text(&(ditto_files){ &path, 1, 0 }, NULL, &d);
    return drain(made_status, d);
}
static ditto_status read_csv(const char *path)
{
    ditto_dataset *d = NULL;
    ditto_status made_status = ditto_dataset_from_csv(&(ditto_files){ &path, 1, 0 }, columns, 2, NULL, &d);
    return drain(made_status, d);
}
static ditto_status read_tfrecord(const char *path)
{
    ditto_dataset *d = NULL;
    ditto_status made_status = ditto_dataset_from_tfrecord(&(ditto_files){ &path, 1, 0 }, NULL, &d);
    return drain(made_status, d);
}
static ditto_status read_npy(const char *path)
{
    ditto_dataset *d = NULL;
    ditto_status made_status = ditto_dataset_from_npy(&path, 1, &d);
    return drain(made_status, d);
}
static ditto_status read_fixed(const char *path)
{
    ditto_dataset *d = NULL;
    ditto_tensor row = { .dtype = DITTO_U8, .rank = 1, .shape = { 1009 } };
    ditto_status made_status = ditto_dataset_from_fixed(&(ditto_files){ &path, 1, 0 }, &row, 1, NULL, &d);
    return drain(made_status, d);
}

static void every_source_says_what_a_file_is_that_it_cannot_read(void **state)
{
    for (size_t i = 0; i < FORMATS; i++) {
        const char *path = write_bytes("foreign", formats[i].bytes, formats[i].length);
        assert_status(read_csv(path), DITTO_ERR_CORRUPT);
        assert_message(formats[i].format);
        assert_message("foreign");
        assert_status(read_tfrecord(path), DITTO_ERR_CORRUPT);
        assert_message("it is not a TFRecord file, but ");
        assert_message(formats[i].format);
        assert_status(read_fixed(path), DITTO_ERR_CORRUPT);
        assert_message(formats[i].format);
        assert_int_not_equal(read_npy(path), DITTO_OK);
        if (strstr(formats[i].format, ".npy") == NULL || strstr(formats[i].format, ".npz") != NULL)
            assert_message(formats[i].format);
        if (formats[i].in_text) {
            assert_status(read_text(path), DITTO_ERR_CORRUPT);
            assert_message(formats[i].format);
        } else {
            assert_ok(read_text(path)); /* these bytes may begin a text */
        }
    }
}

/* What is recognised in text must be certain, because such a file is refused although its lines could be
 * read. */
static void ordinary_files_are_not_recognised(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } ordinary[] = {
#define BYTES(literal) literal, sizeof(literal) - 1
        { BYTES("") },
        { BYTES("\n") },
        { BYTES("1,2\n3,4\n") },
        { BYTES("x^2,y\n") },
        { BYTES("a\0b\n") },
        { BYTES("\0\0\0\0\0\0\0\0\0\0") },
        { BYTES("version 3\n") },
        { BYTES("PKs\n") },
        { BYTES("\x1f\x8b") },
        { BYTES("\xef\xbb\xbf"
                "1,2\n") },
        { BYTES("a\0b\0c\0") },                          /* too short to be sure */
        { BYTES("\x22\0\0\0\0\0\0\0\x25\x31\x12\x5c") }, /* the length of a TFRecord */
        { BYTES("\x41\0\x42\0\0\0\0\0\x25\x31\x12\x5c") },
#undef BYTES
    };
    for (size_t i = 0; i < sizeof ordinary / sizeof ordinary[0]; i++) {
        assert_null(dti_signature_find(ordinary[i].bytes, ordinary[i].length, true));
        assert_null(dti_signature_find(ordinary[i].bytes, ordinary[i].length, false));
    }
    assert_status(read_tfrecord(write_bytes("other", "404: Not Found, and so on", 25)), DITTO_ERR_CORRUPT);
    assert_message("it is not a TFRecord file, or a damaged one");
    assert_status(read_tfrecord(write_bytes("short", "404", 3)), DITTO_ERR_CORRUPT);
    assert_message("it is not a TFRecord file, or a damaged one");
}

static void rows_of_text_with_odd_bytes_are_explained(void **state)
{
    assert_status(read_csv(write_bytes("mac.csv", "1,2\r3,4\r", 8)), DITTO_ERR_CORRUPT);
    assert_message("mac.csv:1: column 2");
    assert_message("a carriage return in the row has no line feed after it");
    assert_status(read_csv(write_bytes("mac.csv", "1,2\r\n3,4\r5,6\r\n", 14)), DITTO_ERR_CORRUPT);
    assert_message("mac.csv:2: column 2");
    assert_message("a carriage return in the row");
    assert_status(read_csv(write_bytes("tail.csv", "1,2\n\0\0\0\0", 8)), DITTO_ERR_CORRUPT);
    assert_message("tail.csv:2: column 1");
    assert_message("the row has NUL bytes");
    char line[2000];
    memset(line, 'x', sizeof line);
    line[7] = '\r';
    assert_status(read_text(write_bytes("mac.txt", line, sizeof line)), DITTO_ERR_CORRUPT);
    assert_message("mac.txt:1: the line has more than 1024 bytes: a carriage return in the line");
    /* Errors of text that is as it should be have no such words. */
    assert_status(read_csv(write_bytes("text.csv", "1,2\r\n3,x\r\n", 10)), DITTO_ERR_CORRUPT);
    assert_null(strstr(ditto_last_error()->message, "carriage return"));
    assert_null(strstr(ditto_last_error()->message, "the file is"));
}

static void the_message_about_columns_says_what_to_do(void **state)
{
    assert_status(read_csv(write_bytes("ten.csv", "1,2,3,4,5,6,7,8,9,10\n", 21)), DITTO_ERR_CORRUPT);
    assert_message("the line has 10 columns, expected 2: options->num_columns = 10 skips");
    assert_status(read_csv(write_bytes("semicolons.csv", "1;2\n", 4)), DITTO_ERR_CORRUPT);
    assert_message("\"1;2\" is not a number");
    assert_status(read_csv(write_bytes("tabs.csv", "1\n", 2)), DITTO_ERR_CORRUPT);
    assert_message("the line has 1 columns, expected 2, separated by ','");
    assert_status(read_csv(write_bytes("na.csv", "1,NA\n", 5)), DITTO_ERR_CORRUPT);
    assert_message("the option `missing` of the component");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_source_says_what_a_file_is_that_it_cannot_read),
        cmocka_unit_test(ordinary_files_are_not_recognised),
        cmocka_unit_test(rows_of_text_with_odd_bytes_are_explained),
        cmocka_unit_test(the_message_about_columns_says_what_to_do),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
