/* include/ditto/topology.h - the machine: packages, NUMA nodes, cores, PUs, and what this process may use of them. */
#ifndef DITTO_TOPOLOGY_H
#define DITTO_TOPOLOGY_H

#include <ditto/status.h>

DITTO_BEGIN

/** The machine as hwloc sees it, cut to what the process may use. Immutable: any thread may read it. */
typedef struct ditto_topology ditto_topology;

typedef struct ditto_topology_options {
    size_t struct_size; /**< set by DITTO_TOPOLOGY_OPTIONS_INIT */

    /** A machine recorded by `lstopo file.xml`; NULL: this machine. The file must come from a source that the program
     *  trusts, as its configuration does: hwloc reads it in this process, and hwloc 2.9 crashes on some files that
     *  lstopo did not write. A program that takes such files from others tries them in a process of their own first,
     *  as ditto-info does. */
    const char *xml_path;

    const char *synthetic; /**< an hwloc synthetic machine, "pack:2 [numa] core:4 pu:2"; NULL: this machine */
    const char *
        cpus; /**< only these PUs, "0-31,64": a part of the machine, for instance one of its sockets; NULL: all */
} ditto_topology_options;
#define DITTO_TOPOLOGY_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_topology_options)

/** Dimensions of the mesh [package][NUMA node of the package][core of the node][PU of the core]. */
#define DITTO_MESH_RANK 4

typedef struct ditto_topology_counts {
    uint32_t packages, numa_nodes, llcs, cores, pus; /**< that the process may use; nodes: those with PUs */
    uint32_t
        machine_pus; /**< that the machine has: more than `pus` where affinity, a cpuset or `.cpus` cuts */
    uint32_t
        cpuset_pus; /**< of these, online and in the process's cpuset; more than `pus` where affinity cuts */
    uint32_t machine_nodes; /**< NUMA nodes of the machine, those without PUs or memory included */
    uint32_t core_kinds;    /**< 1: all cores alike; more: hybrid (fast and efficient ones); 0: not known */
    double
        cpu_quota; /**< CPUs that cgroups grant (v1 cfs quota or v2 cpu.max, the least of all ancestors); 0: no limit */

    /** The extent of each dimension: the number of packages, the NUMA nodes of the package that has most of them, the
     *  cores of the node that has most, and the PUs of the core that has most. */
    uint32_t mesh[DITTO_MESH_RANK];

    uint32_t regular; /**< 1: the mesh is full; 0: some coordinates have no PU */
} ditto_topology_counts;

/** No NUMA node: the operating system shows none for this PU. */
#define DITTO_NO_NODE UINT32_MAX

/** A logical processor that the process may use. Logical indices are hwloc's, counted over the whole machine. */
typedef struct ditto_pu {
    uint32_t number;    /**< operating-system number, as `taskset` takes it */
    uint32_t package;   /**< logical index; 0 where the machine shows no packages */
    uint32_t numa_node; /**< operating-system number, as `numactl --hardware` prints it; DITTO_NO_NODE */
    uint32_t
        memory_node; /**< where its memory comes from: `numa_node`, unless that has no memory or may not be
                                         used (Mems_allowed); then the nearest that has; DITTO_NO_NODE */
    uint32_t llc;    /**< last-level cache, counted in the order of the mesh */
    uint32_t core;   /**< logical index */
    uint32_t smt;    /**< 0: the first PU of its core that may be used, 1: its sibling, ... */
    uint32_t
        kind; /**< of core: 0 .. core_kinds - 1, the fastest has the highest number where hwloc can rank them */
    uint32_t mesh[DITTO_MESH_RANK]; /**< coordinates, among the PUs that may be used */
} ditto_pu;

typedef struct ditto_cache {
    uint32_t level; /**< 1: nearest; data or unified */
    uint32_t pus;   /**< usable PUs that share it */
    uint64_t bytes;
} ditto_cache;
#define DITTO_MAX_CACHES 5 /* levels of a PU */

