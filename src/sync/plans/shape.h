/* src/sync/plans/shape.h - how far apart replicas are: all that plans need to know of a machine. Pure.
 *
 * Replica ids are numbered node by node, so near replicas have near ids: the machine is a row of replicas with borders. */
#ifndef DTI_SHAPE_H
#define DTI_SHAPE_H

#include "replicas/replicas.h"

/* Between two replicas; each is farther than the ones before. */
enum dti_distance {
    DTI_DISTANCE_CACHE,
    DTI_DISTANCE_NODE,
    DTI_DISTANCE_PACKAGE,
    DTI_DISTANCE_BEYOND_PACKAGE
};
#define DTI_DISTANCES 4

struct dti_machine_shape {
    uint32_t n;
    uint8_t
        border[DITTO_MAX_REPLICAS]; /* enum dti_distance between replicas i - 1 and i; entry 0 is not used */
};

void dti_machine_shape_of_placement(const ditto_placement *placement, struct dti_machine_shape *out);
/* A made-up machine: n replicas spread evenly over packages, of each over nodes, of each over caches. */
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
