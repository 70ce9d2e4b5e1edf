/* tests/input/sources/records/test_npy.c - tests the claims of source.h about .npy files, and those of
 * npy_header.h. The bytes follow NumPy's documentation ("numpy.lib.format"): spaces and a newline pad the
 * text so that the data begins at a multiple of 64. */
#include "input/readers.h"

#include "input/sources/records/npy_header.h"

static struct made made;

/* Writes a header as NumPy does. Data may follow. */
static void begin_file(unsigned version, const char *dictionary)
{
    size_t prefix = version == 1 ? 10 : 12, length = strlen(dictionary) + 1;
    size_t whole = (prefix + length + 63) / 64 * 64;
    made.length = 0;
    add(&made, "\x93NUMPY", 6);
    add_number(&made, version, 1);
    add_number(&made, 0, 1);
    add_number(&made, whole - prefix, version == 1 ? 2 : 4);
    add(&made, dictionary, strlen(dictionary));
    while (made.length < whole - 1)
        add(&made, " ", 1);
    add(&made, "\n", 1);
}

static ditto_status open_one(const char *path, ditto_dataset **out)
{
    return ditto_dataset_from_npy(&path, 1, out);
}

/* Opens a file with this header and data. Returns the status. */
static ditto_status open_with(const char *dictionary, const void *data, size_t bytes, ditto_dataset **out)
{
    begin_file(1, dictionary);
    add(&made, data, bytes);
    return open_one(write_bytes("made.npy", made.bytes, made.length), out);
}

/* -- values -- */

static void a_file_written_by_numpy_is_read(void **state)
{
    /* The bytes of numpy.save("a.npy", numpy.arange(6, dtype="<i4").reshape(3, 2)). */
    static const char bytes[] = "\x93NUMPY\x01\x00\x76\x00"
                                "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }"
                                "                                                          \n"
                                "\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0";
    ditto_dataset *d;
    ditto_element_spec spec;
    assert_int_equal(sizeof bytes - 1, 128 + 24);
    assert_ok(open_one(write_bytes("numpy.npy", bytes, sizeof bytes - 1), &d));
    assert_ok(ditto_dataset_spec(d, &spec));
    assert_true(spec.num_components == 1 && spec.component[0].dtype == DITTO_I32 &&
                spec.component[0].rank == 1);
    assert_int_equal(spec.component[0].shape[0], 2);
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 3);
    for (int i = 0; i < 6; i++)
        assert_int_equal(((int32_t *)(void *)t.bytes)[i], i);
    free(t.bytes);
    restarts_anywhere(d);
    assert_ok(ditto_dataset_destroy(d));
}

static const struct {
    const char *descr;
    ditto_dtype dtype;
    size_t width; /* bytes of the unit that has a byte order */
} types[] = { { "f2", DITTO_F16, 2 }, { "f4", DITTO_F32, 4 },   { "f8", DITTO_F64, 8 },
              { "c8", DITTO_C64, 4 }, { "c16", DITTO_C128, 8 }, { "i1", DITTO_I8, 1 },
              { "i2", DITTO_I16, 2 }, { "i4", DITTO_I32, 4 },   { "i8", DITTO_I64, 8 },
              { "u1", DITTO_U8, 1 },  { "u2", DITTO_U16, 2 },   { "u4", DITTO_U32, 4 },
              { "u8", DITTO_U64, 8 }, { "b1", DITTO_BOOL, 1 },  { "V2", DITTO_BF16, 2 } };
enum { TYPES = sizeof types / sizeof types[0] };

static void every_type_byte_order_and_version_is_read(void **state)
{
    for (size_t k = 0; k < TYPES; k++)
        for (const char *order = "<>=|"; *order != '\0'; order++)
            for (unsigned version = 1; version <= 3; version++) {
                size_t elements = 48 / ditto_dtype_bytes(types[k].dtype);
                char text[128];
                ditto_dataset *d;
                snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (3, %zu), }",
                         *order, types[k].descr, elements / 3);
                begin_file(version, text);
                assert_int_equal(made.length % 64, 0);
                for (unsigned i = 0; i < 48; i++)
                    add_number(&made, i, 1);
                const char *path = write_bytes("type.npy", made.bytes, made.length);
                if (*order == '|' && types[k].width > 1 && types[k].dtype != DITTO_BF16) {
                    assert_status(open_one(path, &d), DITTO_ERR_UNSUPPORTED);
                    assert_message(types[k].descr);
                    continue;
                }
                assert_ok(open_one(path, &d));
                assert_true(d->component[0].dtype == types[k].dtype && d->component[0].rank == 1);
                struct taken t = take_all(d);
                assert_int_equal(t.rows, 3);
                assert_int_equal(t.length, 48);
                bool big = *order == '>' || (*order == '=' && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
                bool turned = big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
                for (size_t i = 0; i < 48; i++) {
                    size_t in = i % types[k].width, from = turned ? i - in + types[k].width - 1 - in : i;
                    assert_int_equal(t.bytes[i], types[k].dtype == DITTO_BOOL ? from != 0 : from);
                }
                free(t.bytes);
                assert_ok(ditto_dataset_destroy(d));
            }
}

