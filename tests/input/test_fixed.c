/* tests/input/test_fixed.c - the claims of source.h about files of records of equal length. */
#include "readers.h"

static struct made made;

static ditto_status open_fixed(const char *path, const ditto_tensor *row, uint32_t components, uint64_t header,
                               uint64_t footer, int big_endian, ditto_dataset **out)
{
    ditto_fixed_options options = DITTO_FIXED_OPTIONS_INIT;
    options.header_bytes = header;
    options.footer_bytes = footer;
    options.big_endian = big_endian;
    return ditto_dataset_from_fixed(&(ditto_files){ .names = &path, .count = 1 }, row, components, &options, out);
}

static const ditto_tensor two_u16[1] = { { .dtype = DITTO_U16, .rank = 1, .shape = { 2 } } };
static const ditto_tensor image_and_label[2] = { { .dtype = DITTO_U8, .rank = 2, .shape = { 3, 2 } },
                                                 { .dtype = DITTO_I32 } };

/* -- values -- */

static void components_lie_one_after_the_other(void **state)
{
    ditto_dataset *d;
    (void)state;
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
        ditto_dataset_destroy(d);
    }
}

/* One record with one element of each of 16 bytes' worth, 00 01 02 ...: its bytes in memory are these. */
static void elements_of_every_type_are_turned_round(void **state)
{
    static const struct {
        ditto_dtype dtype;
        size_t width; /* of what is turned round */
    } types[] = { { DITTO_F16, 2 },  { DITTO_BF16, 2 }, { DITTO_F32, 4 }, { DITTO_F64, 8 }, { DITTO_C64, 4 },
                  { DITTO_C128, 8 }, { DITTO_I8, 1 },   { DITTO_I16, 2 }, { DITTO_I32, 4 }, { DITTO_I64, 8 },
                  { DITTO_U8, 1 },   { DITTO_U16, 2 },  { DITTO_U32, 4 }, { DITTO_U64, 8 } };
    (void)state;
    made.length = 0;
    for (unsigned i = 0; i < 64; i++)
        add_number(&made, i, 1);
    const char *path = write_bytes("types", made.bytes, made.length);
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        for (int big = 0; big < 2; big++)
            for (uint32_t components = 1; components <= 2; components++) { /* read to their places, and copied there */
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
                ditto_dataset_destroy(d);
            }
}

