/* src/input/shuffle.c - rows in a random order that depends on seed and pass alone.
 *
 * A buffer of rows is kept full; each row given out is drawn from it and replaced by the next one of the input. With a
 * buffer of all rows that is Knuth's algorithm P. It runs in the one sequencer, so producers cannot change the order. */
#include "input/input.h"

#include <stdlib.h>

struct shuffle_dataset {
    ditto_dataset base; /* first */
    ditto_shuffle_options options;
};

struct shuffle_cursor {
    const ditto_dataset *input;
    struct dti_cursor *from;
    uint64_t random;   /* state of SplitMix64 */
    uint64_t capacity; /* UINT64_MAX: all rows */
    struct dti_row *rows;
    size_t filled, room;
    bool drained;
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

/* Uniform in [0, bound), without bias: numbers beyond the last full multiple of bound are drawn again. */
static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound, number;
    do
        number = next_random(state);
    while (number >= limit);
    return number % bound;
}

static ditto_status open_shuffle(const ditto_dataset *dataset, const struct dti_pass *pass, struct dti_cursor **out)
{
    const ditto_shuffle_options *o = &((const struct shuffle_dataset *)dataset)->options;
    struct shuffle_cursor *c = calloc(1, sizeof *c);
    if (c == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to shuffle");
    c->input = dataset->input;
    c->closing = pass->closing;
    c->capacity = o->buffer_rows != 0 ? o->buffer_rows : UINT64_MAX;
    uint64_t own_pass = o->reshuffle == DITTO_RESHUFFLE_NEVER ? 0 : pass->number;
    c->random = o->seed;
    c->random = next_random(&c->random) ^ own_pass; /* mixed, so that seed 1 pass 0 is not seed 0 pass 1 */
    ditto_status status = c->input->kind->open(c->input, pass, &c->from);
    if (status != DITTO_OK) {
        free(c);
        return status;
    }
    *out = (struct dti_cursor *)c;
    return DITTO_OK;
}

static ditto_status refill(struct shuffle_cursor *c)
{
    while (!c->drained && c->filled < c->capacity) {
        DTI_TRY(dti_pass_check(c->closing));
        if (c->filled == c->room) {
            size_t room = c->room != 0 ? 2 * c->room : 1024;
            struct dti_row *grown = realloc(c->rows, room * sizeof *grown);
            if (grown == NULL)
                return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to shuffle %zu rows: set a smaller buffer_rows", room);
            c->rows = grown;
            c->room = room;
        }
        ditto_status status = c->input->kind->next(c->from, &c->rows[c->filled]);
        if (status == DITTO_END_OF_INPUT)
            c->drained = true;
        else if (status != DITTO_OK)
            return status;
        else
            c->filled++;
    }
    return DITTO_OK;
}

static ditto_status next_shuffle(struct dti_cursor *cursor, struct dti_row *out)
{
    struct shuffle_cursor *c = (struct shuffle_cursor *)cursor;
    DTI_TRY(refill(c));
    if (c->filled == 0)
        return DITTO_END_OF_INPUT;
    size_t drawn = (size_t)random_below(&c->random, c->filled);
    *out = c->rows[drawn];
    c->rows[drawn] = c->rows[--c->filled];
    return DITTO_OK;
}

static void close_shuffle(struct dti_cursor *cursor)
{
    struct shuffle_cursor *c = (struct shuffle_cursor *)cursor;
    c->input->kind->close(c->from);
    free(c->rows);
    free(c);
}

static const struct dti_dataset_kind shuffle_kind = { .open = open_shuffle,
                                                      .next = next_shuffle,
                                                      .close = close_shuffle };

ditto_status dti_shuffle_create(ditto_dataset *input, const ditto_shuffle_options *options, ditto_dataset **out)
{
    struct shuffle_dataset *d = dti_dataset_new(sizeof *d, &shuffle_kind, input);
    if (d == NULL)
        return DITTO_ERR_NO_MEMORY;
    d->options = *options;
    *out = &d->base;
    return DITTO_OK;
}
