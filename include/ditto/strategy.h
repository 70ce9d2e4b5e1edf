/* include/ditto/strategy.h - the object that owns replicas: create, enter its scope, run, destroy. */
#ifndef DITTO_STRATEGY_H
#define DITTO_STRATEGY_H

#include <ditto/placement.h>
#include <ditto/replica.h>

DITTO_BEGIN

/** @defgroup ditto_strategies Strategies
 *
 *  Unless they say otherwise, these functions are called outside of runs, or in a merge function. Elsewhere
 *  in a run, in functions of updates and of an iterator's datasets, and in the scope of another strategy than
 *  the default one, they return DITTO_ERR_CONTEXT. For a strategy that is NULL they return DITTO_ERR_INVALID.
 *  If the strategy was created before fork, in the parent process, they return DITTO_ERR_FORKED. If it is
 *  poisoned (see run_timeout_ms), they return DITTO_ERR_POISONED. Several threads may call functions on one
 *  strategy. Their calls are served one after the other.
 *  @{ */

/** A set of replicas, and everything that was created with it. */
typedef struct ditto_strategy ditto_strategy;

struct ditto_tuning; /* ditto/tuning.h */

/** Which algorithm moves the data of collectives. The choice changes speed, never values. */
typedef enum ditto_implementation {
    DITTO_IMPLEMENTATION_DEFAULT = 0, /**< chosen by the size of the message */
    DITTO_IMPLEMENTATION_FLAT = 1,    /**< every replica exchanges data with every other one */

    /** Replicas that share a cache, a node or a package exchange data first, and then the groups that they
     *  form do so. ditto_tuning.near_replicas can set the size of the groups. */
    DITTO_IMPLEMENTATION_HIERARCHICAL = 2,
} ditto_implementation;

/** The kinds of strategy. */
typedef enum ditto_strategy_kind {
    /** Synchronous replicas. Each NUMA node with replicas has a copy of each mirrored variable
     *  (ditto/variable.h). */
    DITTO_MIRRORED = 1,

    /** Synchronous replicas. A variable has one copy, on one NUMA node, which all replicas read. */
    DITTO_CENTRAL_STORAGE = 2,

    DITTO_ONE_DEVICE = 3, /**< one replica */

    /** The strategy that ditto_get_strategy returns when no other one is current. It cannot be created. */
    DITTO_DEFAULT_STRATEGY = 4,

    /** Asynchronous workers, whose results depend on timing. Variables exist once, as parameters
     *  (ditto/parameter.h). Workers take functions from the queue of a coordinator (ditto/coordinator.h) and
     *  do not wait for each other. Calls that need replicas which work in step, such as ditto_strategy_run,
     *  return DITTO_ERR_UNSUPPORTED. */
    DITTO_PARAMETER_SERVER = 5,
} ditto_strategy_kind;

/** Which thread replica 0 uses. */
typedef enum ditto_caller {
    DITTO_CALLER_DEFAULT = 0, /**< DITTO_CALLER_IS_REPLICA_0 */

    /** The thread that calls run works as replica 0, on the PU of replica 0. This is the default. */
    DITTO_CALLER_IS_REPLICA_0 = 1,

    DITTO_CALLER_WAITS = 2, /**< replica 0 has its own thread, and the caller sleeps */
} ditto_caller;

/** Whether threads are bound to PUs. */
typedef enum ditto_pin {
    DITTO_PIN_DEFAULT = 0, /**< DITTO_PIN_PU, unless the environment says something else */

    /** Each thread is bound to its PU. Without helpers a leader is bound to all PUs of its replica. This is
     *  the default. */
    DITTO_PIN_PU = 1,

    /** The program places the threads itself. Memory is still placed on the planned nodes, unless the kernel
     *  refuses mbind. */
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
     *  mbind. The kernel provides a page when it is first touched, and not when it is allocated. If the node
     *  is full at that time, no call fails, but the kernel may kill the process. */
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

    /** Rounding to nearest, FTZ and DAZ off, no traps. This is the default. Even if the program has FTZ and
     *  DAZ on (-ffast-math sets them at its start), its functions on replicas compute with denormals, which
     *  may be slower. The caller's environment is restored when run returns. */
    DITTO_FLOATING_STANDARD = 1,

    /** The environment of the thread that calls run or ditto_variable_update, at the time of the call, on all
     *  replicas. Nested runs use the environment of the outermost run. The functions may compute other bits
     *  than with DITTO_FLOATING_STANDARD. From equal operands, collectives compute the same bits with
     *  both. */
    DITTO_FLOATING_CALLER = 2,
} ditto_floating;

