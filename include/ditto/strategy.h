/* include/ditto/strategy.h - the object that owns replicas: create, enter its scope, run, destroy. */
#ifndef DITTO_STRATEGY_H
#define DITTO_STRATEGY_H

#include <ditto/placement.h>
#include <ditto/replica.h>

DITTO_BEGIN

/** @defgroup ditto_strategies Strategies
 *
 *  Unless they say otherwise, these functions are called in cross-replica context. On a replica's thread, and
 *  in the scope of another strategy, they return DITTO_ERR_CONTEXT. In a child process after fork they return
 *  DITTO_ERR_FORKED. If a replica never returned from an earlier run, they return DITTO_ERR_POISONED, and
 *  only ditto_strategy_destroy works. Several threads may call functions on one strategy. Their calls are
 *  served one after the other.
 *  @{ */

/** A set of replicas, and everything that was created with it. */
typedef struct ditto_strategy ditto_strategy;

struct ditto_tuning; /* ditto/tuning.h */

/** Which algorithm moves the data of collectives. The choice changes speed, never values. */
typedef enum ditto_implementation {
    DITTO_IMPLEMENTATION_DEFAULT = 0, /**< chosen by the size of the message */
    DITTO_IMPLEMENTATION_FLAT = 1,    /**< every replica exchanges data with every other one */

    /** Replicas that share a cache, a node or a package exchange data first, then the groups that they form.
     *  It is the same as FLAT if all replicas are one group. */
    DITTO_IMPLEMENTATION_HIERARCHICAL = 2,
} ditto_implementation;

/** The kinds of strategy. */
typedef enum ditto_strategy_kind {
    DITTO_MIRRORED = 1, /**< synchronous replicas, with variables mirrored on all */

    /** Synchronous replicas. Variables have one copy, on one NUMA node, which all replicas read. */
    DITTO_CENTRAL_STORAGE = 2,

    DITTO_ONE_DEVICE = 3, /**< one replica */

    /** The strategy that ditto_get_strategy returns when no other one is current. It cannot be created. */
    DITTO_DEFAULT_STRATEGY = 4,
} ditto_strategy_kind;

/** Which thread replica 0 uses. */
typedef enum ditto_caller {
    DITTO_CALLER_DEFAULT = 0, /**< DITTO_CALLER_IS_REPLICA_0 */

    /** The thread that calls run works as replica 0, on its PU. This is the default. */
    DITTO_CALLER_IS_REPLICA_0 = 1,

    DITTO_CALLER_WAITS = 2, /**< replica 0 has its own thread, the caller sleeps */
} ditto_caller;

/** Whether threads are bound to PUs. */
typedef enum ditto_pin {
    DITTO_PIN_DEFAULT = 0, /**< DITTO_PIN_PU */

    /** Each thread is bound to its PU. Without helpers a leader is bound to all PUs of its replica. This is
     *  the default. */
    DITTO_PIN_PU = 1,

    /** The program places the threads itself. The arenas still prefer the planned node. */
    DITTO_PIN_NONE = 2,
} ditto_pin;

/** Which instructions compute reductions. All of them give the same bits. */
typedef enum ditto_kernels {
    DITTO_KERNELS_DEFAULT = 0,  /**< the best that the processor has */
    DITTO_KERNELS_PORTABLE = 1, /**< the instructions of the build's baseline */
    DITTO_KERNELS_AVX2 = 2,     /**< AVX2 */
    DITTO_KERNELS_AVX512 = 3,   /**< AVX-512 */
} ditto_kernels;

/** How strictly the pages of a replica's memory are placed on its NUMA node. */
typedef enum ditto_memory_policy {
    DITTO_MEMORY_DEFAULT = 0, /**< DITTO_MEMORY_PREFERRED */

    /** Pages are on the replica's node. Other nodes are used when it is full. This is the default. */
    DITTO_MEMORY_PREFERRED = 1,

    /** Pages are only on the replica's node. Creation fails with DITTO_ERR_SYSTEM if the kernel refuses
     *  mbind. The kernel provides a page when it is touched. If the node is full then, the process is out of
     *  memory, as with any bound memory. */
    DITTO_MEMORY_STRICT = 2,
} ditto_memory_policy;

/** The floating-point environment of functions of the program that run on replicas.
 *
 *  It applies to functions given to run, to loops and functions on logical devices, and to functions of
 *  updates. What the library computes itself (collectives, reductions, optimizers, input, random numbers)
 *  always uses DITTO_FLOATING_STANDARD, so that its bits depend on its operands alone. So do functions of the
 *  program that these computations call: maps, filters, generators, functions that combine, and rules of
 *  optimizers. */
