/* src/vars/optimizer/clip.c - clipping by the global norm of the gradients; see optimizer.h.
 *
 * First the gradients are reduced into the optimizer's `sum`. Then each replica sums the squares in its
 * blocks. A block is a fixed range of a variable's elements. The squares of a block are added in a
 * fixed order, and the sums of the blocks are added by a fixed tree. The norm therefore has the same bits for
 * every division of the blocks among the replicas. Finally each replica applies the scaled gradient to the
 * elements whose aggregated gradient it has stored.
 *
 * Source of the blocks: ditto_block_sum (ditto/collective.h). */
#include "sync/kernels/tree.h"
#include "vars/optimizer/optimizer.h"
#include "vars/vars.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)1024) /* elements */

static size_t blocks_of(const ditto_variable *v)
{
    return v->count / BLOCK + (v->count % BLOCK != 0);
}

ditto_status dti_clip_make(ditto_optimizer *o)
{
    for (uint32_t k = 0; k < o->count; k++)
        o->blocks += blocks_of(o->variable[k]);
    o->block = calloc(o->blocks + 1, sizeof *o->block);
    if (o->block == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %zu blocks of a norm", o->blocks);
    return DITTO_OK;
}

/* -- reduce -- */

static void keep(void *context, uint32_t replica, size_t item, size_t first, size_t count, void *tile,
                 void *out)
{
    const struct dti_applying *a = context;
    const ditto_optimizer *o = a->optimizer;
    const struct dti_optimizer_item *i = &o->item[item];
    first += o->variable[i->variable]->piece[i->piece].first;
    (void)replica, (void)out;
    dti_copies_write(o->sum[i->variable], DTI_RULE_ASSIGN, first, first + count, tile);
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

/* Reads elements [first, end) of variable k's aggregated gradient, which keep() has stored. */
static ditto_status read_kept(const struct dti_applying *a, const void *const *contributed, uint32_t k,
                              size_t first, size_t end, void *values)
{
    (void)contributed;
    dti_copies_read(a->optimizer->sum[k], 0, first, end, values);
    return DITTO_OK;
}

/* Computes the same elements from the gradients of all replicas, in the same order, for a caller that has not
 * stored them. */
static ditto_status aggregate(const struct dti_applying *a, const void *const *contributed, uint32_t k,
                              size_t first, size_t end, void *values)
{
    const ditto_variable *v = a->optimizer->variable[k];
    const void *source[DITTO_MAX_REPLICAS];
    for (uint32_t i = 0; i < v->num_replicas; i++) {
        const ditto_tensor *gradient = contributed[i];
        source[i] = (const char *)gradient[k].data + first * ditto_dtype_bytes(v->spec.dtype);
    }
    return dti_reduce_local(v->spec.dtype, a->optimizer->options.op, source, v->num_replicas, end - first,
                            values);
}

struct measuring {
    const struct dti_applying *applying;
    ditto_status (*gradient)(const struct dti_applying *a, const void *const *contributed, uint32_t k,
                             size_t first, size_t end, void *values);
};

/* Sums the squares of this replica's blocks. */
static ditto_status measure(struct dti_replica *self, const void *const *contributed, void *context)
{
    const struct measuring *m = context;
    const ditto_optimizer *o = m->applying->optimizer;
    size_t from, to, block = 0;
    alignas(DTI_CACHE_LINE) double values[BLOCK]; /* holds f32 or f64 */
    dti_tree_part(o->blocks, self->num_replicas, self->id, 1, &from, &to);
    for (uint32_t k = 0; k < o->count; k++)
        for (size_t first = 0; first < o->variable[k]->count; first += BLOCK, block++) {
            size_t end = first + BLOCK < o->variable[k]->count ? first + BLOCK : o->variable[k]->count;
            if (block < from || block >= to)
                continue;
            DTI_TRY(m->gradient(m->applying, contributed, k, first, end, values));
            o->block[block] = squares(o->variable[k]->spec.dtype, values, end - first);
        }
    return DITTO_OK;
}

/* Adds the blocks' sums pairwise. The tree of additions depends only on the number of blocks. */
static double add_up(const double *block, size_t count)
{
    if (count <= 1)
        return count == 1 ? block[0] : 0;
    return add_up(block, count - count / 2) + add_up(block + (count - count / 2), count / 2);
}

/* Collective. The replicas have another meeting before a block's sum changes again. */
static ditto_status norm_of(struct dti_replica *self, struct measuring *measuring,
                            struct dti_deadline *deadline, double *norm)
{
    const struct dti_applying *a = measuring->applying;
    struct dti_joint_work joint = { .name = "ditto_apply",
                                    .object = a->optimizer->name,
                                    .contributed = a->gradient,
                                    .work = measure,
                                    .context = measuring };
    DTI_TRY(dti_do_joint_work(self, &joint, deadline));
    *norm = sqrt(add_up(a->optimizer->block, a->optimizer->blocks));
    return DITTO_OK;
}

ditto_status dti_measure_norm(struct dti_replica *self, struct dti_applying *a, struct dti_deadline *deadline,
                              double *norm)
{
    struct measuring measuring = { a, aggregate };
    return norm_of(self, &measuring, deadline, norm);
}

/* -- apply -- */

struct scaling {
    struct dti_applying *applying;
    double factor;
};

static void scale(ditto_dtype dtype, double factor, void *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (dtype == DITTO_F32)
            ((float *)values)[i] *= (float)factor;
        else
            ((double *)values)[i] *= factor;
}

/* Applies the gradient to elements [first, end) of an item. The aggregated gradient of these elements is one
 * piece, which this replica owns. */
static void apply_range(const struct scaling *s, uint32_t replica, size_t item, size_t first, size_t end)
{
    alignas(DTI_CACHE_LINE) char tile[4096];
    const ditto_optimizer *o = s->applying->optimizer;
    const struct dti_optimizer_item *i = &o->item[item];
    const ditto_variable *v = o->variable[i->variable];
    size_t base = v->piece[i->piece].first, element = ditto_dtype_bytes(v->spec.dtype);
    const char *old = dti_nearest(v, i->piece, replica);
    for (size_t at = first, stop; at < end; at = stop) {
        ditto_rule_range range;
        stop = end - at < sizeof tile / element ? end : at + sizeof tile / element;
        dti_applying_range(s->applying, item, at, &stop, &range);
        dti_copies_read(o->sum[i->variable], replica, base + at, base + stop, tile);
        if (s->factor != 1)
            scale(v->spec.dtype, s->factor, tile, stop - at);
        if (v->may_differ) {
            dti_apply_to_each(s->applying, item, at, stop, tile);
            continue;
        }
        range.gradient = tile;
        dti_optimizer_step_apply(&s->applying->step, &range, old + at * element, tile);
        dti_copies_write(v, DTI_RULE_ASSIGN, base + at, base + stop, tile);
    }
}

static ditto_status apply_own(struct dti_replica *self, const void *const *contributed, void *context)
{
    const struct scaling *s = context;
    const ditto_optimizer *o = s->applying->optimizer;
    (void)contributed;
    for (size_t item = 0; item < o->items; item++) {
        const ditto_variable *sum = o->sum[o->item[item].variable];
        const struct dti_variable_piece *whole = &o->variable[o->item[item].variable]
                                                      ->piece[o->item[item].piece];
        uint32_t p = whole->count != 0 ? dti_variable_piece_of(sum, whole->first) : sum->pieces;
        for (; p < sum->pieces && sum->piece[p].first < whole->first + whole->count; p++) {
            size_t first = sum->piece[p].first > whole->first ? sum->piece[p].first - whole->first : 0;
            size_t end = sum->piece[p].first + sum->piece[p].count - whole->first;
            if (sum->copy[p].owner == self->id)
                apply_range(s, self->id, item, first, end < whole->count ? end : whole->count);
        }
    }
    if (self->id == 0 && o->ticking < o->items)
        *(int64_t *)o->iterations->copy[0].data = s->applying->step.number;
    return DITTO_OK;
}

ditto_status dti_apply_clipped(struct dti_replica *self, struct dti_applying *a,
                               const struct dti_target_reduction *targeted, struct dti_deadline *deadline,
                               double *norm)
{
    ditto_optimizer *o = a->optimizer;
    struct dti_target target = { .finish = keep, .context = a, .copy_set = o->no_copies };
    struct dti_target_reduction reducing = *targeted;
    struct measuring measuring = { a, read_kept };
    struct scaling scaling = { a, 1 };
    struct dti_joint_work applying = { .name = "ditto_apply",
                                       .object = o->name,
                                       .work = apply_own,
                                       .context = &scaling,
                                       .calls = o->options.rule == DITTO_RULE_FUNCTION };
    reducing.target = &target;
    DTI_TRY(dti_target_reduction(self, &reducing, deadline));
    double length;
    DTI_TRY(norm_of(self, &measuring, deadline, &length));
    /* The condition is also true if the norm is a NaN, so that the NaN reaches the variables and is
     * noticed. */
    if (!(length <= o->options.clip_norm))
        scaling.factor = o->options.clip_norm / length;
    DTI_TRY(dti_do_joint_work(self, &applying, deadline));
    if (norm != NULL)
        *norm = length;
    return DITTO_OK;
}
