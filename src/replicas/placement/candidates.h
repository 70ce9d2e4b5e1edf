/* src/replicas/placement/candidates.h - the places that a machine has for replicas: which PUs each would get. Pure. */
#ifndef DTI_CANDIDATES_H
#define DTI_CANDIDATES_H

#include <ditto/placement.h>

#include "replicas/machine/topology.h"

/* A place for one replica: a range of the list of PUs, the leader's first. */
struct dti_candidate {
    uint32_t first, count;
    uint32_t leader; /* index into the topology's PUs: pu[first] */
    uint32_t
        tier; /* taken in this order: 0 starts on a core's first PU, 1 on its sibling, ...; left-over PUs come last */
};

struct dti_candidates {
    struct dti_candidate *candidate; /* [count], by the leader's index in the mesh */
    uint32_t *pu;                    /* [listed] indices into the topology's PUs */
    uint32_t count, listed, tiers;
};

/* All three fill *out, the caller's to free with dti_candidates_free. They are not limited in number. */

/* Boxes of the mesh. no_smt: the mesh has one PU per core. Errors: RANGE (below 1, beyond the mesh), NO_MEMORY. */
ditto_status dti_candidates_by_shape(const ditto_topology *topology, const int64_t shape[DITTO_MESH_RANK],
                                     const int64_t stride[DITTO_MESH_RANK], bool no_smt,
                                     struct dti_candidates *out);
/* What `per` names; not DITTO_PER_SHAPE. Error: NO_MEMORY. */
ditto_status dti_candidates_by_name(const ditto_topology *topology, ditto_per per, bool no_smt,
                                    struct dti_candidates *out);
/* Given sets: set_sizes[sets] entries of pus each (NULL: one each), operating-system numbers. Errors: RANGE, NO_MEMORY. */
ditto_status dti_candidates_by_list(const ditto_topology *topology, const uint32_t *pus,
                                    const uint32_t *set_sizes, uint32_t sets, bool share,
                                    struct dti_candidates *out);
void dti_candidates_free(struct dti_candidates *candidates);

#endif
