/* include/ditto/variable.h - values that exist once per replica and stay consistent. */
#ifndef DITTO_VARIABLE_H
#define DITTO_VARIABLE_H

#include <ditto/strategy.h>
#include <ditto/tensor.h>

DITTO_BEGIN

/** @defgroup ditto_variables Variables
 *
 *  A variable has one component per replica. A replica's write to a mirrored variable (ON_WRITE) aggregates
 *  the values of all replicas, and writes the result to all components. A replica's write to a sync-on-read
 *  variable (ON_READ) changes the replica's own component. A read across replicas aggregates the components.
 *
 *  Each component of a sync-on-read variable has its own physical copy. The components of a mirrored variable
 *  are equal, so they share one copy per NUMA node. ditto_copies names the exceptions.
 *  @{ */

/** A variable of a strategy. */
typedef struct ditto_variable ditto_variable;

/** When the components of a variable are synchronized. */
typedef enum ditto_synchronization {
    DITTO_SYNCHRONIZATION_DEFAULT = 0, /**< DITTO_ON_WRITE */
    DITTO_ON_WRITE = 1,                /**< mirrored */
    DITTO_ON_READ = 2,                 /**< sync-on-read */
} ditto_synchronization;

/** How the components of a variable, or the replicas' values for them, are combined. The numbers differ from
 *  those of ditto_op. */
typedef enum ditto_aggregation {
    DITTO_AGGREGATE_DEFAULT = 0, /**< DITTO_AGGREGATE_NONE */

    /** Calls that would have to combine values return DITTO_ERR_INVALID: a replica's write to a mirrored
     *  variable, and a read or write of a sync-on-read variable across replicas. An update in which each
     *  replica has its own arguments is allowed (see ditto_copies). */
    DITTO_AGGREGATE_NONE = 0x40,

    DITTO_AGGREGATE_SUM = 0x41,                /**< the sum over the replicas */
    DITTO_AGGREGATE_MEAN = 0x42,               /**< the mean over the replicas */
    DITTO_AGGREGATE_ONLY_FIRST_REPLICA = 0x43, /**< the value of replica 0 */
} ditto_aggregation;

/** What a write does with its value. */
typedef enum ditto_assign_op {
    DITTO_ASSIGN = 1,     /**< variable = value */
    DITTO_ASSIGN_ADD = 2, /**< variable = variable + value */
    DITTO_ASSIGN_SUB = 3, /**< variable = variable - value */
} ditto_assign_op;

/** How many physical copies a variable has.
 *
 *  Two calls can make the components of a mirrored variable differ: an update in which each replica has its
 *  own arguments (ditto/merge.h), and a write from a variable whose components differ
 *  (ditto_variable_assign_value and similar functions). Such an update needs a copy for each replica. The
 *  shared copies of a variable without aggregation are split before its function is called, and stay split.
 *  The copies of variables with aggregation, in shards, or in central storage, and of slots of an optimizer
 *  are never split. If they are shared, such an update is refused (DITTO_ERR_INVALID).
 *
 *  When components differ, additions and subtractions in either context, indexed updates, and optimizers
 *  change every copy from its own value. An assignment of one value makes the components equal again. See
 *  docs/semantics.md. */
typedef enum ditto_copies {
    /** Sync-on-read: one for each replica. Mirrored: one per NUMA node, or one for each replica after a
     *  split. Central storage: one. */
    DITTO_COPIES_DEFAULT = 0,

    /** One for each replica from the start. Central storage keeps one copy nevertheless, and
     *  ditto_variable_describe says so. */
    DITTO_COPIES_PER_REPLICA = 1,
} ditto_copies;

/** How a large variable is cut into shards or slices.
 *
 *  A shard is a run of rows (of the first dimension). Each shard exists once. Shards are placed on the NUMA
 *  nodes of the replicas in turn, and in central storage on its node. Of n shards the first (rows mod n) have
 *  one row more than the others. If one shard results, nothing is cut, and the variable is like any other.
 *  Scalars and variables without elements are never cut.
 *
 *  A slice is a range of indices of any dimension. Each replica has one, in memory of its node. */
