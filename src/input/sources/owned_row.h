/* src/input/sources/owned_row.h - rows that hold their values, for sources that can't be read twice: one word, a block of memory with all
 * components one after the other, and the row's number before them. */
#ifndef DTI_OWNED_ROW_H
#define DTI_OWNED_ROW_H

#include "input/dataset.h"

struct dti_owned_row {
    uint64_t number; /* the source's own, for messages: in a generator's pass, from 0 */
    alignas(
        16) char data[]; /* component k at the sum of the bytes, each rounded up to 16, of those before it */
};

/* A block for a row of the dataset, in *row; NO_MEMORY. */
ditto_status dti_owned_row_new(const ditto_dataset *dataset, uint64_t number, uint64_t *row);
struct dti_owned_row *dti_owned_row_of(const uint64_t *row);
/* Where the components of a block are. */
void dti_owned_row_components(const ditto_dataset *dataset, const uint64_t *row, void **component);

/* For a kind's table. */
ditto_status dti_owned_row_fill(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                                size_t count, void *const *destination);
void dti_owned_row_drop(const ditto_dataset *dataset, const uint64_t *row);
ditto_status dti_owned_row_save(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to);
ditto_status dti_owned_row_load(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);

#endif