static void several_files_make_components_of_one_row(void **state)
{
    const char *names[3];
    ditto_dataset *d, *shuffled;
    for (uint32_t k = 0; k < 3; k++) {
        char name[16];
        begin_file(1 + k, k == 0   ? "{'descr': '<f4', 'fortran_order': False, 'shape': (500, 3, 2), }"
                          : k == 1 ? "{'descr': '|u1', 'fortran_order': False, 'shape': (500,), }"
                                   : "{'descr': '>u2', 'fortran_order': True, 'shape': (500,), }");
        for (unsigned i = 0; i < 500; i++)
            for (unsigned e = 0; e < (k == 0 ? 6 : 1); e++)
                add_number(&made, k == 2 ? __builtin_bswap16((uint16_t)i) : i, k == 0 ? 4 : k == 1 ? 1 : 2);
        snprintf(name, sizeof name, "%u.npy", k);
        names[k] = write_bytes(name, made.bytes, made.length);
    }
    assert_ok(ditto_dataset_from_npy(names, 3, &d));
    assert_int_equal(d->files, 1);
    assert_int_equal(d->component[0].rank, 2);
    assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
    struct taken t = take_all(d), mixed = take_all(shuffled);
    assert_true(t.rows == 500 && mixed.rows == 500);
    for (size_t i = 0; i < 500; i++)
        for (int k = 0; k < 2; k++) {
            unsigned char *row = (k ? mixed.bytes : t.bytes) + i * 27;
            uint16_t number;
            uint32_t first;
            memcpy(&number, row + 25, 2);
            memcpy(&first, row + 20, 4);
            assert_true(k || number == i);
            assert_true(first == number && row[24] == (unsigned char)number);
        }
    free(t.bytes);
    free(mixed.bytes);
    assert_ok(ditto_dataset_destroy(shuffled));
    assert_ok(ditto_dataset_destroy(d));
    begin_file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (499,), }");
    add(&made, (unsigned char[499]){ 0 }, 499);
    names[1] = write_bytes("1.npy", made.bytes, made.length);
    assert_status(ditto_dataset_from_npy(names, 3, &d), DITTO_ERR_SHAPE);
    assert_message("1.npy has 499 rows, but ");
}

/* -- headers -- */

static void headers_may_be_written_in_other_ways(void **state)
{
    static const char *const good[] = {
        "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), }",
        "{'shape': (2L, 2L), 'fortran_order': False, 'descr': '<u2'}",
        "{\"descr\": \"<u2\", \"fortran_order\": False, \"shape\": (2, 2,)}",
        "{'descr':'<u2','fortran_order':False,'shape':(2,2)}",
        " {  'fortran_order' : False ,\n\t'descr' : '<u2' , 'shape' : ( 2 , 2 , ) , }  \n\n",
        "{'descr': '<u4', 'fortran_order': True, 'shape': (2,), }",
        "{'descr': '<u4', 'fortran_order': True, 'shape': (2, 1, 1)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (np.int64(2), np.int64(2)), }",
        "{'descr': '<u4', 'fortran_order': False, 'shape': (np.int32(2),), }",
        "{'descr': 'bfloat16', 'fortran_order': False, 'shape': (2, 2), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 1, 1, 1, 1, 1, 4), }",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ditto_dataset *d;
        /* Bytes behind the array are ignored, as in NumPy. */
        assert_ok(open_with(good[i], "\1\2\3\4\5\6\7\10 and more", 17, &d));
        struct taken t = take_all(d);
        assert_int_equal(t.rows, 2);
        assert_memory_equal(t.bytes, "\1\2\3\4\5\6\7\10", 8);
        free(t.bytes);
        assert_ok(ditto_dataset_destroy(d));
    }
    ditto_dataset *d;
    assert_ok(
        open_with("{'descr': 'bfloat16', 'fortran_order': False, 'shape': (2, 2), }", "12345678", 8, &d));
    assert_int_equal(d->component[0].dtype, DITTO_BF16);
    assert_ok(ditto_dataset_destroy(d));
    /* An array whose dimensions are 1, except for one, has the same bytes in both orders. */
    assert_ok(open_with("{'descr': '|u1', 'fortran_order': True, 'shape': (1, 1, 8, 1)}", "12345678", 8, &d));
    struct taken row = take_all(d);
    assert_int_equal(row.rows, 1);
    assert_memory_equal(row.bytes, "12345678", 8);
    free(row.bytes);
    assert_ok(ditto_dataset_destroy(d));
    /* Rows of 0 bytes are rows. */
    assert_ok(open_with("{'descr': '<f4', 'fortran_order': False, 'shape': (7, 0, 3), }", "", 0, &d));
    struct taken t = take_all(d);
    assert_true(t.rows == 7 && t.length == 0);
    free(t.bytes);
    assert_ok(ditto_dataset_destroy(d));
}