typedef enum ditto_partition {
    DITTO_PARTITION_DEFAULT = 0, /**< one shard */
    DITTO_PARTITION_FIXED = 1,   /**< num_shards shards, at most one per row */

    /** The size of the variable divided by `bytes` (0: 256 KiB), rounded up, at most num_shards (0: 1) and at
     *  most one per row. A shard may therefore have fewer than `bytes` bytes. */
    DITTO_PARTITION_MIN_SIZE = 2,

    /** As few shards as have at most `bytes` each, but at most num_shards (0: no limit). A row is not cut. */
    DITTO_PARTITION_MAX_SIZE = 3,

    /** A slice of dimension slice_axis for each rank of the groups of slice_along (both are fields of
     *  ditto_variable_options). Of n slices the first (extent mod n) have one index more than the others. The
     *  replicas that have the same rank mirror a slice, and those of one NUMA node share a copy of it. Such a
     *  variable is *sliced*. */
    DITTO_PARTITION_BY_REPLICA = 4,
} ditto_partition;

/** A rule for cutting variables into shards. */
typedef struct ditto_partitioner {
    ditto_partition kind; /**< the rule */
    size_t num_shards;    /**< see ditto_partition */
    size_t bytes;         /**< see ditto_partition */
} ditto_partitioner;

/** What workers do that read and write one parameter (ditto/parameter.h) at the same time. */
typedef enum ditto_concurrency {
    DITTO_CONCURRENCY_DEFAULT = 0, /**< DITTO_CONCURRENCY_LOCKED */

    /** Reads and writes of a shard take its lock. No update is lost, and a read of a shard lies between two
     *  updates. */
    DITTO_CONCURRENCY_LOCKED = 1,

    /** Reads and writes take no lock. An element is never torn, but a read may lie in the middle of updates.
     *  If two calls change the same row at the same time, the change of one of them may be lost in some or
     *  all elements of the row. docs/semantics.md (rule 12.11) says what is promised. An optimizer must have
     *  no slots: the rules are SGD without momentum, ADD, SUB and ASSIGN, without accumulate. Variables of
     *  DITTO_C128 are not supported, because 16 bytes cannot be accessed at once on every processor.
     *  Functions may also read and change the elements in place (ditto_component, ditto_read).
     *
     *  @par Source
     *  Niu, Recht, Re, Wright: Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent,
     *  2011. */
    DITTO_CONCURRENCY_HOGWILD = 2,

    /** Writes of a shard take its lock, and no update is lost. Reads take it too, except pulls with
     *  ditto_pull_options.lock = DITTO_SWITCH_OFF and reads in place (ditto_read), which never wait for a
     *  write and may find elements of different versions. A write copies the changed elements once more than
     *  with LOCKED. Optimizers may have any rule. Variables of DITTO_C128 are not supported. */
    DITTO_CONCURRENCY_FREE_READS = 3,
} ditto_concurrency;

struct ditto_grouping;

