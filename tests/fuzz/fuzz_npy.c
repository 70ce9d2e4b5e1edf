/* tests/fuzz/fuzz_npy.c - .npy files of any bytes. If a file is accepted, its dtype and shape must be those
 * that a slow reader in this file finds by searching the header for its three keys, and its rows must be the
 * bytes after the header.
 *
 * The input begins with a byte of options. Then come the text of a header up to "\n", for which the target
 * writes a valid magic number and length, and the data. The lowest two bits of the options choose the version
 * of the format. With option bit 4 the rest of the input is the whole file, in which '~' stands for the byte
 * 0. */
#include "fuzz/fuzz.h"
#include "support/support.h"

#include <ditto/source.h>

#include <sys/mman.h>
#include <unistd.h>

const char *const fuzz_seeds[] = {
    "0{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }   \n012345678901234567890123",
    "1{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n012",
    "2{\"shape\": (2L, 2L), \"descr\": \">u2\", 'fortran_order': False}\n01234567",
    "0{'descr': '=c16', 'fortran_order': True, 'shape': (1,), }\n0123456789abcdef",
    "0{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3, 1), }\n012345",
    "0{'descr': '|V2', 'fortran_order': True, 'shape': (1, np.int64(3), 1), }\n012345",
    "1{'descr': 'bfloat16', 'fortran_order': False, 'shape': (np.int32(3),), }\n012345",
    "4\x93NUMPY\x01~=~{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }   \n012345",
    "4\x93NUMPY\x02~=~~~{'descr': '>i8', 'fortran_order': False, 'shape': (1,), }   \n01234567",
    NULL,
};
const char *const fuzz_words[] = {
    "'descr': ",  "'<f4'",
    "'>f8'",      "'|i1'",
    "'<u4'",      "'fortran_order': ",
    "True",       "False",
    "'shape': ",  "(3, 2)",
    "(1,)",       "()",
    ", ",         "L",
    "0",          "18446744073709551615",
    "4294967296", "\"",
    "{",          "}",
    "[",          "\n",
    "~",          "\x93NUMPY",
    "'V2'",       "np.int64(2)",
    NULL,
};
unsigned long fuzz_accepted;

static uint8_t file[8192];
static size_t file_bytes;

static void make_file(const uint8_t *data, size_t size)
{
    unsigned version = 1 + data[0] % 4 % 3;
    bool raw = (data[0] & 4) != 0;
    data++;
    size--;
    file_bytes = 0;
    if (!raw) {
        const uint8_t *line = memchr(data, '\n', size);
        size_t text = line != NULL ? (size_t)(line - data) + 1 : size;
        memcpy(file, "\x93NUMPY", 6);
        file[6] = (uint8_t)version;
        file[7] = 0;
        for (file_bytes = 8; file_bytes < (version == 1 ? 10 : 12); file_bytes++)
            file[file_bytes] = (uint8_t)(text >> 8 * (file_bytes - 8));
    }
    for (size_t i = 0; i < size; i++)
        file[file_bytes + i] = raw && data[i] == '~' ? 0 : data[i];
    file_bytes += size;
}

