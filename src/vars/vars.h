/* src/vars/vars.h - the door of vars, and what its files share. */
#ifndef DTI_VARS_H
#define DTI_VARS_H

#include <ditto/variable.h>

#include "replicas/replicas.h"
#include "sync/sync.h"
#include "vars/elements/elements.h"

/* What a synchronization means. A new one is one more table. */
struct dti_variable_kind {
    const char *name;
    /* In replica context; `rule` is how a value changes the old one: assign, add or subtract. */
    ditto_status (*write)(struct dti_replica *self, ditto_variable *v, enum dti_rule rule, const void *value);
    /* In cross context. */
    ditto_status (*cross_read)(ditto_variable *v, void *dst);
    ditto_status (*cross_write)(ditto_variable *v, enum dti_rule rule, const void *value);
};

/* Elements that lie in one row of memory: all of a variable, or a shard. Pieces are in order, and leave nothing out. */
struct dti_variable_piece {
    size_t first, count;
};

/* How often a replica's component may have changed: written by that replica, or in cross context by whoever has the turn. */
struct dti_generation {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t count;
};

struct ditto_variable {
    struct dti_dependent dependent; /* first; tells when the strategy goes */
    /* One is its creator's, until it is destroyed, and one each of the values that refer to it. */
    _Atomic uint32_t references;
    struct dti_team *team; /* NULL: the strategy is destroyed */
    const struct dti_variable_kind *kind;
    char *name;
    ditto_tensor spec;
    size_t count, bytes;
    ditto_aggregation aggregation;
    bool trainable, mirrored;
    /* One copy for each replica, wherever replicas are: by request, by need, or since a split (copies.h). */
    bool own_copies;
    /* An update may have written the components one by one, and no assignment has made them equal since. */
    bool may_differ;
    bool wants_copies;             /* created with COPIES_PER_REPLICA */
    bool central;                  /* one copy in all, on `node` */
    bool optimizer_slot;           /* an optimizer's: its pieces lie with those who update them */
    bool hidden;                   /* of the library's own: no list of variables has it */
    uint32_t users;                /* optimizers that work on it; under the team's turn */
    uint32_t node;                 /* of the one copy, or of the first shard */
    ditto_partitioner partitioner; /* as asked for */
    uint32_t pieces;
    struct dti_variable_piece *piece; /* [pieces] */
    /* Physical copies in all: of a variable of several pieces one of each. A split only adds copies behind
     * those that there are, so that `copy` and what it points to stay valid; it changes `copies` and
     * `copy_of` last. */
    _Atomic uint32_t copies;
    struct dti_copy *copy;                /* [copies] each shared by the components of one or more replicas */
    uint32_t *copy_node;                  /* [copies] DTI_OWN_NODE: its owner's */
    struct dti_copy_set *copies_of_piece; /* [pieces] the copies of each; under the turn */
    _Atomic uint32_t *copy_of;            /* [replicas] index into copy, of a variable of one piece */
    struct dti_generation *generation;    /* [replicas] */
    struct ditto_variable *next;          /* of its strategy */
};
#define DTI_OWN_NODE UINT32_MAX

extern const struct dti_variable_kind dti_mirrored_kind, dti_sync_on_read_kind;

static inline const char *dti_variable_name(const ditto_variable_options *options)
{
    return options->name != NULL ? options->name : "Variable";
}
ditto_status dti_variable_create(const struct dti_strategy_base *base, const ditto_tensor *initial,
                                 const ditto_variable_options *options, ditto_variable **out);
/* BUSY: an optimizer works on it, or another thread is in a call on it; then it stays. */
ditto_status dti_variable_destroy(ditto_variable *v);
/* References to the struct, which stays until the last one is dropped. What is kept may have been
 * destroyed. */
void dti_variable_keep(ditto_variable *v);
void dti_variable_drop(ditto_variable *v);
/* First in a public function that takes a variable. INVALID: NULL. CONTEXT: its strategy was destroyed. Else
 * neither the variable nor its strategy is destroyed before the function returns. */
#define DTI_HOLD_VARIABLE(v)               \
    DTI_LEAVES_GATE(held_variable_, NULL); \
    DTI_TRY(dti_variable_hold((v), &held_variable_))