/** How a variable is created. Start from DITTO_VARIABLE_OPTIONS_INIT. A field that is 0 means its default. */
typedef struct ditto_variable_options {
    size_t struct_size; /**< set by DITTO_VARIABLE_OPTIONS_INIT */

    /** The name, which is copied. NULL means "Variable". Several variables may have one name, but they cannot
     *  be saved or restored then (DITTO_ERR_INVALID). */
    const char *name;

    ditto_synchronization synchronization; /**< when components are synchronized */
    ditto_aggregation aggregation;         /**< how components are combined */
    ditto_copies copies;                   /**< how many physical copies there are */

    /** Whether it is trainable. The default is ON for mirrored and OFF for sync-on-read variables. The
     *  library only records it: ditto_variable_info returns it, and checkpoints contain it. */
    ditto_switch trainable;

    /** Writes the initial value of one shard to value->data, which is not initialised. value->shape is the
     *  shape of the shard, and first_row its first row in the variable. A variable that is not cut is one
     *  shard. The function is called once for each shard, on the thread that creates the variable
     *  (ditto_create_variable: on that of replica 0). Of a sliced variable, it is called once for each slice,
     *  at the same time, each on the thread of a replica that has the slice. first_row is then the first
     *  index of the slice in dimension slice_axis, and no function of the strategy may be called. It is not
     *  called if there are no elements. */
    ditto_status (*initialize)(const ditto_tensor *value, size_t first_row, void *user);

    void *initialize_user; /**< passed to initialize */

    /** If not NULL, the copies are placed and shared as those of that variable are at the time of creation.
     *  There is one exception: if this variable needs a copy for each replica, and the copies of that
     *  variable are shared but can be split (see ditto_copies), each replica gets its own copy. If one of the
     *  two variables is split later, the other is not. */
    const struct ditto_variable *colocate_with;

    /** How the variable is cut into shards or slices. It is allowed only for mirrored variables, without
     *  DITTO_COPIES_PER_REPLICA and without colocate_with. Slices are for strategies of kind DITTO_MIRRORED
     *  on one host. */
    ditto_partitioner partitioner;

    /** What workers do that read and write the variable at the same time. It is allowed only for variables of
     *  a strategy of kind DITTO_PARAMETER_SERVER. */
    ditto_concurrency concurrency;

    uint32_t slice_axis; /**< the dimension that DITTO_PARTITION_BY_REPLICA slices, from 0 */

    /** DITTO_PARTITION_BY_REPLICA: a grouping of the strategy in which each replica has a group, all of one
     *  size, such as an axis of a mesh (ditto/group.h). A replica has the slice of its rank. NULL: all
     *  replicas are one group. The grouping can't be destroyed before the variable. */
    struct ditto_grouping *slice_along;
} ditto_variable_options;

/** Initial value of ditto_variable_options: a mirrored variable without aggregation. */
#define DITTO_VARIABLE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_variable_options)

/** @name Variables in cross-replica context
 *
 *  The functions also return the errors of the group "Strategies" (ditto/strategy.h), and DITTO_ERR_SYSTEM if
 *  the calling thread cannot be pinned. Unless they say otherwise, they return DITTO_ERR_INVALID if the
 *  variable or the strategy is NULL, and DITTO_ERR_CONTEXT if the variable's strategy was destroyed.
 *  @{ */

