/* tests/input/sources/files/test_files.c - tests that files are what they were when a dataset was made.
 * Another file is an error, whatever the source, and rows do not depend on the working folder. */
#include "input/readers.h"

#include "base/numbers/checksum.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

/* A file of rows for each source. The rows of 'a' and those of 'b' differ in every row, and have equal
 * sizes. */
enum { TEXT, CSV, TFRECORD, NPY, FIXED, SOURCES };
static struct made made;

static const char *write_rows(int source, const char *name, char letter)
{
    made.length = 0;
    if (source == NPY) {
        add(&made, "\x93NUMPY\1\0\x76\0", 10);
        made.length += (size_t)sprintf((char *)made.bytes + made.length, "%-117s\n",
                                       "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }");
    }
    for (int i = 0; i < 4; i++) {
        size_t begin = made.length;
        if (source == TFRECORD) {
            add_number(&made, 1, 8);
            add_number(&made, dti_crc32c_masked(dti_crc32c(made.bytes + begin, 8)), 4);
        }
        add_number(&made, (uint64_t)(source == CSV ? letter - 'a' + 1 + '0' : letter), 1);
        if (source == TFRECORD)
            add_number(&made, dti_crc32c_masked(dti_crc32c(made.bytes + made.length - 1, 1)), 4);
        if (source == TEXT || source == CSV)
            add(&made, "\n", 1);
    }
    return write_bytes(name, made.bytes, made.length);
}

static ditto_status open_rows(int source, const char *name, uint32_t flags, ditto_dataset **out)
{
    /* With 8 bytes, the length that follows the text is aligned in tests/input/readers.h. */
    static const ditto_csv_component column = { 0, 1, DITTO_U8, 0, 0, 0 };
    static const ditto_tensor row = { .dtype = DITTO_U8 };
    ditto_files files = { &name, 1, flags };
    switch (source) {
    case TEXT:
        return ditto_dataset_from_text(&files, &OPTIONS(text, .max_bytes = 8), out);
    case CSV:
        return ditto_dataset_from_csv(&files, &column, 1, NULL, out);
    case TFRECORD:
        return ditto_dataset_from_tfrecord(&files, &OPTIONS(tfrecord, .max_bytes = 8), out);
    case NPY:
        return ditto_dataset_from_npy(&name, 1, out);
    default:
        return ditto_dataset_from_fixed(&files, &row, 1, NULL, out);
    }
}

/* The state is the letter that each row must have. */
static ditto_status is_letter(const ditto_tensor *row, void *letter)
{
    char found = *(const char *)row[0].data;
    return found == *(char *)letter || found == *(char *)letter - 'a' + 1 ? DITTO_OK : DITTO_ERR_USER;
}

static ditto_status read_letters(ditto_dataset *d, char letter)
{
    return ditto_dataset_reduce(d, is_letter, &letter, 0);
}

/* Reads so many other files that all others are closed. A dataset opens its files again when it needs
 * them. */
static int close_files(void)
{
    enum { MANY = 70 };
    static char path[MANY][128];
    const char *names[MANY];
    ditto_tensor row = { .dtype = DITTO_U8 };
    ditto_dataset *d;
    char letter = 'x';
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "other%d", i);
        snprintf(path[i], sizeof path[i], "%s", own_path(name));
        names[i] = path[i];
        FILE *file = fopen(path[i], "w");
        REQUIRE(file != NULL && fputc('x', file) == 'x' && fclose(file) == 0);
    }
    REQUIRE(ditto_dataset_from_fixed(&(ditto_files){ names, MANY, 0 }, &row, 1, NULL, &d) == DITTO_OK);
    REQUIRE(ditto_dataset_reduce(d, is_letter, &letter, 0) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
    return 0;
}

/* Gives a file the time of an older write, so that a write is seen although clocks of file systems are
 * coarse. */
