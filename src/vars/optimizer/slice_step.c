/* src/vars/optimizer/slice_step.c - the part of a step that updates sliced variables. The replicas that
 * mirror a slice reduce its gradients among themselves, and update it as all replicas update a variable that
 * is not sliced. */
#include "base/numbers/checksum.h"
#include "replicas/helpers/remote_memory.h"
#include "vars/optimizer/optimizer.h"
#include "vars/vars.h"

#include <string.h>

/* A step of some variables that are sliced along one grouping, on one replica. */
struct slice_step {
    const struct dti_applying *applying;
    const uint32_t *variable; /* [count] */
    uint32_t count, slice;
};

static const ditto_variable *variable_of(const struct slice_step *s, size_t i)
{
    return s->applying->optimizer->variable[s->variable[i]];
}

static size_t item_of(const struct slice_step *s, size_t i)
{
    return s->applying->optimizer->first_item[s->variable[i]] + s->slice;
}

/* The `finish` of a target, as dti_applying_finish. `member` is a rank among the replicas that mirror the
 * slice. */
static void finish(void *context, uint32_t member, size_t i, size_t first, size_t count, void *tile,
                   void *out)
{
    const struct slice_step *s = context;
    const ditto_grouping *mirrors = variable_of(s, i)->slicing->mirrors;
    dti_applying_step_all(s->applying, mirrors->replica[mirrors->start[s->slice] + member], item_of(s, i),
                          first, count, tile, out);
}

static void keep_elements(const struct slice_step *s, size_t i, size_t first, size_t count,
                          const void *values)
{
    first += variable_of(s, i)->piece[s->slice].first;
    dti_pieces_write(s->applying->optimizer->sum[s->variable[i]], DTI_RULE_ASSIGN, first, first + count,
                     values);
}

/* As dti_applying_keep. */
static void keep(void *context, uint32_t member, size_t i, size_t first, size_t count, void *tile, void *out)
{
    (void)member, (void)out;
    keep_elements(context, i, first, count, tile);
}

/* Steps slices that no other replica has. */
static void step_own(const struct dti_replica *self, const struct slice_step *s, bool clips)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const ditto_variable *v = variable_of(s, i);
        const void *gradient = s->applying->gradient[s->variable[i]].data;
        size_t count = v->piece[s->slice].count;
        if (clips)
            keep_elements(s, i, 0, count, gradient);
        else
            dti_applying_step_all(s->applying, self->index, item_of(s, i), 0, count, gradient,
                                  dti_variable_component(v, self->index));
    }
}

/* Steps slices together with the replicas that mirror them. `memory` has room for the items and copies. */
static ditto_status step_together(struct dti_replica *self, struct slice_step *s, bool clips, void *memory)
{
    const ditto_optimizer *o = s->applying->optimizer;
    ditto_list_item *list = memory;
    struct dti_copy_set *set = (struct dti_copy_set *)(void *)(list + s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        const ditto_variable *v = variable_of(s, i);
        list[i] = (ditto_list_item){ .src = s->applying->gradient[s->variable[i]].data,
                                     .count = v->piece[s->slice].count,
                                     .dtype = v->spec.dtype };
        set[i] = clips ? (struct dti_copy_set){ 0, NULL } : v->slicing->copies_of_piece[s->slice];
    }
    struct dti_target target = { .finish = clips ? keep : finish,
                                 .context = s,
                                 .copy_set = set,
                                 .calls = !clips && o->options.rule == DITTO_RULE_FUNCTION };
    struct dti_target_reduction targeted = { .item = list,
                                             .items = s->count,
                                             .op = o->options.op,
                                             .name = "ditto_apply",
                                             .object = o->name,
                                             .target = &target };
    memcpy(&targeted.hash, &s->applying->step.learning_rate, sizeof targeted.hash);
    return dti_target_reduction(dti_grouping_member(self, variable_of(s, 0)->slicing->mirrors), &targeted);
}

/* Counts the step. All replicas have read the old number. */
static ditto_status count_step(struct dti_replica *self, const void *const *contributed, void *context)
{
    const struct dti_applying *a = context;
    (void)contributed;
    if (self->index == 0 && a->optimizer->first_nonempty_item < a->optimizer->items)
        *(int64_t *)a->optimizer->iterations->copy[0].data = a->step.number;
    return DITTO_OK;
}

struct own_steps {
    const struct dti_applying *applying;
    bool clips;
};

/* Steps all slices that no other replica has. All replicas have arrived, so none still reads slots or
 * variables in an earlier call. */
static ditto_status step_all_own(struct dti_replica *self, const void *const *contributed, void *context)
{
    const struct own_steps *own = context;
    const ditto_optimizer *o = own->applying->optimizer;
    (void)contributed;
    for (uint32_t i = 0, next; i < o->sliced; i = next) {
        const struct dti_slicing *slicing = o->variable[o->sliced_variable[i]]->slicing;
        next = dti_optimizer_sliced_alike(o, i);
        struct slice_step s = { own->applying, &o->sliced_variable[i], next - i, slicing->rank[self->index] };
        if (slicing->mirrors == NULL)
            step_own(self, &s, own->clips);
    }
    return DITTO_OK;
}

static ditto_status step_all_together(struct dti_replica *self, const struct dti_applying *a, bool clips)
{
    const ditto_optimizer *o = a->optimizer;
    ditto_status status = DITTO_OK;
    void *memory;
    DTI_TRY(dti_replica_alloc(self, o->sliced * (sizeof(ditto_list_item) + sizeof(struct dti_copy_set)),
                              DTI_CACHE_LINE, &memory));
    for (uint32_t i = 0, next; i < o->sliced && status == DITTO_OK; i = next) {
        const struct dti_slicing *slicing = o->variable[o->sliced_variable[i]]->slicing;
        next = dti_optimizer_sliced_alike(o, i);
        struct slice_step s = { a, &o->sliced_variable[i], next - i, slicing->rank[self->index] };
        if (slicing->mirrors != NULL)
            status = step_together(self, &s, clips, memory);
    }
    dti_replica_free(self, memory);
    return status;
}

/* The first work compares the learning rates of all replicas, because those with different slices compare
 * nothing else. Its hash is never that of measuring the norm. */
ditto_status dti_apply_slices(struct dti_replica *self, struct dti_applying *a)
{
    const ditto_optimizer *o = a->optimizer;
    struct own_steps steps = { a, o->options.clip_norm > 0 };
    struct dti_joint_work own = { .name = "ditto_apply",
                                  .object = o->name,
                                  .each_host = true,
                                  .calls = !steps.clips && o->options.rule == DITTO_RULE_FUNCTION,
                                  .work = step_all_own,
                                  .context = &steps };
    struct dti_joint_work counting = {
        .name = "ditto_apply", .object = o->name, .each_host = true, .work = count_step, .context = a
    };
    memcpy(&own.hash, &a->step.learning_rate, sizeof own.hash);
    own.hash = dti_hash_word(own.hash, 1);
    DTI_TRY(dti_do_joint_work(self, &own));
    DTI_TRY(step_all_together(self, a, steps.clips));
    return steps.clips ? DITTO_OK : dti_do_joint_work(self, &counting);
}