/** Creates a variable. The initial value is evaluated once, and copied to all components. A sync-on-read
 *  variable with SUM whose initial value is 1 therefore reads as N.
 *
 *  @param strategy  the strategy
 *  @param initial   dtype, rank and shape. data is copied. If it is NULL, the initial value is 0, or is
 *                   filled in by options->initialize
 *  @param options   NULL for a mirrored variable without aggregation
 *  @param out       [out] the variable; set only on DITTO_OK
 *  @return DITTO_OK, an error that initialize returned, or one of:
 *  @retval DITTO_ERR_INVALID      one of these:
 *      - A pointer is NULL. The dtype or the rank is invalid (see ditto_tensor).
 *      - Both data and initialize are given.
 *      - MEAN of an integer dtype or of DITTO_BOOL.
 *      - colocate_with is of another strategy or of one that was destroyed, is cut into shards, or shares
 *        copies that cannot be split although this variable needs one for each replica.
 *      - A partitioner FIXED without num_shards, or MAX_SIZE without bytes. A partitioner together with
 *        ON_READ, DITTO_COPIES_PER_REPLICA or colocate_with.
 *      - BY_REPLICA: slice_axis is no dimension, or has fewer indices than there are slices; slice_along
 *        is no grouping of the strategy, or has a replica without group, or groups of different sizes;
 *        ONLY_FIRST_REPLICA.
 *      - A concurrency, and the strategy is not of kind DITTO_PARAMETER_SERVER.
 *      - A value was restored for the variable, which has another dtype, or is sync-on-read without
 *        aggregation.
 *  @retval DITTO_ERR_SHAPE        a value that was restored for the variable has another shape
 *  @retval DITTO_ERR_RANGE        an unknown enum value; the size overflows; more than UINT32_MAX shards
 *  @retval DITTO_ERR_UNSUPPORTED  SUM of DITTO_BOOL; ON_READ in central storage; a concurrency other
 *                                 than LOCKED of DITTO_C128; slices in a strategy of another kind than
 *                                 DITTO_MIRRORED or of several hosts; options is of a newer version
 *  @retval DITTO_ERR_USER         initialize returned a positive status
 *  @retval DITTO_ERR_NO_MEMORY    there is no memory for the copies
 *  @retval DITTO_ERR_SYSTEM       the strategy has DITTO_MEMORY_STRICT, and mbind is refused
 *  @par Ownership
 *  The caller gives the variable to ditto_variable_destroy.
 *  @par Cost
 *  One allocation for each physical copy, which is written by a replica on its node, and about as much as
 *  a run. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_create(ditto_strategy *strategy,
                                                             const ditto_tensor *initial,
                                                             const ditto_variable_options *options,
                                                             ditto_variable **out);

/** Destroys a variable. It may be called after the variable's strategy was destroyed. If another thread is in
 *  a run of the strategy, the call waits for the end of the run. In a child process after fork, a variable
 *  may be destroyed inside a function that a call on its strategy executes. Its memory then stays until the
 *  strategy is destroyed.
 *
 *  @param variable  the variable; NULL is allowed
 *  @retval DITTO_OK           the variable is destroyed
 *  @retval DITTO_ERR_CONTEXT  called on a replica's thread, or in a function of a dataset; nothing was done
 *  @retval DITTO_ERR_BUSY     an optimizer uses the variable, and that optimizer or the strategy must be
 *                             destroyed first; the variable is a slot of an optimizer; a call on the
 *                             variable, or on a value that refers to it, has not returned (it may be the
 *                             call whose function destroys the variable); nothing was done
 *  @par Cost
 *  Frees the copies. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_destroy(ditto_variable *variable);

/** What a variable is. */
typedef struct ditto_variable_properties {
    size_t struct_size;       /**< set by DITTO_VARIABLE_PROPERTIES_INIT */
    const char *name;         /**< the name, valid until the variable is destroyed */
    ditto_strategy *strategy; /**< the strategy of the variable; NULL if it was destroyed */
    int trainable;            /**< not 0 if the variable is trainable */

    ditto_synchronization synchronization; /**< DITTO_ON_WRITE or DITTO_ON_READ */

    /** How the components are combined. DITTO_AGGREGATE_NONE where DITTO_AGGREGATE_DEFAULT was given. */
    ditto_aggregation aggregation;

    /** The number of shards or slices. 1 if the variable is not cut into shards, and for slots of optimizers,
     *  except those of parameters. */
    size_t num_shards;

    /** A number that grows with each call that may have changed a component, in a run of the strategy the
     *  component of the calling replica. This includes writes that failed in a collective. If it is equal in
     *  two calls, no call has written the variable in between. Writes through the pointer of ditto_component
     *  are not counted, but the call of ditto_component is. Of a parameter it is the sum of the versions of
     *  the shards. 0 if the strategy was destroyed. */
    uint64_t generation;
} ditto_variable_properties;

/** Initial value of ditto_variable_properties. */
#define DITTO_VARIABLE_PROPERTIES_INIT DITTO_OPTIONS_INIT(ditto_variable_properties)

/** Says what a variable is.
 *
 *  @param variable  the variable
 *  @param out       [out] start from DITTO_VARIABLE_PROPERTIES_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  a NULL pointer, or struct_size is not set
 *  @par Thread safety
 *  Any thread may call it, also after the strategy was destroyed. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_info(const ditto_variable *variable,
                                                           ditto_variable_properties *out);

/** A shard of a variable. A variable that is not cut has one shard. */
typedef struct ditto_shard_info {
    size_t struct_size; /**< set by DITTO_SHARD_INFO_INIT */
    size_t first_row;   /**< its first row; of a slice its first index in the sliced dimension */
    size_t rows;        /**< the number of its rows; 1 for a scalar; of a slice of its indices */

    /** The address of its elements, valid until the variable or its strategy is destroyed. If the variable is
     *  not cut, it is that of replica 0's component. Of a slice it is that of its first copy. NULL for a
     *  parameter, which workers change at any time, and for a slot of an optimizer that is stored in several
     *  parts. */
    const void *data;

    /** Of a parameter (ditto/parameter.h): how often the shard has been updated. A function that may change
     *  the elements in place (ditto_component) counts when it has ended. A restore of a checkpoint sets the
     *  version to the number at the save, or to the largest one of all shards if the number of shards has
     *  changed. 0 for other variables. */
    uint64_t version;
} ditto_shard_info;

