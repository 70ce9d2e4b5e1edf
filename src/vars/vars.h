/* src/vars/vars.h - the internal header of vars. It declares the variable and the functions on variables that
 * src/values, src/strategy and the files of src/vars share. */
#ifndef DTI_VARS_H
#define DTI_VARS_H

#include <ditto/variable.h>

#include "replicas/team/dependent.h"
#include "sync/grouping/grouping.h"
#include "sync/sync.h"
#include "vars/elements/elements.h"

/* The functions of one kind of synchronization. */
struct dti_variable_kind {
    const char *name;

    /* A write in replica context. The rule is assign, add or subtract. */
    ditto_status (*write)(struct dti_replica *self, ditto_variable *v, enum dti_rule rule, const void *value);

    /* A read in cross context. */
    ditto_status (*cross_read)(ditto_variable *v, void *dst);

    /* A write in cross context. */
    ditto_status (*cross_write)(ditto_variable *v, enum dti_rule rule, const void *value);
};

/* A range of elements that lie contiguously in memory. It is a whole variable, one shard, or a part of an
 * optimizer's slot that lies with one replica. The pieces of a variable are sorted, and together they cover
 * all of its elements. */
struct dti_variable_piece {
    size_t first, count;
};

/* Counts how often a replica's component may have changed. It is written by that replica's thread in replica
 * context, and under the turn in cross context. */
struct dti_generation {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t count;
};

/* The order in which the elements of a sliced variable, and of its slots, lie in the pieces: one slice after
 * the other (variables/slices.h). */
struct dti_slice_order {
    uint32_t axis, slices; /* slices is 0 if the order is the usual one */
    size_t extent;         /* of the sliced dimension */
    size_t inner;          /* the elements of one index of it, which are contiguous */
};

/* Which replicas have the slices of a variable. */
struct dti_slicing {
    /* The grouping along which the variable is sliced, or NULL if it is all replicas. */
    ditto_grouping *along;

    /* The groups of the replicas that mirror a slice. NULL if each replica has a slice of its own. */
    ditto_grouping *mirrors;

    uint32_t *rank; /* [replicas] the piece of each replica */

    /* [copies] and [pieces] The same copies as those of the variable, but the owner of each is its rank among
     * the replicas that mirror the slice. Not used if `mirrors` is NULL. */
    struct dti_copy *copy;
    struct dti_copy_set *copies_of_piece;
};

struct ditto_variable {
    /* Must be the first member. Through it the team notifies the variable of the strategy's end. */
    struct dti_dependent dependent;

    /* The creator holds one reference until it destroys the variable. Each value that refers to the variable
     * holds one. */
    _Atomic uint32_t references;

    struct dti_team *team; /* NULL after the strategy was destroyed */
    uint32_t num_replicas;
    const struct dti_variable_kind *kind;
    char *name;
    uint64_t stamp; /* over several hosts tells variables of one name apart (dti_cross_stamp), otherwise 0 */
    ditto_tensor spec;
    size_t count, bytes;
    size_t row_count; /* the elements of a row; 0 if the variable has no rows */
    ditto_aggregation aggregation;
    bool trainable, mirrored;

    /* True if each replica has its own copy, also where several replicas are on one NUMA node. The user asked
     * for this, the kind of variable needs it, the variable is colocated with such a variable, or the copies
     * were split (see the section on splits below). */
    bool own_copies;

    /* True if an update, or an assignment of another variable's value, may have written different values to
     * the components, and no assignment has made them equal since. All accesses are relaxed. Replica 0, or a
     * thread with the turn, writes it, and replicas see this by their next meeting or job. A reduction looks
     * at it before it has the turn. With one host, nothing depends on what it finds then. Several hosts make
     * the calls and runs of a strategy in one order. */
    _Atomic bool may_differ;

    bool wants_copies; /* created with DITTO_COPIES_PER_REPLICA */
    bool central;      /* the strategy has central storage (struct dti_storage) */

    /* True for a slot of an optimizer. Each of its pieces lies in the arena of the replica that updates
     * it. */
    bool optimizer_slot;

    /* True if no list of variables contains the variable, because it is internal to the library, or because
     * its optimizer is being destroyed. */
    bool hidden;

    /* The number of optimizers that update this variable. For an optimizer's slot it is 1. It is changed with
     * the team's turn. relaxed, everywhere: a replica that has not returned from a poisoned run may read it
     * meanwhile. */
    _Atomic uint32_t users;

    /* The NUMA node of the one copy, or of all shards, of a variable in central storage. */
    uint32_t node;

    ditto_partitioner partitioner; /* as given by the user */
    struct dti_slicing *slicing;   /* NULL if the variable is not sliced */
    struct dti_slice_order order;
    uint32_t pieces;
    struct dti_variable_piece *piece; /* [pieces] */

