/* src/vars/optimizer/clip.c - clipping by the global norm of the gradients; see optimizer.h.
 *
 * First the gradients are reduced into the optimizer's variables `sum`. Then each replica sums the squares of
 * its blocks of them. A block is a fixed range of a variable's elements. The squares of a block are added in
 * a fixed order, and the sums of the blocks are added by a fixed tree. The norm therefore has the same bits
 * for every division of the blocks among the replicas. Finally each replica updates the variables at the
 * elements of `sum` that it owns, with the scaled gradient.
 *
 * The blocks are similar to those of ditto_block_sum (ditto/collective.h), but each variable begins a new
 * block, and the squares of a block are added from left to right.
 *
 * Over several hosts each host has all aggregated gradients, and its replicas measure all blocks, so every
 * host computes the norm by itself. Without clipping the gradients are reduced only for this, one variable
 * after the other (dti_share_result). */
#include "replicas/helpers/remote_memory.h"
#include "sync/hosts/cross.h"
#include "sync/kernels/local_reduction.h"
#include "sync/kernels/tree.h"
#include "vars/optimizer/optimizer.h"
#include "vars/vars.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)1024) /* elements */

ditto_status dti_clip_make(ditto_optimizer *o)
{
    for (uint32_t k = 0; k < o->count; k++)
        o->blocks += o->variable[k]->count / BLOCK + (o->variable[k]->count % BLOCK != 0);
    o->block_sum = calloc(o->blocks + 1, sizeof *o->block_sum);
    if (o->block_sum == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the %zu partial sums of the gradients' norm",
                        o->blocks);
    return DITTO_OK;
}

/* -- reduce -- */

void dti_applying_keep(void *context, uint32_t replica, size_t item, size_t first, size_t count, void *tile,
                       void *out)
{
    const struct dti_applying *a = context;
    const ditto_optimizer *o = a->optimizer;
    const struct dti_optimizer_item *i = &o->item[a->first_item + item];
    first += o->variable[i->variable]->piece[i->piece].first;
    (void)replica, (void)out;
    dti_pieces_write(o->sum[i->variable], DTI_RULE_ASSIGN, first, first + count, tile);
}

/* -- measure -- */

static double squares(ditto_dtype dtype, const void *values, size_t count)
{
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        double x = dtype == DITTO_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
        total += x * x;
    }
    return total;
}

/* Reads elements [first, end) of variable k's aggregated gradient, which dti_applying_keep has stored. */
static ditto_status read_kept(const struct dti_applying *a, const void *const *contributed, uint32_t k,
                              size_t first, size_t end, void *values)
{
    (void)contributed;
    dti_pieces_read(a->optimizer->sum[k], 0, first, end, values);
    return DITTO_OK;
}

/* Does the same for a sliced variable. The elements of a slice are those of the replicas that mirror it. */
static ditto_status aggregate_slices(const struct dti_applying *a, const void *const *contributed, uint32_t k,
                                     size_t first, size_t end, char *values)
{
    const ditto_variable *v = a->optimizer->variable[k];
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype);
    const struct dti_tree tree = { .n = dti_variable_mirrors(v) };
    for (size_t at = first, stop; at < end; at = stop) {
        const void *source[DITTO_MAX_REPLICAS];
        uint32_t slice = dti_variable_piece_of(v, at), sources = 0;
        stop = v->piece[slice].first + v->piece[slice].count;
        stop = stop < end ? stop : end;
        for (uint32_t i = 0; i < v->num_replicas; i++) {
            const ditto_tensor *gradient = contributed[i];
            if (v->slicing->rank[i] == slice)
                source[sources++] = (const char *)gradient[k].data +
                                    (at - v->piece[slice].first) * element_bytes;
        }
        DTI_TRY(dti_reduce_local(v->spec.dtype, a->optimizer->options.op, &tree, source, stop - at,
                                 values + (at - first) * element_bytes));
    }
    return DITTO_OK;
}

/* Computes the same elements as read_kept, with the same bits, from the gradients of all replicas. For
 * dti_measure_norm, which stores no aggregated gradients. */
static ditto_status aggregate(const struct dti_applying *a, const void *const *contributed, uint32_t k,
                              size_t first, size_t end, void *values)
{
    const ditto_variable *v = a->optimizer->variable[k];
    const void *source[DITTO_MAX_REPLICAS];
    if (v->slicing != NULL)
        return aggregate_slices(a, contributed, k, first, end, values);
    for (uint32_t i = 0; i < v->num_replicas; i++) {
        const ditto_tensor *gradient = contributed[i];
        source[i] = (const char *)gradient[k].data + first * ditto_dtype_bytes(v->spec.dtype);
    }
    return dti_reduce_local(v->spec.dtype, a->optimizer->options.op, dti_team_tree(v->team), source,
                            end - first, values);
}

