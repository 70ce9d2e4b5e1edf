/* src/input/transforms/filter.c - the rows for which a function of the user's says yes.
 *
 * Which rows there are decides what every replica gets, so filters run in the sequencer: they read rows there, one after the other, and
 * the rows that stay are read again where batches are filled. What is costly belongs into a map behind the filter. */
#include "input/transforms/transforms.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)64 << 10)

struct filter_dataset {
    ditto_dataset base; /* first */
    ditto_filter_fn function;
    void *user;
};

struct filter_cursor {
    struct dti_cursor base; /* first */
    struct dti_cursor *from;
    struct dti_reader reader;
    size_t chunk; /* rows at a time */
    char *values; /* of them, one component after the other */
    void *component[DITTO_MAX_COMPONENTS];
};

static void close_filter(struct dti_cursor *cursor)
{
    struct filter_cursor *c = (struct filter_cursor *)cursor;
    dti_cursor_close(c->from);
    dti_reader_free(&c->reader);
    free(c->values);
    free(c);
}

static ditto_status open_filter(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out)
{
    struct filter_cursor *c = calloc(1, sizeof *c);
    size_t offset = 0;
    if (c == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to iterate a dataset");
    c->chunk = dataset->row_bytes < CHUNK_BYTES ? CHUNK_BYTES / (dataset->row_bytes + 1) + 1 : 1;
    c->values =
        aligned_alloc(DTI_LINE, (c->chunk * dataset->row_bytes / DTI_LINE + 2 + dataset->components) * DTI_LINE);
    c->reader.closing = pass->closing;
    for (uint32_t k = 0; k < dataset->components && c->values != NULL; k++) {
        c->component[k] = c->values + offset;
        offset += (c->chunk * dataset->component[k].bytes + DTI_LINE - 1) / DTI_LINE * DTI_LINE;
    }
    ditto_status status = c->values != NULL ? dti_cursor_open(dataset->input[0], pass, &c->from)
                                            : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read rows that are filtered");
    if (status != DITTO_OK) {
        close_filter(&c->base);
        return status;
    }
    *out = &c->base;
    return DITTO_OK;
}

/* Asks the user's function about a row whose values are the `place`th in the chunk. */
static ditto_status ask(struct filter_cursor *c, const uint64_t *row, size_t place, int *keep)
{
    const struct filter_dataset *filter = (const struct filter_dataset *)c->base.dataset;
    const ditto_dataset *input = filter->base.input[0];
    ditto_tensor values[DITTO_MAX_COMPONENTS];
    void *at[DITTO_MAX_COMPONENTS];
    for (uint32_t k = 0; k < input->components; k++)
        at[k] = (char *)c->component[k] + place * input->component[k].bytes;
    dti_row_tensors(input, at, values);
    *keep = 0;
    uint32_t serial = dti_error_serial;
    ditto_status status = filter->function(values, keep, filter->user);
    return status == DITTO_OK ? DITTO_OK : dti_fail_user(status, serial, "a filter", input, row);
}

/* Of `count` chosen rows those that stay move to the front. After an error those before it have been asked about, the others are
 * dropped. */
static ditto_status sift(struct filter_cursor *c, struct dti_rows rows, size_t count, size_t *kept)
{
    const ditto_dataset *input = c->base.dataset->input[0];
    bool together =
        dti_fill(input, &c->reader, rows, count, c->component) == DITTO_OK; /* else one by one: which one is it? */
    *kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct dti_rows row = dti_rows_from(rows, i);
        int keep = 0;
        ditto_status status = dti_closing_check(c->reader.closing);
        if (status == DITTO_OK)
            status = together ? DITTO_OK : dti_fill(input, &c->reader, row, 1, c->component);
        if (status == DITTO_OK)
            status = ask(c, row.word, together ? i : 0, &keep);
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
        ditto_status status = dti_cursor_next(c->from, some, left < c->chunk ? left : c->chunk, &more);
        ditto_error error = status < 0 ? *dti_error_get() : (ditto_error){ 0 };
        ditto_status sifted = sift(c, some, more, &kept); /* rows that stand before what `status` says */
        *got += kept;
        DTI_TRY(sifted);
        if (status < 0)
            dti_error_set(&error);
        DTI_TRY(status);
    }
    return DITTO_OK;
}

static ditto_status save_filter(struct dti_cursor *cursor, struct dti_bytes *to)
{
    return dti_cursor_save(((struct filter_cursor *)cursor)->from, to);
}

static ditto_status restore_filter(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    return dti_cursor_restore(((struct filter_cursor *)cursor)->from, from);
}

static const struct dti_dataset_kind filter_kind = {
    .name = "filter",
    .open = open_filter,
    .next = next_filter,
    .close = close_filter,
    .save = save_filter,
    .restore = restore_filter,
};

ditto_status dti_filter_create(ditto_dataset *input, ditto_filter_fn function, void *user, ditto_dataset **out)
{
    struct filter_dataset *filter = dti_dataset_new(sizeof *filter, &filter_kind, &input, 1);
    if (filter == NULL)
        return dti_error_get()->status;
    filter->function = function;
    filter->user = user;
    *out = &filter->base;
    return DITTO_OK;
}
