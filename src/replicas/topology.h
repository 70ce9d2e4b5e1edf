/* src/replicas/topology.h - the machine as a list of PUs in the order of the mesh. */
#ifndef DTI_TOPOLOGY_H
#define DTI_TOPOLOGY_H

#include <ditto/topology.h>

#include "replicas/pin.h"

/* One PU that the process may use. */
struct dti_pu {
    uint32_t os;      /* operating-system number */
    uint32_t package; /* logical index */
    uint32_t node;    /* 0 .. nodes - 1 in the order of the mesh */
    uint32_t node_os; /* operating-system number; 0 where there is no NUMA node at all */
    uint32_t core;    /* logical index in the machine */
    uint32_t smt;     /* 0 for the first PU of its core, 1 for its sibling, ... */
};

struct ditto_topology {
    struct dti_pu *pus; /* sorted by package, node, core, smt: the mesh, flattened */
    ditto_topology_counts counts;
    bool live; /* this machine, so that threads can be bound to it */
};

/* -- Any thread -- */

/* This machine, cut to `allowed` and to the cpuset cgroup. NULL: allowed as the calling thread's affinity is. */
ditto_status dti_topology_read(const ditto_topology_options *options, const struct dti_mask *allowed,
                               ditto_topology **out);

#endif
