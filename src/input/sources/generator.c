/* src/input/sources/generator.c - rows that a function of the user makes one after the other. The cursor
 * calls it. */
#include "base/errors/user_call.h"
#include "input/sources/owned_row.h"
#include "input/sources/sources.h"

#include <stdlib.h>
#include <string.h>

struct generator_dataset {
    ditto_dataset base; /* first */
    ditto_generator user;
};

struct generator_cursor {
    struct dti_cursor base; /* first */
    const struct generator_dataset *generator;
    void *position; /* owned by the user's functions */
    bool opened;
    uint64_t pass, rows; /* `rows` is the number of rows so far */
    const _Atomic uint32_t *closing;
    bool ended; /* it has returned the end and is not called again */
};

static DTI_GUARDED ditto_status begin(struct generator_cursor *c)
{
    const ditto_generator *user = &c->generator->user;
    uint32_t serial = dti_this_thread()->errors;
    DTI_GUARD("a function of a generator (ditto_dataset_from_generator)");
    ditto_status status = user->open != NULL ? user->open(user->user, c->pass, &c->position) : DITTO_OK;
    DTI_GUARD_END();
    if (status != DITTO_OK)
        return dti_fail_user(status, serial, "a generator (open)", NULL, NULL);
    c->opened = true;
    return DITTO_OK;
}

static DTI_GUARDED void end(struct generator_cursor *c)
{
    DTI_GUARD("a function of a generator (ditto_dataset_from_generator)");
    if (c->opened && c->generator->user.close != NULL)
        c->generator->user.close(c->generator->user.user, c->position);
    DTI_GUARD_END();
    c->opened = false;
}

static ditto_status open_generator(struct dti_cursor *cursor, const struct dti_pass *pass)
{
    struct generator_cursor *c = (struct generator_cursor *)cursor;
    c->generator = (const struct generator_dataset *)cursor->dataset;
    c->pass = pass->number;
    c->closing = pass->closing;
    return begin(c);
}

/* Makes one row in a new block. */
static DTI_GUARDED ditto_status generate(struct generator_cursor *c, uint64_t *row)
{
    const ditto_dataset *dataset = &c->generator->base;
    const ditto_generator *user = &c->generator->user;
    void *component[DITTO_MAX_COMPONENTS];
    ditto_tensor out[DITTO_MAX_COMPONENTS];
    DTI_TRY(dti_owned_row_new(dataset, c->rows, row));
    dti_owned_row_components(dataset, row, component);
    dti_row_tensors(dataset, component, out);
    uint32_t serial = dti_this_thread()->errors;
    DTI_GUARD("a function of a generator (ditto_dataset_from_generator)");
    ditto_status status = user->next(user->user, c->position, out);
    DTI_GUARD_END();
    if (status < 0 || status > DITTO_END_OF_INPUT)
        status = dti_fail_user(status, serial, "a generator (next)", dataset, row);
    if (status != DITTO_OK)
        dti_owned_row_drop(dataset, row);
    return status;
}

static ditto_status next_generator(struct dti_cursor *cursor, struct dti_rows rows, size_t want, size_t *got)
{
    struct generator_cursor *c = (struct generator_cursor *)cursor;
    while (!c->ended && *got < want) {
        DTI_TRY(dti_closing_check(c->closing));
        ditto_status status = generate(c, rows.word + *got * rows.stride);
        c->ended = status == DITTO_END_OF_INPUT;
        DTI_TRY(status);
        c->rows++;
        ++*got;
    }
    return c->ended ? DITTO_END_OF_INPUT : DITTO_OK;
}

static void close_generator(struct dti_cursor *cursor)
{
    end((struct generator_cursor *)cursor);
}

static DTI_GUARDED ditto_status save_generator(struct dti_cursor *cursor, struct dti_bytes *to)
{
    struct generator_cursor *c = (struct generator_cursor *)cursor;
    const ditto_generator *user = &c->generator->user;
    size_t length = 0;
    dti_bytes_put_u64(to, c->rows);
    dti_bytes_put_u64(to, c->ended);
    if (c->ended)
        return DITTO_OK;
    if (user->save == NULL || user->restore == NULL)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "the generator has no save and restore functions, so its position is unknown: set both");
    uint32_t serial = dti_this_thread()->errors;
    DTI_GUARD("a function of a generator (ditto_dataset_from_generator)");
    ditto_status status = user->save(user->user, c->position, NULL, 0, &length);
    size_t capacity = length;
    char *state = malloc(capacity != 0 ? capacity : 1);
    if (status == DITTO_OK && state != NULL)
        status = user->save(user->user, c->position, state, capacity, &length);
    DTI_GUARD_END();
    if (status != DITTO_OK || state == NULL) {
        free(state);
        return status != DITTO_OK ? dti_fail_user(status, serial, "a generator (save)", NULL, NULL)
                                  : DTI_FAIL(DITTO_ERR_NO_MEMORY,
                                             "no memory for the %zu bytes of a generator's state", length);
    }
    if (length > capacity) {
        free(state);
        return DTI_FAIL(DITTO_ERR_INVALID, "a generator's save returned the length %zu first and then %zu",
                        capacity, length);
    }
    dti_bytes_put_u64(to, length);
    dti_bytes_put(to, state, length);
    free(state);
    return DITTO_OK;
}

static DTI_GUARDED ditto_status restore_generator(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    struct generator_cursor *c = (struct generator_cursor *)cursor;
    const ditto_generator *user = &c->generator->user;
    c->rows = dti_bytes_get_u64(from);
    c->ended = dti_bytes_get_at_most(from, 1) != 0;
    if (c->ended)
        return DITTO_OK;
    size_t length = dti_bytes_get_u64(from);
    if (from->failed || length > (size_t)(from->end - from->at)) {
        from->failed = true;
        return DITTO_OK;
    }
    if (user->restore == NULL)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "the generator has no save and restore functions, so its position is unknown: set both");
    uint32_t serial = dti_this_thread()->errors;
    DTI_GUARD("a function of a generator (ditto_dataset_from_generator)");
    ditto_status status = user->restore(user->user, c->position, from->at, length);
    DTI_GUARD_END();
    from->at += length;
    return status == DITTO_OK ? DITTO_OK : dti_fail_user(status, serial, "a generator (restore)", NULL, NULL);
}

static void where_generator(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    (void)dataset;
    dti_text_add(text, "row %llu of a generator", (unsigned long long)dti_owned_row_block(row)->number);
}

static const struct dti_dataset_kind generator_kind = {
    .name = "generator",
    .cursor_bytes = sizeof(struct generator_cursor),
    .open = open_generator,
    .next = next_generator,
    .close = close_generator,
    .save = save_generator,
    .restore = restore_generator,
    .fill = dti_owned_row_fill,
    .where = where_generator,
    .drop = dti_owned_row_drop,
    .save_row = dti_owned_row_save,
    .load_row = dti_owned_row_load,
};

ditto_status dti_generator_create(const ditto_generator *user, const ditto_tensor *row, uint32_t components,
                                  ditto_dataset **out)
{
    ditto_dataset *base;
    DTI_TRY(dti_dataset_new(sizeof(struct generator_dataset), &generator_kind, NULL, 0, &base));
    struct generator_dataset *g = (struct generator_dataset *)base;
    ditto_status status = DITTO_OK;
    g->user = *user;
    base->row_words = 1;
    base->components = components;
    base->holds = true;
    for (uint32_t k = 0; k < components && status == DITTO_OK; k++)
        status = dti_dataset_set_component(base, k, &row[k]);
    return dti_dataset_out(base, status, out);
}
