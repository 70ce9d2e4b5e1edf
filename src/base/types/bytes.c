/* src/base/types/bytes.c - writes and reads states as bytes; see bytes.h. */
#include "base/types/bytes.h"
#include "base/errors/status.h"

#include <stdlib.h>
#include <string.h>

static bool ensure_capacity(struct dti_bytes *to, size_t bytes)
{
    if (to->refused != 0 || bytes <= to->capacity - to->length)
        return to->refused == 0;
    size_t capacity = to->capacity != 0 ? to->capacity : 256;
    while (capacity - to->length < bytes && capacity < SIZE_MAX / 2)
        capacity *= 2;
    char *grown = capacity - to->length < bytes ? NULL : realloc(to->data, capacity);
    if (grown == NULL) {
        to->refused = bytes < SIZE_MAX - to->length ? to->length + bytes : SIZE_MAX;
        return false;
    }
    to->data = grown;
    to->capacity = capacity;
    return true;
}

void dti_bytes_put(struct dti_bytes *to, const void *data, size_t bytes)
{
    if (bytes == 0 || !ensure_capacity(to, bytes))
        return;
    memcpy(to->data + to->length, data, bytes);
    to->length += bytes;
}

void dti_bytes_put_u64(struct dti_bytes *to, uint64_t number)
{
    unsigned char text[10];
    size_t length = 0;
    for (; number >= 0x80; number >>= 7)
        text[length++] = (unsigned char)(number | 0x80);
    text[length++] = (unsigned char)number;
    dti_bytes_put(to, text, length);
}

void dti_bytes_free(struct dti_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct dti_bytes){ 0 };
}

ditto_status dti_bytes_status(const struct dti_bytes *bytes)
{
    if (bytes->refused == 0)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a state or message of at least %zu bytes",
                    bytes->refused);
}

void dti_bytes_get(struct dti_bytes_reader *from, void *data, size_t bytes)
{
    if (from->failed || bytes > (size_t)(from->end - from->at)) {
        from->failed = true;
        memset(data, 0, bytes);
        return;
    }
    memcpy(data, from->at, bytes);
    from->at += bytes;
}

uint64_t dti_bytes_get_u64(struct dti_bytes_reader *from)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned char byte;
        dti_bytes_get(from, &byte, 1);
        if (from->failed || (shift == 63 && byte > 1))
            break;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
    from->failed = true;
    return 0;
}

uint64_t dti_bytes_get_at_most(struct dti_bytes_reader *from, uint64_t most)
{
    uint64_t number = dti_bytes_get_u64(from);
    if (number <= most)
        return number;
    from->failed = true;
    return 0;
}

ditto_status dti_bytes_reader_status(const struct dti_bytes_reader *from)
{
    return from->failed ? DTI_FAIL(DITTO_ERR_CORRUPT, "a state or message is truncated or damaged")
                        : DITTO_OK;
}
