/* src/input/sources/owned_row.c - rows that hold their values. */
#include "input/sources/owned_row.h"
#include "base/errors/status.h"

#include <stdlib.h>
#include <string.h>

static size_t aligned_bytes(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

ditto_status dti_owned_row_new(const ditto_dataset *dataset, uint64_t number, uint64_t *row)
{
    size_t bytes = sizeof(struct dti_owned_row);
    bool fits = true;
    /* The bytes of a component are at most PTRDIFF_MAX, so that aligned_bytes does not overflow. */
    for (uint32_t k = 0; k < dataset->components; k++)
        fits &= !__builtin_add_overflow(bytes, aligned_bytes(dataset->component[k].bytes), &bytes);
    struct dti_owned_row *held = fits ? malloc(bytes) : NULL;
    if (held == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a row of %zu bytes", dataset->row_bytes);
    held->number = number;
    *row = (uint64_t)(uintptr_t)held;
    return DITTO_OK;
}

struct dti_owned_row *dti_owned_row_block(const uint64_t *row)
{
    return (struct dti_owned_row *)(uintptr_t)*row; // NOLINT(performance-no-int-to-ptr): it came from one
}

void dti_owned_row_components(const ditto_dataset *dataset, const uint64_t *row, void **component)
{
    char *at = dti_owned_row_block(row)->data;
    for (uint32_t k = 0; k < dataset->components; k++) {
        component[k] = at;
        at += aligned_bytes(dataset->component[k].bytes);
    }
}

ditto_status dti_owned_row_fill(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                                size_t count, void *const *destination)
{
    (void)reader;
    for (size_t i = 0; i < count; i++) {
        void *component[DITTO_MAX_COMPONENTS];
        dti_owned_row_components(dataset, rows.word + i * rows.stride, component);
        for (uint32_t k = 0; k < dataset->components; k++) {
            size_t bytes = dataset->component[k].bytes;
            memcpy((char *)destination[k] + i * bytes, component[k], bytes);
        }
    }
    return DITTO_OK;
}

void dti_owned_row_drop(const ditto_dataset *dataset, const uint64_t *row)
{
    (void)dataset;
    free(dti_owned_row_block(row));
}

ditto_status dti_owned_row_save(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to)
{
    void *component[DITTO_MAX_COMPONENTS];
    dti_owned_row_components(dataset, row, component);
    dti_bytes_put_u64(to, dti_owned_row_block(row)->number);
    for (uint32_t k = 0; k < dataset->components; k++)
        dti_bytes_put(to, component[k], dataset->component[k].bytes);
    return DITTO_OK;
}

ditto_status dti_owned_row_load(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from)
{
    void *component[DITTO_MAX_COMPONENTS];
    uint64_t number = dti_bytes_get_u64(from);
    DTI_TRY(dti_bytes_reader_status(from));
    DTI_TRY(dti_owned_row_new(dataset, number, row));
    dti_owned_row_components(dataset, row, component);
    for (uint32_t k = 0; k < dataset->components; k++)
        dti_bytes_get(from, component[k], dataset->component[k].bytes);
    if (from->failed)
        dti_owned_row_drop(dataset, row);
    return dti_bytes_reader_status(from);
}
