/* src/replicas/api_placement.c - include/ditto/placement.h: check, then call. */
#include "base/base.h"
#include "replicas/replicas.h"

#include <stdlib.h>

ditto_status ditto_placement_build(const ditto_topology *topology, const ditto_placement_options *options,
                                   ditto_placement **out)
{
    ditto_placement_options known;
    DTI_ENTER();
    if (topology == NULL || out == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s is NULL", topology == NULL ? "topology" : "out");
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_placement_options"));
    return dti_placement_make(topology, &known, out);
}

void ditto_placement_destroy(ditto_placement *placement)
{
    if (placement != NULL) {
        free(placement->blocks);
        free(placement->pus);
    }
    free(placement);
}

uint32_t ditto_placement_replicas(const ditto_placement *placement)
{
    return placement != NULL ? placement->replicas : 0;
}

ditto_status ditto_placement_get(const ditto_placement *placement, uint32_t replica, ditto_place *out)
{
    DTI_ENTER();
    if (placement == NULL || out == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s is NULL", placement == NULL ? "placement" : "out");
    if (replica >= placement->replicas)
        return DTI_FAIL(DITTO_ERR_RANGE, "replica %u: the placement has %u", replica, placement->replicas);
    const struct dti_pu *pu = dti_placement_leader(placement, replica);
    uint32_t sharers = 0;
    for (uint32_t i = 0; i < placement->replicas; i++)
        sharers += dti_placement_leader(placement, i)->os == pu->os;
    *out = (ditto_place){ .replica = replica,
                          .package = pu->package,
                          .numa_node = pu->node_os,
                          .core = pu->core,
                          .pu = pu->os,
                          .sharers = sharers };
    return DITTO_OK;
}