typedef enum ditto_floating {
    DITTO_FLOATING_DEFAULT = 0, /**< DITTO_FLOATING_STANDARD */

    /** Rounding to nearest, FTZ and DAZ off, no traps. This is the default. A program may have FTZ and DAZ on
     *  (-ffast-math sets them at its start). Its functions on replicas compute with denormals nevertheless,
     *  which may be slower. The caller's environment is restored when run returns. */
    DITTO_FLOATING_STANDARD = 1,

    /** The environment of the thread that calls run or ditto_variable_update, at the time of the call. It is
     *  equal on all replicas. Nested runs use the environment of the outermost run. The operands that
     *  functions give to a collective may then have other bits. From equal operands a collective computes
     *  equal bits. */
    DITTO_FLOATING_CALLER = 2,
} ditto_floating;

/** How a strategy is created. Start from DITTO_STRATEGY_OPTIONS_INIT. A field that is 0 means its default. */
typedef struct ditto_strategy_options {
    size_t struct_size; /**< set by DITTO_STRATEGY_OPTIONS_INIT */

    /* -- Replicas and their PUs: num_replicas and span, or placement_options, or placement -- */

    /** Number of replicas. 0 means one for each part of the machine that span names, and without a span
     *  min(cores that the process may use, ceil(CPU quota)). If there are more replicas than PUs, they share
     *  PUs. */
    uint32_t num_replicas;

    /** What one replica spans. For example, DITTO_SPAN_NUMA_NODE gives one replica for each NUMA node. 0
     *  means one PU. */
    ditto_span span;

    /** All options of the placement: explicit PUs, shapes, policies, flags (ditto/placement.h). If it is
     *  given, num_replicas, span and placement must be 0. Without a number of replicas, a span, a shape or
     *  PUs there are as many replicas as by default. It is read only during creation. */
    const ditto_placement_options *placement_options;

    /** Where the replicas are. The placement must have been made for this machine. It is read only during
     *  creation. If it is given, num_replicas, span and placement_options must be 0. */
    const ditto_placement *placement;

    /* -- Threads -- */

    ditto_caller caller; /**< which thread replica 0 uses */
    ditto_pin pin;       /**< whether threads are bound to PUs */

    /** Whether a replica has helper threads on the PUs that its leader does not use (ditto/device.h).
     *
     *  DITTO_SWITCH_ON is the default. Each PU but the first has one helper, which sleeps when there is
     *  nothing to do. With DITTO_SWITCH_OFF the leader may run on all PUs of its replica, and threads that it
     *  starts (for example those of OpenMP) inherit these PUs. */
    ditto_switch helpers;

    /** Stack size of the replicas' threads, at least 128 KiB. 0 means the default of the system. */
    size_t stack_bytes;

    /** The library calls this function when the thread of a leader or helper starts, with the id of the
     *  thread's replica and thread_user. It is not called on a calling thread that works as replica 0. */
    void (*thread_start)(uint32_t replica, void *user);

    /** The library calls this function at the end of each thread for which it called thread_start. */
    void (*thread_stop)(uint32_t replica, void *user);

    void *thread_user; /**< passed to thread_start and thread_stop */

    /* -- Memory -- */

    ditto_memory_policy memory; /**< how strictly memory is placed */

    /** For central storage: the NUMA node of the variables, as the operating system numbers it. Without
     *  has_parameter_node it must be 0 (DITTO_ERR_INVALID). */
    uint32_t parameter_node;

    /** If it is 0, the variables of central storage are on the node of the creating thread. If there is one
     *  replica, or that node is not known or has no memory, they are on the node of replica 0. */
    int has_parameter_node;

    /* -- Waiting -- */

    /** How long a replica waits for the others in a collective, or for input, in milliseconds. 0 means the
     *  environment variable DITTO_TIMEOUT_MS, or 600000 if that is not set. DITTO_FOREVER means no limit. */
    uint32_t timeout_ms;

    /** How long run waits for functions to return, in milliseconds. 0 means no limit.
     *
     *  When the time has passed, every replica that waits in the library returns with an error. The others
     *  have a quarter of the limit more (at least 250 ms, at most 1 s) to return. Then the strategy is
     *  poisoned.
     *
     *  A caller that works as replica 0 can be released only while it waits in the library. It cannot be
     *  released while its own function computes, while it waits for a function that it gave to a helper, or
     *  while it waits for the function of a ditto_update that uses its arguments on another NUMA node.
     *  DITTO_CALLER_WAITS avoids this. */
    uint32_t run_timeout_ms;

    /** How long a waiting thread spins before it sleeps, in microseconds. 0 means the default, 50, unless
     *  has_spin_us is set. Threads do not spin where they share PUs, or where there are more of them than the
     *  CPU quota allows. */
    uint32_t spin_us;

    /** If not 0, spin_us is used as it stands, and 0 there means that no thread spins. */
    int has_spin_us;

    /* -- Computing: values do not depend on these, except on `floating` -- */

    /** The algorithm of collectives whose options have implementation 0. */
    ditto_implementation implementation;

    /** The pack size of lists whose options have bytes_per_pack 0. 0 means one pack. */
    size_t bytes_per_pack;

    /** Which instructions compute reductions. Creation fails with DITTO_ERR_UNSUPPORTED if the processor does
     *  not have them. */
    ditto_kernels kernels;

    /** The thresholds by which algorithms are chosen (ditto/tuning.h). NULL means that they are measured. It
     *  is read only during creation. */
    const struct ditto_tuning *tuning;

    /** The floating-point environment of functions on replicas. */
    ditto_floating floating;
} ditto_strategy_options;