struct measuring {
    const struct dti_applying *applying;

    /* Over several hosts and without clipping: the aggregated gradient of variable `only`, which alone is
     * measured. NULL otherwise. */
    const char *aggregated;
    uint32_t only;

    /* If `aggregated` is NULL: where the aggregated gradient comes from. */
    ditto_status (*read_gradient)(const struct dti_applying *a, const void *const *contributed, uint32_t k,
                                  size_t first, size_t end, void *values);
};

/* Sums the squares of this replica's blocks. */
static ditto_status measure(struct dti_replica *self, const void *const *contributed, void *context)
{
    const struct measuring *m = context;
    const ditto_optimizer *o = m->applying->optimizer;
    size_t from, to, block = 0;
    alignas(DTI_CACHE_LINE) double values[BLOCK]; /* holds f32 or f64 */
    dti_tree_part(o->blocks, self->num_replicas, self->index, 1, &from, &to);
    for (uint32_t k = 0; k < o->count; k++)
        for (size_t first = 0; first < o->variable[k]->count; first += BLOCK, block++) {
            size_t end = first + BLOCK < o->variable[k]->count ? first + BLOCK : o->variable[k]->count;
            ditto_dtype dtype = o->variable[k]->spec.dtype;
            if (block < from || block >= to || (m->aggregated != NULL && k != m->only))
                continue;
            if (m->aggregated != NULL) {
                o->block_sum[block] = squares(dtype, m->aggregated + first * ditto_dtype_bytes(dtype),
                                              end - first);
                continue;
            }
            DTI_TRY(m->read_gradient(m->applying, contributed, k, first, end, values));
            o->block_sum[block] = squares(dtype, values, end - first);
        }
    return DITTO_OK;
}

/* Adds the sums of `count` blocks along the tree of tree.h, which depends only on their number. */
static double add_up(const double *block_sum, size_t count)
{
    if (count <= 1)
        return count == 1 ? block_sum[0] : 0;
    size_t left = dti_tree_split(0, count);
    return add_up(block_sum, left) + add_up(block_sum + left, count - left);
}

ditto_status dti_norm_of_gradients(struct dti_replica *self, const ditto_optimizer *o,
                                   const ditto_tensor *gradients, double *norm)
{
    void *memory;
    size_t block = 0;
    DTI_TRY(dti_replica_alloc(self, (o->blocks + 1) * sizeof(double), DTI_CACHE_LINE, &memory));
    double *block_sum = memory;
    for (uint32_t k = 0; k < o->count; k++) {
        size_t count = o->variable[k]->count, element_bytes = ditto_dtype_bytes(gradients[k].dtype);
        for (size_t first = 0; first < count; first += BLOCK, block++)
            block_sum[block] = squares(gradients[k].dtype,
                                       (const char *)gradients[k].data + first * element_bytes,
                                       count - first < BLOCK ? count - first : BLOCK);
    }
    *norm = sqrt(add_up(block_sum, o->blocks));
    dti_replica_free(self, memory);
    return DITTO_OK;
}

/* Collective. */
static ditto_status measure_blocks(struct dti_replica *self, struct measuring *measuring)
{
    const struct dti_applying *a = measuring->applying;
    struct dti_joint_work joint = { .name = "ditto_apply",
                                    .object = a->optimizer->name,
                                    .contributed = a->gradient,
                                    .each_host = measuring->read_gradient != aggregate,
                                    .work = measure,
                                    .context = measuring };
    return dti_do_joint_work(self, &joint);
}

/* Collective. add_up may read the sums of all blocks here, because no replica writes one before all replicas
 * have arrived at the next meeting. */
static ditto_status norm_of(struct dti_replica *self, struct measuring *measuring, double *norm)
{
    const ditto_optimizer *o = measuring->applying->optimizer;
    DTI_TRY(measure_blocks(self, measuring));
    *norm = sqrt(add_up(o->block_sum, o->blocks));
    return DITTO_OK;
}

/* Over several hosts: each replica gets the aggregated gradient of one variable after the other. */
static ditto_status measure_on_hosts(struct dti_replica *self, const struct dti_applying *a, double *norm)
{
    const ditto_optimizer *o = a->optimizer;
    struct measuring measuring = { .applying = a };
    ditto_status status = DITTO_OK;
    for (uint32_t k = 0; k < o->count && status == DITTO_OK; k++) {
        const ditto_variable *v = o->variable[k];
        struct dti_shared_result shared = { .name = "ditto_apply",
                                            .object = o->name,
                                            .src = a->gradient[k].data,
                                            .count = v->count,
                                            .dtype = v->spec.dtype,
                                            .op = o->options.op };
        DTI_TRY(dti_replica_alloc(self, v->bytes, DTI_CACHE_LINE, &shared.dst));
        measuring.aggregated = shared.dst;
        measuring.only = k;
        status = dti_share_result(self, &shared);
        if (status == DITTO_OK)
            status = measure_blocks(self, &measuring);
        dti_replica_free(self, shared.dst);
    }
    if (status == DITTO_OK)
        *norm = sqrt(add_up(o->block_sum, o->blocks));
    return status;
}

