/* src/values/values.h - the struct of a distributed value, and the functions on values that the files of this
 * folder share. Other modules call some of them. */
#ifndef DTI_VALUES_H
#define DTI_VALUES_H

#include "replicas/team/dependent.h"
#include "values/buffer_pool.h"
#include "vars/elements/elements.h"

#include <pthread.h>

struct ditto_value {
    /* NULL if the strategy was destroyed. The memory of the components was freed with it. It is set to NULL
     * under values->lock. It is read under this lock, in the gate of `values`, or in a call or run that holds
     * the strategy. */
    ditto_strategy *strategy;
    struct dti_values *values;
    uint32_t depth; /* the number of levels of nests in the value; an empty nest does not count */
    ditto_value_kind kind;
    _Atomic uint32_t references;
    bool wide; /* the arrays `part`, `component` and `index` are allocated */

    /* The value is a variable, was taken from one, or has a member for which this is true. */
    bool on_variables;

    /* The list of the strategy's values that are in use. Unused values that are kept for reuse are linked by
     * `next` alone. */
    ditto_value *next;
    ditto_value **before; /* the pointer that points to this value */

    /* The value that this one was taken from, as a counted reference, or NULL. */
    ditto_value *container;
    uint32_t replica; /* the replica for which it was taken */

    /* For DITTO_VALUE_VARIABLE, a counted reference. It stays valid when the variable is destroyed. */
    ditto_variable *variable;

    /* For DITTO_VALUE_PLAIN, the tensor. If the value was taken from a variable, `data` is only the address
     * at that time, and dti_value_part returns the present one. */
    ditto_tensor plain;
    void *memory;                        /* memory that the value owns for `plain`, or NULL */
    size_t capacity;                     /* of `memory`, in bytes */
    alignas(16) unsigned char small[16]; /* is used instead of `memory` if the tensor fits */

    /* For DITTO_VALUE_SLICES, the number of rows of the dense tensor, or 0 if it is not known. */
    size_t dense_rows;
    bool same_slices; /* all replicas have the same ones */

    /* The arrays below have one element for each replica. They are used by DITTO_VALUE_PER_REPLICA,
     * DITTO_VALUE_MIRRORED and DITTO_VALUE_SLICES. */

    /* Rank DTI_NO_PART means that the replica has no part. This occurs only in a mirrored value that exists
     * on some of the replicas. */
    ditto_tensor *part;

    /* The memory of each part. NULL for a part whose memory this value does not own. */
    struct dti_value_buffer **component;
    int64_t **index; /* the row numbers of slices */

    /* For DITTO_VALUE_NEST. */
    uint32_t members, member_capacity;
    ditto_member *member; /* counted references */
};
#define DTI_NO_PART UINT32_MAX

/* The values of a strategy: those in use, which must learn that the strategy is destroyed, and unused ones
 * that are kept for reuse. It is freed when the strategy and all its values have been destroyed. If the
 * strategy was poisoned, neither it nor the values are freed. In a child process after fork, the parent's
 * values are not freed, and the struct only if none was in use. */
struct dti_values {
    /* Must be the first member. Its gate is the gate of calls on values. The end of the team drops the team's
     * reference. */
    struct dti_dependent dependent;

    uint32_t process; /* of the strategy's creation (base/waiting/fork.h) */
    pthread_mutex_t lock;
    ditto_value *used;
    ditto_value *kept[2]; /* unused values: [0] narrow, [1] wide */
    size_t references;    /* one for the team, and one for each value in use */

    /* What happens to a value that is dropped. With DTI_FREED_BY_TEAM it is kept for reuse. With
     * DTI_FREED_BY_DESTROY the strategy was destroyed, and the value is freed at once. With
     * DTI_FREED_BY_NOBODY it stays, because a replica that never returned may use it. */
    enum dti_freed_by values_freed_by;
    uint64_t allocations;         /* of values, of their memory, and of lists of members */
    struct dti_buffer_pool *pool; /* [replicas] */
};
/* Makes the struct dti_values of a strategy, with the team's reference to it. No other thread may know the
 * team yet. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_values_make(struct dti_team *team, struct dti_values **out);
static inline struct dti_buffer_pool *dti_pool_of(const ditto_strategy *strategy, uint32_t replica)
{
    return &dti_base_of(strategy)->values->pool[replica];
}

/* Stands after DTI_ENTER in a public function that reads a value and takes no strategy. It makes the
 * function return DITTO_ERR_INVALID if the value is NULL, and DITTO_ERR_CONTEXT if its strategy was
 * destroyed. Otherwise the strategy is not destroyed before the function returns. The macro declares the
 * gates under the name `held`, to which dti_value_hold_variables adds. */
