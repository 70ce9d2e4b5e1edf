/* src/values/reductions/value_slices.c - concatenates and merges the slices of all replicas, and makes dense
 * arrays of them. The calling thread does all the work, in the library's floating-point environment. Over
 * several hosts each host does it, with the slices of all. */
#include "base/numbers/checksum.h"
#include "sync/hosts/cross.h"
#include "sync/kernels/local_reduction.h"
#include "sync/kernels/merge_rows.h"
#include "sync/sync.h"
#include "values/reductions/reductions.h"
#include "values/values.h"

#include <stdlib.h>
#include <string.h>

/* Makes a value of `rows` slices, like those of `like`, with memory for their elements and indices. All
 * replicas share the same slices. */
static ditto_status make_slices(const ditto_value *like, size_t rows, ditto_value **out)
{
    ditto_value *value;
    ditto_slices first = dti_slices_of(like, 0);
    size_t count, bytes;
    if (!dti_multiply(rows, first.row_count, &count) ||
        !dti_multiply(count, ditto_dtype_bytes(first.dtype), &bytes))
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu slices of %zu elements have more bytes than size_t can count",
                        rows, first.row_count);
    size_t aligned = (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
    DTI_TRY(dti_value_make(like->strategy, DITTO_VALUE_SLICES, &value));
    value->plain = (ditto_tensor){ .dtype = DITTO_U8,
                                   .rank = 1,
                                   .shape = { aligned + (rows + 8) * sizeof(int64_t) } };
    ditto_status status = dti_value_allocate(value);
    for (uint32_t i = 0; i < dti_base_of(like->strategy)->num_replicas && status == DITTO_OK; i++) {
        value->part[i] = (ditto_tensor){
            .data = value->plain.data, .dtype = first.dtype, .rank = 2, .shape = { rows, first.row_count }
        };
        value->index[i] = (int64_t *)(void *)((char *)value->plain.data + aligned);
    }
    value->dense_rows = like->dense_rows;
    value->same_slices = true;
    return dti_value_finish(value, status, out);
}

/* -- the slices of all replicas -- */

/* The slices of each replica of all hosts, or one part if they are the same for all. */
struct all_slices {
    ditto_slices *part;
    uint32_t n;
    size_t rows; /* of all parts */
};

/* Slices on the wire. The indices follow, then the values, each at a multiple of 16 bytes. */
struct wire_slices {
    uint64_t rows, unused;
};

