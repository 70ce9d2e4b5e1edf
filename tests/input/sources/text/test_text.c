/* tests/input/sources/text/test_text.c - tests the claims of source.h for lists of files and for text, with
 * ditto_dataset_reduce. */
#include "support/support.h"

#include <ditto/source.h>
#include <ditto/transform.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 64 };

/* -- writing files, reading rows -- */

/* The lines that were read, one after the other and each in brackets. */
struct lines {
    char *text;
    size_t used, room, rows;
};

static ditto_status collect(const ditto_tensor *row, void *state)
{
    struct lines *l = state;
    const char *bytes = row[0].data;
    size_t length = (size_t) * (const int64_t *)row[1].data, room = row[0].shape[0];
    if (row[0].dtype != DITTO_U8 || row[0].rank != 1 || row[1].dtype != DITTO_I64 || row[1].rank != 0 ||
        length > room)
        return DITTO_ERR_USER;
    for (size_t i = length; i < room; i++)
        if (bytes[i] != 0)
            return DITTO_ERR_USER;
    while (l->room - l->used < length + 3)
        l->text = realloc(l->text, l->room = 2 * l->room + 256);
    l->text[l->used++] = '[';
    memcpy(l->text + l->used, bytes, length);
    l->used += length;
    l->text[l->used++] = ']';
    l->rows++;
    return DITTO_OK;
}

static ditto_dataset *text_of(const char *name, uint64_t max_bytes, uint64_t skip_lines)
{
    ditto_dataset *d;
    assert_ok(ditto_dataset_from_text(&(ditto_files){ &name, 1, 0 },
                                      &OPTIONS(text, .max_bytes = max_bytes, .skip_lines = skip_lines), &d));
    return d;
}

static void expect_dataset(ditto_dataset *d, const char *expected, size_t expected_length)
{
    struct lines l = { 0 };
    for (uint64_t pass = 0; pass < 2; pass++) { /* datasets can be read several times */
        l.used = 0;
        assert_ok(ditto_dataset_reduce(d, collect, &l, pass));
        assert_int_equal(l.used, expected_length);
        assert_memory_equal(l.text, expected, expected_length);
    }
    free(l.text);
    assert_ok(ditto_dataset_destroy(d));
}

#define BYTES(literal) literal, sizeof literal - 1
static void expect_lines(const char *bytes, size_t length, uint64_t skip_lines, const char *expected,
                         size_t expected_length)
{
    char *name = temporary_bytes(bytes, length);
    expect_dataset(text_of(name, LONGEST, skip_lines), expected, expected_length);
    forget_file(name);
}

static void expect_error(ditto_dataset *d, const char *name, const char *message, size_t rows)
{
    struct lines l = { 0 };
    char wanted[300];
    snprintf(wanted, sizeof wanted, "%s%s", name, message);
    assert_status(ditto_dataset_reduce(d, collect, &l, 0), DITTO_ERR_CORRUPT);
    assert_message(wanted);
    assert_int_equal(l.rows, rows);
    free(l.text);
    assert_ok(ditto_dataset_destroy(d));
}

/* -- lines -- */

static void lines_have_any_content_and_no_line_ends(void **state)
{
    expect_lines(BYTES("one\ntwo\n"), 0, BYTES("[one][two]"));
    expect_lines(BYTES("one\r\ntwo\r\n"), 0, BYTES("[one][two]"));
    expect_lines(BYTES("one\ntwo"), 0, BYTES("[one][two]"));         /* the last line end is optional */
    expect_lines(BYTES("\n\r\n \nx\n\n"), 0, BYTES("[][][ ][x][]")); /* empty lines are lines */
    expect_lines(BYTES("a\rb\r\r\nc\r"), 0, BYTES("[a\rb\r][c\r]")); /* \r alone is not a line end */
    expect_lines(BYTES("a\0b\n\0\n\0"), 0, BYTES("[a\0b][\0][\0]"));
    expect_lines(BYTES("\xfe\x80\xff\n\"not, \"a CSV file\n"), 0,
                 BYTES("[\xfe\x80\xff][\"not, \"a CSV file]"));
    expect_lines(BYTES("\xef\xbb\xbf"
                       "a\n\xef\xbb\xbf"
                       "b\n"),
                 0,
                 BYTES("[a][\xef\xbb\xbf"
                       "b]")); /* a byte order mark is only at the start of a file */
    expect_lines(BYTES("\xef\xbb"), 0, BYTES("[\xef\xbb]"));
    expect_lines(BYTES("h\"1\nh2\none\n"), 2, BYTES("[one]"));
}