/** Initial value of ditto_shard_info. */
#define DITTO_SHARD_INFO_INIT DITTO_OPTIONS_INIT(ditto_shard_info)

/** Says which rows are in a shard, where they are, and of which version.
 *
 *  @param variable  the variable
 *  @param shard     number of the shard
 *  @param out       [out] start from DITTO_SHARD_INFO_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  a NULL pointer, or struct_size is not set
 *  @retval DITTO_ERR_RANGE    there is no such shard
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_shard(const ditto_variable *variable, size_t shard,
                                                            ditto_shard_info *out);

/** Writes a line of text that describes a variable: name, dtype and shape, kind, aggregation, and copies or
 *  shards with the NUMA nodes that they are planned for. It also says which of the options given at creation
 *  have no effect.
 *
 *  @param variable  the variable
 *  @param buffer    [out] the text, terminated; may be NULL if capacity is 0
 *  @param capacity  bytes of buffer
 *  @param length    [out] the length of the whole text, without its terminator; may be NULL
 *  @retval DITTO_OK           the text was written
 *  @retval DITTO_ERR_INVALID  buffer is NULL, and capacity is not 0
 *  @par Cost
 *  Writes one text. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_describe(const ditto_variable *variable, char *buffer,
                                                               size_t capacity, size_t *length);

/** Lists the variables of a strategy, in the order of their creation. The slots of optimizers are among them.
 *
 *  @param strategy       the strategy
 *  @param variables      [out] [capacity] as many variables as fit; may be NULL if capacity is 0
 *  @param capacity       number of elements of variables
 *  @param num_variables  [out] how many variables there are
 *  @retval DITTO_OK           num_variables is set
 *  @retval DITTO_ERR_INVALID  a NULL pointer
 *  @par Cost
 *  Writes one address for each variable. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_variables(ditto_strategy *strategy,
                                                                ditto_variable **variables, size_t capacity,
                                                                size_t *num_variables);

/** Writes the names of the values that a checkpoint had (ditto_checkpoint_restore) and for which no variable
 *  has been created, one a line.
 *
 *  @param strategy    the strategy
 *  @param buffer      [out] the text, terminated; may be NULL if capacity is 0
 *  @param capacity    bytes of buffer
 *  @param length      [out] the length of the whole text, without its terminator; may be NULL
 *  @param num_values  [out] how many values there are; may be NULL
 *  @retval DITTO_OK           the names were written
 *  @retval DITTO_ERR_INVALID  buffer is NULL, and capacity is not 0
 *  @par Cost
 *  Writes one text. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_held_values(ditto_strategy *strategy, char *buffer,
                                                                  size_t capacity, size_t *length,
                                                                  size_t *num_values);

/** Returns dtype, rank and shape of a variable.
 *
 *  @param variable  the variable
 *  @param out       [out] a tensor without data
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  a NULL pointer
 *  @par Thread safety
 *  Any thread may call it, also after the strategy was destroyed. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_spec(const ditto_variable *variable, ditto_tensor *out);

/** Copies the value of a variable into a buffer: replica 0's component of a mirrored variable, and the
 *  aggregated components of a sync-on-read variable.
 *
 *  @param variable  the variable
 *  @param dst       [out] the elements
 *  @param bytes     bytes of dst; must be those of the variable
 *  @retval DITTO_OK           the value was copied
 *  @retval DITTO_ERR_INVALID  a NULL or misaligned pointer; a sync-on-read variable without aggregation
 *  @retval DITTO_ERR_SHAPE    bytes is not the size of the variable
 *  @par Cost
 *  One copy. A sync-on-read variable is first aggregated, by all replicas if that is faster. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_read(ditto_variable *variable, void *dst, size_t bytes);

/** Writes one value to a variable.
 *
 *  ASSIGN: every component of a mirrored variable receives the value, as does every component of a
 *  sync-on-read variable with MEAN or ONLY_FIRST_REPLICA. Each component of a sync-on-read variable with SUM
 *  receives value divided by the number of replicas. The remainder of integers is distributed over the first
 *  replicas, one each, so that the sum is exact. A sum of floating-point components may differ from value in
 *  its last bits.
 *
 *  ADD and SUB: the value is added to every component, or subtracted from it.
 *
 *  @param variable  the variable
 *  @param op        what is done with the value
 *  @param value     the elements; no overlap with the variable's copies
 *  @param bytes     bytes of value; must be those of the variable
 *  @retval DITTO_OK               the value was written
 *  @retval DITTO_ERR_INVALID      a NULL or misaligned pointer; a sync-on-read variable without aggregation,
 *                                 or ADD or SUB of one with SUM
 *  @retval DITTO_ERR_SHAPE        bytes is not the size of the variable
 *  @retval DITTO_ERR_RANGE        op is not a value of the enum
 *  @retval DITTO_ERR_UNSUPPORTED  ADD or SUB of DITTO_BOOL
 *  @par Cost
 *  ASSIGN writes each physical copy once, ADD and SUB also read it, by all replicas if that is faster. */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign(ditto_variable *variable, ditto_assign_op op,
                                                             const void *value, size_t bytes);

