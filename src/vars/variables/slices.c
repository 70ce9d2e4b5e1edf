/* src/vars/variables/slices.c - see slices.h. */
#include "vars/variables/slices.h"
#include "base/numbers/fenv.h"
#include "base/waiting/stop.h"
#include "replicas/team/stopping.h"
#include "vars/variables/copies.h"

#include <stdlib.h>

/* -- how a variable is sliced -- */

/* Sets the slice of each replica. */
static ditto_status find_ranks(ditto_variable *v, const struct dti_slicing *s)
{
    const ditto_grouping *along = s->along;
    uint32_t slices = along != NULL ? dti_grouping_size(along, 0) : v->num_replicas;
    v->order.slices = slices;
    for (uint32_t i = 0; i < v->num_replicas; i++) {
        if (along == NULL) {
            s->rank[i] = i;
            continue;
        }
        if (along->position[i] == DTI_NO_GROUP)
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "\"%s\" is sliced along a grouping in which replica %u has no group: each replica "
                "needs a slice, as along an axis of a mesh (ditto_strategy_mesh)",
                v->name, i);
        uint32_t size = dti_grouping_size(along, dti_grouping_group(along, i));
        if (size != slices)
            return DTI_FAIL(
                DITTO_ERR_INVALID,
                "\"%s\" is sliced along a grouping with groups of %u and of %u replicas: all need "
                "the same size, as along an axis of a mesh (ditto_strategy_mesh)",
                v->name, slices, size);
        s->rank[i] = dti_grouping_rank(along, i);
    }
    return DITTO_OK;
}

static ditto_status fill_in(ditto_variable *v, struct dti_slicing *s, const ditto_variable_options *o)
{
    struct dti_slice_order *order = &v->order;
    order->axis = o->slice_axis;
    if (order->axis >= v->spec.rank)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "slice_axis of \"%s\" is %u, but it has %u dimension%s, counted from 0", v->name,
                        order->axis, v->spec.rank, v->spec.rank == 1 ? "" : "s");
    if (s->along != NULL && !dti_grouping_is_listed(dti_team_sync(v->team)->groupings, s->along))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "slice_along of \"%s\" is no grouping of its strategy: it was destroyed, or is "
                        "another strategy's",
                        v->name);
    DTI_TRY(find_ranks(v, s));
    order->extent = v->spec.shape[order->axis];
    order->inner = 1;
    for (uint32_t d = order->axis + 1; d < v->spec.rank; d++)
        order->inner *= v->spec.shape[d];
    if (order->extent < order->slices)
        return DTI_FAIL(
            DITTO_ERR_INVALID, "dimension %u of \"%s\" has %zu ind%s, which is not enough for %u slices",
            order->axis, v->name, order->extent, order->extent == 1 ? "ex" : "ices", order->slices);
    if (s->along != NULL && s->along->groups > 1)
        return dti_grouping_across(s->along, &s->mirrors);
    if (s->along != NULL)
        s->along->users++;
    return DITTO_OK;
}

ditto_status dti_slicing_make(ditto_variable *v, const ditto_variable_options *o)
{
    struct dti_slicing *s = calloc(1, sizeof *s);
    uint32_t *rank = calloc(v->num_replicas, sizeof *rank);
    ditto_status status = DITTO_OK;
    if (s == NULL || rank == NULL) {
        free(rank);
        free(s);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the slices of \"%s\"", v->name);
    }
    s->along = o->slice_along;
    s->rank = rank;
    status = fill_in(v, s, o);
    if (status == DITTO_OK)
        v->slicing = s;
    else
        dti_slicing_free(s);
    return status;
}

void dti_slicing_see_copies(ditto_variable *v)
{
    struct dti_slicing *s = v->slicing;
    for (uint32_t k = 0, c = 0; s->mirrors != NULL && k < v->pieces; k++) {
        s->copies_of_piece[k] = (struct dti_copy_set){ v->copies_of_piece[k].copies, &s->copy[c] };
        for (uint32_t i = 0; i < v->copies_of_piece[k].copies; i++, c++)
            s->copy[c] = (struct dti_copy){ dti_grouping_rank(s->mirrors, v->copy[c].owner),
                                            v->copy[c].data };
    }
}

void dti_slicing_leave(ditto_variable *v)
{
    if (v->slicing == NULL)
        return;
    if (v->slicing->mirrors != NULL)
        dti_grouping_drop(v->slicing->mirrors);
    if (v->slicing->along != NULL)
        dti_grouping_drop(v->slicing->along);
}