static void files_without_a_row_are_refused(void **state)
{
    static const char *const none[] = { "", "\xef\xbb\xbf", "a\n", "a\nb\n", "a\nb" };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        char *name = temporary_file(none[i]);
        const char *const names[] = { name, name };
        ditto_dataset *d;
        for (uint32_t count = 1; count <= 2; count++) {
            assert_status(ditto_dataset_from_text(&(ditto_files){ names, count, 0 },
                                                  &OPTIONS(text, .skip_lines = i < 2 ? 0 : 2), &d),
                          DITTO_ERR_INVALID);
            assert_message("no row");
            assert_message(name);
        }
        forget_file(name);
    }
}

static void a_line_that_is_too_long_is_named(void **state)
{
    char line[LONGEST + 3], *name;
    memset(line, 'x', sizeof line);
    line[LONGEST] = '\r';
    line[LONGEST + 1] = '\n';
    name = temporary_bytes(line, LONGEST + 2); /* exactly the allowed length */
    struct lines l = { 0 };
    ditto_dataset *d = text_of(name, LONGEST, 0);
    assert_ok(ditto_dataset_reduce(d, collect, &l, 0));
    assert_int_equal(l.rows, 1);
    assert_ok(ditto_dataset_destroy(d));
    free(l.text);
    forget_file(name);
    memset(line, 'x', sizeof line);
    memcpy(line, "a\n", 2);
    name = temporary_bytes(line, sizeof line);
    expect_error(text_of(name, LONGEST, 0), name, ":2: the line has more than 64 bytes", 1);
    forget_file(name);
    const char *any = "/dev/null";
    assert_status(
        ditto_dataset_from_text(&(ditto_files){ &any, 1, 0 }, &OPTIONS(text, .max_bytes = UINT64_MAX), &d),
        DITTO_ERR_RANGE);
}

/* Makes a file with a hole, which needs no disk space. */
static char *endless(const char *beginning, long bytes)
{
    char *name = temporary_file(beginning);
    assert_int_equal(truncate(name, bytes), 0);
    return name;
}

static void an_endless_line_does_not_use_memory(void **state)
{
    char *name = endless("a\nb\nthe third", 1l << 30);
    long before = resident_kib();
    expect_error(text_of(name, LONGEST, 0), name, ":3: the line has more than 64 bytes", 2);
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    /* With a sanitizer this is not checked, because sanitizers keep freed memory. */
    assert_true(usage.ru_maxrss - before < 64 << 10 || SANITIZED);
    forget_file(name);
    name = endless("", 1l << 30); /* an error in the first line is returned at once */
    ditto_dataset *d;
    assert_status(ditto_dataset_from_text(&(ditto_files){ (const char *const *)&name, 1, 0 }, NULL, &d),
                  DITTO_ERR_CORRUPT);
    assert_message(":1: the line has more than 1024 bytes");
    forget_file(name);
}

/* Most lengths of lines are around multiples of the size of a read. Both line ends are tried, or with
 * DITTO_TEST_SHORT the longer one. */
