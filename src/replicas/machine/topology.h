/* src/replicas/machine/topology.h - the machine as a list of PUs in the order of the mesh. */
#ifndef DTI_TOPOLOGY_H
#define DTI_TOPOLOGY_H

#include <ditto/topology.h>

#include "replicas/machine/affinity.h"

/* One PU that the process may use. */
struct dti_pu {
    ditto_pu is;
    uint32_t domain; /* 0 ..: a NUMA node's part in a package, numbered in the order of the mesh */
    uint32_t package_os,
        core_os; /* operating-system numbers, which do not depend on what the process may use */
    uint32_t caches;
    ditto_cache cache[DITTO_MAX_CACHES];
};

struct ditto_topology {
    struct dti_pu *pus; /* [counts.pus] in the order of the mesh: coordinates ascend */
    ditto_node *nodes;  /* [counts.machine_nodes] by operating-system number */
    uint32_t *distance; /* [machine_nodes * machine_nodes] the firmware's, 0: unknown */
    uint32_t *
        apart; /* the same, always comparable: without distances, by what hwloc shows the nodes to have in common */
    uint32_t domains;
    ditto_topology_counts counts;
    bool live; /* this machine, so that threads can be bound to it */
};

/* -- Any thread -- */

/* Makes forks wait until no thread is in hwloc. dti_topology_read calls it. A caller that holds a lock around
 * dti_topology_read, and makes forks wait for that lock too, calls it before it registers its own handler,
 * because a fork takes such locks in the opposite order of the registrations. Any thread may call it, any
 * number of times. */
void dti_topology_watch_forks(void);
/* Reads this machine, cut to `allowed` and to the cpuset cgroup. If `allowed` is NULL, the calling thread's
 * affinity takes its place. */
ditto_status dti_topology_read(const ditto_topology_options *options, const struct dti_mask *allowed,
                               ditto_topology **out);

/* The PU with an operating-system number; NULL: the process may not use it. */
const struct dti_pu *dti_topology_find(const ditto_topology *topology, uint32_t number);
/* They are the same piece of hardware, as far as its package, node and core tell. */
bool dti_pu_same(const struct dti_pu *a, const struct dti_pu *b);

/* The order of PUs and their coordinates. Pure: no hwloc, no system call. */

/* What mesh.c needs to know of a PU before it has an order: hwloc's indices. */
struct dti_raw_pu {
    struct dti_pu pu;  /* number, package, core, numa_node, kind, os numbers and caches are filled in */
    uint32_t node;     /* index into the topology's nodes; DITTO_NO_NODE */
    uint32_t locality; /* tells apart the places of one package: of the node, or of what stands for it */
    uint64_t llc;      /* any number that tells last-level caches apart, ascending in hwloc's order */
};

/* Sorts raw[0 .. count) into the order of the mesh and fills t->pus (room for count), spots, and the counts that follow
 * from them. t->nodes and t->apart are there. False: no memory. */
bool dti_mesh_order(ditto_topology *t, struct dti_raw_pu *raw, uint32_t count);

#endif