/** Initial value of ditto_strategy_options: the defaults. */
#define DITTO_STRATEGY_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_strategy_options)

/** Creates a strategy. Reads the machine, places the replicas, starts their pinned threads, gives each
 *  replica an arena on its NUMA node, and reads back where threads and memory are.
 *
 *  If it fails, no thread and no memory of the strategy remain.
 *
 *  @param kind     DITTO_MIRRORED, DITTO_CENTRAL_STORAGE or DITTO_ONE_DEVICE
 *  @param options  NULL for the defaults, with one replica per core
 *  @param out      [out] the strategy; set only on DITTO_OK
 *  @retval DITTO_OK               the strategy is ready
 *  @retval DITTO_ERR_RANGE        an unknown kind or enum value; more than DITTO_MAX_REPLICAS; a PU that the
 *                                 process may not use; an empty cpuset; a parameter_node whose memory it may
 *                                 not use
 *  @retval DITTO_ERR_INVALID      out is NULL; options contradict each other; more than one replica for
 *                                 DITTO_ONE_DEVICE; DITTO_TIMEOUT_MS or DITTO_TUNING is set, but is not
 *                                 valid; a placement that was built for another machine
 *  @retval DITTO_ERR_SYSTEM       the system refused a thread (RLIMIT_NPROC, pids cgroup), or its pinning;
 *                                 the machine could not be read; strict memory was asked for, and mbind is
 *                                 refused
 *  @retval DITTO_ERR_UNSUPPORTED  options is of a newer version; the processor does not have the kernels
 *  @retval DITTO_ERR_NO_MEMORY    an arena was refused (RLIMIT_AS)
 *  @retval DITTO_ERR_CONTEXT      called on a replica's thread, or in the scope of another strategy
 *  @par Ownership
 *  The caller gives the strategy to ditto_strategy_destroy.
 *  @par Cost
 *  Creation takes a few milliseconds. The first strategy with a placement in the process takes up to about 20
 *  ms more (ditto/tuning.h). */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_create(ditto_strategy_kind kind,
                                                             const ditto_strategy_options *options,
                                                             ditto_strategy **out);

/** Ends the threads of a strategy and frees everything that belongs to it.
 *
 *  Its variables and iterators may be destroyed before or after it. If they are used after it, the calls
 *  return DITTO_ERR_CONTEXT. In a child process after fork the function frees the memory, joins no thread,
 *  and returns DITTO_OK.
 *
 *  @param strategy  the strategy; NULL is allowed
 *  @retval DITTO_OK            the strategy is destroyed
 *  @retval DITTO_ERR_BUSY      another thread is in a call on the strategy, or on a variable, an iterator or
 *                              a value of it, or waits for its turn in such a call; nothing was done
 *  @retval DITTO_ERR_CONTEXT   called inside its own run, while any thread is in its scope, or for the
 *                              default strategy; nothing was done
 *  @retval DITTO_ERR_POISONED  the strategy is destroyed, but the replicas that the message names never
 *                              returned. Their threads and memory are not freed, because a late replica may
 *                              still use them. For the same reason variables, values and iterators of the
 *                              strategy are not freed when they are destroyed */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_destroy(ditto_strategy *strategy);

