/* src/input/sources/arrays.c - a source whose rows are the rows of arrays in memory. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "input/sources/counted.h"
#include "input/sources/sources.h"

#include <stdio.h>
#include <string.h>

struct array_dataset {
    struct dti_counted counted; /* first */
    const char *data[DITTO_MAX_COMPONENTS];
};

static ditto_status fill_array(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                               size_t count, void *const *destination)
{
    const struct array_dataset *a = (const struct array_dataset *)dataset;
    (void)reader;
    for (uint32_t k = 0; k < dataset->components; k++) {
        size_t bytes = dataset->component[k].bytes;
        for (size_t i = 0, run; i < count; i += run) { /* neighbours are copied together */
            uint64_t first = rows.word[i * rows.stride];
            for (run = 1; i + run < count && rows.word[(i + run) * rows.stride] == first + run;)
                run++;
            memcpy((char *)destination[k] + i * bytes, a->data[k] + first * bytes, run * bytes);
        }
    }
    return DITTO_OK;
}

static void where_array(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    (void)dataset;
    dti_text_add(text, "row %llu of the arrays", (unsigned long long)*row);
}

static void digest_array(const ditto_dataset *dataset, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, ((const struct array_dataset *)dataset)->counted.rows);
}

static const struct dti_dataset_kind array_kind = {
    .name = "arrays",
    .cursor_bytes = sizeof(struct dti_counted_cursor),
    .open = dti_counted_open,
    .next = dti_counted_next,
    .save = dti_counted_save,
    .restore = dti_counted_restore,
    .fill = fill_array,
    .where = where_array,
    .load_row = dti_counted_load_row,
    .digest = digest_array,
};

static ditto_status check(const ditto_tensor *arrays, uint32_t components)
{
    for (uint32_t k = 0; k < components; k++) {
        const ditto_tensor *t = &arrays[k];
        char name[24];
        size_t bytes;
        snprintf(name, sizeof name, "arrays[%u].data", k);
        if (!dti_dtype_valid(t->dtype) || t->rank < 1 || t->rank > DITTO_MAX_RANK)
            return DTI_FAIL(DITTO_ERR_INVALID,
                            "arrays[%u] has dtype %s and rank %u: rows are its first dimension", k,
                            ditto_dtype_name(t->dtype), t->rank);
        DTI_TRY(dti_tensor_check(t, &bytes));
        if (t->shape[0] != arrays[0].shape[0])
            return DTI_FAIL(DITTO_ERR_SHAPE, "arrays[%u] has %zu rows, but arrays[0] has %zu", k, t->shape[0],
                            arrays[0].shape[0]);
        if (t->shape[0] == 0)
            return DTI_FAIL(DITTO_ERR_INVALID, "the arrays have no rows to iterate");
        DTI_TRY(dti_buffer_check(t->data, bytes, t->dtype, name));
    }
    return DITTO_OK;
}

ditto_status dti_array_create(const ditto_tensor *arrays, uint32_t components, ditto_dataset **out)
{
    DTI_TRY(check(arrays, components));
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct array_dataset), &array_kind, NULL, 0, &base));
    struct array_dataset *a = (struct array_dataset *)base;
    ditto_status status = DITTO_OK;
    a->counted.rows = arrays[0].shape[0];
    base->row_words = 1;
    base->components = components;
    for (uint32_t k = 0; k < components && status == DITTO_OK; k++) {
        ditto_tensor row = { .dtype = arrays[k].dtype, .rank = arrays[k].rank - 1 };
        memcpy(row.shape, &arrays[k].shape[1], row.rank * sizeof row.shape[0]);
        a->data[k] = arrays[k].data;
        status = dti_dataset_set_component(base, k, &row);
    }
    return dti_dataset_out(base, status, out);
}
