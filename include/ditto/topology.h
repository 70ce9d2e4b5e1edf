/* include/ditto/topology.h - the machine, and the packages, NUMA nodes, cores and PUs that the process may
 * use. */
#ifndef DITTO_TOPOLOGY_H
#define DITTO_TOPOLOGY_H

#include <ditto/status.h>

DITTO_BEGIN

/** The machine as hwloc sees it, restricted to what the process may use. It never changes, so any thread may
 *  read it. */
typedef struct ditto_topology ditto_topology;

/** Selects a machine, or a part of one. A field that is NULL is not used. */
typedef struct ditto_topology_options {
    size_t struct_size; /**< set by DITTO_TOPOLOGY_OPTIONS_INIT */

    /** Path of a machine that `lstopo file.xml` recorded. The file must come from a source that the program
     *  trusts, like its configuration, because hwloc reads it in this process, and hwloc 2.9 crashes on some
     *  files that lstopo did not write. A program that takes such files from others first tries them in a
     *  separate process, as ditto-info does. */
    const char *xml_path;

    /** A synthetic machine in the format of hwloc, such as "pack:2 [numa] core:4 pu:2". */
    const char *synthetic;

    /** The only PUs to use, for example "0-31,64": a part of the machine, such as one of its sockets. NULL
     *  means all. */
    const char *cpus;

    /** With DITTO_SWITCH_ON, only the PUs that a strategy would take by itself if a launcher has started
     *  several processes on this machine (ditto_strategy_options.part). It has no effect together with
     *  `cpus`, and on another machine. DITTO_SWITCH_OFF is the default. */
    ditto_switch part;

    /** The number of kinds of cores to use, the fastest first, of those that are left by `cpus` and by what
     *  the process may use. 0 means all. It has no effect if all cores are of one
     *  kind, or hwloc cannot say which are faster (ditto_topology_counts.core_kinds). */
    uint32_t fastest_kinds;
} ditto_topology_options;

/** Initial value of ditto_topology_options. */
#define DITTO_TOPOLOGY_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_topology_options)

/** Number of dimensions of the mesh [package][NUMA node of the package][core of the node][PU of the core]. */
#define DITTO_MESH_RANK 4

/** Numbers of objects in a topology. */
typedef struct ditto_topology_counts {
    size_t struct_size; /**< set by DITTO_TOPOLOGY_COUNTS_INIT */

    uint32_t packages;   /**< packages that the process may use */
    uint32_t numa_nodes; /**< NUMA nodes with PUs that the process may use */
    uint32_t llcs;       /**< last-level caches that the process may use */
    uint32_t cores;      /**< cores that the process may use */
    uint32_t pus;        /**< PUs that the process may use */

    uint32_t machine_pus; /**< PUs of the machine, also those that are offline */

    /** PUs of the machine that are online and in the process's cpuset. More than `pus` if affinity or the
     *  options exclude some. */
    uint32_t cpuset_pus;

    /** NUMA nodes of the machine, including those without PUs or without memory. */
    uint32_t machine_nodes;

    /** Kinds of cores of the machine: 1 if all are alike, more on a hybrid machine (fast and efficient
     *  cores), 0 if hwloc does not know them or cannot say which are faster. */
    uint32_t core_kinds;

    /** Number of CPUs that cgroups grant: the least quota of the process's groups and their ancestors (v1's
     *  cfs quota, v2's cpu.max). 0 means no limit, or that this is not the machine of the process. */
    double cpu_quota;

    /** The extents of the mesh: the number of packages, and the largest number of NUMA nodes in a package, of
     *  cores in a node, and of PUs in a core. */
    uint32_t mesh[DITTO_MESH_RANK];

    uint32_t regular; /**< 1 if every coordinate has a PU, otherwise 0 */

    /** The number of processes among which the PUs of the machine were divided, or 1
     *  (ditto_topology_options.part). cpu_quota is for all of them together. */
    uint32_t num_parts;

    uint32_t part; /**< the number of this process among them, from 0 */

    /** 1 if there are more such processes than PUs, so that others may use the PU of this one. */
    uint32_t part_is_shared;

    uint32_t divided_pus; /**< the number of PUs that were divided among them, or `pus` */

    /** The environment variable that has the number of this process, or NULL. It is never freed. */
    const char *part_source;

    /** How many replicas a strategy without options has on the machine, unless its kind has only one: the
     *  minimum of the number of cores, this process's share of the CPU quota rounded up, and
     *  DITTO_MAX_REPLICAS. For a process that takes only a part of the machine, the topology must have been
     *  read with ditto_topology_options.part on. */
    uint32_t default_num_replicas;

    /** PUs in the cpuset that the affinity of the thread allows too. If this is not the machine of the
     *  process, it equals cpuset_pus. */
    uint32_t affinity_pus;
} ditto_topology_counts;