static void make_old(const char *path)
{
    struct timespec times[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000, .tv_nsec = 5 } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* -- the working folder -- */

static int read_after_chdir(void *unused)
{
    (void)unused;
    for (int source = 0; source < SOURCES; source++) {
        ditto_dataset *d, *matches;
        REQUIRE(chdir(own_folder) == 0);
        write_rows(source, "a-rows", 'a');
        REQUIRE(mkdir("other", 0700) == 0);
        write_rows(source, "other/a-rows", 'b');
        REQUIRE(open_rows(source, "a-rows", 0, &d) == DITTO_OK);
        REQUIRE(source == NPY || open_rows(source, "./*-rows", DITTO_FILES_GLOB, &matches) == DITTO_OK);
        REQUIRE(close_files() == 0);
        REQUIRE(chdir("other") == 0);
        REQUIRE(read_letters(d, 'a') == DITTO_OK);
        REQUIRE(source == NPY || read_letters(matches, 'a') == DITTO_OK);
        REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
        REQUIRE(source == NPY || ditto_dataset_destroy(matches) == DITTO_OK);
        REQUIRE(remove("a-rows") == 0 && chdir("..") == 0 && rmdir("other") == 0);
    }
    return 0;
}

static void a_relative_name_is_that_of_the_folder_in_which_the_dataset_was_made(void **state)
{
    assert_int_equal(in_child(read_after_chdir, NULL, 60), 0);
}

static int read_without_folder(void *unused)
{
    (void)unused;
    ditto_dataset *d;
    const char *path = write_rows(TEXT, "rows", 'a');
    REQUIRE(chdir(own_folder) == 0 && mkdir("gone", 0700) == 0 && chdir("gone") == 0);
    REQUIRE(rmdir("../gone") == 0);
    REQUIRE(open_rows(TEXT, path, 0, &d) == DITTO_OK);
    REQUIRE(read_letters(d, 'a') == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
    REQUIRE(open_rows(TEXT, "rows", 0, &d) == DITTO_ERR_NOT_FOUND);
    return 0;
}

static void the_working_folder_may_be_removed(void **state)
{
    assert_int_equal(in_child(read_without_folder, NULL, 60), 0);
}

/* -- other files -- */

/* Makes a dataset, changes its file, and expects an error that names it. */
static void expect_change(int source, void (*change)(int source, const char *path), bool closed,
                          const char *message)
{
    ditto_dataset *d;
    char path[128];
    snprintf(path, sizeof path, "%s", write_rows(source, "rows", 'a'));
    make_old(path);
    assert_ok(open_rows(source, path, 0, &d));
    if (closed)
        assert_int_equal(close_files(), 0);
    change(source, path);
    for (int again = 0; again < 2; again++) { /* it stays an error */
        assert_status(read_letters(d, 'b'), message != NULL ? DITTO_ERR_IO : DITTO_ERR_NOT_FOUND);
        assert_message(path);
        assert_message(message != NULL ? message : "No such file");
    }
    assert_ok(ditto_dataset_destroy(d));
}

static void write_again(int source, const char *path)
{
    write_rows(source, "rows", 'b');
}
static void write_again_with_old_time(int source, const char *path)
{
    char other[128];
    snprintf(other, sizeof other, "%s", write_rows(source, "new", 'b'));
    make_old(other);
    assert_int_equal(rename(other, path), 0);
}
static void append(int source, const char *path)
{
    FILE *file = fopen(path, "a");
    assert_true(file != NULL && fputs("\n", file) >= 0 && fclose(file) == 0);
}
static void shorten(int source, const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(truncate(path, about.st_size - 1), 0);
}
static void remove_rows(int source, const char *path)
{
    assert_int_equal(remove(path), 0);
}

static void another_file_is_an_error_that_names_it(void **state)
{
    for (int source = 0; source < SOURCES; source++) {
        for (int closed = 0; closed < 2; closed++) {
            expect_change(source, write_again, closed, "it was written after the dataset was made");
            expect_change(source, append, closed, "it became longer after the dataset was made");
            expect_change(source, shorten, closed, "it became shorter after the dataset was made");
        }
        expect_change(source, write_again_with_old_time, true, "another file was given its name after");
        expect_change(source, remove_rows, true, NULL);
    }
}

/* While a file is open, its rows are read although its name was given to another one. */
static void an_open_file_stays_what_it_is(void **state)
{
    ditto_dataset *d;
    const char *path = write_rows(TEXT, "rows", 'a');
    assert_ok(open_rows(TEXT, path, 0, &d)); /* it has found the first row, and the file is still open */
    write_again_with_old_time(TEXT, path);
    assert_ok(read_letters(d, 'a'));
    assert_ok(ditto_dataset_destroy(d));
}

/* A state has nothing of this. It may be restored where the files are copies. */
static void a_state_is_restored_with_a_copy_of_the_files(void **state)
{
    for (int source = 0; source < SOURCES; source++) {
        struct dti_pass pass = { 0 };
        struct dti_cursor *cursor;
        struct dti_bytes bytes = { 0 };
        uint64_t before, after;
        ditto_dataset *d;
        assert_ok(open_rows(source, write_rows(source, "rows", 'a'), 0, &d));
        struct taken all = take_all(d);
        assert_ok(dti_dataset_fingerprint(d, &before));
        assert_ok(dti_cursor_open(d, &pass, &cursor));
        read_some(d, cursor, &all, 0, 2);
        assert_ok(dti_cursor_save(cursor, &bytes));
        dti_cursor_close(cursor);
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(open_rows(source, write_rows(source, "copy", 'a'), 0, &d));
        assert_ok(dti_dataset_fingerprint(d, &after));
        assert_int_equal(before, after);
        assert_ok(dti_cursor_open(d, &pass, &cursor));
        struct dti_bytes_reader from = { bytes.data, bytes.data + bytes.length, false };
        assert_ok(dti_cursor_restore(cursor, &from));
        assert_int_equal(read_some(d, cursor, &all, 2, 9), 2);
        dti_cursor_close(cursor);
        dti_bytes_free(&bytes);
        free(all.bytes);
        assert_ok(ditto_dataset_destroy(d));
    }
}

/* -- patterns -- */

static int open_pattern_without_descriptors(void *unused)
{
    (void)unused;
    ditto_dataset *d, *other;
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s/rows*", own_folder);
    write_rows(TEXT, "rows", 'a');
    REQUIRE(open_rows(TEXT, own_path("rows"), 0, &other) == DITTO_OK); /* its file stays open */
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit limit = { (rlim_t)next, (rlim_t)next };
    REQUIRE(next >= 0 && close(next) == 0);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    REQUIRE(open_rows(TEXT, pattern, DITTO_FILES_GLOB, &d) == DITTO_OK); /* that file is closed for it */
    REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(other) == DITTO_OK);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        ;
    REQUIRE(open_rows(TEXT, pattern, DITTO_FILES_GLOB, &d) == DITTO_ERR_IO);
    REQUIRE(ditto_last_error()->system_errno == EMFILE);
    REQUIRE(strstr(ditto_last_error()->message, pattern) != NULL);
    REQUIRE(strstr(ditto_last_error()->message, "Too many open files") != NULL);
    return 0;
}

static void a_pattern_that_meets_the_limit_of_descriptors_is_no_pattern_without_files(void **state)
{
    if (SANITIZED)
        skip(); /* sanitizers open files of their own */
    assert_int_equal(in_child(open_pattern_without_descriptors, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_relative_name_is_that_of_the_folder_in_which_the_dataset_was_made),
        cmocka_unit_test(the_working_folder_may_be_removed),
        cmocka_unit_test(another_file_is_an_error_that_names_it),
        cmocka_unit_test(an_open_file_stays_what_it_is),
        cmocka_unit_test(a_state_is_restored_with_a_copy_of_the_files),
        cmocka_unit_test(a_pattern_that_meets_the_limit_of_descriptors_is_no_pattern_without_files),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