/** Runs function(self, user) once on every replica at the same time, and waits until all have returned.
 *  The replicas have the ids 0 to N-1.
 *
 *  Memory that the caller wrote before is visible to every replica. Memory that replicas wrote is visible to
 *  the caller afterwards. The function runs in the floating-point environment of
 *  ditto_strategy_options.floating. By default that has rounding to nearest, and FTZ and DAZ off, even if the
 *  program has them on.
 *
 *  @param strategy  the strategy
 *  @param function  must return. An exception or pthread_exit that leaves it ends the program
 *                   (ditto/status.h)
 *  @param user      passed to the function on all replicas
 *  @return DITTO_OK; the positive status of the replica with the lowest id that returned one; or the error of
 *          the replica that failed first, with its message in ditto_last_error()
 *  @retval DITTO_ERR_TIMED_OUT  run_timeout_ms passed, and the replicas that the message names had not
 *                               returned. If another replica failed before that, its error is returned
 *                               instead. The message says whether the strategy is poisoned now
 *  @retval DITTO_ERR_INVALID    function is NULL
 *  @retval DITTO_ERR_SYSTEM     the calling thread could not be pinned
 *  @retval DITTO_ERR_POISONED   a replica never returned from an earlier run
 *  @retval DITTO_ERR_CONTEXT    called on a replica's thread (call it in a merge function), or in the scope
 *                               of another strategy
 *  @retval DITTO_ERR_RANGE      runs are nested more than 8 deep (in merge functions)
 *  @par Cost
 *  A run costs two hand-overs of a cache line. Outside of a scope it also makes three system calls, which
 *  read, set and restore the PUs of the calling thread. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_run(ditto_strategy *strategy, ditto_replica_fn function,
                                                          void *user);

/** Makes a strategy current on this thread. A scope may be entered again. It must be left as often.
 *
 *  No call needs a scope. A scope has these effects:
 *   - ditto_get_strategy returns the strategy, also in functions of the program that are not given it.
 *   - The thread is pinned as the leader of replica 0, once and not in each run. It is not pinned with
 *     DITTO_CALLER_WAITS or DITTO_PIN_NONE.
 *   - Calls on other strategies return DITTO_ERR_CONTEXT, so that strategies are not mixed by mistake.
 *
 *  @param strategy  the strategy
 *  @retval DITTO_OK           the strategy is current
 *  @retval DITTO_ERR_CONTEXT  another strategy is current on this thread, or this is a replica's thread */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_scope_enter(ditto_strategy *strategy);

/** Undoes the last ditto_strategy_scope_enter. Leaving the outermost scope restores the thread's affinity.
 *
 *  @param strategy  the strategy
 *  @retval DITTO_OK           the scope was left
 *  @retval DITTO_ERR_CONTEXT  the scope entered last on this thread is not one of this strategy, or was not
 *                             entered with ditto_strategy_scope_enter; nothing was done */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_scope_leave(ditto_strategy *strategy);

/** Returns the kind of a strategy.
 *
 *  @param strategy  the strategy
 *  @return its kind; 0 for NULL
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API ditto_strategy_kind ditto_strategy_kind_of(const ditto_strategy *strategy);

/** Returns the number of replicas of a strategy.
 *
 *  @param strategy  the strategy
 *  @return the number; 0 for NULL
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API uint32_t ditto_strategy_num_replicas(const ditto_strategy *strategy);

/** Returns the worker devices: the PUs of each replica.
 *
 *  @param strategy  the strategy
 *  @return the placement. NULL for NULL and for the default strategy, which has no devices (ditto_last_error
 *          then has DITTO_ERR_CONTEXT)
 *  @par Thread safety
 *  Any thread may call it.
 *  @par Ownership
 *  The placement belongs to the strategy, and is valid until the strategy is destroyed. */
DITTO_API const ditto_placement *ditto_strategy_placement(const ditto_strategy *strategy);

