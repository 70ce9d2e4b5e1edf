/* include/ditto/value.h - distributed values: one tensor per replica, or one that is equal on all. */
#ifndef DITTO_VALUE_H
#define DITTO_VALUE_H

#include <ditto/slices.h>
#include <ditto/strategy.h>
#include <ditto/tensor.h>
#include <ditto/variable.h>

DITTO_BEGIN

/** @defgroup ditto_values Distributed values
 *
 *  A value is a handle to one or several tensors (see ditto_value_kind). It is immutable. Only two things
 *  that it refers to may change: the program's own memory in a plain value, and a variable. Several threads
 *  may use a value at the same time, but none while another one destroys the handle.
 *
 *  A function that returns a `ditto_value *` through an `out` parameter gives it to the caller. The caller
 *  destroys it once with ditto_value_destroy. A `const ditto_value *` is not given to the caller. A nest
 *  keeps its members alive, and a component its container, so they may be destroyed in any order. The
 *  strategy keeps the memory of destroyed values for later ones.
 *
 *  Members of nests are const, so arrays of values are `const ditto_value *const *`. In C, an array of
 *  handles that are not const (from ditto_strategy_local_results, or the arguments of a merge function) needs
 *  a cast to this type. In C++ it does not.
 *  @{ */

/** A distributed value. */
typedef struct ditto_value ditto_value;

/** What a value consists of. */
typedef enum ditto_value_kind {
    DITTO_VALUE_PLAIN = 1, /**< one tensor */

    /** One tensor for each replica, in replica order, each in memory on its replica's node. The components
     *  may differ in shape (for example batches of different length), but not in dtype or rank. */
    DITTO_VALUE_PER_REPLICA = 2,

    /** One tensor that is equal in all its copies. Where one tensor is needed, the first copy is used. */
    DITTO_VALUE_MIRRORED = 3,

    DITTO_VALUE_VARIABLE = 4, /**< a reference to a variable */
    DITTO_VALUE_SLICES = 5,   /**< for each replica, rows with indices (ditto/slices.h) */

    /** Several values with names. If no names were given, they are "0", "1", and so on. */
    DITTO_VALUE_NEST = 6,
} ditto_value_kind;

/** Most bytes in the name of a member of a nest, and of a result of a run. */
#define DITTO_MAX_RESULT_NAME_BYTES 47

/** @name Creating values
 *
 *  The functions are called in cross-replica context, and also return the errors of the group "Strategies"
 *  (ditto/strategy.h). All of them return DITTO_ERR_INVALID for a NULL pointer or an invalid tensor,
 *  DITTO_ERR_RANGE for a tensor whose size overflows, DITTO_ERR_NO_MEMORY, and DITTO_ERR_SYSTEM if the
 *  calling thread could not be pinned. `out` is set only on DITTO_OK.
 *  @{ */

/** Creates a plain value, which is a view of a tensor.
 *
 *  @param strategy  the strategy
 *  @param tensor    copied, except for its data, which must live as long as the value is used
 *  @param out       [out] the value
 *  @return DITTO_OK, or an error of this group
 *  @par Cost
 *  One allocation. Nothing is copied. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_value(ditto_strategy *strategy,
                                                            const ditto_tensor *tensor, ditto_value **out);

/** A function of the program that provides the component of a replica.
 *
 *  The component is copied after the function has returned, and before the next call. The function may
 *  therefore return the same memory each time, but not a local array (DITTO_ERR_INVALID).
 *
 *  @param replica       id of the replica
 *  @param num_replicas  number of replicas
 *  @param user          the pointer given to ditto_strategy_value_from_function
 *  @param component     [out] a view of the component
 *  @return DITTO_OK, or an error, with which the creation fails */
typedef ditto_status (*ditto_value_fn)(uint32_t replica, uint32_t num_replicas, void *user,
                                       ditto_tensor *component);

