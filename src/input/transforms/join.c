/* src/input/transforms/join.c - concatenates or interleaves several inputs.
 *
 * At most `cycle` inputs are open at a time. Each gives `block` rows, one input after the other, again and
 * again. When one ends, the next input that was not open yet replaces it. Concatenation is a cycle of 1 with
 * unlimited blocks. A row begins with one more word, the number of its input. */
#include "base/errors/status.h"
#include "input/dataset.h"
#include "input/transforms/transforms.h"

#include <stdlib.h>

struct join_dataset {
    ditto_dataset base; /* first */
    uint32_t cycle;
    uint64_t block;
};

struct cycle_input {
    struct dti_cursor *from; /* NULL if no input is open here */
    uint32_t input;
};

struct join_cursor {
    struct dti_cursor base; /* first */
    struct dti_pass pass;
    uint32_t next_input;   /* the input that is opened next */
    uint32_t cycle_inputs; /* how many inputs may be open at a time */
    uint32_t current;      /* the index in cycle_input of the input that gives the next row */

    /* The number of rows of its block that the current input has given. */
    uint64_t in_block;
    struct cycle_input *cycle_input; /* [cycle_inputs] */
};

static void close_join(struct dti_cursor *cursor)
{
    struct join_cursor *c = (struct join_cursor *)cursor;
    for (uint32_t i = 0; i < c->cycle_inputs; i++)
        dti_cursor_close(c->cycle_input[i].from);
    free(c->cycle_input);
}

