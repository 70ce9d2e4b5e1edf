/* include/ditto/value.h - distributed values: one tensor per replica, or one that is equal on all.
 *
 * A value is a handle to one of
 *   plain        one tensor of the program's own
 *   per-replica  one tensor for each replica, in replica order, each in memory on its replica's node. Components may
 *                differ in shape (batches of different length), not in dtype or rank
 *   mirrored     one tensor that is equal wherever there is a copy of it; it stands for its first copy
 *   variable     a variable, by reference
 *   slices       rows with indices (ditto/slices.h) for each replica
 *   nest         values with names, or in order: then their names are "0", "1", ...
 * Values are immutable, but for what a program does to memory of its own that a plain one refers to.
 *
 * Ownership: whoever is handed a value through an `out` parameter gives it to ditto_value_destroy, once. A nest keeps
 * its members alive, a component its container; both may be destroyed in any order. Values are kept by their strategy
 * for the next ones: on a steady path making and destroying them allocates nothing.
 *
 * Threads: a handle is used by one thread at a time, or read by many. */
#ifndef DITTO_VALUE_H
#define DITTO_VALUE_H

#include <ditto/slices.h>
#include <ditto/strategy.h>
#include <ditto/tensor.h>
#include <ditto/variable.h>

DITTO_BEGIN

typedef struct ditto_value ditto_value;

typedef enum ditto_value_kind {
    DITTO_PLAIN = 1,
    DITTO_PER_REPLICA = 2,
    DITTO_MIRRORED_VALUE = 3,
    DITTO_VARIABLE = 4,
    DITTO_SLICES = 5,
    DITTO_NEST = 6,
} ditto_value_kind;

/** A dimension in which components differ. */
#define DITTO_ANY_SIZE SIZE_MAX

/* -- Making: cross-replica context, with the errors of ditto/strategy.h. For all: DITTO_ERR_INVALID for a NULL or a
 *    tensor that makes no sense, DITTO_ERR_RANGE for one that overflows, DITTO_ERR_NO_MEMORY -- */

/** A plain value: a view.
 *  @param tensor  copied, but not its data: that stays the caller's, and must live as long as the value is
 *                 used. A merge function gives such a value of memory that is still there after it has
 *                 returned. A value of one of its local arrays is refused (INVALID) */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_value(ditto_strategy *strategy,
                                                            const ditto_tensor *tensor, ditto_value **out);

/** Says what a replica's component is: sets *component to a view, which is copied when the function has
 *  returned, and before it is called again. So it may give the same memory each time, but not a local array
 *  (INVALID).
 *  @return DITTO_OK, or an error that ends the making */
typedef ditto_status (*ditto_value_fn)(uint32_t replica, uint32_t replicas, ditto_tensor *component,
                                       void *user);
/** A per-replica value, also for one replica. The function is called on this thread, once per replica, ids ascending;
 *  each component is copied by its replica, into memory on its node.
 *  @retval DITTO_ERR_INVALID  components differ in dtype or rank
 *  @retval DITTO_ERR_USER     the function failed (or the status that it returned) */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_value_from_function(ditto_strategy *strategy,
                                                                          ditto_value_fn function, void *user,
                                                                          ditto_value **out);
/** A per-replica value of arrays: replica r gets tensors[r * each] to tensors[r * each + each - 1]; more than one are
 *  stacked along a new first axis.
 *  @param tensors  [N * each], copied
 *  @retval DITTO_ERR_SHAPE    arrays of one replica have different shapes; stacked they have too many dimensions
 *  @retval DITTO_ERR_INVALID  different dtypes or ranks */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_value_from_tensors(ditto_strategy *strategy,
                                                                         const ditto_tensor *tensors,
                                                                         uint32_t each, ditto_value **out);
/** Slices for each replica.
 *  @param slices      [N], copied
 *  @param dense_rows  of the array whose rows they are; 0: not known
 *  @retval DITTO_ERR_INVALID  different dtypes or lengths of rows
 *  @retval DITTO_ERR_RANGE    an index is negative, or not below dense_rows */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_value_from_slices(ditto_strategy *strategy,
                                                                        const ditto_slices *slices,
                                                                        size_t dense_rows, ditto_value **out);
/** A variable as a value: by reference, wherever values are taken. When the variable has been destroyed, every
 *  call that looks at the contents of the value, or of what was taken from it, gives DITTO_ERR_CONTEXT. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_value(ditto_variable *variable, ditto_value **out);

/** Writes one value to a variable, as ditto_variable_assign, _assign_add and _assign_sub do. From a mirrored variable it goes
 *  component to component; from a sync-on-read one what reading it gives.
 *  @retval DITTO_ERR_INVALID  a value with a component for each replica, slices, a nest; another dtype; also as ditto_variable_assign
 *  @retval DITTO_ERR_SHAPE    another shape
 *  @retval DITTO_ERR_CONTEXT  a value of another strategy */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign_value(ditto_variable *variable,
                                                                   const ditto_value *value);
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign_add_value(ditto_variable *variable,
                                                                       const ditto_value *value);
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign_sub_value(ditto_variable *variable,
                                                                       const ditto_value *value);

