/* src/input/transforms/zip.c - makes each row from one row of each input. It ends with the shortest input. */
#include "base/errors/status.h"
#include "input/dataset.h"
#include "input/transforms/transforms.h"

#include <string.h>

struct zip_cursor {
    struct dti_cursor base; /* first */
    bool ended;
    struct dti_cursor *input[DITTO_MAX_COMPONENTS];
};

static void close_zip(struct dti_cursor *cursor)
{
    struct zip_cursor *c = (struct zip_cursor *)cursor;
    for (uint32_t i = 0; i < cursor->dataset->inputs; i++)
        dti_cursor_close(c->input[i]);
}

static ditto_status open_zip(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct zip_cursor *c = (struct zip_cursor *)cursor;
    for (uint32_t i = 0; i < cursor->dataset->inputs; i++)
        DTI_TRY(dti_cursor_open(cursor->dataset->input[i], pass, &c->input[i]));
    return DITTO_OK;
}

static ditto_status next_zip(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct zip_cursor *c = (struct zip_cursor *)cursor;
    const ditto_dataset *d = cursor->dataset;
    size_t given[DITTO_MAX_COMPONENTS], word = 0;
    ditto_status status = DITTO_OK;
    ditto_error error = { 0 };
    if (c->ended)
        return DITTO_END_OF_INPUT;
    *got = want;
    for (uint32_t i = 0; i < d->inputs; i++) {
        /* An input is asked for no more rows than the inputs before it gave. If it gives fewer, its status
         * therefore comes first in the order of rows. */
        size_t asked = *got;
        ditto_status input_status = asked > 0 || i == 0
                                        ? dti_cursor_next(c->input[i], dti_rows_words_from(rows, word), asked,
                                                          &given[i])
                                        : (given[i] = 0, DITTO_OK);
        if (given[i] < asked || (input_status != DITTO_OK && status == DITTO_OK)) {
            status = input_status;
            if (input_status < 0)
                error = *dti_error_get();
        }
        *got = given[i];
        word += d->input[i]->row_words;
    }
    /* Rows for which another input has no row are dropped. */
    word = 0;
    for (uint32_t i = 0; i < d->inputs; i++) {
        struct dti_rows own = dti_rows_words_from(rows, word);
        if (given[i] > *got)
            dti_rows_drop(d->input[i], dti_rows_from(own, *got), given[i] - *got);
        word += d->input[i]->row_words;
    }
    if (status < 0)
        dti_error_set(&error);
    c->ended = status == DITTO_END_OF_INPUT;
    return status;
}

static ditto_status save_zip(struct dti_cursor *cursor, struct dti_bytes *to)
{
    struct zip_cursor *c = (struct zip_cursor *)cursor;
    dti_bytes_put_u64(to, c->ended);
    for (uint32_t i = 0; i < cursor->dataset->inputs; i++)
        DTI_TRY(dti_cursor_save(c->input[i], to));
    return DITTO_OK;
}

static ditto_status restore_zip(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct zip_cursor *c = (struct zip_cursor *)cursor;
    c->ended = dti_bytes_get_at_most(from, 1) != 0;
    for (uint32_t i = 0; i < cursor->dataset->inputs; i++)
        DTI_TRY(dti_cursor_restore(c->input[i], from));
    return DITTO_OK;
}

static ditto_status fill_zip(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                             size_t count, void *const *destination)
{
    size_t word = 0;
    for (uint32_t i = 0, k = 0; i < dataset->inputs; i++) {
        const ditto_dataset *input = dataset->input[i];
        DTI_TRY(dti_dataset_fill(input, reader, dti_rows_words_from(rows, word), count, destination + k));
        word += input->row_words;
        k += input->components;
    }
    return DITTO_OK;
}

static void where_zip(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    for (uint32_t i = 0; i < dataset->inputs; i++) {
        dti_text_add(text, i > 0 ? " with " : "");
        dti_row_where(dataset->input[i], row, text);
        row += dataset->input[i]->row_words;
    }
}

static void drop_zip(const ditto_dataset *dataset, const uint64_t *row)
{
    uint64_t *word = (uint64_t *)(uintptr_t)row;
    for (uint32_t i = 0; i < dataset->inputs; i++) {
        dti_rows_drop(dataset->input[i], (struct dti_rows){ word, 0 }, 1);
        word += dataset->input[i]->row_words;
    }
}

static ditto_status save_row_zip(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to)
{
    for (uint32_t i = 0; i < dataset->inputs; i++) {
        DTI_TRY(dti_row_save(dataset->input[i], row, to));
        row += dataset->input[i]->row_words;
    }
    return DITTO_OK;
}

static ditto_status load_row_zip(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from)
{
    uint64_t *word = row;
    ditto_status status = DITTO_OK;
    uint32_t loaded = 0;
    for (; loaded < dataset->inputs && status == DITTO_OK; loaded += status == DITTO_OK) {
        status = dti_row_load(dataset->input[loaded], word, from);
        word += status == DITTO_OK ? dataset->input[loaded]->row_words : 0;
    }
    word = row;
    for (uint32_t i = 0; status != DITTO_OK && i < loaded; i++) { /* drops the parts that were loaded */
        dti_rows_drop(dataset->input[i], (struct dti_rows){ word, 0 }, 1);
        word += dataset->input[i]->row_words;
    }
    return status;
}

static const struct dti_dataset_kind zip_kind = {
    .name = "zip",
    .cursor_bytes = sizeof(struct zip_cursor),
    .open = open_zip,
    .next = next_zip,
    .close = close_zip,
    .save = save_zip,
    .restore = restore_zip,
    .fill = fill_zip,
    .where = where_zip,
    .drop = drop_zip,
    .save_row = save_row_zip,
    .load_row = load_row_zip,
};

ditto_status dti_zip_create(ditto_dataset *const *input, uint32_t inputs, ditto_dataset **out)
{
    ditto_dataset *d;
    DTI_TRY(dti_dataset_new(sizeof *d, &zip_kind, input, inputs, &d));
    d->components = d->row_words = 0;
    /* The partners of a row depend on the numbers of rows in all earlier files. */
    d->by_file = false;
    for (uint32_t i = 0; i < inputs; i++) {
        memcpy(&d->component[d->components], input[i]->component,
               input[i]->components * sizeof d->component[0]);
        /* The caller has checked that the sum is at most DITTO_MAX_COMPONENTS. */
        d->components += input[i]->components;
        d->row_words += input[i]->row_words;
        d->infinite &= input[i]->infinite;
        d->drop_remainder &= input[i]->drop_remainder; /* else the zip's last batch may be a short one */
        /* File k of one input belongs to file k of the others. */
        d->files = input[i]->files > d->files ? input[i]->files : d->files;
    }
    return dti_dataset_out(d, DITTO_OK, out);
}
