/* src/vars/registry/registry.c - the lists of a strategy's variables, optimizers and waiting values; see
 * registry.h. */
#include "vars/registry/registry.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

struct dti_registry {
    struct dti_dependent dependent; /* must be the first member */
    struct dti_storage storage;
    ditto_variable *first, **end;
    struct ditto_optimizer *optimizers;
    uint64_t shards_assigned;
    struct dti_waiting_value *held, **held_end;
};

static void forget_held(struct dti_waiting_value *held)
{
    free(held->name);
    free(held->value);
    free(held);
}

static void release(struct dti_dependent *dependent)
{
    struct dti_registry *registry = (struct dti_registry *)dependent;
    while (registry->held != NULL) {
        struct dti_waiting_value *held = registry->held;
        registry->held = held->next;
        forget_held(held);
    }
    free(registry);
}

static const struct dti_dependent_kind kind = { .release = release };

ditto_status dti_vars_create(struct dti_team *team, const struct dti_storage *storage)
{
    struct dti_registry *registry = calloc(1, sizeof *registry);
    if (registry == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the strategy's list of variables");
    registry->dependent.kind = &kind;
    registry->storage = *storage;
    registry->dependent.freed_by = DTI_FREED_BY_TEAM;
    registry->end = &registry->first;
    registry->held_end = &registry->held;
    dti_dependent_add(team, &registry->dependent);
    dti_team_set_variables(team, registry);
    return DITTO_OK;
}

const struct dti_storage *dti_vars_storage(const struct dti_team *team)
{
    return &dti_team_variables(team)->storage;
}

void dti_registry_add(ditto_variable *v)
{
    struct dti_registry *registry = dti_team_variables(v->team);
    *registry->end = v;
    registry->end = &v->next;
}

void dti_registry_remove(ditto_variable *v)
{
    struct dti_registry *registry = dti_team_variables(v->team);
    ditto_variable **at = &registry->first;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    if (registry->end == &v->next)
        registry->end = at;
}

ditto_variable *dti_registry_first(const struct dti_team *team)
{
    return dti_team_variables(team)->first;
}

struct ditto_optimizer **dti_registry_optimizers(const struct dti_team *team)
{
    return &dti_team_variables(team)->optimizers;
}

uint64_t *dti_registry_shards_assigned(const struct dti_team *team)
{
    return &dti_team_variables(team)->shards_assigned;
}

/* -- Waiting values -- */

ditto_status dti_waiting_value_add(struct dti_team *team, const char *name, const ditto_tensor *value)
{
    size_t bytes = ditto_tensor_bytes(value);
    dti_waiting_value_drop(team, name); /* the new value replaces an earlier one */
    struct dti_waiting_value *held = calloc(1, sizeof *held);
    if (held != NULL) {
        held->name = strdup(name);
        held->value = malloc(bytes + 1);
        held->spec = *value;
        held->spec.data = NULL;
    }
    if (held == NULL || held->name == NULL || held->value == NULL) {
        if (held != NULL)
            forget_held(held);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to keep %zu bytes for \"%s\" until it is created",
                        bytes, name);
    }
    if (bytes != 0)
        memcpy(held->value, value->data, bytes);
    *dti_team_variables(team)->held_end = held;
    dti_team_variables(team)->held_end = &held->next;
    return DITTO_OK;
}

const struct dti_waiting_value *dti_waiting_value_first(const struct dti_team *team)
{
    return dti_team_variables(team)->held;
}

const struct dti_waiting_value *dti_waiting_value_find(const struct dti_team *team, const char *name)
{
    const struct dti_waiting_value *held = dti_waiting_value_first(team);
    while (held != NULL && strcmp(held->name, name) != 0)
        held = held->next;
    return held;
}

void dti_waiting_value_drop(struct dti_team *team, const char *name)
{
    struct dti_registry *registry = dti_team_variables(team);
    struct dti_waiting_value **at = &registry->held;
    while (*at != NULL) {
        struct dti_waiting_value *held = *at;
        if (name != NULL && strcmp(held->name, name) != 0) {
            at = &held->next;
            continue;
        }
        *at = held->next;
        forget_held(held);
    }
    registry->held_end = at;
}

ditto_status dti_waiting_value_check(const struct dti_waiting_value *held, const ditto_variable *v)
{
    return dti_spec_check(&v->spec, v->name, &held->spec, "the value that was restored for it");
}
