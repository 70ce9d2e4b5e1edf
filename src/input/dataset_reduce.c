/* src/input/dataset_reduce.c - calls a function with the rows of a dataset, on the calling thread. */
#include "base/errors/user_call.h"
#include "base/numbers/fenv.h"
#include "input/chunk.h"

#include <stdlib.h>

struct reduction {
    ditto_dataset *dataset;
    struct dti_cursor *cursor;
    struct dti_reader reader;
    struct dti_chunk chunk;
    struct dti_rows rows; /* [chunk.most] */
    ditto_reduce_fn function;
    void *state;
};

static DTI_GUARDED ditto_status reduce_row(struct reduction *r, size_t index)
{
    ditto_tensor row[DITTO_MAX_COMPONENTS];
    DTI_TRY(dti_chunk_row(&r->chunk, &r->reader, r->rows, index, row));
    uint32_t serial_before = dti_this_thread()->errors;
    DTI_GUARD("the function given to ditto_dataset_reduce");
    ditto_status status = r->function(row, r->state);
    DTI_GUARD_END();
    if (status == DITTO_OK || status == DITTO_END_OF_INPUT)
        return status;
    return dti_fail_user(status, serial_before, "a reduction", r->dataset,
                         dti_rows_from(r->rows, index).word);
}

static ditto_status reduce_all(struct reduction *r)
{
    for (;;) {
        size_t got;
        ditto_error kept = *dti_error_get(), error;
        ditto_status next_status = dti_cursor_next(r->cursor, r->rows, r->chunk.most, &got);
        /* The rows before an error of the cursor are reduced first, and may be the last ones. A cursor may
         * also keep an error for its next call. */
        error = *dti_error_get();
        dti_error_set(&kept);
        ditto_status reduce_status = DITTO_OK;
        dti_chunk_fill(&r->chunk, &r->reader, r->rows, got);
        for (size_t i = 0; i < got && reduce_status == DITTO_OK; i++)
            reduce_status = reduce_row(r, i);
        dti_rows_drop(r->dataset, r->rows, got);
        if (reduce_status != DITTO_OK)
            return reduce_status == DITTO_END_OF_INPUT ? DITTO_OK : reduce_status;
        if (next_status < 0)
            dti_error_set(&error);
        if (next_status != DITTO_OK)
            return next_status == DITTO_END_OF_INPUT ? DITTO_OK : next_status;
    }
}

ditto_status dti_reduce(ditto_dataset *dataset, ditto_reduce_fn function, void *state, uint64_t pass)
{
    struct reduction r = { .dataset = dataset, .function = function, .state = state };
    struct dti_fenv saved = dti_fenv_enter(); /* gives rows the same bits as in a producer */
    ditto_status status = dti_chunk_make(&r.chunk, dataset, SIZE_MAX);
    r.rows.stride = dataset->row_words;
    if (status == DITTO_OK)
        r.rows.word = malloc(r.chunk.most * r.rows.stride * sizeof(uint64_t));
    if (status == DITTO_OK && r.rows.word == NULL)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read a dataset");
    if (status == DITTO_OK)
        status = dti_cursor_open(dataset, &(struct dti_pass){ .number = pass }, &r.cursor);
    if (status == DITTO_OK)
        status = reduce_all(&r);
    dti_cursor_close(r.cursor);
    dti_reader_free(&r.reader);
    dti_chunk_free(&r.chunk);
    free(r.rows.word);
    dti_fenv_leave(saved);
    return status;
}
