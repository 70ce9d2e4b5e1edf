/* src/replicas/mesh.h - the order of PUs and their coordinates. Pure: no hwloc, no system call. */
#ifndef DTI_MESH_H
#define DTI_MESH_H

#include "replicas/topology.h"

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
