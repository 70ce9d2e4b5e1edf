/* src/input/sources/counted.h - sources whose rows are numbers from 0 up to a count that is known: arrays, ranges, .npy files. */
#ifndef DTI_COUNTED_H
#define DTI_COUNTED_H

#include "input/dataset.h"

struct dti_counted {    /* a kind's own begins with it */
    ditto_dataset base; /* first; row_words is 1 */
    uint64_t rows;
};

/* The half of a kind's table that chooses, and takes rows out of a saved state. */
ditto_status dti_counted_open(const ditto_dataset *dataset, const struct dti_pass *pass,
                              struct dti_cursor **out);
ditto_status dti_counted_next(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got);
void dti_counted_close(struct dti_cursor *cursor);
ditto_status dti_counted_save(struct dti_cursor *cursor, struct dti_bytes *to);
ditto_status dti_counted_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from);
/* CORRUPT: the source has no such row. */
ditto_status dti_counted_load_row(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);

#endif
