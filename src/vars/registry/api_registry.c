/* src/vars/registry/api_registry.c - the public functions of include/ditto/variable.h that list a strategy's
 * variables and the values that wait for them. */
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "vars/parameters/parameter.h"
#include "vars/registry/registry.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

ditto_status ditto_strategy_variables(ditto_strategy *strategy, ditto_variable **variables, size_t capacity,
                                      size_t *num_variables)
{
    struct dti_frame frame;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_not_null(num_variables, "num_variables"));
    if (capacity != 0)
        DTI_TRY(dti_not_null(variables, "variables"));
    struct dti_team *team = dti_team_of(strategy);
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    size_t count = 0;
    for (ditto_variable *v = dti_registry_first(team); v != NULL; v = v->next, count++)
        if (count < capacity)
            variables[count] = v;
    *num_variables = count;
    dti_cross_leave(team, &frame);
    return DITTO_OK;
}

/* Stores the variable of that name in *out, or NULL if there is none. Returns DITTO_ERR_INVALID if there are
 * two. */
static ditto_status find(const struct dti_team *team, const char *name, ditto_variable **out)
{
    *out = NULL;
    for (ditto_variable *v = dti_registry_first(team); v != NULL; v = v->next) {
        if (strcmp(v->name, name) != 0)
            continue;
        if (*out != NULL)
            return DTI_FAIL(DITTO_ERR_INVALID, "two variables are called \"%s\": give each its own name",
                            name);
        *out = v;
    }
    return DITTO_OK;
}

/* Handles the values of the list whose variables exist now. Checks that they fit, or writes them. */
static ditto_status restore_created(const struct dti_team *team, const struct dti_waiting_value *list,
                                    bool writes)
{
    for (; list != NULL; list = list->next) {
        ditto_variable *v;
        DTI_TRY(find(team, list->name, &v));
        if (v == NULL)
            continue;
        if (!writes)
            DTI_TRY(dti_waiting_value_check(list, v));
        else if (v->shard == NULL)
            DTI_TRY(v->kind->cross_write(v, DTI_RULE_ASSIGN, list->value));
        else
            DTI_TRY(dti_parameter_fill(v, list->value, list->versions, list->num_versions));
    }
    return DITTO_OK;
}

/* Restores the values of the list. Values that are kept leave the list. */
static ditto_status restore_list(struct dti_team *team, struct dti_waiting_value **list)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_PINNED));
    ditto_status status = restore_created(team, *list, false);
    if (status == DITTO_OK)
        status = restore_created(team, *list, true);
    while (status == DITTO_OK && *list != NULL) { /* nothing fails from here on */
        struct dti_waiting_value *waiting = *list;
        ditto_variable *v = NULL;
        if (find(team, waiting->name, &v) == DITTO_OK && v == NULL) {
            *list = waiting->next;
            dti_waiting_value_add(team, waiting);
        } else
            list = &waiting->next;
    }
    dti_cross_leave(team, &frame);
    return status;
}

/* Copies the versions of a value, if it has some. */
static ditto_status copy_versions(const struct dti_named_value *from, struct dti_waiting_value *to)
{
    if (from->num_versions == 0)
        return DITTO_OK;
    to->versions = malloc(from->num_versions * sizeof *to->versions);
    if (to->versions == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to keep the versions of \"%s\" until it is created",
                        from->name);
    memcpy(to->versions, from->versions, from->num_versions * sizeof *to->versions);
    to->num_versions = from->num_versions;
    return DITTO_OK;
}

ditto_status dti_restore_values(ditto_strategy *strategy, const struct dti_named_value *value, size_t count)
{
    struct dti_waiting_value *list = NULL, **end = &list;
    ditto_status status = DITTO_OK;
    for (size_t i = 0; i < count && status == DITTO_OK; i++) {
        status = dti_waiting_value_make(value[i].name, &value[i].value, end);
        if (status != DITTO_OK)
            break;
        status = copy_versions(&value[i], *end);
        end = &(*end)->next;
    }
    if (status == DITTO_OK)
        status = dti_cross_agree(dti_team_of(strategy), "the values of a checkpoint", DITTO_OK);
    if (status == DITTO_OK)
        status = restore_list(dti_team_of(strategy), &list);
    while (list != NULL) {
        struct dti_waiting_value *waiting = list;
        list = waiting->next;
        dti_waiting_value_free(waiting);
    }
    return status;
}

ditto_status ditto_strategy_held_values(ditto_strategy *strategy, char *buffer, size_t capacity,
                                        size_t *length, size_t *num_values)
{
    struct dti_frame frame;
    struct dti_text text = { buffer, capacity, 0 };
    size_t count = 0;
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    if (capacity > 0) {
        DTI_TRY(dti_not_null(buffer, "buffer"));
        buffer[0] = '\0';
    }
    struct dti_team *team = dti_team_of(strategy);
    DTI_TRY(dti_cross_enter(team, &frame, DTI_CALLER_KEEPS_AFFINITY));
    for (const struct dti_waiting_value *waiting = dti_waiting_value_first(team); waiting != NULL;
         waiting = waiting->next, count++)
        dti_text_add(&text, "%s\n", waiting->name);
    dti_cross_leave(team, &frame);
    if (length != NULL)
        *length = text.length;
    if (num_values != NULL)
        *num_values = count;
    return DITTO_OK;
}
