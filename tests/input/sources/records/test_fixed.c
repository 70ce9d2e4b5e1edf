/* tests/input/sources/records/test_fixed.c - tests the claims of source.h about files of records of equal
 * length. */
#include "input/readers.h"

#include "input/sources/files/file_row.h"

static struct made made;

static ditto_status open_fixed(const char *path, const ditto_tensor *row, uint32_t components,
                               uint64_t header, uint64_t footer, int big_endian, ditto_dataset **out)
{
    return ditto_dataset_from_fixed(
        &(ditto_files){ .names = &path, .num_names = 1 }, row, components,
        &OPTIONS(fixed, .header_bytes = header, .footer_bytes = footer, .big_endian = big_endian), out);
}

static const ditto_tensor two_u16[1] = { { .dtype = DITTO_U16, .rank = 1, .shape = { 2 } } };
static const ditto_tensor image_and_label[2] = { { .dtype = DITTO_U8, .rank = 2, .shape = { 3, 2 } },
                                                 { .dtype = DITTO_I32 } };

/* -- values -- */

static void components_lie_one_after_the_other(void **state)
{
    ditto_dataset *d;
    made.length = 0;
    add(&made, "HEADER", 6);
    for (unsigned i = 0; i < 100; i++) {
        for (unsigned k = 0; k < 6; k++)
            add_number(&made, i + k, 1);
        add_number(&made, 0x01020300u + i, 4);
    }
    add(&made, "END", 3);
    const char *path = write_bytes("pairs", made.bytes, made.length);
    for (int big = 0; big < 2; big++) {
        assert_ok(open_fixed(path, image_and_label, 2, 6, 3, big, &d));
        struct taken t = take_all(d);
        assert_int_equal(t.rows, 100);
        for (uint32_t i = 0; i < 100; i++) {
            uint32_t label = big ? __builtin_bswap32(0x01020300u + i) : 0x01020300u + i;
            for (unsigned k = 0; k < 6; k++)
                assert_int_equal(t.bytes[i * 10 + k], i + k);
            assert_memory_equal(t.bytes + i * 10 + 6, &label, 4);
        }
        free(t.bytes);
        restarts_anywhere(d);
        assert_ok(ditto_dataset_destroy(d));
    }
}

/* The file has the bytes 00 01 02 ..., and a component has 16 bytes. Checks the bytes of the elements in
 * memory. */
static void elements_of_every_type_are_byte_swapped(void **state)
{
    static const struct {
        ditto_dtype dtype;
        size_t width; /* bytes of the unit that is swapped */
    } types[] = { { DITTO_F16, 2 },  { DITTO_BF16, 2 }, { DITTO_F32, 4 }, { DITTO_F64, 8 }, { DITTO_C64, 4 },
                  { DITTO_C128, 8 }, { DITTO_I8, 1 },   { DITTO_I16, 2 }, { DITTO_I32, 4 }, { DITTO_I64, 8 },
                  { DITTO_U8, 1 },   { DITTO_U16, 2 },  { DITTO_U32, 4 }, { DITTO_U64, 8 } };
    made.length = 0;
    for (unsigned i = 0; i < 64; i++)
        add_number(&made, i, 1);
    const char *path = write_bytes("types", made.bytes, made.length);
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        for (int big = 0; big < 2; big++)
            /* One component is read directly to its destination, two are copied there. */
            for (uint32_t components = 1; components <= 2; components++) {
                size_t elements = 16 / ditto_dtype_bytes(types[k].dtype);
                ditto_tensor row[2] = { { .dtype = types[k].dtype, .rank = 1, .shape = { elements } },
                                        { .dtype = types[k].dtype, .rank = 1, .shape = { elements } } };
                ditto_dataset *d;
                assert_ok(open_fixed(path, row, components, 0, 0, big, &d));
                struct taken t = take_all(d);
                assert_int_equal(t.length, 64);
                for (size_t i = 0; i < 64; i++) {
                    size_t in = i % types[k].width;
                    assert_int_equal(t.bytes[i], big ? i - in + (types[k].width - 1 - in) : i);
                }
                free(t.bytes);
                assert_ok(ditto_dataset_destroy(d));
            }
}

