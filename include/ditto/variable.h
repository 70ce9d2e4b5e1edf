/* include/ditto/variable.h - values that exist once per replica and stay consistent.
 *
 * A variable has one component per replica. A *mirrored* variable (ON_WRITE) keeps them equal: replicas give their values
 * to a write, which aggregates them and writes the result everywhere. A *sync-on-read* variable (ON_READ) lets each
 * replica write its own component freely and aggregates when it is read across replicas.
 *
 * Copies. Each replica of a sync-on-read variable has a copy of its own. The components of a mirrored
 * variable are equal, so they share one physical copy per NUMA node. Only an update in which each replica has
 * its own arguments can make them differ (ditto/merge.h). It needs one copy for each replica:
 *   - With DITTO_COPIES_PER_REPLICA there is one from the start.
 *   - Without aggregation, the shared copies are split into one for each replica before the first such update
 *     calls its function. The variable stays split.
 *   - With aggregation, in shards, in central storage, and for an optimizer's slots, the update is refused
 *     (DITTO_ERR_INVALID).
 * Components that differ keep their differences: a replica's add, a cross add, an indexed update and an
 * optimizer change every copy from its own value. An assignment makes them equal again. docs/semantics.md. */
#ifndef DITTO_VARIABLE_H
#define DITTO_VARIABLE_H

#include <ditto/strategy.h>
#include <ditto/tensor.h>

DITTO_BEGIN

typedef struct ditto_variable ditto_variable;

typedef enum ditto_synchronization {
    DITTO_SYNCHRONIZATION_AUTO = 0, /**< ON_WRITE */
    DITTO_ON_WRITE = 1,             /**< mirrored */
    DITTO_ON_READ = 2,              /**< sync-on-read */
    DITTO_SYNCHRONIZATION_NONE = 3, /**< refused: INVALID */
} ditto_synchronization;

/** How components, or the replicas' values for them, become one. Its values are no ditto_op's. */
typedef enum ditto_aggregation {
    DITTO_AGGREGATE_DEFAULT = 0, /**< NONE */
    /** Nothing was said: a write by replicas, or an aggregating read, is refused. An update in which each
     *  replica has its own arguments is not; it splits the copies. */
    DITTO_AGGREGATE_NONE = 0x40,
    DITTO_AGGREGATE_SUM = 0x41,
    DITTO_AGGREGATE_MEAN = 0x42,
    DITTO_AGGREGATE_ONLY_FIRST_REPLICA = 0x43,
} ditto_aggregation;

typedef enum ditto_copies {
    /** Sync-on-read: one for each replica. Mirrored: one per NUMA node; without aggregation one for each
     *  replica after a split. Central storage: one. */
    DITTO_COPIES_DEFAULT = 0,

    /** One for each replica from the start. Central storage keeps one copy even so, and
     *  ditto_variable_describe says that. */
    DITTO_COPIES_PER_REPLICA = 1,
} ditto_copies;

typedef enum ditto_trainable {
    DITTO_TRAINABLE_DEFAULT = 0, /**< ON for mirrored, OFF for sync-on-read variables */
    DITTO_TRAINABLE_ON = 1,
    DITTO_TRAINABLE_OFF = 2,
} ditto_trainable;

/** How a large variable is cut into shards: runs of rows (of its first dimension), each of which exists once, on the strategy's
 *  parameter nodes in turn. The first `rows mod shards` shards have one more row than the others. Nothing is cut where one shard
 *  comes out: then it is a variable like any other. */
typedef enum ditto_partition {
    DITTO_PARTITION_NONE = 0,  /**< one shard */
    DITTO_PARTITION_FIXED = 1, /**< `shards` of them, at most one per row */
    DITTO_PARTITION_MIN_SIZE =
        2, /**< as many as have at least `bytes` (0: 256 KiB) each, at most `shards` (0: 1) */
    DITTO_PARTITION_MAX_SIZE =
        3, /**< as few as have at most `bytes` each, at most `shards` (0: no limit); a row is not cut */
} ditto_partition;

