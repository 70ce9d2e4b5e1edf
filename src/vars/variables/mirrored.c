/* src/vars/variables/mirrored.c - mirrored variables (DITTO_ON_WRITE). A write in replica context aggregates
 * the values of the replicas and applies the result once to every copy. A write in cross-replica context
 * applies one value to every copy. */
#include "replicas/helpers/remote_memory.h"
#include "sync/hosts/cross.h"
#include "sync/kernels/local_reduction.h"
#include "sync/kernels/tree.h"
#include "vars/vars.h"

#include <string.h>

/* -- Replica context -- */

struct mirrored_write {
    const ditto_variable *v;
    enum dti_rule rule;
};

/* Computes the new values of a range. It is called after all replicas have arrived, so no replica reads
 * the old values any more. It is called once for each range on each host, and `out` is then written to
 * every copy. If the value is replica 0's, it is called once in each group of replicas, for the copies of
 * that group (sync.h). */
static void apply(void *context, uint32_t replica, size_t item, size_t first, size_t count, void *tile,
                  void *out)
{
    const struct mirrored_write *w = context;
    ditto_dtype dtype = w->v->spec.dtype;
    const char *old = dti_nearest(w->v, (uint32_t)item, replica) + first * ditto_dtype_bytes(dtype);
    dti_rule_apply(w->rule, dtype, out, old, tile, count);
}

/* Writes a variable of several pieces. Each piece is an item of one reduction. */
static ditto_status write_pieces(struct dti_replica *self, const struct dti_target_reduction *request,
                                 const ditto_variable *v, const void *value)
{
    struct dti_target_reduction targeted = *request;
    void *memory;
    DTI_TRY(dti_replica_alloc(self, v->pieces * sizeof *targeted.item, DTI_CACHE_LINE, &memory));
    ditto_list_item *item = memory;
    for (uint32_t i = 0; i < v->pieces; i++)
        item[i] = (ditto_list_item){ .src = (const char *)value +
                                            v->piece[i].first * ditto_dtype_bytes(v->spec.dtype),
                                     .count = v->piece[i].count,
                                     .dtype = v->spec.dtype };
    targeted.item = item;
    targeted.items = v->pieces;
    ditto_status status = dti_target_reduction(self, &targeted);
    dti_replica_free(self, memory);
    return status;
}

/* -- Components that may differ. An addition or subtraction changes each from its own value. An assignment
 * makes all equal. -- */

struct write_each {
    ditto_variable *v;
    enum dti_rule rule;
    ditto_op op; /* 0 if the value is that of replica 0 */

    /* The value over several hosts, where a replica cannot read what those of other hosts contribute. NULL
     * with one host. */
    const char *value;
};

static ditto_status write_each_part(struct dti_replica *self, const void *const *contributed, void *context)
{
    alignas(DTI_CACHE_LINE) char tile[4096];
    const struct write_each *w = context;
    const ditto_variable *v = w->v;
    const void *source[DITTO_MAX_REPLICAS];
    size_t element_bytes = ditto_dtype_bytes(v->spec.dtype), tile_count = sizeof tile / element_bytes;
    size_t first, end;
    dti_tree_part(v->count, self->num_replicas, self->index, DTI_CACHE_LINE, &first, &end);
    for (size_t count; first < end; first += count) {
        count = end - first < tile_count ? end - first : tile_count;
        for (uint32_t i = 0; i < v->num_replicas; i++)
            source[i] = (const char *)contributed[i] + first * element_bytes;
        if (w->value != NULL)
            memcpy(tile, w->value + first * element_bytes, count * element_bytes);
        else if (w->op != 0)
            DTI_TRY(dti_reduce_local(v->spec.dtype, w->op, dti_team_tree(v->team), source, count, tile));
        else
            /* The tile is needed because the source may be one of the copies. */
            /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): there is a replica 0 */
            memcpy(tile, source[0], count * element_bytes);
        dti_copies_write(v, w->rule, first, first + count, tile);
    }
    /* The other replicas read may_differ before their first meeting of this call, and in later calls. */
    if (w->rule == DTI_RULE_ASSIGN && self->index == 0)
        dti_variable_set_equal(w->v);
    return DITTO_OK;
}

static ditto_status write_each_on_host(struct dti_replica *self, const struct dti_target_reduction *targeted,
                                       ditto_variable *v, enum dti_rule rule, const char *value)
{
    struct write_each context = { v, rule, targeted->op, value };
    struct dti_joint_work joint = { .name = targeted->name,
                                    .object = v->name,
                                    .contributed = targeted->item->src,
                                    .each_host = value != NULL,
                                    .work = write_each_part,
                                    .context = &context };
    return dti_do_joint_work(self, &joint);
}

static ditto_status write_each(struct dti_replica *self, const struct dti_target_reduction *targeted,
                               ditto_variable *v, enum dti_rule rule)
{
    void *value;
    if (!dti_cross_has_hosts(self->team))
        return write_each_on_host(self, targeted, v, rule, NULL);
    DTI_TRY(dti_replica_alloc(self, v->bytes, DTI_CACHE_LINE, &value));
    struct dti_shared_result shared = { .name = targeted->name,
                                        .object = v->name,
                                        .hash = v->stamp,
                                        .src = targeted->item->src,
                                        .dst = value,
                                        .count = v->count,
                                        .dtype = v->spec.dtype,
                                        .op = targeted->op };
    if (targeted->op == 0 && self->id == 0)
        memcpy(value, targeted->item->src, v->bytes);
    ditto_status status = dti_share_result(self, &shared);
    if (status == DITTO_OK)
        status = write_each_on_host(self, targeted, v, rule, value);
    dti_replica_free(self, value);
    return status;
}

