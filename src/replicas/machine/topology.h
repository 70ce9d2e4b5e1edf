/* src/replicas/machine/topology.h - the machine as a list of PUs in the order of the mesh.
 *
 * A *domain* is the set of PUs that one NUMA node and one package have in common. It is nearly always a NUMA
 * node. */
#ifndef DTI_TOPOLOGY_H
#define DTI_TOPOLOGY_H

#include <ditto/topology.h>

#include "replicas/machine/mask.h"

/* Largest number of cache levels of a PU. */
#define DTI_MAX_CACHES 5

/* A data cache or unified cache of a PU. */
struct dti_cache {
    uint32_t level;   /* 1 is the nearest */
    uint32_t num_pus; /* usable PUs that share it */
    uint64_t bytes;
};

/* One PU that the process may use. */
struct dti_pu {
    ditto_pu is;

    /* The number of its domain. Domains are numbered from 0 in the order of the mesh. */
    uint32_t domain;

    /* The number of faster kinds of cores among the PUs of the topology. */
    uint32_t faster_kinds;

    /* Operating-system numbers. They do not depend on what the process may use. */
    uint32_t package_os;
    uint32_t core_os;
    uint32_t caches;
    struct dti_cache cache[DTI_MAX_CACHES];
};

struct ditto_topology {
    /* [counts.pus] In the order of the mesh, so their coordinates ascend. */
    struct dti_pu *pus;

    /* [counts.machine_nodes] In the order of their operating-system numbers. */
    ditto_node *nodes;

    /* [machine_nodes * machine_nodes] The distances that the firmware reports. 0 means that it is unknown. */
    uint32_t *distance;

    /* [machine_nodes * machine_nodes] The same, in a form that can always be compared. For two nodes without
     * a distance, the value depends on the smallest part of the machine that contains both. It is 0 for a
     * node and itself. */
    uint32_t *apart;
    uint32_t domains;

    /* The number of kinds of cores that the PUs have, at least 1. */
    uint32_t kinds;
    ditto_topology_counts counts;

    /* True if hwloc read the machine that runs the process, and no file or description of one. Threads can
     * then be bound to its PUs. */
    bool live;
};

/* -- Any thread -- */

/* Makes forks wait until no thread is in hwloc. Any thread may call it, any number of times.
 * dti_topology_read calls it. A caller may hold a lock around dti_topology_read, and make forks wait for that
 * lock too. Such a caller must call this function before it registers its own handler, because a fork takes
 * the locks in the opposite order of the registrations. */
void dti_topology_watch_forks(void);

/* Reads this machine, or the one that the options describe. The PUs of this machine are limited to `allowed`
 * and to the cpuset cgroup. If `allowed` is NULL, the affinity of the calling thread is used instead. On all
 * machines the PUs are limited to those of options->cpus and options->fastest_kinds. If options->part asks
 * for it, only the part of this process is left (part.h). */
ditto_status dti_topology_read(const ditto_topology_options *options, const struct dti_mask *allowed,
                               ditto_topology **out);

void dti_topology_destroy(ditto_topology *topology);

/* Returns ditto_topology_counts.default_num_replicas. */
uint32_t dti_topology_default_num_replicas(const ditto_topology *topology);

/* Returns how many of `replicas`, which have `pus_of_each` PUs, the CPU quota of this process grants, rounded
 * up. At most DITTO_MAX_REPLICAS. */
uint32_t dti_topology_limit_replicas(const ditto_topology *topology, uint32_t replicas, uint32_t pus_of_each);

/* Returns the PU with an operating-system number, or NULL if it does not exist or the process may not use
 * it. */
const struct dti_pu *dti_topology_find(const ditto_topology *topology, uint32_t number);

/* Returns true if both are the same piece of hardware, judged by the numbers of PU, NUMA node, package and
 * core. */
bool dti_pu_same(const struct dti_pu *a, const struct dti_pu *b);

/* -- The order of PUs and their coordinates. Pure, so it uses neither hwloc nor system calls -- */

/* A PU before it has a position in the mesh. The indices are those of hwloc. */
struct dti_raw_pu {
    /* Number, package, core, numa_node, kind, faster_kinds, operating-system numbers and caches are filled
     * in. */
    struct dti_pu pu;

    /* Index into the topology's nodes, or DITTO_NO_NODE. */
    uint32_t node;

    /* Distinguishes the domains of one package. It is the logical index of the node, or UINT32_MAX without a
     * node. */
    uint32_t locality;

    /* Any number that distinguishes last-level caches and ascends in the order of hwloc. */
    uint64_t llc;
};

/* Sorts raw[0 .. count) into the order of the mesh. Fills t->pus, whose capacity is `count`, t->domains, and
 * the counts that follow from them. t->nodes and t->apart must be complete. Returns false if there is no
 * memory. */
bool dti_mesh_order(ditto_topology *t, struct dti_raw_pu *raw, uint32_t count);

#endif
