/* src/vars/mirrored.c - ON_WRITE: the replicas' values are aggregated, the result is applied once to every copy. */
#include "vars/vars.h"

#include <string.h>

/* -- replica context -- */

struct update {
    const ditto_variable *v;
    enum dti_rule rule;
};

/* Called once per index range, after all replicas have arrived: nobody reads the old value any more. What comes out is what
 * every copy gets. */
static void apply(void *context, uint32_t replica, size_t item, size_t first, size_t count, void *tile, void *out)
{
    const struct update *u = context;
    ditto_dtype dtype = u->v->spec.dtype;
    const char *old = dti_nearest(u->v, (uint32_t)item, replica) + first * ditto_dtype_bytes(dtype);
    dti_rule_apply(u->rule, dtype, out, old, tile, count);
}

static ditto_status check_aggregation(const ditto_variable *v)
{
    if (v->aggregation != DITTO_AGGREGATE_NONE)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "\"%s\" has no aggregation, so the replicas' values cannot become one: create it "
                    "with DITTO_AGGREGATE_SUM, MEAN or ONLY_FIRST_REPLICA to say how to aggregate",
                    v->name);
}

/* A piece after the other, as items of one update. */
static ditto_status write_pieces(struct dti_replica *self, const struct dti_update *wish, const ditto_variable *v,
                                 const void *value, struct dti_deadline *deadline)
{
    struct dti_update update = *wish;
    void *memory;
    DTI_TRY(dti_replica_alloc(self, v->pieces * sizeof *update.item, DTI_LINE, &memory));
    ditto_list_item *item = memory;
    for (uint32_t i = 0; i < v->pieces; i++)
        item[i] = (ditto_list_item){ .src = (const char *)value + v->piece[i].first * ditto_dtype_bytes(v->spec.dtype),
                                     .count = v->piece[i].count,
                                     .dtype = v->spec.dtype };
    update.item = item;
    update.items = v->pieces;
    ditto_status status = dti_update(self, &update, deadline);
    dti_replica_free(self, memory);
    return status;
}

static ditto_status write_mirrored(struct dti_replica *self, ditto_variable *v, enum dti_rule rule, const void *value)
{
    static const char *const names[] = { "ditto_assign", "ditto_assign_add", "ditto_assign_sub" };
    struct update context = { v, rule };
    ditto_list_item item = { .src = value, .count = v->count, .dtype = v->spec.dtype };
    struct dti_target target = { .finish = rule == DTI_ASSIGN ? NULL : apply, .context = &context, .place = v->place };
    struct dti_update update = { .item = &item,
                                 .items = 1,
                                 .op = v->aggregation == DITTO_AGGREGATE_SUM    ? DITTO_SUM
                                       : v->aggregation == DITTO_AGGREGATE_MEAN ? DITTO_MEAN
                                                                                : (ditto_op)0, /* replica 0's */
                                 .name = names[rule],
                                 .object = v->name,
                                 .target = &target };
    struct dti_deadline deadline = dti_replica_deadline(self, self->team->options.timeout_ms);
    DTI_TRY(check_aggregation(v));
    dti_changed(v, self->id); /* also if it fails: it may have */
    return v->pieces == 1 ? dti_update(self, &update, &deadline) : write_pieces(self, &update, v, value, &deadline);
}

/* -- cross-replica context: by all replicas where that is faster -- */

static ditto_status read_range(size_t first, size_t end, void *context)
{
    const struct dti_across *a = context;
    dti_copies_read(a->v, 0, first, end, a->dst + first * ditto_dtype_bytes(a->v->spec.dtype));
    return DITTO_OK;
}

static ditto_status write_range(size_t first, size_t end, void *context)
{
    const struct dti_across *a = context;
    if (first == 0) /* one of them, with the turn */
        dti_all_changed(a->v);
    dti_copies_write(a->v, a->rule, first, end, a->value + first * ditto_dtype_bytes(a->v->spec.dtype));
    return DITTO_OK;
}

static ditto_status read_across(ditto_variable *v, void *dst)
{
    struct dti_across across = { .v = v, .dst = dst };
    return dti_share(v->team, v->bytes, v->count, DTI_LINE, read_range, &across);
}

static ditto_status write_across(ditto_variable *v, enum dti_rule rule, const void *value)
{
    struct dti_across across = { .v = v, .rule = rule, .value = value };
    return dti_share(v->team, v->bytes * v->place[0].copies, v->count, DTI_LINE, write_range, &across);
}

const struct dti_variable_kind dti_mirrored_kind = { "mirrored", write_mirrored, read_across, write_across };
