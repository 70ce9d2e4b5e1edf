/* src/replicas/placement/placement.h - chooses the PUs of each replica. Pure functions over a list of PUs. */
#ifndef DTI_PLACEMENT_H
#define DTI_PLACEMENT_H

#include <ditto/placement.h>

#include "replicas/machine/topology.h"

/* Levels of the machine, from near to far. A node that belongs to several packages has a group for each of
 * these packages. Groups of nodes and packages are ranges of replica ids. Groups of caches are not always
 * ranges, because a cache may span several nodes. */
enum dti_level {
    DTI_LEVEL_LLC,     /* replicas whose leaders share a last-level cache */
    DTI_LEVEL_NODE,    /* replicas whose leaders share a NUMA node */
    DTI_LEVEL_PACKAGE, /* replicas whose leaders share a package */
    DTI_NUM_LEVELS
};

/* The PUs of one replica, as a range of the placement's list. The leader's PU is the first. */
struct dti_pu_block {
    uint32_t first, count;
};

/* Replicas sorted into groups. Group g has member[first[g]] .. member[first[g + 1] - 1], in ascending
 * order. */
struct dti_replica_grouping {
    uint32_t groups;
    uint32_t *first;  /* [groups + 1] */
    uint32_t *member; /* [replicas] */
};

struct ditto_placement {
    uint32_t replicas;
    struct dti_pu_block *blocks; /* [replicas] */

    /* All blocks, one after the other, as indices into pus. */
    uint32_t *list;

    /* [num_pus] The PUs of the topology, in the order of the mesh. */
    struct dti_pu *pus;

    /* [num_pus] The number of logical devices on each PU. */
    uint32_t *sharers;

    /* The groups of each level. */
    struct dti_replica_grouping level[DTI_NUM_LEVELS];
    uint32_t num_pus;
    uint32_t machine_pus, machine_nodes; /* of the topology */

    /* True if a PU has more than one logical device. */
    bool shared;
};

ditto_status dti_placement_make(const ditto_topology *topology, const ditto_placement_options *options,
                                ditto_placement **out);

/* Makes a placement from given sets of PUs. See dti_candidates_by_list for the parameters. */
ditto_status dti_placement_from_sets(const ditto_topology *topology, const uint32_t *pus,
                                     const uint32_t *set_sizes, uint32_t sets, bool share,
                                     ditto_placement **out);

/* Makes the same placement on `topology`, which the caller has just read.
 *   DITTO_ERR_INVALID    the placement was made for another machine (its size or a PU's hardware differs)
 *   DITTO_ERR_RANGE      a PU of the placement does not exist, or this process may not use it
 *   DITTO_ERR_NO_MEMORY */
ditto_status dti_placement_move(const ditto_placement *placement, const ditto_topology *topology,
                                ditto_placement **out);

void dti_placement_destroy(ditto_placement *placement); /* NULL is allowed */
const struct dti_pu *dti_placement_pu(const ditto_placement *placement, uint32_t replica, uint32_t device);
static inline const struct dti_pu *dti_placement_leader(const ditto_placement *placement, uint32_t replica)
{
    return dti_placement_pu(placement, replica, 0);
}

/* Convert a placement to text and back. See ditto_placement_write and ditto_placement_read. */
void dti_placement_write(const ditto_placement *placement, struct dti_text *text);
ditto_status dti_placement_read(const ditto_topology *topology, const char *text, size_t length,
                                ditto_placement **out);

#endif