/** How a thread of a strategy waits for another one: for how long it polls before it sleeps. A thread that
 *  polls continues at once, but uses its PU. A thread that sleeps continues after a wake-up, which
 *  took 45 to 75 us on a virtual machine with AMD Zen 3. */
typedef enum ditto_wait_policy {
    /** A thread learns for how long polling pays: for about 8 times the time of a wake-up on this machine
     *  (the first waits poll for 50 us). If its waits are longer, or if other threads want its PU, it sleeps
     *  almost at once. */
    DITTO_WAIT_DEFAULT = 0,

    /** A thread polls for 10 s before it sleeps. A strategy at rest uses its PUs for that time. This is the
     *  fastest on PUs that nothing else uses, and slow on PUs that others use too (docs/numa.md). */
    DITTO_WAIT_ACTIVE = 1,

    /** A thread polls for 3 us and then sleeps. Where threads of other options yield (see spin_us), it sleeps
     *  at once. */
    DITTO_WAIT_PASSIVE = 2,
} ditto_wait_policy;

/** How a strategy is created. Start from DITTO_STRATEGY_OPTIONS_INIT. A field that is 0 means its default. */
typedef struct ditto_strategy_options {
    size_t struct_size; /**< set by DITTO_STRATEGY_OPTIONS_INIT */

    /* -- Replicas and their PUs: num_replicas with span or pus_per_replica, or placement_options, or
     *    placement -- */

    /** Number of replicas, at most DITTO_MAX_REPLICAS. 0 means one for each part of the machine that span
     *  names. If span is 0 too, it means 1 for DITTO_ONE_DEVICE, and otherwise
     *  ditto_topology_counts.default_num_replicas or, with pus_per_replica, the number that is described in
     *  ditto_placement_options. If there are more replicas than such parts or PUs, they share them. */
    uint32_t num_replicas;

    /** What one replica spans. For example, DITTO_SPAN_NUMA_NODE gives one replica for each NUMA node. 0
     *  means one PU. */
    ditto_span span;

    /** All options of the placement: explicit PUs, shapes, policies, flags (ditto/placement.h). If it is
     *  given, num_replicas, span, pus_per_replica and placement must be 0. If it has no number of replicas,
     *  span, shape, stride or PUs, there are as many replicas as by default. Without explicit PUs,
     *  DITTO_PLACEMENT_SHARE is always set. It is read only during creation. */
    const ditto_placement_options *placement_options;

    /** Where the replicas are. The placement must have been made for this machine. It is read only during
     *  creation. If it is given, num_replicas, span, pus_per_replica and placement_options must be 0. */
    const ditto_placement *placement;

    /* -- Threads -- */

    ditto_caller caller; /**< which thread replica 0 uses */

    /** Whether threads are bound to PUs. DITTO_PIN_DEFAULT means that the environment variable DITTO_PIN
     *  (default, pu or none) says it. */
    ditto_pin pin;

    /** Whether a replica has helper threads on the PUs that its leader does not use (ditto/device.h).
     *
     *  DITTO_SWITCH_ON is the default. Each PU of the replica but the first has one helper, which sleeps when
     *  there is nothing to do. With DITTO_SWITCH_OFF the leader may run on all PUs of its replica, and
     *  threads that it starts (for example those of OpenMP) inherit these PUs. */
    ditto_switch helpers;

    /** Stack size of leaders and helpers, at least 128 KiB. 0 means the default of the system. */
    size_t stack_bytes;

    /** The library calls this function when the thread of a leader or helper starts, with the id of the
     *  thread's replica and thread_user. It is not called on a calling thread that works as replica 0. For a
     *  parameter server strategy, ids count from 0 in each worker, and the coordinator starts the threads of
     *  the first replicas. */
    void (*thread_start)(uint32_t replica, void *user);

    /** The library calls this function at the end of each thread for which it called thread_start. */
    void (*thread_stop)(uint32_t replica, void *user);

    void *thread_user; /**< passed to thread_start and thread_stop */

    /* -- Memory -- */

    ditto_memory_policy memory; /**< how strictly memory is placed */

    /** For central storage: the NUMA node of the variables, as the operating system numbers it. It must be 0
     *  if has_parameter_node is 0. With other kinds of strategy both must be 0. */
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
     *  When the time has passed, calls in which replicas wait for each other or for input return an error.
     *  The functions have a quarter of the limit more (at least 250 ms, at most 1 s) to return. If one of
     *  them has not returned by then, the strategy is *poisoned*. It can then only be destroyed, after its
     *  scopes have been left.
     *
     *  If the caller works as replica 0, run cannot return before the function of replica 0 has returned,
     *  however long this function computes, or waits for a function that it gave to a helper or for the
     *  function of a ditto_update that uses its arguments on another NUMA node. DITTO_CALLER_WAITS avoids
     *  this. */
    uint32_t run_timeout_ms;

    /** How long a waiting thread spins before it sleeps, in microseconds. 0 means that `wait` says it, unless
     *  has_spin_us is set. At most one of this and `wait` may be given. Threads do not spin if they share
     *  PUs, or if the strategies of the process have more threads than the CPU quota allows or, with
     *  DITTO_PIN_NONE, than there are PUs. They yield instead (sched_yield). */
    uint32_t spin_us;

    /** If not 0, spin_us is used as it stands, and 0 there means that no thread spins. */
    int has_spin_us;

    /* -- Computing: values do not depend on these, except on `floating` and `order_blocks` -- */

    /** The algorithm of collectives whose options have implementation 0. */
    ditto_implementation implementation;

    /** The pack size of lists whose options have bytes_per_pack 0. 0 means one pack. */
    size_t bytes_per_pack;

    /** Which instructions compute reductions. Creation fails with DITTO_ERR_UNSUPPORTED if the processor or
     *  the build does not have them. */
    ditto_kernels kernels;

    /** The thresholds by which algorithms are chosen (ditto/tuning.h). NULL means that none is given. It is
     *  read only during creation. */
    const struct ditto_tuning *tuning;

    /** The floating-point environment of functions on replicas. */
    ditto_floating floating;

    /** How a thread waits. If neither this nor spin_us is given, the environment variable DITTO_WAIT says it
     *  (default, active or passive), or DITTO_SPIN_US (a number, as spin_us). DITTO_WAIT_DEFAULT counts as
     *  not given. Queues of ditto/queue.h and the producers of datasets have waits of their own. */
    ditto_wait_policy wait;

    /** Into how many blocks the row of replicas (of a parameter server strategy: of a worker's replicas) is
     *  cut before they are combined, at most their number. 0 means one. The blocks are as equal as possible,
     *  the larger ones first. Each block is combined in the usual order, and so are the results of the blocks
     *  (docs/semantics.md, "The order of reduction"). The bits of reductions depend on the number of
     *  replicas and on this number, and on nothing else. Blocks that are the replicas of one package each, or
     *  of one host each, spare memory traffic where their number is not a power of two. */
    uint32_t order_blocks;

    /** Whether a process takes only its part of the machine if a launcher has started several on it.
     *
     *  DITTO_SWITCH_ON is the default. Open MPI, MPICH, Intel MPI and Slurm tell each process how many they
     *  have started on this machine. If they have left all PUs of the cpuset to all of them, the n processes
     *  divide the PUs, so that their replicas are not on the same ones. Each has whole cores if there are n
     *  cores, else whole PUs if there are n PUs, else a PU that it shares with others. A given number of
     *  replicas is placed on the part. If the options give PUs or a placement, nothing is divided. The
     *  environment variable DITTO_PART may be auto, off, or a part and the number of parts (0/2 and 1/2), for
     *  other launchers. */
    ditto_switch part;

    /** The hosts that the strategy spans, or NULL for this one alone. Every host creates the strategy, with
     *  the same kind, order_blocks, timeout_ms, bytes_per_pack, implementation and run_agreement. The numbers
     *  of replicas and their PUs are each host's own (ditto_cluster_share). Replica ids are global: host 0
     *  has the first ones, then host 1, and so on. A cluster serves one strategy at a time, and must stay
     *  until that is destroyed. Only DITTO_MIRRORED spans several hosts. */
    struct ditto_cluster *cluster;

    /** Whether the hosts agree on the end of each run. It has no effect on one host.
     *
     *  With DITTO_SWITCH_ON, the default, a run ends on all hosts together, and with the same status. This
     *  takes as long as a barrier of the hosts. With DITTO_SWITCH_OFF a run returns when the replicas of this
     *  host have returned, with the status of this host: DITTO_END_OF_INPUT and other positive statuses are
     *  each host's own. A host learns of the failure of another one at the end of a run, in a call over
     *  hosts, or over the life line, and then returns that error, perhaps in another run than the one that
     *  failed. After an error the hosts must go on with the same run. Nothing finds out whether hosts have
     *  chosen different rows. Use it for many short runs between which no host looks at what another one has
     *  done. */
    ditto_switch run_agreement;

    /* -- Only for DITTO_PARAMETER_SERVER; 0 with other kinds -- */

    /** Number of replicas of each worker, which work in step. It divides the number of replicas. 0 means 1.
     *  The strategy never uses the calling thread as a replica, and its timeouts mean: timeout_ms, how long
     *  calls of a coordinator wait; run_timeout_ms, how long a scheduled function may take until its worker
     *  is retired. */
    uint32_t replicas_per_worker;

    /** [num_parameter_nodes] The NUMA nodes that hold the parameters, as the operating system numbers them,
     *  each once. NULL means the nodes of the replicas. It is read only during creation. */
    const uint32_t *parameter_nodes;

    uint32_t num_parameter_nodes; /**< number of elements of parameter_nodes */

    /* -- For all kinds -- */

    /** The number of kinds of cores to use, the fastest first (ditto_topology_options.fastest_kinds). 0 means
     *  all. By default there is then one replica for each core of these
     *  kinds. It must be 0 if the options give PUs or a placement. Without it fast kinds are used first, but
     *  if slow ones are used too, collectives wait for replicas on these. */
    uint32_t fastest_kinds;

    /** The number of PUs of each replica, whose loops (ditto/device.h) use all of them. With num_replicas or
     *  alone, and not with span, placement_options or placement. The sets of PUs are described in
     *  ditto_placement_options. 0 means the environment variable DITTO_PUS_PER_REPLICA, or 1 if that is not
     *  set. The variable has no effect if the options say in another way what a replica spans. */
    uint32_t pus_per_replica;
} ditto_strategy_options;