static void lines_may_cross_the_boundaries_of_reads(void **state)
{
    static const size_t lengths[] = { 262140, 262142,  262143, 262144, 262145, 524287,
                                      524288, 1000000, 3,      0,      262141, 7 };
    enum { LINES = sizeof lengths / sizeof lengths[0] };
    for (int end = test_is_short(); end < 2; end++) {
        char *text = malloc(8 << 20), *expected = malloc(8 << 20);
        size_t used = 0, wanted = 0;
        for (size_t i = 0; i < LINES; i++) {
            expected[wanted++] = '[';
            memset(expected + wanted, (int)('a' + i), lengths[i]);
            memcpy(text + used, expected + wanted, lengths[i]);
            wanted += lengths[i];
            used += lengths[i];
            expected[wanted++] = ']';
            if (end == 1)
                text[used++] = '\r';
            text[used++] = '\n';
        }
        char *name = temporary_bytes(text, used);
        expect_dataset(text_of(name, 1000000, 0), expected, wanted);
        /* If max_bytes is above DTI_TEXT_LINE_MOST_BYTES, it is the cursor's limit for a line too. */
        expect_dataset(text_of(name, (uint64_t)20 << 20, 0), expected, wanted);
        forget_file(name);
        free(text);
        free(expected);
    }
}

/* Compares random lines, with bytes of any value, with a simple splitting of the same bytes in this test. */
static void any_bytes_are_split_only_at_line_ends(void **state)
{
    uint64_t random = test_seed(77);
    for (int trial = test_trials(10); trial > 0; trial--) {
        size_t size = 1 + test_random(&random) % 600000, wanted = 0;
        unsigned one_in = 8 + (unsigned)(test_random(&random) % 90);
        char *text = malloc(size), *expected = malloc(3 * size + 2);
        for (size_t i = 0; i < size; i++) {
            uint64_t r = test_random(&random);
            text[i] = (char)(r % one_in == 0 ? '\n' : r % one_in == 1 ? '\r' : r >> 8);
        }
        text[0] = 'x'; /* so that there is no byte order mark */
        for (size_t i = 0; i < size; i++) {
            size_t end = i;
            while (end < size && text[end] != '\n')
                end++;
            size_t length = end - i - (end < size && end > i && text[end - 1] == '\r');
            expected[wanted++] = '[';
            memcpy(expected + wanted, text + i, length);
            wanted += length;
            expected[wanted++] = ']';
            i = end;
        }
        char *name = temporary_bytes(text, size);
        expect_dataset(text_of(name, 4096, 0), expected, wanted);
        forget_file(name);
        free(text);
        free(expected);
    }
}

/* -- files -- */

enum { FILES = 150 };

/* Makes a folder with files 000 to 149. Each has a heading and its number, except file 007, which is empty.
 * The files below 100 end with an empty line, and the others have no line end behind the number. */
static void make_folder(char *folder)
{
    assert_non_null(mkdtemp(scratch_name(folder, "test")));
    for (int i = FILES - 1; i >= 0; i--) {
        char path[32], text[64];
        snprintf(path, sizeof path, "/%03d.txt", i);
        snprintf(text, sizeof text, i < 100 ? "heading\n%d\n\n" : "heading\n%d", i);
        if (i == 7)
            text[0] = '\0';
        put_file(folder, path, text);
    }
}

static void files_are_read_one_after_the_other(void **state)
{
    char folder[SCRATCH_NAME], pattern[80], expected[4096], paths[FILES][96];
    const char *names[FILES];
    size_t used = 0;
    ditto_dataset *d;
    make_folder(folder);
    for (int i = 0; i < FILES; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%03d.txt", folder, i);
        names[i] = paths[i];
        if (i != 7)
            used += (size_t)snprintf(expected + used, sizeof expected - used, i < 100 ? "[%d][]" : "[%d]", i);
    }
    ditto_text_options options = OPTIONS(text, .max_bytes = LONGEST);
    options.skip_lines = 1; /* in each file */
    assert_ok(ditto_dataset_from_text(&(ditto_files){ names, FILES, 0 }, &options, &d));
    expect_dataset(d, expected, used);
    snprintf(pattern, sizeof pattern, "%s/*.txt", folder); /* sorted, although the folder is not */
    const char *one = pattern;
    assert_ok(ditto_dataset_from_text(&(ditto_files){ &one, 1, DITTO_FILES_GLOB }, &options, &d));
    expect_dataset(d, expected, used);
    const char *two[] = { paths[3], paths[3] }; /* a file may be in the list twice */
    assert_ok(ditto_dataset_from_text(&(ditto_files){ two, 2, 0 }, &options, &d));
    expect_dataset(d, BYTES("[3][][3][]"));
    snprintf(pattern, sizeof pattern, "%s/*.csv", folder);
    assert_status(ditto_dataset_from_text(&(ditto_files){ &one, 1, DITTO_FILES_GLOB }, &options, &d),
                  DITTO_ERR_NOT_FOUND);
    assert_message(pattern);
    empty_folder(folder);
    rmdir(folder);
}