    /* [pieces] The locks and versions of a parameter (parameters/parameter.h). NULL for other variables.
     * Those of a slot are the array of the parameter that it belongs to, and borrows_shards is true. */
    struct dti_parameter_shard *shard;
    bool borrows_shards;

    /* What takes locks in a parameter, and the bytes of one access to elements without a lock
     * (parameters/shared_elements.c). */
    ditto_concurrency concurrency;
    uint32_t access_bytes;

    /* A shard has shard_rows rows, if a parameter has several, and each of the first large_shards has one
     * more. */
    size_t shard_rows, large_shards;

    /* What each writer of a HOGWILD parameter has counted (parameters/parameter.h). NULL for other
     * variables. */
    struct dti_shard_counts *counts;
    size_t counts_bytes; /* the size of what one writer has */
    uint32_t num_writers;

    /* The memory of all shards of a HOGWILD or FREE_READS parameter that has several. It is a mapping of
     * block_bytes bytes, in which the elements begin at block_elements. NULL for other variables, whose
     * pieces are allocated one by one. */
    void *block;
    size_t block_bytes;
    char *block_elements;

    bool is_colocated; /* its copies were planned as those of another variable */

    /* The number of physical copies. A variable of several pieces has one copy of each piece. A split only
     * appends copies, so `copy` and the copies in it stay valid. It changes `copy_of` and `copies` after it
     * has filled in the new copies. */
    _Atomic uint32_t copies;

    /* [copies] If the variable has one piece, each copy is the component of one or more replicas. */
    struct dti_copy *copy;

    /* [copies] The NUMA node of each copy. DTI_OWN_NODE stands for the node of the copy's owner. */
    uint32_t *copy_node;

    /* [pieces] The copies of each piece, which are elements of `copy`. Guarded by the turn. */
    struct dti_copy_set *copies_of_piece;

    /* [replicas] The index in `copy` of each replica's component. Only used if the variable has one piece, or
     * is sliced. */
    _Atomic uint32_t *copy_of;

    struct dti_generation *generation; /* [replicas] */
    struct ditto_variable *next;       /* in the strategy's list of variables */
};
#define DTI_OWN_NODE UINT32_MAX

/* Defined in mirrored.c, in sync_on_read.c, in slices.c and in parameters/parameter.c. */
extern const struct dti_variable_kind dti_mirrored_kind, dti_sync_on_read_kind, dti_sliced_kind,
    dti_parameter_kind;

/* Returns the name that the options give to the variable. */
static inline const char *dti_variable_name(const ditto_variable_options *options)
{
    return options->name != NULL ? options->name : "Variable";
}

/* Where the variables of a strategy are stored. */
struct dti_storage {
    /* True if each variable has a single copy of each piece, and all pieces lie on NUMA node `node`.
     * Optimizers' slots are an exception. */
    bool central;
    uint32_t node;

    /* True if the variables are parameters. Each piece has a single copy, and the pieces of all variables are
     * dealt out over these nodes in turn. */
    bool parameters;
    uint32_t num_writers; /* the replicas of all workers */
    uint32_t num_nodes;
    const uint32_t *nodes; /* [num_nodes] they live as long as the strategy */
};

/* Prepares a new strategy for variables. Returns DITTO_ERR_NO_MEMORY. The end of the team undoes it. */
ditto_status dti_vars_create(struct dti_team *team, const struct dti_storage *storage);
const struct dti_storage *dti_vars_storage(const struct dti_team *team);

/* Creates a variable. Cross context. The arguments have been checked. The errors are those of
 * ditto_variable_create. */
ditto_status dti_variable_create(struct dti_team *team, const ditto_tensor *initial,
                                 const ditto_variable_options *options, ditto_variable **out);

/* Destroys the variable. Returns DITTO_ERR_BUSY, and leaves the variable as it is, if an optimizer updates
 * the variable or a call on it has not returned. */
ditto_status dti_variable_destroy(ditto_variable *v);

/* dti_variable_keep adds a reference to the struct. dti_variable_drop removes one, and frees the struct when
 * it removes the last one. A reference does not prevent that the variable is destroyed. */
void dti_variable_keep(ditto_variable *v);
void dti_variable_drop(ditto_variable *v);

/* Sets *rule to the rule of a write. Returns DITTO_ERR_RANGE if there is no such operation, and
 * DITTO_ERR_UNSUPPORTED if the dtype does not have it. */
ditto_status dti_assign_rule(ditto_assign_op op, ditto_dtype dtype, enum dti_rule *rule);

/* Stands at the beginning of each public function that takes a variable. It makes the function return
 * DITTO_ERR_INVALID if the variable is NULL, and DITTO_ERR_CONTEXT if its strategy was destroyed. Otherwise
 * neither the variable nor its strategy can be destroyed before the function returns. */
