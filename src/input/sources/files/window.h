/* src/input/sources/files/window.h - going through files from front to back, in large reads at aligned offsets: how sequencers find where rows
 * begin. */
#ifndef DTI_WINDOW_H
#define DTI_WINDOW_H

#include "input/dataset.h"
#include "input/sources/files/files.h"

#define DTI_WINDOW_BYTES ((size_t)256 << 10) /* of a read; also what offsets are aligned to */

struct dti_window {
    struct dti_files *files;
    struct dti_pass pass;
    uint32_t file; /* files->count: all have been read */
    uint64_t at;   /* offset in it of the next byte */
    char *buffer;  /* [room], aligned; [used, filled) are the bytes from `at` on */
    size_t capacity, used, filled;
    bool end; /* of the file is in the buffer */
};

/* Zeroed before. Stands before the first byte of the first file that the pass reads. NO_MEMORY. */
ditto_status dti_window_open(struct dti_window *window, struct dti_files *files, const struct dti_pass *pass);
void dti_window_close(struct dti_window *window);

/* At least `bytes` bytes from the present place on are in the buffer, or all that the file has left. *data, *length: what is there, up to
 * the next dti_window_need. NO_MEMORY; IO, also where there is less because the file became shorter. */
ditto_status dti_window_need(struct dti_window *window, size_t bytes, const char **data, size_t *length);
void dti_window_take(struct dti_window *window,
                     size_t bytes); /* that were in the buffer: goes on behind them */
/* Goes on `bytes` further, in the buffer or not: what lies beyond it is passed over without being read. *whole: the file has so many;
 * else the place is where it ends. IO. */
ditto_status dti_window_skip(struct dti_window *window, uint64_t bytes, bool *whole);
/* Stands before the first byte of the next file of the pass. */
void dti_window_next_file(struct dti_window *window);
static inline bool dti_window_ended(const struct dti_window *window) /* there is no further file */
{
    return window->file >= window->files->count;
}
/* The place, as words of a state; and back. */
void dti_window_save(const struct dti_window *window, struct dti_bytes *to);
void dti_window_restore(struct dti_window *window, struct dti_bytes_reader *from);

#endif
