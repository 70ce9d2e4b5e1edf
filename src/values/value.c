/* src/values/value.c - creates and releases values, checks them, and detaches them from a strategy that
 * is destroyed. */
#include "replicas/team/turn.h"
#include "values/values.h"
#include "vars/vars.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void release(ditto_value *v)
{
    free(v->memory);
    free(v->part);
    free(v->component);
    free(v->index);
    free(v->member);
    free(v);
}

static ditto_value *allocate(bool wide, uint32_t n)
{
    ditto_value *v = calloc(1, sizeof *v);
    if (v == NULL || !wide)
        return v;
    v->wide = true;
    v->part = calloc(n, sizeof *v->part);
    v->component = calloc(n, sizeof(void *));
    v->index = calloc(n, sizeof *v->index);
    if (v->part != NULL && v->component != NULL && v->index != NULL)
        return v;
    release(v);
    return NULL;
}

ditto_status dti_value_make(ditto_strategy *strategy, ditto_value_kind kind, ditto_value **out)
{
    struct dti_values *values = dti_base_of(strategy)->values;
    bool wide = kind == DITTO_VALUE_PER_REPLICA || kind == DITTO_VALUE_MIRRORED || kind == DITTO_VALUE_SLICES;
    DTI_TRY(dti_team_check_usable(dti_team_of(strategy)));
    pthread_mutex_lock(&values->lock);
    ditto_value *v = values->kept[wide];
    if (v != NULL)
        values->kept[wide] = v->next;
    else if ((v = allocate(wide, dti_base_of(strategy)->num_replicas)) != NULL)
        values->allocations++;
    if (v != NULL) {
        v->next = values->used;
        v->before = &values->used;
        if (v->next != NULL)
            v->next->before = &v->next;
        values->used = v;
        values->references++;
    }
    pthread_mutex_unlock(&values->lock);
    if (v == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a value");
    v->strategy = strategy;
    v->values = values;
    v->kind = kind;
    v->depth = 0;
    v->on_variables = false;
    v->same_slices = false;
    /* relaxed: no other thread has a reference to the value yet. A thread that reaches it through the list of
     * used values does not use `references`. */
    atomic_store_explicit(&v->references, 1, memory_order_relaxed);
    *out = v;
    return DITTO_OK;
}

ditto_status dti_value_make_variable(ditto_strategy *strategy, ditto_variable *variable, ditto_value **out)
{
    DTI_TRY(dti_value_make(strategy, DITTO_VALUE_VARIABLE, out));
    (*out)->variable = variable;
    (*out)->on_variables = true;
    dti_variable_keep(variable);
    return DITTO_OK;
}

void dti_value_take_from(ditto_value *v, const ditto_value *container, uint32_t replica)
{
    v->container = dti_value_keep(container);
    v->replica = replica;
    /* A component that was taken from a variable lies in the variable's copy. */
    v->on_variables = v->on_variables || container->kind == DITTO_VALUE_VARIABLE;
}

static void count_allocation(const ditto_value *v)
{
    pthread_mutex_lock(&v->values->lock);
    v->values->allocations++;
    pthread_mutex_unlock(&v->values->lock);
}

ditto_status dti_value_allocate(ditto_value *v)
{
    size_t bytes = ditto_tensor_bytes(&v->plain);
    if (bytes > sizeof v->small && v->capacity < bytes) {
        free(v->memory);
        v->capacity = 0;
        v->memory = aligned_alloc(DTI_CACHE_LINE,
                                  (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE);
        if (v->memory == NULL)
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a value of %zu bytes", bytes);
        v->capacity = bytes;
        count_allocation(v);
    }
    v->plain.data = bytes <= sizeof v->small ? v->small : v->memory;
    return DITTO_OK;
}

ditto_status dti_nest_add(ditto_value *nest, const char *name, ditto_value *member)
{
    if (member->depth >= DTI_MOST_DEPTH) {
        dti_value_drop(member);
        return DTI_FAIL(DITTO_ERR_RANGE, "a nest inside %d nests: nests can't be nested deeper",
                        DTI_MOST_DEPTH);
    }
    if (nest->depth <= member->depth)
        nest->depth = member->depth + 1;
    if (nest->members == nest->member_capacity) {
        uint32_t capacity = nest->member_capacity == 0 ? 4 : 2 * nest->member_capacity;
        ditto_member *larger = realloc(nest->member, capacity * sizeof *larger);
        if (larger == NULL) {
            dti_value_drop(member);
            return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a nest of %u values", capacity);
        }
        nest->member = larger;
        nest->member_capacity = capacity;
        count_allocation(nest);
    }
    ditto_member *added = &nest->member[nest->members++];
    strncpy(added->name, name, sizeof added->name - 1);
    added->name[sizeof added->name - 1] = '\0';
    added->value = member;
    nest->on_variables = nest->on_variables || member->on_variables;
    return DITTO_OK;
}

/* -- dropping -- */

/* Called when the last reference is dropped: that of a value, or that of the strategy. */
static void end_values(struct dti_values *values)
{
    pthread_mutex_destroy(&values->lock);
    free(values->pool);
    free(values);
}

void dti_value_drop(ditto_value *v)
{
    /* acq_rel: all uses of the value through other references happen before it is reused or freed. */
    if (v == NULL || atomic_fetch_sub_explicit(&v->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < v->members; i++)
        dti_value_drop((ditto_value *)(uintptr_t)v->member[i].value);
    v->members = 0;
    dti_value_drop(v->container);
    v->container = NULL;
    /* A replica of a poisoned run may still read the variable. This call does not free it, even if the
     * variable was destroyed: destroying a variable of a poisoned strategy does not drop the reference that
     * its creation made. */
    if (v->kind == DITTO_VALUE_VARIABLE)
        dti_variable_drop(v->variable);
    struct dti_values *values = v->values;
    /* In a forked child, the lock may be held by a thread that does not exist there. */
    if (dti_process_differs(values->process))
        return;
    pthread_mutex_lock(&values->lock);
    /* If v->strategy is NULL, the strategy was destroyed, and the memory of the components with it. The lock
     * keeps the strategy from being destroyed meanwhile. */
    for (uint32_t i = 0; v->wide && v->strategy != NULL && i < dti_base_of(v->strategy)->num_replicas; i++) {
        dti_value_buffer_give(v->component[i]);
        v->component[i] = NULL;
    }
    /* The value is kept for reuse, freed, or left as it is. */
    enum dti_freed_by freed_by = values->values_freed_by;
    if (freed_by == DTI_FREED_BY_TEAM) {
        *v->before = v->next;
        if (v->next != NULL)
            v->next->before = v->before;
        v->next = values->kept[v->wide];
        values->kept[v->wide] = v;
    }
    bool last = --values->references == 0;
    pthread_mutex_unlock(&values->lock);
    if (freed_by == DTI_FREED_BY_DESTROY)
        release(v);
    if (last)
        end_values(values);
}

/* -- all values of a strategy -- */

static void team_ends(struct dti_dependent *dependent, enum dti_team_end end)
{
    struct dti_values *values = (struct dti_values *)dependent;
    /* The lock may be held by a thread that does not exist in this child process. */
    if (end == DTI_TEAM_IS_FORKED)
        pthread_mutex_init(&values->lock, NULL);
    pthread_mutex_lock(&values->lock);
    values->values_freed_by = end == DTI_TEAM_IS_LEFT ? DTI_FREED_BY_NOBODY : DTI_FREED_BY_DESTROY;
    for (ditto_value *v = values->used; v != NULL && end != DTI_TEAM_IS_LEFT; v = v->next)
        v->strategy = NULL;
    for (int wide = 0; wide < 2 && end != DTI_TEAM_IS_LEFT; wide++)
        for (ditto_value *v = values->kept[wide], *next; v != NULL; v = next) {
            next = v->next;
            release(v);
        }
    pthread_mutex_unlock(&values->lock);
}

static void drop_values(struct dti_dependent *dependent)
{
    struct dti_values *values = (struct dti_values *)dependent;
    pthread_mutex_lock(&values->lock);
    bool last = --values->references == 0;
    pthread_mutex_unlock(&values->lock);
    if (last)
        end_values(values);
}

static const struct dti_dependent_kind values_kind = { .team_ends = team_ends, .release = drop_values };

ditto_status dti_values_make(struct dti_team *team, struct dti_values **out)
{
    uint32_t n = dti_team_num_replicas(team);
    struct dti_values *values = calloc(1, sizeof *values);
    struct dti_buffer_pool *pool = aligned_alloc(DTI_CACHE_LINE_PAIR, n * sizeof *pool);
    if (values == NULL || pool == NULL) {
        free(values);
        free(pool);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the values of %u replicas", n);
    }
    memset(pool, 0, n * sizeof *pool);
    for (uint32_t i = 0; i < n; i++)
        pool[i].replica = dti_team_replica(team, i);
    values->pool = pool;
    pthread_mutex_init(&values->lock, NULL);
    values->process = dti_process_number();
    values->references = 1;
    values->values_freed_by = values->dependent.freed_by = DTI_FREED_BY_TEAM;
    values->dependent.kind = &values_kind;
    dti_dependent_add(team, &values->dependent);
    *out = values;
    return DITTO_OK;
}

/* -- checks -- */

static ditto_status fail_strategy_destroyed(const char *name)
{
    return DTI_FAIL(DITTO_ERR_CONTEXT, "%s: its strategy has been destroyed, and its components with it",
                    name);
}

ditto_status dti_value_hold(const ditto_value *value, struct dti_gates *held)
{
    struct dti_gate *gate = NULL;
    DTI_TRY(dti_not_null(value, "value"));
    bool exists = dti_dependent_hold(&value->values->dependent, &gate);
    dti_gates_add(held, gate); /* cannot fail: it is the first gate in `held` */
    return exists ? DITTO_OK : fail_strategy_destroyed("value");
}

ditto_status dti_value_hold_its_variables(const ditto_value *v, struct dti_gates *held)
{
    if (v->kind == DITTO_VALUE_VARIABLE)
        return dti_variable_hold_kept(v->variable, held);
    for (uint32_t i = 0; i < v->members; i++)
        DTI_TRY(dti_value_hold_variables(v->member[i].value, held));
    bool taken_from_variable = v->container != NULL && v->container->kind == DITTO_VALUE_VARIABLE;
    return taken_from_variable ? dti_variable_hold_kept(v->container->variable, held) : DITTO_OK;
}

static __attribute__((cold, noinline)) ditto_status refuse_foreign(const ditto_value *value, const char *name)
{
    if (value == NULL)
        return dti_fail_null(name);
    DTI_LEAVES_GATE(held, NULL);
    if (!dti_dependent_hold(&value->values->dependent, &held))
        return fail_strategy_destroyed(name);
    return DTI_FAIL(DITTO_ERR_CONTEXT,
                    "mixing strategies: %s belongs to another strategy; make it again with this one", name);
}

ditto_status dti_value_check_own(const ditto_value *value, const ditto_strategy *strategy, const char *name)
{
    bool own = value != NULL && value->values == dti_base_of(strategy)->values;
    return __builtin_expect(own, 1) ? DITTO_OK : refuse_foreign(value, name);
}

ditto_status dti_value_check_item(const ditto_value *value, const ditto_strategy *strategy, const char *list,
                                  uint32_t index)
{
    char name[64];
    if (value != NULL && dti_value_check_own(value, strategy, list) == DITTO_OK)
        return DITTO_OK;
    snprintf(name, sizeof name, "%s[%u]", list, index);
    return dti_value_check_own(value, strategy, name);
}

ditto_status dti_value_hold_own(const ditto_value *value, const ditto_strategy *strategy, const char *name,
                                struct dti_gates *held)
{
    DTI_TRY(dti_value_check_own(value, strategy, name));
    return dti_value_hold_variables(value, held);
}

ditto_status dti_value_hold_item(const ditto_value *value, const ditto_strategy *strategy, const char *list,
                                 uint32_t index, struct dti_gates *held)
{
    DTI_TRY(dti_value_check_item(value, strategy, list, index));
    return dti_value_hold_variables(value, held);
}

const char *dti_value_kind_text(ditto_value_kind kind)
{
    static const char *const names[] = {
        "no value", "a plain value", "a per-replica value", "a mirrored value", "a variable",
        "slices",   "a nest"
    };
    return names[(unsigned)kind <= DITTO_VALUE_NEST ? kind : 0];
}

/* -- helpers for several files -- */

ditto_status dti_value_finish(ditto_value *value, ditto_status status, ditto_value **out)
{
    if (status != DITTO_OK) {
        dti_value_drop(value);
        return status;
    }
    *out = value;
    return DITTO_OK;
}

void dti_number_name(char *name, uint32_t number)
{
    struct dti_text text = { name, 16, 0 };
    dti_text_add(&text, "%u", number);
}

bool dti_name_is_number(const char *name)
{
    return name[0] != '\0' && name[strspn(name, "0123456789")] == '\0';
}

ditto_status dti_name_check(const char *name)
{
    if (name[0] == '\0' || strchr(name, '/') != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "\"%s\" is not a name: it is empty or has a '/', which separates names", name);
    if (strlen(name) > DITTO_MAX_RESULT_NAME_BYTES)
        return DTI_FAIL(DITTO_ERR_RANGE, "the name \"%s\" has %zu bytes: the most is %d", name, strlen(name),
                        DITTO_MAX_RESULT_NAME_BYTES);
    return DITTO_OK;
}

ditto_status dti_function_status(ditto_status status, uint32_t serial, const char *format, ...)
{
    char what[128];
    va_list arguments;
    if (status == DITTO_OK)
        return DITTO_OK;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (status > 0)
        return DTI_FAIL(DITTO_ERR_USER, "%s returned %d (%s): return DITTO_OK, or an error", what,
                        (int)status, ditto_status_name(status));
    if (!dti_wrote_record(status, serial))
        DTI_FAIL(status, "%s returned %s (%d) without a message: set one with ditto_fail", what,
                 ditto_status_name(status), (int)status);
    return status;
}
