/* src/input/dataset.c - creation and release of datasets, and the functions that all kinds share. */
#include "input/dataset.h"
#include "base/errors/status.h"
#include "base/numbers/checksum.h"
#include "base/types/types.h"

#include <stdlib.h>
#include <string.h>

/* -- making -- */

static void inherit(ditto_dataset *d)
{
    const ditto_dataset *first = d->input[0];
    d->components = first->components;
    memcpy(d->component, first->component, sizeof d->component);
    d->row_bytes = first->row_bytes;
    d->row_words = first->row_words;
    d->batch_rows = first->batch_rows;
    d->drop_remainder = first->drop_remainder;
    d->infinite = first->infinite;
    d->prefetch = first->prefetch;
    d->files = first->files;
    d->by_file = first->by_file;
    if (d->kind->fill == NULL)
        d->reader = first->reader;
    for (uint32_t i = 0; i < d->inputs; i++) {
        dti_dataset_retain(d->input[i]);
        d->holds |= d->input[i]->holds;
    }
}

ditto_status dti_dataset_new(size_t bytes, const struct dti_dataset_kind *kind, ditto_dataset *const *input,
                             uint32_t inputs, ditto_dataset **out)
{
    uint32_t depth = 1;
    for (uint32_t i = 0; i < inputs; i++)
        depth = input[i]->depth + 1 > depth ? input[i]->depth + 1 : depth;
    if (depth > DTI_MOST_DEPTH_OF_DATASETS)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "this dataset would be made from a chain of %u others: a chain has at most %u",
                        depth - 1, DTI_MOST_DEPTH_OF_DATASETS - 1);
    ditto_dataset *d = calloc(1, bytes);
    if (d != NULL && inputs > 0)
        d->input = malloc(inputs * sizeof(ditto_dataset *));
    if (d == NULL || (inputs > 0 && d->input == NULL)) {
        free(d);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a dataset");
    }
    atomic_init(&d->references, 1);
    d->kind = kind;
    d->inputs = inputs;
    d->depth = depth;
    d->reader = d;
    if (inputs > 0) {
        memcpy(d->input, input, inputs * sizeof(ditto_dataset *));
        inherit(d);
    }
    *out = d;
    return DITTO_OK;
}

ditto_status dti_dataset_finish(ditto_dataset *d)
{
    d->row_bytes = 0;
    for (uint32_t k = 0; k < d->components; k++)
        if (__builtin_add_overflow(d->row_bytes, d->component[k].bytes, &d->row_bytes))
            return DTI_FAIL(DITTO_ERR_RANGE, "a row has more bytes than size_t can count");
    return DITTO_OK;
}

ditto_status dti_dataset_set_component(ditto_dataset *d, uint32_t k, const ditto_tensor *given)
{
    ditto_tensor spec = *given;
    spec.data = NULL;
    if (spec.rank >= DITTO_MAX_RANK)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "component %u of a row has rank %u: it has at most %d, because a batch has one dimension more", k,
            spec.rank, DITTO_MAX_RANK - 1);
    size_t bytes;
    DTI_TRY(dti_tensor_check(&spec, &bytes));
    d->component[k] = (struct dti_row_component_spec){ .dtype = spec.dtype,
                                                       .rank = spec.rank,
                                                       .bytes = bytes };
    memcpy(d->component[k].shape, spec.shape, spec.rank * sizeof spec.shape[0]);
    return DITTO_OK;
}

ditto_status dti_dataset_check_alike(const ditto_dataset *first, const char *first_name,
                                     const ditto_dataset *other, const char *other_name)
{
    ditto_tensor expected[DITTO_MAX_COMPONENTS], found[DITTO_MAX_COMPONENTS];
    char expected_text[DTI_SPEC_TEXT_BYTES], found_text[DTI_SPEC_TEXT_BYTES];
    void *none[DITTO_MAX_COMPONENTS] = { NULL };
    if (other->components != first->components)
        return DTI_FAIL(DITTO_ERR_INVALID, "rows of %s have %u components, but rows of %s have %u",
                        other_name, other->components, first_name, first->components);
    dti_row_tensors(first, none, expected);
    dti_row_tensors(other, none, found);
    for (uint32_t k = 0; k < first->components; k++) {
        if (dti_spec_equal(&expected[k], &found[k]))
            continue;
        dti_spec_text(&expected[k], expected_text);
        dti_spec_text(&found[k], found_text);
        return DTI_FAIL(DITTO_ERR_INVALID, "component %u is %s in rows of %s, but %s in %s", k, found_text,
                        other_name, expected_text, first_name);
    }
    return DITTO_OK;
}

ditto_status dti_dataset_out(ditto_dataset *dataset, ditto_status status, ditto_dataset **out)
{
    if (status == DITTO_OK)
        status = dti_dataset_finish(dataset);
    if (status == DITTO_OK)
        *out = dataset;
    else
        dti_dataset_release(dataset);
    return status;
}