/** @} */

/** @name Variables in replica context
 *
 *  The functions are called on the replica's own thread. They return DITTO_ERR_CONTEXT for a variable of
 *  another strategy or of one that was destroyed, and if self is not the calling thread's replica. They
 *  return DITTO_ERR_INVALID if self or the variable is NULL.
 *
 *  Outside of runs several threads may call them on one variable of the default strategy. Calls that access
 *  elements (all but ditto_read) are served one after the other. They also wait for a run or another call of
 *  the default strategy that is in progress on another thread, for example for a ditto_next that waits for
 *  rows. An access through an address that ditto_read or ditto_component returned does not wait, and must not
 *  be made while another thread writes. With a self of the parent process, from before fork, the functions
 *  may return DITTO_ERR_FORKED.
 *  @{ */

/** Creates one variable from inside a run. The call is collective.
 *
 *  The k-th call on each replica creates the same variable. Name, dtype and shape must agree on all replicas.
 *  The initial value and all other options are taken from replica 0. Those of other replicas are not
 *  compared. A later run that calls it creates another variable, so the program must keep the handle.
 *
 *  @param self     the calling replica
 *  @param initial  as for ditto_variable_create
 *  @param options  as for ditto_variable_create
 *  @param out      [out] the variable, the same on all replicas
 *  @return DITTO_OK, an error of ditto_merge_call, an error of ditto_variable_create, or:
 *  @retval DITTO_ERR_DIVERGED  names, dtypes or shapes differ. This ends the run, and so does a creation that
 *                              fails. Replica 0 then returns the error of the creation, and the others
 *                              return DITTO_ERR_PEER_STOPPED
 *  @par Ownership
 *  The program gives the variable to ditto_variable_destroy once, in cross-replica context.
 *  @par Cost
 *  That of ditto_merge_call and of ditto_variable_create. */
DITTO_API DITTO_NODISCARD ditto_status ditto_create_variable(ditto_replica *self, const ditto_tensor *initial,
                                                             const ditto_variable_options *options,
                                                             ditto_variable **out);

/** Returns the slice of a replica: a view of the nearest copy. Of a variable that is not cut it is the whole
 *  component. Nothing is aggregated, and there is no meeting.
 *
 *  @param self      the calling replica
 *  @param variable  the variable
 *  @param out       [out] the slice: dtype, shape, and an address that is valid as that of ditto_read. Its
 *                   elements must not be changed
 *  @param first     [out] the first index of the slice in the sliced dimension; may be NULL
 *  @retval DITTO_OK               the slice was stored
 *  @retval DITTO_ERR_INVALID      a NULL pointer
 *  @retval DITTO_ERR_UNSUPPORTED  as for ditto_read */
DITTO_API DITTO_NODISCARD ditto_status ditto_local_slice(ditto_replica *self, const ditto_variable *variable,
                                                         ditto_tensor *out, size_t *first);

