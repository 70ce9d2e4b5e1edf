/* tests/fuzz/fuzz_state.c - states of datasets in which numbers were replaced. Each source and each
 * transformation is in one of the datasets. A state is made after some rows, and holds further rows and the
 * position after them, as iterators and shared datasets save it. Whatever its numbers are, it is refused, or
 * rows can be read from it.
 *
 * The first byte of the input chooses the dataset, and the second one the number of rows before the state.
 * Then three bytes describe each replacement: which number, how, and an operand. */
#include "fuzz/fuzz.h"
#include "input/readers.h"

#include "base/numbers/checksum.h"
#include "base/types/bytes.h"
#include "input/dataset.h"

#include <sys/mman.h>

#ifdef DTI_HAVE_ZLIB
#define COMPRESSED 2
#else
#define COMPRESSED 0
#endif
enum { ROWS = 48, BYTES = 8, SAVED_ROWS = 3, READ_ROWS = 40, DATASETS = 16 + COMPRESSED };

const char *const fuzz_seeds[] = { "00", "11", "22", "33", "44", "55", "66", "77", "88", "99",
                                   "::", ";;", "<<", "==", ">>", "??", "@@", "AA", NULL };
const char *const fuzz_words[] = {
    "000", "110", "211", "31?", "421", "531", "641", "752", "861", "97?", NULL
};
unsigned long fuzz_accepted;

/* -- datasets -- */

/* Returns the path of a file in memory. */
static const char *file_with(const void *bytes, size_t length)
{
    static char path[8][48];
    static int files;
    int file = memfd_create("rows", MFD_CLOEXEC);
    if (file < 0 || write(file, bytes, length) != (ssize_t)length)
        abort();
    snprintf(path[files], sizeof path[files], "/proc/self/fd/%d", file);
    return path[files++];
}

static const char *tfrecord_file(void)
{
    static struct made made;
    for (int i = 0; i < ROWS; i++) {
        add_number(&made, BYTES, 8);
        add_number(&made, dti_crc32c_masked(dti_crc32c(made.bytes + made.length - 8, 8)), 4);
        add_number(&made, (uint64_t)i, BYTES);
        add_number(&made, dti_crc32c_masked(dti_crc32c(made.bytes + made.length - BYTES, BYTES)), 4);
    }
    return file_with(made.bytes, made.length);
}

static const char *npy_file(void)
{
    static const char header[] = "\x93NUMPY\x01\x00\x46\x00{'descr': '<i8', 'fortran_order': False, "
                                 "'shape': (48,), }           \n";
    int64_t numbers[ROWS] = { 0 };
    char bytes[sizeof header - 1 + sizeof numbers];
    memcpy(bytes, header, sizeof header - 1);
    memcpy(bytes + sizeof header - 1, numbers, sizeof numbers);
    return file_with(bytes, sizeof bytes);
}

static ditto_status double_row(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random,
                               void *user)
{
    (void)random, (void)user;
    memcpy(out->data, in->data, ditto_tensor_bytes(in));
    return DITTO_OK;
}

static ditto_status keep_some(const ditto_tensor *row, void *user, int *keep)
{
    (void)user;
    *keep = *(const char *)row->data % 3 != 0;
    return DITTO_OK;
}

/* A generator that counts. */
static ditto_status open_count(void *user, uint64_t pass, void **position)
{
    (void)user, (void)pass;
    *position = calloc(1, sizeof(int64_t));
    return *position != NULL ? DITTO_OK : DITTO_ERR_NO_MEMORY;
}
static ditto_status next_count(void *user, void *position, const ditto_tensor *row)
{
    int64_t *count = position;
    (void)user;
    if (*count >= ROWS)
        return DITTO_END_OF_INPUT;
    *(int64_t *)row->data = (*count)++;
    return DITTO_OK;
}
static void close_count(void *user, void *position)
{
    (void)user;
    free(position);
}
static ditto_status save_count(void *user, void *position, void *bytes, size_t capacity, size_t *length)
{
    (void)user;
    *length = sizeof(int64_t);
    if (capacity >= sizeof(int64_t))
        memcpy(bytes, position, sizeof(int64_t));
    return DITTO_OK;
}
static ditto_status restore_count(void *user, void *position, const void *bytes, size_t length)
{
    (void)user;
    if (length != sizeof(int64_t))
        return DITTO_ERR_CORRUPT;
    memcpy(position, bytes, sizeof(int64_t));
    return DITTO_OK;
}

