/* src/values/reductions/destinations.c - reductions whose results go to the replicas that have components of
 * a given value, or to one replica. Many reductions share one job. */
#include "base/numbers/checksum.h"
#include "replicas/team/turn.h"
#include "sync/kernels/tree.h"
#include "values/reductions/reductions.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

/* One result. */
struct delivery {
    /* The input. NULL for a broadcast, whose tensor is in spec and `ready`. */
    const ditto_value *from;

    const ditto_destination *destinations;
    ditto_value *to;            /* the result: slices if sparse, otherwise a mirrored value */
    ditto_tensor spec;          /* dtype and shape of the result */
    struct dti_all_parts parts; /* the parts that are reduced */

    /* If it is not NULL, nothing is reduced, and these bytes are copied to each destination. */
    const void *ready;
    void *allocated; /* equal to `ready` if plan_dense allocated it, otherwise NULL */
    bool sparse;     /* the result is slices, and is already in `to` */
};

struct deliveries {
    ditto_strategy *strategy;
    ditto_op op;
    struct delivery *delivery;
    uint32_t count;
};

static bool is_destination(const struct delivery *d, const struct dti_replica *r)
{
    const ditto_value *of = d->destinations->of;
    uint32_t replica = r->index;
    if (of == NULL)
        return r->id == d->destinations->replica;
    if (of->kind == DITTO_VALUE_VARIABLE)
        return dti_owns_copy(of->variable, replica);
    return of->kind != DITTO_VALUE_MIRRORED || of->part[replica].rank != DTI_NO_PART;
}

uint64_t dti_destination_hash(const ditto_destination *destinations)
{
    const ditto_value *of = destinations->of;
    if (of == NULL)
        return destinations->replica;
    uint64_t hash = dti_hash_word(DTI_HASH_SEED, of->kind);
    return of->kind == DITTO_VALUE_VARIABLE ? dti_hash_word(hash, of->variable->stamp) : hash;
}

/* -- planning: the inputs of each result -- */

static bool is_to_variable(const struct delivery *d)
{
    return d->destinations->of != NULL && d->destinations->of->kind == DITTO_VALUE_VARIABLE;
}

/* Makes a dense array of the slices. */
static ditto_status plan_dense(const struct deliveries *all, struct delivery *d)
{
    const ditto_value *of = d->destinations->of;
    size_t bytes, rows = is_to_variable(d) && of->variable->spec.rank != 0 ? of->variable->spec.shape[0]
                                                                           : d->from->dense_rows;
    d->spec = (ditto_tensor){ .dtype = d->from->part[0].dtype,
                              .rank = 2,
                              .shape = { rows, d->from->part[0].shape[1] } };
    if (is_to_variable(d)) {
        if (of->variable->count != rows * d->spec.shape[1])
            return DTI_FAIL(DITTO_ERR_SHAPE, "rows of %zu elements do not fit \"%s\"", d->spec.shape[1],
                            of->variable->name);
        d->spec.rank = of->variable->spec.rank;
        memcpy(d->spec.shape, of->variable->spec.shape, sizeof d->spec.shape);
    }
    DTI_TRY(dti_tensor_check(&d->spec, &bytes));
    d->allocated = aligned_alloc(DTI_CACHE_LINE, bytes / DTI_CACHE_LINE * DTI_CACHE_LINE + DTI_CACHE_LINE);
    if (d->allocated == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %zu dense rows", rows);
    d->ready = d->allocated;
    return dti_slices_to_dense(d->from, all->op, dti_destination_hash(d->destinations), rows, d->allocated);
}

static ditto_status plan_delivery(const struct deliveries *all, struct delivery *d)
{
    if (d->from == NULL)
        return DITTO_OK;
    if (d->from->kind == DITTO_VALUE_NEST)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "a nest cannot be reduced: pass its members as the values of one batch call");
    if (d->from->kind == DITTO_VALUE_SLICES) {
        if (is_to_variable(d) || d->from->dense_rows != 0)
            return plan_dense(all, d);
        /* The slices are concatenated, because the number of dense rows is unknown. */
        d->sparse = true;
        return dti_concatenate_slices(d->from, all->op, dti_destination_hash(d->destinations), &d->to);
    }
    DTI_TRY(dti_inspect_component(d->from, 0, &d->spec));
    DTI_TRY(dti_reduce_check(all->op, d->spec.dtype));
    if (dti_is_one_value(d->from)) {
        /* The component of replica 0 counts. Another thread may change what dti_is_read_alone returns. */
        bool alone = dti_is_read_alone(d->from);
        if (!alone)
            DTI_TRY(dti_all_parts_open(d->from, dti_destination_hash(d->destinations), &d->parts));
        d->ready = alone ? d->spec.data : d->parts.part[0].data;
        return dti_reduce_check_once(all->strategy, all->op);
    }
    DTI_TRY(dti_all_parts_open(d->from, dti_hash_word(dti_destination_hash(d->destinations), all->op),
                               &d->parts));
    DTI_TRY(dti_reduce_check_shapes(d->parts.part, d->parts.n));
    d->spec.dtype = dti_reduce_dtype(all->op, d->spec.dtype);
    return DITTO_OK;
}