typedef struct ditto_partitioner {
    ditto_partition kind;
    size_t shards, bytes; /**< as the kind says */
} ditto_partitioner;

/** How many shards a partitioner makes of a variable of this dtype and shape. Any thread.
 *  @retval DITTO_ERR_INVALID  NULL, no dtype, FIXED without shards, MAX_SIZE without bytes
 *  @retval DITTO_ERR_RANGE    an unknown kind; the size overflows */
DITTO_API DITTO_NODISCARD ditto_status ditto_partitioner_shards(const ditto_partitioner *partitioner,
                                                                const ditto_tensor *spec, size_t *shards);

typedef struct ditto_variable_options {
    size_t struct_size; /**< set by DITTO_VARIABLE_OPTIONS_INIT */
    const char *name;   /**< copied; NULL: "Variable". Component i > 0 is called name/replica_i */
    ditto_synchronization synchronization;
    ditto_aggregation aggregation;
    ditto_copies copies;
    ditto_trainable trainable;
    /** Fills value->data; called on the creating thread, once for each shard: value->shape is the shard's, and its first row is
     *  row `first_row` of the variable. Without a partition: once, the whole shape, 0. */
    ditto_status (*initialize)(const ditto_tensor *value, size_t first_row, void *user);
    void *initialize_user;
    /** Copies lie where that variable's lie, and are shared as its copies are now. A later split of one of
     *  the two is no split of the other. */
    const struct ditto_variable *colocate_with;
    ditto_partitioner partitioner; /**< mirrored variables, without COPIES_PER_REPLICA and colocate_with */
} ditto_variable_options;
#define DITTO_VARIABLE_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_variable_options)

/* -- Cross-replica context: errors as in strategy.h; CONTEXT also when the variable's strategy was destroyed -- */

/** Creates a variable. The one initial value is evaluated once and copied to all components; so a sync-on-read variable
 *  with SUM that starts with 1 reads as N.
 *  @param initial  dtype, rank and shape; data is copied, NULL: zeros, or what options->initialize fills in
 *  @param options  NULL: a mirrored variable without aggregation
 *  @param out      the caller's, to be given to ditto_variable_destroy; set only on DITTO_OK
 *  @retval DITTO_ERR_INVALID      NULL; synchronization NONE; MEAN with an integer dtype; both data and initialize given;
 *                                 no dtype; rank above DITTO_MAX_RANK; colocate_with is of another strategy, or shares copies
 *                                 where this one needs its own, or is cut into shards; a partitioner without its numbers, or
 *                                 with ON_READ, COPIES_PER_REPLICA or colocate_with; a value that was restored is of another dtype
 *  @retval DITTO_ERR_SHAPE        a value that was restored for it has another shape
 *  @retval DITTO_ERR_RANGE        an unknown enum; the size overflows
 *  @retval DITTO_ERR_UNSUPPORTED  SUM or MEAN of a dtype that ditto_all_reduce does not have; ON_READ in central storage
 *  @retval DITTO_ERR_USER         initialize failed (or the status that it returned)
 *  @retval DITTO_ERR_NO_MEMORY */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_create(ditto_strategy *strategy,
                                                             const ditto_tensor *initial,
                                                             const ditto_variable_options *options,
                                                             ditto_variable **out);
/** NULL is allowed; also after its strategy was destroyed. Waits for a run of the strategy that another thread is in.
 *  @retval DITTO_ERR_CONTEXT  on a replica's thread; nothing was done
 *  @retval DITTO_ERR_BUSY     an optimizer works on it: destroy that first; or another thread is in a call on it,
 *                             or on a value that refers to it; nothing was done */
DITTO_API ditto_status ditto_variable_destroy(ditto_variable *variable);