static void a_bool_is_0_or_1(void **state)
{
    ditto_tensor row = { .dtype = DITTO_BOOL };
    ditto_dataset *d;
    assert_ok(open_fixed(write_bytes("bools", "\0\1\2\xff", 4), &row, 1, 0, 0, 0, &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 4);
    assert_memory_equal(t.bytes, "\0\1\1\1", 4);
    free(t.bytes);
    assert_ok(ditto_dataset_destroy(d));
}

static void long_records_are_read_component_by_component(void **state)
{
    ditto_tensor row[2] = { { .dtype = DITTO_U8, .rank = 1, .shape = { 300001 } }, { .dtype = DITTO_U32 } };
    uint64_t random = test_seed(1);
    ditto_dataset *d, *shuffled;
    made.length = 0;
    for (uint32_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 300001; k++)
            made.bytes[made.length++] = (unsigned char)test_random(&random);
        add_number(&made, i, 4);
    }
    const char *path = write_bytes("long", made.bytes, made.length);
    assert_ok(open_fixed(path, row, 2, 0, 0, 0, &d));
    struct taken t = take_all(d);
    assert_int_equal(t.length, made.length);
    assert_memory_equal(t.bytes, made.bytes, made.length);
    free(t.bytes);
    restarts_anywhere(d);
    assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
    t = take_all(shuffled);
    for (size_t i = 0; i < 5; i++) {
        uint32_t number;
        memcpy(&number, t.bytes + i * 300005 + 300001, 4);
        assert_memory_equal(t.bytes + i * 300005, made.bytes + number * 300005, 300005);
    }
    free(t.bytes);
    assert_ok(ditto_dataset_destroy(shuffled));
    assert_ok(ditto_dataset_destroy(d));
}

static void files_follow_one_another(void **state)
{
    const char *names[4] = { write_bytes("0-even", "Hab01cd23F", 10), write_bytes("1-odd", "HF", 2),
                             write_bytes("2-even", "HF", 2), write_bytes("3-odd", "Hef45gh67F", 10) };
    ditto_fixed_options options = DITTO_FIXED_OPTIONS_INIT;
    ditto_dataset *d, *shuffled;
    options.header_bytes = options.footer_bytes = 1;
    assert_ok(ditto_dataset_from_fixed(&(ditto_files){ names, 4, 0 }, two_u16, 1, &options, &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 4);
    assert_memory_equal(t.bytes, "ab01cd23ef45gh67", 16);
    free(t.bytes);
    restarts_anywhere(d);
    shards_take_turns(d);
    ditto_shuffle_options mixed = DITTO_SHUFFLE_OPTIONS_INIT;
    /* Some orders have rows that are neighbours in a file, or that only seem to be because they are in two
     * files. */
    for (mixed.seed = 0; mixed.seed < 20; mixed.seed++) {
        assert_ok(ditto_dataset_shuffle(d, &mixed, &shuffled));
        t = take_all(shuffled);
        assert_int_equal(t.rows, 4);
        unsigned seen = 0;
        for (size_t row = 0; row < 4; row++)
            for (unsigned i = 0; i < 4; i++)
                seen += memcmp(t.bytes + 4 * row, &"ab01cd23ef45gh67"[4 * i], 4) == 0 ? 1u << 4 * i : 0;
        assert_int_equal(seen, 0x1111);
        free(t.bytes);
        assert_ok(ditto_dataset_destroy(shuffled));
    }
    assert_ok(ditto_dataset_destroy(d));
    assert_status(ditto_dataset_from_fixed(&(ditto_files){ &names[1], 2, 0 }, two_u16, 1, &options, &d),
                  DITTO_ERR_INVALID);
    assert_message("1-odd and all other files: there are no records");
}

/* -- records that overlap, or have bytes between them -- */

static ditto_status open_at_stride(const char *const *paths, uint32_t files, const ditto_tensor *row,
                                   uint32_t components, uint64_t around, uint64_t stride, ditto_dataset **out)
{
    ditto_fixed_options options = DITTO_FIXED_OPTIONS_INIT;
    options.header_bytes = options.footer_bytes = around;
    options.stride_bytes = stride;
    return ditto_dataset_from_fixed(&(ditto_files){ paths, files, 0 }, row, components, &options, out);
}

/* Writes a header and a footer of `around` bytes, and between them `tokens` numbers of 16 bits from
 * `first` on. */
static const char *write_tokens(const char *name, unsigned first, unsigned tokens, size_t around)
{
    made.length = 0;
    add(&made, "HHHH", around);
    for (unsigned i = 0; i < tokens; i++)
        add_number(&made, first + i, 2);
    add(&made, "FFFF", around);
    return write_bytes(name, made.bytes, made.length);
}

/* Checks that row `row` has the `count` numbers from first + row * stride on. */
static void assert_windows(const struct taken *t, size_t row, size_t count, size_t first, size_t stride)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t found;
        memcpy(&found, t->bytes + 2 * (row * count + i), 2);
        assert_int_equal(found, first + stride * row + i);
    }
}

