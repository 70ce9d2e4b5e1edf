/* src/values/inspect.c - reading a value: its parts, its members, and the values that can be taken from
 * it. */
#include "base/types/convert.h"
#include "replicas/team/turn.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

/* A message lists the names of members until they have this many bytes, and only counts the rest. */
#define NAMES_BYTES 180

/* -- parts -- */

static bool first_part(const ditto_value *v, ditto_tensor *out)
{
    for (uint32_t i = 0; i < dti_base_of(v->strategy)->num_replicas; i++)
        if (v->part[i].rank != DTI_NO_PART) {
            *out = v->part[i];
            return true;
        }
    return false;
}

bool dti_value_part(const ditto_value *v, uint32_t replica, ditto_tensor *out)
{
    switch (v->kind) {
    case DITTO_VALUE_PLAIN:
        *out = v->plain;
        /* A split may have given the replica another copy since the value was taken. */
        if (v->on_variables)
            out->data = dti_variable_component(v->container->variable, v->replica);
        return true;
    case DITTO_VALUE_PER_REPLICA:
        *out = v->part[replica];
        return true;
    case DITTO_VALUE_MIRRORED:
        if (v->part[replica].rank == DTI_NO_PART)
            return first_part(v, out);
        *out = v->part[replica];
        return true;
    case DITTO_VALUE_VARIABLE:
        *out = v->variable->spec;
        out->data = dti_variable_component(v->variable, replica);
        return true;
    default:
        return false;
    }
}

