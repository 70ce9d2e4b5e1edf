/* src/input/transforms/repeat_skip_take.c - repeat, take and skip, which only count rows. */
#include "base/errors/status.h"
#include "input/dataset.h"
#include "input/transforms/transforms.h"

/* Returns the rows of the input `passes` times. Of these rows it skips the first `skip`, and returns at most
 * `take`. repeat, skip and take each set one of the three. */
struct count_dataset {
    ditto_dataset base; /* first */
    uint64_t passes, skip, take;
};

struct count_cursor {
    struct dti_cursor base; /* first */
    struct dti_pass pass;
    uint64_t passes_left, skip_left, take_left;

    /* True if the input has given a row in this pass. An input without rows must not be repeated for ever. */
    bool gave_row;
};

static ditto_status open_count(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct count_cursor *c = (struct count_cursor *)cursor;
    const struct count_dataset *d = (const struct count_dataset *)cursor->dataset;
    c->pass = *pass;
    c->passes_left = d->passes;
    c->skip_left = d->skip;
    c->take_left = d->take;
    if (d->passes != DITTO_REPEAT_FOREVER)
        c->pass.number *= d->passes; /* repeat(2) in pass 1 uses passes 2 and 3 of its input */
    return dti_cursor_open(cursor->dataset->input[0], &c->pass, &cursor->from);
}

static ditto_status begin_pass(struct count_cursor *c, uint64_t number)
{
    struct dti_cursor *next_cursor;
    c->pass.number = number;
    DTI_TRY(dti_cursor_open(c->base.dataset->input[0], &c->pass, &next_cursor));
    dti_cursor_close(c->base.from);
    c->base.from = next_cursor;
    c->gave_row = false;
    return DITTO_OK;
}

/* Returns the next rows of the input, and starts its next pass when one ends. */
static ditto_status next_over_passes(struct count_cursor *c, struct dti_rows rows, size_t want, size_t *got)
{
    for (*got = 0;;) {
        size_t more;
        ditto_status status = dti_cursor_next(c->base.from, dti_rows_from(rows, *got), want - *got, &more);
        *got += more;
        c->gave_row |= more > 0;
        if (status != DITTO_END_OF_INPUT || c->passes_left == 1 || !c->gave_row)
            return status;
        DTI_TRY(dti_closing_check(c->pass.closing));
        DTI_TRY(begin_pass(c, c->pass.number + 1));
        if (c->passes_left != DITTO_REPEAT_FOREVER)
            c->passes_left--;
        if (*got == want)
            return DITTO_OK;
    }
}

static ditto_status next_count(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct count_cursor *c = (struct count_cursor *)cursor;
    while (c->skip_left > 0) {
        size_t skipped;
        DTI_TRY(dti_closing_check(c->pass.closing));
        ditto_status skip_status = next_over_passes(
            c, rows, want < c->skip_left ? want : (size_t)c->skip_left, &skipped);
        dti_rows_drop(c->base.dataset, rows, skipped);
        c->skip_left -= skipped;
        DTI_TRY(skip_status);
    }
    bool reaches_take = c->take_left <= want;
    ditto_status status = next_over_passes(c, rows, reaches_take ? (size_t)c->take_left : want, got);
    if (c->take_left != UINT64_MAX)
        c->take_left -= *got;
    return status == DITTO_OK && reaches_take && c->take_left == 0 ? DITTO_END_OF_INPUT : status;
}

static ditto_status save_count(struct dti_cursor *cursor, struct dti_bytes *to)
{
    struct count_cursor *c = (struct count_cursor *)cursor;
    dti_bytes_put_u64(to, c->pass.number);
    dti_bytes_put_u64(to, c->passes_left);
    dti_bytes_put_u64(to, c->skip_left);
    dti_bytes_put_u64(to, c->take_left);
    dti_bytes_put_u64(to, c->gave_row);
    return DITTO_OK;
}

static ditto_status restore_count(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct count_cursor *c = (struct count_cursor *)cursor;
    const struct count_dataset *d = (const struct count_dataset *)cursor->dataset;
    uint64_t number = dti_bytes_get_u64(from);
    c->passes_left = dti_bytes_get_at_most(from, d->passes);
    c->skip_left = dti_bytes_get_at_most(from, d->skip);
    c->take_left = dti_bytes_get_at_most(from, d->take);
    bool gave_row = dti_bytes_get_at_most(from, 1) != 0;
    /* A finite repeat counts one down at the end of each pass. An endless one does not count. */
    from->failed |= d->passes == DITTO_REPEAT_FOREVER
                        ? c->passes_left != d->passes
                        : c->passes_left < 1 || number - c->pass.number != d->passes - c->passes_left;
    from->failed |= d->take == UINT64_MAX && c->take_left != d->take;
    DTI_TRY(dti_bytes_reader_status(from));
    if (number != c->pass.number)
        DTI_TRY(begin_pass(c, number));
    c->gave_row = gave_row;
    return DITTO_OK;
}

static void digest_count(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct count_dataset *d = (const struct count_dataset *)dataset;
    dti_bytes_put_u64(to, d->passes);
    dti_bytes_put_u64(to, d->skip);
    dti_bytes_put_u64(to, d->take);
}

static const struct dti_dataset_kind count_kind = {
    .name = "count",
    .cursor_bytes = sizeof(struct count_cursor),
    .open = open_count,
    .next = next_count,
    .save = save_count,
    .restore = restore_count,
    .digest = digest_count,
};

static ditto_status create(ditto_dataset *input, uint64_t passes, uint64_t skip, uint64_t take,
                           ditto_dataset **out)
{
    DTI_TRY(dti_dataset_new(sizeof(struct count_dataset), &count_kind, &input, 1, out));
    struct count_dataset *d = (struct count_dataset *)*out;
    d->passes = passes;
    d->skip = skip;
    d->take = take;
    d->base.by_file = input->by_file && skip == 0 && take == UINT64_MAX;
    d->base.infinite = passes == DITTO_REPEAT_FOREVER || (input->infinite && take == UINT64_MAX);
    return DITTO_OK;
}

ditto_status dti_repeat_create(ditto_dataset *input, uint64_t count, ditto_dataset **out)
{
    return create(input, count, 0, UINT64_MAX, out);
}

ditto_status dti_skip_take_create(ditto_dataset *input, uint64_t skip, uint64_t take, ditto_dataset **out)
{
    return create(input, 1, skip, take, out);
}