void dti_dataset_retain(ditto_dataset *dataset)
{
    /* relaxed: the caller has a reference already, or the right to use the handle */
    atomic_fetch_add_explicit(&dataset->references, 1, memory_order_relaxed);
}

/* The first input is released in a loop, so a chain of datasets takes no stack. The other inputs are released
 * by recursion, which the limit on their depth bounds. */
void dti_dataset_release(ditto_dataset *d)
{
    /* acq_rel: all accesses through other references happen before the dataset is freed. */
    while (d != NULL && atomic_fetch_sub_explicit(&d->references, 1, memory_order_acq_rel) == 1) {
        ditto_dataset *first = d->inputs > 0 ? d->input[0] : NULL;
        for (uint32_t i = 1; i < d->inputs; i++)
            dti_dataset_release(d->input[i]);
        if (d->kind->free != NULL)
            d->kind->free(d);
        free(d->input);
        free(d);
        d = first;
    }
}

static void digest(const ditto_dataset *d, struct dti_bytes *to)
{
    dti_bytes_put(to, d->kind->name, strlen(d->kind->name) + 1);
    dti_bytes_put_u64(to, d->components);
    for (uint32_t k = 0; k < d->components; k++) {
        const struct dti_row_component_spec *spec = &d->component[k];
        dti_bytes_put_u64(to, (uint64_t)spec->dtype);
        dti_bytes_put_u64(to, spec->rank);
        for (uint32_t i = 0; i < spec->rank; i++)
            dti_bytes_put_u64(to, spec->shape[i]);
    }
    if (d->kind->digest != NULL)
        d->kind->digest(d, to);
    dti_bytes_put_u64(to, d->inputs);
    for (uint32_t i = 0; i < d->inputs; i++)
        digest(d->input[i], to);
}

ditto_status dti_dataset_fingerprint(const ditto_dataset *dataset, uint64_t *out)
{
    struct dti_bytes bytes = { 0 };
    digest(dataset, &bytes);
    ditto_status status = dti_bytes_status(&bytes);
    *out = dti_hash_bytes(DTI_HASH_SEED, bytes.data, bytes.length);
    dti_bytes_free(&bytes);
    return status;
}

/* -- cursors -- */

