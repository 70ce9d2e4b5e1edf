/* src/vars/variables/sync_on_read.c - sync-on-read variables (DITTO_ON_READ). Each replica writes its own
 * component, and a read in cross-replica context aggregates the components. */
#include "sync/hosts/cross.h"
#include "sync/kernels/local_reduction.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

static ditto_status write_own(struct dti_replica *self, ditto_variable *v, enum dti_rule rule,
                              const void *value)
{
    void *component = dti_variable_component(v, self->index);
    dti_changed(v, self->index);
    struct dti_fenv saved = dti_fenv_enter();
    dti_rule_apply(rule, v->spec.dtype, component, component, value, v->count);
    dti_fenv_leave(saved);
    return DITTO_OK;
}

static ditto_status refuse_without_aggregation(const ditto_variable *v, const char *what)
{
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "\"%s\" has no aggregation, so %s across replicas has no meaning: create it with "
                    "DITTO_AGGREGATE_SUM, MEAN or ONLY_FIRST_REPLICA",
                    v->name, what);
}

/* -- Cross-replica context. dti_share divides the work between all replicas if that is faster. -- */

static ditto_status read_range(size_t first, size_t end, void *context)
{
    const struct dti_cross_access *a = context;
    const ditto_variable *v = a->v;
    size_t offset = first * ditto_dtype_bytes(v->spec.dtype);
    const void *component[DITTO_MAX_REPLICAS];
    if (v->aggregation == DITTO_AGGREGATE_ONLY_FIRST_REPLICA) {
        dti_copies_read(v, 0, first, end, a->dst + offset);
        return DITTO_OK;
    }
    for (uint32_t i = 0; i < v->num_replicas; i++)
        component[i] = (const char *)dti_variable_component(v, i) + offset;
    return dti_reduce_local(v->spec.dtype, v->aggregation == DITTO_AGGREGATE_SUM ? DITTO_SUM : DITTO_MEAN,
                            dti_team_tree(v->team), component, end - first, a->dst + offset);
}

/* Combines the components of all hosts. */
static ditto_status combine_hosts(const ditto_variable *v, const struct dti_gathered *all, void *dst)
{
    const void **component = malloc(dti_team_all_replicas(v->team) * sizeof *component);
    if (component == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to aggregate \"%s\"", v->name);
    for (uint32_t n = 0; n < dti_team_all_replicas(v->team); all++)
        for (size_t at = 0; at < all->bytes; at += v->bytes)
            component[n++] = all->data + at;
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = dti_reduce_local(v->spec.dtype,
                                           v->aggregation == DITTO_AGGREGATE_SUM ? DITTO_SUM : DITTO_MEAN,
                                           dti_team_tree(v->team), component, v->count, dst);
    dti_fenv_leave(saved);
    free(component);
    return status;
}

/* Reads over several hosts: each gives its components to all, or the first one its first component. */
static ditto_status read_hosts(const ditto_variable *v, void *dst)
{
    bool first_only = v->aggregation == DITTO_AGGREGATE_ONLY_FIRST_REPLICA;
    uint32_t given = !first_only ? v->num_replicas : dti_team_first_replica(v->team) == 0 ? 1 : 0;
    struct dti_cross_request request = { "ditto_variable_read", v->name, v->stamp };
    const struct dti_gathered *all;
    if (v->count == 0)
        return dti_cross_gather(v->team, &request, NULL, 0, &all);
    char *own = malloc(given * v->bytes + 1);
    if (own == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to send the components of \"%s\"", v->name);
    for (uint32_t i = 0; i < given; i++)
        memcpy(own + i * v->bytes, dti_variable_component(v, i), v->bytes);
    ditto_status status = dti_cross_gather(v->team, &request, own, given * v->bytes, &all);
    free(own);
    DTI_TRY(status);
    if (!first_only)
        return combine_hosts(v, all, dst);
    memcpy(dst, all[0].data, v->bytes);
    return DITTO_OK;
}

static ditto_status read_cross(ditto_variable *v, void *dst)
{
    struct dti_cross_access across = { .v = v, .dst = dst };
    if (v->aggregation == DITTO_AGGREGATE_NONE)
        return refuse_without_aggregation(v, "a read");
    if (dti_cross_has_hosts(v->team))
        return read_hosts(v, dst);
    return dti_share(v->team, v->bytes * v->num_replicas, v->count, DTI_CACHE_LINE, read_range, &across);
}

static ditto_status write_range(size_t first, size_t end, void *context)
{
    const struct dti_cross_access *a = context;
    const ditto_variable *v = a->v;
    size_t offset = first * ditto_dtype_bytes(v->spec.dtype);
    /* Exactly one call has first == 0. It runs under the turn, so the counters have one writer. */
    if (first == 0)
        dti_all_changed(v);
    for (uint32_t i = 0; i < v->num_replicas; i++) {
        char *component = (char *)dti_variable_component(v, i) + offset;
        if (v->aggregation == DITTO_AGGREGATE_SUM)
            dti_spread_part(v->spec.dtype, a->value + offset, dti_team_first_replica(v->team) + i,
                            dti_team_all_replicas(v->team), component, end - first);
        else
            dti_rule_apply(a->rule, v->spec.dtype, component, component, a->value + offset, end - first);
    }
    return DITTO_OK;
}

static ditto_status write_cross(ditto_variable *v, enum dti_rule rule, const void *value)
{
    struct dti_cross_access across = { .v = v, .rule = rule, .value = value };
    if (v->aggregation == DITTO_AGGREGATE_NONE)
        return refuse_without_aggregation(v, "a write");
    if (v->aggregation == DITTO_AGGREGATE_SUM && rule != DTI_RULE_ASSIGN)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "\"%s\" aggregates by SUM, so only a plain assign is defined across replicas: assign the sum, or "
            "update it inside run",
            v->name);
    return dti_share(v->team, v->bytes * v->num_replicas, v->count, DTI_CACHE_LINE, write_range, &across);
}

const struct dti_variable_kind dti_sync_on_read_kind = { "sync-on-read", write_own, read_cross, write_cross };
