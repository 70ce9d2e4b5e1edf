/* src/input/transforms/filter.c - keeps the rows for which a function of the user sets `keep`.
 *
 * A filter decides which rows exist, and so which rows every replica gets. The cursor therefore reads the
 * rows and calls the function, for one row after the other. The rows that are kept are read again when
 * batches are filled. Costly work should be in a map after the filter. */
#include "base/errors/user_call.h"
#include "input/chunk.h"
#include "input/transforms/transforms.h"

#include <string.h>

struct filter_dataset {
    ditto_dataset base; /* first */
    ditto_filter_fn function;
    void *user;
};

struct filter_cursor {
    struct dti_cursor base; /* first */
    struct dti_reader reader;
    struct dti_chunk chunk;
};

static void close_filter(struct dti_cursor *cursor)
{
    struct filter_cursor *c = (struct filter_cursor *)cursor;
    dti_reader_free(&c->reader);
    dti_chunk_free(&c->chunk);
}

static ditto_status open_filter(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct filter_cursor *c = (struct filter_cursor *)cursor;
    c->reader.closing = pass->closing;
    DTI_TRY(dti_chunk_make(&c->chunk, cursor->dataset, SIZE_MAX));
    return dti_cursor_open(cursor->dataset->input[0], pass, &cursor->from);
}

/* Asks the user's function about row `index` of those that the chunk was filled with. */
static DTI_GUARDED ditto_status ask(struct filter_cursor *c, struct dti_rows rows, size_t index, int *keep)
{
    const struct filter_dataset *filter = (const struct filter_dataset *)c->base.dataset;
    ditto_tensor values[DITTO_MAX_COMPONENTS];
    *keep = 0;
    DTI_TRY(dti_closing_check(c->reader.closing));
    DTI_TRY(dti_chunk_row(&c->chunk, &c->reader, rows, index, values));
    uint32_t serial_before = dti_this_thread()->errors;
    DTI_GUARD("the function of a filter (ditto_dataset_filter)");
    ditto_status status = filter->function(values, filter->user, keep);
    DTI_GUARD_END();
    return status == DITTO_OK ? DITTO_OK
                              : dti_fail_user(status, serial_before, "a filter", filter->base.input[0],
                                              dti_rows_from(rows, index).word);
}

/* Moves those of `count` chosen rows that are kept to the front, and stores their number. After an error
 * *kept counts the kept rows before it. The row with the error and the rows after it are dropped. */
static ditto_status sift(struct filter_cursor *c, struct dti_rows rows, size_t count, size_t *kept)
{
    const ditto_dataset *input = c->base.dataset->input[0];
    dti_chunk_fill(&c->chunk, &c->reader, rows, count);
    *kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct dti_rows row = dti_rows_from(rows, i);
        int keep;
        ditto_status status = ask(c, rows, i, &keep);
        if (status != DITTO_OK) {
            dti_rows_drop(input, row, count - i);
            return status;
        }
        if (keep)
            memmove(dti_rows_from(rows, (*kept)++).word, row.word, input->row_words * sizeof *row.word);
        else
            dti_rows_drop(input, row, 1);
    }
    return DITTO_OK;
}

static ditto_status next_filter(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct filter_cursor *c = (struct filter_cursor *)cursor;
    while (*got < want) {
        size_t left = want - *got, more, kept;
        struct dti_rows some = dti_rows_from(rows, *got);
        DTI_TRY(dti_closing_check(c->reader.closing));
        ditto_status status = dti_cursor_next(cursor->from, some, left < c->chunk.most ? left : c->chunk.most,
                                              &more);
        ditto_error error = status < 0 ? *dti_error_get() : (ditto_error){ 0 };
        ditto_status sift_status = sift(c, some, more, &kept); /* these rows come before the error */
        *got += kept;
        DTI_TRY(sift_status);
        if (status < 0)
            dti_error_set(&error);
        DTI_TRY(status);
    }
    return DITTO_OK;
}

static const struct dti_dataset_kind filter_kind = {
    .name = "filter",
    .cursor_bytes = sizeof(struct filter_cursor),
    .open = open_filter,
    .next = next_filter,
    .close = close_filter,
};

ditto_status dti_filter_create(ditto_dataset *input, ditto_filter_fn function, void *user,
                               ditto_dataset **out)
{
    DTI_TRY(dti_dataset_new(sizeof(struct filter_dataset), &filter_kind, &input, 1, out));
    struct filter_dataset *filter = (struct filter_dataset *)*out;
    filter->function = function;
    filter->user = user;
    return DITTO_OK;
}
