/* src/vars/optimizer/apply.c - one step of an optimizer. Without clipping, one pass reduces the gradients,
 * updates every element and writes it to all copies. A step with clipping continues in clip.c. A step in
 * parts is in started_step.c. */
#include "replicas/helpers/remote_memory.h"
#include "vars/optimizer/optimizer.h"
#include "vars/vars.h"

#include <string.h>

static const struct dti_variable_piece *piece_of(const ditto_optimizer *o, size_t item)
{
    return &o->variable[o->item[item].variable]->piece[o->item[item].piece];
}

const struct dti_optimizer_step *dti_applying_step(const struct dti_applying *a, size_t item,
                                                   struct dti_optimizer_step *own)
{
    const ditto_optimizer *o = a->optimizer;
    uint32_t k = o->item[item].variable;
    if (o->rate_factor == NULL)
        return &a->step;
    *own = dti_optimizer_step_with(&a->step, o->rate_factor[k], o->weight_decay[k]);
    return own;
}

void dti_applying_range(const struct dti_applying *a, size_t item, size_t first, size_t *end,
                        ditto_rule_range *range)
{
    const ditto_optimizer *o = a->optimizer;
    uint32_t k = o->item[item].variable;
    ditto_dtype dtype = o->variable[k]->spec.dtype;
    size_t base = piece_of(o, item)->first;
    *range = (ditto_rule_range){
        .variable = k, .dtype = dtype, .first = base + first, .step = a->step.number
    };
    for (uint32_t s = 0; s < o->slots; s++) { /* all slots of a variable have the same pieces */
        const ditto_variable *slot = o->slot[(size_t)k * o->slots + s];
        uint32_t p = dti_variable_piece_of(slot, base + first);
        size_t piece_end = slot->piece[p].first + slot->piece[p].count - base;
        *end = *end < piece_end ? *end : piece_end;
        range->slot[s] = (char *)slot->copy[p].data +
                         (base + first - slot->piece[p].first) * ditto_dtype_bytes(dtype);
    }
    range->count = *end - first;
}

/* The bytes of values that are updated at once. The buffer of each slot is equally large. */
#define EACH_BYTES 1024

/* Updates every copy of a range. The steps of all copies must start from the same slots. Therefore the steps
 * of all copies but the first change buffers to which the slots were copied. The step of the first copy,
 * which is replica 0's, comes last and changes the slots themselves. */
static void step_each(const struct dti_optimizer_step *step, uint32_t slots,
                      const struct dti_copy_set *copy_set, size_t first, const ditto_rule_range *range)
{
    alignas(DTI_CACHE_LINE) char slot[DITTO_MAX_OPTIMIZER_SLOTS][EACH_BYTES];
    size_t element_bytes = ditto_dtype_bytes(range->dtype);
    for (uint32_t c = copy_set->copies; c-- > 0;) {
        ditto_rule_range range_of_copy = *range;
        char *value = (char *)copy_set->copy[c].data + first * element_bytes;
        for (uint32_t s = 0; c > 0 && s < slots; s++)
            /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a range has all of its rule's slots */
            range_of_copy.slot[s] = memcpy(slot[s], range->slot[s], range->count * element_bytes);
        dti_optimizer_step_apply(step, &range_of_copy, value, value);
    }
}

void dti_apply_to_each(const struct dti_applying *a, size_t item, size_t first, size_t end,
                       const void *gradient)
{
    const ditto_optimizer *o = a->optimizer;
    const ditto_variable *v = o->variable[o->item[item].variable];
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype), part_count = EACH_BYTES / element_bytes;
    struct dti_optimizer_step own;
    const struct dti_optimizer_step *step = dti_applying_step(a, item, &own);
    for (size_t at = first, stop; at < end; at = stop) {
        ditto_rule_range range;
        stop = end - at < part_count ? end : at + part_count;
        dti_applying_range(a, item, at, &stop, &range);
        range.gradient = (const char *)gradient + (at - first) * element_bytes;
        step_each(step, o->slots, &v->copies_of_piece[o->item[item].piece], at, &range);
    }
}

void dti_applying_step_all(const struct dti_applying *a, uint32_t replica, size_t item, size_t first,
                           size_t count, const void *tile, void *out)
{
    const ditto_optimizer *o = a->optimizer;
    const ditto_variable *v = o->variable[o->item[item].variable];
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype);
    const char *old = dti_nearest(v, o->item[item].piece, replica);
    struct dti_optimizer_step own;
    const struct dti_optimizer_step *step = dti_applying_step(a, item, &own);
    for (size_t at = first, end; at < first + count; at = end) {
        ditto_rule_range range;
        end = first + count;
        dti_applying_range(a, item, at, &end, &range);
        range.gradient = (const char *)tile + (at - first) * element_bytes;
        dti_optimizer_step_apply(step, &range, old + at * element_bytes,
                                 (char *)out + (at - first) * element_bytes);
    }
}

