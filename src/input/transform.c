/* src/input/transform.c - repeat, take and skip, batch: the transformations that only count rows. */
#include "input/input.h"

#include <stdlib.h>

/* `passes` times the input; of it, leave out `skip` rows and give at most `take`. Each use sets one of the three. */
struct count_dataset {
    ditto_dataset base; /* first */
    uint64_t passes, skip, take;
};

struct count_cursor {
    const ditto_dataset *input;
    struct dti_cursor *from;
    struct dti_pass pass;
    uint64_t passes_left, skip_left, take_left;
    bool gave_row; /* in this pass: an input that has become empty must not be repeated for ever */
};

static ditto_status open_count(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out)
{
    const struct count_dataset *d = (const struct count_dataset *)dataset;
    struct count_cursor *c = calloc(1, sizeof *c);
    if (c == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to iterate a dataset");
    *c = (struct count_cursor){
        .input = dataset->input, .pass = *pass, .passes_left = d->passes, .skip_left = d->skip, .take_left = d->take
    };
    if (d->passes != DITTO_REPEAT_FOREVER)
        c->pass.number *= d->passes; /* repeat(2) in pass 1 goes through passes 2 and 3 of its input */
    ditto_status status = c->input->kind->open(c->input, &c->pass, &c->from);
    if (status != DITTO_OK) {
        free(c);
        return status;
    }
    *out = (struct dti_cursor *)c;
    return DITTO_OK;
}

/* The next row of the input, over the borders of its passes. */
static ditto_status next_over_passes(struct count_cursor *c, struct dti_row *out)
{
    for (;;) {
        ditto_status status = c->input->kind->next(c->from, out);
        c->gave_row |= status == DITTO_OK;
        if (status != DITTO_END_OF_INPUT || c->passes_left == 1 || !c->gave_row)
            return status;
        struct dti_cursor *again;
        c->pass.number++;
        DTI_TRY(c->input->kind->open(c->input, &c->pass, &again));
        c->input->kind->close(c->from);
        c->from = again;
        c->gave_row = false;
        if (c->passes_left != DITTO_REPEAT_FOREVER)
            c->passes_left--;
    }
}

static ditto_status next_count(struct dti_cursor *cursor, struct dti_row *out)
{
    struct count_cursor *c = (struct count_cursor *)cursor;
    for (; c->skip_left > 0; c->skip_left--) {
        DTI_TRY(dti_pass_check(c->pass.closing));
        DTI_TRY(next_over_passes(c, out));
    }
    if (c->take_left == 0)
        return DITTO_END_OF_INPUT;
    DTI_TRY(next_over_passes(c, out));
    if (c->take_left != UINT64_MAX)
        c->take_left--;
    return DITTO_OK;
}

static void close_count(struct dti_cursor *cursor)
{
    struct count_cursor *c = (struct count_cursor *)cursor;
    c->input->kind->close(c->from);
    free(c);
}

static const struct dti_dataset_kind count_kind = { .open = open_count, .next = next_count, .close = close_count };

static ditto_status create(ditto_dataset *input, uint64_t passes, uint64_t skip, uint64_t take,
                           struct count_dataset **out)
{
    struct count_dataset *d = dti_dataset_new(sizeof *d, &count_kind, input);
    if (d == NULL)
        return DITTO_ERR_NO_MEMORY;
    d->passes = passes;
    d->skip = skip;
    d->take = take;
    *out = d;
    return DITTO_OK;
}

ditto_status dti_repeat_create(ditto_dataset *input, uint64_t count, ditto_dataset **out)
{
    struct count_dataset *d;
    DTI_TRY(create(input, count, 0, UINT64_MAX, &d));
    d->base.infinite |= count == DITTO_REPEAT_FOREVER;
    *out = &d->base;
    return DITTO_OK;
}

ditto_status dti_window_create(ditto_dataset *input, uint64_t skip, uint64_t take, ditto_dataset **out)
{
    struct count_dataset *d;
    DTI_TRY(create(input, 1, skip, take, &d));
    d->base.infinite &= take == UINT64_MAX;
    *out = &d->base;
    return DITTO_OK;
}

/* Rows flow through unchanged: the cut is made once, for all replicas, by the iterator. */
ditto_status dti_batch_create(ditto_dataset *input, uint64_t rows, bool drop_remainder, ditto_dataset **out)
{
    struct count_dataset *d;
    DTI_TRY(create(input, 1, 0, UINT64_MAX, &d));
    d->base.batch_rows = rows;
    d->base.drop_remainder = drop_remainder;
    *out = &d->base;
    return DITTO_OK;
}
