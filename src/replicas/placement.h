/* src/replicas/placement.h - the arithmetic of places: pure functions over a list of PUs. */
#ifndef DTI_PLACEMENT_H
#define DTI_PLACEMENT_H

#include <ditto/placement.h>

#include "replicas/topology.h"

/* A replica has a range of the list `pus`: its leader's PU first. Today every range has one entry; replicas of several
 * PUs are longer ranges of the same list. */
struct dti_block {
    uint32_t first, count;
};

struct ditto_placement {
    uint32_t replicas;
    uint32_t listed;          /* entries of pus */
    struct dti_block *blocks; /* per replica */
    struct dti_pu *pus;       /* all blocks, one after the other */
    bool shared;              /* some PU has more than one replica */
};

ditto_status dti_placement_make(const ditto_topology *topology, const ditto_placement_options *options,
                                ditto_placement **out);
const struct dti_pu *dti_placement_leader(const ditto_placement *placement, uint32_t replica);

#endif