static void wrong_headers_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
        ditto_status status;
    } bad[] = {
        { "", "no dictionary", DITTO_ERR_CORRUPT },
        { "{}", "is missing", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'shape': (2, 2), }", "is missing", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2)", "no comma", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), } x", "after the dictionary",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), }", "once each",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), 'x': 1}", "a key that is not",
          DITTO_ERR_CORRUPT },
        { "{'descr' '<u2', 'fortran_order': False, 'shape': (2, 2), }", "no colon", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2' 'fortran_order': False, 'shape': (2, 2), }", "no comma", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2, }", "a string that does not end", DITTO_ERR_CORRUPT },
        { "{'descr': '<u\\x32', 'fortran_order': False, 'shape': (2, 2), }", "a string that does not end",
          DITTO_ERR_CORRUPT },
        { "{descr: '<u2', 'fortran_order': False, 'shape': (2, 2), }", "no string", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': 0, 'shape': (2, 2), }", "neither True nor False",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': Falsey, 'shape': (2, 2), }", "no comma", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': 4, }", "no shape", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (4), }", "no tuple", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (,), }", "no length", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (2,,2), }", "no length", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (2 2), }", "no comma", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (-2,), }", "no length", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (02,), }", "no length", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (2.0,), }", "no comma", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (18446744073709551616,), }", "too large",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775807,), }", "more bytes",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "more bytes",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 0, 9223372036854775807), }", "more bytes",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }",
          "u16 [5], 10 bytes from offset 128 on, but ends at offset 136", DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (4611686018427387903,), }", "but ends at offset",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (), }", "scalar", DITTO_ERR_INVALID },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (0, 3), }", "no row", DITTO_ERR_INVALID },
        { "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 2), }", "Fortran order",
          DITTO_ERR_UNSUPPORTED },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }", "rank 9",
          DITTO_ERR_UNSUPPORTED },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "|O", DITTO_ERR_UNSUPPORTED },
        { "{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }", "<U3", DITTO_ERR_UNSUPPORTED },
        { "{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }", "<f16", DITTO_ERR_UNSUPPORTED },
        { "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2,), }", "<M8[ns]", DITTO_ERR_UNSUPPORTED },
        { "{'descr': 'u2', 'fortran_order': False, 'shape': (2,), }", "type u2", DITTO_ERR_UNSUPPORTED },
        { "{'descr': '', 'fortran_order': False, 'shape': (2,), }", "type ", DITTO_ERR_UNSUPPORTED },
        { "{'descr': [('x', '<f4'), ('y', '<f4', (2,))], 'fortran_order': False, 'shape': (2,), }",
          "type [('x', '<f4'), ('y', '<f4', (2,))]: ditto has no such dtype: save each field",
          DITTO_ERR_UNSUPPORTED },
        { "{'descr': [('x', '<f4'", "type [('x', '<f4' ", DITTO_ERR_UNSUPPORTED },
        { "{'descr': '<V4', 'fortran_order': False, 'shape': (2,), }", "type <V4", DITTO_ERR_UNSUPPORTED },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (np.int64(2, 2), }", "no end of a length",
          DITTO_ERR_CORRUPT },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (np.float64(2),), }", "no length",
          DITTO_ERR_CORRUPT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ditto_dataset *d;
        assert_status(open_with(bad[i].text, "12345678", 8, &d), bad[i].status);
        assert_message(bad[i].message);
        assert_message("made.npy");
    }
}