ditto_status dti_variable_hold(const ditto_variable *v, struct dti_gate **held);
/* The same of a variable that is kept, and may have been destroyed: that is CONTEXT too. NO_MEMORY. */
ditto_status dti_variable_hold_kept(const ditto_variable *v, struct dti_gates *held);
/* First in a public function that takes a variable in replica context. CONTEXT too: it is of another strategy
 * than the replica's (NULL: there is a message already). A replica in a run enters no gate, because the run
 * has the turn; a thread's replica of the default strategy does. */
#define DTI_HOLD_OWN_VARIABLE(r, v)        \
    DTI_LEAVES_GATE(held_variable_, NULL); \
    DTI_TRY(dti_variable_hold_own((r), (v), &held_variable_))
ditto_status dti_variable_hold_own(const struct dti_replica *r, const ditto_variable *v,
                                   struct dti_gate **held);
/* UNSUPPORTED: it has several pieces, so that no component lies in one row. `what` was to be done with it. */
ditto_status dti_variable_check_whole(const ditto_variable *v, const char *what);

/* The copy that is a replica's component, of a variable of one piece. Any thread. */
static inline const struct dti_copy *dti_copy_of(const ditto_variable *v, uint32_t replica)
{
    /* acquire: pairs with the release in use_own (copies.c), so that the copy's address and contents are
     * seen */
    return &v->copy[atomic_load_explicit(&v->copy_of[replica], memory_order_acquire)];
}
static inline void *dti_variable_component(const ditto_variable *v, uint32_t replica)
{
    return dti_copy_of(v, replica)->data;
}
static inline bool dti_owns_copy(const ditto_variable *v, uint32_t replica)
{
    return dti_copy_of(v, replica)->owner == replica;
}
/* The copy of a piece that is nearest to a replica. */
static inline char *dti_nearest(const ditto_variable *v, uint32_t piece, uint32_t replica)
{
    return v->pieces == 1 ? dti_variable_component(v, replica) : v->copies_of_piece[piece].copy[0].data;
}
uint32_t dti_variable_piece_of(const ditto_variable *v, size_t element); /* that it lies in */

/* -- splits: shared copies become one copy for each replica --
 *
 * The components of a mirrored variable are equal, so they share copies until an update writes them one by
 * one. Before it does so, the copies are split: each replica that does not own the copy that it uses gets one
 * of its own, with the same contents. */

/* True for a variable whose copies are shared until they are split. The copies of a variable that is sharded,
 * central or an optimizer's slot, or that aggregates, stay as they were created. Any context. */
bool dti_variable_is_splittable(const ditto_variable *v);
/* INVALID: an update in which each replica has its own arguments is not possible, because there is not one
 * copy for each replica, and the copies are never split. Any context, with the turn. */
ditto_status dti_variable_check_each(const ditto_variable *v);
/* Splits the copies of a mirrored variable, if they are shared, and notes that its components may differ. The
 * variable has passed dti_variable_check_each. NO_MEMORY on any replica, SYSTEM: nothing has changed. Cross
 * context, entered. */
ditto_status dti_variable_split(ditto_variable *v);
/* Notes that the variable's components may differ, and tells its optimizers. With the turn, while no other
 * thread works on the variable. */
void dti_variable_set_may_differ(ditto_variable *v);
/* Notes that an assignment makes the components equal, and tells the optimizers. With the turn, while no other
 * thread works on the variable, but for those that take part in the assignment: they only write copies. */
void dti_variable_set_equal(ditto_variable *v);

/* -- elements -- */

/* Elements [first, end): every copy changed by `value`, which begins with element `first`; the nearest copy to dst. */
void dti_copies_write(const ditto_variable *v, enum dti_rule rule, size_t first, size_t end,
                      const void *value);
void dti_copies_read(const ditto_variable *v, uint32_t replica, size_t first, size_t end, void *dst);

/* A read or a write across replicas, as dti_share hands it on. */
struct dti_cross_access {
    ditto_variable *v;
    enum dti_rule rule;
    const char *value;
    char *dst;
};

/* -- generations -- */
static inline void dti_changed(const ditto_variable *v, uint32_t replica)
{
    _Atomic uint64_t *count = &v->generation[replica].count; /* relaxed: one writer; a reader only compares */
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}
static inline void dti_all_changed(const ditto_variable *v) /* cross context */
{
    for (uint32_t i = 0; i < v->team->n; i++)
        dti_changed(v, i);
}

#endif
