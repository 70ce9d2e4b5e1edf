/* src/input/array.c - rows from arrays in memory. */
#include "input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct array_dataset {
    ditto_dataset base; /* first */
    uint64_t rows;
    const char *data[DITTO_MAX_COMPONENTS];
};

struct array_cursor {
    uint64_t next, rows;
};

static ditto_status open_array(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out)
{
    struct array_cursor *c = malloc(sizeof *c);
    (void)pass;
    if (c == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to iterate arrays");
    *c = (struct array_cursor){ 0, ((const struct array_dataset *)dataset)->rows };
    *out = (struct dti_cursor *)c;
    return DITTO_OK;
}

static ditto_status next_array(struct dti_cursor *cursor, struct dti_row *out)
{
    struct array_cursor *c = (struct array_cursor *)cursor;
    if (c->next == c->rows)
        return DITTO_END_OF_INPUT;
    *out = (struct dti_row){ .at = c->next++ };
    return DITTO_OK;
}

static void close_array(struct dti_cursor *cursor)
{
    free(cursor);
}

static ditto_status fill_array(const ditto_dataset *source, const struct dti_row *rows, size_t count,
                               void *const *destination)
{
    const struct array_dataset *a = (const struct array_dataset *)source;
    for (uint32_t k = 0; k < source->components; k++) {
        size_t bytes = source->component[k].bytes;
        for (size_t i = 0; i < count; i++)
            memcpy((char *)destination[k] + i * bytes, a->data[k] + rows[i].at * bytes, bytes);
    }
    return DITTO_OK;
}

static const struct dti_dataset_kind array_kind = {
    .open = open_array, .next = next_array, .close = close_array, .fill = fill_array
};

static ditto_status check(const ditto_tensor *arrays, uint32_t components)
{
    for (uint32_t k = 0; k < components; k++) {
        const ditto_tensor *t = &arrays[k];
        char name[24];
        size_t bytes;
        snprintf(name, sizeof name, "arrays[%u].data", k);
        if (!dti_dtype_valid(t->dtype) || t->rank < 1 || t->rank > DITTO_MAX_RANK)
            return DTI_FAIL(DITTO_ERR_INVALID, "arrays[%u] has dtype %s and rank %u: rows are its first dimension", k,
                            ditto_dtype_name(t->dtype), t->rank);
        DTI_TRY(dti_tensor_check(t, &bytes));
        if (t->shape[0] != arrays[0].shape[0])
            return DTI_FAIL(DITTO_ERR_SHAPE, "arrays[%u] has %zu rows, but arrays[0] has %zu", k, t->shape[0],
                            arrays[0].shape[0]);
        if (t->shape[0] == 0)
            return DTI_FAIL(DITTO_ERR_INVALID, "the arrays have no row: there is nothing to iterate");
        DTI_TRY(dti_buffer_check(t->data, bytes, t->dtype, name));
    }
    return DITTO_OK;
}

ditto_status dti_array_create(const ditto_tensor *arrays, uint32_t components, ditto_dataset **out)
{
    DTI_TRY(check(arrays, components));
    struct array_dataset *a = dti_dataset_new(sizeof *a, &array_kind, NULL);
    if (a == NULL)
        return DITTO_ERR_NO_MEMORY;
    a->rows = arrays[0].shape[0];
    a->base.components = components;
    for (uint32_t k = 0; k < components; k++) {
        struct dti_component_spec *spec = &a->base.component[k];
        a->data[k] = arrays[k].data;
        spec->dtype = arrays[k].dtype;
        spec->rank = arrays[k].rank - 1;
        memcpy(spec->shape, &arrays[k].shape[1], spec->rank * sizeof spec->shape[0]);
        spec->bytes = ditto_tensor_bytes(&arrays[k]) / a->rows;
    }
    *out = &a->base;
    return DITTO_OK;
}
