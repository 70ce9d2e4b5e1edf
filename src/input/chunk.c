/* src/input/chunk.c - reads the values of several rows together. */
#include "input/chunk.h"
#include "base/errors/status.h"

#include <stdlib.h>

#define CHUNK_BYTES ((size_t)64 << 10)

ditto_status dti_chunk_make(struct dti_chunk *chunk, const ditto_dataset *dataset, size_t wanted)
{
    size_t offset[DITTO_MAX_COMPONENTS], bytes;
    size_t most = dataset->row_bytes < CHUNK_BYTES ? CHUNK_BYTES / (dataset->row_bytes + 1) + 1 : 1;
    *chunk = (struct dti_chunk){ .dataset = dataset, .most = most < wanted ? most : wanted };
    /* More than 0 bytes are allocated, although rows may have none. */
    if (dti_dataset_layout(dataset, chunk->most, offset, &bytes) &&
        !__builtin_add_overflow(bytes, DTI_CACHE_LINE_PAIR, &bytes))
        chunk->values = aligned_alloc(DTI_CACHE_LINE_PAIR, bytes);
    if (chunk->values == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the values of %zu rows", chunk->most);
    for (uint32_t k = 0; k < dataset->components; k++)
        chunk->component[k] = chunk->values + offset[k];
    return DITTO_OK;
}

void dti_chunk_free(struct dti_chunk *chunk)
{
    free(chunk->values);
    chunk->values = NULL;
}

void dti_chunk_fill(struct dti_chunk *chunk, struct dti_reader *reader, struct dti_rows rows, size_t count)
{
    ditto_error kept = *dti_error_get(); /* the row that cannot be read may never be asked for */
    chunk->all_read = dti_dataset_fill(chunk->dataset, reader, rows, count, chunk->component) == DITTO_OK;
    if (!chunk->all_read)
        dti_error_set(&kept);
}

ditto_status dti_chunk_row(struct dti_chunk *chunk, struct dti_reader *reader, struct dti_rows rows,
                           size_t index, ditto_tensor *out)
{
    void *value[DITTO_MAX_COMPONENTS];
    if (!chunk->all_read)
        DTI_TRY(dti_dataset_fill(chunk->dataset, reader, dti_rows_from(rows, index), 1, chunk->component));
    for (uint32_t k = 0; k < chunk->dataset->components; k++)
        value[k] = (char *)chunk->component[k] +
                   (chunk->all_read ? index : 0) * chunk->dataset->component[k].bytes;
    dti_row_tensors(chunk->dataset, value, out);
    return DITTO_OK;
}