static void a_bool_is_0_or_1(void **state)
{
    ditto_tensor row = { .dtype = DITTO_BOOL };
    ditto_dataset *d;
    (void)state;
    assert_ok(open_fixed(write_bytes("bools", "\0\1\2\xff", 4), &row, 1, 0, 0, 0, &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 4);
    assert_memory_equal(t.bytes, "\0\1\1\1", 4);
    free(t.bytes);
    ditto_dataset_destroy(d);
}

static void long_records_are_read_component_by_component(void **state)
{
    ditto_tensor row[2] = { { .dtype = DITTO_U8, .rank = 1, .shape = { 300001 } }, { .dtype = DITTO_U32 } };
    uint64_t random = test_seed(1);
    ditto_dataset *d, *shuffled;
    (void)state;
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
    ditto_dataset_destroy(shuffled);
    ditto_dataset_destroy(d);
}

static void files_follow_one_another(void **state)
{
    const char *names[4] = { write_bytes("0-even", "Hab01cd23F", 10), write_bytes("1-odd", "HF", 2),
                             write_bytes("2-even", "HF", 2), write_bytes("3-odd", "Hef45gh67F", 10) };
    ditto_fixed_options options = DITTO_FIXED_OPTIONS_INIT;
    ditto_dataset *d, *shuffled;
    (void)state;
    options.header_bytes = options.footer_bytes = 1;
    assert_ok(ditto_dataset_from_fixed(&(ditto_files){ names, 4, 0 }, two_u16, 1, &options, &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 4);
    assert_memory_equal(t.bytes, "ab01cd23ef45gh67", 16);
    free(t.bytes);
    restarts_anywhere(d);
    shards_take_turns(d);
    ditto_shuffle_options mixed = DITTO_SHUFFLE_OPTIONS_INIT;
    for (mixed.seed = 0; mixed.seed < 20; mixed.seed++) { /* neighbours, and rows of two files that would be */
        assert_ok(ditto_dataset_shuffle(d, &mixed, &shuffled));
        t = take_all(shuffled);
        assert_int_equal(t.rows, 4);
        unsigned seen = 0;
        for (size_t row = 0; row < 4; row++)
            for (unsigned i = 0; i < 4; i++)
                seen += memcmp(t.bytes + 4 * row, &"ab01cd23ef45gh67"[4 * i], 4) == 0 ? 1u << 4 * i : 0;
        assert_int_equal(seen, 0x1111);
        free(t.bytes);
        ditto_dataset_destroy(shuffled);
    }
    ditto_dataset_destroy(d);
    assert_status(ditto_dataset_from_fixed(&(ditto_files){ &names[1], 2, 0 }, two_u16, 1, &options, &d),
                  DITTO_ERR_INVALID);
    assert_message("1-odd and all other files: no record");
}

/* -- what is refused -- */

static void a_file_must_be_a_whole_number_of_records(void **state)
{
    ditto_dataset *d;
    (void)state;
    made.length = 0;
    for (unsigned i = 0; i < 40; i++)
        add_number(&made, i, 1);
    for (size_t length = 0; length <= 40; length++) {
        const char *path = write_bytes("cut", made.bytes, length);
        char place[96];
        ditto_status status = open_fixed(path, two_u16, 1, 3, 5, 0, &d);
        if (length < 8) {
            assert_int_equal(status, DITTO_ERR_CORRUPT);
            snprintf(place, sizeof place, "cut ends at offset %zu: shorter than its header of 3 and footer of 5 bytes",
                     length);
        } else if (length == 8) {
            assert_int_equal(status, DITTO_ERR_INVALID);
            snprintf(place, sizeof place, "cut: no record");
        } else if ((length - 8) % 4 != 0) {
            assert_int_equal(status, DITTO_ERR_CORRUPT);
            snprintf(place, sizeof place,
                     "cut: records of 4 bytes from offset 3 to %zu: %zu, and %zu bytes more from offset %zu on",
                     length - 5, (length - 8) / 4, (length - 8) % 4, 3 + (length - 8) / 4 * 4);
        } else {
            assert_int_equal(status, DITTO_OK);
            struct taken t = take_all(d);
            assert_int_equal(t.length, length - 8);
            assert_memory_equal(t.bytes, made.bytes + 3, length - 8);
            free(t.bytes);
            ditto_dataset_destroy(d);
            continue;
        }
        assert_message(place);
    }
}

static void wrong_arguments_and_files_are_refused(void **state)
{
    const char *path = write_bytes("ok", "12345678", 8);
    ditto_tensor empty = { .dtype = DITTO_U8, .rank = 2, .shape = { 5, 0 } }, unknown = { .rank = 0 };
    ditto_tensor huge[2] = { { .dtype = DITTO_U8, .rank = 1, .shape = { PTRDIFF_MAX } },
                             { .dtype = DITTO_U8, .rank = 1, .shape = { PTRDIFF_MAX } } };
    ditto_dataset *d;
    (void)state;
    assert_status(open_fixed(path, &empty, 1, 0, 0, 0, &d), DITTO_ERR_INVALID);
    assert_message("0 bytes");
    assert_status(open_fixed(path, &unknown, 1, 0, 0, 0, &d), DITTO_ERR_INVALID);
    assert_status(open_fixed(path, two_u16, 0, 0, 0, 0, &d), DITTO_ERR_INVALID);
    assert_status(open_fixed(path, huge, 2, 0, 0, 0, &d),
                  DITTO_ERR_CORRUPT); /* so much fits size_t, but not the file */
    assert_message("ok: records of");
    assert_status(open_fixed(path, two_u16, 1, UINT64_MAX, 0, 0, &d), DITTO_ERR_CORRUPT);
    assert_status(open_fixed(path, two_u16, 1, UINT64_MAX, UINT64_MAX, 0, &d), DITTO_ERR_CORRUPT);
    assert_status(open_fixed(path, two_u16, 1, 4, UINT64_MAX - 3, 0, &d), DITTO_ERR_CORRUPT); /* their sum is 0 */
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
    (void)state;
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
        ditto_dataset_destroy(shuffled);
        ditto_dataset_destroy(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_lie_one_after_the_other),
        cmocka_unit_test(elements_of_every_type_are_turned_round),
        cmocka_unit_test(a_bool_is_0_or_1),
        cmocka_unit_test(long_records_are_read_component_by_component),
        cmocka_unit_test(files_follow_one_another),
        cmocka_unit_test(a_file_must_be_a_whole_number_of_records),
        cmocka_unit_test(wrong_arguments_and_files_are_refused),
        cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
