/* src/vars/mirrored.c - ON_WRITE: the replicas' values are aggregated, the result is applied once to every copy. */
#include "vars/vars.h"

#include <string.h>

struct update {
    const ditto_variable *v;
    enum dti_rule rule;
};

/* Called once per index range, after all replicas have arrived: nobody reads the old value any more. What comes out is what
 * every copy gets. */
static void apply(void *context, uint32_t replica, size_t first, size_t count, void *tile)
{
    const struct update *u = context;
    const ditto_variable *v = u->v;
    const char *old = (const char *)dti_component(v, replica) + first * ditto_dtype_bytes(v->spec.dtype);
    dti_rule_apply(u->rule, v->spec.dtype, tile, old, tile, count);
}

static ditto_status write_mirrored(struct dti_replica *self, ditto_variable *v, enum dti_rule rule, const void *value)
{
    static const char *const names[] = { "ditto_assign", "ditto_assign_add", "ditto_assign_sub" };
    struct update update = { v, rule };
    struct dti_target target = { rule == DTI_ASSIGN ? NULL : apply, &update, v->copies, v->copy };
    struct dti_deadline deadline = dti_replica_deadline(self, self->team->options.timeout_ms);
    ditto_op op = v->aggregation == DITTO_AGGREGATE_SUM ? DITTO_SUM : DITTO_MEAN;
    if (v->aggregation == DITTO_AGGREGATE_NONE)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" has no aggregation, so the replicas' values cannot become one: create it "
                        "with DITTO_AGGREGATE_SUM, MEAN or ONLY_FIRST_REPLICA to say how to aggregate",
                        v->name);
    if (v->aggregation == DITTO_AGGREGATE_ONLY_FIRST_REPLICA)
        op = (ditto_op)0; /* no reduction: replica 0's values */
    return dti_update(self, value, v->count, v->spec.dtype, op, names[rule], v->name, &target, &deadline);
}

static ditto_status read_across(ditto_variable *v, void *dst)
{
    memcpy(dst, v->copy[0].data, v->bytes);
    return DITTO_OK;
}

static ditto_status write_across(ditto_variable *v, enum dti_rule rule, const void *value)
{
    for (uint32_t i = 0; i < v->copies; i++)
        dti_rule_apply(rule, v->spec.dtype, v->copy[i].data, v->copy[i].data, value, v->count);
    return DITTO_OK;
}

const struct dti_variable_kind dti_mirrored_kind = { write_mirrored, read_across, write_across };
