/* src/values/values.h - what a distributed value is made of. */
#ifndef DTI_VALUES_H
#define DTI_VALUES_H

#include <ditto/slices.h>
#include <ditto/value.h>

#include "values/buffer_pool.h"
#include "replicas/replicas.h"
#include "vars/vars.h"

#include <pthread.h>

struct dti_member {
    char name[DITTO_MAX_RESULT_NAME + 1];
    ditto_value *value; /* a reference */
};

struct ditto_value {
    ditto_strategy
        *strategy; /* NULL: it was destroyed, and the memory of components with it. Under home's lock */
    struct dti_values *values;
    uint32_t depth; /* of nests in it */
    ditto_value_kind kind;
    _Atomic uint32_t references;
    bool wide;         /* has room for a component of each replica */
    bool on_variables; /* it is a variable, was taken from one, or has such a member */
    ditto_value *next,
        **before; /* among the strategy's values that are in use; next: also among those that are kept */
    ditto_value *container;   /* that this was taken from, a reference; NULL: from none */
    uint32_t replica;         /* that it was taken for */
    ditto_variable *variable; /* of DITTO_VARIABLE: a reference, also when the variable was destroyed */
    ditto_tensor plain;       /* of DITTO_PLAIN */
    void *memory;             /* plain's, if it is the value's own, of `room` bytes */
    size_t capacity;
    alignas(16) unsigned char small[16];
    size_t dense_rows; /* of DITTO_SLICES */
    /* of DITTO_PER_REPLICA, DITTO_MIRRORED_VALUE, DITTO_SLICES; [replicas] */
    ditto_tensor *part; /* rank DTI_NO_PART: there is none here (mirrored on some replicas only) */
    struct dti_value_buffer **component; /* a part's memory; NULL: somebody else's */
    int64_t **index;
    /* of DITTO_NEST */
    uint32_t members, member_capacity;
    struct dti_member *member;
};
#define DTI_NO_PART UINT32_MAX

/* A strategy's values: those in use, so that they can be told when it goes, and those that are kept for the next ones. Lives until
 * the strategy has gone, and the last of them. */
struct dti_values {
    /* First. Its gate is that of calls on values. The end of the team drops the team's reference. */
    struct dti_dependent dependent;

    uint32_t process; /* that the strategy was made in (base/fork.h) */
    pthread_mutex_t lock;
    ditto_value *used, *kept[2]; /* narrow ones, wide ones */
    size_t references;           /* the team's, and one of each value in use */

    /* Who frees a value that is dropped. The team: it is kept for the next one. DTI_FREED_BY_DESTROY: the
     * strategy has gone, and the value is freed at once. DTI_FREED_BY_NOBODY: a replica that never returned
     * may use it. */
    enum dti_freed_by values_freed_by;
    uint64_t allocations;
};
/* The strategy, whose team is there and known to nobody else, gets its values. NO_MEMORY. */
ditto_status dti_values_make(ditto_strategy *strategy);

/* First in a public function that takes a value and no strategy: NULL is INVALID, and a value whose strategy
 * was destroyed is CONTEXT; else the strategy is not destroyed before the function returns. `held` is the
 * name of the gates, to which dti_value_hold_variables adds. */
#define DTI_HOLD_VALUE(value, held) \
    DTI_LEAVES_GATES(held);         \
    DTI_TRY(dti_value_hold((value), &held))
ditto_status dti_value_hold(const ditto_value *value, struct dti_gates *held);

/* A value that is a variable, or was taken from one, refers to the variable's copies, and does not keep them.
 * So every call that looks at the contents of values first holds the variables of all of them and of their
 * members, until it returns. A call that hands values on, and does not look at their contents, needs not.
 * CONTEXT: the variable has been destroyed. NO_MEMORY. */
ditto_status dti_value_hold_its_variables(const ditto_value *value, struct dti_gates *held);
static inline ditto_status dti_value_hold_variables(const ditto_value *value, struct dti_gates *held)
{
    return value->on_variables ? dti_value_hold_its_variables(value, held) : DITTO_OK;
}