/** Initial value of ditto_topology_counts. */
#define DITTO_TOPOLOGY_COUNTS_INIT DITTO_OPTIONS_INIT(ditto_topology_counts)

/** In place of a node number: the operating system shows no NUMA node for this PU. */
#define DITTO_NO_NODE UINT32_MAX

/** A PU (logical processor) that the process may use. Logical indices are those of hwloc, for the whole
 *  machine. */
typedef struct ditto_pu {
    uint32_t number; /**< operating-system number, as for `taskset` */

    /** Logical index of the package. 0 if the machine shows no packages. */
    uint32_t package;

    /** Operating-system number of the NUMA node, as in `numactl --hardware`, or DITTO_NO_NODE. */
    uint32_t numa_node;

    /** The node that its memory comes from: numa_node if it has memory that the process may use
     *  (Mems_allowed), otherwise the nearest node that has such memory. DITTO_NO_NODE if there is none. */
    uint32_t memory_node;

    uint32_t llc;  /**< last-level cache, numbered from 0 in the order of the mesh */
    uint32_t core; /**< logical index of the core */

    /** 0 for the first PU of its core that may be used, 1 for its sibling, and so on. */
    uint32_t smt;

    /** Kind of its core, 0 .. core_kinds - 1, or 0 if core_kinds is 0. The fastest one has the highest
     *  number. */
    uint32_t kind;

    /** Coordinates among the PUs that may be used. */
    uint32_t mesh[DITTO_MESH_RANK];
} ditto_pu;

/** What a NUMA node consists of. */
typedef enum ditto_node_kind {
    DITTO_NODE_ORDINARY = 0, /**< memory and PUs */

    /** PUs without memory. ditto_pu.memory_node says where their memory comes from. */
    DITTO_NODE_MEMORYLESS = 1,

    /** Memory to which no PU belongs (usually HBM, CXL or persistent memory). No replica is placed there. */
    DITTO_NODE_CPULESS = 2,
} ditto_node_kind;

/** A NUMA node of the machine. */
typedef struct ditto_node {
    uint32_t number;       /**< operating-system number */
    ditto_node_kind kind;  /**< what it consists of */
    uint32_t num_pus;      /**< its PUs that the process may use */
    uint32_t allowed;      /**< 0 if the cpuset's mems exclude its memory */
    uint64_t memory_bytes; /**< its memory. 0 also if it is not known */
} ditto_node;

/* -- Creating and destroying -- */

