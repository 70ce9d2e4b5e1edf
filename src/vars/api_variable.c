/* src/vars/api_variable.c - include/ditto/variable.h: check, then call. */
#include "base/base.h"
#include "vars/vars.h"

#include <string.h>

/* -- creation -- */

static ditto_status check_enums(const ditto_variable_options *o)
{
    bool aggregation_known =
        o->aggregation == DITTO_AGGREGATE_DEFAULT ||
        (o->aggregation >= DITTO_AGGREGATE_NONE && o->aggregation <= DITTO_AGGREGATE_ONLY_FIRST_REPLICA);
    if ((unsigned)o->synchronization > DITTO_SYNCHRONIZATION_NONE || !aggregation_known ||
        (unsigned)o->copies > DITTO_COPIES_PER_REPLICA || (unsigned)o->trainable > DITTO_TRAINABLE_OFF)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "synchronization %d, aggregation %d, copies %d, trainable %d: one of them is not a "
                        "value of its enum (an op is no aggregation)",
                        (int)o->synchronization, (int)o->aggregation, (int)o->copies, (int)o->trainable);
    if (o->synchronization == DITTO_SYNCHRONIZATION_NONE)
        return DTI_FAIL(DITTO_ERR_INVALID, "synchronization NONE: a variable is synchronized on write or on read");
    return DITTO_OK;
}

static ditto_status check_spec(const ditto_tensor *t, const ditto_variable_options *o)
{
    size_t bytes;
    DTI_TRY(dti_tensor_check(t, &bytes));
    if (t->data != NULL && o->initialize != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "both initial->data and options->initialize are given: a variable has one initial "
                        "value");
    if (o->aggregation == DITTO_AGGREGATE_MEAN && !dti_dtype_is_float(t->dtype))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "MEAN of a variable of %s: its result is no integer; use a floating dtype or SUM",
                        ditto_dtype_name(t->dtype));
    if (o->aggregation == DITTO_AGGREGATE_SUM || o->aggregation == DITTO_AGGREGATE_MEAN)
        return dti_rule_check(DTI_ADD, t->dtype);
    return DITTO_OK;
}

ditto_status ditto_variable_create(ditto_strategy *strategy, const ditto_tensor *initial,
                                   const ditto_variable_options *options, ditto_variable **out)
{
    ditto_variable_options known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(strategy, "strategy"));
    DTI_TRY(dti_not_null(initial, "initial"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_variable_options"));
    DTI_TRY(check_enums(&known));
    DTI_TRY(check_spec(initial, &known));
    DTI_TRY(dti_context_check_cross(dti_team_of(strategy)));
    const struct dti_strategy_base *base = dti_base_of(strategy);
    if (base->central && known.synchronization == DITTO_ON_READ)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "a sync-on-read variable in central storage: it keeps one component, "
                                               "and each replica would need its own");
    return dti_variable_create(base, initial, &known, out);
}

ditto_status ditto_variable_destroy(ditto_variable *variable)
{
    DTI_ENTER();
    if (variable == NULL)
        return DITTO_OK;
    DTI_TRY(dti_context_check_outside("variable"));
    dti_variable_destroy(variable);
    return DITTO_OK;
}

const char *ditto_variable_name(const ditto_variable *variable)
{
    return variable != NULL ? variable->name : "";
}

ditto_status ditto_variable_component_name(const ditto_variable *v, uint32_t replica, char *buffer, size_t size,
                                           size_t *length)
{
    struct dti_text text = { buffer, size, 0 };
    DTI_ENTER();
    DTI_TRY(dti_variable_check_alive(v));
    if (size > 0)
        DTI_TRY(dti_not_null(buffer, "buffer"));
    if (replica >= v->team->n)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u: the strategy has %u", replica, v->team->n);
    if (replica == 0)
        dti_text_add(&text, "%s", v->name);
    else
        dti_text_add(&text, "%s/replica_%u", v->name, replica);
    if (length != NULL)
        *length = text.length;
    return DITTO_OK;
}

int ditto_variable_is_trainable(const ditto_variable *variable)
{
    return variable != NULL && variable->trainable;
}

ditto_tensor ditto_variable_spec(const ditto_variable *variable)
{
    return variable != NULL ? variable->spec : (ditto_tensor){ 0 };
}

/* -- cross -- */

ditto_status dti_variable_check_alive(const ditto_variable *v)
{
    DTI_TRY(dti_not_null(v, "variable"));
    if (v->team == NULL)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "the strategy of \"%s\" has been destroyed, and its value with it", v->name);
    return DITTO_OK;
}

static ditto_status check_size(const ditto_variable *v, const void *buffer, size_t bytes, const char *name)
{
    if (bytes != v->bytes)
        return DTI_FAIL(DITTO_ERR_SHAPE, "\"%s\" has %zu bytes, but %s has %zu", v->name, v->bytes, name, bytes);
    return dti_buffer_check(buffer, bytes, v->spec.dtype, name);
}

