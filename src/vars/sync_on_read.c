/* src/vars/sync_on_read.c - ON_READ: each replica writes its own component; a read across replicas aggregates. */
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

static ditto_status write_own(struct dti_replica *self, ditto_variable *v, enum dti_rule rule, const void *value)
{
    void *own = dti_component(v, self->id);
    dti_rule_apply(rule, v->spec.dtype, own, own, value, v->count);
    return DITTO_OK;
}

static ditto_status refuse_none(const ditto_variable *v, const char *what)
{
    return DTI_FAIL(DITTO_ERR_INVALID,
                    "\"%s\" has no aggregation, so %s across replicas has no meaning: create it with "
                    "DITTO_AGGREGATE_SUM, MEAN or ONLY_FIRST_REPLICA",
                    v->name, what);
}

static ditto_status read_across(ditto_variable *v, void *dst)
{
    uint32_t n = v->team->n;
    if (v->aggregation == DITTO_AGGREGATE_NONE)
        return refuse_none(v, "a read");
    if (v->aggregation == DITTO_AGGREGATE_ONLY_FIRST_REPLICA) {
        memcpy(dst, dti_component(v, 0), v->bytes);
        return DITTO_OK;
    }
    const void **components = malloc(n * sizeof *components);
    if (components == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read \"%s\"", v->name);
    for (uint32_t i = 0; i < n; i++)
        components[i] = dti_component(v, i);
    ditto_op op = v->aggregation == DITTO_AGGREGATE_SUM ? DITTO_SUM : DITTO_MEAN;
    ditto_status status = dti_reduce_here(v->spec.dtype, op, components, n, v->count, dst);
    free(components);
    return status;
}

/* Replica i's part of `value`: floating value / n; integers in equal parts, the remainder one each to the first. */
static void part_of(const ditto_variable *v, const void *value, uint32_t i, void *part)
{
    uint32_t n = v->team->n;
    for (size_t k = 0; k < v->count; k++)
        switch (v->spec.dtype) {
        case DITTO_F32:
            ((float *)part)[k] = ((const float *)value)[k] / (float)n;
            break;
        case DITTO_F64:
            ((double *)part)[k] = ((const double *)value)[k] / n;
            break;
        case DITTO_I32: {
            int64_t whole = ((const int32_t *)value)[k], rest = whole % n;
            ((int32_t *)part)[k] = (int32_t)(whole / n + (rest > i ? 1 : -rest > i ? -1 : 0));
            break;
        }
        default: { /* DITTO_I64: creation has refused any other dtype with SUM */
            int64_t whole = ((const int64_t *)value)[k], rest = whole % n;
            ((int64_t *)part)[k] = whole / n + (rest > i ? 1 : -rest > i ? -1 : 0);
        }
        }
}

static ditto_status write_across(ditto_variable *v, enum dti_rule rule, const void *value)
{
    bool sum = v->aggregation == DITTO_AGGREGATE_SUM;
    if (v->aggregation == DITTO_AGGREGATE_NONE)
        return refuse_none(v, "a write");
    if (sum && rule != DTI_ASSIGN)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" aggregates by SUM: adding the same value to every component would count "
                        "it %u times; assign it, or add inside run",
                        v->name, v->team->n);
    for (uint32_t i = 0; i < v->team->n; i++)
        if (sum)
            part_of(v, value, i, dti_component(v, i));
        else
            dti_rule_apply(rule, v->spec.dtype, dti_component(v, i), dti_component(v, i), value, v->count);
    return DITTO_OK;
}

const struct dti_variable_kind dti_sync_on_read_kind = { write_own, read_across, write_across };
