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

/* Makes the shape of a regular machine. The n replicas are spread evenly over packages, those of a package
 * over nodes, and those of a node over caches. */
void dti_machine_shape_regular(uint32_t n, uint32_t packages, uint32_t nodes, uint32_t caches,
                               struct dti_machine_shape *out);

static inline enum dti_distance dti_machine_shape_distance(const struct dti_machine_shape *s, uint32_t i,
                                                           uint32_t j)
{
    uint8_t farthest = 0;
    for (uint32_t k = (i < j ? i : j) + 1; k <= (i < j ? j : i); k++)
        farthest = s->border[k] > farthest ? s->border[k] : farthest;
    return (enum dti_distance)farthest;
}

#endif
