/* src/coordinator/copied.c - copies values, and makes values of copies; see copied.h. */
#include "coordinator/copied.h"
#include "base/types/types.h"
#include "values/values.h"

#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t bytes)
{
    return (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
}

/* Allocates a copy with room for `members` members, or for the elements of a tensor. */
static struct dti_copied *allocate(uint32_t members, size_t bytes)
{
    size_t head = round_up(sizeof(struct dti_copied));
    struct dti_copied *c = aligned_alloc(DTI_CACHE_LINE,
                                         head + round_up(members * sizeof(struct dti_copied_member) + bytes));
    if (c == NULL)
        return NULL;
    memset(c, 0, sizeof *c);
    atomic_init(&c->references, 1);
    c->member = (struct dti_copied_member *)(void *)((char *)c + head);
    return c;
}

static ditto_status fail_memory(void)
{
    return DTI_FAIL(DITTO_ERR_NO_MEMORY,
                    "no memory for a copy of a scheduled function's arguments or results");
}

ditto_status dti_copied_tensor(const ditto_tensor *tensor, struct dti_copied **out)
{
    size_t bytes = ditto_tensor_bytes(tensor);
    struct dti_copied *c = allocate(0, bytes);
    if (c == NULL)
        return fail_memory();
    c->tensor = *tensor;
    c->tensor.data = c->member; /* a tensor has no members */
    c->tensor.device = 0;
    if (bytes != 0)
        memcpy(c->tensor.data, tensor->data, bytes);
    *out = c;
    return DITTO_OK;
}

/* Ends the making of a copy. */
static ditto_status finish(struct dti_copied *c, ditto_status status, struct dti_copied **out)
{
    if (status == DITTO_OK)
        *out = c;
    else
        dti_copied_drop(c);
    return status;
}

static ditto_status copy_nest(const ditto_value *value, struct dti_copied **out)
{
    ditto_status status = DITTO_OK;
    struct dti_copied *c = allocate(value->members, 0);
    if (c == NULL)
        return fail_memory();
    for (uint32_t i = 0; i < value->members && status == DITTO_OK; i++) {
        memcpy(c->member[i].name, value->member[i].name, sizeof c->member[i].name);
        status = dti_copied_make(value->member[i].value, &c->member[i].value);
        c->members += status == DITTO_OK;
    }
    return finish(c, status, out);
}

/* Copies the components of a per-replica value, as a nest with a member for each replica. */
static ditto_status copy_components(const ditto_value *value, uint32_t replicas, struct dti_copied **out)
{
    ditto_status status = DITTO_OK;
    struct dti_copied *c = allocate(replicas, 0);
    if (c == NULL)
        return fail_memory();
    for (uint32_t i = 0; i < replicas && status == DITTO_OK; i++) {
        dti_number_name(c->member[i].name, i);
        status = dti_copied_tensor(&value->part[i], &c->member[i].value);
        c->members += status == DITTO_OK;
    }
    return finish(c, status, out);
}

ditto_status dti_copied_make(const ditto_value *value, struct dti_copied **out)
{
    ditto_tensor tensor;
    uint32_t replicas = dti_base_of(value->strategy)->num_replicas;
    if (value->kind == DITTO_VALUE_NEST)
        return copy_nest(value, out);
    if (value->kind == DITTO_VALUE_PER_REPLICA && replicas > 1)
        return copy_components(value, replicas, out);
    if (value->kind == DITTO_VALUE_SLICES || value->kind == DITTO_VALUE_VARIABLE ||
        !dti_value_part(value, 0, &tensor))
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "%s cannot be an argument or a result of a scheduled function, which may be executed in "
            "another place: give its tensors",
            dti_value_kind_text(value->kind));
    return dti_copied_tensor(&tensor, out);
}

static ditto_status make_nest(ditto_strategy *strategy, const struct dti_copied *copied, bool views,
                              ditto_value *nest)
{
    for (uint32_t i = 0; i < copied->members; i++) {
        ditto_value *member;
        DTI_TRY(dti_copied_value(strategy, copied->member[i].value, views, &member));
        DTI_TRY(dti_nest_add(nest, copied->member[i].name, member));
    }
    return DITTO_OK;
}

ditto_status dti_copied_value(ditto_strategy *strategy, const struct dti_copied *copied, bool views,
                              ditto_value **out)
{
    ditto_value *value;
    bool is_nest = copied->tensor.dtype == 0;
    DTI_TRY(dti_value_make(strategy, is_nest ? DITTO_VALUE_NEST : DITTO_VALUE_PLAIN, &value));
    if (is_nest)
        return dti_value_finish(value, make_nest(strategy, copied, views, value), out);
    value->plain = copied->tensor;
    if (views) {
        *out = value;
        return DITTO_OK;
    }
    ditto_status status = dti_value_allocate(value);
    if (status == DITTO_OK && ditto_tensor_bytes(&copied->tensor) != 0)
        memcpy(value->plain.data, copied->tensor.data, ditto_tensor_bytes(&copied->tensor));
    return dti_value_finish(value, status, out);
}

void dti_copied_keep(struct dti_copied *copied)
{
    /* relaxed: the caller has a reference. */
    if (copied != NULL)
        atomic_fetch_add_explicit(&copied->references, 1, memory_order_relaxed);
}

void dti_copied_drop(struct dti_copied *copied)
{
    /* acq_rel: pairs with itself, so that all uses through other references happen before the copy is
     * freed. */
    if (copied == NULL || atomic_fetch_sub_explicit(&copied->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < copied->members; i++)
        dti_copied_drop(copied->member[i].value);
    free(copied);
}
