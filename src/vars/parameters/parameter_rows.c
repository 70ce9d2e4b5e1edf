/* src/vars/parameters/parameter_rows.c - single rows of a parameter. The rows of a call are first sorted by
 * their shards, so that each lock is taken once, and is held only while rows are written or copied. */
#include "vars/parameters/parameter.h"

#include <stdlib.h>
#include <string.h>

/* A row of a call: its place in the shard, in bytes, and its place in the call. */
struct row {
    size_t offset;
    size_t entry;
};

/* The rows of a call, sorted by their shards. Rows of one shard are in the order of the call. */
struct sorted_rows {
    struct row *row; /* [count] */
    size_t *end;     /* [pieces] Where the rows of each shard end. */
    size_t row_bytes;
    void *memory; /* to be freed, or NULL */
};

/* What sorting needs beside the result. */
struct place {
    size_t row;
    uint32_t shard;
};

/* Calls with few rows and shards need no allocation. */
enum { FEW_ROWS = 128, FEW_SHARDS = 64 };
struct few {
    struct row row[FEW_ROWS];
    struct place place[FEW_ROWS];
    size_t end[FEW_SHARDS];
};

/* Allocates what the call needs, or uses `few`. */
static bool make_room(const ditto_variable *v, size_t count, struct few *few, struct sorted_rows *s,
                      struct place **place)
{
    *s = (struct sorted_rows){ .row = &few->row[0], .end = &few->end[0] };
    *place = &few->place[0];
    if (count <= FEW_ROWS && v->pieces <= FEW_SHARDS)
        return true;
    s->memory = malloc(count * (sizeof *s->row + sizeof **place) + v->pieces * sizeof *s->end);
    if (s->memory == NULL)
        return false;
    s->row = s->memory;
    *place = (struct place *)(void *)(s->row + count);
    s->end = (size_t *)(void *)(*place + count);
    return true;
}

/* Says in which shard a row is. Shards are as equal as possible, the larger ones first (partition.c). */
static uint32_t shard_of(const ditto_variable *v, size_t row)
{
    size_t rows = v->spec.shape[0] / v->pieces, large = v->spec.shape[0] % v->pieces;
    size_t in_large = large * (rows + 1);
    return (uint32_t)(row < in_large ? row / (rows + 1) : large + (row - in_large) / rows);
}

/* Sorts the rows of a call by counting. */
static ditto_status sort(const ditto_variable *v, const int64_t *indices, size_t count, struct few *few,
                         struct sorted_rows *s)
{
    struct place *place;
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype), at = 0;
    if (!make_room(v, count, few, s, &place))
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to sort %zu rows of \"%s\"", count, v->name);
    s->row_bytes = v->count / v->spec.shape[0] * element_bytes;
    memset(s->end, 0, v->pieces * sizeof *s->end);
    for (size_t k = 0; k < count; k++) { /* each row gets its shard, and each shard its number of rows */
        /* A row number is read once, and is compared here again, because the program may have changed it
         * since it was checked. It then becomes row 0. */
        size_t row = (size_t)((const volatile int64_t *)indices)[k];
        place[k].row = row < v->spec.shape[0] ? row : 0;
        place[k].shard = v->pieces > 1 ? shard_of(v, place[k].row) : 0;
        s->end[place[k].shard]++;
    }
    for (uint32_t i = 0; i < v->pieces; i++) { /* the numbers become the places of the first rows */
        size_t rows = s->end[i];
        s->end[i] = at;
        at += rows;
    }
    for (size_t k = 0; k < count; k++) { /* and then those behind the last ones */
        uint32_t i = place[k].shard;
        size_t offset = place[k].row * s->row_bytes - v->piece[i].first * element_bytes;
        s->row[s->end[i]++] = (struct row){ offset, k };
    }
    return DITTO_OK;
}

static size_t first_of(const struct sorted_rows *s, uint32_t piece)
{
    return piece > 0 ? s->end[piece - 1] : 0;
}

/* Rows are prefetched this many rows before they are used. */
#define AHEAD 6

static ditto_status scatter_sorted(const ditto_variable *v, enum dti_rule rule, const struct sorted_rows *s,
                                   const char *values)
{
    size_t row_count = v->count / v->spec.shape[0];
    ditto_status status = DITTO_OK;
    struct dti_fenv saved = dti_fenv_enter();
    for (uint32_t i = 0; i < v->pieces; i++) {
        if (first_of(s, i) == s->end[i])
            continue;
        status = dti_shard_lock(v, i);
        if (status != DITTO_OK)
            break;
        char *elements = dti_shard_elements(v, i);
        size_t to = s->end[i];
        for (size_t k = first_of(s, i); k < to; k++) {
            if (k + AHEAD < to)
                __builtin_prefetch(elements + s->row[k + AHEAD].offset, 1);
            dti_shard_apply(v, rule, elements + s->row[k].offset, values + s->row[k].entry * s->row_bytes,
                            row_count);
        }
        dti_shard_updated(v, i);
        dti_shard_unlock(v, i);
    }
    dti_fenv_leave(saved);
    return status;
}

static ditto_status lookup_sorted(const ditto_variable *v, const struct sorted_rows *s, char *rows,
                                  const struct dti_reading *reading)
{
    for (uint32_t i = 0; i < v->pieces; i++) {
        if (first_of(s, i) == s->end[i])
            continue;
        const char *elements = dti_shard_elements(v, i);
        DTI_TRY(dti_reading_begin(reading, v, i));
        for (size_t k = first_of(s, i); k < s->end[i]; k++)
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): sort has made all rows */
            dti_shard_copy(v, rows + s->row[k].entry * s->row_bytes, elements + s->row[k].offset,
                           s->row_bytes, !reading->is_free);
        dti_reading_end(reading, v, i);
    }
    return DITTO_OK;
}

ditto_status dti_parameter_scatter(const ditto_variable *v, enum dti_rule rule, const ditto_slices *slices)
{
    struct few few;
    struct sorted_rows s;
    if (slices->rows == 0)
        return DITTO_OK;
    DTI_TRY(sort(v, slices->indices, slices->rows, &few, &s));
    ditto_status status = scatter_sorted(v, rule, &s, slices->values);
    free(s.memory);
    return status;
}

ditto_status dti_parameter_lookup(const ditto_variable *v, const int64_t *indices, size_t count, void *rows,
                                  const struct dti_reading *reading)
{
    struct few few;
    struct sorted_rows s;
    if (count == 0)
        return DITTO_OK;
    DTI_TRY(sort(v, indices, count, &few, &s));
    ditto_status status = lookup_sorted(v, &s, rows, reading);
    free(s.memory);
    return status;
}
