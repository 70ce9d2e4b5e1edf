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
    struct dti_waiting_value *waiting, **waiting_end;
};

void dti_waiting_value_free(struct dti_waiting_value *waiting)
{
    free(waiting->name);
    free(waiting->value);
    free(waiting->versions);
    free(waiting);
}

static void release(struct dti_dependent *dependent)
{
    struct dti_registry *registry = (struct dti_registry *)dependent;
    while (registry->waiting != NULL) {
        struct dti_waiting_value *waiting = registry->waiting;
        registry->waiting = waiting->next;
        dti_waiting_value_free(waiting);
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
    registry->waiting_end = &registry->waiting;
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

ditto_status dti_waiting_value_make(const char *name, const ditto_tensor *value,
                                    struct dti_waiting_value **out)
{
    size_t bytes = ditto_tensor_bytes(value);
    struct dti_waiting_value *waiting = calloc(1, sizeof *waiting);
    if (waiting != NULL) {
        waiting->name = strdup(name);
        waiting->value = malloc(bytes + 1);
        waiting->spec = *value;
        waiting->spec.data = NULL;
    }
    if (waiting == NULL || waiting->name == NULL || waiting->value == NULL) {
        if (waiting != NULL)
            dti_waiting_value_free(waiting);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to keep %zu bytes for \"%s\" until it is created",
                        bytes, name);
    }
    if (bytes != 0)
        memcpy(waiting->value, value->data, bytes);
    *out = waiting;
    return DITTO_OK;
}

void dti_waiting_value_add(struct dti_team *team, struct dti_waiting_value *waiting)
{
    dti_waiting_value_drop(team, waiting->name); /* the new value replaces an earlier one */
    waiting->next = NULL;
    *dti_team_variables(team)->waiting_end = waiting;
    dti_team_variables(team)->waiting_end = &waiting->next;
}

const struct dti_waiting_value *dti_waiting_value_first(const struct dti_team *team)
{
    return dti_team_variables(team)->waiting;
}

const struct dti_waiting_value *dti_waiting_value_find(const struct dti_team *team, const char *name)
{
    const struct dti_waiting_value *waiting = dti_waiting_value_first(team);
    while (waiting != NULL && strcmp(waiting->name, name) != 0)
        waiting = waiting->next;
    return waiting;
}

void dti_waiting_value_drop(struct dti_team *team, const char *name)
{
    struct dti_registry *registry = dti_team_variables(team);
    struct dti_waiting_value **at = &registry->waiting;
    while (*at != NULL) {
        struct dti_waiting_value *waiting = *at;
        if (strcmp(waiting->name, name) != 0) {
            at = &waiting->next;
            continue;
        }
        *at = waiting->next;
        dti_waiting_value_free(waiting);
    }
    registry->waiting_end = at;
}

ditto_status dti_waiting_value_check(const struct dti_waiting_value *waiting, const ditto_variable *v)
{
    return dti_spec_check(&v->spec, v->name, &waiting->spec, "the value that was restored for it");
}
