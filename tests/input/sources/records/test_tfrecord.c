/* tests/input/sources/records/test_tfrecord.c - tests the claims of source.h about TFRecord files, and
 * those of checksum.h. */
#include "input/readers.h"

#include "base/numbers/checksum.h"

/* -- checksums -- */

static void checksums_have_the_known_values(void **state)
{
    unsigned char bytes[32], random[300];
    uint64_t seed = test_seed(5);
    assert_int_equal(dti_crc32c("123456789", 9), 0xe3069283u);
    memset(bytes, 0, 32);
    assert_int_equal(dti_crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, 32);
    assert_int_equal(dti_crc32c(bytes, 32), 0x62a8ab43u);
    for (unsigned char i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(dti_crc32c(bytes, 32), 0x46dd794eu);
    assert_int_equal(dti_crc32c(bytes, 0), 0);
    assert_int_equal(dti_crc32c_masked(0), 0xa282ead8u);
    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (unsigned char)test_random(&seed);
    /* The instruction and the tables give equal results at any alignment and length. */
    for (size_t from = 0; from < 16; from++)
        for (size_t length = 0; from + length <= sizeof random; length++)
            assert_int_equal(dti_crc32c(random + from, length), dti_crc32c_tables(random + from, length));
}

/* -- writing -- */

static struct made made;

static void add_record_of(struct made *to, uint64_t said, const void *data, size_t length)
{
    size_t begin = to->length;
    add_number(to, said, 8);
    add_number(to, dti_crc32c_masked(dti_crc32c(to->bytes + begin, 8)), 4);
    add(to, data, length);
    add_number(to, dti_crc32c_masked(dti_crc32c(data, length)), 4);
}
static void add_record(struct made *to, const void *data, size_t length)
{
    add_record_of(to, length, data, length);
}

/* Records of 3, 0, 8 and 5 bytes. */
static const char *const contents[] = { "abc", "", "12345678", "-----" };
enum { RECORDS = 4 };
static void make_four(void)
{
    made.length = 0;
    for (int i = 0; i < RECORDS; i++)
        add_record(&made, contents[i], strlen(contents[i]));
}
/* Returns the offset of record i in the file of four records. */
static size_t begin_of(size_t i)
{
    size_t at = 0;
    for (size_t k = 0; k < i; k++)
        at += 16 + strlen(contents[k]);
    return at;
}

static ditto_status open_tfrecord(const char *path, uint64_t max_bytes, ditto_compression compression,
                                  int trust, ditto_dataset **out)
{
    return ditto_dataset_from_tfrecord(
        &(ditto_files){ .names = &path, .num_names = 1 },
        &OPTIONS(tfrecord, .max_bytes = max_bytes, .compression = compression, .trust = trust), out);
}

/* Checks that row i has these bytes, then zeros up to max_bytes, and then the number of the bytes. */
static void check_row(const struct taken *t, size_t i, size_t max_bytes, const char *data, size_t length)
{
    unsigned char expected[256] = { 0 };
    memcpy(expected, data, length);
    int64_t number = (int64_t)length;
    memcpy(expected + max_bytes, &number, 8);
    assert_memory_equal(t->bytes + i * (max_bytes + 8), expected, max_bytes + 8);
}

/* -- plain files -- */

static void records_come_with_zeros_behind_them_and_with_their_length(void **state)
{
    ditto_dataset *d;
    ditto_element_spec spec;
    make_four();
    assert_ok(open_tfrecord(write_bytes("a", made.bytes, made.length), 8, DITTO_COMPRESSION_DEFAULT, 0, &d));
    assert_ok(ditto_dataset_spec(d, &spec));
    assert_int_equal(spec.num_components, 2);
    assert_true(spec.component[0].dtype == DITTO_U8 && spec.component[0].rank == 1 &&
                spec.component[0].shape[0] == 8);
    assert_true(spec.component[1].dtype == DITTO_I64 && spec.component[1].rank == 0);
    struct taken t = take_all(d);
    assert_int_equal(t.rows, RECORDS);
    for (size_t i = 0; i < RECORDS; i++)
        check_row(&t, i, 8, contents[i], strlen(contents[i]));
    free(t.bytes);
    restarts_anywhere(d);
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(open_tfrecord(own_path("a"), 0, DITTO_COMPRESSION_DEFAULT, 0, &d));
    assert_ok(ditto_dataset_spec(d, &spec));
    assert_int_equal(spec.component[0].shape[0], 65536);
    assert_ok(ditto_dataset_destroy(d));
}

static void files_follow_one_another(void **state)
{
    const char *names[5];
    ditto_dataset *d;
    make_four();
    names[0] = write_bytes("0-even", made.bytes, made.length);
    names[1] = write_bytes("1-odd", made.bytes, 0);
    names[2] = write_bytes("2-even", made.bytes, begin_of(1));
    names[3] = write_bytes("3-odd", made.bytes, begin_of(2));
    names[4] = write_bytes("4-even", made.bytes, 0);
    assert_ok(
        ditto_dataset_from_tfrecord(&(ditto_files){ names, 5, 0 }, &OPTIONS(tfrecord, .max_bytes = 8), &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 7);
    check_row(&t, 4, 8, "abc", 3);
    check_row(&t, 6, 8, "", 0);
    free(t.bytes);
    restarts_anywhere(d);
    shards_take_turns(d);
    assert_ok(ditto_dataset_destroy(d));
    write_bytes("2-even", "no such checksum", 16);
    assert_ok(
        ditto_dataset_from_tfrecord(&(ditto_files){ names, 5, 0 }, &OPTIONS(tfrecord, .max_bytes = 8), &d));
    t = nothing_taken(d);
    assert_status(ditto_dataset_reduce(d, take_row, &t, 0), DITTO_ERR_CORRUPT);
    assert_message("2-even: record 1 at offset 0");
    assert_int_equal(t.rows, 4);
    free(t.bytes);
    assert_ok(ditto_dataset_destroy(d));
}

static void records_may_be_larger_than_a_read(void **state)
{
    static const size_t lengths[] = { 300000, 1, 700000, 524288 - 16, 0, 262144, 40 };
    static unsigned char data[700000];
    uint64_t random = test_seed(1);
    ditto_dataset *d, *shuffled;
    made.length = 0;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)test_random(&random);
    for (size_t i = 0; i < 7; i++)
        add_record(&made, data + i, lengths[i] - (i != 0 && lengths[i] == sizeof data ? i : 0));
    const char *path = write_bytes("large", made.bytes, made.length);
    assert_ok(open_tfrecord(path, sizeof data, DITTO_COMPRESSION_DEFAULT, 0, &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 7);
    assert_memory_equal(t.bytes, data, lengths[0]);
    assert_memory_equal(t.bytes + 5 * (sizeof data + 8), data + 5, lengths[5]);
    free(t.bytes);
    restarts_anywhere(d);
    assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
    t = take_all(shuffled);
    assert_int_equal(t.rows, 7);
    free(t.bytes);
    assert_ok(ditto_dataset_destroy(shuffled));
    assert_ok(ditto_dataset_destroy(d));
    /* Cuts the last record, which has 40 bytes of data, and from 57 bytes on the record before it too. */
    for (size_t cut = 1; cut < 60; cut++) {
        assert_int_equal(truncate(path, (off_t)(made.length - cut)), 0);
        assert_ok(open_tfrecord(path, sizeof data, DITTO_COMPRESSION_DEFAULT, 0, &d));
        struct taken some = nothing_taken(d);
        ditto_status status = ditto_dataset_reduce(d, take_row, &some, 0);
        assert_int_equal(status, cut == 56 ? DITTO_OK : DITTO_ERR_CORRUPT);
        assert_int_equal(some.rows, cut > 56 ? 5 : 6);
        free(some.bytes);
        assert_ok(ditto_dataset_destroy(d));
    }
}

static void a_file_that_ends_anywhere_gives_the_whole_records_before(void **state)
{
    make_four();
    for (size_t length = 1; length <= made.length; length++) {
        size_t whole = 0;
        ditto_dataset *d;
        while (whole < RECORDS && begin_of(whole + 1) <= length)
            whole++;
        const char *path = write_bytes("cut", made.bytes, length);
        for (int trust = 0; trust < 2; trust++) {
            assert_ok(open_tfrecord(path, 8, DITTO_COMPRESSION_DEFAULT, trust, &d));
            struct taken t = nothing_taken(d);
            ditto_status status = ditto_dataset_reduce(d, take_row, &t, 0);
            assert_int_equal(status, length == begin_of(whole) ? DITTO_OK : DITTO_ERR_CORRUPT);
            if (status != DITTO_OK) {
                char message[64];
                snprintf(message, sizeof message, "cut: record %zu at offset %zu", whole + 1,
                         begin_of(whole));
                assert_message(message);
                snprintf(message, sizeof message, "at offset %zu", length);
                assert_message(message);
            }
            assert_int_equal(t.rows, whole);
            for (size_t i = 0; i < whole; i++)
                check_row(&t, i, 8, contents[i], strlen(contents[i]));
            free(t.bytes);
            assert_ok(ditto_dataset_destroy(d));
        }
    }
}

/* Returns the part of record i that a byte belongs to: 0 for the header, 1 for the data, 2 for the footer. */
static int part_of(size_t at, size_t *record)
{
    for (*record = 0; begin_of(*record + 1) <= at;)
        ++*record;
    size_t in = at - begin_of(*record);
    return in < 12 ? 0 : in < 12 + strlen(contents[*record]) ? 1 : 2;
}

static void a_flipped_bit_is_noticed_unless_the_data_is_trusted(void **state)
{
    make_four();
    for (size_t bit = 0; bit < 8 * made.length; bit++)
        for (int trust = 0; trust < 2; trust++) {
            ditto_dataset *d;
            size_t record;
            int part = part_of(bit / 8, &record);
            made.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            const char *path = write_bytes("flip", made.bytes, made.length);
            assert_ok(open_tfrecord(path, 8, DITTO_COMPRESSION_DEFAULT, trust, &d));
            struct taken t = nothing_taken(d);
            ditto_status status = ditto_dataset_reduce(d, take_row, &t, 0);
            bool noticed = part == 0 || !trust;
            char message[128];
            snprintf(message, sizeof message, "flip: record %zu at offset %zu: the checksum of its %s",
                     record + 1, begin_of(record), part == 0 ? "length" : "data");
            assert_int_equal(status, noticed ? DITTO_ERR_CORRUPT : DITTO_OK);
            if (noticed)
                assert_message(message);
            assert_int_equal(t.rows, noticed ? record : RECORDS);
            for (size_t i = 0; i < t.rows; i++)
                if (i != record || part == 2) /* otherwise its data is changed */
                    check_row(&t, i, 8, contents[i], strlen(contents[i]));
                else
                    check_row(&t, i, 8, (const char *)made.bytes + begin_of(i) + 12, strlen(contents[i]));
            free(t.bytes);
            assert_ok(ditto_dataset_destroy(d));
            made.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
}

static void impossible_lengths_are_refused(void **state)
{
    static const uint64_t lengths[] = {
        9, 100, 1u << 20, UINT32_MAX, (uint64_t)1 << 32, INT64_MAX, UINT64_MAX - 16, UINT64_MAX
    };
    ditto_dataset *d;
    for (size_t i = 0; i < 8; i++) {
        char text[64];
        made.length = 0;
        add_record(&made, "good", 4);
        add_record_of(&made, lengths[i], "12345678", 8);
        assert_ok(
            open_tfrecord(write_bytes("long", made.bytes, made.length), 8, DITTO_COMPRESSION_DEFAULT, 0, &d));
        struct taken t = nothing_taken(d);
        assert_status(ditto_dataset_reduce(d, take_row, &t, 0), DITTO_ERR_CORRUPT);
        snprintf(text, sizeof text, "long: record 2 at offset 20: it has %llu bytes",
                 (unsigned long long)lengths[i]);
        assert_message(text);
        assert_int_equal(t.rows, 1);
        free(t.bytes);
        assert_ok(ditto_dataset_destroy(d));
        if (lengths[i] > UINT32_MAX - 64)
            continue;
        /* The option allows the length, but the file is shorter. */
        const char *path = own_path("long");
        assert_ok(ditto_dataset_from_tfrecord(&(ditto_files){ &path, 1, 0 },
                                              &OPTIONS(tfrecord, .max_bytes = lengths[i] + 8), &d));
        struct dti_cursor *cursor;
        uint64_t words[2 * 3];
        size_t got;
        assert_ok(dti_cursor_open(d, &(struct dti_pass){ 0 }, &cursor));
        assert_status(dti_cursor_next(cursor, (struct dti_rows){ words, 3 }, 2, &got), DITTO_ERR_CORRUPT);
        assert_message("the file ends in its");
        assert_int_equal(got, 1);
        dti_cursor_close(cursor);
        assert_ok(ditto_dataset_destroy(d));
    }
    const char *path = own_path("long");
    assert_status(open_tfrecord(path, UINT32_MAX, DITTO_COMPRESSION_DEFAULT, 0, &d), DITTO_ERR_RANGE);
    assert_message("max_bytes = 4294967295");
    assert_status(open_tfrecord(path, UINT32_MAX - 63, DITTO_COMPRESSION_DEFAULT, 0, &d), DITTO_ERR_RANGE);
    assert_status(open_tfrecord(path, 8, (ditto_compression)2, 0, &d), DITTO_ERR_RANGE);
}

static void files_that_are_not_tfrecord_files_are_refused(void **state)
{
    ditto_dataset *d;
    assert_ok(open_tfrecord(write_bytes("text", "These are words, and no records.\n", 33), 8,
                            DITTO_COMPRESSION_DEFAULT, 0, &d));
    struct taken t = nothing_taken(d);
    assert_status(ditto_dataset_reduce(d, take_row, &t, 0), DITTO_ERR_CORRUPT);
    assert_message("text: record 1 at offset 0: the checksum of its length");
    assert_ok(ditto_dataset_destroy(d));
    assert_status(open_tfrecord(write_bytes("empty", "", 0), 8, DITTO_COMPRESSION_DEFAULT, 0, &d),
                  DITTO_ERR_INVALID);
    assert_message("empty");
    assert_status(open_tfrecord(own_path("absent"), 8, DITTO_COMPRESSION_DEFAULT, 0, &d),
                  DITTO_ERR_NOT_FOUND);
    assert_message("absent");
    assert_status(open_tfrecord(own_folder, 8, DITTO_COMPRESSION_DEFAULT, 0, &d), DITTO_ERR_IO);
    assert_message(own_folder);
    assert_int_equal(mkfifo(own_path("fifo"), 0600), 0);
    assert_status(open_tfrecord(own_path("fifo"), 8, DITTO_COMPRESSION_DEFAULT, 0, &d), DITTO_ERR_IO);
    assert_message("fifo");
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
    ditto_dataset *d, *shuffled;
    made.length = 0;
    for (int i = 0; i < 1000; i++)
        add_record(&made, &i, sizeof i);
    const char *path = write_bytes("shrinks", made.bytes, made.length);
    assert_ok(open_tfrecord(path, 1000, DITTO_COMPRESSION_DEFAULT, 0, &d));
    assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
    struct taken t = nothing_taken(d);
    t.shorten = path; /* emptied after all rows have been chosen */
    assert_status(ditto_dataset_reduce(shuffled, take_row, &t, 0), DITTO_ERR_IO);
    assert_message("shrinks: record ");
    assert_message("became shorter");
    assert_true(t.rows > 0 && t.rows < 1000);
    free(t.bytes);
    /* The file is cut before the rows are chosen, but after its size was read. */
    for (size_t left = 0; left < 50; left++) {
        write_bytes("shrinks", made.bytes, made.length);
        assert_ok(ditto_dataset_destroy(shuffled));
        assert_ok(ditto_dataset_destroy(d));
        assert_ok(open_tfrecord(path, 1000, DITTO_COMPRESSION_DEFAULT, 0, &d));
        assert_ok(ditto_dataset_shuffle(d, NULL, &shuffled));
        assert_int_equal(truncate(path, (off_t)left), 0);
        t = nothing_taken(d);
        assert_status(ditto_dataset_reduce(d, take_row, &t, 0), DITTO_ERR_IO);
        assert_message("became shorter");
        assert_int_equal(t.rows, 0);
        free(t.bytes);
    }
    assert_ok(ditto_dataset_destroy(shuffled));
    assert_ok(ditto_dataset_destroy(d));
}

/* -- compressed files -- */

#ifdef DTI_HAVE_ZLIB
static struct made packed;

static void compressed_files_have_the_same_rows(void **state)
{
    const char *names[5];
    ditto_dataset *d;
    make_four();
    packed.length = 0;
    add_member(&packed, made.bytes, made.length);
    names[0] = write_bytes("0-even.gz", packed.bytes, packed.length);
    /* The members end in the middle of a header, of data and of a footer. Some are empty. */
    packed.length = 0;
    add_member(&packed, made.bytes, 0);
    add_member(&packed, made.bytes, 5);
    add_member(&packed, made.bytes + 5, 9);
    add_member(&packed, made.bytes, 0);
    add_member(&packed, made.bytes + 14, 3);
    add_member(&packed, made.bytes + 17, made.length - 17);
    names[1] = write_bytes("1-odd.gz", packed.bytes, packed.length);
    packed.length = 0;
    add_member(&packed, made.bytes, 0);
    names[2] = write_bytes("2-even.gz", packed.bytes, packed.length);
    packed.length = 0;
    add_member(&packed, made.bytes, begin_of(2));
    names[3] = write_bytes("3-odd.gz", packed.bytes, packed.length);
    assert_ok(ditto_dataset_from_tfrecord(
        &(ditto_files){ names, 4, 0 },
        &OPTIONS(tfrecord, .max_bytes = 8, .compression = DITTO_COMPRESSION_GZIP), &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 10);
    for (size_t i = 0; i < t.rows; i++)
        check_row(&t, i, 8, contents[i % 4], strlen(contents[i % 4]));
    free(t.bytes);
    restarts_anywhere(d);
    shards_take_turns(d);
    assert_ok(ditto_dataset_destroy(d));
}

static void compressed_records_may_be_larger_than_a_read(void **state)
{
    static unsigned char data[300000];
    uint64_t random = test_seed(3);
    ditto_dataset *d;
    made.length = 0;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(test_random(&random) % 17);
    for (size_t i = 0; i < 5; i++)
        add_record(&made, data + i, sizeof data - i);
    packed.length = 0;
    add_member(&packed, made.bytes, made.length);
    assert_true(packed.length > 2 * 65536); /* several pieces */
    assert_ok(open_tfrecord(write_bytes("large.gz", packed.bytes, packed.length), sizeof data,
                            DITTO_COMPRESSION_GZIP, 0, &d));
    struct taken t = take_all(d);
    assert_int_equal(t.rows, 5);
    for (size_t i = 0; i < 5; i++)
        assert_memory_equal(t.bytes + i * (sizeof data + 8), data + i, sizeof data - i);
    free(t.bytes);
    restarts_anywhere(d);
    assert_ok(ditto_dataset_destroy(d));
}

/* Reads a damaged file and checks that the rows before an error are right. Returns the status of reading. */
static ditto_status read_damaged(const char *name, size_t length, size_t *rows)
{
    ditto_dataset *d;
    assert_ok(open_tfrecord(write_bytes(name, packed.bytes, length), 8, DITTO_COMPRESSION_GZIP, 0, &d));
    struct taken t = nothing_taken(d);
    ditto_status status = ditto_dataset_reduce(d, take_row, &t, 0);
    for (size_t i = 0; i < t.rows; i++)
        check_row(&t, i, 8, contents[i % 4], strlen(contents[i % 4]));
    if (status != DITTO_OK) {
        assert_int_equal(status, DITTO_ERR_CORRUPT);
        assert_message(name);
        assert_message("offset");
    }
    *rows = t.rows;
    free(t.bytes);
    DITTO_TRY(ditto_dataset_destroy(d));
    return status;
}

static void damaged_compressed_files_are_refused(void **state)
{
    size_t rows;
    make_four();
    packed.length = 0;
    add_member(&packed, made.bytes, made.length);
    size_t first = packed.length;
    add_member(&packed, made.bytes, made.length);
    for (size_t length = 1; length <= packed.length; length++)
        if (read_damaged("cut.gz", length, &rows) == DITTO_OK)
            assert_true((length == first && rows == 4) || (length == packed.length && rows == 8));
    assert_status(read_damaged("cut.gz", packed.length - 1, &rows), DITTO_ERR_CORRUPT);
    assert_message("the gzip stream is cut off");
    /* Some bits, like those of the time stamp, may have any value. All rows must then be right. */
    for (size_t bit = 0; bit < 8 * packed.length; bit++) {
        packed.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (read_damaged("flip.gz", packed.length, &rows) == DITTO_OK)
            assert_int_equal(rows, 8);
        packed.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (int byte = 0; byte < 256; byte += 5) { /* also 0, which is the padding of tapes */
        add(&packed, &(unsigned char){ (unsigned char)byte }, 1);
        assert_status(read_damaged("behind.gz", packed.length, &rows), DITTO_ERR_CORRUPT);
        assert_int_equal(rows, 8);
        packed.length--;
    }
    add(&packed, "\0\0\0\0\0\0\0", 8);
    assert_status(read_damaged("behind.gz", packed.length, &rows), DITTO_ERR_CORRUPT);
    assert_message("the data after the gzip stream is not another gzip stream, at offset");
    packed.length = 0; /* records that are not compressed */
    add(&packed, made.bytes, made.length);
    for (size_t length = 10; length <= packed.length; length += packed.length - 10) {
        assert_status(read_damaged("plain", length, &rows), DITTO_ERR_CORRUPT);
        assert_message("there is no gzip stream at offset 0");
        assert_int_equal(rows, 0);
    }
    packed.length = 0; /* the stream is whole, but its contents are cut */
    add_member(&packed, made.bytes, made.length - 1);
    assert_status(read_damaged("cut.gz", packed.length, &rows), DITTO_ERR_CORRUPT);
    assert_message("record 4 at offset 59 of the contents: the contents end in its footer");
    assert_int_equal(rows, 3);
}

static void a_state_of_a_changed_compressed_file_is_refused(void **state)
{
    struct dti_pass pass = { 0 };
    struct dti_cursor *cursor;
    struct dti_bytes bytes = { 0 };
    ditto_dataset *d;
    make_four();
    packed.length = 0;
    add_member(&packed, made.bytes, made.length);
    assert_ok(open_tfrecord(write_bytes("changed.gz", packed.bytes, packed.length), 8, DITTO_COMPRESSION_GZIP,
                            0, &d));
    struct taken all = take_all(d);
    assert_ok(dti_cursor_open(d, &pass, &cursor));
    read_some(d, cursor, &all, 0, 3);
    assert_ok(dti_cursor_save(cursor, &bytes));
    dti_cursor_close(cursor);
    packed.length = 0;
    add_member(&packed, made.bytes, begin_of(2));
    assert_ok(ditto_dataset_destroy(d));
    assert_ok(open_tfrecord(write_bytes("changed.gz", packed.bytes, packed.length), 8, DITTO_COMPRESSION_GZIP,
                            0, &d));
    assert_ok(dti_cursor_open(d, &pass, &cursor));
    assert_status(dti_cursor_restore(
                      cursor, &(struct dti_bytes_reader){ bytes.data, bytes.data + bytes.length, false }),
                  DITTO_ERR_CORRUPT);
    assert_message("changed.gz has 2 records, but 3 were read");
    dti_cursor_close(cursor);
    dti_bytes_free(&bytes);
    free(all.bytes);
    assert_ok(ditto_dataset_destroy(d));
}
#else
static void compressed_files_need_zlib(void **state)
{
    ditto_dataset *d;
    assert_status(open_tfrecord(write_bytes("a.gz", "x", 1), 8, DITTO_COMPRESSION_GZIP, 0, &d),
                  DITTO_ERR_UNSUPPORTED);
    assert_message("zlib");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_have_the_known_values),
        cmocka_unit_test(records_come_with_zeros_behind_them_and_with_their_length),
        cmocka_unit_test(files_follow_one_another),
        cmocka_unit_test(records_may_be_larger_than_a_read),
        cmocka_unit_test(a_file_that_ends_anywhere_gives_the_whole_records_before),
        cmocka_unit_test(a_flipped_bit_is_noticed_unless_the_data_is_trusted),
        cmocka_unit_test(impossible_lengths_are_refused),
        cmocka_unit_test(files_that_are_not_tfrecord_files_are_refused),
        cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
#ifdef DTI_HAVE_ZLIB
        cmocka_unit_test(compressed_files_have_the_same_rows),
        cmocka_unit_test(compressed_records_may_be_larger_than_a_read),
        cmocka_unit_test(damaged_compressed_files_are_refused),
        cmocka_unit_test(a_state_of_a_changed_compressed_file_is_refused),
#else
        cmocka_unit_test(compressed_files_need_zlib),
#endif
    };
    return cmocka_run_group_tests(tests, make_own_folder, remove_own_folder);
}
