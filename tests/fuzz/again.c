/* tests/fuzz/again.c - see fuzz.h. */
#include "fuzz/fuzz.h"

#include "input/dataset.h"

#include <stdlib.h>
#include <string.h>

/* The number of rows that are read before the position is saved. */
enum { BEFORE = 2 };

static uint64_t *row_of(const ditto_dataset *d)
{
    uint64_t *row = calloc(d->row_words, sizeof *row);
    if (row == NULL)
        abort();
    return row;
}

/* Reads the next row and appends its bytes to *saved. Returns the status of the cursor if there is no row. */
static ditto_status next(const ditto_dataset *d, struct dti_cursor *cursor, struct dti_bytes *saved)
{
    uint64_t *row = row_of(d);
    struct dti_rows rows = { row, d->row_words };
    char words[600];
    struct dti_text text = { words, sizeof words, 0 };
    size_t got;
    ditto_status status = dti_cursor_next(cursor, rows, 1, &got);
    if (got == 1) {
        if (dti_row_save(d, row, saved) != DITTO_OK)
            abort();
        dti_row_where(d, row, &text);
        if (text.length == 0)
            abort();
        dti_rows_drop(d, rows, 1);
    }
    free(row);
    return got == 1 ? DITTO_OK : status;
}

void fuzz_again(const ditto_dataset *d)
{
    struct dti_pass pass = { .number = 0 };
    struct dti_cursor *first, *second;
    struct dti_bytes state = { 0 }, row[2] = { { 0 }, { 0 } };
    uint64_t fingerprint;
    if (dti_dataset_fingerprint(d, &fingerprint) != DITTO_OK || dti_cursor_open(d, &pass, &first) != DITTO_OK)
        abort();
    ditto_status status = DITTO_OK;
    for (int i = 0; i < BEFORE && status == DITTO_OK; i++)
        status = next(d, first, &row[0]);
    row[0].length = 0;
    /* After an error or the end there is no position to restore. */
    if (status == DITTO_OK) {
        if (dti_cursor_save(first, &state) != DITTO_OK || dti_cursor_open(d, &pass, &second) != DITTO_OK)
            abort();
        struct dti_bytes_reader from = { state.data, state.data + state.length, false };
        if (dti_cursor_restore(second, &from) != DITTO_OK || from.failed)
            abort();
        ditto_status one = next(d, first, &row[0]), other = next(d, second, &row[1]);
        if (one != other || row[0].length != row[1].length ||
            (row[0].length > 0 && memcmp(row[0].data, row[1].data, row[0].length) != 0))
            abort();
        dti_cursor_close(second);
    }
    dti_cursor_close(first);
    dti_bytes_free(&state);
    dti_bytes_free(&row[0]);
    dti_bytes_free(&row[1]);
}