/** Reads this machine, or the one that the options describe.
 *
 *  On this machine the result is restricted to the cpuset cgroup and to the affinity of the calling thread.
 *  If the thread has entered a scope or started a run, the affinity that it had before counts. A thread of
 *  the library has only the PUs to which it is bound.
 *
 *  Order of the mesh: each NUMA node is followed by the nearest node of its package that is left, and the
 *  last one of a package by the nearest node that is left at all. Within a node, faster kinds of cores come
 *  first. Last-level caches and cores of a kind are in the order of hwloc, and the PUs of a core in the order
 *  of their numbers.
 *
 *  A PU belongs to the smallest node of ordinary memory (DRAM) that contains it. It belongs to a node of HBM
 *  or CXL memory only if there is no such node.
 *
 *  @param options  the options. NULL means this machine
 *  @param out      [out] the topology; set only on DITTO_OK
 *  @return DITTO_OK, or one of:
 *  @retval DITTO_ERR_INVALID      one of these:
 *      - `out` is NULL, or struct_size is wrong.
 *      - `part` is DITTO_SWITCH_ON, and DITTO_PART is not valid.
 *      - xml_path and synthetic are both set, or `synthetic` or `cpus` has a wrong format.
 *      - This machine is wanted, but environment variables of hwloc describe another one.
 *  @retval DITTO_ERR_NOT_FOUND    there is no file at xml_path that this process may read
 *  @retval DITTO_ERR_CORRUPT      the file is not an hwloc topology, or one of a newer major version of hwloc
 *  @retval DITTO_ERR_UNSUPPORTED  a usable PU has a number above 8191, there are more than 1024 NUMA nodes,
 *                                 or options of a newer version have a field set that this version does not
 *                                 know
 *  @retval DITTO_ERR_SYSTEM       this machine or the thread's affinity cannot be read, because a sandbox
 *                                 refuses sched_getaffinity (docs/numa.md) or the directories of /sys
 *  @retval DITTO_ERR_RANGE        `cpus` lists a PU that does not exist or is not allowed, there is no PU
 *                                 that is both in the cpuset and in the affinity, or `part` is not a value of
 *                                 its enum
 *  @retval DITTO_ERR_NO_MEMORY    memory was refused
 *  @par Thread safety
 *  Any thread may call it. Only one call at a time reads a machine, and a fork waits for it.
 *  @par Ownership
 *  The caller destroys the topology with ditto_topology_destroy.
 *  @par Cost
 *  About 2 ms for this machine, because sysfs is read. */
DITTO_API DITTO_NODISCARD ditto_status ditto_topology_create(const ditto_topology_options *options,
                                                             ditto_topology **out);

/** Destroys a topology.
 *
 *  @param topology  the topology, or NULL
 *  @return DITTO_OK
 *  @par Cost
 *  Frees the copy of the topology. */
DITTO_API DITTO_NODISCARD ditto_status ditto_topology_destroy(ditto_topology *topology);

/* -- Reading a topology --
 *
 * Any thread may call the functions. Those that return a status return DITTO_ERR_INVALID if an argument is
 * NULL. */

/** Returns the numbers of objects in a topology.
 *
 *  @param topology  the topology
 *  @param out       [out] the numbers. Start from DITTO_TOPOLOGY_COUNTS_INIT
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_INVALID  struct_size is not set */
DITTO_API DITTO_NODISCARD ditto_status ditto_topology_count(const ditto_topology *topology,
                                                            ditto_topology_counts *out);

/** Returns one PU.
 *
 *  @param topology  the topology
 *  @param index     index of the PU in the order of the mesh, 0 .. pus - 1
 *  @param out       [out] the PU
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_RANGE  there is no such PU */
DITTO_API DITTO_NODISCARD ditto_status ditto_topology_pu(const ditto_topology *topology, uint32_t index,
                                                         ditto_pu *out);

/** Returns one NUMA node.
 *
 *  @param topology  the topology
 *  @param index     index of the node in ascending order of operating-system numbers, 0 .. machine_nodes - 1
 *  @param out       [out] the node
 *  @return DITTO_OK, or:
 *  @retval DITTO_ERR_RANGE  there is no such node */
DITTO_API DITTO_NODISCARD ditto_status ditto_topology_node(const ditto_topology *topology, uint32_t index,
                                                           ditto_node *out);

DITTO_END
#endif
