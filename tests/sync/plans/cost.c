/* tests/sync/plans/cost.c - calculates what a plan costs. Pure. */
#include "cost.h"

struct dti_counters dti_cost_meeting(const struct dti_rounds *rounds, const struct dti_groups *groups,
                                     uint32_t self)
{
    struct dti_counters c = { 0 };
    for (uint32_t round = 0; round < rounds->rounds; round++) {
        struct dti_span siblings = dti_rounds_siblings(rounds, round, self);
        for (size_t b = siblings.first; b < siblings.end; b++) {
            uint32_t representative = dti_rounds_representative(rounds, round, (uint32_t)b, self);
            c.hops_far += groups->of[representative] != groups->of[self];
            c.hops_near += representative != self && groups->of[representative] == groups->of[self];
        }
    }
    return c;
}

static enum dti_distance distance_of(const struct dti_machine_shape *s, uint32_t i, uint32_t j)
{
    uint8_t farthest = 0;
    for (uint32_t k = (i < j ? i : j) + 1; k <= (i < j ? j : i); k++)
        farthest = s->border[k] > farthest ? s->border[k] : farthest;
    return (enum dti_distance)farthest;
}

double dti_cost_rounds_ns(const struct dti_rounds *r, const struct dti_machine_shape *shape,
                          const struct dti_costs *costs)
{
    double total = 0;
    for (uint32_t round = 0; round < r->rounds; round++) {
        double slowest = 0;
        for (uint32_t i = 0; i < r->n; i++) {
            struct dti_span siblings = dti_rounds_siblings(r, round, i);
            int farthest = 0;
            for (size_t b = siblings.first; b < siblings.end; b++) {
                int distance = (int)distance_of(shape, i,
                                                dti_rounds_representative(r, round, (uint32_t)b, i));
                farthest = distance > farthest ? distance : farthest;
            }
            double cost = dti_round_ns(costs, (enum dti_distance)farthest,
                                       (uint32_t)(siblings.end - siblings.first));
            slowest = cost > slowest ? cost : slowest;
        }
        total += slowest;
    }
    return total;
}

static size_t grain_of(const struct dti_all_reduce_size *s)
{
    return s->element_bytes < DTI_CACHE_LINE ? DTI_CACHE_LINE / s->element_bytes : 1;
}

struct dti_counters dti_cost_owners(const struct dti_groups *groups, uint32_t n, uint32_t self,
                                    const struct dti_all_reduce_size *s)
{
    size_t first, end, num_near = dti_groups_size(groups, groups->of[self]);
    dti_tree_part(s->count, n, self, grain_of(s), &first, &end);
    size_t bytes = (end - first) * s->element_bytes;
    return (struct dti_counters){ .read_near = num_near * bytes,
                                  .read_far = (n - num_near) * bytes,
                                  .written_near = num_near * bytes,
                                  .written_far = (n - num_near) * bytes };
}

/* Returns how many bytes a group contributes for each element of the message. The group contributes one value
 * for each of its subtrees. The value of a subtree of one replica is that replica's element, and the value of
 * a larger subtree is an accumulator. Sets *combined to the number of the group's replicas that are in
 * subtrees of more than one replica. */
static size_t contribution(const struct dti_groups *g, const struct dti_tree *tree, uint32_t group,
                           const struct dti_all_reduce_size *s, size_t *combined)
{
    struct dti_span part[DTI_TREE_PARTS];
    uint32_t parts = dti_tree_subtrees(tree, (struct dti_span){ g->start[group], g->start[group + 1] }, part);
    size_t bytes = 0;
    *combined = 0;
    for (uint32_t p = 0; p < parts; p++) {
        size_t size = part[p].end - part[p].first;
        bytes += size == 1 ? s->element_bytes : s->accumulator_bytes;
        *combined += size == 1 ? 0 : size;
    }
    return bytes;
}

static void add_block(struct dti_counters *c, const struct dti_groups *g, const struct dti_tree *tree,
                      uint32_t group, const struct dti_all_reduce_size *s, size_t count)
{
    for (uint32_t other = 0; other < g->groups; other++) {
        size_t first, end, combined, piece_first, piece_end;
        size_t bytes = contribution(g, tree, other, s, &combined);
        dti_tree_part(count, g->groups, group, grain_of(s), &first, &end);
        dti_tree_part(count, g->groups, other, grain_of(s), &piece_first, &piece_end);
        size_t taken = (end - first) * bytes + (piece_end - piece_first) * s->element_bytes;
        if (other == group)
            c->read_near += combined * count * s->element_bytes + taken;
        else
            c->read_far += taken;
    }
    c->written_near += dti_groups_size(g, group) * count * s->element_bytes;
    c->hops_far += 2 * (g->groups - 1);
}

struct dti_counters dti_cost_exchange(const struct dti_groups *g, const struct dti_tree *tree, uint32_t self,
                                      const struct dti_all_reduce_size *s)
{
    struct dti_counters c = { 0 };
    uint32_t group = g->of[self], size = dti_groups_size(g, group);
    size_t block_count = s->block_bytes / s->accumulator_bytes / grain_of(s) * grain_of(s);
    for (uint32_t range = self - g->start[group]; range < g->ranges; range += size) {
        size_t first, end;
        dti_tree_part(s->count, g->ranges, range, grain_of(s), &first, &end);
        for (; first < end; first += block_count)
            add_block(&c, g, tree, group, s, end - first < block_count ? end - first : block_count);
    }
    return c;
}

double dti_cost_ns(const struct dti_counters *most, double meetings_ns, uint32_t replicas_per_package,
                   const struct dti_bandwidths *b, const struct dti_costs *costs)
{
    double near = (double)(most->read_near + most->written_near),
           far = (double)(most->read_far + most->written_far);
    double core = (near + far) / b->core, node = near * replicas_per_package / b->node;
    double link = far * replicas_per_package / b->link, slowest = core > node ? core : node;
    /* An owner waits for two words of each block, `partial` and `result` (exchange.h). Most of these waits
     * overlap with work. The waits for both words of the first and of the last block are counted, which is
     * more than those that cannot overlap. */
    double word_waits = most->hops_far != 0 ? 4 * costs->hop_ns[DTI_DISTANCE_BEYOND_PACKAGE] : 0;
    return (slowest > link ? slowest : link) + word_waits + meetings_ns;
}
