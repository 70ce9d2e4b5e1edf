/* src/input/chunk.h - reads the values of several rows together and returns them one by one. One thread uses
 * a chunk. */
#ifndef DTI_CHUNK_H
#define DTI_CHUNK_H

#include "input/dataset.h"

struct dti_chunk {
    const ditto_dataset *dataset;
    size_t most;                           /* the largest number of rows in the chunk */
    char *values;                          /* all rows, one component after the other */
    void *component[DITTO_MAX_COMPONENTS]; /* [most] rows each */

    /* True if the last dti_chunk_fill could read all of its rows. */
    bool all_read;
};

/* Allocates memory for at least one and at most `wanted` rows. There are only as many as stay in a core's
 * cache until they are used. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_chunk_make(struct dti_chunk *chunk, const ditto_dataset *dataset, size_t wanted);

/* A chunk of zeros is allowed. */
void dti_chunk_free(struct dti_chunk *chunk);

/* Reads `count` rows, at most chunk->most. If a row cannot be read, no error is reported here. dti_chunk_row
 * then reads each row by itself, so that the error is reported for the right row. */
void dti_chunk_fill(struct dti_chunk *chunk, struct dti_reader *reader, struct dti_rows rows, size_t count);

/* Sets out[k] to a view of component k of row `index` of the last dti_chunk_fill, which had the same `rows`.
 * The views are valid until the next call with this chunk. Returns the error of a row that cannot be read. */
ditto_status dti_chunk_row(struct dti_chunk *chunk, struct dti_reader *reader, struct dti_rows rows,
                           size_t index, ditto_tensor *out);

#endif