/* Returns the text after a key, ':' and white space. The header must have the key exactly once. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (at == NULL || strstr(at + 1, key) != NULL)
        abort();
    at += strlen(key) + 1;
    at += strspn(at, " \t\r\n");
    if (*at++ != ':')
        abort();
    return at + strspn(at, " \t\r\n");
}

struct expected {
    const uint8_t *at;
    size_t row_bytes, width, rows;
    bool turned, boolean;
};

/* Reads what is expected from a header that was accepted, and compares it with the dataset. */
static void expect(struct expected *e, const ditto_element_spec *spec)
{
    static char header[sizeof file];
    size_t start = file[6] == 1 ? 10 : 12, text = file[8] | (size_t)file[9] << 8;
    if (memcmp(file, "\x93NUMPY", 6) != 0 || file[6] < 1 || file[6] > 3 || file[7] != 0 ||
        start + text > file_bytes)
        abort();
    memcpy(header, file + start, text);
    header[text] = '\0';
    if (strlen(header) != text)
        abort();
    const char *descr = value_of(header, "descr") + 1, *shape = value_of(header, "shape"),
               *order = value_of(header, "fortran_order");
    if (strncmp(descr, "bfloat16", 8) == 0)
        descr = "<V2";
    size_t count = 1, first = 0;
    uint32_t rank = 0, above_one = 0;
    for (shape++; *shape != ')'; shape++) {
        bool named = strncmp(shape, "np.int", 6) == 0;
        shape += named ? strlen("np.int64(") : 0;
        if (*shape >= '0' && *shape <= '9') {
            char *end;
            size_t length = strtoull(shape, &end, 10);
            if (rank == 0)
                first = length;
            else if (rank > spec->component[0].rank || spec->component[0].shape[rank - 1] != length)
                abort();
            count *= rank > 0 ? length : 1;
            above_one += length != 1;
            rank++;
            shape = named ? end : end - 1;
        }
    }
    size_t element = strtoul(descr + 2, NULL, 10);
    ditto_dtype dtype = spec->component[0].dtype;
    if (rank != spec->component[0].rank + 1 || first == 0 || element != ditto_dtype_bytes(dtype) ||
        strchr("<>=|", descr[0]) == NULL || strchr("fciubV", descr[1]) == NULL ||
        (descr[1] == 'V' ? dtype != DITTO_BF16 : ditto_dtype_name(dtype)[0] != descr[1]) ||
        (*order == 'T' && above_one > 1))
        abort();
    e->width = descr[1] == 'c' ? element / 2 : element;
    e->boolean = descr[1] == 'b';
    e->turned = descr[0] == '>' && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    e->row_bytes = count * element;
    e->rows = first;
    e->at = file + start + text;
    if (e->row_bytes > 0 && (file_bytes - start - text) / e->row_bytes < first)
        abort();
}

static ditto_status compare(const ditto_tensor *row, void *state)
{
    struct expected *e = state;
    const uint8_t *found = row[0].data;
    if (e->rows-- == 0)
        abort();
    for (size_t i = 0; i < e->row_bytes; i++) {
        uint8_t byte = e->at[e->turned ? i - i % e->width + (e->width - 1 - i % e->width) : i];
        if (found[i] != (e->boolean ? byte != 0 : byte))
            abort();
    }
    e->at += e->row_bytes;
    /* There may be 2^60 rows without bytes, of which only one is read. */
    return e->rows > 0 && e->row_bytes == 0 ? DITTO_END_OF_INPUT : DITTO_OK;
}

static const char *write_file(void)
{
    static char name[48];
    static int descriptor = -1;
    if (descriptor < 0) {
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    }
    if (descriptor < 0 || pwrite(descriptor, file, file_bytes, 0) != (ssize_t)file_bytes ||
        ftruncate(descriptor, (off_t)file_bytes) != 0)
        abort();
    return name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ditto_element_spec spec;
    struct expected e;
    ditto_dataset *d;
    if (size < 1 || size > sizeof file / 2)
        return 0;
    make_file(data, size);
    const char *name = write_file();
    ditto_status status = ditto_dataset_from_npy(&name, 1, &d);
    if (status != DITTO_OK) {
        if (status != DITTO_ERR_CORRUPT && status != DITTO_ERR_UNSUPPORTED && status != DITTO_ERR_INVALID)
            abort();
        return 0;
    }
    fuzz_accepted++;
    if (ditto_dataset_spec(d, &spec) != DITTO_OK)
        abort();
    expect(&e, &spec);
    size_t rows = e.rows;
    if (ditto_dataset_reduce(d, compare, &e, 0) != DITTO_OK || (e.rows != 0 && e.row_bytes != 0) || rows == 0)
        abort();
    fuzz_again(d);
    assert_ok(ditto_dataset_destroy(d));
    return 0;
}
