/* include/ditto/strategy.h - the object that owns replicas: create, enter its scope, run functions, describe, destroy.
 *
 * All functions here: cross-replica context. On a replica's thread they are DITTO_ERR_CONTEXT; in another strategy's
 * scope too ("mixing strategies"); in a child process after fork DITTO_ERR_FORKED. Calls on one strategy from several
 * threads are served one after the other. */
#ifndef DITTO_STRATEGY_H
#define DITTO_STRATEGY_H

#include <ditto/placement.h>
#include <ditto/replica.h>

DITTO_BEGIN

typedef struct ditto_strategy ditto_strategy;
struct ditto_tuning; /* ditto/tuning.h */

/** By which way collectives move data. The choice changes speed, never values. */
typedef enum ditto_implementation {
    DITTO_IMPLEMENTATION_AUTO = 0,
    DITTO_IMPLEMENTATION_FLAT = 1, /**< every replica deals with every other one */
    DITTO_IMPLEMENTATION_HIERARCHICAL =
        2, /**< first among near replicas (cache, node, package), then between those groups.
                                                Where all replicas are one group it is FLAT */
} ditto_implementation;

typedef enum ditto_kind {
    DITTO_MIRRORED = 1, /**< synchronous replicas; variables mirrored on all of them */
    DITTO_CENTRAL_STORAGE =
        2, /**< synchronous replicas; variables have one copy, on one NUMA node, which all read */
    DITTO_ONE_DEVICE = 3,       /**< one replica */
    DITTO_DEFAULT_STRATEGY = 4, /**< what ditto_get_strategy gives outside of all others; it is not created */
} ditto_kind;

typedef enum ditto_caller {
    DITTO_CALLER_DEFAULT = 0,
    DITTO_CALLER_IS_REPLICA_0 =
        1,                  /**< the default: the thread that calls run works as replica 0, on its PU */
    DITTO_CALLER_WAITS = 2, /**< replica 0 has a thread of its own, the caller sleeps */
} ditto_caller;

typedef enum ditto_pin {
    DITTO_PIN_DEFAULT = 0,
    DITTO_PIN_PU =
        1, /**< the default: each thread is bound to its PU (helpers off: a leader to its replica's PUs) */
    DITTO_PIN_NONE = 2, /**< the host places threads itself; arenas still prefer the planned node */
} ditto_pin;

/** Threads on the PUs of a replica beside its leader's: see ditto/device.h. */
typedef enum ditto_helpers {
    DITTO_HELPERS_DEFAULT = 0,
    DITTO_HELPERS_ON =
        1, /**< the default: one on each PU but the first, asleep when there is nothing to do */
    DITTO_HELPERS_OFF =
        2, /**< none: the leader may run on all PUs of its replica, and the threads that it starts (OpenMP's)
                                inherit them */
} ditto_helpers;

/** With which instructions reductions are computed. All give the same bits. */
typedef enum ditto_kernels {
    DITTO_KERNELS_DEFAULT = 0,  /**< the best that the processor has */
    DITTO_KERNELS_PORTABLE = 1, /**< those of the build's baseline */
    DITTO_KERNELS_AVX2 = 2,
    DITTO_KERNELS_AVX512 = 3,
} ditto_kernels;

typedef enum ditto_memory {
    DITTO_MEMORY_DEFAULT = 0,
    DITTO_MEMORY_PREFERRED = 1, /**< the default: pages on the replica's node while it has room */
    DITTO_MEMORY_STRICT =
        2, /**< pages on the replica's node alone: SYSTEM where the kernel refuses mbind. Pages come when
                                     they are touched; a node that is full then is out of memory, as for any bound memory */
} ditto_memory;

/** In which floating-point environment functions of the program's run on replicas: those that are given to run, loops and
 *  functions on logical devices, and functions of updates. What the library computes itself (collectives, reductions,
 *  optimizers, input, random numbers) and what runs inside of that (maps, filters, generators, functions that combine, rules of
 *  optimizers) always has the contract's: its bits depend on what it is given alone. */