/** Initial value of ditto_strategy_options: the defaults. */
#define DITTO_STRATEGY_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_strategy_options)

/** Creates a strategy. Reads the machine, places the replicas, starts their pinned threads, gives each
 *  replica an arena on its NUMA node, and reads back where threads and memory are.
 *
 *  If it fails, no thread and no memory of the strategy remain.
 *
 *  @param kind     DITTO_MIRRORED, DITTO_CENTRAL_STORAGE, DITTO_ONE_DEVICE or DITTO_PARAMETER_SERVER
 *  @param options  NULL for the defaults
 *  @param out      [out] the strategy; set only on DITTO_OK
 *  @return DITTO_OK; an error of ditto_placement_create, for the options that say where the replicas are; or:
 *  @retval DITTO_ERR_RANGE        an unknown kind or enum value; a number outside of its range, also in
 *                                 DITTO_TUNING; no PU that the process may use; a PU of the placement that it
 *                                 may not use; a parameter_node whose memory it may not use
 *  @retval DITTO_ERR_INVALID      out is NULL; a struct_size is not set; options contradict each other; more
 *                                 than one replica for DITTO_ONE_DEVICE; DITTO_TIMEOUT_MS, DITTO_TUNING,
 *                                 DITTO_PART, DITTO_PIN, DITTO_PUS_PER_REPLICA, DITTO_WAIT or DITTO_SPIN_US
 *                                 is not valid, or the last two contradict each other (docs/environment.md);
 *                                 a placement that was built for another machine; environment variables make
 *                                 hwloc describe another one
 *  @retval DITTO_ERR_SYSTEM       the system refused a thread (RLIMIT_NPROC, pids cgroup), or its pinning;
 *                                 the machine could not be read; strict memory was asked for, and mbind is
 *                                 refused
 *  @retval DITTO_ERR_UNSUPPORTED  an option that only a newer version knows; kernels that the processor or
 *                                 the build does not have; more PUs or NUMA nodes than the build supports
 *  @retval DITTO_ERR_NO_MEMORY    memory was refused (RLIMIT_AS)
 *  @retval DITTO_ERR_CONTEXT      called in a run (also in a merge function), or in the scope of another
 *                                 strategy
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
 *  Objects that were created with it (variables, values, optimizers, iterators, checkpointers) may be
 *  destroyed before or after it. Other calls on them return DITTO_ERR_CONTEXT after it, unless they say
 *  otherwise.
 *
 *  In a child process after fork the function also ends the strategy's scopes on this thread, frees the
 *  memory, and returns DITTO_OK. If the child calls it inside a function of the program that a call on the
 *  strategy executes (for example a merge function, or a variable's initialize), that function may return to
 *  the call. The memory, the objects and the scopes around the call then stay until the child ends. Calls on
 *  the objects return DITTO_ERR_FORKED.
 *
 *  @param strategy  the strategy; NULL is allowed
 *  @retval DITTO_OK            the strategy is destroyed
 *  @retval DITTO_ERR_BUSY      a call on the strategy, or on an object that was created with it, has not
 *                              returned; nothing was done
 *  @retval DITTO_ERR_CONTEXT   called in a merge function, or in another function in the strategy's
 *                              cross-replica context, and this is not a child process after fork; any thread
 *                              is in a scope of the strategy (also one of ditto_set_default); it is the
 *                              default strategy; nothing was done
 *  @retval DITTO_ERR_POISONED  the strategy is destroyed, but the replicas that the message names have not
 *                              returned from a run. Their threads and the strategy's memory are not freed,
 *                              because a late replica may still use them. For the same reason objects that
 *                              were created with the strategy are not freed when they are destroyed
 *  @retval DITTO_ERR_LOST      over several hosts: the strategy is destroyed, but the host that the message
 *                              names is gone
 *  @retval DITTO_ERR_TIMED_OUT the same, and the hosts that the message names did not come within timeout_ms
 *  @retval DITTO_ERR_DIVERGED  the same, and a host made another call, or another number of runs
 *  @par Cost
 *  Ends and joins the threads of the replicas, and frees their memory. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_destroy(ditto_strategy *strategy);

/** Runs function(self, user) once on every replica at the same time, and waits until all have returned.
 *  The replicas have the ids 0 to N-1.
 *
 *  Memory that the caller wrote before is visible to every replica. Memory that replicas wrote is visible to
 *  the caller afterwards. For the floating-point environment of the function see ditto_floating.
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
 *  @retval DITTO_ERR_CANCELLED  ditto_strategy_interrupt was called. The message says whether the strategy is
 *                               poisoned now
 *  @retval DITTO_ERR_INVALID    function is NULL; a function returned without waiting for all its pending
 *                               operations (ditto/pending.h)
 *  @retval DITTO_ERR_SYSTEM     a sandbox does not let the calling thread be pinned, or its PUs be read. If
 *                               the PU of a replica is taken from the cpuset after creation, its thread runs
 *                               on the PUs that are left, and ditto_strategy_describe says so
 *  @retval DITTO_ERR_RANGE      runs are nested more than 8 deep (in merge functions)
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for a nested run
 *  @retval DITTO_ERR_FORKED     also in a child process that the function of replica 0 forked, if the caller
 *                               works as replica 0
 *  @par Cost
 *  A run costs two hand-overs of a cache line. If the caller works as replica 0, is pinned, and is in no
 *  scope, the run also makes three system calls, which read, set and restore the PUs of the calling
 *  thread. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_run(ditto_strategy *strategy, ditto_replica_fn function,
                                                          void *user);

/** Ends the run that a strategy executes, from another thread, for example when the user has pressed Ctrl-C.
 *
 *  The run returns DITTO_ERR_CANCELLED, if it has not failed before. Replicas that wait in the library are
 *  woken, and get DITTO_ERR_PEER_STOPPED. All others have half a second to return. Then the run returns
 *  without them, and the strategy is poisoned. The caller of the run cannot leave it before its own function,
 *  if it works as replica 0. Other hosts of a cluster fail as they do when a replica fails.
 *
 *  @param strategy  the strategy, which must not be destroyed meanwhile
 *  @retval DITTO_OK               the run is told to end; or no run of the program was executed, and nothing
 *                                 was done
 *  @retval DITTO_ERR_UNSUPPORTED  it has workers: use ditto_coordinator_interrupt
 *  @retval DITTO_ERR_INVALID      strategy is NULL
 *  @retval DITTO_ERR_FORKED       this is a child process after fork
 *  @par Thread safety
 *  Any thread may call it, in any context. A signal handler may not.
 *  @par Cost
 *  Wakes the threads that sleep. It does not wait for the end of the run. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_interrupt(ditto_strategy *strategy);

/** Makes a strategy current on this thread. A scope may be entered again. It must be left as often.
 *
 *  No call needs a scope. A scope has these effects:
 *   - ditto_get_strategy returns the strategy, also in functions of the program that are not given it.
 *   - The thread is pinned as the leader of replica 0, once instead of in each run. It is not pinned with
 *     DITTO_CALLER_WAITS or DITTO_PIN_NONE.
 *   - Calls on other strategies return DITTO_ERR_CONTEXT, so that strategies are not mixed by mistake.
 *
 *  @param strategy  the strategy
 *  @retval DITTO_OK             the strategy is current
 *  @retval DITTO_ERR_CONTEXT    as for all functions of this group; also for the default strategy in the
 *                               scope of another one
 *  @retval DITTO_ERR_SYSTEM     as for ditto_strategy_run
 *  @retval DITTO_ERR_NO_MEMORY  there is no memory for a scope
 *  @par Cost
 *  Two system calls, which bind the thread to the PUs of replica 0. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_scope_enter(ditto_strategy *strategy);

/** Undoes the last ditto_strategy_scope_enter. Leaving the outermost scope restores the thread's affinity. It
 *  works in a child process and for a poisoned strategy too.
 *
 *  @param strategy  the strategy
 *  @retval DITTO_OK           the scope was left
 *  @retval DITTO_ERR_CONTEXT  the scope entered last on this thread is not one of this strategy, or was not
 *                             entered with ditto_strategy_scope_enter; nothing was done
 *  @par Cost
 *  One system call, which gives the thread its own PUs again. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_scope_leave(ditto_strategy *strategy);

/** Returns the number of replicas of a strategy.
 *
 *  @param strategy  the strategy
 *  @return the number; 0 for NULL
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API uint32_t ditto_strategy_num_replicas(const ditto_strategy *strategy);

/** What a strategy is. */
typedef struct ditto_strategy_properties {
    size_t struct_size;       /**< set by DITTO_STRATEGY_PROPERTIES_INIT */
    ditto_strategy_kind kind; /**< its kind */
    uint32_t num_replicas;    /**< number of replicas, on all hosts */

    /** Number of replicas on this host, in this process. They have consecutive ids, from first_local_replica
     *  on. A loop over components goes over these, so that a program works on several hosts too. */
    uint32_t num_local_replicas;

    uint32_t first_local_replica; /**< id of the first replica on this host, which is 0 on one host */

    /** The worker devices: the PUs of each replica. NULL for the default strategy, which has no devices. It
     *  belongs to the strategy. */
    const ditto_placement *placement;

    /** The parameter devices: array of the NUMA nodes that hold components of variables, each once, in the
     *  order of their first replicas, as the operating system numbers them. It belongs to the strategy. */
    const uint32_t *parameter_nodes;

    uint32_t num_parameter_nodes; /**< length of parameter_nodes; 0 for the default strategy */

    /** The numbers by which algorithms are chosen, as they were given or measured. NULL with workers
     *  (DITTO_PARAMETER_SERVER). They belong to the strategy. */
    const struct ditto_tuning *tuning;
} ditto_strategy_properties;