#define DTI_HOLD_VALUE(value, held) \
    DTI_LEAVES_GATES(held);         \
    DTI_TRY(dti_value_hold((value), &held))
ditto_status dti_value_hold(const ditto_value *value, struct dti_gates *held);

/* A value that is a variable, or was taken from one, refers to the copies of the variable but does not keep
 * them alive. Each call that reads the contents of values must therefore first hold the variables of the
 * values and of their members, until it returns. A call that passes values on without reading their contents
 * need not. Returns DITTO_ERR_CONTEXT if a variable was destroyed, or DITTO_ERR_NO_MEMORY. */
ditto_status dti_value_hold_its_variables(const ditto_value *value, struct dti_gates *held);
static inline ditto_status dti_value_hold_variables(const ditto_value *value, struct dti_gates *held)
{
    return value->on_variables ? dti_value_hold_its_variables(value, held) : DITTO_OK;
}

/* -- Any thread -- */
/* Makes a value with one reference. The caller fills it in. Returns DITTO_ERR_NO_MEMORY, DITTO_ERR_FORKED or
 * DITTO_ERR_POISONED. */
ditto_status dti_value_make(ditto_strategy *strategy, ditto_value_kind kind, ditto_value **out);
/* Makes a value that refers to the variable. */
ditto_status dti_value_make_variable(ditto_strategy *strategy, ditto_variable *variable, ditto_value **out);
/* Records that the value was taken from `container` for a replica, and keeps a reference to the container. */
void dti_value_take_from(ditto_value *value, const ditto_value *container, uint32_t replica);
/* Allocates the memory of a plain value for the dtype and shape in value->plain, and sets value->plain.data.
 * Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_value_allocate(ditto_value *value);
/* Appends a member to a nest, and takes over the caller's reference to it, even if it fails. Returns
 * DITTO_ERR_NO_MEMORY, or DITTO_ERR_RANGE if the nest becomes too deep. */
#define DTI_MOST_DEPTH 64
ditto_status dti_nest_add(ditto_value *nest, const char *name, ditto_value *member);
/* Adds a reference. */
static inline ditto_value *dti_value_keep(const ditto_value *value)
{
    ditto_value *kept = (ditto_value *)(uintptr_t)value;
    /* relaxed: the caller has a reference already, so the count cannot reach 0 meanwhile. */
    atomic_fetch_add_explicit(&kept->references, 1, memory_order_relaxed);
    return kept;
}
void dti_value_drop(ditto_value *value); /* NULL is allowed */

/* Returns DITTO_ERR_INVALID if the value is NULL, and DITTO_ERR_CONTEXT if its strategy was destroyed or is
 * another one. */
ditto_status dti_value_check_own(const ditto_value *value, const ditto_strategy *strategy, const char *name);
/* The same check for an item of a list that the user passed. The message names the item, as in
 * "values[2]". */
ditto_status dti_value_check_item(const ditto_value *value, const ditto_strategy *strategy, const char *list,
                                  uint32_t index);
/* These functions make the same checks, and also hold the variables of the value. */
ditto_status dti_value_hold_own(const ditto_value *value, const ditto_strategy *strategy, const char *name,
                                struct dti_gates *held);
ditto_status dti_value_hold_item(const ditto_value *value, const ditto_strategy *strategy, const char *list,
                                 uint32_t index, struct dti_gates *held);

/* Returns the part of a value that belongs to a replica. A plain value has one part for all replicas. The
 * parts of a mirrored value are equal, and a replica without a part gets the part of another one. Returns
 * false if the value is not a tensor (a nest, slices), and if a mirrored value has no part on this host. */
bool dti_value_part(const ditto_value *value, uint32_t replica, ditto_tensor *out);
/* The parts of all replicas as an array. The value must be a tensor, and not a nest or slices.
 * dti_value_parts_open returns DITTO_ERR_NO_MEMORY, or DITTO_ERR_RANGE if no part is on this host. */
