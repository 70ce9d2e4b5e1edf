/* src/input/transforms/batch.c - batch, unbatch and prefetch, which only mark a dataset.
 *
 * They return rows unchanged, because only the sequencer cuts rows into per-replica batches. There is one
 * exception. If an incomplete batch at the end must be dropped, the cursor keeps rows back until it has a
 * whole batch. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "input/dataset.h"
#include "input/transforms/transforms.h"

#include <stdlib.h>
#include <string.h>

/* -- marks -- */

static void digest_batch(const ditto_dataset *dataset, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, dataset->batch_rows);
}

static const struct dti_dataset_kind mark_kind = { .name = "mark", .digest = digest_batch };

/* -- whole batches -- */

struct whole_cursor {
    struct dti_cursor base; /* first */
    struct dti_rows rows;   /* [batch_rows] */
    size_t given, filled;   /* numbers of rows */

    /* The last status of the input. DITTO_OK if it may have more rows. */
    ditto_status input_status;

    /* If input_status is an error, its record. It is returned after the rows before it. */
    ditto_error error;
};

static void close_whole(struct dti_cursor *cursor)
{
    struct whole_cursor *c = (struct whole_cursor *)cursor;
    dti_rows_drop(cursor->dataset, dti_rows_from(c->rows, c->given), c->filled - c->given);
    free(c->rows.word);
}

static ditto_status open_whole(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct whole_cursor *c = (struct whole_cursor *)cursor;
    const ditto_dataset *dataset = cursor->dataset;
    size_t bytes;
    c->rows.stride = dataset->row_words;
    if (dti_multiply(dataset->batch_rows, dataset->row_words * sizeof(uint64_t), &bytes))
        c->rows.word = malloc(bytes);
    if (c->rows.word == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a batch of %llu rows",
                        (unsigned long long)dataset->batch_rows);
    return dti_cursor_open(dataset->input[0], pass, &cursor->from);
}

/* Reads the next batch. An incomplete batch is dropped at the end of the input, but not in front of an
 * error. */
static ditto_status refill(struct whole_cursor *c)
{
    const ditto_dataset *dataset = c->base.dataset;
    if (c->input_status < 0)
        dti_error_set(&c->error);
    DTI_TRY(c->input_status);
    c->given = 0;
    c->input_status = dti_cursor_next(c->base.from, c->rows, (size_t)dataset->batch_rows, &c->filled);
    if (c->input_status < 0)
        c->error = *dti_error_get();
    if (c->input_status == DITTO_END_OF_INPUT && c->filled < dataset->batch_rows) {
        dti_rows_drop(dataset, c->rows, c->filled);
        c->filled = 0;
    }
    return c->filled > 0 ? DITTO_OK : c->input_status;
}

static ditto_status next_whole(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct whole_cursor *c = (struct whole_cursor *)cursor;
    while (*got < want) {
        if (c->given == c->filled)
            DTI_TRY(refill(c));
        for (; *got < want && c->given < c->filled; ++*got, c->given++)
            memcpy(dti_rows_from(rows, *got).word, dti_rows_from(c->rows, c->given).word,
                   c->rows.stride * sizeof(uint64_t));
    }
    return DITTO_OK;
}

static ditto_status save_whole(struct dti_cursor *cursor, struct dti_bytes *to)
{
    struct whole_cursor *c = (struct whole_cursor *)cursor;
    if (c->input_status < 0) { /* the input cannot continue */
        dti_error_set(&c->error);
        return c->input_status;
    }
    DTI_TRY(dti_rows_save(c->base.dataset, dti_rows_from(c->rows, c->given), c->filled - c->given, to));
    dti_bytes_put_u64(to, c->input_status == DITTO_END_OF_INPUT);
    return DITTO_OK;
}

static ditto_status restore_whole(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct whole_cursor *c = (struct whole_cursor *)cursor;
    size_t filled = dti_rows_load_count(from, c->base.dataset->batch_rows);
    DTI_TRY(dti_rows_load(c->base.dataset, c->rows, filled, &c->filled, from));
    c->input_status = dti_bytes_get_at_most(from, 1) != 0 ? DITTO_END_OF_INPUT : DITTO_OK;
    return DITTO_OK;
}

static const struct dti_dataset_kind whole_kind = {
    .name = "whole batches",
    .cursor_bytes = sizeof(struct whole_cursor),
    .open = open_whole,
    .next = next_whole,
    .close = close_whole,
    .save = save_whole,
    .restore = restore_whole,
    .digest = digest_batch,
};

/* -- making -- */

ditto_status dti_batch_create(ditto_dataset *input, uint64_t rows, bool drop_remainder, ditto_dataset **out)
{
    const struct dti_dataset_kind *kind = drop_remainder ? &whole_kind : &mark_kind;
    DTI_TRY(dti_dataset_new(sizeof(ditto_dataset), kind, &input, 1, out));
    (*out)->batch_rows = rows;
    (*out)->drop_remainder = drop_remainder;
    (*out)->by_file = input->by_file && !drop_remainder;
    return DITTO_OK;
}

ditto_status dti_unbatch_create(ditto_dataset *input, ditto_dataset **out)
{
    return dti_batch_create(input, 0, false, out);
}

ditto_status dti_prefetch_create(ditto_dataset *input, uint64_t batches, ditto_dataset **out)
{
    DTI_TRY(dti_dataset_new(sizeof(ditto_dataset), &mark_kind, &input, 1, out));
    (*out)->prefetch = batches;
    return DITTO_OK;
}