/* On each host each element is in exactly one call, on the replica that computes its result. All replicas
 * have arrived, so no other replica reads the old value any more. */
void dti_applying_finish(void *context, uint32_t replica, size_t item, size_t first, size_t count, void *tile,
                         void *out)
{
    const struct dti_applying *a = context;
    const ditto_optimizer *o = a->optimizer;
    item += a->first_item;
    if (dti_variable_may_differ(o->variable[o->item[item].variable]))
        dti_apply_to_each(a, item, first, first + count, tile);
    else
        dti_applying_step_all(a, replica, item, first, count, tile, out);
    if (o->sliced == 0 && item == o->first_nonempty_item &&
        first == 0) /* all replicas have read the old number */
        *(int64_t *)o->iterations->copy[0].data = a->step.number;
}

void dti_applying_fill(const struct dti_applying *a, size_t count, ditto_list_item *list)
{
    const ditto_optimizer *o = a->optimizer;
    for (size_t i = 0; i < count; i++) {
        const ditto_tensor *gradient = &a->gradient[o->item[a->first_item + i].variable];
        const struct dti_variable_piece *piece = piece_of(o, a->first_item + i);
        list[i] = (ditto_list_item){ .src = (const char *)gradient->data +
                                            piece->first * ditto_dtype_bytes(gradient->dtype),
                                     .count = piece->count,
                                     .dtype = gradient->dtype };
    }
}

void dti_optimizer_changes(const struct dti_replica *self, const ditto_optimizer *o, uint32_t first,
                           uint32_t count)
{
    for (uint32_t k = first; k < first + count; k++)
        dti_changed(o->variable[k], self->index);
    for (uint32_t i = first * o->slots; i < (first + count) * o->slots; i++)
        dti_changed(o->slot[i], self->index);
    dti_changed(o->iterations, self->index);
}

static ditto_status apply_items(struct dti_replica *self, struct dti_applying *a, ditto_list_item *list,
                                double *norm)
{
    ditto_optimizer *o = a->optimizer;
    bool clips = o->options.clip_norm > 0;
    struct dti_target target = { .finish = clips ? dti_applying_keep : dti_applying_finish,
                                 .context = a,
                                 .copy_set = clips ? o->no_copies : o->copies_of_item,
                                 .calls = !clips && o->options.rule == DITTO_RULE_FUNCTION };
    struct dti_target_reduction targeted = { .item = list,
                                             .items = o->team_items,
                                             .op = o->options.op,
                                             .name = "ditto_apply",
                                             .object = o->name,
                                             .target = &target };
    memcpy(&targeted.hash, &a->step.learning_rate, sizeof targeted.hash);
    targeted.hash ^= o->stamp;
    dti_applying_fill(a, o->team_items, list);
    dti_optimizer_changes(self, o, 0, o->count);
    double gradient_norm = 0;
    if (norm != NULL && !clips)
        DTI_TRY(dti_measure_norm(self, a, &gradient_norm));
    if (o->team_items != 0)
        DTI_TRY(dti_target_reduction(self, &targeted));
    if (o->sliced != 0)
        DTI_TRY(dti_apply_slices(self, a));
    if (clips)
        return dti_apply_kept(self, a, norm);
    if (norm != NULL)
        *norm = gradient_norm;
    return DITTO_OK;
}

#define ITEMS_ON_STACK 64 /* longer lists are allocated */

ditto_status dti_apply(struct dti_replica *self, ditto_optimizer *o, const ditto_tensor *gradients,
                       double learning_rate, double *norm)
{
    ditto_list_item items_on_stack[ITEMS_ON_STACK];
    struct dti_applying applying = { .optimizer = o, .gradient = gradients };
    void *list = items_on_stack;
    /* This read is not a race. The last step wrote the number between its meetings, and this step writes it
     * only after this replica has arrived at its first meeting. */
    int64_t steps = *(const int64_t *)o->iterations->copy[0].data;
    if (o->items > ITEMS_ON_STACK)
        DTI_TRY(dti_replica_alloc(self, o->items * sizeof items_on_stack[0], DTI_CACHE_LINE, &list));
    struct dti_fenv saved = dti_fenv_enter();
    applying.step = dti_optimizer_step_of(&o->options, learning_rate, steps + 1);
    ditto_status status = apply_items(self, &applying, list, norm);
    dti_fenv_leave(saved);
    if (o->items > ITEMS_ON_STACK)
        dti_replica_free(self, list);
    return status;
}
