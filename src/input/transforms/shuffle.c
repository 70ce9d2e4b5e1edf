/* src/input/transforms/shuffle.c - returns rows in a random order, which depends only on the options, the
 * input and the pass.
 *
 * A buffer of rows is filled before each draw. The row that is drawn is returned, the last row of the buffer
 * takes its place, and the next row of the input is appended. If the buffer has all rows, this is Knuth's
 * algorithm P. One thread at a time runs the cursor, so the number of producers cannot change the order. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "input/dataset.h"
#include "input/transforms/transforms.h"

#include <stdlib.h>
#include <string.h>

/* The most rows that are read between two checks whether the iterator is being destroyed. */
#define MOST_AT_ONCE ((size_t)1024)

struct shuffle_dataset {
    ditto_dataset base; /* first */
    ditto_shuffle_options options;
};

struct shuffle_cursor {
    struct dti_cursor base; /* first */
    uint64_t random;        /* state of SplitMix64 */
    uint64_t capacity;      /* UINT64_MAX for all rows */
    struct dti_rows rows;
    size_t filled, allocated; /* numbers of rows */

    /* The last status of the input. DITTO_OK if it may have more rows. */
    ditto_status input_status;

    /* If input_status is an error, its record. It is reported when the rows before it have been returned. */
    ditto_error error;
    const _Atomic uint32_t *closing;
};

/* SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Returns a number that is uniform in [0, bound). Numbers beyond the last full multiple of bound are drawn
 * again, so there is no bias. */
static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound, number;
    do
        number = next_random(state);
    while (number >= limit);
    return number % bound;
}

static ditto_status open_shuffle(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct shuffle_cursor *c = (struct shuffle_cursor *)cursor;
    const ditto_shuffle_options *o = &((const struct shuffle_dataset *)cursor->dataset)->options;
    c->closing = pass->closing;
    c->capacity = o->buffer_rows != 0 ? o->buffer_rows : UINT64_MAX;
    c->rows.stride = cursor->dataset->row_words;
    /* 0 if all passes have the same order. */
    uint64_t order_number = o->reshuffle == DITTO_RESHUFFLE_NEVER ? 0 : pass->number;
    /* Each worker has a seed of its own, from the end of all seeds, where the program is unlikely to have
     * chosen one. */
    c->random = o->seed != 0 ? o->seed : -(uint64_t)pass->first_stream;
    /* The seed is mixed before the XOR, so that seed 1 in pass 0 differs from seed 0 in pass
     * 1. */
    c->random = next_random(&c->random) ^ order_number;
    return dti_cursor_open(cursor->dataset->input[0], pass, &cursor->from);
}

/* Makes space for at least `least` rows, or for c->capacity if that is less. */
static ditto_status grow(struct shuffle_cursor *c, uint64_t least)
{
    uint64_t allocated = c->allocated != 0 ? c->allocated : 1024;
    size_t bytes;
    while (allocated < least)
        allocated *= 2;
    if (allocated > c->capacity)
        allocated = c->capacity;
    uint64_t *grown = dti_multiply(allocated, c->rows.stride * sizeof(uint64_t), &bytes)
                          ? realloc(c->rows.word, bytes)
                          : NULL;
    if (grown == NULL)
        return DTI_FAIL(
            DITTO_ERR_NO_MEMORY,
            "no memory to shuffle %llu rows: set buffer_rows to a smaller number (0 means all rows)",
            (unsigned long long)allocated);
    c->rows.word = grown;
    c->allocated = (size_t)allocated;
    return DITTO_OK;
}

/* Reads rows until the buffer has `capacity` rows or the input ends. */
static ditto_status refill(struct shuffle_cursor *c)
{
    while (c->input_status == DITTO_OK && c->filled < c->capacity) {
        size_t got;
        DTI_TRY(dti_closing_check(c->closing));
        if (c->filled == c->allocated)
            DTI_TRY(grow(c, (uint64_t)c->filled + 1));
        c->input_status = dti_cursor_next(
            c->base.from, dti_rows_from(c->rows, c->filled),
            c->allocated - c->filled < MOST_AT_ONCE ? c->allocated - c->filled : MOST_AT_ONCE, &got);
        c->filled += got;
        if (c->input_status < 0)
            c->error = *dti_error_get();
    }
    return DITTO_OK;
}

static ditto_status next_shuffle(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct shuffle_cursor *c = (struct shuffle_cursor *)cursor;
    size_t bytes = c->rows.stride * sizeof(uint64_t);
    for (; *got < want; ++*got) {
        if (c->input_status == DITTO_OK && c->filled < c->capacity)
            DTI_TRY(refill(c));
        if (c->filled == 0) {
            if (c->input_status < 0)
                dti_error_set(&c->error);
            return c->input_status;
        }
        uint64_t *drawn = dti_rows_from(c->rows, (size_t)random_below(&c->random, c->filled)).word;
        memcpy(dti_rows_from(rows, *got).word, drawn, bytes);
        memmove(drawn, dti_rows_from(c->rows, --c->filled).word, bytes);
    }
    return DITTO_OK;
}

static void close_shuffle(struct dti_cursor *cursor)
{
    struct shuffle_cursor *c = (struct shuffle_cursor *)cursor;
    dti_rows_drop(c->base.dataset, c->rows, c->filled);
    free(c->rows.word);
}

static ditto_status save_shuffle(struct dti_cursor *cursor, struct dti_bytes *to)
{
    struct shuffle_cursor *c = (struct shuffle_cursor *)cursor;
    if (c->input_status < 0) { /* the input cannot continue */
        dti_error_set(&c->error);
        return c->input_status;
    }
    dti_bytes_put_u64(to, c->random);
    dti_bytes_put_u64(to, c->input_status == DITTO_END_OF_INPUT);
    DTI_TRY(dti_rows_save(c->base.dataset, c->rows, c->filled, to));
    return DITTO_OK;
}

static ditto_status restore_shuffle(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct shuffle_cursor *c = (struct shuffle_cursor *)cursor;
    c->random = dti_bytes_get_u64(from);
    c->input_status = dti_bytes_get_at_most(from, 1) != 0 ? DITTO_END_OF_INPUT : DITTO_OK;
    size_t filled = dti_rows_load_count(from, c->capacity);
    DTI_TRY(dti_bytes_reader_status(from));
    DTI_TRY(grow(c, filled));
    DTI_TRY(dti_rows_load(c->base.dataset, c->rows, filled, &c->filled, from));
    return DITTO_OK;
}

static void digest_shuffle(const ditto_dataset *dataset, struct dti_bytes *to)
{
    const ditto_shuffle_options *o = &((const struct shuffle_dataset *)dataset)->options;
    dti_bytes_put_u64(to, o->seed);
    dti_bytes_put_u64(to, o->buffer_rows);
    dti_bytes_put_u64(to, o->reshuffle);
}

static const struct dti_dataset_kind shuffle_kind = {
    .name = "shuffle",
    .cursor_bytes = sizeof(struct shuffle_cursor),
    .open = open_shuffle,
    .next = next_shuffle,
    .close = close_shuffle,
    .save = save_shuffle,
    .restore = restore_shuffle,
    .digest = digest_shuffle,
};

ditto_status dti_shuffle_create(ditto_dataset *input, const ditto_shuffle_options *options,
                                ditto_dataset **out)
{
    DTI_TRY(dti_dataset_new(sizeof(struct shuffle_dataset), &shuffle_kind, &input, 1, out));
    struct shuffle_dataset *d = (struct shuffle_dataset *)*out;
    d->options = *options;
    return DITTO_OK;
}