struct dti_value_parts {
    const ditto_tensor *part;
    ditto_tensor *allocated; /* NULL if `part` is the array of the value itself, otherwise equal to `part` */
};
ditto_status dti_value_parts_open(const ditto_value *value, struct dti_value_parts *parts);
void dti_value_parts_close(struct dti_value_parts *parts);
/* Returns the member of a nest at a path such as "a/b", or NULL if there is none. An empty path or NULL means
 * the value itself. */
const ditto_value *dti_value_find(const ditto_value *value, const char *path);
/* Records and returns DITTO_ERR_NOT_FOUND for a path at which the value has no member. `what` says what
 * was searched: "member". */
ditto_status dti_fail_no_member(const ditto_value *value, const char *path, const char *what);
/* Ends the making of a value: sets *out if status is DITTO_OK, and drops the value otherwise. Returns
 * status. */
ditto_status dti_value_finish(ditto_value *value, ditto_status status, ditto_value **out);
void dti_number_name(char *name, uint32_t number); /* writes "12"; name has 16 bytes */
bool dti_name_is_number(const char *name);         /* the name consists of digits only */
/* Returns DITTO_ERR_INVALID if the name is empty or contains a '/', and DITTO_ERR_RANGE if it is too long. */
ditto_status dti_name_check(const char *name);
/* Turns the status that a function of the user returned into DITTO_OK or an error with a message. `serial` is
 * the value of dti_this_thread()->errors before the function was called. The format and its arguments name
 * the function. */
ditto_status dti_function_status(ditto_status status, uint32_t serial, const char *format, ...)
    DITTO_PRINTF(3, 4);

/* Names a kind in messages, for example "a per-replica value". */
const char *dti_value_kind_text(ditto_value_kind kind);

/* Returns the slices of one replica. The value must be of the kind DITTO_VALUE_SLICES. */
static inline ditto_slices dti_slices_of(const ditto_value *value, uint32_t replica)
{
    const ditto_tensor *part = &value->part[replica];
    return (ditto_slices){ .indices = value->index[replica],
                           .values = part->data,
                           .rows = part->shape[0],
                           .row_count = part->shape[1],
                           .dtype = part->dtype };
}

/* Writes a value to a variable, in cross-replica context. The variable and those of the value must be held,
 * and must belong to one strategy. */
ditto_status dti_assign_value(ditto_variable *v, enum dti_rule rule, const ditto_value *value);

/* These functions read a value. The caller has held it (DTI_HOLD_VALUE), or has checked that it belongs to
 * a strategy that the caller holds (dti_value_check_own). If its contents are read, the variables that it
 * refers to must be held (dti_value_hold_variables). */

/* -- Any context -- */
/* Returns DITTO_ERR_INVALID for a nest and for slices, and DITTO_ERR_RANGE if a mirrored value has no
 * component on this host. */
ditto_status dti_inspect_component(const ditto_value *value, uint32_t replica, ditto_tensor *out);
/* Returns DITTO_ERR_INVALID if the value is neither plain nor mirrored. */
ditto_status dti_inspect_tensor(const ditto_value *value, ditto_tensor *out);
/* Returns the one element of such a value as a number. If the value lies in a variable, a thread outside of
 * runs waits for the turn, because a run may be writing the variable. Also fails with SHAPE or
 * UNSUPPORTED. */
ditto_status dti_inspect_number(const ditto_value *value, double *out);
/* Copies the tensor of a value that was taken from the variable `v`, for a call that writes to `v` while it
 * reads the value. The caller has the turn, and frees *copy. For other values *copy is NULL. Returns
 * DITTO_ERR_NO_MEMORY. */
ditto_status dti_inspect_copy_component(const ditto_value *value, const ditto_variable *v, void **copy);
/* Sets *out to ditto_value_properties.spec. */
void dti_inspect_spec(const ditto_value *value, ditto_tensor *out);

/* -- Cross-replica context -- */
/* Makes a value of the parts that belong to one replica. A plain value and a variable, also as members of a
 * nest, are returned as they are, with a further reference. */
ditto_status dti_inspect_select(const ditto_value *value, uint32_t replica, ditto_value **out);
/* Makes a plain value of `part`, which is a part of the container. */
ditto_status dti_inspect_taken(const ditto_value *container, uint32_t replica, const ditto_tensor *part,
                               ditto_value **out);
/* Makes a value for each replica (out[replicas]), or only out[0] if the value is plain. The other elements of
 * `out` are then NULL. Stores the number of values in *count. */
ditto_status dti_inspect_local_results(const ditto_value *value, ditto_value **out, uint32_t *count);

#endif