typedef enum ditto_floating {
    DITTO_FLOATING_DEFAULT = 0,

    /** The contract's: rounding to nearest, FTZ and DAZ off, no traps. This is the default. A program that has FTZ and DAZ on
     *  (-ffast-math sets them at its start) computes with denormals in its replicas' functions all the same, which may be slower
     *  there. The caller's environment is restored when run returns. */
    DITTO_FLOATING_CONTRACT = 1,

    /** That of the thread that calls run, or ditto_variable_update, at that time: the same on all replicas, and in runs inside
     *  runs that of the outermost. What functions hand to a collective may have other bits then; what the collective makes of
     *  equal bits has not. */
    DITTO_FLOATING_HOST = 2,
} ditto_floating;

typedef struct ditto_strategy_options {
    size_t struct_size; /**< set by DITTO_STRATEGY_OPTIONS_INIT */
    uint32_t
        replicas; /**< 0: min(cores that the process may use, ceil(CPU quota)); more than PUs: they share */
    ditto_policy policy;      /**< how replicas go to NUMA nodes */
    const uint32_t *pus;      /**< explicit PUs, one a replica; NULL: by policy. Read only during create */
    uint32_t num_pus;         /**< entries of `pus` */
    uint32_t placement_flags; /**< DITTO_PLACEMENT_SHARE, DITTO_PLACEMENT_NO_SMT */
    ditto_caller caller;
    ditto_pin pin;
    ditto_memory memory;
    uint32_t timeout_ms; /**< how long a replica waits for the others in a collective or for input. 0: the
                                  environment variable DITTO_TIMEOUT_MS, else 600000; DITTO_FOREVER */
    /** How long run waits for functions to return. 0 means for ever. When it has passed, every replica that waits in the
     *  library returns with an error, and the others have a quarter of the limit more (at least 250 ms, at most 1 s) to
     *  return before the strategy is poisoned. A caller that works as replica 0 can be let go only while it waits in the
     *  library. It cannot be given up on while its own function computes, or while it waits for a function that it has
     *  given to a helper, or for the function of a ditto_update that uses its arguments on another NUMA node: see
     *  DITTO_CALLER_WAITS. */
    uint32_t run_timeout_ms;
    /** How long a waiting thread spins before it sleeps, in microseconds. 0 means the default, 50, unless
     *  has_spin_us is set. Threads on shared PUs do not spin. */
    uint32_t spin_us;
    size_t stack_bytes; /**< of the replicas' threads, at least 128 KiB; 0: the system's default */
    void (*thread_start)(uint32_t replica,
                         void *user); /**< on each leader's and helper's thread, first and last thing; */
    void (*thread_stop)(uint32_t replica,
                        void *user); /**< not for a calling thread that works as replica 0 */
    void *thread_user;
    const ditto_placement
        *placement; /**< where replicas go; then replicas, policy, pus, per and placement_flags stay 0. Read
                                           only during create. It must have been built for this machine */
    ditto_per per;  /**< what a replica spans: DITTO_PER_NUMA_NODE makes one per NUMA node. 0: one PU */
    ditto_helpers helpers;
    ditto_kernels kernels; /**< UNSUPPORTED where the processor does not have them */
    const struct ditto_tuning
        *tuning; /**< numbers by which collectives are chosen: ditto/tuning.h; NULL: measured. Read only
                                              during create */
    ditto_implementation implementation; /**< of collectives that do not say; 0: AUTO */
    size_t bytes_per_pack;               /**< of lists that do not say; 0: one pack */
    const uint32_t *
        parameter_node; /**< of central storage: the NUMA node of its variables, an operating-system number; NULL:
                                         the only replica's node, else that of the thread that creates. Read only during create */
    int has_spin_us; /**< not 0: spin_us is meant as it stands; 0 then means that no thread spins */
    /** The floating-point environment of functions on replicas; 0: the contract's, with FTZ and DAZ off. */
    ditto_floating floating;
} ditto_strategy_options;
#define DITTO_STRATEGY_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_strategy_options)