/** Initial value of ditto_strategy_properties. */
#define DITTO_STRATEGY_PROPERTIES_INIT DITTO_OPTIONS_INIT(ditto_strategy_properties)

/** Says what a strategy is.
 *
 *  @param strategy  the strategy
 *  @param out       [out] start from DITTO_STRATEGY_PROPERTIES_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  a NULL pointer, or struct_size is not set
 *  @par Thread safety
 *  Any thread may call it, in any context. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_info(const ditto_strategy *strategy,
                                                           ditto_strategy_properties *out);

/** How a replica's memory is bound to its NUMA node. */
typedef enum ditto_binding {
    DITTO_BINDING_UNKNOWN = 0,   /**< not known */
    DITTO_BINDING_BOUND = 1,     /**< only on the node */
    DITTO_BINDING_PREFERRED = 2, /**< on the node until it is full */

    /** The kernel refused mbind, as in default containers. The thread that maps pages, normally that of the
     *  replica, touches them at once, which places them on the thread's node. */
    DITTO_BINDING_FIRST_TOUCH = 3,
} ditto_binding;

/** Where a logical device of a replica is, as planned, and as read back from the kernel. */
typedef struct ditto_replica_info {
    size_t struct_size; /**< set by DITTO_REPLICA_INFO_INIT */

    ditto_placed_device planned; /**< the planned PU */
    uint32_t num_devices;        /**< number of logical devices: the leader and its helpers */

    /** Number of threads of other strategies of this process on the PU. For device 0 it is the largest one of
     *  the PUs of the replica. 0 with DITTO_PIN_NONE. */
    uint32_t num_foreign_threads;

    /** The id of the thread, as `top -H` shows it. -1 for the leader of replica 0 if the caller works as
     *  replica 0. */
    int32_t thread_id;

    /** The PU on which the thread ran last, which is not the planned one if the kernel or another program has
     *  moved the thread. If the caller works as replica 0, it is the PU on which the calling thread would run
     *  the function of replica 0. -1 if unknown or not pinned. */
    int32_t cpu;

    /** NUMA node of the first resident page of the replica's arena; -1 if unknown. This and the next three
     *  fields are about the memory of the replica, and are only set for device 0. */
    int32_t memory_node;

    ditto_binding binding; /**< how the arena is bound to its node */

    /** Bytes of address space mapped so far. They include the replica's memory on other nodes, for example
     *  for its devices there. */
    uint64_t arena_bytes;

    /** Number of resident pages that are on another node than planned. 0 if the kernel does not say. */
    uint64_t remote_pages;
} ditto_replica_info;