static void a_header_cut_or_changed_anywhere_gives_an_error_or_rows(void **state)
{
    ditto_dataset *d;
    for (unsigned version = 1; version <= 3; version++) {
        begin_file(version, "{'descr': '<u2', 'fortran_order': False, 'shape': (4, 2), }");
        add(&made, "0123456789abcdef", 16);
        for (size_t length = 0; length < made.length; length++) {
            assert_status(open_one(write_bytes("cut.npy", made.bytes, length), &d), DITTO_ERR_CORRUPT);
            assert_message("cut.npy");
            assert_message("offset");
        }
        for (size_t bit = 0; bit < 8 * (made.length - 16); bit++) {
            made.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            ditto_status status = open_one(write_bytes("flip.npy", made.bytes, made.length), &d);
            if (bit < 8 * 6)
                assert_status(status, DITTO_ERR_CORRUPT);
            else if (bit < 8 * 8) /* 2.0 and 3.0 differ in one bit */
                assert_true((version > 1 && bit == 8 * 6) || status == DITTO_ERR_CORRUPT ||
                            status == DITTO_ERR_UNSUPPORTED);
            /* An array that is accepted is inside the file, behind the header. */
            if (status == DITTO_OK) {
                struct taken t = take_all(d);
                assert_true(t.length <= 16);
                free(t.bytes);
                assert_ok(ditto_dataset_destroy(d));
            }
            made.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
    }
}

static void files_that_are_not_npy_files_are_refused(void **state)
{
    ditto_dataset *d;
    assert_status(open_one(write_bytes("empty.npy", "", 0), &d), DITTO_ERR_CORRUPT);
    assert_message("empty.npy: not a .npy file");
    assert_status(open_one(write_bytes("zip.npy", "PK\3\4 and so on, and so on", 25), &d), DITTO_ERR_CORRUPT);
    assert_message("zip.npy: not a .npy file");
    assert_status(open_one(write_bytes("4.npy", "\x93NUMPY\x04\0\1\0\0\0 ", 13), &d), DITTO_ERR_UNSUPPORTED);
    assert_message("4.npy: version 4.0");
    assert_status(open_one(write_bytes("11.npy", "\x93NUMPY\x01\1\1\0\0\0 ", 13), &d), DITTO_ERR_UNSUPPORTED);
    assert_status(open_one(write_bytes("long.npy", "\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14), &d),
                  DITTO_ERR_CORRUPT);
    assert_message("long.npy: a header of 4294967295 bytes at offset 12");
    assert_status(open_one(own_path("absent.npy"), &d), DITTO_ERR_NOT_FOUND);
    assert_status(open_one(own_folder, &d), DITTO_ERR_IO);
    assert_int_equal(mkfifo(own_path("fifo.npy"), 0600), 0);
    assert_status(open_one(own_path("fifo.npy"), &d), DITTO_ERR_IO);
    assert_status(open_one("", &d), DITTO_ERR_INVALID);
    assert_message("names[0]");
    assert_status(open_one(NULL, &d), DITTO_ERR_INVALID);
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
    begin_file(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (1000, 500), }");
    memset(made.bytes + made.length, 7, 1000000);
    made.length += 1000000;
    for (int mixed = 0; mixed < 2; mixed++) {
        const char *path = write_bytes("shrinks.npy", made.bytes, made.length);
        ditto_dataset *d, *shuffled;
        assert_ok(open_one(path, &d));
        assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
        struct taken t = nothing_taken(d);
        t.shorten = path;
        assert_status(ditto_dataset_reduce(mixed ? shuffled : d, take_row, &t, 0), DITTO_ERR_IO);
        assert_message("shrinks.npy: row ");
        assert_message("became shorter");
        assert_true(t.rows > 0 && t.rows < 1000);
        free(t.bytes);
        assert_ok(ditto_dataset_destroy(shuffled));
        assert_ok(ditto_dataset_destroy(d));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_written_by_numpy_is_read),
        cmocka_unit_test(every_type_byte_order_and_version_is_read),
        cmocka_unit_test(several_files_make_components_of_one_row),
        cmocka_unit_test(headers_may_be_written_in_other_ways),
        cmocka_unit_test(wrong_headers_are_refused),
        cmocka_unit_test(a_header_cut_or_changed_anywhere_gives_an_error_or_rows),
        cmocka_unit_test(files_that_are_not_npy_files_are_refused),
        cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