/** A nest of values of one strategy.
 *  @param names    [count], copied; NULL: ordered, "0", "1", ... No name is empty, has a '/', or stands twice
 *  @param members  [count], kept alive; they stay the caller's too
 *  @retval DITTO_ERR_CONTEXT  a member of another strategy */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_nest(ditto_strategy *strategy, const char *const *names,
                                                           const ditto_value *const *members, uint32_t count,
                                                           ditto_value **out);
/** The other way round of ditto_strategy_local_results: values of equal structure, one for each replica,
 *  become one value of that structure. A leaf that is one and the same value or variable for all becomes
 *  that. The components of a variable, in the order of the replicas, become the variable. Other leaves become
 *  per-replica values.
 *  @param values       [N]
 *  @param always_wrap  not 0: a leaf that is the same for all becomes per-replica too, unless it is a variable
 *  @retval DITTO_ERR_INVALID  different structures, dtypes or ranks; a leaf that has components itself */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_regroup(ditto_strategy *strategy,
                                                              const ditto_value *const *values,
                                                              int always_wrap, ditto_value **out);

/** Gives the handle back. NULL is allowed; any thread; also after its strategy was destroyed.
 *  @retval DITTO_ERR_CONTEXT  inside a function on a replica's thread; nothing was done */
DITTO_API ditto_status ditto_value_destroy(ditto_value *value);

/* -- Looking: any context; what is handed out is borrowed from the value and lives as long. For all: DITTO_ERR_INVALID
 *    for a NULL, DITTO_ERR_CONTEXT when the value's strategy was destroyed -- */

/** 0 for NULL. */
DITTO_API ditto_value_kind ditto_value_kind_of(const ditto_value *value);
/** dtype, rank and the dimensions that all components share, the others DITTO_ANY_SIZE; data is NULL. Of slices: [any,
 *  row].
 *  @retval DITTO_ERR_INVALID  a nest: ask for its members */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_element_spec(const ditto_value *value, ditto_tensor *out);

/** The one tensor of a plain or mirrored value, or of a per-replica value of one replica that was selected.
 *  @retval DITTO_ERR_INVALID  it is not one tensor: choose a replica, or reduce it */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_tensor(const ditto_value *value, ditto_tensor *out);
/** The same as a number, of any real dtype.
 *  @retval DITTO_ERR_SHAPE        it has not one element
 *  @retval DITTO_ERR_UNSUPPORTED  complex */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_f64(const ditto_value *value, double *out);
/** One replica's tensor: of a per-replica value its component, of a mirrored one the copy at the replica (else the
 *  first), of a plain one itself, of a variable its component, to be read only.
 *  @retval DITTO_ERR_RANGE    no such replica
 *  @retval DITTO_ERR_INVALID  a nest, or slices */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_component(const ditto_value *value, uint32_t replica,
                                                             ditto_tensor *out);
/** One replica's slices. dense_rows may be NULL.  @retval DITTO_ERR_INVALID  they are no slices */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_slices(const ditto_value *value, uint32_t replica,
                                                          ditto_slices *out, size_t *dense_rows);
/** The variable of a value that is one; else NULL. */
DITTO_API ditto_variable *ditto_value_variable(const ditto_value *value);

/** Members of a nest; 0 for other values. */
DITTO_API uint32_t ditto_value_members(const ditto_value *value);
/** Name of a member; NULL when there is none. */
DITTO_API const char *ditto_value_member_name(const ditto_value *value, uint32_t member);
/** A member by its path, names joined by '/': "batch/0". NULL or "": the value itself.
 *  @retval DITTO_ERR_NOT_FOUND  no such member; the message lists those that there are */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_member(const ditto_value *value, const char *path,
                                                          const ditto_value **out);

/** The value or variable that a component was taken from, by ditto_value_select or ditto_strategy_local_results; else
 *  the value itself. */
DITTO_API const ditto_value *ditto_value_container(const ditto_value *component);

/** One replica's part, as a value of its own: of a variable the variable, of a nest a nest, of a plain value itself.
 *  Cross-replica context.
 *  @retval DITTO_ERR_RANGE  no such replica */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_select(ditto_value *value, uint32_t replica,
                                                          ditto_value **out);
/** The parts of all replicas, in their order; a plain value gives itself alone, a variable its components, a nest one
 *  nest per replica. Cross-replica context.
 *  @param out    [out] [N] values, each the caller's; NULL beyond *count
 *  @param count  [out] N, or 1 */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_local_results(ditto_strategy *strategy,
                                                                    ditto_value *value, ditto_value **out,
                                                                    uint32_t *count);

/* -- Replica context -- */

/** This replica's tensor: as ditto_value_component with its own id. Of a per-replica value it lies on this replica's
 *  node.
 *  @retval DITTO_ERR_CONTEXT  a value of another strategy; self is not the thread's own */
DITTO_API DITTO_NODISCARD ditto_status ditto_local(ditto_replica *self, const ditto_value *value,
                                                   ditto_tensor *out);

DITTO_END
#endif