/** Returns the parameter devices: the NUMA nodes that hold components of variables, in the order of replicas.
 *
 *  @param strategy   the strategy
 *  @param nodes      [out] [capacity] as many nodes as fit, as the operating system numbers them; may be NULL
 *                    if capacity is 0
 *  @param capacity   number of elements of nodes
 *  @param num_nodes  [out] how many nodes there are
 *  @retval DITTO_OK           num_nodes is set
 *  @retval DITTO_ERR_INVALID  a NULL pointer
 *  @retval DITTO_ERR_CONTEXT  the default strategy has no devices
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_parameter_devices(const ditto_strategy *strategy,
                                                                        uint32_t *nodes, uint32_t capacity,
                                                                        uint32_t *num_nodes);

/** How a replica's memory is bound to its NUMA node. */
typedef enum ditto_binding {
    DITTO_BINDING_UNKNOWN = 0,   /**< the kernel does not say */
    DITTO_BINDING_BOUND = 1,     /**< only on the node */
    DITTO_BINDING_PREFERRED = 2, /**< on the node until it is full */

    /** The kernel refused mbind, as in default containers. The replica touches pages before they are handed
     *  out. */
    DITTO_BINDING_FIRST_TOUCH = 3,
} ditto_binding;

/** Where a replica is, as planned, and as read back from the kernel. */
typedef struct ditto_replica_info {
    size_t struct_size; /**< set by DITTO_REPLICA_INFO_INIT */

    ditto_placed_device planned; /**< the planned PU of the leader */
    uint32_t num_devices;        /**< number of logical devices: the leader and its helpers */

    /** Number of threads of other strategies of this process on one PU of the replica. It is the largest such
     *  number over its PUs. */
    uint32_t num_foreign_threads;

    /** The thread's id, as `top -H` shows it. -1 for a replica 0 that uses the thread of the caller in a
     *  run. */
    int32_t thread_id;

    /** The PU on which the thread ran when the strategy was created. -1 if unknown or not pinned. */
    int32_t cpu;

    int32_t memory_node;   /**< NUMA node of the arena's first page; -1 if unknown */
    ditto_binding binding; /**< how the arena is bound to its node */

    /** Bytes mapped so far. They include memory for devices on other nodes. */
    uint64_t arena_bytes;

    /** Number of resident pages that are on another node than planned. */
    uint64_t remote_pages;
} ditto_replica_info;

/** Initial value of ditto_replica_info. */
#define DITTO_REPLICA_INFO_INIT DITTO_OPTIONS_INIT(ditto_replica_info)

/** Reads where a replica is.
 *
 *  @param strategy  the strategy
 *  @param replica   id of the replica
 *  @param out       [out] the information. Start from DITTO_REPLICA_INFO_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  out is NULL, or its struct_size is not set
 *  @retval DITTO_ERR_RANGE    there is no such replica
 *  @par Cost
 *  The function makes several system calls. It is meant for reports. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_replica_info(ditto_strategy *strategy, uint32_t replica,
                                                                   ditto_replica_info *out);

/** Where a logical device is, as planned, and as read back from the kernel. */
typedef struct ditto_device_info {
    size_t struct_size; /**< set by DITTO_DEVICE_INFO_INIT */

    ditto_placed_device planned; /**< the planned PU */

    /** Number of threads of other strategies of this process on the PU. */
    uint32_t num_foreign_threads;

    int32_t thread_id; /**< as in ditto_replica_info */
    int32_t cpu;       /**< as in ditto_replica_info */
} ditto_device_info;

/** Initial value of ditto_device_info. */
#define DITTO_DEVICE_INFO_INIT DITTO_OPTIONS_INIT(ditto_device_info)

/** Reads where a logical device is.
 *
 *  @param strategy  the strategy
 *  @param replica   id of the replica
 *  @param device    number of the device in the replica. Without helpers there is only device 0
 *  @param out       [out] the information. Start from DITTO_DEVICE_INFO_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  out is NULL, or its struct_size is not set
 *  @retval DITTO_ERR_RANGE    there is no such replica or device */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_device_info(ditto_strategy *strategy, uint32_t replica,
                                                                  uint32_t device, ditto_device_info *out);

/** Writes a table of the replicas (replica, package, node, PU, thread, memory) and the limits of the process.
 *
 *  @param strategy  the strategy
 *  @param buffer    [out] the text, terminated; may be NULL if capacity is 0
 *  @param capacity  bytes of buffer
 *  @param length    [out] the length of the whole text, without its terminator; may be NULL. If it is larger
 *                   than capacity - 1, the text in buffer is cut
 *  @retval DITTO_OK           the text was written
 *  @retval DITTO_ERR_INVALID  buffer is NULL, and capacity is not 0 */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_describe(ditto_strategy *strategy, char *buffer,
                                                               size_t capacity, size_t *length);

/** @} */

DITTO_END
#endif