ditto_status dti_measure_norm(struct dti_replica *self, struct dti_applying *a, double *norm)
{
    struct measuring measuring = { .applying = a, .read_gradient = aggregate };
    return dti_cross_has_hosts(self->team) ? measure_on_hosts(self, a, norm)
                                           : norm_of(self, &measuring, norm);
}

/* -- apply -- */

struct scaling {
    struct dti_applying *applying;
    double factor;
};

void dti_scale_gradient(ditto_dtype dtype, double factor, void *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (dtype == DITTO_F32)
            ((float *)values)[i] *= (float)factor;
        else
            ((double *)values)[i] *= factor;
}

/* Applies the scaled gradient to elements [first, end) of an item. They lie in one piece of the variable's
 * `sum`, which this replica owns. */
static void apply_range(const struct scaling *s, uint32_t replica, size_t item, size_t first, size_t end)
{
    alignas(DTI_CACHE_LINE) char tile[4096];
    const ditto_optimizer *o = s->applying->optimizer;
    const struct dti_optimizer_item *i = &o->item[item];
    const ditto_variable *v = o->variable[i->variable];
    size_t base = v->piece[i->piece].first, element_bytes = ditto_dtype_bytes(v->spec.dtype);
    const char *old = dti_nearest(v, i->piece, replica);
    struct dti_optimizer_step own;
    const struct dti_optimizer_step *step = dti_applying_step(s->applying, item, &own);
    for (size_t at = first, stop; at < end; at = stop) {
        ditto_rule_range range;
        stop = end - at < sizeof tile / element_bytes ? end : at + sizeof tile / element_bytes;
        dti_applying_range(s->applying, item, at, &stop, &range);
        dti_pieces_read(o->sum[i->variable], replica, base + at, base + stop, tile);
        if (s->factor != 1)
            dti_scale_gradient(v->spec.dtype, s->factor, tile, stop - at);
        if (dti_variable_may_differ(v)) {
            dti_apply_to_each(s->applying, item, at, stop, tile);
            continue;
        }
        range.gradient = tile;
        dti_optimizer_step_apply(step, &range, old + at * element_bytes, tile);
        dti_pieces_write(v, DTI_RULE_ASSIGN, base + at, base + stop, tile);
    }
}

static ditto_status apply_own(struct dti_replica *self, const void *const *contributed, void *context)
{
    const struct scaling *s = context;
    const ditto_optimizer *o = s->applying->optimizer;
    (void)contributed;
    for (size_t item = 0; item < o->items; item++) {
        const ditto_variable *sum = o->sum[o->item[item].variable];
        const struct dti_variable_piece *item_piece = &o->variable[o->item[item].variable]
                                                           ->piece[o->item[item].piece];
        uint32_t p = item_piece->count != 0 ? dti_variable_piece_of(sum, item_piece->first) : sum->pieces;
        for (; p < sum->pieces && sum->piece[p].first < item_piece->first + item_piece->count; p++) {
            size_t first = sum->piece[p].first > item_piece->first ? sum->piece[p].first - item_piece->first
                                                                   : 0;
            size_t end = sum->piece[p].first + sum->piece[p].count - item_piece->first;
            if (sum->copy[p].owner == self->index)
                apply_range(s, self->index, item, first, end < item_piece->count ? end : item_piece->count);
        }
    }
    if (self->index == 0 && o->first_nonempty_item < o->items)
        *(int64_t *)o->iterations->copy[0].data = s->applying->step.number;
    return DITTO_OK;
}

ditto_status dti_apply_kept(struct dti_replica *self, struct dti_applying *a, double *norm)
{
    ditto_optimizer *o = a->optimizer;
    struct measuring measuring = { .applying = a, .read_gradient = read_kept };
    struct scaling scaling = { a, 1 };
    struct dti_joint_work applying = { .name = "ditto_apply",
                                       .object = o->name,
                                       .each_host = true,
                                       .work = apply_own,
                                       .context = &scaling,
                                       .calls = o->options.rule == DITTO_RULE_FUNCTION };
    double gradient_norm;
    DTI_TRY(norm_of(self, &measuring, &gradient_norm));
    /* The condition is also true if the norm is a NaN, so that the NaN reaches the variables and is
     * noticed. */
    if (!(gradient_norm <= o->options.clip_norm))
        scaling.factor = o->options.clip_norm / gradient_norm;
    DTI_TRY(dti_do_joint_work(self, &applying));
    if (norm != NULL)
        *norm = gradient_norm;
    return DITTO_OK;
}