static ditto_dataset *dataset[DATASETS];

static void make_sources(void)
{
    static char text[ROWS * BYTES];
    static int64_t array[ROWS];
    ditto_tensor number = { .dtype = DITTO_I64 }, row = { .dtype = DITTO_U8, .rank = 1, .shape = { BYTES } },
                 numbers = { .data = array, .dtype = DITTO_I64, .rank = 1, .shape = { ROWS } };
    ditto_generator generator = DITTO_GENERATOR_INIT;
    ditto_csv_component column = { .dtype = DITTO_I32, .num_columns = 1 };
    generator.open = open_count, generator.next = next_count, generator.close = close_count;
    generator.save = save_count, generator.restore = restore_count;
    memset(text, '1', sizeof text);
    for (size_t i = BYTES - 1; i < sizeof text; i += BYTES)
        text[i] = '\n';
    const char *lines = file_with(text, sizeof text), *records = tfrecord_file(), *npy = npy_file();
    ditto_files text_files = { .names = &lines, .num_names = 1 },
                record_files = { .names = &records, .num_names = 1 };
    assert_ok(ditto_dataset_from_range(0, ROWS, 1, &dataset[0]));
    assert_ok(ditto_dataset_from_arrays(&numbers, 1, &dataset[1]));
    assert_ok(ditto_dataset_from_generator(&generator, &number, 1, &dataset[2]));
    assert_ok(ditto_dataset_from_text(&text_files, NULL, &dataset[3]));
    assert_ok(ditto_dataset_from_csv(&text_files, &column, 1, NULL, &dataset[4]));
    assert_ok(ditto_dataset_from_fixed(&text_files, &row, 1, NULL, &dataset[5]));
    assert_ok(ditto_dataset_from_tfrecord(&record_files, &OPTIONS(tfrecord, .max_bytes = BYTES, .trust = 1),
                                          &dataset[6]));
    assert_ok(ditto_dataset_from_npy(&npy, 1, &dataset[7]));
#ifdef DTI_HAVE_ZLIB
    static struct made packed;
    add_member(&packed, text, sizeof text);
    const char *member = file_with(packed.bytes, packed.length);
    ditto_files packed_files = { .names = &member, .num_names = 1 };
    assert_ok(ditto_dataset_from_text(&packed_files, &OPTIONS(text, .compression = DITTO_COMPRESSION_GZIP),
                                      &dataset[16]));
    assert_ok(ditto_dataset_from_csv(&packed_files, &column, 1,
                                     &OPTIONS(csv, .compression = DITTO_COMPRESSION_GZIP), &dataset[17]));
#endif
}

static void make_transformations(void)
{
    ditto_dataset *made;
    assert_ok(ditto_dataset_map(dataset[5], double_row, NULL, NULL, &dataset[8]));
    assert_ok(ditto_dataset_filter(dataset[6], keep_some, NULL, &dataset[9]));
    assert_ok(ditto_dataset_shuffle(dataset[3], &OPTIONS(shuffle, .buffer_rows = 7), &dataset[10]));
    assert_ok(ditto_dataset_repeat(dataset[0], DITTO_REPEAT_FOREVER, &made));
    assert_ok(ditto_dataset_skip(made, 5, &dataset[11]));
    assert_ok(ditto_dataset_destroy(made));
    assert_ok(ditto_dataset_repeat(dataset[7], 3, &made));
    assert_ok(ditto_dataset_take(made, 100, &dataset[12]));
    assert_ok(ditto_dataset_destroy(made));
    assert_ok(ditto_dataset_shard(dataset[2], 3, 1, &dataset[13]));
    assert_ok(ditto_dataset_interleave((ditto_dataset *[]){ dataset[5], dataset[8] }, 2, 2, 3, &made));
    assert_ok(ditto_dataset_batch(made, 4, DITTO_BATCH_DROP_REMAINDER, &dataset[14]));
    assert_ok(ditto_dataset_destroy(made));
    assert_ok(ditto_dataset_zip((ditto_dataset *[]){ dataset[10], dataset[13] }, 2, &dataset[15]));
}

/* -- one state -- */

