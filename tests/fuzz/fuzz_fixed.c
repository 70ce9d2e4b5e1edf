/* tests/fuzz/fuzz_fixed.c - files of fixed records of any length. The input chooses the header, the footer,
 * the stride and the components. The rows must be those of a second reader in this file, which reads one byte
 * after the other.
 *
 * The input begins with the lengths of the header and of the footer (one byte each, modulo 16). One byte for
 * the byte order and the number of components follows, and then the stride (one byte, modulo 48, so that '0'
 * is 0). Then come two bytes for each component, its dtype and its number of elements, and then the file. */
#include "fuzz/fuzz.h"
#include "support/support.h"

#include <ditto/source.h>

#include <sys/mman.h>
#include <unistd.h>

const char *const fuzz_seeds[] = {
    "00"
    "0"
    "0"
    "00"
    "0123456789abcdef",
    "11"
    "1"
    "0"
    "31"
    "H0123456789abcdefF",
    "20"
    "5"
    "0"
    "<1"
    "8a"
    "HH0123456789abcdef0123456789abcde",
    "00"
    "2"
    "0"
    "62"
    "?3"
    "0123456789abcdef0123456789abcdef0123456789abcdef",
    "00"
    "3"
    "0"
    ">2"
    "0123456789abcdef",
    "11" /* records of five bytes at a stride of four, and one more byte */
    "0"
    "4"
    "75"
    "H0123456789abcdefghF",
    "00" /* bytes between the records */
    "0"
    "7"
    "73"
    "0123456789abcdef",
    "00" /* components of several sizes, in records that overlap */
    "2"
    "3"
    "72"
    "?3"
    "0123456789abcdef0123456789abcdef0123456789abcdef",
    NULL,
};
const char *const fuzz_words[] = { "0", "01", "0123", "01234567", "0123456789abcdef", "\x01", "\xff", NULL };
unsigned long fuzz_accepted;

struct expected {
    const uint8_t *first;
    size_t stride;
    const ditto_tensor *row;
    uint32_t components;
    bool big;
    size_t rows;
};

static ditto_status compare(const ditto_tensor *row, void *state)
{
    struct expected *e = state;
    const uint8_t *at = e->first + e->rows * e->stride;
    for (uint32_t k = 0; k < e->components; k++) {
        const uint8_t *found = row[k].data;
        size_t width = ditto_dtype_bytes(row[k].dtype), bytes = ditto_tensor_bytes(&e->row[k]);
        width /= row[k].dtype == DITTO_C64 || row[k].dtype == DITTO_C128 ? 2 : 1;
        bool turned = e->big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
        if (row[k].dtype != e->row[k].dtype || ditto_tensor_bytes(&row[k]) != bytes)
            abort();
        for (size_t i = 0; i < bytes; i++) {
            uint8_t byte = at[turned ? i - i % width + (width - 1 - i % width) : i];
            if (found[i] != (row[k].dtype == DITTO_BOOL ? byte != 0 : byte))
                abort();
        }
        at += bytes;
    }
    e->rows++;
    return DITTO_OK;
}

static const char *write_file(const uint8_t *data, size_t size)
{
    static char name[48];
    static int descriptor = -1;
    if (descriptor < 0) {
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    }
    if (descriptor < 0 || pwrite(descriptor, data, size, 0) != (ssize_t)size ||
        ftruncate(descriptor, (off_t)size) != 0)
        abort();
    return name;
}

/* Returns the number of complete records between header and footer. Records begin `stride` bytes apart. */
static size_t count_rows(size_t size, size_t header, size_t footer, size_t record, size_t stride)
{
    size_t rows = 0;
    for (size_t at = header; at + record + footer <= size; at += stride)
        rows++;
    return rows;
}

static bool overlaps_within_elements(const ditto_tensor *row, uint32_t components, size_t record,
                                     size_t stride)
{
    size_t element = ditto_dtype_bytes(row[0].dtype);
    for (uint32_t k = 0; k < components; k++)
        if (ditto_dtype_bytes(row[k].dtype) != element)
            return false;
    return stride < record && stride % element != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ditto_tensor row[4] = { 0 };
    ditto_dataset *d;
    if (size < 4)
        return 0;
    ditto_fixed_options options = { .struct_size = sizeof options,
                                    .header_bytes = data[0] % 16,
                                    .footer_bytes = data[1] % 16,
                                    .big_endian = data[2] & 1,
                                    .stride_bytes = data[3] % 48 };
    uint32_t components = 1 + (data[2] >> 1) % 4;
    if (size < 4 + 2 * components)
        return 0;
    size_t record = 0;
    for (uint32_t k = 0; k < components; k++) {
        row[k].dtype = (ditto_dtype)(1 + data[4 + 2 * k] % 15);
        row[k].rank = 1;
        row[k].shape[0] = data[5 + 2 * k] % 16;
        record += ditto_tensor_bytes(&row[k]);
    }
    data += 4 + 2 * components;
    size -= 4 + 2 * components;
    const char *name = write_file(data, size);
    ditto_status status = ditto_dataset_from_fixed(&(ditto_files){ .names = &name, .num_names = 1 }, row,
                                                   components, &options, &d);
    size_t around = options.header_bytes + options.footer_bytes,
           stride = options.stride_bytes != 0 ? options.stride_bytes : record,
           rows = record > 0 ? count_rows(size, options.header_bytes, options.footer_bytes, record, stride)
                             : 0;
    bool whole = size >= around && (stride != record || rows * record == size - around);
    ditto_status expected = record == 0 || overlaps_within_elements(row, components, record, stride)
                                ? DITTO_ERR_INVALID
                            : !whole    ? DITTO_ERR_CORRUPT
                            : rows == 0 ? DITTO_ERR_INVALID
                                        : DITTO_OK;
    if (status != expected)
        abort();
    if (status != DITTO_OK)
        return 0;
    fuzz_accepted++;
    struct expected e = { .first = data + options.header_bytes,
                          .stride = stride,
                          .row = row,
                          .components = components,
                          .big = options.big_endian };
    if (ditto_dataset_reduce(d, compare, &e, 0) != DITTO_OK || e.rows != rows)
        abort();
    fuzz_again(d);
    assert_ok(ditto_dataset_destroy(d));
    return 0;
}