/** Creates a per-replica value from a function, even if there is one replica. The function is called on this
 *  thread, once per replica of this host, with ascending ids. Each component is copied by its replica into
 *  memory on the replica's node.
 *
 *  @param strategy  the strategy
 *  @param function  provides the components
 *  @param user      passed to the function
 *  @param out       [out] the value
 *  @return DITTO_OK, an error of the function, or:
 *  @retval DITTO_ERR_INVALID  the components differ in dtype or rank; a component is a local array
 *  @retval DITTO_ERR_USER     the function returned a status that is neither DITTO_OK nor an error
 *  @par Cost
 *  One call of the function and one copy for each replica of this host. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_value_from_function(ditto_strategy *strategy,
                                                                          ditto_value_fn function, void *user,
                                                                          ditto_value **out);

/** Creates a per-replica value from arrays. Replica r of this host, from 0 on, receives tensors[r * each]
 *  to tensors[r * each + each - 1]. If each is more than 1, they are stacked along a new first axis.
 *
 *  @param strategy  the strategy
 *  @param tensors   [R * each] the arrays of this host's R replicas, which are copied
 *  @param each      number of arrays for each replica
 *  @param out       [out] the value
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID  dtypes or ranks differ; each is 0
 *  @retval DITTO_ERR_RANGE    N * each is above UINT32_MAX; the size of a stacked array overflows
 *  @retval DITTO_ERR_SHAPE    the arrays of one replica differ in shape; the stacked array has too many
 *                             dimensions
 *  @par Cost
 *  One copy of each array. Replicas copy in parallel. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_value_from_tensors(ditto_strategy *strategy,
                                                                         const ditto_tensor *tensors,
                                                                         uint32_t each, ditto_value **out);

/** Creates a value of slices for each replica.
 *
 *  @param strategy    the strategy
 *  @param slices      [R] the slices of this host's R replicas, which are copied
 *  @param dense_rows  number of rows of the array that the rows belong to; 0 if it is not known
 *  @param out         [out] the value
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID  dtypes or lengths of rows differ
 *  @retval DITTO_ERR_RANGE    an index is negative, or not below dense_rows
 *  @par Cost
 *  One copy of the slices, and a look at each index. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_value_from_slices(ditto_strategy *strategy,
                                                                        const ditto_slices *slices,
                                                                        size_t dense_rows, ditto_value **out);

/** Creates a value that refers to a variable. When the variable has been destroyed, every call that uses the
 *  contents of this value, of a component of it, or of a nest with it returns DITTO_ERR_CONTEXT.
 *
 *  @param variable  the variable
 *  @param out       [out] the value
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_UNSUPPORTED  the variable is cut into shards
 *  @par Cost
 *  One allocation. Nothing is copied. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_value(ditto_variable *variable, ditto_value **out);

/** Writes one value to a variable, as ditto_variable_assign does.
 *
 *  A value that refers to a variable is read as ditto_variable_read does, and the result is written. There
 *  is one exception. If both variables are mirrored and have a copy for each replica, each component gets the
 *  component of the same replica. If the components of the value may differ, shared copies of `variable` are
 *  first split for this, where ditto_copies allows it.
 *
 *  A value that was taken from `variable` by ditto_strategy_local_results is read before anything is written.
 *
 *  @param variable  the variable that is written
 *  @param op        what is done with the value
 *  @param value     one value: plain, mirrored, or a variable
 *  @return DITTO_OK, an error of ditto_variable_assign or ditto_variable_read, or one of:
 *  @retval DITTO_ERR_INVALID  a per-replica value; slices; a nest; another dtype
 *  @retval DITTO_ERR_SHAPE    another shape
 *  @retval DITTO_ERR_CONTEXT  a value of another strategy
 *  @par Cost
 *  That of ditto_variable_assign. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign_value(ditto_variable *variable,
                                                                   ditto_assign_op op,
                                                                   const ditto_value *value);

/** Creates a nest of values of one strategy.
 *
 *  @param strategy     the strategy
 *  @param names        [num_members] the names, which are copied. NULL means "0", "1", and so on. A name must
 *                      not be empty, contain '/', or occur twice. It has at most DITTO_MAX_RESULT_NAME_BYTES
 *                      bytes
 *  @param members      [num_members] the members. The nest keeps them alive, and the caller still destroys
 *                      its handles
 *  @param num_members  number of members
 *  @param out          [out] the nest
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID  a name is not allowed
 *  @retval DITTO_ERR_RANGE    a name is too long; more than 64 levels of nests
 *  @retval DITTO_ERR_CONTEXT  a member of another strategy
 *  @par Cost
 *  One allocation, and a copy of the names. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_nest(ditto_strategy *strategy, const char *const *names,
                                                           const ditto_value *const *members,
                                                           uint32_t num_members, ditto_value **out);

/** Creates one value from N values of equal structure, one for each replica. It undoes
 *  ditto_strategy_local_results for per-replica values, variables, and nests of these.
 *
 *  A leaf that is the same value or variable in all of them becomes that value or variable. The components of
 *  a variable, in the order of the replicas, become the variable. Other leaves are copied into per-replica
 *  values.
 *
 *  @param strategy     the strategy
 *  @param values       [R] the values, one for each of this host's R replicas
 *  @param always_wrap  if not 0, a leaf that is the same value in all of them becomes a per-replica value
 *                      too. A variable still becomes the variable. Over several hosts plain values always
 *                      do, because those of other hosts may differ, and slices cannot be regrouped
 *  @param out          [out] the value
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  structures, kinds, dtypes or ranks differ; different variables; a per-replica
 *                             value or slices that would become a component
 *  @retval DITTO_ERR_CONTEXT  a value of another strategy
 *  @par Cost
 *  Leaves that are equal on all replicas are shared, others are copied. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_regroup(ditto_strategy *strategy,
                                                              const ditto_value *const *values,
                                                              int always_wrap, ditto_value **out);

/** @} */