static size_t round_up(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static size_t row_bytes_of(const ditto_value *v)
{
    return v->part[0].shape[1] * ditto_dtype_bytes(v->part[0].dtype);
}

static size_t wire_bytes(size_t rows, size_t row_bytes)
{
    return sizeof(struct wire_slices) + round_up(rows * sizeof(int64_t)) + round_up(rows * row_bytes);
}

/* Writes the slices of this host's replicas, which the caller frees. */
static unsigned char *pack(const ditto_value *v, size_t *bytes)
{
    uint32_t n = dti_base_of(v->strategy)->num_replicas;
    size_t row_bytes = row_bytes_of(v);
    *bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        *bytes += wire_bytes(v->part[i].shape[0], row_bytes);
    unsigned char *out = calloc(1, *bytes + 1), *at = out;
    for (uint32_t i = 0; out != NULL && i < n; i++) {
        ditto_slices slices = dti_slices_of(v, i);
        struct wire_slices head = { .rows = slices.rows };
        unsigned char *indices = at + sizeof head,
                      *values = indices + round_up(slices.rows * sizeof *slices.indices);
        memcpy(at, &head, sizeof head);
        if (slices.rows != 0) {
            memcpy(indices, slices.indices, slices.rows * sizeof *slices.indices);
            memcpy(values, slices.values, slices.rows * row_bytes);
        }
        at += wire_bytes(slices.rows, row_bytes);
    }
    return out;
}

static ditto_status fail_memory(void)
{
    return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the slices of all replicas");
}

/* Gets the slices of all hosts. They stay where they were received, which is valid until the next exchange,
 * and so until this call ends. */
static ditto_status gather(const ditto_value *v, ditto_op op, uint64_t destination, struct all_slices *all)
{
    struct dti_team *team = dti_team_of(v->strategy);
    const uint64_t equal[] = { (uint64_t)op, (uint64_t)v->part[0].dtype, v->part[0].shape[1], v->dense_rows,
                               destination };
    struct dti_cross_request request = { .name = dti_this_thread()->function,
                                         .digest = dti_hash_bytes(DTI_HASH_SEED, equal, sizeof equal) };
    const struct dti_gathered *given;
    size_t bytes, row_bytes = row_bytes_of(v);
    unsigned char *own = pack(v, &bytes);
    if (own == NULL)
        return fail_memory();
    ditto_status status = dti_cross_gather(team, &request, own, bytes, &given);
    free(own);
    DTI_TRY(status);
    uint32_t i = 0;
    for (uint32_t h = 0; h < dti_cross_hosts(team); h++)
        for (size_t at = 0; at < given[h].bytes && i < all->n; i++) {
            struct wire_slices head;
            const unsigned char *data = given[h].data + at;
            memcpy(&head, data, sizeof head);
            all->part[i] = dti_slices_of(v, 0);
            all->part[i].rows = head.rows;
            all->part[i].indices = (int64_t *)(uintptr_t)(data + sizeof head);
            all->part[i].values = (void *)(uintptr_t)(data + sizeof head +
                                                      round_up(head.rows * sizeof(int64_t)));
            at += wire_bytes(head.rows, row_bytes);
        }
    return DITTO_OK;
}

/* Finds the slices of all replicas, in a list that the caller frees. The op is 0 if they are merged.
 * `destination` is what all hosts must have in common about where the result goes. */
static ditto_status open_all(const ditto_value *v, ditto_op op, uint64_t destination, struct all_slices *all)
{
    struct dti_team *team = dti_team_of(v->strategy);
    bool gathers = !v->same_slices && dti_cross_has_hosts(team);
    ditto_status status = DITTO_OK;
    *all = (struct all_slices){ .n = v->same_slices ? 1 : dti_team_all_replicas(team) };
    all->part = calloc(all->n, sizeof *all->part);
    if (all->part == NULL)
        return fail_memory();
    if (gathers)
        status = gather(v, op, destination, all);
    for (uint32_t i = 0; i < all->n && !gathers; i++)
        all->part[i] = dti_slices_of(v, i);
    for (uint32_t i = 0; i < all->n && status == DITTO_OK; i++)
        all->rows += all->part[i].rows;
    if (status != DITTO_OK)
        free(all->part);
    return status;
}

/* -- concatenating -- */

/* Checks that op is SUM or MEAN, and that the dtype has it. If the slices are the same for all replicas, also
 * checks that op may be applied to such a value. */
static ditto_status check_op(const ditto_value *v, ditto_op op)
{
    if (op != DITTO_SUM && op != DITTO_MEAN)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s of slices is not supported: use SUM or MEAN",
                        ditto_op_name(op));
    DTI_TRY(dti_reduction_check(v->part[0].dtype, op));
    return v->same_slices ? dti_reduce_check_once(v->strategy, op) : DITTO_OK;
}

ditto_status dti_concatenate_slices(const ditto_value *v, ditto_op op, uint64_t destination,
                                    ditto_value **out)
{
    struct all_slices all;
    DTI_TRY(check_op(v, op));
    DTI_TRY(open_all(v, op, destination, &all));
    ditto_status status = make_slices(v, all.rows, out);
    if (status == DITTO_OK) {
        ditto_slices joined = dti_slices_of(*out, 0);
        size_t rows = 0, row_bytes = joined.row_count * ditto_dtype_bytes(joined.dtype);
        for (uint32_t i = 0; i < all.n; i++) {
            const ditto_slices *part = &all.part[i];
            if (part->rows != 0) {
                memcpy((char *)joined.values + rows * row_bytes, part->values, part->rows * row_bytes);
                memcpy(joined.indices + rows, part->indices, part->rows * sizeof *part->indices);
            }
            rows += part->rows;
        }
        struct dti_fenv saved = dti_fenv_enter();
        if (op == DITTO_MEAN && all.n > 1)
            dti_divide(joined.dtype, joined.values, joined.values, rows * joined.row_count, all.n);
        dti_fenv_leave(saved);
    }
    free(all.part);
    return status;
}

/* -- merging -- */

/* The rows of all parts, sorted by their index. */
struct sorted {
    struct all_slices all;
    struct dti_indexed_row *indexed;
    struct dti_tree_value *value; /* [rows]: the inputs of one reduction */
    char *tile;                   /* a merge tile, and behind it the scratch memory of the tree */
};

static void release(struct sorted *s)
{
    free(s->all.part);
    free(s->indexed);
    free(s->value);
    free(s->tile);
}