static int shuffle_lines(ditto_dataset *d)
{
    struct lines l = { 0 };
    ditto_dataset *shuffled;
    REQUIRE(ditto_dataset_shuffle(d, NULL, &shuffled) == DITTO_OK);
    REQUIRE(ditto_dataset_destroy(d) == DITTO_OK);
    REQUIRE(ditto_dataset_reduce(shuffled, collect, &l, 0) == DITTO_OK);
    REQUIRE(l.rows == 3 * 99 + 2 * 50); /* heading, number, empty line; one file is empty */
    REQUIRE(ditto_dataset_destroy(shuffled) == DITTO_OK);
    free(l.text);
    return 0;
}

/* Reads files in a random order with few descriptors, from one dataset and from one dataset per file. */
static int shuffle_many(void *folder)
{
    char path[96];
    const char *one = path;
    ditto_dataset *d, *each[FILES];
    struct rlimit limit = { 80, 80 };
    uint32_t count = 0;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    snprintf(path, sizeof path, "%s/*.txt", (const char *)folder);
    REQUIRE(ditto_dataset_from_text(&(ditto_files){ &one, 1, DITTO_FILES_GLOB }, NULL, &d) == DITTO_OK);
    REQUIRE(shuffle_lines(d) == 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%03d.txt", (const char *)folder, i);
        if (i != 7)
            REQUIRE(ditto_dataset_from_text(&(ditto_files){ &one, 1, 0 }, NULL, &each[count++]) == DITTO_OK);
    }
    REQUIRE(ditto_dataset_concatenate(each, count, &d) == DITTO_OK);
    REQUIRE(shuffle_lines(d) == 0);
    for (uint32_t i = 0; i < count; i++)
        REQUIRE(ditto_dataset_destroy(each[i]) == DITTO_OK);
    return 0;
}

static void few_files_are_open_at_a_time(void **state)
{
    char folder[64];
    make_folder(folder);
    assert_int_equal(in_child(shuffle_many, folder, 60), 0);
    empty_folder(folder);
    rmdir(folder);
}

/* -- many threads and other processes -- */

enum { THREADS = 8, FILES_OF_THREAD = FILES / THREADS };

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

struct reading {
    pthread_t thread;
    const char *folder;

    /* The dataset that the thread reads. NULL means a dataset of its own, of FILES_OF_THREAD files from
     * number `first` on. */
    ditto_dataset *shared;
    int first;

    /* Reading ends when this is set. NULL means after 20 passes. */
    _Atomic int *stop;
    bool failed;
};

/* Makes the thread's own dataset. Returns NULL on failure. */
static ditto_dataset *own_files(const struct reading *r)
{
    char path[FILES_OF_THREAD][96];
    const char *names[FILES_OF_THREAD];
    ditto_dataset *d, *shuffled;
    for (int i = 0; i < FILES_OF_THREAD; i++) {
        snprintf(path[i], sizeof path[i], "%s/%03d.txt", r->folder, r->first + i);
        names[i] = path[i];
    }
    if (ditto_dataset_from_text(&(ditto_files){ names, FILES_OF_THREAD, 0 }, NULL, &d) != DITTO_OK ||
        ditto_dataset_shuffle(d, NULL, &shuffled) != DITTO_OK || ditto_dataset_destroy(d) != DITTO_OK)
        return NULL;
    return shuffled;
}

