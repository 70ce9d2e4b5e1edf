/* tests/fuzz/fuzz_hdf5.c - HDF5 parts of checkpoints with any bytes at any offset. If a file is accepted,
 * every value must be inside the file and readable, and no name may be empty.
 *
 * The input is a list of edits of a valid file. Each edit has three bytes: two bytes of an offset in the HDF5
 * part, modulo its length, and the byte that is stored at this offset. With the empty input the file is
 * valid. */
#include "fuzz/fuzz.h"
#include "support/support.h"

#include "base/types/types.h"
#include "vars/checkpoint/files/checkpoint_files.h"
#include "vars/checkpoint/hdf5/hdf5.h"

#include <sys/mman.h>
#include <unistd.h>

const char *const fuzz_seeds[] = { "", "ab1", "Az\377", "~~~", NULL };
const char *const fuzz_words[] = { "\377\377\377", "\1\1\377", "\4\10\1", "\2\20\2", "\11\1\10", NULL };
unsigned long fuzz_accepted;

static int file = -1;
static unsigned char *valid;
static size_t valid_bytes, file_bytes;

/* The file has a group with several nodes, a group inside it, and all kinds of attributes. */
static void make_file(void)
{
    struct dti_contents c = { .step = 3, .version = strdup("0.1.0") };
    struct dti_skeleton skeleton;
    const ditto_attribute attributes[] = { { .name = "t", .kind = DITTO_ATTRIBUTE_TEXT, .text = "text" },
                                           { .name = "i", .kind = DITTO_ATTRIBUTE_INTEGER, .integer = 5 },
                                           { .name = "r", .kind = DITTO_ATTRIBUTE_REAL, .real = 0.5 } };
    for (int i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof name, i % 4 == 0 ? "g/h/v%d" : "v%d", i);
        struct dti_contents_entry *entry = dti_contents_add(&c, name);
        entry->spec = (ditto_tensor){ .dtype = (ditto_dtype)(1 + i % DTI_NUM_DTYPES),
                                      .rank = (uint32_t)i % 3,
                                      .shape = { i % 3 > 0 ? 2 : 0, i % 3 > 1 ? 3 : 0 } };
        entry->synchronization = DITTO_ON_WRITE;
        entry->aggregation = DITTO_AGGREGATE_SUM;
        entry->own = i % 5 == 0;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (dti_contents_add_attribute(&c, &attributes[i]) != DITTO_OK)
            exit(2);
    if (dti_hdf5_lay_out(&c, &skeleton) != DITTO_OK)
        exit(2);
    valid = skeleton.bytes;
    valid_bytes = skeleton.size;
    file_bytes = (size_t)skeleton.file_bytes;
    file = memfd_create("fuzz", 0);
    if (file < 0 || ftruncate(file, (off_t)file_bytes) != 0 ||
        pwrite(file, valid, valid_bytes, DTI_USER_BLOCK) != (ssize_t)valid_bytes)
        exit(2);
    dti_contents_free(&c);
}

static void put(size_t at, const unsigned char *byte)
{
    if (pwrite(file, byte, 1, (off_t)(DTI_USER_BLOCK + at)) != 1)
        exit(2);
}

/* Reads every value of a file that was accepted. */
static void read_values(const struct dti_contents *c)
{
    for (size_t i = 0; i < c->entries; i++) {
        const struct dti_contents_entry *entry = &c->entry[i];
        size_t bytes = ditto_tensor_bytes(&entry->spec);
        void *value = malloc(bytes + 1);
        if (entry->name[0] == '\0' || (bytes != 0 && entry->offset + bytes > file_bytes) ||
            dti_checkpoint_file_read(file, value, bytes, entry->offset, "fuzz") != DITTO_OK)
            abort();
        free(value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dti_contents found;
    if (file < 0)
        make_file();
    size_t edits = size / 3;
    for (size_t i = 0; i < edits; i++)
        put((data[3 * i] * 256u + data[3 * i + 1]) % valid_bytes, &data[3 * i + 2]);
    ditto_status status = dti_hdf5_list(file, file_bytes, "fuzz", &found);
    if (status == DITTO_OK) {
        fuzz_accepted++;
        read_values(&found);
    } else if (status != DITTO_ERR_CORRUPT && status != DITTO_ERR_UNSUPPORTED)
        abort();
    dti_contents_free(&found);
    for (size_t i = 0; i < edits; i++) {
        size_t at = (data[3 * i] * 256u + data[3 * i + 1]) % valid_bytes;
        put(at, &valid[at]);
    }
    return 0;
}
