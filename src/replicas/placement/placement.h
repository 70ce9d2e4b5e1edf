/* src/replicas/placement/placement.h - the arithmetic of places: pure functions over a list of PUs. */
#ifndef DTI_PLACEMENT_H
#define DTI_PLACEMENT_H

#include <ditto/placement.h>

#include "replicas/machine/topology.h"

/* A replica has a range of the placement's list: its leader's PU first. */
struct dti_pu_block {
    uint32_t first, count;
};

/* Replicas sorted into groups: group g has member[first[g]] .. member[first[g + 1] - 1], ascending. */
struct dti_replica_grouping {
    uint32_t groups;
    uint32_t *first;  /* [groups + 1] */
    uint32_t *member; /* [replicas] */
};

struct ditto_placement {
    uint32_t replicas;
    struct dti_pu_block *blocks; /* per replica */
    uint32_t *list;              /* all blocks, one after the other: indices into pus */
    struct dti_pu *pus;          /* [num_pus] of the topology, in the order of the mesh */
    uint32_t *sharers;           /* [num_pus] logical devices on it */
    struct dti_replica_grouping level[DITTO_LEVELS], by_numa_node; /* home: by the leader's NUMA node */
    uint32_t num_pus;
    uint32_t machine_pus, machine_nodes; /* of the topology */
    bool shared;                         /* some PU has more than one logical device */
};

ditto_status dti_placement_make(const ditto_topology *topology, const ditto_placement_options *options,
                                ditto_placement **out);
/* From sets: see dti_candidates_by_list. */
ditto_status dti_placement_from_sets(const ditto_topology *topology, const uint32_t *pus,
                                     const uint32_t *set_sizes, uint32_t sets, bool share,
                                     ditto_placement **out);
/* The same places on `topology`, which the caller has just read. INVALID: a PU is another piece of hardware there, so that
 * the placement was made for another machine. RANGE: a PU may not be used. */
ditto_status dti_placement_move(const ditto_placement *placement, const ditto_topology *topology,
                                ditto_placement **out);

const struct dti_pu *dti_placement_pu(const ditto_placement *placement, uint32_t replica, uint32_t device);
static inline const struct dti_pu *dti_placement_leader(const ditto_placement *placement, uint32_t replica)
{
    return dti_placement_pu(placement, replica, 0);
}

/* Text and back; see ditto_placement_write and _read. */
void dti_placement_write(const ditto_placement *placement, struct dti_text *text);
ditto_status dti_placement_read(const ditto_topology *topology, const char *text, size_t length,
                                ditto_placement **out);

#endif
