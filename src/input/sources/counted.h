/* src/input/sources/counted.h - sources whose rows are the numbers below a known count: arrays, ranges,
 * .npy files. */
#ifndef DTI_COUNTED_H
#define DTI_COUNTED_H

#include "input/dataset.h"

/* The dataset of such a kind begins with this struct. */
struct dti_counted {
    ditto_dataset base; /* first; row_words is 1 */
    uint64_t rows;
};

/* The functions of the kind's table that choose rows. */
ditto_status dti_counted_open(const ditto_dataset *dataset, const struct dti_pass *pass,
                              struct dti_cursor **out);
ditto_status dti_counted_next(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got);
void dti_counted_close(struct dti_cursor *cursor);
ditto_status dti_counted_save(struct dti_cursor *cursor, struct dti_bytes *to);
ditto_status dti_counted_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from);

/* Reads a row from a saved state. Returns DITTO_ERR_CORRUPT if the source has no such row. */
ditto_status dti_counted_load_row(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);

#endif
