/* src/sync/plans/groups.h - the plan of a large reduction in several groups of near replicas: who owns which indices. Pure.
 *
 * Replicas of one package (else of one node, else of one cache) are a *group*. The indices are divided into *lanes*, as many as
 * the largest group has members; each group has an owner for each lane. The owners of a lane, one a group, are counterparts:
 * each combines its lane over its own group, they swap what they have, and each writes the result to its own group. */
#ifndef DTI_GROUPS_H
#define DTI_GROUPS_H

#include "sync/plans/shape.h"
#include "sync/kernels/tree.h"

struct dti_groups {
    uint32_t groups, ranges;
    uint32_t most_parts; /* subtrees that a group's range may consist of */
    uint32_t start[DITTO_MAX_REPLICAS + 1];
    uint32_t of[DITTO_MAX_REPLICAS]; /* the group of a replica */
};

/* `near` > 0: groups of so many neighbours, whatever the borders. */
void dti_groups_make(const struct dti_machine_shape *shape, uint32_t near, struct dti_groups *out);

static inline uint32_t dti_groups_size(const struct dti_groups *g, uint32_t group)
{
    return g->start[group + 1] - g->start[group];
}
/* A small group's members own several lanes each. */
static inline uint32_t dti_groups_owner(const struct dti_groups *g, uint32_t group, uint32_t range)
{
    return g->start[group] + range % dti_groups_size(g, group);
}

#endif