/* Returns true if the value lies in a copy of the variable, or overlaps one. For a variable of several pieces
 * it may also return true if the value lies less than v->bytes from a copy. */
static bool overlaps_copy(const ditto_variable *v, const void *value)
{
    const char *value_start = value;
    for (uint32_t c = 0; c < v->copies; c++) {
        const char *copy = v->copy[c].data;
        if (value_start < copy + v->bytes && copy < value_start + v->bytes)
            return true;
    }
    return false;
}

static ditto_status write_value(struct dti_replica *self, const struct dti_target_reduction *targeted,
                                const ditto_variable *v)
{
    return v->pieces == 1 ? dti_target_reduction(self, targeted)
                          : write_pieces(self, targeted, v, targeted->item->src);
}

/* Writes replica 0's value, which lies in one of the variable's copies. A group of replicas that is late
 * would read elements that another group has already overwritten. Replica 0 therefore copies the value first,
 * and all replicas read from that copy. */
static ditto_status write_from_copy(struct dti_replica *self, const struct dti_target_reduction *request,
                                    const ditto_variable *v)
{
    struct dti_target_reduction targeted = *request;
    ditto_list_item item = *request->item;
    void *value;
    DTI_TRY(dti_replica_alloc(self, v->bytes, DTI_CACHE_LINE, &value));
    memcpy(value, item.src, v->bytes);
    item.src = value;
    targeted.item = &item;
    ditto_status status = write_value(self, &targeted, v);
    dti_replica_free(self, value);
    return status;
}

const char *dti_assign_name(enum dti_rule rule)
{
    static const char *const names[] = { "ditto_assign", "ditto_assign (ADD)", "ditto_assign (SUB)" };
    return names[rule];
}

ditto_status dti_variable_check_aggregates(const ditto_variable *v)
{
    if (v->aggregation != DITTO_AGGREGATE_NONE)
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "\"%s\" has no aggregation, so the replicas' values cannot become one: create it with "
                    "DITTO_AGGREGATE_SUM, MEAN or ONLY_FIRST_REPLICA to say how to aggregate",
                    v->name);
}

static ditto_status write_mirrored(struct dti_replica *self, ditto_variable *v, enum dti_rule rule,
                                   const void *value)
{
    struct mirrored_write context = { v, rule };
    ditto_list_item item = { .src = value, .count = v->count, .dtype = v->spec.dtype };
    struct dti_target target = { .finish = rule == DTI_RULE_ASSIGN ? NULL : apply,
                                 .context = &context,
                                 .copy_set = v->copies_of_piece };
    struct dti_target_reduction targeted = { .item = &item,
                                             .items = 1,
                                             .op = v->aggregation == DITTO_AGGREGATE_SUM ? DITTO_SUM
                                                   : v->aggregation == DITTO_AGGREGATE_MEAN
                                                       ? DITTO_MEAN
                                                       : (ditto_op)0, /* replica 0's value */
                                             .name = dti_assign_name(rule),
                                             .object = v->name,
                                             .hash = v->stamp,
                                             .target = &target };
    DTI_TRY(dti_variable_check_aggregates(v));
    dti_changed(v, self->index); /* also if the write fails, because it may have changed something */
    if (dti_variable_may_differ(v))
        return write_each(self, &targeted, v, rule);
    if (targeted.op == 0 && rule != DTI_RULE_ASSIGN && self->index == 0 && overlaps_copy(v, value))
        return write_from_copy(self, &targeted, v);
    return write_value(self, &targeted, v);
}

/* -- Cross-replica context. dti_share divides the work among the replicas if that is faster. -- */

static ditto_status read_range(size_t first, size_t end, void *context)
{
    const struct dti_cross_access *a = context;
    dti_copies_read(a->v, 0, first, end, a->dst + first * ditto_dtype_bytes(a->v->spec.dtype));
    return DITTO_OK;
}

static ditto_status write_range(size_t first, size_t end, void *context)
{
    const struct dti_cross_access *a = context;
    /* Exactly one call has first == 0. It runs under the turn, so these members have one writer. */
    if (first == 0) {
        dti_all_changed(a->v);
        if (a->rule == DTI_RULE_ASSIGN)
            dti_variable_set_equal(a->v);
    }
    dti_copies_write(a->v, a->rule, first, end, a->value + first * ditto_dtype_bytes(a->v->spec.dtype));
    return DITTO_OK;
}

ditto_status dti_mirrored_read(ditto_variable *v, void *dst)
{
    struct dti_cross_access across = { .v = v, .dst = dst };
    return dti_share(v->team, v->bytes, v->count, DTI_CACHE_LINE, read_range, &across);
}

ditto_status dti_mirrored_write(ditto_variable *v, enum dti_rule rule, const void *value)
{
    struct dti_cross_access across = { .v = v, .rule = rule, .value = value };
    /* relaxed: the number is only used to estimate the amount of work. */
    uint32_t copies = v->pieces == 1 ? atomic_load_explicit(&v->copies, memory_order_relaxed) : 1;
    return dti_share(v->team, v->bytes * copies, v->count, DTI_CACHE_LINE, write_range, &across);
}

const struct dti_variable_kind dti_mirrored_kind = { "mirrored", write_mirrored, dti_mirrored_read,
                                                     dti_mirrored_write };