/** Returns the address of the replica's own component, in the nearest copy. Nothing is aggregated, and there
 *  is no meeting. The address is valid until the next write or update of the variable. A write by
 *  ditto_assign may be given the address as its value.
 *
 *  A parameter that was created with DITTO_CONCURRENCY_HOGWILD or FREE_READS has one component, which is
 *  contiguous, also if it is cut into shards. Its address is valid until the function of the worker ends, and
 *  other workers change the elements meanwhile ("In place" in ditto/parameter.h).
 *
 *  @param self      the calling replica
 *  @param variable  the variable
 *  @param data      [out] the address, in a variable of type const void * (see ditto_alloc)
 *  @retval DITTO_OK               data is set
 *  @retval DITTO_ERR_CONTEXT      the variable is a parameter with DITTO_CONCURRENCY_LOCKED: use ditto_pull
 *                                 or ditto_lookup
 *  @retval DITTO_ERR_FORKED       the variable is a parameter, in a child process after fork
 *  @retval DITTO_ERR_INVALID      a NULL pointer
 *  @retval DITTO_ERR_UNSUPPORTED  the variable is sliced: use ditto_local_slice; it is cut into shards, or is
 *                                 a slot of an optimizer that is stored in several parts: use ditto_lookup */
DITTO_API DITTO_NODISCARD ditto_status ditto_read(ditto_replica *self, const ditto_variable *variable,
                                                  const void **data);

/** Returns the address of the replica's own component of a sync-on-read variable, to be written directly. A
 *  counter in a loop then costs one addition. The address is valid until the end of the run.
 *
 *  A parameter that was created with DITTO_CONCURRENCY_HOGWILD has one component, which is contiguous, also
 *  if it is cut into shards, and which other workers change at the same time ("In place" in
 *  ditto/parameter.h). The address is valid until the function of the worker ends. Then the version of each
 *  shard counts one update, however often the replica has called this, also if the function has failed. It
 *  counts none if a replica of the worker has not returned in time, because that one may still write.
 *
 *  @param self      the calling replica
 *  @param variable  the variable
 *  @param data      [out] the address, in a variable of type void * (see ditto_alloc)
 *  @retval DITTO_OK           data is set
 *  @retval DITTO_ERR_INVALID  a NULL pointer; a mirrored variable, because its components change together; a
 *                             parameter without DITTO_CONCURRENCY_HOGWILD, because changes need its locks
 *  @retval DITTO_ERR_FORKED   the variable is a parameter, in a child process after fork */
DITTO_API DITTO_NODISCARD ditto_status ditto_component(ditto_replica *self, ditto_variable *variable,
                                                       void **data);

/** Assigns a value to a variable, adds it, or subtracts it.
 *
 *  For a parameter (ditto/parameter.h) the call is not collective and needs no aggregation: it writes the
 *  value of this replica. For a mirrored variable the call is collective. The replicas' values are
 *  aggregated, and the result is written once. Every replica sees it when the call returns. With
 *  ONLY_FIRST_REPLICA the value of replica 0 is used. For a sync-on-read variable the replica writes its own
 *  component alone, without a meeting, whatever the aggregation is.
 *
 *  @param self      the calling replica
 *  @param variable  the variable
 *  @param op        what is done with the (aggregated) value; the same on all replicas of a collective call
 *  @param value     elements of the variable's dtype and shape; may be the address that ditto_read returned
 *                   for this variable. A buffer that is too short is read beyond its end
 *  @return DITTO_OK, an error of ditto_all_reduce, or one of:
 *  @retval DITTO_ERR_INVALID      a mirrored variable without aggregation
 *  @retval DITTO_ERR_RANGE        op is not a value of the enum
 *  @retval DITTO_ERR_UNSUPPORTED  ADD or SUB of DITTO_BOOL
 *  @retval DITTO_ERR_NO_MEMORY    the replica's arena has no memory for a list of the shards. Or, of ADD and
 *                                 SUB with ONLY_FIRST_REPLICA, replica 0's value is in a copy of the
 *                                 variable, and there is no memory to copy it
 *  @par Cost
 *  A mirrored variable takes two meetings. Each element is reduced by one replica, which writes it to every
 *  physical copy. ADD and SUB also read the old value. */
DITTO_API DITTO_NODISCARD ditto_status ditto_assign(ditto_replica *self, ditto_variable *variable,
                                                    ditto_assign_op op, const void *value);

/** @} */
/** @} */

DITTO_END
#endif