static void *read_on(void *argument)
{
    struct reading *r = argument;
    ditto_dataset *d = r->shared != NULL ? r->shared : own_files(r);
    for (int pass = 0; d != NULL && (r->stop != NULL ? atomic_load(r->stop) == 0 : pass < 20); pass++) {
        struct lines l = { 0 };
        r->failed |= ditto_dataset_reduce(d, collect, &l, (uint64_t)pass) != DITTO_OK || l.rows < 2;
        free(l.text);
    }
    r->failed |= d == NULL;
    if (r->shared == NULL)
        r->failed |= ditto_dataset_destroy(d) != DITTO_OK;
    return NULL;
}

static void start_reading(struct reading *r, const char *folder, ditto_dataset *shared, _Atomic int *stop)
{
    for (int i = 0; i < THREADS; i++) {
        r[i] = (struct reading){
            .folder = folder, .first = i * FILES_OF_THREAD, .shared = shared, .stop = stop
        };
        assert_int_equal(pthread_create(&r[i].thread, NULL, read_on, &r[i]), 0);
    }
}

static void end_reading(struct reading *r)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_join(r[i].thread, NULL);
        assert_false(r[i].failed);
    }
}

static void few_files_stay_open_when_many_threads_have_read(void **state)
{
    char folder[SCRATCH_NAME], pattern[80];
    const char *one = pattern;
    struct reading r[THREADS];
    struct lines l = { 0 };
    ditto_dataset *d, *shuffled;
    int before = count_descriptors();
    make_folder(folder);
    snprintf(pattern, sizeof pattern, "%s/*.txt", folder);
    assert_ok(ditto_dataset_from_text(&(ditto_files){ &one, 1, DITTO_FILES_GLOB }, NULL, &d));
    assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
    start_reading(r, folder, shuffled, NULL);
    end_reading(r);
    assert_true(count_descriptors() - before <= 64);
    start_reading(r, folder, NULL, NULL); /* one dataset per thread, beside the one that was read */
    end_reading(r);
    assert_ok(ditto_dataset_reduce(shuffled, collect, &l, 0));
    free(l.text);
    assert_true(count_descriptors() - before <= 64);
    assert_ok(ditto_dataset_destroy(shuffled));
    assert_ok(ditto_dataset_destroy(d));
    assert_int_equal(count_descriptors(), before);
    empty_folder(folder);
    rmdir(folder);
}

/* Runs in a child process, in which the parent's reading threads do not exist. */
static int read_in_child(void *argument)
{
    struct reading *r = argument;
    struct reading own = { .folder = r->folder };
    REQUIRE(ditto_dataset_destroy(r->shared) == DITTO_OK);
    return read_on(&own) != NULL || own.failed;
}

static void a_child_process_reads_files_of_its_own(void **state)
{
    char folder[64];
    struct reading r[THREADS], all = { 0 };
    _Atomic int stop = 0;
    if (SANITIZED)
        skip();
    make_folder(folder);
    all.folder = folder;
    ditto_dataset *d = own_files(&all);
    assert_non_null(d);
    start_reading(r, folder, d, &stop);
    for (int i = 0; i < test_trials(120); i++) {
        all.shared = d;
        assert_int_equal(in_child(read_in_child, &all, 60), 0);
    }
    atomic_store(&stop, 1);
    end_reading(r);
    assert_ok(ditto_dataset_destroy(d));
    empty_folder(folder);
    rmdir(folder);
}

