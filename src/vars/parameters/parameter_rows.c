/* src/vars/parameters/parameter_rows.c - single rows of a parameter. The rows of a call are first sorted by
 * their shards, so that each lock is taken once, and is held only while rows are written or copied. Without
 * locks they are not sorted. */
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
    void *memory;    /* to be freed, or NULL */
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

static size_t row_bytes(const ditto_variable *v)
{
    return v->row_count * ditto_dtype_bytes(v->spec.dtype);
}

/* Returns row number k of a call. A row number is compared here again, because the program may have changed
 * it since it was checked. It then becomes row 0. */
static size_t row_at(const ditto_variable *v, const int64_t *indices, size_t k)
{
    size_t row = (size_t)((const volatile int64_t *)indices)[k];
    return row < v->spec.shape[0] ? row : 0;
}

/* A division of 64 bits takes several times as long on some processors. */
static size_t divide(size_t number, size_t by)
{
    return number <= UINT32_MAX && by <= UINT32_MAX ? (uint32_t)number / (uint32_t)by : number / by;
}

/* Says in which shard a row is. Shards are as equal as possible, the larger ones first (partition.c). */
static uint32_t shard_of(const ditto_variable *v, size_t row)
{
    size_t rows = v->shard_rows, in_large = v->large_shards * (rows + 1);
    if (v->pieces == 1)
        return 0;
    return (uint32_t)(row < in_large ? divide(row, rows + 1)
                                     : v->large_shards + divide(row - in_large, rows));
}

static struct row row_in_shard(const ditto_variable *v, uint32_t piece, size_t row, size_t entry)
{
    size_t first_bytes = v->piece[piece].first * ditto_dtype_bytes(v->spec.dtype);
    return (struct row){ row * row_bytes(v) - first_bytes, entry };
}

/* Sorts the rows of a call by counting. */
static ditto_status sort(const ditto_variable *v, const int64_t *indices, size_t count, struct few *few,
                         struct sorted_rows *s)
{
    struct place *place;
    size_t at = 0;
    if (!make_room(v, count, few, s, &place))
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to sort %zu rows of \"%s\"", count, v->name);
    memset(s->end, 0, v->pieces * sizeof *s->end);
    for (size_t k = 0; k < count; k++) { /* each row gets its shard, and each shard its number of rows */
        place[k].row = row_at(v, indices, k);
        place[k].shard = shard_of(v, place[k].row);
        s->end[place[k].shard]++;
    }
    for (uint32_t i = 0; i < v->pieces; i++) { /* the numbers become the places of the first rows */
        size_t rows = s->end[i];
        s->end[i] = at;
        at += rows;
    }
    for (size_t k = 0; k < count; k++) { /* and then those behind the last ones */
        uint32_t i = place[k].shard;
        s->row[s->end[i]++] = row_in_shard(v, i, place[k].row, k);
    }
    return DITTO_OK;
}

static size_t first_of(const struct sorted_rows *s, uint32_t piece)
{
    return piece > 0 ? s->end[piece - 1] : 0;
}

/* Rows are prefetched this many rows before they are used. */
#define AHEAD 6

/* -- rows of one shard -- */

/* Where rows come from, or go to. */
struct transfer {
    const ditto_variable *v;
    const struct dti_replica *writer;
    enum dti_rule rule;
    const char *values; /* of a scatter */
    char *rows;         /* of a lookup */
    const struct dti_reading *reading;
};

static ditto_status scatter_in_shard(const struct transfer *t, uint32_t piece, const struct row *row,
                                     size_t count)
{
    const ditto_variable *v = t->v;
    char *elements = dti_shard_elements(v, piece);
    DTI_TRY(dti_shard_lock(v, piece));
    for (size_t k = 0; k < count; k++) {
        if (k + AHEAD < count)
            __builtin_prefetch(elements + row[k + AHEAD].offset, 1);
        dti_shard_apply(v, t->rule, elements + row[k].offset, t->values + row[k].entry * row_bytes(v),
                        v->row_count);
    }
    dti_shard_updated(v, piece, t->writer);
    dti_shard_unlock(v, piece);
    return DITTO_OK;
}