ditto_status dti_value_parts_open(const ditto_value *v, struct dti_value_parts *parts)
{
    uint32_t n = dti_base_of(v->strategy)->num_replicas;
    *parts = (struct dti_value_parts){ .part = v->part };
    if (v->kind == DITTO_VALUE_PER_REPLICA)
        return DITTO_OK;
    parts->part = parts->allocated = malloc(n * sizeof *parts->allocated);
    if (parts->allocated == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to read %u replicas' tensors", n);
    ditto_status status = DITTO_OK;
    for (uint32_t i = 0; i < n && status == DITTO_OK; i++)
        status = dti_inspect_component(v, i, &parts->allocated[i]);
    if (status != DITTO_OK)
        dti_value_parts_close(parts);
    return status;
}

void dti_value_parts_close(struct dti_value_parts *parts)
{
    free(parts->allocated);
    parts->allocated = NULL;
}

ditto_status dti_inspect_component(const ditto_value *v, uint32_t replica, ditto_tensor *out)
{
    if (dti_value_part(v, replica, out))
        return DITTO_OK;
    if (v->kind == DITTO_VALUE_MIRRORED)
        return DTI_FAIL(DITTO_ERR_RANGE, "the value is on replicas of another host, and this one has none of "
                                         "its components");
    return DTI_FAIL(DITTO_ERR_INVALID, "%s is not one tensor: %s", dti_value_kind_text(v->kind),
                    v->kind == DITTO_VALUE_NEST ? "choose a member (ditto_value_member)"
                                                : "use ditto_value_slices");
}

ditto_status dti_inspect_tensor(const ditto_value *v, ditto_tensor *out)
{
    if (v->kind == DITTO_VALUE_PLAIN || v->kind == DITTO_VALUE_MIRRORED)
        return dti_inspect_component(v, 0, out);
    return DTI_FAIL(DITTO_ERR_INVALID, "%s is not one tensor: %s", dti_value_kind_text(v->kind),
                    v->kind == DITTO_VALUE_NEST       ? "choose a member (ditto_value_member)"
                    : v->kind == DITTO_VALUE_VARIABLE ? "read the variable (ditto_variable_read)"
                    : v->kind == DITTO_VALUE_SLICES
                        ? "reduce it into a dense array (ditto_strategy_reduce_to)"
                        : "choose a replica (ditto_value_select, ditto_value_component) or reduce it "
                          "(ditto_strategy_reduce)");
}

ditto_status dti_inspect_number(const ditto_value *v, double *out)
{
    struct dti_team *team = dti_team_of(v->strategy);
    ditto_tensor tensor;
    /* A thread that may not make cross calls is in a run, or a run may wait for it. */
    bool waits = v->on_variables && dti_context_may_cross(team) && !dti_team_forked(team);
    bool taken = waits && dti_team_take_turn(team);
    ditto_status status = dti_inspect_tensor(v, &tensor);
    if (status == DITTO_OK)
        status = dti_tensor_number(&tensor, out);
    dti_team_give_turn(team, taken);
    return status;
}

ditto_status dti_inspect_copy_component(const ditto_value *value, const ditto_variable *v, void **copy)
{
    ditto_tensor component;
    *copy = NULL;
    if (value->kind != DITTO_VALUE_PLAIN || !value->on_variables || value->container->variable != v)
        return DITTO_OK;
    DTI_TRY(dti_inspect_component(value, 0, &component));
    *copy = malloc(v->bytes + 1);
    if (*copy == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a copy of a component of \"%s\", %zu bytes",
                        v->name, v->bytes);
    memcpy(*copy, component.data, v->bytes);
    return DITTO_OK;
}

void dti_inspect_spec(const ditto_value *v, ditto_tensor *out)
{
    ditto_tensor part;
    bool slices = v->kind == DITTO_VALUE_SLICES;
    *out = (ditto_tensor){ .dtype = (ditto_dtype)0 };
    if (slices)
        *out = v->part[0];
    else if (!dti_value_part(v, 0, out))
        return;
    uint32_t n = dti_base_of(v->strategy)->num_replicas;
    for (uint32_t i = 1; i < n && v->kind == DITTO_VALUE_PER_REPLICA && dti_value_part(v, i, &part); i++)
        for (uint32_t d = 0; d < out->rank; d++)
            if (part.shape[d] != out->shape[d])
                out->shape[d] = DITTO_ANY_SIZE;
    if (slices)
        out->shape[0] = DITTO_ANY_SIZE;
    out->data = NULL;
}

/* -- members -- */

static const ditto_value *find_member(const ditto_value *v, const char *name, size_t length)
{
    for (uint32_t i = 0; v->kind == DITTO_VALUE_NEST && i < v->members; i++)
        if (strncmp(v->member[i].name, name, length) == 0 && v->member[i].name[length] == '\0')
            return v->member[i].value;
    return NULL;
}

const ditto_value *dti_value_find(const ditto_value *v, const char *path)
{
    while (v != NULL && path != NULL && *path != '\0') {
        size_t length = strcspn(path, "/");
        v = length <= DITTO_MAX_RESULT_NAME_BYTES ? find_member(v, path, length) : NULL;
        path += length;
        path += *path == '/';
    }
    return v;
}

ditto_status dti_fail_no_member(const ditto_value *v, const char *path, const char *what)
{
    char names[256] = "";
    struct dti_text text = { names, sizeof names, 0 };
    uint32_t named = 0;
    for (; named < v->members && text.length < NAMES_BYTES; named++)
        dti_text_add(&text, "%s\"%s\"", named == 0 ? "" : ", ", v->member[named].name);
    if (named < v->members)
        dti_text_add(&text, " and %u more", v->members - named);
    return DTI_FAIL(DITTO_ERR_NOT_FOUND, "no %s \"%s\": it is %s%s%s", what, path,
                    dti_value_kind_text(v->kind), v->members != 0 ? " of " : "", names);
}

/* -- the value of one replica -- */

static ditto_status select_member(const ditto_value *v, uint32_t replica, ditto_value *nest)
{
    for (uint32_t i = 0; i < v->members; i++) {
        ditto_value *member;
        DTI_TRY(dti_inspect_select(v->member[i].value, replica, &member));
        DTI_TRY(dti_nest_add(nest, v->member[i].name, member));
    }
    return DITTO_OK;
}

ditto_status dti_inspect_select(const ditto_value *v, uint32_t replica, ditto_value **out)
{
    ditto_tensor part;
    if (v->kind == DITTO_VALUE_VARIABLE || v->kind == DITTO_VALUE_PLAIN) {
        *out = dti_value_keep(v);
        return DITTO_OK;
    }
    if (v->kind == DITTO_VALUE_NEST) {
        ditto_value *nest;
        DTI_TRY(dti_value_make(v->strategy, DITTO_VALUE_NEST, &nest));
        dti_value_take_from(nest, v, replica);
        return dti_value_finish(nest, select_member(v, replica, nest), out);
    }
    if (v->kind == DITTO_VALUE_SLICES) {
        DTI_TRY(dti_value_make(v->strategy, DITTO_VALUE_SLICES, out));
        /* A plain value cannot be slices. Therefore all replicas get the slices of the selected one. */
        for (uint32_t i = 0; i < dti_base_of(v->strategy)->num_replicas; i++) {
            (*out)->part[i] = v->part[replica];
            (*out)->index[i] = v->index[replica];
        }
        (*out)->dense_rows = v->dense_rows;
        (*out)->same_slices = true;
        dti_value_take_from(*out, v, replica);
        return DITTO_OK;
    }
    DTI_TRY(dti_inspect_component(v, replica, &part));
    return dti_inspect_taken(v, replica, &part, out);
}

ditto_status dti_inspect_taken(const ditto_value *container, uint32_t replica, const ditto_tensor *part,
                               ditto_value **out)
{
    DTI_TRY(dti_value_make(container->strategy, DITTO_VALUE_PLAIN, out));
    (*out)->plain = *part;
    dti_value_take_from(*out, container, replica);
    return DITTO_OK;
}

/* -- the values of all replicas -- */

ditto_status dti_inspect_local_results(const ditto_value *v, ditto_value **out, uint32_t *count)
{
    uint32_t num_replicas = dti_base_of(v->strategy)->num_replicas,
             n = v->kind == DITTO_VALUE_PLAIN ? 1 : num_replicas;
    for (uint32_t i = 0; i < n; i++) {
        ditto_tensor part;
        ditto_status status;
        if (v->kind != DITTO_VALUE_VARIABLE)
            status = dti_inspect_select(v, i, &out[i]);
        else if ((status = dti_inspect_component(v, i, &part)) == DITTO_OK) /* and not the variable itself */
            status = dti_inspect_taken(v, i, &part, &out[i]);
        if (status == DITTO_OK)
            continue;
        out[i] = NULL;
        while (i-- > 0) {
            dti_value_drop(out[i]);
            out[i] = NULL;
        }
        return status;
    }
    for (uint32_t i = n; i < num_replicas; i++)
        out[i] = NULL;
    *count = n;
    return DITTO_OK;
}