#define DTI_HOLD_VARIABLE(v)               \
    DTI_LEAVES_GATE(held_variable_, NULL); \
    DTI_TRY(dti_variable_hold((v), &held_variable_))
ditto_status dti_variable_hold(const ditto_variable *v, struct dti_gate **held);

/* Does the same for a variable to which the caller has a reference. Returns DITTO_ERR_CONTEXT also if the
 * variable itself was destroyed. Returns DITTO_ERR_NO_MEMORY if there is no memory for the list of gates. */
ditto_status dti_variable_hold_kept(const ditto_variable *v, struct dti_gates *held);

/* Stands at the beginning of each public function that takes a variable in replica context and does not
 * access its elements. It does what DTI_HOLD_VARIABLE does, and also fails with DITTO_ERR_CONTEXT if the
 * variable belongs to another strategy than the replica. A replica in a run enters no gate, because the run
 * has the turn. A thread's replica of the default strategy enters the gate. */
#define DTI_HOLD_OWN_VARIABLE(r, v)        \
    DTI_LEAVES_GATE(held_variable_, NULL); \
    DTI_TRY(dti_variable_hold_own((r), (v), &held_variable_))
ditto_status dti_variable_hold_own(const struct dti_replica *r, const ditto_variable *v,
                                   struct dti_gate **held);

/* What a call in replica context holds while it accesses the elements of a variable. A replica in a run holds
 * nothing, and `gate` is NULL. */
struct dti_variable_use {
    struct dti_gate *gate;
    bool has_frame;
    struct dti_frame frame; /* pushed if has_frame is true, and otherwise not initialised */
};

/* Stands at the beginning of each public function that accesses the elements of a variable in replica
 * context. It does what DTI_HOLD_OWN_VARIABLE does. Each thread has its own replica of the default strategy,
 * but all threads share the variables. A thread's replica of the default strategy therefore also takes the
 * turn until the function returns, or fails with DITTO_ERR_FORKED. For a replica in a run the macro costs as
 * much as DTI_HOLD_OWN_VARIABLE. */
#define DTI_USE_OWN_VARIABLE(r, v)                                                                \
    __attribute__((cleanup(dti_variable_release), unused)) struct dti_variable_use use_variable_; \
    use_variable_.gate = NULL;                                                                    \
    DTI_TRY(dti_variable_use((r), (v), &use_variable_))
ditto_status dti_variable_use(struct dti_replica *r, const ditto_variable *v, struct dti_variable_use *use);
void dti_variable_leave(struct dti_variable_use *use);
static inline void dti_variable_release(struct dti_variable_use *use)
{
    if (use->gate != NULL)
        dti_variable_leave(use);
}

/* -- Optimizers (optimizer/started_step.c, optimizer/optimizer.c) -- */

/* Returns INVALID if the replica has started a step of an optimizer and not finished it. The message begins
 * with `what`. */
ditto_status dti_step_check_no_step(const struct dti_replica *self, const char *what);

/* Returns INVALID if the replica has started a step that updates the variable, or the variable of this slot,
 * and not finished it. */
ditto_status dti_step_check_variable(const struct dti_replica *self, const ditto_variable *v);

/* Ends what ditto_component has given a function of a worker, whose team is given. Each shard that its
 * replicas may have changed in place counts one update for each of them. Called on the thread of the worker,
 * after the function has returned on all replicas, and before it counts as finished. */
void dti_parameters_end_function(const struct dti_team *worker);

static inline bool dti_variable_may_differ(const ditto_variable *v)
{
    return atomic_load_explicit(&v->may_differ, memory_order_relaxed);
}

/* Tells all optimizers of v that v->may_differ has changed, because the copies that an optimizer writes
 * depend on it. The caller is a thread that has the turn, or a replica in a run, and no replica is in
 * ditto_apply. */
void dti_optimizers_see_copies(const ditto_variable *v);

/* -- Pieces and copies -- */

/* Returns DITTO_ERR_UNSUPPORTED if the variable has several pieces, because then no component is contiguous
 * in memory. The message begins with `what`, which names the operation that was asked for. */
ditto_status dti_variable_check_whole(const ditto_variable *v, const char *what);

/* Returns the copy that is the component of a replica. The variable must have one piece. Any thread may call
 * this. */
