/* src/input/sources/files/window.h - reads files, or the contents of compressed files, from front to back, in
 * large reads at aligned offsets. Cursors use it to find where rows begin. */
#ifndef DTI_WINDOW_H
#define DTI_WINDOW_H

#include "input/dataset.h"
#include "input/sources/files/files.h"
#include "input/sources/files/gzip.h"

/* The most bytes of one read. Reads of large files end at multiples of it, except the last. */
#define DTI_WINDOW_BYTES ((size_t)256 << 10)

struct dti_window {
    struct dti_files *files;
    struct dti_pass pass;
    struct dti_gzip *gzip; /* NULL if the files are not compressed */
    uint32_t file;         /* files->count when all have been read */
    uint64_t at;           /* offset in the file, or in its contents, of the next byte */

    /* [capacity], aligned. The bytes from `at` on are at [used, filled). */
    char *buffer;
    size_t capacity, used, filled;
    bool end; /* true if the buffer reaches to the end of the file or its contents */
};

/* Opens a window, whose members are all zero, before the first byte of the first file that the pass reads.
 * Returns DITTO_ERR_NO_MEMORY. If the files are compressed, also the errors of dti_gzip_open. */
ditto_status dti_window_open(struct dti_window *window, struct dti_files *files, bool packed,
                             const struct dti_pass *pass);
void dti_window_close(struct dti_window *window);

/* Reads until the buffer has at least `bytes` from the position on, or the rest of the file. Sets *data and
 * *length to the bytes in the buffer. They are valid until the next dti_window_need or dti_window_skip.
 * Returns DITTO_ERR_NO_MEMORY, DITTO_ERR_CLOSED, or the errors of dti_files_read or dti_gzip_read. */
ditto_status dti_window_need(struct dti_window *window, size_t bytes, const char **data, size_t *length);

/* Moves the position forward by `bytes`, which are in the buffer. */
void dti_window_take(struct dti_window *window, size_t bytes);

/* Moves the position forward by `bytes`, which need not be in the buffer. If the bytes are not all in the
 * buffer, they are not read. Sets *whole to false if the file does not have all of these bytes. The position
 * is then the end of the file.
 * Returns the errors of dti_window_need. For files that are not compressed. */
ditto_status dti_window_skip(struct dti_window *window, uint64_t bytes, bool *whole);

/* Moves the position to the first byte of the next file of the pass. */
void dti_window_next_file(struct dti_window *window);

/* Returns true if all files of the pass have been read. */
static inline bool dti_window_ended(const struct dti_window *window)
{
    return window->file >= window->files->count;
}

/* Write the position into a state and read it back. The contents of a compressed file are read again from
 * their start up to the position. This returns the errors of dti_window_need, and DITTO_ERR_CORRUPT if they
 * end before it. */
void dti_window_save(const struct dti_window *window, struct dti_bytes *to);
ditto_status dti_window_restore(struct dti_window *window, struct dti_bytes_reader *from);

#endif