/** Reads the machine, places the replicas, starts their pinned threads, gives each an arena on its NUMA node, and reads
 *  back where they really are.
 *
 *  @param kind     DITTO_MIRRORED, DITTO_CENTRAL_STORAGE or DITTO_ONE_DEVICE
 *  @param options  NULL: one replica per core
 *  @param out      the caller's, to be given to ditto_strategy_destroy; set only on DITTO_OK
 *  @retval DITTO_ERR_RANGE      an unknown kind or enum; more than DITTO_MAX_REPLICAS; a PU that the process may not
 *                               use; an empty cpuset; a parameter_node whose memory the process may not use
 *  @retval DITTO_ERR_INVALID    NULL out; contradicting options; more than one replica for one device; DITTO_TIMEOUT_MS
 *                               is set but no number; a placement that was built for another machine
 *  @retval DITTO_ERR_SYSTEM     a thread was refused (RLIMIT_NPROC, pids cgroup) or could not be pinned; the machine
 *                               could not be read; strict memory where mbind is refused
 *  @retval DITTO_ERR_UNSUPPORTED  options of a newer version
 *  @retval DITTO_ERR_NO_MEMORY  an arena was refused (RLIMIT_AS)
 *  @retval DITTO_ERR_CONTEXT    on a replica's thread, or in another strategy's scope
 *  On failure nothing is left behind: no thread, no memory.
 *  Cost  a few milliseconds. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_create(ditto_kind kind,
                                                             const ditto_strategy_options *options,
                                                             ditto_strategy **out);

/** Ends the threads and frees everything that belongs to the strategy. Its variables and iterators may be destroyed
 *  before or after; used after, they give DITTO_ERR_CONTEXT. NULL is allowed.
 *  @retval DITTO_ERR_BUSY      another thread is in a call on it, or on a variable, an iterator or a value of it, be it only waiting
 *                              for its turn; nothing was done
 *  @retval DITTO_ERR_CONTEXT   inside its own run or scope; nothing was done
 *  @retval DITTO_ERR_POISONED  it is destroyed, but the replicas that the message names never returned: their threads
 *                              and memory had to be left. Variables, values and iterators of it are left too when they are
 *                              destroyed: a replica that is late may use them
 *  In a child process after fork it frees without joining and returns DITTO_OK. */
DITTO_API ditto_status ditto_strategy_destroy(ditto_strategy *strategy);

/** Runs function(self, argument) once on every replica, ids 0 .. N-1, at the same time, and waits until all returned.
 *
 *  @param function  must return: an exception or pthread_exit that leaves it ends the program (ditto/status.h)
 *  @param argument  given to all replicas as it is
 *  The function runs in the floating-point environment that ditto_strategy_options.floating says: by default with rounding to
 *  nearest and with FTZ and DAZ off, also in a program that has them on.
 *  @return DITTO_OK; the first news that the replica of lowest id returned; or the error of the replica that failed
 *          first, with its message in ditto_last_error()
 *  @retval DITTO_ERR_TIMED_OUT  run_timeout_ms passed, and the replicas named had not returned. If another replica
 *                               failed before that, its error is returned; the message says if it is poisoned now
 *  @retval DITTO_ERR_SYSTEM     the caller could not be pinned
 *  @retval DITTO_ERR_POISONED   an earlier run left a replica that never returned
 *  @retval DITTO_ERR_CONTEXT    on a replica's thread (call it in a merge function), or in another strategy's scope
 *  @retval DITTO_ERR_RANGE      runs inside runs (in merge functions), deeper than 8
 *  Ordering  what the caller wrote before, every replica sees; what replicas wrote, the caller sees afterwards.
 *  Cost      two hand-overs of a cache line; outside a scope two system calls more, for the caller's PUs. */
DITTO_API ditto_status ditto_strategy_run(ditto_strategy *strategy, ditto_replica_fn function,
                                          void *argument);

/** Makes the strategy current on this thread and pins the thread to replica 0's PU (unless the caller waits, or pin is
 *  NONE). Entering again is counted.
 *  @retval DITTO_ERR_CONTEXT  another strategy is current here, or this is a replica's thread */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_scope_enter(ditto_strategy *strategy);
