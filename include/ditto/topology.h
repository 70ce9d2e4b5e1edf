/* include/ditto/topology.h - the machine: packages, NUMA nodes, cores, PUs, and what this process may use of them. */
#ifndef DITTO_TOPOLOGY_H
#define DITTO_TOPOLOGY_H

#include <ditto/status.h>

DITTO_BEGIN

/** The machine as hwloc sees it, cut to what the process may use. Immutable: any thread may read it. */
typedef struct ditto_topology ditto_topology;

typedef struct ditto_topology_options {
    size_t struct_size;    /**< set by DITTO_TOPOLOGY_OPTIONS_INIT */
    const char *xml_path;  /**< a machine recorded by `lstopo file.xml`; NULL: this machine */
    const char *synthetic; /**< an hwloc synthetic machine, "pack:2 [numa] core:4 pu:2"; NULL: this machine */
} ditto_topology_options;
#define DITTO_TOPOLOGY_OPTIONS_INIT DITTO_OPTIONS_INIT(ditto_topology_options)

typedef struct ditto_topology_counts {
    uint32_t packages, numa_nodes, cores, pus; /**< that the process may use */
    uint32_t machine_pus; /**< that the machine has: more than `pus` where affinity or a cpuset cuts */
    double
        cpu_quota; /**< CPUs that cgroups grant (v1 cfs quota or v2 cpu.max, the least of all ancestors); 0: no limit */
} ditto_topology_counts;

/** Reads the machine (or the one that the options describe). On this machine the result is cut to the calling thread's
 *  affinity and the cpuset cgroup; inside a strategy's scope, to the affinity that the thread had before it entered.
 *
 *  @param options  NULL: this machine
 *  @param out      the caller's to destroy; set only on DITTO_OK
 *  @retval DITTO_ERR_INVALID    both xml_path and synthetic are set, or the synthetic text does not parse
 *  @retval DITTO_ERR_NOT_FOUND  there is no file at xml_path
 *  @retval DITTO_ERR_CORRUPT    the file is not an hwloc topology
 *  @retval DITTO_ERR_RANGE      no PU is left that the process may use (an empty cpuset)
 *  @retval DITTO_ERR_NO_MEMORY
 *  Cost  about 2 ms for this machine (it reads sysfs). */
DITTO_API DITTO_NODISCARD ditto_status ditto_topology_create(const ditto_topology_options *options,
                                                             ditto_topology **out);
/** NULL is allowed. */
DITTO_API void ditto_topology_destroy(ditto_topology *topology);

/** Any thread. @retval DITTO_ERR_INVALID  an argument is NULL */
DITTO_API ditto_status ditto_topology_count(const ditto_topology *topology, ditto_topology_counts *out);

DITTO_END
#endif