/** The name. Any thread; valid until destroy. */
DITTO_API const char *ditto_variable_name(const ditto_variable *variable);
/** The name of a replica's component: the variable's for replica 0, "name/replica_i" for the others. Any thread.
 *  @param buffer, size, length  as ditto_strategy_describe
 *  @retval DITTO_ERR_RANGE  no such replica */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_component_name(const ditto_variable *variable,
                                                                     uint32_t replica, char *buffer,
                                                                     size_t size, size_t *length);
DITTO_API int ditto_variable_is_trainable(const ditto_variable *variable);
/** What it was created with; AUTO and DEFAULT are told as what they stand for. Any thread. */
DITTO_API ditto_synchronization ditto_variable_synchronization(const ditto_variable *variable);
DITTO_API ditto_aggregation ditto_variable_aggregation(const ditto_variable *variable);
/** 1, but for a variable that is cut into shards. Any thread. */
DITTO_API size_t ditto_variable_num_shards(const ditto_variable *variable);
/** One shard: its first row, and the number of its rows. @retval DITTO_ERR_RANGE  no such shard */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_shard(const ditto_variable *variable, size_t shard,
                                                            size_t *first_row, size_t *rows);
/** A line of text: name, dtype and shape, kind, aggregation, copies and the NUMA nodes that they are meant for; and what was asked
 *  for at creation and is not used. @param buffer, size, length  as ditto_strategy_describe */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_describe(const ditto_variable *variable, char *buffer,
                                                               size_t size, size_t *length);
/** Counts the calls that may have changed any component (failed ones too): two equal numbers, and nothing was written by a call in
 *  between. What is written through ditto_component's pointer is not counted. */
DITTO_API uint64_t ditto_variable_generation(const ditto_variable *variable);

/** A strategy's variables, an optimizer's slots among them, in the order of their creation.
 *  @param variables  [room], may be NULL when room is 0; as many as fit are written
 *  @param count      how many there are */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_variables(ditto_strategy *strategy,
                                                                ditto_variable **variables, size_t room,
                                                                size_t *count);

/** Gives the variable of that name a value that was saved: written as ditto_variable_assign writes it. If there is none yet, a copy
 *  is kept until it is created, and then goes before its initial value.
 *  @retval DITTO_ERR_INVALID  NULL; two variables have the name; another dtype; a sync-on-read variable without aggregation
 *  @retval DITTO_ERR_SHAPE    another shape
 *  Where the value is kept, these errors come from the creation, which fails. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_restore_value(ditto_strategy *strategy,
                                                                    const char *name,
                                                                    const ditto_tensor *value);
/** Names of values that are kept, and have found no variable: one in a line. @param buffer, size, length  as
 *  ditto_strategy_describe; @param count  how many; may be NULL */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_held_values(ditto_strategy *strategy, char *buffer,
                                                                  size_t size, size_t *length, size_t *count);
/** Gives them up. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_drop_held_values(ditto_strategy *strategy);
/** dtype, rank and shape; data is NULL. Any thread. */
DITTO_API ditto_tensor ditto_variable_spec(const ditto_variable *variable);

/** Copies the value out: of a mirrored variable any copy; of a sync-on-read one its components, aggregated.
 *  @param bytes  of dst; must be the variable's own size (SHAPE)
 *  @retval DITTO_ERR_INVALID  a sync-on-read variable without aggregation */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_read(ditto_variable *variable, void *dst, size_t bytes);

/** Writes one value (no overlap with the variable's own copies): to every component of a mirrored variable; of a sync-on-read one with SUM in parts (value / N each;
 *  of integers the remainder one each to the first replicas, so that the sum is exact), with MEAN or ONLY_FIRST_REPLICA
 *  to every component.
 *  @retval DITTO_ERR_INVALID  a sync-on-read variable without aggregation */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign(ditto_variable *variable, const void *value,
                                                             size_t bytes);
