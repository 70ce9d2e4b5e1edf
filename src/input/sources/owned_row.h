/* src/input/sources/owned_row.h - rows that hold their values, for sources that cannot be read twice. A row
 * here is a pointer to a block that holds its number and values. */
#ifndef DTI_OWNED_ROW_H
#define DTI_OWNED_ROW_H

#include "base/platform.h"
#include "input/dataset.h"

struct dti_owned_row {
    /* The number that the source gives the row. It is used in messages. A generator counts from 0 in each
     * pass. */
    uint64_t number;

    /* The components, one after the other. Each has its size rounded up to a multiple of 16 bytes. */
    alignas(16) char data[];
};

/* Allocates a block for a row of the dataset and sets *row. Returns DITTO_OK or DITTO_ERR_NO_MEMORY. */
ditto_status dti_owned_row_new(const ditto_dataset *dataset, uint64_t number, uint64_t *row);

/* Returns the block of a row. */
struct dti_owned_row *dti_owned_row_block(const uint64_t *row);

/* Sets component[k] to the address of component k in the row's block. */
void dti_owned_row_components(const ditto_dataset *dataset, const uint64_t *row, void **component);

/* Entries of struct dti_dataset_kind for such sources. */
ditto_status dti_owned_row_fill(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                                size_t count, void *const *destination);
void dti_owned_row_drop(const ditto_dataset *dataset, const uint64_t *row);
ditto_status dti_owned_row_save(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to);
ditto_status dti_owned_row_load(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from);

#endif