/** Destroys the handle of a value. It may be called after the value's strategy was destroyed.
 *
 *  @param value  the value; NULL is allowed
 *  @retval DITTO_OK           the handle is destroyed
 *  @retval DITTO_ERR_CONTEXT  called on a replica's thread, or in a function of a dataset; nothing was
 *                             done
 *  @par Cost
 *  The last handle of a value gives its memory to later values of the strategy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_destroy(ditto_value *value);

/** @name Reading values
 *
 *  These functions may be called in any context, unless they say otherwise. Pointers that they return are
 *  valid as long as the value, and as the tensor or variable that it refers to. Pointers into a variable are
 *  also only valid until its copies are split (see ditto_copies). The value itself then refers to the new
 *  copies. Functions that return a status return DITTO_ERR_INVALID for a NULL pointer, and DITTO_ERR_CONTEXT
 *  if the value's strategy was destroyed.
 *  @{ */

/** A dimension in which components differ. */
#define DITTO_ANY_SIZE SIZE_MAX

/** A member of a nest. Both pointers and the text are the nest's. */
typedef struct ditto_member {
    char name[DITTO_MAX_RESULT_NAME_BYTES + 1]; /**< its name */
    const ditto_value *value;                   /**< the member */
} ditto_member;

/** What a value is. */
typedef struct ditto_value_properties {
    size_t struct_size;    /**< set by DITTO_VALUE_PROPERTIES_INIT */
    ditto_value_kind kind; /**< its kind */

    /** dtype, rank, and the dimensions that all components share. The other dimensions are DITTO_ANY_SIZE.
     *  For slices the shape is [DITTO_ANY_SIZE, row_count]. dtype is 0 for a nest, and for a mirrored value
     *  that is on replicas of another host alone. data is NULL. */
    ditto_tensor spec;

    ditto_variable *variable; /**< the variable that it refers to; NULL for other kinds */

    /** The value that it was taken from by ditto_value_select or ditto_strategy_local_results. The value
     *  itself if it was not taken from any. */
    const ditto_value *container;

    uint32_t num_members;        /**< number of members of a nest; 0 for other kinds */
    const ditto_member *members; /**< [num_members] the members */
} ditto_value_properties;

/** Initial value of ditto_value_properties. */
#define DITTO_VALUE_PROPERTIES_INIT DITTO_OPTIONS_INIT(ditto_value_properties)

/** Says what a value is.
 *
 *  @param value  the value
 *  @param out    [out] start from DITTO_VALUE_PROPERTIES_INIT
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  struct_size is not set
 *  @par Cost
 *  Reads the shape of each component of this host. */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_info(const ditto_value *value,
                                                        ditto_value_properties *out);

/** Returns the one tensor of a plain value or of a mirrored value.
 *
 *  @param value  the value
 *  @param out    [out] a view of the tensor
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  the value is of another kind. The message says how to get a tensor of it */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_tensor(const ditto_value *value, ditto_tensor *out);