/** value added to (subtracted from) every component.
 *  @retval DITTO_ERR_INVALID      a sync-on-read variable with SUM or without aggregation
 *  @retval DITTO_ERR_UNSUPPORTED  a dtype that ditto_all_reduce does not have */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign_add(ditto_variable *variable, const void *value,
                                                                 size_t bytes);
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign_sub(ditto_variable *variable, const void *value,
                                                                 size_t bytes);

/** One replica's component, for tests and reports: where it lies. Components that share a copy give the same address.
 *  Valid until the variable's copies are split, or the variable or its strategy is destroyed.
 *  @retval DITTO_ERR_RANGE        no such replica
 *  @retval DITTO_ERR_UNSUPPORTED  it is cut into shards: ditto_variable_shard_data */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_component(ditto_variable *variable, uint32_t replica,
                                                                const void **data);
/** Where a shard lies. @retval DITTO_ERR_RANGE  no such shard */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_shard_data(ditto_variable *variable, size_t shard,
                                                                 const void **data);

/* -- Replica context; CONTEXT also for a variable of another strategy -- */

/** Creates one variable, from inside a run: collective. Creations are matched by their order, and their names, dtypes and
 *  shapes are equal; what else replica 0 passes (contents, options) is used, and is not compared. A later run that calls
 *  it creates another one: keep the handle.
 *  @param initial, options  as ditto_variable_create
 *  @param out               the same on all replicas; given to ditto_variable_destroy once, in cross-replica context
 *  @retval DITTO_ERR_DIVERGED  other names, dtypes or shapes, or another number of creations
 *  @retval as ditto_merge_call, and what ditto_variable_create gives, which ends the run */
DITTO_API DITTO_NODISCARD ditto_status ditto_create_variable(ditto_replica *self, const ditto_tensor *initial,
                                                             const ditto_variable_options *options,
                                                             ditto_variable **out);

/** The replica's own component, never aggregated: the nearest copy. Valid until the next write or update of
 *  the variable. It may be the value of that write (ditto_assign, ditto_assign_add, ditto_assign_sub). No
 *  meeting.
 *  @retval DITTO_ERR_UNSUPPORTED  it is cut into shards: ditto_lookup */
DITTO_API DITTO_NODISCARD ditto_status ditto_read(ditto_replica *self, const ditto_variable *variable,
                                                  const void **data);

/** The replica's own component of a sync-on-read variable, to be written directly: a counter in a loop costs what the addition costs.
 *  Valid until the end of the run. @retval DITTO_ERR_INVALID  a mirrored variable: its components change together */
DITTO_API DITTO_NODISCARD ditto_status ditto_component(ditto_replica *self, ditto_variable *variable,
                                                       void **data);

/** As ditto_variable_generation, of the replica's own component. */
DITTO_API uint64_t ditto_generation(ditto_replica *self, const ditto_variable *variable);

/** Mirrored: collective. The replicas' values are aggregated, and the result is applied once: new = value, old + value,
 *  old - value; every replica sees it when the call returns. With ONLY_FIRST_REPLICA replica 0's value is used.
 *  Sync-on-read: the replica's own component alone, no meeting, whatever the aggregation.
 *  @param value  shape and dtype of the variable; stays the caller's. It may be what ditto_read gave for this
 *                variable
 *  @retval DITTO_ERR_INVALID      a mirrored variable without aggregation: say how to aggregate
 *  @retval DITTO_ERR_UNSUPPORTED  add and sub of a dtype that ditto_all_reduce does not have
 *  @retval as ditto_all_reduce
 *  Cost  mirrored: two meetings; each element is reduced by one replica and written once per physical copy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_assign(ditto_replica *self, ditto_variable *variable,
                                                    const void *value);
DITTO_API DITTO_NODISCARD ditto_status ditto_assign_add(ditto_replica *self, ditto_variable *variable,
                                                        const void *value);
DITTO_API DITTO_NODISCARD ditto_status ditto_assign_sub(ditto_replica *self, ditto_variable *variable,
                                                        const void *value);

DITTO_END
#endif
