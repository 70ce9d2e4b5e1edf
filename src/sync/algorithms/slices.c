/* src/sync/algorithms/slices.c - all-reduce of indexed rows.
 *
 * Every replica reads the rows of all replicas in place and makes its own result. It also checks the indices
 * and capacities of all replicas. All replicas check the same data, so all of them find the same error. */
#include "sync/algorithms/slices.h"
#include "replicas/memory/arena.h"
#include "replicas/team/team.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/flow.h"
#include "sync/algorithms/other_hosts.h"
#include "sync/kernels/merge_rows.h"

#include <stdlib.h>
#include <string.h>

/* The workspace holds a sum, the old elements of a dense row, and the scratch memory of the tree. */
_Static_assert(2 * (size_t)DTI_TILE_BYTES + DTI_MERGE_SCRATCH_BYTES <= DTI_WORKSPACE_BYTES,
               "a workspace must hold what merging needs");

struct slices_reduction {
    struct dti_replica *self;
    const struct dti_slices *own_slices;

    /* The slices of all n replicas, on all hosts. */
    const struct dti_slices *const *of;
    uint32_t n;
    struct dti_reduction reduction;
    size_t row_count, row_bytes, total;
    struct dti_indexed_row *indexed; /* [total] if rows are merged */
    struct dti_tree_value *value;    /* [total] */

    /* The result of the checks of indices and capacities. It is equal on all replicas. */
    ditto_status check_status;
};

/* -- checks that every replica makes -- */

static ditto_status check_index(const struct slices_reduction *g, uint32_t replica, size_t k, int64_t index)
{
    size_t limit = g->own_slices->out == NULL ? g->own_slices->dense_rows : SIZE_MAX;
    if (index >= 0 && (size_t)index < limit)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_RANGE, "replica %u's slice %zu has the index %lld; rows are 0 to %lld",
                    dti_id_of_rank(g->self, replica), k, (long long)index,
                    (long long)(limit > INT64_MAX ? INT64_MAX : (int64_t)limit - 1));
}

static ditto_status check_capacities(const struct slices_reduction *g, size_t needed)
{
    for (uint32_t r = 0; r < g->n && g->own_slices->out != NULL; r++)
        if (g->of[r]->capacity < needed)
            return DTI_FAIL(DITTO_ERR_RANGE,
                            "the output of replica %u has capacity for %zu rows, but the result has %zu",
                            dti_id_of_rank(g->self, r), g->of[r]->capacity, needed);
    return DITTO_OK;
}

/* -- without merging -- */

/* Copies `count` elements. Divides them if the op is MEAN. */
static void copy_values(struct slices_reduction *g, const char *from, size_t count, char *to)
{
    struct dti_reduction *r = &g->reduction;
    char *tile = g->self->sync->state[g->self->index].workspace.scratch;
    size_t chunk = DTI_MERGE_TILE_BYTES / r->accumulator_bytes;
    if (r->kernel->divide == NULL) {
        if (count != 0)
            memcpy(to, from, count * r->element_bytes);
        return;
    }
    for (size_t at = 0; at < count; at += chunk) {
        size_t part = count - at < chunk ? count - at : chunk;
        if (r->kernel->widen != NULL)
            r->kernel->widen(tile, from + at * r->element_bytes, part);
        else
            memcpy(tile, from + at * r->element_bytes, part * r->element_bytes);
        dti_finish(r, g->self->all_replicas, tile, tile, part, to + at * r->element_bytes);
    }
}

static ditto_status concatenate(struct slices_reduction *g)
{
    ditto_slices *out = g->own_slices->out;
    size_t row = 0;
    for (uint32_t i = 0; i < g->n; i++)
        for (size_t k = 0; k < g->of[i]->in.rows; k++)
            DTI_TRY(check_index(g, i, k, g->of[i]->in.indices[k]));
    DTI_TRY(check_capacities(g, g->total));
    for (uint32_t r = 0; r < g->n; r++) {
        const ditto_slices *in = &g->of[r]->in;
        if (in->rows != 0)
            memcpy(out->indices + row, in->indices, in->rows * sizeof *in->indices);
        copy_values(g, in->values, in->rows * g->row_count, (char *)out->values + row * g->row_bytes);
        row += in->rows;
    }
    out->rows = row;
    return DITTO_OK;
}

/* -- merging -- */

/* Reads each index once and checks the value that was read, so that the checked value is the one that is
 * used. */
static ditto_status sort_rows(struct slices_reduction *g)
{
    size_t order = 0;
    for (uint32_t r = 0; r < g->n; r++) {
        const ditto_slices *in = &g->of[r]->in;
        for (size_t k = 0; k < in->rows; k++, order++) {
            int64_t index = in->indices[k];
            DTI_TRY(check_index(g, r, k, index));
            g->indexed[order] = (struct dti_indexed_row){ index, order,
                                                          (const char *)in->values + k * g->row_bytes };
        }
    }
    dti_indexed_rows_sort(g->indexed, g->total);
    return DITTO_OK;
}

