/* src/vars/optimizer/parameter_step.c - a step on parameters, whose workers do not wait for each other.
 *
 * The gradients are reduced over the replicas of the worker. Then the step takes its number, and updates one
 * item after the other, each under the lock of its shard, together with its slots. Other workers may update
 * other items meanwhile, or the same ones before and after. If the worker has several replicas, each of them
 * updates its share of the items.
 *
 * If gradients are gathered (accumulate), the call that takes a number and the items count separately, so all
 * items must get the gradients of each call that has a number. Replica 0 then updates all items, before it
 * meets the other replicas, so that no failure comes between. */
#include "base/observe.h"
#include "replicas/helpers/remote_memory.h"
#include "sync/kernels/local_reduction.h"
#include "vars/optimizer/optimizer.h"
#include "vars/parameters/parameter.h"

#include <string.h>

/* The gradients of a step, reduced over the replicas of the worker. */
struct reduced {
    const ditto_tensor *gradient; /* [count of variables] */
    void *memory;                 /* of this replica, or NULL if the worker has one replica */
};

static size_t bytes_of(const ditto_optimizer *o)
{
    size_t bytes = o->count * sizeof(ditto_tensor);
    for (uint32_t k = 0; k < o->count; k++)
        bytes += (o->variable[k]->bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
    return bytes + DTI_CACHE_LINE;
}

/* Collective among the replicas of the worker. After an error, too, reduced->memory is the caller's. */
static ditto_status reduce(struct dti_replica *self, const ditto_optimizer *o, const ditto_tensor *gradients,
                           double learning_rate, struct reduced *reduced)
{
    uint64_t rate; /* the replicas compare it */
    memcpy(&rate, &learning_rate, sizeof rate);
    reduced->gradient = gradients;
    if (self->num_replicas == 1)
        return DITTO_OK;
    DTI_TRY(dti_replica_alloc(self, bytes_of(o), DTI_CACHE_LINE, &reduced->memory));
    char *at = reduced->memory;
    ditto_tensor *list = (ditto_tensor *)(void *)(at + bytes_of(o) - DTI_CACHE_LINE -
                                                  o->count * sizeof *list);
    for (uint32_t k = 0; k < o->count; k++) {
        const ditto_variable *v = o->variable[k];
        struct dti_shared_result shared = { .name = "ditto_apply",
                                            .object = o->name,
                                            .hash = rate,
                                            .src = gradients[k].data,
                                            .dst = at,
                                            .count = v->count,
                                            .dtype = v->spec.dtype,
                                            .op = o->options.op };
        if (v->count != 0)
            DTI_TRY(dti_share_result(self, &shared));
        list[k] = gradients[k];
        list[k].data = at;
        at += (v->bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
    }
    reduced->gradient = list;
    return DITTO_OK;
}

ditto_status dti_optimizer_steps(const ditto_optimizer *o, int64_t *steps)
{
    if (o->iterations->shard != NULL)
        return dti_parameter_read(o->iterations, steps, &(struct dti_reading){ .versions = NULL });
    *steps = *(const int64_t *)o->iterations->copy[0].data;
    return DITTO_OK;
}

/* relaxed, also in take_number: only the holder of the lock writes the numbers, which are only reported. */
static void add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

void dti_optimizer_staleness(const ditto_optimizer *o, ditto_staleness_counters *out)
{
    *out = (ditto_staleness_counters){
        .calls = atomic_load_explicit(&o->staleness.calls, memory_order_relaxed),
        .dropped = atomic_load_explicit(&o->staleness.dropped, memory_order_relaxed),
        .sum = atomic_load_explicit(&o->staleness.sum, memory_order_relaxed),
        .largest = atomic_load_explicit(&o->staleness.largest, memory_order_relaxed),
    };
    for (uint32_t i = 0; i < DITTO_HISTOGRAM_LENGTH; i++)
        out->histogram[i] = atomic_load_explicit(&o->staleness.histogram[i], memory_order_relaxed);
}

/* Takes the number of the step that a call belongs to. Steps are numbered from 1. *number stays 0 if the
 * gradients are too old. */
static ditto_status take_number(ditto_optimizer *o, const ditto_apply_options *options, int64_t *number)
{
    int64_t *steps = o->iterations->copy[0].data;
    DTI_TRY(dti_shard_lock(o->iterations, 0));
    bool is_old = o->options.has_max_staleness != 0 &&
                  *steps - options->read_steps > o->options.max_staleness;
    if (options->has_read_steps) {
        /* The staleness is the number of steps that have begun since the parameters were read. */
        uint64_t staleness = *steps > options->read_steps ? (uint64_t)(*steps - options->read_steps) : 0;
        add(&o->staleness.calls, 1);
        add(&o->staleness.dropped, is_old);
        add(&o->staleness.sum, staleness);
        add(&o->staleness.histogram[dti_histogram_range(staleness)], 1);
        if (staleness > atomic_load_explicit(&o->staleness.largest, memory_order_relaxed))
            atomic_store_explicit(&o->staleness.largest, staleness, memory_order_relaxed);
    }
    if (!is_old) {
        *number = *steps + 1;
        if (++o->gathered >= o->options.accumulate) {
            o->gathered = 0;
            *steps = *number;
            dti_shard_updated(o->iterations, 0, NULL);
        }
    }
    dti_shard_unlock(o->iterations, 0);
    return DITTO_OK;
}

/* The elements to which the factor of clipping is applied at once. */
#define TILE_BYTES 4096

/* What computes a range of an item. */
struct computing {
    const struct dti_optimizer_step *step;
    const ditto_rule_range *range; /* all of it */
};

static void compute_range(const void *context, size_t first, size_t count, const void *old, void *new)
{
    const struct computing *c = context;
    ditto_rule_range part = dti_rule_range_part(c->range, first, count);
    dti_optimizer_step_apply(c->step, &part, old, new);
}

/* Updates an item, whose gradient is given. `factor` is that of clipping, or 1. */
static void update_item(const struct dti_applying *a, size_t item, const char *gradient, double factor)
{
    alignas(DTI_CACHE_LINE) char tile[TILE_BYTES];
    const ditto_optimizer *o = a->optimizer;
    const ditto_variable *v = o->variable[o->item[item].variable];
    const struct dti_variable_piece *piece = &v->piece[o->item[item].piece];
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype), most = TILE_BYTES / element_bytes;
    char *value = v->copies_of_piece[o->item[item].piece].copy[0].data;
    struct dti_optimizer_step own;
    const struct dti_optimizer_step *step = dti_applying_step(a, item, &own);
    for (size_t at = 0, end; at < piece->count; at = end) {
        ditto_rule_range range;
        end = factor == 1 || piece->count - at < most ? piece->count : at + most;
        dti_applying_range(a, item, at, &end, &range);
        range.gradient = gradient + at * element_bytes;
        if (factor != 1) {
            memcpy(tile, range.gradient, range.count * element_bytes);
            dti_scale_gradient(v->spec.dtype, factor, tile, range.count);
            range.gradient = tile;
        }
        dti_shard_change(v, value + at * element_bytes, range.count, compute_range,
                         &(struct computing){ step, &range });
    }
}

/* Adds a gradient, times `factor`. */
static void add_gradient(ditto_dtype dtype, char *sum, const char *gradient, size_t count, double factor)
{
    alignas(DTI_CACHE_LINE) char tile[TILE_BYTES];
    size_t element_bytes = ditto_dtype_bytes(dtype), most = TILE_BYTES / element_bytes;
    for (size_t at = 0, part_count; at < count; at += part_count) {
        const void *part = gradient + at * element_bytes;
        part_count = count - at < most ? count - at : most;
        if (factor != 1) {
            memcpy(tile, part, part_count * element_bytes);
            dti_scale_gradient(dtype, factor, tile, part_count);
            part = tile;
        }
        dti_rule_apply(DTI_RULE_ADD, dtype, sum + at * element_bytes, sum + at * element_bytes, part,
                       part_count);
    }
}

/* Adds the gradient of an item, times `factor`, to those that are gathered there, and updates the item if
 * they are complete. Returns true if it does. */
static bool gather(const struct dti_applying *a, size_t item, const char *gradient, double factor)
{
    ditto_optimizer *o = a->optimizer;
    const struct dti_optimizer_item *i = &o->item[item];
    const ditto_variable *v = o->variable[i->variable];
    char *gathered = o->sum[i->variable]->copies_of_piece[i->piece].copy[0].data;
    size_t count = v->piece[i->piece].count;
    add_gradient(v->spec.dtype, gathered, gradient, count, factor);
    /* relaxed, both: the lock orders the gradients, and a call without the lock adds none. */
    if (atomic_fetch_add_explicit(&o->gathered_in[item], 1, memory_order_relaxed) + 1 < o->options.accumulate)
        return false;
    atomic_fetch_sub_explicit(&o->gathered_in[item], o->options.accumulate, memory_order_relaxed);
    if (count == 0)
        return true;
    if (o->options.op == DITTO_MEAN)
        dti_divide(v->spec.dtype, gathered, gathered, count, o->options.accumulate);
    update_item(a, item, gathered, 1);
    memset(gathered, 0, count * ditto_dtype_bytes(v->spec.dtype));
    return true;
}

/* Updates the items first, first + every, first + 2 * every, and so on. If the lock of a shard cannot be
 * taken, the items of all others are updated nevertheless, and that shard lacks the gradient, but counts the
 * call. */
static ditto_status update_items(const struct dti_replica *self, const struct dti_applying *a, double factor,
                                 uint32_t first, uint32_t every)
{
    const ditto_optimizer *o = a->optimizer;
    ditto_status updated = DITTO_OK;
    for (size_t item = first; item < o->items; item += every) {
        const struct dti_optimizer_item *i = &o->item[item];
        const ditto_variable *v = o->variable[i->variable];
        const char *gradient = (const char *)a->gradient[i->variable].data +
                               v->piece[i->piece].first * ditto_dtype_bytes(v->spec.dtype);
        bool is_updated = true;
        ditto_status status = dti_shard_lock(v, i->piece);
        if (status != DITTO_OK) {
            updated = status;
            if (o->options.accumulate > 1)
                atomic_fetch_add_explicit(&o->gathered_in[item], 1, memory_order_relaxed);
            continue;
        }
        if (o->options.accumulate > 1)
            is_updated = gather(a, item, gradient, factor);
        else
            update_item(a, item, gradient, factor);
        if (is_updated)
            dti_shard_updated(v, i->piece, self);
        dti_shard_unlock(v, i->piece);
    }
    return updated;
}

static ditto_status step(struct dti_replica *self, ditto_optimizer *o, const struct reduced *reduced,
                         const ditto_apply_options *options)
{
    struct dti_applying applying = { .optimizer = o, .gradient = reduced->gradient };
    double norm = 0, factor = 1, clip_norm = o->options.clip_norm;
    int64_t number = 0;
    if (options->norm != NULL || clip_norm > 0)
        DTI_TRY(dti_norm_of_gradients(self, o, reduced->gradient, &norm));
    if (clip_norm > 0 && !(norm <= clip_norm)) /* also if the norm is a NaN, as in clip.c */
        factor = clip_norm / norm;
    if (self->index == 0)
        DTI_TRY(take_number(o, options, &number));
    if (number != 0 && o->options.accumulate > 1) {
        applying.step = dti_optimizer_step_of(&o->options, options->learning_rate, number);
        DTI_TRY(update_items(self, &applying, factor, 0, 1));
    }
    struct dti_shared_result shared = {
        .name = "ditto_apply", .object = o->name, .dst = &number, .count = 1, .dtype = DITTO_I64
    };
    if (self->num_replicas > 1)
        DTI_TRY(dti_share_result(self, &shared)); /* all replicas of the worker get replica 0's number */
    if (options->dropped != NULL)
        *options->dropped = number == 0;
    if (options->norm != NULL)
        *options->norm = norm;
    if (number == 0 || o->options.accumulate > 1)
        return DITTO_OK;
    applying.step = dti_optimizer_step_of(&o->options, options->learning_rate, number);
    DTI_TRY(update_items(self, &applying, factor, self->index, self->num_replicas));
    if (self->num_replicas == 1)
        return DITTO_OK;
    /* The caller of ditto_apply may rely on all updates of its worker. */
    struct dti_matched_call end = { .name = "ditto_apply", .object = o->name, .each_host = true };
    struct dti_deadline deadline = { .timeout_ms = self->timeout_ms };
    return dti_sync_meet(self, &end, &deadline);
}

ditto_status dti_parameter_step(struct dti_replica *self, ditto_optimizer *o, const ditto_tensor *gradients,
                                const ditto_apply_options *options)
{
    struct reduced reduced = { .memory = NULL };
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = reduce(self, o, gradients, options->learning_rate, &reduced);
    if (status == DITTO_OK)
        status = step(self, o, &reduced, options);
    dti_fenv_leave(saved);
    if (reduced.memory != NULL)
        dti_replica_free(self, reduced.memory);
    return status;
}
