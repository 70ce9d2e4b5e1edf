/* src/input/reduce.c - going through a dataset on the calling thread. */
#include "input/reduce.h"

#include <stdlib.h>

#define CHUNK_BYTES ((size_t)64 << 10)

struct reduction {
    ditto_dataset *dataset;
    struct dti_cursor *cursor;
    struct dti_reader reader;
    struct dti_rows rows; /* [chunk] */
    size_t chunk;
    void *component[DITTO_MAX_COMPONENTS]; /* [chunk] rows each */
    ditto_reduce_fn function;
    void *state;
};

static ditto_status prepare(struct reduction *r)
{
    const ditto_dataset *d = r->dataset;
    r->chunk = d->row_bytes < CHUNK_BYTES ? CHUNK_BYTES / (d->row_bytes + 1) + 1 : 1;
    r->rows.stride = d->row_words;
    r->rows.word = malloc(r->chunk * d->row_words * sizeof(uint64_t));
    bool whole = r->rows.word != NULL;
    for (uint32_t k = 0; k < d->components && whole; k++) {
        r->component[k] = aligned_alloc(DTI_LINE, (r->chunk * d->component[k].bytes / DTI_LINE + 1) * DTI_LINE);
        whole = r->component[k] != NULL;
    }
    return whole ? DITTO_OK : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to go through a dataset");
}

static ditto_status look(struct reduction *r, size_t index)
{
    ditto_tensor row[DITTO_MAX_COMPONENTS];
    void *at[DITTO_MAX_COMPONENTS];
    for (uint32_t k = 0; k < r->dataset->components; k++)
        at[k] = (char *)r->component[k] + index * r->dataset->component[k].bytes;
    dti_row_tensors(r->dataset, at, row);
    uint32_t serial = dti_error_serial;
    ditto_status status = r->function(row, r->state);
    if (status == DITTO_OK || status == DITTO_END_OF_INPUT)
        return status;
    return dti_fail_user(status, serial, "a reduction", r->dataset, dti_rows_from(r->rows, index).word);
}

/* Rows that have been chosen; those before one that can't be read are looked at. */
static ditto_status look_at_chosen(struct reduction *r, size_t count)
{
    bool together = dti_fill(r->dataset, &r->reader, r->rows, count, r->component) == DITTO_OK;
    for (size_t i = 0; i < count; i++) {
        void *at[DITTO_MAX_COMPONENTS];
        for (uint32_t k = 0; k < r->dataset->components; k++)
            at[k] = (char *)r->component[k] + i * r->dataset->component[k].bytes;
        if (!together)
            DTI_TRY(dti_fill(r->dataset, &r->reader, dti_rows_from(r->rows, i), 1, at));
        DTI_TRY(look(r, i));
    }
    return DITTO_OK;
}

static ditto_status go_through(struct reduction *r)
{
    for (;;) {
        size_t got;
        ditto_status chosen = dti_cursor_next(r->cursor, r->rows, r->chunk, &got);
        ditto_error error = chosen < 0 ? *dti_error_get() : (ditto_error){ 0 };
        ditto_status looked = look_at_chosen(r, got);
        dti_rows_drop(r->dataset, r->rows, got);
        if (looked != DITTO_OK)
            return looked == DITTO_END_OF_INPUT ? DITTO_OK : looked;
        if (chosen < 0)
            dti_error_set(&error);
        if (chosen != DITTO_OK)
            return chosen == DITTO_END_OF_INPUT ? DITTO_OK : chosen;
    }
}

ditto_status dti_reduce(ditto_dataset *dataset, ditto_reduce_fn function, void *state, uint64_t pass)
{
    struct reduction r = { .dataset = dataset, .function = function, .state = state };
    ditto_status status = prepare(&r);
    if (status == DITTO_OK)
        status = dti_cursor_open(dataset, &(struct dti_pass){ .number = pass }, &r.cursor);
    if (status == DITTO_OK)
        status = go_through(&r);
    dti_cursor_close(r.cursor);
    dti_reader_free(&r.reader);
    for (uint32_t k = 0; k < dataset->components; k++)
        free(r.component[k]);
    free(r.rows.word);
    return status;
}
