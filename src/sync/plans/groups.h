/* src/sync/plans/groups.h - the plan of a large reduction in several groups of near replicas. Pure.
 *
 * The replicas of one package form a *group*. If all replicas are on one package, those of one node form a
 * group, and if all are on one node, those of one cache do. The elements of the message are divided into
 * *exchange ranges*, as many as the largest group has members. Each group has an owner for each range. The
 * owners of a range in the different groups are counterparts. Each of them combines the range over its own
 * group. Then each combines one piece of the range from the partial results of all groups. Then each reads
 * the finished pieces of the others, and writes the whole range to its own group (exchange.h). */
#ifndef DTI_GROUPS_H
#define DTI_GROUPS_H

#include "sync/kernels/tree.h"
#include "sync/plans/shape.h"

struct dti_groups {
    uint32_t groups;
    uint32_t ranges;

    /* The largest number of subtrees that the ids of a group form. */
    uint32_t most_parts;

    /* Group g consists of the replicas start[g] to start[g + 1] - 1. */
    uint32_t start[DITTO_MAX_REPLICAS + 1];

    /* The group of each replica. */
    uint32_t of[DITTO_MAX_REPLICAS];
};

/* If near > 0, the shape of the machine is not used. Each group then has `near` neighbouring replicas, and
 * the last group may have fewer. */
void dti_groups_make(const struct dti_machine_shape *shape, const struct dti_tree *tree, uint32_t near,
                     struct dti_groups *out);

static inline uint32_t dti_groups_size(const struct dti_groups *g, uint32_t group)
{
    return g->start[group + 1] - g->start[group];
}

/* Returns the replica that owns a range in a group. In a group that is smaller than the largest, members may
 * own several ranges. */
static inline uint32_t dti_groups_owner(const struct dti_groups *g, uint32_t group, uint32_t range)
{
    return g->start[group] + range % dti_groups_size(g, group);
}

#endif