static inline const struct dti_copy *dti_copy_of(const ditto_variable *v, uint32_t replica)
{
    /* acquire: pairs with the release in split (copies.c), so that this thread sees the copy's
     * address and contents. */
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

/* Returns the copy of a piece that is nearest to a replica. */
static inline char *dti_nearest(const ditto_variable *v, uint32_t piece, uint32_t replica)
{
    bool is_own = v->pieces == 1 || (v->slicing != NULL && v->slicing->rank[replica] == piece);
    return is_own ? dti_variable_component(v, replica) : v->copies_of_piece[piece].copy[0].data;
}

/* Returns a tensor of a slice, without data, and in *first its first index in the sliced dimension. */
ditto_tensor dti_slice_spec(const ditto_variable *v, uint32_t slice, size_t *first);

/* Returns the first of the replicas that mirror the slice of this replica. */
static inline uint32_t dti_slice_first_replica(const struct dti_slicing *s, uint32_t replica)
{
    return s->mirrors == NULL ? replica : s->mirrors->replica[s->mirrors->start[s->rank[replica]]];
}

/* Returns the number of replicas that have a component of the same elements. */
static inline uint32_t dti_variable_mirrors(const ditto_variable *v)
{
    uint32_t n = dti_team_all_replicas(v->team);
    return v->slicing != NULL ? n / v->order.slices : n;
}

/* Returns the index of the piece that contains the element. */
uint32_t dti_variable_piece_of(const ditto_variable *v, size_t element);

/* -- Splits: shared copies become one copy for each replica --
 *
 * The components of a mirrored variable are equal, so they share copies until an update writes different
 * values to them. Before such an update the copies are split. Each replica that does not own the copy that it
 * uses then gets its own copy with the same contents. */

/* Returns true if shared copies of the variable can be split. Also returns true if they have been split, or
 * were never shared. The copies of a variable that is sync-on-read, sharded, in central storage or an
 * optimizer's slot, or that aggregates, stay as they were created. Any context. */
bool dti_variable_is_splittable(const ditto_variable *v);

/* Returns DITTO_ERR_INVALID if the replicas share copies that cannot be split. An update in which each
 * replica has its own arguments is impossible then. Any context, with the turn. */
ditto_status dti_variable_check_each(const ditto_variable *v);

/* Splits the copies of a mirrored variable if they are shared, and records that its components may differ.
 * The variable must have passed dti_variable_check_each. Returns DITTO_ERR_NO_MEMORY or DITTO_ERR_SYSTEM if a
 * replica could not allocate its copy. Nothing has changed then. Cross context, between dti_cross_enter and
 * dti_cross_leave. */
ditto_status dti_variable_split(ditto_variable *v);

/* Records that the components of the variable may differ, if it has elements and there are several replicas,
 * and updates its optimizers. The caller has the turn, or is a replica in a run, and no other thread uses the
 * variable. */
void dti_variable_set_may_differ(ditto_variable *v);
/* Over several hosts: compares a cross write of the variable, whose argument must have the same bytes. */
ditto_status dti_variable_compare(const ditto_variable *v, enum dti_rule rule, const void *data,
                                  size_t bytes);

/* Records that an assignment makes the components equal, and updates the optimizers. The caller has the turn,
 * or is a replica in a run. Only the threads that take part in the assignment may use the variable meanwhile,
 * and they only write to the copies. */
void dti_variable_set_equal(ditto_variable *v);

/* -- Elements -- */

/* Changes elements [first, end) of every copy by the rule. `value` begins with element `first`. */
void dti_copies_write(const ditto_variable *v, enum dti_rule rule, size_t first, size_t end,
                      const void *value);

/* Copies elements [first, end) of the copy nearest to the replica to dst. */
void dti_copies_read(const ditto_variable *v, uint32_t replica, size_t first, size_t end, void *dst);

/* The same for elements in the order of the pieces, which is another one if the variable is sliced in a
 * dimension that is not the first. */
void dti_pieces_write(const ditto_variable *v, enum dti_rule rule, size_t first, size_t end,
                      const void *value);
void dti_pieces_read(const ditto_variable *v, uint32_t replica, size_t first, size_t end, void *dst);

/* The reads and writes in cross context of a mirrored variable, in mirrored.c. */
ditto_status dti_mirrored_read(ditto_variable *v, void *dst);
ditto_status dti_mirrored_write(ditto_variable *v, enum dti_rule rule, const void *value);

/* The name of a write in replica context, for messages. */
const char *dti_assign_name(enum dti_rule rule);

/* Returns INVALID if the replicas' values for the variable can't be combined, because it has no
 * aggregation. */
ditto_status dti_variable_check_aggregates(const ditto_variable *v);

/* The arguments of a read or a write in cross context, which dti_share passes to its function. */
struct dti_cross_access {
    ditto_variable *v;
    enum dti_rule rule;
    const char *value;
    char *dst;
};

/* -- Generations -- */

/* Records that the component of a replica may have changed. */
static inline void dti_changed(const ditto_variable *v, uint32_t replica)
{
    /* relaxed: there is one writer, and readers only compare the number. */
    _Atomic uint64_t *count = &v->generation[replica].count;
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Records that all components may have changed. Cross context, under the turn. */
static inline void dti_all_changed(const ditto_variable *v)
{
    for (uint32_t i = 0; i < v->num_replicas; i++)
        dti_changed(v, i);
}

#endif