typedef enum ditto_node_kind {
    DITTO_NODE_ORDINARY = 0,   /**< memory, and PUs beside it */
    DITTO_NODE_MEMORYLESS = 1, /**< PUs alone: their memory comes from the nearest node that has some */
    DITTO_NODE_CPULESS = 2,    /**< memory alone (HBM, CXL, persistent memory): no replica is placed there */
} ditto_node_kind;

typedef struct ditto_node {
    uint32_t number; /**< operating-system number */
    ditto_node_kind kind;
    uint32_t pus;          /**< that the process may use, of those that belong to it */
    uint32_t allowed;      /**< 0: the process may not take memory there (cpuset's mems) */
    uint64_t memory_bytes; /**< of the node; 0 also when it is not known */
} ditto_node;

/** Reads the machine (or the one that the options describe). On this machine the result is cut to the calling thread's
 *  affinity and the cpuset cgroup; inside a strategy's scope, to the affinity that the thread had before it entered.
 *
 *  Order of the mesh: packages and, inside each, NUMA nodes follow one another by distance, each time the nearest to the
 *  one before; then last-level caches, cores and PUs in hwloc's order. A PU belongs to the smallest node around it that
 *  is ordinary memory; nodes of HBM or CXL memory alone never have PUs here.
 *
 *  @param options  NULL: this machine
 *  @param out      the caller's to destroy; set only on DITTO_OK
 *  @retval DITTO_ERR_INVALID    both xml_path and synthetic are set, or the synthetic text or `cpus` does not parse;
 *                               this machine is asked for, but hwloc was told of another one by its environment variables
 *  @retval DITTO_ERR_NOT_FOUND  there is no file at xml_path
 *  @retval DITTO_ERR_CORRUPT    the file is not an hwloc topology
 *  @retval DITTO_ERR_UNSUPPORTED  a usable PU has a number above 8191; more than 1024 NUMA nodes; options of a newer version
 *  @retval DITTO_ERR_SYSTEM     this machine or the thread's affinity could not be read: a sandbox refuses
 *                               sched_getaffinity (docs/numa.md) or the directories of /sys
 *  @retval DITTO_ERR_RANGE      no PU is left that the process may use (an empty cpuset); `cpus` names one that is not
 *                               there or not allowed
 *  @retval DITTO_ERR_NO_MEMORY
 *  Cost  about 2 ms for this machine (it reads sysfs). */
DITTO_API DITTO_NODISCARD ditto_status ditto_topology_create(const ditto_topology_options *options,
                                                             ditto_topology **out);
/** NULL is allowed. */
DITTO_API void ditto_topology_destroy(ditto_topology *topology);

/** Any thread. @retval DITTO_ERR_INVALID  an argument is NULL */
DITTO_API ditto_status ditto_topology_count(const ditto_topology *topology, ditto_topology_counts *out);
/** The PU at `index`, 0 .. pus - 1, in the order of the mesh. @retval DITTO_ERR_RANGE  no such index */
DITTO_API ditto_status ditto_topology_pu(const ditto_topology *topology, uint32_t index, ditto_pu *out);
/** The caches of the PU at `index`, nearest first. @retval DITTO_ERR_RANGE  no such index */
DITTO_API ditto_status ditto_topology_caches(const ditto_topology *topology, uint32_t index,
                                             ditto_cache out[DITTO_MAX_CACHES], uint32_t *count);
/** The NUMA node at `index`, 0 .. machine_nodes - 1, by operating-system number. @retval DITTO_ERR_RANGE */
DITTO_API ditto_status ditto_topology_node(const ditto_topology *topology, uint32_t index, ditto_node *out);
/** The firmware's relative latency from one node to another (indices as above): 10 is local; 0: not known. */
DITTO_API uint32_t ditto_topology_distance(const ditto_topology *topology, uint32_t from, uint32_t to);

/** Replicas that a strategy without options has on this machine: min(cores, ceil(CPU quota), DITTO_MAX_REPLICAS). */
DITTO_API uint32_t ditto_topology_default_replicas(const ditto_topology *topology);

DITTO_END
#endif
