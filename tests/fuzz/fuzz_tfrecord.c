/* tests/fuzz/fuzz_tfrecord.c - TFRecord files of any bytes. The rows, and the place where they end, must be
 * those of a second reader in this file, which reads one byte after the other and computes its own checksums.
 * Unless an option forbids it, valid checksums are written first, so that mutations pass them.
 *
 * The input is a byte of options, and then the file, of which each byte is combined with ' ' by xor, because
 * lengths are mostly zeros and the seeds are C strings. An option wraps the file as a gzip file of one stored
 * block. Another one changes a byte of the gzip file, which the last bytes of the input choose. */
#include "fuzz/fuzz.h"
#include "support/support.h"

#include <ditto/source.h>

#include <sys/mman.h>
#include <unistd.h>
#ifdef DTI_HAVE_ZLIB
#include <zlib.h>
#endif

#define MAX_BYTES 24

/* The byte of options. AS_IT_IS keeps the checksums of the input. */
enum { TRUST = 1, AS_IT_IS = 2, COMPRESSED = 4, DAMAGED = 8 };

const char *const fuzz_seeds[] = {
    "@#       ccccABCffff",
    "@#       ccccABCffff        ccccffff(       cccc12345678ffff",
    "A!       ccccxffff$       ccccabcdffff",
    "B#       ccccABCffff",
    "@8       cccc012345678901234567890123ffff%       cccc!!!!!ffff",
    "C        ccccffff        ccccffff        ccccffff",
    "D#       ccccABCffff        ccccffff",
    "L#       ccccABCffff        ccccffff",
    "E!       ccccxffff$       ccccabcdffff",
    NULL,
};
const char *const fuzz_words[] = {
    "#       ", "        ", "       ",
    "cccc",     "ffff",     "        ccccffff",
    "8       ", "9       ", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf",
    NULL,
};
unsigned long fuzz_accepted;

static unsigned char file[8192], packed[8192 + 64];

/* The masked CRC-32C of TFRecord files. */
static uint32_t checksum(const unsigned char *data, size_t bytes)
{
    static uint32_t table[256];
    for (uint32_t b = 0; table[255] == 0 && b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        table[b] = crc;
    }
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; i++)
        crc = crc >> 8 ^ table[(crc ^ data[i]) & 0xff];
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

static void put_checksum(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

/* Writes valid checksums into the records, up to the first record that exceeds the file. */
static void repair(size_t size)
{
    for (size_t at = 0; size - at >= 12;) {
        uint64_t length = number(file + at, 8);
        put_checksum(file + at + 8, checksum(file + at, 8));
        at += 12;
        if (length > size - at || size - at - length < 4)
            return;
        put_checksum(file + at + length, checksum(file + at, length));
        at += length + 4;
    }
}

struct expected {
    size_t size; /* of the file */
    size_t at;   /* of the next record */
    bool trust;
    size_t rows;
};

/* Returns the length of the next record, or -1 if there is none or it is not valid. */
static int64_t expected_length(const struct expected *e)
{
    if (e->size - e->at < 12 || checksum(file + e->at, 8) != number(file + e->at + 8, 4))
        return -1;
    uint64_t length = number(file + e->at, 8);
    if (length > MAX_BYTES || e->size - e->at - 12 < length + 4)
        return -1;
    const unsigned char *data = file + e->at + 12;
    return e->trust || checksum(data, length) == number(data + length, 4) ? (int64_t)length : -1;
}

static ditto_status compare(const ditto_tensor *row, void *state)
{
    static const unsigned char zeros[MAX_BYTES];
    struct expected *e = state;
    int64_t length = expected_length(e);
    const unsigned char *data = row[0].data;
    if (length < 0 || *(const int64_t *)row[1].data != length ||
        memcmp(data, file + e->at + 12, (size_t)length) != 0 ||
        memcmp(data + length, zeros, MAX_BYTES - (size_t)length) != 0)
        abort();
    e->at += 16 + (size_t)length;
    e->rows++;
    return DITTO_OK;
}

/* Stores the file in `packed` as a gzip file of one stored block (RFC 1951, section 3.2.4, and RFC 1952).
 * Returns its size, or 0 if there is no zlib. */
static size_t pack(size_t size)
{
#ifdef DTI_HAVE_ZLIB
    static const unsigned char header[10] = { 0x1f, 0x8b, 8, [9] = 255 };
    uint32_t ends[2] = { (uint32_t)crc32(0, file, (uInt)size), (uint32_t)size };
    memcpy(packed, header, 10);
    packed[10] = 1;
    for (int i = 0; i < 2; i++) {
        packed[11 + i] = (unsigned char)(size >> 8 * i);
        packed[13 + i] = (unsigned char)(~size >> 8 * i);
    }
    memcpy(packed + 15, file, size);
    for (int i = 0; i < 8; i++)
        packed[15 + size + (size_t)i] = (unsigned char)(ends[i / 4] >> 8 * (i % 4));
    return size + 23;
#else
    return 0;
#endif
}

/* Writes the file of this execution, and returns its name. */
static const char *write_file(const unsigned char *bytes, size_t size)
{
    static char name[48];
    static int descriptor = -1;
    if (descriptor < 0) {
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    }
    if (descriptor < 0 || pwrite(descriptor, bytes, size, 0) != (ssize_t)size ||
        ftruncate(descriptor, (off_t)size) != 0)
        abort();
    return name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ditto_dataset *d;
    if (size < 4 || size > sizeof file)
        return 0;
    struct expected e = { .size = size - 1, .trust = data[0] & TRUST };
    for (size_t i = 0; i < e.size; i++)
        file[i] = data[i + 1] ^ ' ';
    if ((data[0] & AS_IT_IS) == 0)
        repair(e.size);
    size_t packed_bytes = data[0] & COMPRESSED ? pack(e.size) : 0;
    bool damaged = packed_bytes > 0 && data[0] & DAMAGED;
    if (damaged)
        packed[((size_t)data[size - 1] << 8 | data[size - 2]) % packed_bytes] ^=
            (unsigned char)(data[size - 3] | 1);
    const char *name = packed_bytes > 0 ? write_file(packed, packed_bytes) : write_file(file, e.size);
    ditto_tfrecord_options options = { .struct_size = sizeof options,
                                       .max_bytes = MAX_BYTES,
                                       .trust = e.trust,
                                       .compression = packed_bytes > 0 ? DITTO_COMPRESSION_GZIP
                                                                       : DITTO_COMPRESSION_DEFAULT };
    if (ditto_dataset_from_tfrecord(&(ditto_files){ .names = &name, .num_names = 1 }, &options, &d) !=
        DITTO_OK)
        abort();
    ditto_status status = ditto_dataset_reduce(d, compare, &e, 0);
    if ((status != DITTO_OK && status != DITTO_ERR_CORRUPT) || (status == DITTO_OK && e.at != e.size))
        abort();
    if (!damaged && ((status == DITTO_OK) != (e.at == e.size) || expected_length(&e) >= 0))
        abort();
    fuzz_accepted += status == DITTO_OK;
    fuzz_again(d);
    assert_ok(ditto_dataset_destroy(d));
    return 0;
}