/* A row has T tokens and the one behind them, and the stride is T. Language models are trained on such
 * rows. */
static void rows_of_a_language_model_overlap_by_one_token(void **state)
{
    for (size_t length = 1; length <= 6; length++)
        for (unsigned tokens = 0; tokens < 40; tokens++) {
            const char *path = write_tokens("tokens", 0, tokens, 3);
            ditto_tensor row = { .dtype = DITTO_U16, .rank = 1, .shape = { length + 1 } };
            /* Each row needs the token behind it. */
            size_t rows = tokens / length - (tokens % length == 0 && tokens > 0);
            ditto_dataset *d;
            ditto_status status = open_at_stride(&path, 1, &row, 1, 3, 2 * length, &d);
            if (rows == 0) {
                assert_int_equal(status, DITTO_ERR_INVALID);
                assert_message("tokens: there are no records");
                continue;
            }
            assert_int_equal(status, DITTO_OK);
            struct taken t = take_all(d);
            assert_int_equal(t.rows, rows);
            for (size_t r = 0; r < rows; r++)
                assert_windows(&t, r, length + 1, 0, length);
            free(t.bytes);
            restarts_anywhere(d);
            assert_ok(ditto_dataset_destroy(d));
        }
}

/* Strides are shorter and longer than the record. Records are read one by one, together, and in any order. */
static void records_begin_at_every_stride(void **state)
{
    enum { TOKENS = 3000 };
    const char *path = write_tokens("strides", 0, TOKENS, 1);
    static const size_t strides[] = { 1, 2, 7, 8, 9, 20, 400, 2990, 5000 };
    for (size_t k = 0; k < sizeof strides / sizeof strides[0]; k++)
        for (int mixed = 0; mixed < 2; mixed++) {
            ditto_tensor row = { .dtype = DITTO_U16, .rank = 1, .shape = { 8 } };
            ditto_dataset *d, *shuffled;
            if (strides[k] == 8)
                row.shape[0] = 9;
            size_t length = row.shape[0], rows = (TOKENS - length) / strides[k] + 1;
            assert_ok(open_at_stride(&path, 1, &row, 1, 1, 2 * strides[k], &d));
            assert_ok(ditto_dataset_shuffle(d, &OPTIONS(shuffle, .buffer_rows = rows), &shuffled));
            struct taken t = take_all(mixed ? shuffled : d);
            unsigned char *seen = calloc(1, rows);
            assert_int_equal(t.rows, rows);
            for (size_t r = 0; r < rows; r++) {
                uint16_t first;
                memcpy(&first, t.bytes + 2 * length * r, 2);
                assert_int_equal(first % strides[k], 0);
                assert_true(mixed || first == r * strides[k]);
                assert_windows(&(struct taken){ .bytes = t.bytes + 2 * length * r }, 0, length, first, 0);
                assert_int_equal(seen[first / strides[k]]++, 0);
            }
            free(seen);
            free(t.bytes);
            assert_ok(ditto_dataset_destroy(shuffled));
            assert_ok(ditto_dataset_destroy(d));
        }
}