/** Undoes the last enter; the outermost restores the thread's affinity.
 *  @retval DITTO_ERR_CONTEXT  this strategy is not the one entered last on this thread */
DITTO_API ditto_status ditto_strategy_scope_leave(ditto_strategy *strategy);

/** Its kind; 0 for NULL. Any thread, any context. */
DITTO_API ditto_kind ditto_strategy_kind(const ditto_strategy *strategy);
/** Replicas of the strategy; 0 for NULL. Any thread, any context. */
DITTO_API uint32_t ditto_strategy_num_replicas(const ditto_strategy *strategy);
/** Worker devices: the PUs of each replica. The strategy's own, until it is destroyed; NULL for NULL, and for the
 *  default strategy (CONTEXT), which has none. Any thread. */
DITTO_API const ditto_placement *ditto_strategy_placement(const ditto_strategy *strategy);
/** Parameter devices: the NUMA nodes that hold components of variables, operating-system numbers, in the order of
 *  replicas.
 *  @param nodes  [out] [room]
 *  @return how many there are, also where room is smaller; 0 for NULL, and for the default strategy (CONTEXT). Any
 *          thread. */
DITTO_API uint32_t ditto_strategy_parameter_devices(const ditto_strategy *strategy, uint32_t *nodes,
                                                    uint32_t room);

/** How a replica's memory is tied to its NUMA node. */
typedef enum ditto_binding {
    DITTO_BINDING_UNKNOWN = 0,   /**< the kernel does not tell */
    DITTO_BINDING_BOUND = 1,     /**< strict */
    DITTO_BINDING_PREFERRED = 2, /**< on the node while it has room */
    DITTO_BINDING_FIRST_TOUCH =
        3, /**< mbind was refused, as in default containers: pages are touched by the replica
                                        before they are handed out */
} ditto_binding;

/** Where a replica is: planned, and read back from the kernel. */
typedef struct ditto_replica_info {
    ditto_place place; /**< planned; of the leader */
    uint32_t devices;  /**< logical devices: the leader and its helpers */
    uint32_t
        num_foreign_threads; /**< threads of this process's other strategies on one of its PUs, the most on any */
    int32_t thread_id;       /**< as `top -H` shows it; replica 0 has the caller's in a run: -1 */
    int32_t cpu;             /**< where the thread ran when the strategy was made; -1 unknown or not pinned */
    int32_t memory_node;     /**< of the arena's first page; -1 unknown */
    ditto_binding binding;
    uint64_t arena_bytes;  /**< mapped so far, memory for devices on other nodes included */
    uint64_t remote_pages; /**< of the resident pages, those on another node than meant */
} ditto_replica_info;

/** @retval DITTO_ERR_RANGE  no such replica.  Cost  system calls: for reports. */
DITTO_API ditto_status ditto_strategy_replica_info(ditto_strategy *strategy, uint32_t replica,
                                                   ditto_replica_info *out);

/** Where a logical device is: planned, and read back. */
typedef struct ditto_device_info {
    ditto_place place;
    uint32_t num_foreign_threads; /**< threads of this process's other strategies on its PU */
    int32_t thread_id;            /**< as above */
    int32_t cpu;                  /**< as above */
} ditto_device_info;
/** @retval DITTO_ERR_RANGE  no such replica or device (with helpers off a replica has device 0 alone) */
DITTO_API ditto_status ditto_strategy_device_info(ditto_strategy *strategy, uint32_t replica, uint32_t device,
                                                  ditto_device_info *out);

/** Writes a table of the replicas (replica, package, node, PU, thread, memory) and the limits that the process is
 *  under.
 *  @param buffer  may be NULL when size is 0
 *  @param length  NULL, or receives the length of the whole text without its terminator: a larger one than size - 1
 *                 means that it was cut */
DITTO_API ditto_status ditto_strategy_describe(ditto_strategy *strategy, char *buffer, size_t size,
                                               size_t *length);

DITTO_END
#endif
