/* src/input/bytes.h - a state written as bytes, and read back: small numbers take few bytes (LEB128). */
#ifndef DTI_BYTES_H
#define DTI_BYTES_H

#include "base/base.h"

struct dti_bytes { /* zeroed: empty */
    char *data;
    size_t length, capacity;
    bool failed; /* no memory: all later puts do nothing */
};
void dti_bytes_put(struct dti_bytes *to, const void *data, size_t bytes);
void dti_bytes_put_u64(struct dti_bytes *to, uint64_t number);
void dti_bytes_free(struct dti_bytes *bytes);
ditto_status dti_bytes_status(const struct dti_bytes *bytes); /* NO_MEMORY when a put failed */

/* FNV-1a, 64 bits: finds what was damaged by chance, protects from nothing else. */
uint64_t dti_bytes_hash(const char *data, size_t bytes);

struct dti_bytes_reader {
    const char *at, *end;
    bool failed; /* something was missing or wrong: all later gets give zeros */
};
void dti_bytes_get(struct dti_bytes_reader *from, void *data, size_t bytes);
uint64_t dti_bytes_get_u64(struct dti_bytes_reader *from);
/* A number that must not be above `most`: else failed, and 0. */
uint64_t dti_bytes_get_below(struct dti_bytes_reader *from, uint64_t most);
ditto_status dti_bytes_reader_status(const struct dti_bytes_reader *from); /* CORRUPT when a get failed */

#endif
