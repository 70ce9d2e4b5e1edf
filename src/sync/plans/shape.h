/* src/sync/plans/shape.h - how far apart replicas are, which is all that plans need to know about a machine.
 * Pure.
 *
 * Replica ids are numbered node by node, so near replicas have near ids. The machine is a row of replicas
 * with borders between neighbours. */
#ifndef DTI_SHAPE_H
#define DTI_SHAPE_H

#include <ditto/placement.h>

/* The distance of two replicas. They share a cache, a node or a package, or are in different packages. */
enum dti_distance {
    DTI_DISTANCE_CACHE,
    DTI_DISTANCE_NODE,
    DTI_DISTANCE_PACKAGE,
    DTI_DISTANCE_BEYOND_PACKAGE
};
#define DTI_DISTANCES 4

struct dti_machine_shape {
    uint32_t n;

    /* enum dti_distance of the replicas i - 1 and i. Element 0 is not used. */
    uint8_t border[DITTO_MAX_REPLICAS];
};

void dti_machine_shape_of_placement(const ditto_placement *placement, struct dti_machine_shape *out);

#endif