static ditto_status open_join(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct join_cursor *c = (struct join_cursor *)cursor;
    const struct join_dataset *d = (const struct join_dataset *)cursor->dataset;
    uint32_t cycle_inputs = d->cycle < d->base.inputs ? d->cycle : d->base.inputs;
    c->cycle_input = calloc(cycle_inputs, sizeof c->cycle_input[0]);
    if (c->cycle_input == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to iterate a dataset");
    c->pass = *pass;
    c->cycle_inputs = cycle_inputs;
    return DITTO_OK;
}

/* Opens an input. Its files are numbered after those of the inputs before it. */
static ditto_status open_input(struct join_cursor *c, struct cycle_input *cycle_input, uint32_t input)
{
    const ditto_dataset *d = c->base.dataset;
    struct dti_pass pass = c->pass;
    for (uint32_t i = 0; i < input; i++)
        pass.first_file += d->input[i]->files;
    DTI_TRY(dti_cursor_open(d->input[input], &pass, &cycle_input->from));
    cycle_input->input = input;
    return DITTO_OK;
}

static void go_to_next_input(struct join_cursor *c)
{
    c->current = c->current + 1 < c->cycle_inputs ? c->current + 1 : 0;
    c->in_block = 0;
}

static bool all_ended(const struct join_cursor *c)
{
    for (uint32_t i = 0; i < c->cycle_inputs; i++)
        if (c->cycle_input[i].from != NULL)
            return false;
    return c->next_input == c->base.dataset->inputs;
}

/* Returns up to `want` rows of the current input, which may be 0. Opens an input if none is open here, and
 * goes on to the next one when the block or the input has ended. */
static ditto_status next_of_current(struct join_cursor *c, struct dti_rows rows, size_t want, size_t *got)
{
    const struct join_dataset *d = (const struct join_dataset *)c->base.dataset;
    struct cycle_input *cycle_input = &c->cycle_input[c->current];
    *got = 0;
    if (cycle_input->from == NULL && c->next_input < d->base.inputs) {
        DTI_TRY(open_input(c, cycle_input, c->next_input));
        c->next_input++;
    }
    if (cycle_input->from == NULL) {
        go_to_next_input(c);
        return DITTO_OK;
    }
    uint64_t left = d->block - c->in_block;
    ditto_status status = dti_cursor_next(cycle_input->from, dti_rows_words_from(rows, 1),
                                          want < left ? want : (size_t)left, got);
    for (size_t i = 0; i < *got; i++)
        rows.word[i * rows.stride] = cycle_input->input;
    c->in_block += *got;
    if (status == DITTO_END_OF_INPUT) {
        dti_cursor_close(cycle_input->from);
        cycle_input->from = NULL;
    }
    if (status == DITTO_END_OF_INPUT || c->in_block == d->block)
        go_to_next_input(c);
    return status == DITTO_END_OF_INPUT ? DITTO_OK : status;
}

static ditto_status next_join(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct join_cursor *c = (struct join_cursor *)cursor;
    while (*got < want && !all_ended(c)) {
        size_t more;
        DTI_TRY(dti_closing_check(c->pass.closing));
        ditto_status status = next_of_current(c, dti_rows_from(rows, *got), want - *got, &more);
        *got += more;
        DTI_TRY(status);
    }
    return *got < want ? DITTO_END_OF_INPUT : DITTO_OK;
}

static ditto_status save_join(struct dti_cursor *cursor, struct dti_bytes *to)
{
    struct join_cursor *c = (struct join_cursor *)cursor;
    dti_bytes_put_u64(to, c->next_input);
    dti_bytes_put_u64(to, c->current);
    dti_bytes_put_u64(to, c->in_block);
    for (uint32_t i = 0; i < c->cycle_inputs; i++) {
        dti_bytes_put_u64(to, c->cycle_input[i].from != NULL ? (uint64_t)c->cycle_input[i].input + 1 : 0);
        if (c->cycle_input[i].from != NULL)
            DTI_TRY(dti_cursor_save(c->cycle_input[i].from, to));
    }
    return DITTO_OK;
}

static ditto_status restore_join(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct join_cursor *c = (struct join_cursor *)cursor;
    const struct join_dataset *d = (const struct join_dataset *)cursor->dataset;
    c->next_input = (uint32_t)dti_bytes_get_at_most(from, d->base.inputs);
    c->current = (uint32_t)dti_bytes_get_at_most(from, c->cycle_inputs - 1);
    c->in_block = dti_bytes_get_at_most(from, d->block);
    for (uint32_t i = 0; i < c->cycle_inputs; i++) {
        uint32_t opened = (uint32_t)dti_bytes_get_at_most(from, d->base.inputs);
        if (opened == 0)
            continue;
        DTI_TRY(open_input(c, &c->cycle_input[i], opened - 1));
        DTI_TRY(dti_cursor_restore(c->cycle_input[i].from, from));
    }
    return DITTO_OK;
}

static ditto_status fill_join(const ditto_dataset *dataset, struct dti_reader *reader, struct dti_rows rows,
                              size_t count, void *const *destination)
{
    for (size_t i = 0, run; i < count; i += run) { /* neighbours of one input are filled together */
        const uint64_t *which = dti_rows_from(rows, i).word;
        void *to[DITTO_MAX_COMPONENTS];
        for (run = 1; i + run < count && which[run * rows.stride] == *which;)
            run++;
        for (uint32_t k = 0; k < dataset->components; k++)
            to[k] = (char *)destination[k] + i * dataset->component[k].bytes;
        DTI_TRY(dti_dataset_fill(dataset->input[*which], reader,
                                 dti_rows_words_from(dti_rows_from(rows, i), 1), run, to));
    }
    return DITTO_OK;
}

static void where_join(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    dti_row_where(dataset->input[row[0]], row + 1, text);
}

static void drop_join(const ditto_dataset *dataset, const uint64_t *row)
{
    dti_rows_drop(dataset->input[row[0]], (struct dti_rows){ (uint64_t *)(uintptr_t)(row + 1), 0 }, 1);
}

static ditto_status save_row_join(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to)
{
    dti_bytes_put_u64(to, row[0]);
    return dti_row_save(dataset->input[row[0]], row + 1, to);
}

static ditto_status load_row_join(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from)
{
    row[0] = dti_bytes_get_at_most(from, dataset->inputs - 1);
    return dti_row_load(dataset->input[row[0]], row + 1, from);
}

static void digest_join(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const struct join_dataset *d = (const struct join_dataset *)dataset;
    dti_bytes_put_u64(to, d->cycle);
    dti_bytes_put_u64(to, d->block);
}

static const struct dti_dataset_kind join_kind = {
    .name = "join",
    .cursor_bytes = sizeof(struct join_cursor),
    .open = open_join,
    .next = next_join,
    .close = close_join,
    .save = save_join,
    .restore = restore_join,
    .fill = fill_join,
    .where = where_join,
    .drop = drop_join,
    .save_row = save_row_join,
    .load_row = load_row_join,
    .digest = digest_join,
};

ditto_status dti_join_create(ditto_dataset *const *input, uint32_t inputs, uint32_t cycle, uint64_t block,
                             ditto_dataset **out)
{
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct join_dataset), &join_kind, input, inputs, &base));
    struct join_dataset *d = (struct join_dataset *)base;
    d->cycle = cycle;
    d->block = block;
    base->files = 0;
    for (uint32_t i = 0; i < inputs; i++) {
        base->row_words = input[i]->row_words > base->row_words ? input[i]->row_words : base->row_words;
        base->infinite |= input[i]->infinite;
        base->files += input[i]->files;
        base->by_file &= input[i]->by_file;
    }
    base->row_words++;
    return dti_dataset_out(base, DITTO_OK, out);
}