void dti_slicing_free(struct dti_slicing *s)
{
    if (s == NULL)
        return;
    free(s->copies_of_piece);
    free(s->copy);
    free(s->rank);
    free(s);
}

ditto_tensor dti_slice_spec(const ditto_variable *v, uint32_t slice, size_t *first)
{
    const struct dti_slice_order *o = &v->order;
    ditto_tensor spec = v->spec;
    *first = dti_partition_row(o->extent, o->slices, slice);
    spec.shape[o->axis] = dti_partition_row(o->extent, o->slices, slice + 1) - *first;
    return spec;
}

size_t dti_slice_run_of(const ditto_variable *v, size_t first, size_t end, size_t *at)
{
    const struct dti_slice_order *o = &v->order;
    size_t block = o->extent * o->inner, outer = first / block, rest = first % block, index = rest / o->inner;
    size_t each = o->extent / o->slices, larger = o->extent % o->slices, of_larger = larger * (each + 1);
    size_t slice = index < of_larger ? index / (each + 1) : larger + (index - of_larger) / each;
    size_t begin = dti_partition_row(o->extent, o->slices, slice);
    size_t next = dti_partition_row(o->extent, o->slices, slice + 1), run = next * o->inner - rest;
    /* The slices before this one have v->count / o->extent elements of each of their indices. */
    *at = begin * (v->count / o->extent) + outer * (next - begin) * o->inner + rest - begin * o->inner;
    return run < end - first ? run : end - first;
}

/* -- writes in replica context -- */

struct sliced_write {
    const ditto_variable *v;
    uint32_t slice;
    enum dti_rule rule;
};

/* As `apply` in mirrored.c. `member` is the rank among the replicas that mirror the slice. */
static void apply(void *context, uint32_t member, size_t item, size_t first, size_t count, void *tile,
                  void *out)
{
    const struct sliced_write *w = context;
    const ditto_grouping *mirrors = w->v->slicing->mirrors;
    ditto_dtype dtype = w->v->spec.dtype;
    uint32_t replica = mirrors->replica[mirrors->start[w->slice] + member]; /* there is one host */
    const char *old = (const char *)dti_variable_component(w->v, replica) + first * ditto_dtype_bytes(dtype);
    (void)item;
    dti_rule_apply(w->rule, dtype, out, old, tile, count);
}

/* Writes a slice that no other replica has. */
static void write_own(const struct dti_replica *self, const ditto_variable *v, enum dti_rule rule,
                      const void *value, size_t count)
{
    void *own = dti_variable_component(v, self->index);
    struct dti_fenv saved = dti_fenv_enter();
    if (own != value || rule != DTI_RULE_ASSIGN)
        dti_rule_apply(rule, v->spec.dtype, own, own, value, count);
    dti_fenv_leave(saved);
}

static ditto_status write_sliced(struct dti_replica *self, ditto_variable *v, enum dti_rule rule,
                                 const void *value)
{
    const struct dti_slicing *s = v->slicing;
    uint32_t slice = s->rank[self->index];
    struct sliced_write context = { v, slice, rule };
    ditto_list_item item = { .src = value, .count = v->piece[slice].count, .dtype = v->spec.dtype };
    DTI_TRY(dti_check_outside_function(self, dti_assign_name(rule)));
    DTI_TRY(dti_variable_check_aggregates(v));
    dti_changed(v, self->index);
    if (s->mirrors == NULL) {
        /* There is no meeting, in which a replica would notice that the run has been stopped. */
        if (dti_stopped(self->stop))
            return dti_team_stop_status(self->team);
        write_own(self, v, rule, value, item.count);
        return DITTO_OK;
    }
    struct dti_target target = { .finish = rule == DTI_RULE_ASSIGN ? NULL : apply,
                                 .context = &context,
                                 .copy_set = &s->copies_of_piece[slice] };
    struct dti_target_reduction targeted = { .item = &item,
                                             .items = 1,
                                             .op = v->aggregation == DITTO_AGGREGATE_SUM ? DITTO_SUM
                                                                                         : DITTO_MEAN,
                                             .name = dti_assign_name(rule),
                                             .object = v->name,
                                             .target = &target };
    return dti_target_reduction(dti_grouping_member(self, s->mirrors), &targeted);
}

const struct dti_variable_kind dti_sliced_kind = { "sliced", write_sliced, dti_mirrored_read,
                                                   dti_mirrored_write };