/* Reads up to `count` rows, and their values into memory of the exact size. Returns how many there are. */
static size_t read_rows(const ditto_dataset *d, struct dti_cursor *cursor, struct dti_rows rows, size_t count)
{
    struct dti_reader reader = { 0 };
    void *at[DITTO_MAX_COMPONENTS];
    size_t got = 0;
    for (uint32_t k = 0; k < d->components; k++)
        at[k] = malloc(d->component[k].bytes);
    for (size_t i = 0; i < count; i++) {
        size_t one = 1;
        struct dti_rows row = cursor != NULL ? rows : dti_rows_from(rows, i);
        if (cursor != NULL && dti_cursor_next(cursor, row, 1, &one) < 0)
            break;
        if (one == 0)
            break;
        got += dti_dataset_fill(d, &reader, row, 1, at) == DITTO_OK;
        if (cursor != NULL)
            dti_rows_drop(d, row, 1);
    }
    for (uint32_t k = 0; k < d->components; k++)
        free(at[k]);
    dti_reader_free(&reader);
    return got;
}

/* Appends the state of the dataset after `before` rows: the rows that come next, and the position after
 * them. */
static void save(const ditto_dataset *d, size_t before, struct dti_rows rows, struct dti_bytes *to)
{
    struct dti_cursor *cursor;
    size_t got = 0, one = 1;
    assert_ok(dti_cursor_open(d, &(struct dti_pass){ 0 }, &cursor));
    for (; before > 0 && one > 0; before--) {
        assert_true(dti_cursor_next(cursor, rows, 1, &one) >= 0);
        dti_rows_drop(d, rows, one);
    }
    assert_true(dti_cursor_next(cursor, rows, SAVED_ROWS, &got) >= 0);
    assert_ok(dti_rows_save(d, rows, got, to));
    dti_rows_drop(d, rows, got);
    assert_ok(dti_cursor_save(cursor, to));
    dti_cursor_close(cursor);
}

static uint64_t changed(uint64_t number, uint8_t how, uint8_t operand)
{
    switch (how % 6) {
    case 0:
        return operand;
    case 1:
        return UINT64_C(1) << operand % 64;
    case 2:
        return UINT64_MAX - operand;
    case 3:
        return number + operand;
    case 4:
        return number - operand;
    default:
        return number ^ UINT64_C(1) << operand % 64;
    }
}

/* Copies a state, with the replacements that the input describes. Values of rows, which are no numbers, are
 * copied as if they were. */
static struct dti_bytes forge(const struct dti_bytes *state, const uint8_t *data, size_t size)
{
    struct dti_bytes_reader from = { state->data, state->data + state->length, false };
    struct dti_bytes to = { 0 };
    for (uint8_t i = 0; from.at < from.end; i++) {
        const char *at = from.at;
        uint64_t number = dti_bytes_get_u64(&from);
        if (from.failed) {
            dti_bytes_put(&to, at, (size_t)(from.end - at));
            return to;
        }
        for (size_t k = 0; k + 2 < size; k += 3)
            if (data[k] % 32 == i)
                number = changed(number, data[k + 1], data[k + 2]);
        dti_bytes_put_u64(&to, number);
    }
    return to;
}

/* Loads the rows and the position, and reads on. */
static void restore(const ditto_dataset *d, struct dti_rows rows, const struct dti_bytes *state)
{
    struct dti_bytes_reader from = { state->data, state->data + state->length, false };
    struct dti_cursor *cursor;
    size_t count = dti_rows_load_count(&from, SAVED_ROWS), loaded;
    ditto_status status = dti_rows_load(d, rows, count, &loaded, &from);
    if (status == DITTO_OK)
        read_rows(d, NULL, rows, loaded);
    dti_rows_drop(d, rows, loaded);
    assert_ok(dti_cursor_open(d, &(struct dti_pass){ 0 }, &cursor));
    if (status == DITTO_OK && dti_cursor_restore(cursor, &from) == DITTO_OK && !from.failed) {
        fuzz_accepted++;
        read_rows(d, cursor, rows, READ_ROWS);
    }
    dti_cursor_close(cursor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dti_bytes state = { 0 };
    if (dataset[0] == NULL) {
        make_sources();
        make_transformations();
    }
    if (size < 2)
        return 0;
    const ditto_dataset *d = dataset[data[0] % DATASETS];
    struct dti_rows rows = { calloc(SAVED_ROWS, d->row_words * sizeof *rows.word), d->row_words };
    save(d, data[1] % 8, rows, &state);
    struct dti_bytes forged = forge(&state, data + 2, size - 2);
    restore(d, rows, &forged);
    dti_bytes_free(&forged);
    dti_bytes_free(&state);
    free(rows.word);
    return 0;
}
