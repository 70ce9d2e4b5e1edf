/* src/values/assign_value.c - writes a distributed value to a variable, see values.h. */
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdlib.h>
#include <string.h>

/* The arguments of copy_range. Both variables have a copy for each replica, and the component of each replica
 * is written to the component of the same replica. */
struct assign_copy {
    ditto_variable *to;
    const ditto_variable *from;
    enum dti_rule rule;
};

static ditto_status copy_range(size_t first, size_t end, void *context)
{
    const struct assign_copy *c = context;
    size_t offset = first * ditto_dtype_bytes(c->to->spec.dtype);
    if (first == 0)
        dti_all_changed(c->to);
    for (uint32_t i = 0; i < c->to->num_replicas; i++) {
        char *to = (char *)dti_variable_component(c->to, i) + offset;
        const char *from = (const char *)dti_variable_component(c->from, i) + offset;
        dti_rule_apply(c->rule, c->to->spec.dtype, to, to, from, end - first);
    }
    return DITTO_OK;
}

/* Reads `from` as one value and writes this value to the variable, as ditto_variable_read and
 * ditto_variable_assign do. It uses a temporary buffer, because the two variables may be cut into different
 * pieces. */
static ditto_status copy_whole(ditto_variable *v, enum dti_rule rule, ditto_variable *from)
{
    void *value = malloc(v->bytes + 1);
    if (value == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the value of \"%s\"", from->name);
    ditto_status status = from->kind->cross_read(from, value);
    if (status == DITTO_OK && dti_variable_may_differ(from) && dti_cross_has_hosts(v->team)) {
        /* The component that counts is that of the first replica of the first host. */
        struct dti_cross_request request = { .name = dti_this_thread()->function, .object = v->name };
        const struct dti_gathered *all;
        status = dti_cross_gather(v->team, &request, value, dti_cross_host(v->team) == 0 ? v->bytes : 0,
                                  &all);
        if (status == DITTO_OK && v->bytes != 0)
            memcpy(value, all[0].data, v->bytes);
    }
    if (status == DITTO_OK)
        status = v->kind->cross_write(v, rule, value);
    free(value);
    return status;
}

/* Writes the component of each replica to the component of the same replica. If the components of `from` may
 * differ, those of the variable may differ afterwards, so its copies are split first. */
static ditto_status copy_components(ditto_variable *v, enum dti_rule rule, const ditto_variable *from)
{
    struct assign_copy copy = { v, from, rule };
    if (dti_variable_may_differ(from))
        DTI_TRY(dti_variable_split(v));
    DTI_TRY(dti_share(v->team, v->bytes * v->num_replicas, v->count, DTI_CACHE_LINE, copy_range, &copy));
    if (rule == DTI_RULE_ASSIGN && !dti_variable_may_differ(from))
        dti_variable_set_equal(v);
    return DITTO_OK;
}

static ditto_status assign_variable(ditto_variable *v, enum dti_rule rule, ditto_variable *from)
{
    struct dti_frame frame;
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_variable_compare(v, rule, &from->stamp, sizeof from->stamp);
    /* If it can, each replica's component gets the value of the same replica. Otherwise all components get
     * one value. */
    bool each = v->mirrored && from->mirrored && from->own_copies &&
                (v->own_copies || (dti_variable_may_differ(from) && dti_variable_is_splittable(v)));
    if (status == DITTO_OK)
        status = each ? copy_components(v, rule, from) : copy_whole(v, rule, from);
    dti_cross_leave(v->team, &frame);
    return status;
}

/* Writes a value that was taken from a variable. If it was taken from `v`, the write changes the value while
 * other copies still need it, so it is copied first. */
static ditto_status assign_component(ditto_variable *v, enum dti_rule rule, const ditto_value *value)
{
    struct dti_frame frame;
    ditto_tensor component;
    void *copy;
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_PINNED));
    ditto_status status = dti_inspect_copy_component(value, v, &copy);
    if (status == DITTO_OK)
        status = dti_inspect_component(value, 0, &component);
    if (status == DITTO_OK)
        status = dti_variable_compare(v, rule, component.data, v->bytes);
    if (status == DITTO_OK)
        status = v->kind->cross_write(v, rule, copy != NULL ? copy : component.data);
    free(copy);
    dti_cross_leave(v->team, &frame);
    return status;
}

ditto_status dti_assign_value(ditto_variable *v, enum dti_rule rule, const ditto_value *value)
{
    ditto_tensor tensor;
    if (value->kind == DITTO_VALUE_VARIABLE) {
        DTI_TRY(dti_spec_check(&v->spec, v->name, &value->variable->spec, "the value"));
        return assign_variable(v, rule, value->variable);
    }
    if (value->kind != DITTO_VALUE_PLAIN && value->kind != DITTO_VALUE_MIRRORED)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "%s written to \"%s\", which takes one value: reduce it first, or assign inside run",
                        dti_value_kind_text(value->kind), v->name);
    DTI_TRY(dti_inspect_component(value, 0, &tensor));
    DTI_TRY(dti_spec_check(&v->spec, v->name, &tensor, "the value"));
    if (value->on_variables)
        return assign_component(v, rule, value);
    DTI_TRY(dti_variable_compare(v, rule, tensor.data, v->bytes));
    return v->kind->cross_write(v, rule, tensor.data);
}
