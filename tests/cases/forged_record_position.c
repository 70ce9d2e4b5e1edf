/* tests/cases/forged_record_position.c - a state names records of a TFRecord file by offset and length. A
 * forged length is not compared with max_bytes, and the record is written beyond its place in the batch.
 *     forged_record_position trust | check
 * With `check`, the file is made so that the checksum of the longer record is right. */
#include "forge.h"

#include <string.h>
#include <sys/mman.h>

enum { DATA = 16, RECORD = DATA + 16, RECORDS = 64, LONG_RECORD = 12 * RECORD };

static void put_u32(unsigned char *at, uint32_t number)
{
    memcpy(at, &number, sizeof number);
}

/* Writes records of DATA bytes. Record 12 begins with the checksum of a record of LONG_RECORD bytes. */
static void write_file(int file)
{
    static unsigned char bytes[RECORDS * RECORD];
    for (int i = 0; i < RECORDS; i++) {
        unsigned char *record = bytes + i * RECORD, *data = record + 12;
        *record = DATA;
        put_u32(record + 8, dti_crc32c_masked(dti_crc32c(record, 8)));
        if (i == 12)
            put_u32(data, dti_crc32c_masked(dti_crc32c(bytes + 12, LONG_RECORD)));
        put_u32(data + DATA, dti_crc32c_masked(dti_crc32c(data, DATA)));
    }
    if (write(file, bytes, sizeof bytes) != sizeof bytes)
        exit(NOT_TRIED);
}

int main(int argc, char **argv)
{
    /* A file in memory, because the program crashes and could not remove another one. */
    int file = memfd_create("records", 0);
    char path[32];
    const char *name = path;
    ditto_tfrecord_options options = DITTO_TFRECORD_OPTIONS_INIT;
    ditto_dataset *records;
    write_file(file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    options.max_bytes = DATA;
    options.trust = argc < 2 || strcmp(argv[1], "check") != 0;
    MUST(ditto_dataset_from_tfrecord(&(ditto_files){ .names = &name, .num_names = 1 }, &options, &records));
    /* Numbers 8 and 9 are offset and length of the first row that was chosen and not taken. */
    return continue_forged(records, (struct forgery[]){ { 8, 0 }, { 9, LONG_RECORD } }, 2);
}
