/* src/input/chunk.h - the values of some rows at a time, read together and looked at one by one. Used by one thread. */
#ifndef DTI_CHUNK_H
#define DTI_CHUNK_H

#include "input/dataset.h"

struct dti_chunk {
    const ditto_dataset *dataset;
    size_t most;                           /* rows at a time */
    char *values;                          /* of them, one component after the other */
    void *component[DITTO_MAX_COMPONENTS]; /* [most] rows each */
    bool together;                         /* the rows of the last dti_chunk_fill could be read all */
};

/* As many rows as stay in a core's cache until they are looked at, one at least; at most `wanted` of them. NO_MEMORY. */
ditto_status dti_chunk_make(struct dti_chunk *chunk, const ditto_dataset *dataset, size_t wanted);
void dti_chunk_free(struct dti_chunk *chunk); /* zeroed is allowed */

/* Reads `count` rows, at most chunk->most. Where one can't be read, each is read when it is asked for: that says which one it is. */
void dti_chunk_fill(struct dti_chunk *chunk, struct dti_reader *reader, struct dti_rows rows, size_t count);
/* Row `index` of those: views of its components, good until the next one. The error of a row that can't be read. */
ditto_status dti_chunk_row(struct dti_chunk *chunk, struct dti_reader *reader, struct dti_rows rows,
                           size_t index, ditto_tensor *out);

#endif
