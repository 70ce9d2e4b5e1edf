/* src/sync/plans/groups.c - divides replicas into groups. Pure. */
#include "sync/plans/groups.h"

void dti_groups_make(const struct dti_machine_shape *shape, const struct dti_tree *tree, uint32_t near,
                     struct dti_groups *out)
{
    /* The farthest distance that occurs, but at least DTI_DISTANCE_NODE. The borders of this distance divide
     * the row into groups. */
    int distance = DTI_DISTANCE_NODE;
    struct dti_span parts[DTI_TREE_PARTS];
    for (uint32_t i = 1; i < shape->n; i++)
        distance = shape->border[i] > distance ? shape->border[i] : distance;
    out->groups = out->ranges = out->most_parts = 0;
    for (uint32_t i = 0; i < shape->n; i++) {
        if (i == 0 || (near != 0 ? i % near == 0 : shape->border[i] >= distance))
            out->start[out->groups++] = i;
        out->of[i] = out->groups - 1;
    }
    out->start[out->groups] = shape->n;
    for (uint32_t g = 0; g < out->groups; g++) {
        uint32_t size = dti_groups_size(out, g);
        uint32_t found = dti_tree_subtrees(tree, (struct dti_span){ out->start[g], out->start[g + 1] },
                                           parts);
        out->ranges = size > out->ranges ? size : out->ranges;
        out->most_parts = found > out->most_parts ? found : out->most_parts;
    }
}
