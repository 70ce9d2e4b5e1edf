/* src/input/sources/counted.h - sources that know the number of their rows: arrays, ranges and .npy files. A
 * chosen row is one word, the number of the row in the source. */
#ifndef DTI_COUNTED_H
#define DTI_COUNTED_H

#include "input/dataset.h"

/* Each dataset of such a source begins with this struct. */
struct dti_counted {
    ditto_dataset base; /* first; row_words is 1 */
    uint64_t rows;
};

/* The cursor over such a source. `rows` is 0 if another pipeline reads the only file of the source. */
struct dti_counted_cursor {
    struct dti_cursor base; /* first */
    uint64_t next, rows;
};

/* The functions of the source's table that choose rows. */
ditto_status dti_counted_open(struct dti_cursor *cursor, const struct dti_pass *pass);
ditto_status dti_counted_next(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got);
ditto_status dti_counted_save(struct dti_cursor *cursor, struct dti_bytes *to);
ditto_status dti_counted_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from);

/* Reads a row from a saved state. Returns DITTO_ERR_CORRUPT if the source has no such row. */
ditto_status dti_counted_load_row(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);

#endif
