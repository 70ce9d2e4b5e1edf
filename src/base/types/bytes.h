/* src/base/types/bytes.h - writes a state as bytes and reads it back. Numbers are written in LEB128, in which
 * small numbers take few bytes. */
#ifndef DTI_BYTES_H
#define DTI_BYTES_H

#include <ditto/status.h>

#include <stdbool.h>

/* A growing array of bytes. It is empty when all members are zero. */
struct dti_bytes {
    char *data;
    size_t length, capacity;

    /* The length for which there was no memory, or 0. After a refusal all puts do nothing. */
    size_t refused;
};
void dti_bytes_put(struct dti_bytes *to, const void *data, size_t bytes);
void dti_bytes_put_u64(struct dti_bytes *to, uint64_t number);
void dti_bytes_free(struct dti_bytes *bytes);

/* Returns DITTO_ERR_NO_MEMORY if a put has failed. */
ditto_status dti_bytes_status(const struct dti_bytes *bytes);

struct dti_bytes_reader {
    const char *at, *end;

    /* True if bytes were missing or wrong. All later gets return zeros. */
    bool failed;
};
void dti_bytes_get(struct dti_bytes_reader *from, void *data, size_t bytes);
uint64_t dti_bytes_get_u64(struct dti_bytes_reader *from);

/* Reads a number that must be at most `most`. Otherwise the reader fails, and the result is 0. */
uint64_t dti_bytes_get_at_most(struct dti_bytes_reader *from, uint64_t most);

/* Returns DITTO_ERR_CORRUPT if a get has failed. */
ditto_status dti_bytes_reader_status(const struct dti_bytes_reader *from);

#endif