/* Inside the function of an update of this variable: the copy that it works on; else NULL. */
static void *copy_at_hand(const ditto_variable *v)
{
    const struct dti_frame *top = dti_frame_top;
    bool here = top != NULL && top->kind == DTI_CONTEXT_UPDATE && top->object == v;
    return here ? dti_component(v, top->replica->id) : NULL;
}

ditto_status ditto_variable_read(ditto_variable *v, void *dst, size_t bytes)
{
    struct dti_frame frame;
    DTI_ENTER();
    DTI_TRY(dti_variable_check_alive(v));
    DTI_TRY(check_size(v, dst, bytes, "dst"));
    const void *copy = copy_at_hand(v);
    if (copy != NULL) {
        memcpy(dst, copy, bytes);
        return DITTO_OK;
    }
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_WHERE_IT_IS));
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = v->kind->cross_read(v, dst);
    dti_fenv_leave(saved);
    dti_cross_leave(v->team, &frame);
    return status;
}

static ditto_status cross_write(ditto_variable *v, enum dti_rule rule, const void *value, size_t bytes)
{
    struct dti_frame frame;
    DTI_TRY(dti_variable_check_alive(v));
    DTI_TRY(check_size(v, value, bytes, "value"));
    DTI_TRY(dti_rule_check(rule, v->spec.dtype));
    void *copy = copy_at_hand(v);
    if (copy != NULL) {
        dti_rule_apply(rule, v->spec.dtype, copy, copy, value, v->count);
        return DITTO_OK;
    }
    DTI_TRY(dti_cross_enter(v->team, &frame, DTI_CALLER_WHERE_IT_IS));
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = v->kind->cross_write(v, rule, value);
    dti_fenv_leave(saved);
    dti_cross_leave(v->team, &frame);
    return status;
}

ditto_status ditto_variable_assign(ditto_variable *variable, const void *value, size_t bytes)
{
    DTI_ENTER();
    return cross_write(variable, DTI_ASSIGN, value, bytes);
}

ditto_status ditto_variable_assign_add(ditto_variable *variable, const void *value, size_t bytes)
{
    DTI_ENTER();
    return cross_write(variable, DTI_ADD, value, bytes);
}

ditto_status ditto_variable_assign_sub(ditto_variable *variable, const void *value, size_t bytes)
{
    DTI_ENTER();
    return cross_write(variable, DTI_SUB, value, bytes);
}

ditto_status ditto_variable_component(ditto_variable *v, uint32_t replica, const void **data)
{
    DTI_ENTER();
    DTI_TRY(dti_variable_check_alive(v));
    DTI_TRY(dti_not_null(data, "data"));
    DTI_TRY(dti_context_check_cross(v->team));
    if (replica >= v->team->n)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u: the strategy has %u", replica, v->team->n);
    *data = dti_component(v, replica);
    return DITTO_OK;
}

/* -- replica -- */

static ditto_status check_own(const struct dti_replica *r, const ditto_variable *v)
{
    if (r == NULL)
        return dti_error_get()->status;
    DTI_TRY(dti_variable_check_alive(v));
    if (v->team->strategy != r->team->strategy)
        return DTI_FAIL(DITTO_ERR_CONTEXT, "mixing strategies: \"%s\" belongs to another strategy than replica %u",
                        v->name, r->id);
    return DITTO_OK;
}

ditto_status ditto_read(ditto_replica *self, const ditto_variable *variable, const void **data)
{
    DTI_ENTER();
    const struct dti_replica *r = dti_self(self);
    DTI_TRY(check_own(r, variable));
    DTI_TRY(dti_not_null(data, "data"));
    *data = dti_component(variable, r->id);
    return DITTO_OK;
}

static ditto_status replica_write(ditto_replica *self, ditto_variable *v, enum dti_rule rule, const void *value)
{
    struct dti_replica *r = dti_self(self);
    DTI_TRY(check_own(r, v));
    DTI_TRY(dti_buffer_check(value, v->bytes, v->spec.dtype, "value"));
    DTI_TRY(dti_rule_check(rule, v->spec.dtype));
    return v->kind->write(r, v, rule, value);
}

ditto_status ditto_assign(ditto_replica *self, ditto_variable *variable, const void *value)
{
    DTI_ENTER();
    return replica_write(self, variable, DTI_ASSIGN, value);
}

ditto_status ditto_assign_add(ditto_replica *self, ditto_variable *variable, const void *value)
{
    DTI_ENTER();
    return replica_write(self, variable, DTI_ADD, value);
}

ditto_status ditto_assign_sub(ditto_replica *self, ditto_variable *variable, const void *value)
{
    DTI_ENTER();
    return replica_write(self, variable, DTI_SUB, value);
}