static ditto_status sort(const ditto_value *v, ditto_op op, uint64_t destination, struct sorted *s)
{
    size_t order = 0, row_bytes = row_bytes_of(v);
    *s = (struct sorted){ .indexed = NULL };
    DTI_TRY(open_all(v, op, destination, &s->all));
    s->indexed = malloc((s->all.rows + 1) * sizeof *s->indexed);
    s->value = malloc((s->all.rows + 1) * sizeof *s->value);
    s->tile = malloc(DTI_MERGE_TILE_BYTES + DTI_MERGE_SCRATCH_BYTES);
    if (s->indexed == NULL || s->value == NULL || s->tile == NULL) {
        size_t rows = s->all.rows;
        release(s);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to sort %zu slices", rows);
    }
    for (uint32_t i = 0; i < s->all.n; i++) {
        const ditto_slices *part = &s->all.part[i];
        for (size_t k = 0; k < part->rows; k++, order++)
            s->indexed[order] = (struct dti_indexed_row){ part->indices[k], order,
                                                          (const char *)part->values + k * row_bytes };
    }
    dti_indexed_rows_sort(s->indexed, s->all.rows);
    return DITTO_OK;
}

/* Combines the rows of one index in the order of the reduction tree. For MEAN the result is divided by
 * `divisor` before it is rounded, so that a sum that the dtype cannot represent does no harm. */
static void combine_rows(const struct sorted *s, struct dti_reduction *r, size_t first, size_t end,
                         uint32_t divisor, size_t row_count, char *dst)
{
    size_t chunk = DTI_MERGE_TILE_BYTES / r->accumulator_bytes;
    for (size_t at = 0; at < row_count; at += chunk) {
        size_t count = row_count - at < chunk ? row_count - at : chunk;
        dti_indexed_rows_fold(r, s->indexed + first, end - first, at, count, s->value, s->tile,
                              s->tile + DTI_MERGE_TILE_BYTES);
        dti_finish(r, divisor, s->tile, s->tile, count, dst + at * r->element_bytes);
    }
}

ditto_status dti_merge_slices(const ditto_value *v, ditto_value **out)
{
    struct sorted sorted;
    ditto_value *slices;
    DTI_TRY(dti_reduction_check(v->part[0].dtype, DITTO_SUM));
    DTI_TRY(sort(v, (ditto_op)0, 0, &sorted));
    ditto_status status = make_slices(v, dti_indexed_rows_distinct(sorted.indexed, sorted.all.rows), &slices);
    if (status == DITTO_OK) {
        ditto_slices merged = dti_slices_of(slices, 0);
        struct dti_fenv saved = dti_fenv_enter();
        struct dti_reduction sum = dti_reduction_of(dti_kernels_best(), merged.dtype, DITTO_SUM);
        size_t row_bytes = merged.row_count * sum.element_bytes, row = 0;
        for (size_t first = 0, end; first < sorted.all.rows; first = end, row++) {
            end = dti_indexed_rows_end(sorted.indexed, sorted.all.rows, first);
            merged.indices[row] = sorted.indexed[first].index;
            combine_rows(&sorted, &sum, first, end, 1, merged.row_count,
                         (char *)merged.values + row * row_bytes);
        }
        dti_fenv_leave(saved);
        status = dti_value_finish(slices, DITTO_OK, out);
    }
    release(&sorted);
    return status;
}

/* -- dense -- */

ditto_status dti_slices_to_dense(const ditto_value *v, ditto_op op, uint64_t destination, size_t rows,
                                 void *dst)
{
    struct sorted sorted;
    size_t row_count = v->part[0].shape[1], row_bytes = row_count * ditto_dtype_bytes(v->part[0].dtype);
    DTI_TRY(check_op(v, op));
    DTI_TRY(sort(v, op, dti_hash_word(destination, rows), &sorted));
    struct dti_reduction r = dti_reduction_of(dti_kernels_best(), v->part[0].dtype, op);
    ditto_status status = DITTO_OK;
    if (sorted.all.rows != 0 && (uint64_t)sorted.indexed[sorted.all.rows - 1].index >= rows)
        status = DTI_FAIL(DITTO_ERR_RANGE, "a slice of row %lld: the destination has rows 0 to %zu",
                          (long long)sorted.indexed[sorted.all.rows - 1].index, rows - 1);
    if (status == DITTO_OK && rows * row_bytes != 0)
        memset(dst, 0, rows * row_bytes);
    struct dti_fenv saved = dti_fenv_enter();
    for (size_t first = 0, end; first < sorted.all.rows && status == DITTO_OK; first = end) {
        end = dti_indexed_rows_end(sorted.indexed, sorted.all.rows, first);
        char *row = (char *)dst + (size_t)sorted.indexed[first].index * row_bytes;
        combine_rows(&sorted, &r, first, end, sorted.all.n, row_count, row);
    }
    dti_fenv_leave(saved);
    release(&sorted);
    return status;
}
