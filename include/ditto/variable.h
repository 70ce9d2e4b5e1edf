/* include/ditto/variable.h - values that exist once per replica and stay consistent.
 *
 * A variable has one component per replica. A *mirrored* variable (ON_WRITE) keeps them equal: replicas give their values
 * to a write, which aggregates them and writes the result everywhere. A *sync-on-read* variable (ON_READ) lets each
 * replica write its own component freely and aggregates when it is read across replicas. Components that cannot differ
 * share one physical copy per NUMA node. docs/semantics.md. */
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
    DITTO_AGGREGATE_NONE = 0x40, /**< nothing was said: a write by replicas, or an aggregating read, is refused */
    DITTO_AGGREGATE_SUM = 0x41,
    DITTO_AGGREGATE_MEAN = 0x42,
    DITTO_AGGREGATE_ONLY_FIRST_REPLICA = 0x43,
} ditto_aggregation;

typedef enum ditto_copies {
    DITTO_COPIES_DEFAULT = 0,     /**< one per NUMA node where components cannot differ, else one per replica */
    DITTO_COPIES_PER_REPLICA = 1, /**< one per replica in any case */
} ditto_copies;

typedef enum ditto_trainable {
    DITTO_TRAINABLE_DEFAULT = 0, /**< ON for mirrored, OFF for sync-on-read variables */
    DITTO_TRAINABLE_ON = 1,
    DITTO_TRAINABLE_OFF = 2,
} ditto_trainable;

typedef struct ditto_variable_options {
    size_t struct_size; /**< set by DITTO_VARIABLE_OPTIONS_INIT */
    const char *name;   /**< copied; NULL: "Variable". Component i > 0 is called name/replica_i */
    ditto_synchronization synchronization;
    ditto_aggregation aggregation;
    ditto_copies copies;
    ditto_trainable trainable;
    ditto_status (*initialize)(const ditto_tensor *value, void *user); /**< fills value->data; called once, on the
                                                                            creating thread */
    void *initialize_user;
    const struct ditto_variable *colocate_with; /**< copies lie where that variable's lie, and are shared as they are */
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
 *                                 where this one needs its own
 *  @retval DITTO_ERR_RANGE        an unknown enum; the size overflows
 *  @retval DITTO_ERR_UNSUPPORTED  SUM or MEAN of a dtype that ditto_all_reduce does not have; ON_READ in central storage
 *  @retval DITTO_ERR_USER         initialize failed (or the status that it returned)
 *  @retval DITTO_ERR_NO_MEMORY */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_create(ditto_strategy *strategy, const ditto_tensor *initial,
                                                             const ditto_variable_options *options,
                                                             ditto_variable **out);
/** NULL is allowed; also after its strategy was destroyed. Waits for a run of the strategy that another thread is in.
 *  @retval DITTO_ERR_CONTEXT  on a replica's thread; nothing was done */
DITTO_API ditto_status ditto_variable_destroy(ditto_variable *variable);

/** The name. Any thread; valid until destroy. */
DITTO_API const char *ditto_variable_name(const ditto_variable *variable);
/** The name of a replica's component: the variable's for replica 0, "name/replica_i" for the others. Any thread.
 *  @param buffer, size, length  as ditto_strategy_describe
 *  @retval DITTO_ERR_RANGE  no such replica */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_component_name(const ditto_variable *variable, uint32_t replica,
                                                                     char *buffer, size_t size, size_t *length);
DITTO_API int ditto_variable_is_trainable(const ditto_variable *variable);
/** dtype, rank and shape; data is NULL. Any thread. */
DITTO_API ditto_tensor ditto_variable_spec(const ditto_variable *variable);

/** Copies the value out: of a mirrored variable any copy; of a sync-on-read one its components, aggregated.
 *  @param bytes  of dst; must be the variable's own size (SHAPE)
 *  @retval DITTO_ERR_INVALID  a sync-on-read variable without aggregation */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_read(ditto_variable *variable, void *dst, size_t bytes);

/** Writes one value: to every component of a mirrored variable; of a sync-on-read one with SUM in parts (value / N each;
 *  of integers the remainder one each to the first replicas, so that the sum is exact), with MEAN or ONLY_FIRST_REPLICA
 *  to every component.
 *  @retval DITTO_ERR_INVALID  a sync-on-read variable without aggregation */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign(ditto_variable *variable, const void *value, size_t bytes);
/** value added to (subtracted from) every component.
 *  @retval DITTO_ERR_INVALID      a sync-on-read variable with SUM or without aggregation
 *  @retval DITTO_ERR_UNSUPPORTED  a dtype that ditto_all_reduce does not have */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign_add(ditto_variable *variable, const void *value,
                                                                 size_t bytes);
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_assign_sub(ditto_variable *variable, const void *value,
                                                                 size_t bytes);

/** One replica's component, for tests and reports: where it lies. Components that share a copy give the same address.
 *  Valid until the variable or its strategy is destroyed. @retval DITTO_ERR_RANGE  no such replica */
DITTO_API DITTO_NODISCARD ditto_status ditto_variable_component(ditto_variable *variable, uint32_t replica,
                                                                const void **data);

/* -- Replica context; CONTEXT also for a variable of another strategy -- */

/** Creates one variable, from inside a run: collective. Creations are matched by their order, and their names are equal;
 *  what else replica 0 passes (dtype, shape, contents, options) is used, and is not compared. A later run that calls it
 *  creates another one: keep the handle.
 *  @param initial, options  as ditto_variable_create
 *  @param out               the same on all replicas; given to ditto_variable_destroy once, in cross-replica context
 *  @retval DITTO_ERR_DIVERGED  other names, or another number of creations
 *  @retval as ditto_merge_call, and what ditto_variable_create gives, which ends the run */
DITTO_API DITTO_NODISCARD ditto_status ditto_create_variable(ditto_replica *self, const ditto_tensor *initial,
                                                             const ditto_variable_options *options,
                                                             ditto_variable **out);

/** The replica's own component, never aggregated. Valid until the next write of the variable. No meeting. */
DITTO_API DITTO_NODISCARD ditto_status ditto_read(ditto_replica *self, const ditto_variable *variable,
                                                  const void **data);

/** Mirrored: collective. The replicas' values are aggregated, and the result is applied once: new = value, old + value,
 *  old - value; every replica sees it when the call returns. With ONLY_FIRST_REPLICA replica 0's value is used.
 *  Sync-on-read: the replica's own component alone, no meeting, whatever the aggregation.
 *  @param value  shape and dtype of the variable; stays the caller's
 *  @retval DITTO_ERR_INVALID      a mirrored variable without aggregation: say how to aggregate
 *  @retval DITTO_ERR_UNSUPPORTED  add and sub of a dtype that ditto_all_reduce does not have
 *  @retval as ditto_all_reduce
 *  Cost  mirrored: two meetings; each element is reduced by one replica and written once per physical copy. */
DITTO_API DITTO_NODISCARD ditto_status ditto_assign(ditto_replica *self, ditto_variable *variable, const void *value);
DITTO_API DITTO_NODISCARD ditto_status ditto_assign_add(ditto_replica *self, ditto_variable *variable,
                                                        const void *value);
DITTO_API DITTO_NODISCARD ditto_status ditto_assign_sub(ditto_replica *self, ditto_variable *variable,
                                                        const void *value);

DITTO_END
#endif