/* -- Any thread -- */
/* Without content, with one reference. NO_MEMORY; FORKED, POISONED. */
ditto_status dti_value_make(ditto_strategy *strategy, ditto_value_kind kind, ditto_value **out);
/* The variable as a value, which refers to it. */
ditto_status dti_value_make_variable(ditto_strategy *strategy, ditto_variable *variable, ditto_value **out);
/* Says that the value was taken for a replica from `container`, to which it keeps a reference. */
void dti_value_take_from(ditto_value *value, ditto_value *container, uint32_t replica);
/* Memory of a plain value's own, for what value->plain says; sets its data. NO_MEMORY. */
ditto_status dti_value_allocate(ditto_value *value);
/* A member at the end of a nest; takes the reference. NO_MEMORY, RANGE (too deep): the reference is dropped. */
#define DTI_MOST_DEPTH 64
ditto_status dti_nest_add(ditto_value *nest, const char *name, ditto_value *member);
static inline ditto_value *dti_value_keep(const ditto_value *value) /* one reference more */
{
    ditto_value *kept = (ditto_value *)(uintptr_t)value;
    /* relaxed: whoever keeps it has a reference already */
    atomic_fetch_add_explicit(&kept->references, 1, memory_order_relaxed);
    return kept;
}
void dti_value_drop(ditto_value *value); /* NULL is allowed */

/* INVALID: NULL. CONTEXT: its strategy was destroyed, or it belongs to another strategy. */
ditto_status dti_value_check_own(const ditto_value *value, const ditto_strategy *strategy, const char *name);
/* The same for an entry of a list of the caller's. The message names the entry, as in "values[2]". */
ditto_status dti_value_check_item(const ditto_value *value, const ditto_strategy *strategy, const char *list,
                                  uint32_t index);
/* The same, and then the variables are held. */
ditto_status dti_value_hold_own(const ditto_value *value, const ditto_strategy *strategy, const char *name,
                                struct dti_gates *held);
ditto_status dti_value_hold_item(const ditto_value *value, const ditto_strategy *strategy, const char *list,
                                 uint32_t index, struct dti_gates *held);

/* The parts of a leaf, one per replica; a plain or mirrored one stands for the same everywhere. False: it is no tensor
 * (nest, slices). */
bool dti_value_part(const ditto_value *value, uint32_t replica, ditto_tensor *out);
/* The same of all replicas, as an array [replicas]: the value's own where it has one. NO_MEMORY. */
struct dti_value_parts {
    const ditto_tensor *part;
    ditto_tensor *own; /* made for this; NULL: none */
};
ditto_status dti_value_parts_open(const ditto_value *value, struct dti_value_parts *parts);
void dti_value_parts_close(struct dti_value_parts *parts);
const ditto_value *dti_value_find(const ditto_value *value, const char *path); /* NULL: no such member */
ditto_status dti_fail_no_member(const ditto_value *value, const char *path, const char *what);
/* Of a value that was being made: hands it out, or drops it. */
ditto_status dti_value_finish(ditto_value *value, ditto_status status, ditto_value **out);
void dti_number_name(char *name, uint32_t number); /* "12", of at most 16 bytes */
bool dti_name_is_number(const char *name);         /* digits, and nothing else */
/* INVALID: empty, or with a '/'. RANGE: too long. */
ditto_status dti_name_check(const char *name);
/* What a function of the user's returned, as a status that is DITTO_OK or an error with a record. `serial`:
 * dti_error_serial before it was called; the text says which function it was. */
ditto_status dti_function_status(ditto_status status, uint32_t serial, const char *format, ...)
    DITTO_PRINTF(3, 4);

/* For messages: "a per-replica value". */
const char *dti_value_kind_words(ditto_value_kind kind);

/* The slices of one replica in a per-replica value of slices. */
static inline ditto_slices dti_slices_of(const ditto_value *value, uint32_t replica)
{
    const ditto_tensor *part = &value->part[replica];
    return (ditto_slices){ .indices = value->index[replica],
                           .values = part->data,
                           .rows = part->shape[0],
                           .row_count = part->shape[1],
                           .dtype = part->dtype };
}

/* A variable written from a distributed value. */

/* Cross context; the variable and those of the value are held, and all are of one strategy. */
ditto_status dti_assign_value(ditto_variable *v, enum dti_rule rule, const ditto_value *value);

/* What can be seen of a value. The value is checked already, and the variables that it
 * refers to are held wherever its contents are looked at (dti_value_hold_variables). */

/* -- Any context -- */
ditto_status dti_look_component(const ditto_value *value, uint32_t replica, ditto_tensor *out);
ditto_status dti_look_tensor(const ditto_value *value, ditto_tensor *out);
ditto_status dti_look_spec(const ditto_value *value, ditto_tensor *out);

/* -- Cross context -- */
ditto_status dti_look_select(ditto_value *value, uint32_t replica, ditto_value **out);
/* A plain value that is `part` of a container. */
ditto_status dti_look_taken(ditto_value *container, uint32_t replica, const ditto_tensor *part,
                            ditto_value **out);
ditto_status dti_look_local_results(ditto_value *value, ditto_value **out, uint32_t *count);

#endif