static ditto_status lookup_in_shard(const struct transfer *t, uint32_t piece, const struct row *row,
                                    size_t count)
{
    const char *elements = dti_shard_elements(t->v, piece);
    size_t bytes = row_bytes(t->v);
    DTI_TRY(dti_reading_begin(t->reading, t->v, piece));
    for (size_t k = 0; k < count; k++)
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): sort has made all rows */
        dti_shard_copy(t->v, t->rows + row[k].entry * bytes, elements + row[k].offset, bytes,
                       !t->reading->is_free);
    dti_reading_end(t->reading, t->v, piece);
    return DITTO_OK;
}

/* Calls in_shard for the rows of each shard. One row is not sorted. */
static ditto_status for_each_shard(const struct transfer *t, const int64_t *indices, size_t count,
                                   ditto_status (*in_shard)(const struct transfer *t, uint32_t piece,
                                                            const struct row *row, size_t count))
{
    struct few few;
    struct sorted_rows s;
    ditto_status status = DITTO_OK;
    if (count == 1) {
        size_t row = row_at(t->v, indices, 0);
        uint32_t piece = shard_of(t->v, row);
        struct row one = row_in_shard(t->v, piece, row, 0);
        return in_shard(t, piece, &one, 1);
    }
    DTI_TRY(sort(t->v, indices, count, &few, &s));
    for (uint32_t i = 0; i < t->v->pieces && status == DITTO_OK; i++)
        if (first_of(&s, i) != s.end[i])
            status = in_shard(t, i, s.row + first_of(&s, i), s.end[i] - first_of(&s, i));
    free(s.memory);
    return status;
}

/* -- without locks -- */

/* Changes the rows in the order of the call, and then counts an update of each shard that has one of them. */
static void scatter_without_locks(const struct transfer *t, const int64_t *indices, size_t count)
{
    const ditto_variable *v = t->v;
    struct dti_shard_counts *counts = dti_shard_counts_of(v, t->writer);
    char *elements = dti_shard_elements(v, 0);
    size_t bytes = row_bytes(v);
    for (size_t k = 0; k < count; k++) {
        if (k + AHEAD < count)
            __builtin_prefetch(elements + row_at(v, indices, k + AHEAD) * bytes, 1);
        dti_shard_apply(v, t->rule, elements + row_at(v, indices, k) * bytes, t->values + k * bytes,
                        v->row_count);
    }
    counts->calls++;
    for (size_t k = 0; k < (v->pieces > 1 ? count : 1); k++) {
        uint32_t piece = shard_of(v, row_at(v, indices, k));
        if (counts->shard[piece].last_call != counts->calls) {
            counts->shard[piece].last_call = counts->calls;
            dti_shard_count(&counts->shard[piece].updates);
        }
    }
}

static void lookup_without_locks(const struct transfer *t, const int64_t *indices, size_t count)
{
    const char *elements = dti_shard_elements(t->v, 0);
    size_t bytes = row_bytes(t->v);
    for (size_t k = 0; k < count; k++) {
        if (k + AHEAD < count)
            __builtin_prefetch(elements + row_at(t->v, indices, k + AHEAD) * bytes);
        dti_shard_copy(t->v, t->rows + k * bytes, elements + row_at(t->v, indices, k) * bytes, bytes, false);
    }
}

ditto_status dti_parameter_scatter(const ditto_variable *v, const struct dti_replica *writer,
                                   enum dti_rule rule, const ditto_slices *slices)
{
    struct transfer t = { .v = v, .writer = writer, .rule = rule, .values = slices->values };
    ditto_status status = DITTO_OK;
    if (slices->rows == 0)
        return DITTO_OK;
    struct dti_fenv saved = dti_fenv_enter();
    if (v->concurrency == DITTO_CONCURRENCY_HOGWILD)
        scatter_without_locks(&t, slices->indices, slices->rows);
    else
        status = for_each_shard(&t, slices->indices, slices->rows, scatter_in_shard);
    dti_fenv_leave(saved);
    return status;
}

ditto_status dti_parameter_lookup(const ditto_variable *v, const int64_t *indices, size_t count, void *rows,
                                  const struct dti_reading *reading)
{
    struct transfer t = { .v = v, .rows = rows, .reading = reading };
    if (count == 0)
        return DITTO_OK;
    if (reading->versions != NULL || (v->concurrency != DITTO_CONCURRENCY_HOGWILD && !reading->is_free))
        return for_each_shard(&t, indices, count, lookup_in_shard);
    lookup_without_locks(&t, indices, count);
    return DITTO_OK;
}