static void files_that_are_not_regular_are_refused(void **state)
{
    char *name = temporary_file("a\n");
    const char *names[2] = { name, "/nowhere/x" };
    ditto_files files = { names, 2, 0 };
    ditto_dataset *d;
    assert_status(ditto_dataset_from_text(&files, NULL, &d), DITTO_ERR_NOT_FOUND);
    assert_message("/nowhere/x");
    names[1] = "/tmp";
    assert_status(ditto_dataset_from_text(&files, NULL, &d), DITTO_ERR_IO);
    names[1] = "";
    assert_status(ditto_dataset_from_text(&files, NULL, &d), DITTO_ERR_INVALID);
    files.flags = 2;
    assert_status(ditto_dataset_from_text(&files, NULL, &d), DITTO_ERR_INVALID);
    files = (ditto_files){ names, 0, 0 };
    assert_status(ditto_dataset_from_text(&files, NULL, &d), DITTO_ERR_INVALID);
    assert_status(ditto_dataset_from_text(NULL, NULL, &d), DITTO_ERR_INVALID);
    remove(name); /* a FIFO is refused and not waited for */
    assert_int_equal(mkfifo(name, 0600), 0);
    files.num_names = 1;
    assert_status(ditto_dataset_from_text(&files, NULL, &d), DITTO_ERR_IO);
    assert_message("not a regular file");
    forget_file(name);
}

static ditto_status stop_at_two(const ditto_tensor *row, void *state)
{
    return ++*(int *)state == 2 ? DITTO_END_OF_INPUT : DITTO_OK;
}
static ditto_status refuse_third(const ditto_tensor *row, void *state)
{
    return ++*(int *)state == 3 ? DITTO_ERR_USER : DITTO_OK;
}

static void a_function_that_fails_is_named_with_its_row_in_the_file(void **state)
{
    char *name = temporary_file("a\nb\nc\nd\n");
    ditto_dataset *d = text_of(name, LONGEST, 0);
    int rows = 0;
    assert_ok(ditto_dataset_reduce(d, stop_at_two, &rows, 0));
    assert_int_equal(rows, 2);
    rows = 0;
    assert_status(ditto_dataset_reduce(d, refuse_third, &rows, 0), DITTO_ERR_USER);
    assert_message(":3");
    assert_message(name);
    assert_ok(ditto_dataset_destroy(d));
    forget_file(name);
}

static ditto_status count_row(const ditto_tensor *row, void *state)
{
    ++*(int *)state;
    return DITTO_OK;
}

/* The file is cut at every position before its rows are chosen. Neither a part of a line is returned, nor a
 * line that is left. */
static void a_file_that_became_shorter_gives_no_row(void **state)
{
    static const char text[] = "11\n22\n33\n4444\n55\n";
    for (int left = 0; left < (int)sizeof text - 1; left++) {
        const char *path = temporary_file(text);
        ditto_dataset *d;
        int rows = 0;
        assert_ok(ditto_dataset_from_text(&(ditto_files){ .names = &path, .num_names = 1 }, NULL, &d));
        assert_int_equal(truncate(path, left), 0);
        assert_status(ditto_dataset_reduce(d, count_row, &rows, 0), DITTO_ERR_IO);
        assert_message("became shorter");
        assert_int_equal(rows, 0);
        assert_ok(ditto_dataset_destroy(d));
        remove(path);
        free((char *)(uintptr_t)path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_became_shorter_gives_no_row),
        cmocka_unit_test(lines_have_any_content_and_no_line_ends),
        cmocka_unit_test(files_without_a_row_are_refused),
        cmocka_unit_test(a_line_that_is_too_long_is_named),
        cmocka_unit_test(an_endless_line_does_not_use_memory),
        cmocka_unit_test(lines_may_cross_the_boundaries_of_reads),
        cmocka_unit_test(any_bytes_are_split_only_at_line_ends),
        cmocka_unit_test(files_are_read_one_after_the_other),
        cmocka_unit_test(few_files_are_open_at_a_time),
        cmocka_unit_test(few_files_stay_open_when_many_threads_have_read),
        cmocka_unit_test(a_child_process_reads_files_of_its_own),
        cmocka_unit_test(files_that_are_not_regular_are_refused),
        cmocka_unit_test(a_function_that_fails_is_named_with_its_row_in_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