/* -- delivery, by all replicas -- */

/* Writes elements [first, end) of one result to all its copies. */
static ditto_status deliver_range(const struct deliveries *all, const struct delivery *d, size_t first,
                                  size_t end)
{
    uint32_t n = dti_base_of(all->strategy)->num_replicas;
    size_t element_bytes = ditto_dtype_bytes(d->spec.dtype);
    const char *from = d->ready;
    for (uint32_t i = 0; i < n && first < end; i++) {
        if (d->to->part[i].rank == DTI_NO_PART)
            continue;
        char *to = d->to->part[i].data;
        if (from != NULL)
            memcpy(to + first * element_bytes, from + first * element_bytes, (end - first) * element_bytes);
        else
            DTI_TRY(dti_reduce_range(all->op, d->parts.part, dti_team_tree(dti_team_of(all->strategy)), first,
                                     end, to));
        from = to;
    }
    return DITTO_OK;
}

static ditto_status deliver(struct dti_replica *r, void *argument)
{
    const struct deliveries *all = argument;
    struct dti_deadline deadline = { .timeout_ms = DITTO_FOREVER };
    /* The copies of results that go to this replica are allocated in the replica's own memory. */
    for (uint32_t i = 0; i < all->count; i++) {
        struct delivery *d = &all->delivery[i];
        ditto_tensor *part = &d->to->part[r->index];
        if (d->sparse)
            continue;
        part->rank = DTI_NO_PART;
        if (!is_destination(d, r))
            continue;
        void *data;
        DTI_TRY(dti_value_buffer_take(dti_pool_of(all->strategy, r->index), ditto_tensor_bytes(&d->spec),
                                      &d->to->component[r->index], &data));
        *part = d->spec;
        part->data = data;
        part->device = 0;
    }
    DTI_TRY(dti_sync_meet(
        r, &(struct dti_matched_call){ .name = dti_this_thread()->function, .each_host = true }, &deadline));
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = DITTO_OK;
    for (uint32_t i = 0; i < all->count && status == DITTO_OK; i++) {
        size_t first, end;
        if (all->delivery[i].sparse)
            continue;
        dti_tree_part(dti_tensor_count(&all->delivery[i].spec), r->num_replicas, r->index, DTI_CACHE_LINE,
                      &first, &end);
        status = deliver_range(all, &all->delivery[i], first, end);
    }
    dti_fenv_leave(saved);
    return status;
}

static ditto_status deliver_all(struct deliveries *all)
{
    struct dti_team *team = dti_team_of(all->strategy);
    struct dti_frame frame;
    for (uint32_t i = 0; i < all->count; i++) {
        DTI_TRY(plan_delivery(all, &all->delivery[i]));
        if (!all->delivery[i].sparse)
            DTI_TRY(dti_value_make(all->strategy, DITTO_VALUE_MIRRORED, &all->delivery[i].to));
    }
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_sync_run(team, deliver, all);
    dti_cross_leave(team, &frame);
    return status;
}

/* Sets the outputs if status is DITTO_OK. Otherwise drops all results. */
static ditto_status finish(struct deliveries *all, ditto_status status, ditto_value **out)
{
    for (uint32_t i = 0; i < all->count; i++) {
        dti_all_parts_close(&all->delivery[i].parts);
        free(all->delivery[i].allocated);
        if (status == DITTO_OK)
            out[i] = all->delivery[i].to;
        else
            dti_value_drop(all->delivery[i].to);
    }
    return status;
}

ditto_status dti_reduce_to_destinations(ditto_strategy *strategy, ditto_op op,
                                        const ditto_value *const *values,
                                        const ditto_destination *destinations, uint32_t count,
                                        ditto_value **out)
{
    struct deliveries all = { strategy, op, calloc(count, sizeof *all.delivery), count };
    if (all.delivery == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for %u reductions", count);
    for (uint32_t i = 0; i < count; i++)
        all.delivery[i] = (struct delivery){ .from = values[i], .destinations = &destinations[i] };
    ditto_status status = finish(&all, deliver_all(&all), out);
    free(all.delivery);
    return status;
}

ditto_status dti_broadcast_to_destinations(ditto_strategy *strategy, const ditto_tensor *tensor,
                                           const ditto_destination *destinations, ditto_value **out)
{
    struct delivery delivery = { .destinations = destinations, .spec = *tensor, .ready = tensor->data };
    struct deliveries all = { strategy, DITTO_SUM, &delivery, 1 };
    return finish(&all, deliver_all(&all), out);
}