ditto_status dti_cursor_open(const ditto_dataset *dataset, const struct dti_pass *pass,
                             struct dti_cursor **out)
{
    *out = NULL;
    while (dataset->kind->cursor_bytes == 0)
        dataset = dataset->input[0];
    struct dti_cursor *cursor = calloc(1, dataset->kind->cursor_bytes);
    if (cursor == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to iterate a dataset");
    cursor->dataset = dataset;
    ditto_status status = dataset->kind->open(cursor, pass);
    if (status != DITTO_OK) {
        dti_cursor_close(cursor);
        return status;
    }
    *out = cursor;
    return DITTO_OK;
}

void dti_cursor_close(struct dti_cursor *cursor)
{
    while (cursor != NULL) {
        struct dti_cursor *from = cursor->from;
        if (cursor->dataset->kind->close != NULL)
            cursor->dataset->kind->close(cursor);
        free(cursor);
        cursor = from;
    }
}

ditto_status dti_cursor_save(struct dti_cursor *cursor, struct dti_bytes *to)
{
    if (cursor->dataset->kind->save != NULL)
        DTI_TRY(cursor->dataset->kind->save(cursor, to));
    return cursor->from != NULL ? dti_cursor_save(cursor->from, to) : DITTO_OK;
}

ditto_status dti_cursor_restore(struct dti_cursor *cursor, struct dti_bytes_reader *from)
{
    if (cursor->dataset->kind->restore != NULL)
        DTI_TRY(cursor->dataset->kind->restore(cursor, from));
    return cursor->from != NULL ? dti_cursor_restore(cursor->from, from) : DITTO_OK;
}

ditto_status dti_closing_check(const _Atomic uint32_t *closing)
{
    /* relaxed: it only ends a loop early */
    if (closing != NULL && atomic_load_explicit(closing, memory_order_relaxed) != 0)
        return DTI_FAIL(DITTO_ERR_CLOSED, "the iterator is being destroyed");
    return DITTO_OK;
}

/* -- rows -- */

void dti_row_where(const ditto_dataset *dataset, const uint64_t *row, struct dti_text *text)
{
    dataset->reader->kind->where(dataset->reader, row, text);
}

void dti_rows_drop(const ditto_dataset *dataset, struct dti_rows rows, size_t count)
{
    for (size_t i = 0; dataset->holds && i < count; i++)
        dataset->reader->kind->drop(dataset->reader, dti_rows_from(rows, i).word);
}

ditto_status dti_row_save(const ditto_dataset *dataset, const uint64_t *row, struct dti_bytes *to)
{
    if (dataset->reader->kind->save_row != NULL)
        return dataset->reader->kind->save_row(dataset->reader, row, to);
    for (uint32_t i = 0; i < dataset->row_words; i++)
        dti_bytes_put_u64(to, row[i]);
    return DITTO_OK;
}

ditto_status dti_row_load(const ditto_dataset *dataset, uint64_t *row, struct dti_bytes_reader *from)
{
    if (dataset->reader->kind->load_row != NULL)
        return dataset->reader->kind->load_row(dataset->reader, row, from);
    for (uint32_t i = 0; i < dataset->row_words; i++)
        row[i] = dti_bytes_get_u64(from);
    return dti_bytes_reader_status(from);
}

ditto_status dti_rows_save(const ditto_dataset *dataset, struct dti_rows rows, size_t count,
                           struct dti_bytes *to)
{
    dti_bytes_put_u64(to, count);
    for (size_t i = 0; i < count; i++)
        DTI_TRY(dti_row_save(dataset, dti_rows_from(rows, i).word, to));
    return DITTO_OK;
}

size_t dti_rows_load_count(struct dti_bytes_reader *from, uint64_t most)
{
    uint64_t count = dti_bytes_get_at_most(from, most);
    if (count <= (uint64_t)(from->end - from->at)) /* each row takes at least one byte */
        return (size_t)count;
    from->failed = true;
    return 0;
}

ditto_status dti_rows_load(const ditto_dataset *dataset, struct dti_rows rows, size_t count, size_t *loaded,
                           struct dti_bytes_reader *from)
{
    for (*loaded = 0; *loaded < count; ++*loaded)
        DTI_TRY(dti_row_load(dataset, dti_rows_from(rows, *loaded).word, from));
    return dti_bytes_reader_status(from);
}

bool dti_dataset_layout(const ditto_dataset *dataset, uint64_t rows, size_t *offset, size_t *bytes)
{
    size_t component_bytes;
    *bytes = 0;
    for (uint32_t k = 0; k < dataset->components; k++) {
        offset[k] = *bytes;
        if (!dti_multiply(rows, dataset->component[k].bytes, &component_bytes) ||
            __builtin_add_overflow(component_bytes, DTI_CACHE_LINE_PAIR - 1, &component_bytes) ||
            __builtin_add_overflow(*bytes, component_bytes / DTI_CACHE_LINE_PAIR * DTI_CACHE_LINE_PAIR,
                                   bytes))
            return false;
    }
    return true;
}

void dti_row_tensors(const ditto_dataset *dataset, void *const *component, ditto_tensor *out)
{
    for (uint32_t k = 0; k < dataset->components; k++) {
        const struct dti_row_component_spec *spec = &dataset->component[k];
        out[k] = (ditto_tensor){ .data = component[k], .dtype = spec->dtype, .rank = spec->rank };
        memcpy(out[k].shape, spec->shape, spec->rank * sizeof spec->shape[0]);
    }
    for (uint32_t k = dataset->components; k < DITTO_MAX_COMPONENTS; k++)
        out[k].dtype = (ditto_dtype)0;
}

ditto_status dti_fail_user(ditto_status status, uint32_t serial_before, const char *what,
                           const ditto_dataset *dataset, const uint64_t *row)
{
    char where[256] = "", own_message[200] = "", status_text[16] = "";
    struct dti_text text = { where, sizeof where, 0 };
    ditto_status reported = status < 0 ? status : DITTO_ERR_USER;
    if (dataset != NULL)
        dti_row_where(dataset, row, &text);
    if (dti_this_thread()->errors != serial_before) /* the function has recorded the cause */
        dti_text_add(&(struct dti_text){ own_message, sizeof own_message, 0 }, ": %s",
                     dti_error_get()->message);
    if (status > 0) /* not an error, and perhaps not a value of ditto_status */
        dti_text_add(&(struct dti_text){ status_text, sizeof status_text, 0 }, "%d, ", (int)status);
    return DTI_FAIL(reported, "the function of %s returned %s%s%s%s%s", what, status_text,
                    ditto_status_name(status), where[0] != '\0' ? " on " : "", where, own_message);
}

/* -- readers -- */

char *dti_reader_buffer(struct dti_reader *reader, size_t bytes)
{
    if (bytes <= reader->capacity)
        return reader->buffer;
    size_t capacity = bytes > ((size_t)64 << 10) ? bytes : (size_t)64 << 10;
    free(reader->buffer);
    reader->buffer = malloc(capacity);
    reader->capacity = reader->buffer != NULL ? capacity : 0;
    if (reader->buffer == NULL)
        DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read %zu bytes", bytes);
    return reader->buffer;
}

void dti_reader_free(struct dti_reader *reader)
{
    free(reader->buffer);
    *reader = (struct dti_reader){ 0 };
}