static void components_of_records_that_overlap_are_right(void **state)
{
    ditto_tensor row[3] = { { .dtype = DITTO_U8, .rank = 1, .shape = { 3 } },
                            { .dtype = DITTO_U32 },
                            { .dtype = DITTO_U8, .rank = 1, .shape = { 600000 } } };
    uint64_t random = test_seed(5);
    made.length = 0;
    for (size_t i = 0; i < 1000000; i++)
        add_number(&made, test_random(&random), 1);
    const char *path = write_bytes("mixed", made.bytes, made.length);
    /* With 2 components records are short. At the first stride they overlap, and at the others they have
     * bytes between them. With 3 components they are long and overlap at every stride, and they are read
     * component by component. The first stride is not tried then, because the rows would have 80 GB. */
    static const size_t strides[] = { 3, 2991, 15952, 80757, 404782 };
    for (uint32_t components = 2; components <= 3; components++)
        for (size_t k = components - 2; k < sizeof strides / sizeof strides[0]; k++) {
            size_t bytes = components == 2 ? 7 : 600007, rows = (1000000 - bytes) / strides[k] + 1;
            ditto_dataset *d;
            assert_ok(open_at_stride(&path, 1, row, components, 0, strides[k], &d));
            struct taken t = take_all(d);
            assert_int_equal(t.rows, rows);
            for (size_t r = 0; r < rows; r++)
                assert_memory_equal(t.bytes + r * bytes, made.bytes + r * strides[k], bytes);
            free(t.bytes);
            assert_ok(ditto_dataset_destroy(d));
        }
    ditto_tensor one = { .dtype = DITTO_U8, .rank = 1, .shape = { 400000 } };
    ditto_dataset *d;
    assert_ok(open_at_stride(&path, 1, &one, 1, 0, 150000, &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 5);
    for (size_t r = 0; r < 5; r++)
        assert_memory_equal(t.bytes + r * 400000, made.bytes + r * 150000, 400000);
    free(t.bytes);
    assert_ok(ditto_dataset_destroy(d));
}

static void no_record_crosses_from_one_file_to_the_next(void **state)
{
    ditto_tensor row = { .dtype = DITTO_U16, .rank = 1, .shape = { 4 } };
    const char *names[4];
    ditto_dataset *d;
    names[0] = write_tokens("0-even", 0, 10, 0);  /* 0 - 3, 3 - 6, 6 - 9 */
    names[1] = write_tokens("1-odd", 100, 3, 0);  /* too short for a record */
    names[2] = write_tokens("2-even", 200, 9, 0); /* 200 - 203, 203 - 206; two tokens are left */
    names[3] = write_tokens("3-odd", 300, 4, 0);
    assert_ok(open_at_stride(names, 4, &row, 1, 0, 6, &d));
    struct taken t = take_all(d);
    static const uint16_t first[] = { 0, 3, 6, 200, 203, 300 };
    assert_int_equal(t.rows, 6);
    for (size_t r = 0; r < 6; r++)
        assert_windows(&(struct taken){ .bytes = t.bytes + 8 * r }, 0, 4, first[r], 0);
    free(t.bytes);
    restarts_anywhere(d);
    shards_take_turns(d);
    assert_ok(ditto_dataset_destroy(d));
}

static void a_stride_of_one_record_equals_no_stride(void **state)
{
    const char *path = write_bytes("even", "0123456789abcdef", 16),
               *odd = write_bytes("rest", "0123456789", 10);
    ditto_dataset *d[3];
    uint64_t fingerprint[3];
    for (uint64_t i = 0; i < 3; i++) {
        /* The stride is not set, half a record, and one record. */
        assert_ok(open_at_stride(&path, 1, two_u16, 1, 0, 4 * i / 2, &d[i]));
        assert_ok(dti_dataset_fingerprint(d[i], &fingerprint[i]));
        assert_ok(ditto_dataset_destroy(d[i]));
    }
    assert_true(fingerprint[0] == fingerprint[2] && fingerprint[0] != fingerprint[1]);
    assert_status(open_at_stride(&odd, 1, two_u16, 1, 0, 4, &d[0]), DITTO_ERR_CORRUPT);
    assert_message(
        "rest: from offset 0 to 10 there are 2 records of 4 bytes, and 2 bytes more from offset 8 on");
    assert_ok(open_at_stride(&odd, 1, two_u16, 1, 0, 6, &d[0]));
    assert_ok(ditto_dataset_destroy(d[0]));
    assert_ok(open_at_stride(&odd, 1, two_u16, 1, 0, UINT64_MAX, &d[0])); /* one record */
    assert_ok(ditto_dataset_destroy(d[0]));
}

static void records_that_overlap_by_a_part_of_an_element_are_refused(void **state)
{
    const char *path = write_bytes("ok", "0123456789abcdef", 16);
    ditto_tensor pair[2] = { two_u16[0], two_u16[0] };
    ditto_dataset *d;
    for (uint32_t components = 1; components <= 2; components++) {
        assert_status(open_at_stride(&path, 1, pair, components, 0, 3, &d), DITTO_ERR_INVALID);
        assert_message("stride_bytes is 3, but elements have 2 bytes");
    }
    assert_ok(open_at_stride(&path, 1, two_u16, 1, 0, 5, &d)); /* a byte between the records */
    assert_ok(ditto_dataset_destroy(d));
    pair[1].dtype = DITTO_U8; /* there is no check if elements have different sizes */
    assert_ok(open_at_stride(&path, 1, pair, 2, 0, 3, &d));
    assert_ok(ditto_dataset_destroy(d));
}

/* -- errors -- */

static void a_file_must_be_a_whole_number_of_records(void **state)
{
    ditto_dataset *d;
    made.length = 0;
    for (unsigned i = 0; i < 40; i++)
        add_number(&made, i, 1);
    for (size_t length = 0; length <= 40; length++) {
        const char *path = write_bytes("cut", made.bytes, length);
        char message[96];
        ditto_status status = open_fixed(path, two_u16, 1, 3, 5, 0, &d);
        if (length < 8) {
            assert_int_equal(status, DITTO_ERR_CORRUPT);
            snprintf(message, sizeof message,
                     "cut ends at offset %zu: shorter than its header of 3 and footer of 5 bytes", length);
        } else if (length == 8) {
            assert_int_equal(status, DITTO_ERR_INVALID);
            snprintf(message, sizeof message, "cut: there are no records");
        } else if ((length - 8) % 4 != 0) {
            assert_int_equal(status, DITTO_ERR_CORRUPT);
            snprintf(message, sizeof message,
                     "cut: from offset 3 to %zu there are %zu records of 4 bytes, and %zu bytes more from "
                     "offset %zu on",
                     length - 5, (length - 8) / 4, (length - 8) % 4, 3 + (length - 8) / 4 * 4);
        } else {
            assert_int_equal(status, DITTO_OK);
            struct taken t = take_all(d);
            assert_int_equal(t.length, length - 8);
            assert_memory_equal(t.bytes, made.bytes + 3, length - 8);
            free(t.bytes);
            assert_ok(ditto_dataset_destroy(d));
            continue;
        }
        assert_message(message);
    }
}

static void wrong_arguments_and_files_are_refused(void **state)
{
    const char *path = write_bytes("ok", "12345678", 8);
    ditto_tensor empty = { .dtype = DITTO_U8, .rank = 2, .shape = { 5, 0 } }, unknown = { .rank = 0 };
    ditto_tensor huge[2] = { { .dtype = DITTO_U8, .rank = 1, .shape = { PTRDIFF_MAX } },
                             { .dtype = DITTO_U8, .rank = 1, .shape = { PTRDIFF_MAX } } };
    ditto_dataset *d;
    assert_status(open_fixed(path, &empty, 1, 0, 0, 0, &d), DITTO_ERR_INVALID);
    assert_message("0 bytes");
    assert_status(open_fixed(path, &unknown, 1, 0, 0, 0, &d), DITTO_ERR_INVALID);
    assert_status(open_fixed(path, two_u16, 0, 0, 0, 0, &d), DITTO_ERR_INVALID);
    /* The size of a record fits size_t, but the file is shorter. */
    assert_status(open_fixed(path, huge, 2, 0, 0, 0, &d), DITTO_ERR_CORRUPT);
    assert_message("ok: from offset 0 to 8 there are 0 records");
    assert_status(open_fixed(path, two_u16, 1, UINT64_MAX, 0, 0, &d), DITTO_ERR_CORRUPT);
    assert_status(open_fixed(path, two_u16, 1, UINT64_MAX, UINT64_MAX, 0, &d), DITTO_ERR_CORRUPT);
    /* The sum of header and footer overflows to 0. */
    assert_status(open_fixed(path, two_u16, 1, 4, UINT64_MAX - 3, 0, &d), DITTO_ERR_CORRUPT);
    assert_message("ok ends at offset 8");
    assert_status(open_fixed(own_path("absent"), two_u16, 1, 0, 0, 0, &d), DITTO_ERR_NOT_FOUND);
    assert_status(open_fixed(own_folder, two_u16, 1, 0, 0, 0, &d), DITTO_ERR_IO);
    assert_int_equal(mkfifo(own_path("fifo"), 0600), 0);
    assert_status(open_fixed(own_path("fifo"), two_u16, 1, 0, 0, 0, &d), DITTO_ERR_IO);
    assert_message("fifo");
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
    ditto_tensor wide = { .dtype = DITTO_U8, .rank = 1, .shape = { 1000 } };
    ditto_tensor pair[2] = { { .dtype = DITTO_U8, .rank = 1, .shape = { 600 } },
                             { .dtype = DITTO_U8, .rank = 1, .shape = { 400 } } };
    for (int kind = 0; kind < 4; kind++) {
        ditto_dataset *d, *shuffled;
        const char *path = write_bytes("shrinks", made.bytes, 1000000);
        assert_ok(open_fixed(path, kind & 1 ? pair : &wide, kind & 1 ? 2 : 1, 0, 0, 0, &d));
        assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
        struct taken t = nothing_taken(d);
        t.shorten = path;
        assert_status(ditto_dataset_reduce(kind & 2 ? shuffled : d, take_row, &t, 0), DITTO_ERR_IO);
        assert_message("shrinks: record ");
        assert_message("became shorter");
        assert_true(t.rows > 0 && t.rows < 1000);
        free(t.bytes);
        assert_ok(ditto_dataset_destroy(shuffled));
        assert_ok(ditto_dataset_destroy(d));
    }
}

/* A saved state may come from another program or be damaged. Only rows of the dataset are read from it. */
static void rows_that_the_dataset_does_not_have_are_an_error(void **state)
{
    const char *path = write_bytes("places", made.bytes, 2000000);
    static const struct {
        uint32_t components;
        size_t bytes; /* of each component */
        uint64_t stride;
    } kinds[] = { { 1, 10, 0 }, { 1, 400000, 0 }, { 1, 10, 5 }, { 2, 10, 0 }, { 2, 200000, 0 } };
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        ditto_tensor one = { .dtype = DITTO_U8, .rank = 1, .shape = { kinds[k].bytes } };
        ditto_dataset *d;
        uint64_t row_bytes = kinds[k].components * kinds[k].bytes, stride = kinds[k].stride,
                 read_bytes = row_bytes < 256 << 10 ? row_bytes : 0; /* longer rows are not read as a whole */
        stride = stride != 0 ? stride : row_bytes;
        const uint64_t rows[][DTI_FILE_ROW_WORDS] = {
            { stride, read_bytes, 2 },                     /* this row exists */
            { 0, 1ull << 32 | read_bytes, 1 },             /* in another file */
            { UINT64_MAX - 20, read_bytes, 1 },            /* at an offset that no file has */
            { stride, read_bytes + 1, 2 },                 /* too long */
            { stride, read_bytes - 1, 2 },                 /* too short */
            { stride + 1, read_bytes, 2 },                 /* between two records */
            { 2000000, read_bytes, 2000000 / stride + 1 }, /* after the last record */
        };
        assert_ok(open_at_stride(&path, 1, (ditto_tensor[]){ one, one }, kinds[k].components, 0,
                                 kinds[k].stride, &d));
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct dti_bytes bytes = { 0 };
            uint64_t loaded[DTI_FILE_ROW_WORDS];
            assert_ok(dti_row_save(d, rows[i], &bytes));
            struct dti_bytes_reader from = { bytes.data, bytes.data + bytes.length, false };
            assert_status(dti_row_load(d, loaded, &from), i == 0 ? DITTO_OK : DITTO_ERR_CORRUPT);
            if (i > 0)
                assert_message("the iterator's state is damaged");
            dti_bytes_free(&bytes);
        }
        assert_ok(ditto_dataset_destroy(d));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_lie_one_after_the_other),
        cmocka_unit_test(elements_of_every_type_are_byte_swapped),
        cmocka_unit_test(a_bool_is_0_or_1),
        cmocka_unit_test(long_records_are_read_component_by_component),
        cmocka_unit_test(files_follow_one_another),
        cmocka_unit_test(rows_of_a_language_model_overlap_by_one_token),
        cmocka_unit_test(records_begin_at_every_stride),
        cmocka_unit_test(components_of_records_that_overlap_are_right),
        cmocka_unit_test(no_record_crosses_from_one_file_to_the_next),
        cmocka_unit_test(a_stride_of_one_record_equals_no_stride),
        cmocka_unit_test(records_that_overlap_by_a_part_of_an_element_are_refused),
        cmocka_unit_test(a_file_must_be_a_whole_number_of_records),
        cmocka_unit_test(wrong_arguments_and_files_are_refused),
        cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
        cmocka_unit_test(rows_that_the_dataset_does_not_have_are_an_error),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