/** Returns the one element of a plain or mirrored value as a number. The dtype may be any real one, also an
 *  integer or bool. If the value is a component of a variable, a thread outside of runs waits until no run of
 *  the strategy writes it.
 *
 *  @param value  the value
 *  @param out    [out] the number
 *  @return DITTO_OK, an error of ditto_value_tensor, or one of:
 *  @retval DITTO_ERR_SHAPE        the tensor does not have exactly one element
 *  @retval DITTO_ERR_UNSUPPORTED  the tensor is complex */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_f64(const ditto_value *value, double *out);

/** Returns one replica's tensor. Of a per-replica value this is the component. Of a mirrored value it is the
 *  copy on the replica, or the first copy if there is none. Of a plain value it is the tensor. Of a variable
 *  it is the component, which must not be written.
 *
 *  @param value    the value
 *  @param replica  id of the replica
 *  @param out      [out] a view of the tensor
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_RANGE    there is no such replica
 *  @retval DITTO_ERR_INVALID  the value is a nest, or slices */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_component(const ditto_value *value, uint32_t replica,
                                                             ditto_tensor *out);

/** Returns one replica's slices.
 *
 *  @param value       the value
 *  @param replica     id of the replica
 *  @param out         [out] a view of the slices
 *  @param dense_rows  [out] number of rows of the array that the rows belong to, or 0 if unknown; may be NULL
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_RANGE    there is no such replica
 *  @retval DITTO_ERR_INVALID  the value is not slices */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_slices(const ditto_value *value, uint32_t replica,
                                                          ditto_slices *out, size_t *dense_rows);

/** Finds a member of a nest, or of nests in it, by its path.
 *
 *  @param value  the value
 *  @param path   names, joined by '/', for example "batch/0". NULL or "" means the value itself
 *  @param out    [out] the member, which stays the nest's
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_NOT_FOUND  there is no such member; the message lists the members of value
 *  @par Cost
 *  Compares the names of each level of the path. */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_member(const ditto_value *value, const char *path,
                                                          const ditto_value **out);

/** Creates a value that is one replica's part of another value. The part of a variable or of a plain value is
 *  that variable or value. The part of a nest is a nest of its members' parts. The part of slices is slices
 *  again, and the same for all replicas. The call is made in cross-replica context.
 *
 *  @param value    the value
 *  @param replica  id of the replica
 *  @param out      [out] the part, given to the caller
 *  @return DITTO_OK, an error of the group "Strategies", or one of:
 *  @retval DITTO_ERR_RANGE      there is no such replica
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the part
 *  @par Cost
 *  One allocation for each nest. No elements are copied. */
DITTO_API DITTO_NODISCARD ditto_status ditto_value_select(const ditto_value *value, uint32_t replica,
                                                          ditto_value **out);

/** Creates values that are the parts of all replicas, in replica order. The parts are those of
 *  ditto_value_select, with two exceptions: a plain value has one part, itself, and the parts of a variable
 *  that is not in a nest are its components. The call is made in cross-replica context.
 *
 *  @param strategy     the strategy of the value
 *  @param value        the value
 *  @param out          [out] [R] the parts of this host's R replicas, each given to the caller; NULL from
 *                       *num_results on, or everywhere after DITTO_ERR_NO_MEMORY
 *  @param num_results  [out] number of parts: R, or 1 for a plain value
 *  @return DITTO_OK, an error of the group "Strategies", or one of:
 *  @retval DITTO_ERR_CONTEXT    a value of another strategy
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for the parts
 *  @par Cost
 *  That of ditto_value_select for each replica. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_local_results(ditto_strategy *strategy,
                                                                    const ditto_value *value,
                                                                    ditto_value **out, uint32_t *num_results);

/** Returns the calling replica's tensor, as ditto_value_component does. The call is made in replica context,
 *  on the replica's own thread.
 *
 *  @param self   the calling replica
 *  @param value  the value
 *  @param out    [out] a view of the tensor
 *  @return DITTO_OK, an error of ditto_value_component, or:
 *  @retval DITTO_ERR_CONTEXT  a value of another strategy; self is not the calling thread's replica */
DITTO_API DITTO_NODISCARD ditto_status ditto_local(ditto_replica *self, const ditto_value *value,
                                                   ditto_tensor *out);

/** @} */
/** @} */

DITTO_END
#endif