/* Writes a sum to a row. If the result is dense, the old elements of the row are added. Rounds once. */
static void put_tile(const struct slices_reduction *g, char *sum, size_t count, char *to)
{
    const struct dti_kernel *kernel = g->reduction.kernel;
    char *old = sum + DTI_TILE_BYTES;
    if (g->own_slices->out == NULL) {
        if (kernel->widen != NULL)
            kernel->widen(old, to, count);
        else
            memcpy(old, to, count * g->reduction.element_bytes);
        kernel->combine(sum, old, sum, count);
    }
    if (kernel->narrow != NULL)
        kernel->narrow(to, sum, count);
    else
        memcpy(to, sum, count * g->reduction.element_bytes);
}

static ditto_status merge(struct slices_reduction *g)
{
    char *tile = g->self->sync->state[g->self->index].workspace.scratch, *scratch = tile + 2 * DTI_TILE_BYTES;
    struct dti_reduction *r = &g->reduction;
    size_t chunk = DTI_MERGE_TILE_BYTES / r->accumulator_bytes, row = 0;
    DTI_TRY(sort_rows(g));
    DTI_TRY(check_capacities(g, g->own_slices->out != NULL ? dti_indexed_rows_distinct(g->indexed, g->total)
                                                           : 0));
    for (size_t first = 0, end; first < g->total; first = end, row++) {
        end = dti_indexed_rows_end(g->indexed, g->total, first);
        size_t target = g->own_slices->out != NULL ? row : (size_t)g->indexed[first].index;
        char *to = (char *)(g->own_slices->out != NULL ? g->own_slices->out->values : g->own_slices->dense) +
                   target * g->row_bytes;
        for (size_t at = 0; at < g->row_count; at += chunk) {
            size_t count = g->row_count - at < chunk ? g->row_count - at : chunk;
            dti_indexed_rows_fold(r, g->indexed + first, end - first, at, count, g->value, tile, scratch);
            if (r->kernel->divide != NULL)
                r->kernel->divide(tile, count, g->self->all_replicas);
            put_tile(g, tile, count, to + at * r->element_bytes);
        }
        if (g->own_slices->out != NULL)
            g->own_slices->out->indices[row] = g->indexed[first].index;
    }
    if (g->own_slices->out != NULL)
        g->own_slices->out->rows = row;
    return DITTO_OK;
}

/* -- both -- */

/* Combines the slices of all n replicas into the result of this one. The error of the checks is in the
 * reduction, and is equal on all replicas. Returns NO_MEMORY if this replica has none. */
static ditto_status combine(void *context, const struct dti_slices *const *of, uint32_t n)
{
    struct slices_reduction *g = context;
    void *memory;
    g->of = of;
    g->n = n;
    g->total = 0;
    for (uint32_t r = 0; r < n; r++)
        g->total += of[r]->in.rows; /* cannot overflow, because all rows are in the memory of this process */
    if (!g->own_slices->merge) {
        g->check_status = concatenate(g);
        return DITTO_OK;
    }
    /* One entry more than needed is allocated, because an allocation must not have 0 bytes. */
    DTI_TRY(dti_replica_alloc(g->self, (g->total + 1) * (sizeof *g->indexed + sizeof *g->value),
                              DTI_CACHE_LINE, &memory));
    g->indexed = memory;
    g->value = (struct dti_tree_value *)(void *)(g->indexed + g->total);
    g->check_status = merge(g);
    dti_arena_free(g->self->arena, memory);
    return DITTO_OK;
}

static ditto_status combine_here(struct dti_replica *self, uint32_t seq, void *context)
{
    const struct dti_slices *of[DITTO_MAX_REPLICAS];
    for (uint32_t r = 0; r < self->num_replicas; r++)
        of[r] = dti_call_of(self->sync, r, seq)->more;
    return combine(context, of, self->num_replicas);
}

ditto_status dti_reduce_slices(struct dti_replica *self, struct dti_call *call,
                               const struct dti_slices *own_slices, struct dti_deadline *deadline)
{
    struct slices_reduction g = { .self = self,
                                  .own_slices = own_slices,
                                  .reduction = dti_flow_reduction(self->sync, call),
                                  .row_count = call->count,
                                  .row_bytes = call->count * call->element_bytes };
    g.reduction.tree = (struct dti_tree){ 0 }; /* over the rows of an index, not over the replicas */
    struct dti_fenv saved = dti_fenv_enter();
    call->more = own_slices;
    dti_call_begins(self, call);
    ditto_status status = self->sync->hosts == NULL
                              ? dti_collective_with_access(self, call, combine_here, &g, deadline)
                              : dti_slices_on_hosts(self, call, combine, &g, deadline);
    dti_call_ends(self, call);
    dti_fenv_leave(saved);
    return status != DITTO_OK ? status : g.check_status;
}
