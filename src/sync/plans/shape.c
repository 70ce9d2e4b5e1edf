/* src/sync/plans/shape.c - makes the row of replicas and its borders. Pure. */
#include "sync/plans/shape.h"
#include "replicas/placement/placement.h"

static enum dti_distance between(const struct dti_pu *a, const struct dti_pu *b)
{
    if (a->is.package != b->is.package)
        return DTI_DISTANCE_BEYOND_PACKAGE;
    if (a->is.memory_node != b->is.memory_node)
        return DTI_DISTANCE_PACKAGE;
    return a->is.llc != b->is.llc ? DTI_DISTANCE_NODE : DTI_DISTANCE_CACHE;
}

void dti_machine_shape_of_placement(const ditto_placement *placement, struct dti_machine_shape *out)
{
    out->n = placement->replicas;
    out->border[0] = DTI_DISTANCE_CACHE;
    for (uint32_t i = 1; i < out->n; i++)
        out->border[i] = (uint8_t)between(dti_placement_leader(placement, i - 1),
                                          dti_placement_leader(placement, i));
}
