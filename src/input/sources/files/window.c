/* src/input/sources/files/window.c - reads files, or their unpacked contents, from front to back. */
#include "input/sources/files/window.h"
#include "base/errors/status.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT ((size_t)4096)

static void move_to(struct dti_window *w, uint32_t file, uint64_t at)
{
    w->file = file;
    w->at = at;
    w->used = w->filled = 0;
    w->end = false;
    if (w->gzip != NULL && file < w->files->count)
        dti_gzip_start(w->gzip, file);
}

ditto_status dti_window_open(struct dti_window *w, struct dti_files *files, bool packed,
                             const struct dti_pass *pass)
{
    w->files = files;
    w->pass = *pass;
    if (packed)
        DTI_TRY(dti_gzip_open(files, pass->closing, &w->gzip));
    w->buffer = aligned_alloc(ALIGNMENT, ALIGNMENT);
    if (w->buffer == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read files");
    w->capacity = ALIGNMENT;
    move_to(w, dti_files_next(files, 0, pass->first_file, pass->shards, pass->shard), 0);
    return DITTO_OK;
}

void dti_window_close(struct dti_window *w)
{
    free(w->buffer);
    w->buffer = NULL;
    dti_gzip_close(w->gzip);
    w->gzip = NULL;
}

void dti_window_next_file(struct dti_window *w)
{
    move_to(w, dti_files_next(w->files, w->file + 1, w->pass.first_file, w->pass.shards, w->pass.shard), 0);
}

/* Moves the bytes in the buffer to its front and makes space for `more` bytes after them. */
static ditto_status ensure_capacity(struct dti_window *w, size_t more)
{
    size_t capacity = w->capacity;
    if (w->used > 0)
        memmove(w->buffer, w->buffer + w->used, w->filled - w->used);
    w->filled -= w->used;
    w->used = 0;
    while (capacity - w->filled < more)
        capacity *= 2; /* no overflow, because callers have limits far below SIZE_MAX */
    if (capacity == w->capacity)
        return DITTO_OK;
    char *grown = aligned_alloc(ALIGNMENT, capacity);
    if (grown == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %zu bytes to read %s", capacity,
                        w->files->file[w->file].name);
    memcpy(grown, w->buffer, w->filled);
    free(w->buffer);
    w->buffer = grown;
    w->capacity = capacity;
    return DITTO_OK;
}

static ditto_status read_more(struct dti_window *w)
{
    if (w->gzip != NULL) {
        size_t got;
        DTI_TRY(ensure_capacity(w, DTI_WINDOW_BYTES));
        DTI_TRY(dti_gzip_read(w->gzip, w->buffer + w->filled, DTI_WINDOW_BYTES, &got));
        w->filled += got;
        w->end = got < DTI_WINDOW_BYTES;
        return DITTO_OK;
    }
    uint64_t from = w->at + (w->filled - w->used), known = w->files->file[w->file].bytes;
    /* The read ends at a multiple of DTI_WINDOW_BYTES, or one byte after the known end of the file, so that
     * one read also finds the end, but it has at least ALIGNMENT bytes unless it would pass such a
     * multiple. */
    uint64_t piece = DTI_WINDOW_BYTES - from % DTI_WINDOW_BYTES;
    uint64_t left = from < known ? known - from + 1 : 1;
    left = left < ALIGNMENT ? ALIGNMENT : left;
    size_t wanted = (size_t)(piece < left ? piece : left), got;
    DTI_TRY(ensure_capacity(w, wanted));
    DTI_TRY(dti_files_read(w->files, w->file, from, w->buffer + w->filled, wanted, &got));
    w->filled += got;
    w->end = got < wanted;
    if (!w->end)
        dti_files_want(w->files, w->file, from + got, 2 * DTI_WINDOW_BYTES);
    return DITTO_OK;
}

ditto_status dti_window_need(struct dti_window *w, size_t bytes, const char **data, size_t *length)
{
    while (w->filled - w->used < bytes && !w->end) {
        DTI_TRY(dti_closing_check(w->pass.closing));
        DTI_TRY(read_more(w));
    }
    *data = w->buffer + w->used;
    *length = w->filled - w->used;
    return DITTO_OK;
}

void dti_window_take(struct dti_window *w, size_t bytes)
{
    w->used += bytes;
    w->at += bytes;
}

ditto_status dti_window_skip(struct dti_window *w, uint64_t bytes, bool *whole)
{
    uint64_t known = w->files->file[w->file].bytes;
    *whole = true;
    if (bytes > w->filled - w->used && w->at <= known && bytes <= known - w->at) {
        move_to(w, w->file, w->at + bytes);
        return DITTO_OK;
    }
    /* The bytes are in the buffer, or some are beyond the end of the file. */
    while (bytes > 0) {
        const char *data;
        size_t length;
        DTI_TRY(dti_window_need(w, 1, &data, &length));
        *whole = length > 0;
        if (length == 0)
            return DITTO_OK;
        size_t step = bytes < length ? (size_t)bytes : length;
        dti_window_take(w, step);
        bytes -= step;
    }
    return DITTO_OK;
}

void dti_window_save(const struct dti_window *w, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, w->file);
    dti_bytes_put_u64(to, w->at);
}

ditto_status dti_window_restore(struct dti_window *w, struct dti_bytes_reader *from)
{
    uint32_t file = (uint32_t)dti_bytes_get_at_most(from, w->files->count);
    uint64_t at = dti_bytes_get_at_most(from, INT64_MAX - UINT32_MAX); /* no file is longer */
    DTI_TRY(dti_bytes_reader_status(from));
    if (w->gzip == NULL && file < w->files->count && at > w->files->file[file].bytes)
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s: it ends before offset %llu, where the state was saved",
                        w->files->file[file].name, (unsigned long long)at);
    move_to(w, file, w->gzip == NULL ? at : 0);
    while (w->at < at && !dti_window_ended(w)) { /* a position in a compressed file cannot be sought */
        const char *data;
        size_t length;
        DTI_TRY(dti_window_need(w, 1, &data, &length));
        if (length == 0)
            return DTI_FAIL(DITTO_ERR_CORRUPT,
                            "%s: its contents end at offset %llu, but were read up to offset %llu before the "
                            "state was saved: the file has changed",
                            w->files->file[file].name, (unsigned long long)w->at, (unsigned long long)at);
        dti_window_take(w, at - w->at < length ? (size_t)(at - w->at) : length);
    }
    return DITTO_OK;
}