/** Initial value of ditto_replica_info. */
#define DITTO_REPLICA_INFO_INIT DITTO_OPTIONS_INIT(ditto_replica_info)

/** Reads where a logical device of a replica is.
 *
 *  @param strategy  the strategy
 *  @param replica   id of the replica
 *  @param device    number of the device. Device 0 is the leader. Without helpers there is no other
 *  @param out       [out] the information. Start from DITTO_REPLICA_INFO_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  out is NULL, or its struct_size is not set
 *  @retval DITTO_ERR_RANGE    there is no such replica or device
 *  @par Cost
 *  For device 0 the function makes a system call for each 2 MiB of the replica's memory. It is meant for
 *  reports. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_replica_info(ditto_strategy *strategy, uint32_t replica,
                                                                   uint32_t device, ditto_replica_info *out);

/** Writes a table of the replicas (replica, package, node, PUs, the PU on which the leader ran last, thread,
 *  devices, memory, and threads that were moved from their PUs since creation), unusual limits of the
 *  process, environment variables whose names begin with DITTO_ and are not in docs/environment.md, and a
 *  line about each iterator. Like getenv, it must not run while another thread changes the environment.
 *
 *  @param strategy  the strategy
 *  @param buffer    [out] the text, terminated; may be NULL if capacity is 0
 *  @param capacity  bytes of buffer
 *  @param length    [out] the length of the whole text, without its terminator; may be NULL. If it is larger
 *                   than capacity - 1, the text in buffer is cut
 *  @retval DITTO_OK           the text was written
 *  @retval DITTO_ERR_INVALID  buffer is NULL, and capacity is not 0
 *  @par Cost
 *  Writes one text. With `capacity` 0 the text is made too, to find its length. */
DITTO_API DITTO_NODISCARD ditto_status ditto_strategy_describe(ditto_strategy *strategy, char *buffer,
                                                               size_t capacity, size_t *length);

/** @} */

DITTO_END
#endif
