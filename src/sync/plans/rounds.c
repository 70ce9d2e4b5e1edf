/* src/sync/plans/rounds.c - makes and reads nested cuts of the row of replicas. Pure. */
#include "sync/plans/rounds.h"
#include "base/errors/status.h"

#include <stdlib.h>
#include <string.h>

double dti_round_ns(const struct dti_costs *costs, enum dti_distance distance, uint32_t blocks)
{
    if (blocks < 2)
        return 0;
    return costs->hop_ns[distance] * (1 + (blocks - 2) / costs->overlap) + costs->round_ns;
}

/* -- making the cuts, from the coarsest to the finest -- */

static bool add_cut(struct dti_rounds *r, const uint32_t *start, uint32_t blocks)
{
    uint32_t *copy = malloc((blocks + 1) * sizeof *copy);
    if (copy == NULL || r->rounds == DTI_MOST_ROUNDS + 1) {
        free(copy);
        return false;
    }
    memcpy(copy, start, (blocks + 1) * sizeof *copy);
    r->start[r->rounds] = copy;
    r->blocks[r->rounds++] = blocks;
    return true;
}

/* Makes the cut at every border of at least `distance` and, if every > 0, at every multiple of `every`.
 * Returns its number of blocks. */
static uint32_t cut_at(const struct dti_machine_shape *shape, int distance, uint32_t every, uint32_t *start)
{
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < shape->n; i++)
        if (i == 0 || shape->border[i] >= distance || (every != 0 && i % every == 0))
            start[blocks++] = i;
    start[blocks] = shape->n;
    return blocks;
}

/* Returns how often the siblings are halved, so that the rounds together cost least. */
static uint32_t best_halvings(const struct dti_costs *costs, enum dti_distance distance, uint32_t siblings)
{
    uint32_t best = 0;
    double least = 0;
    for (uint32_t radix = 2; radix <= siblings; radix++) {
        double cost = 0;
        uint32_t halvings = 0;
        for (uint32_t left = siblings; left > 1; left = (left + radix - 1) / radix)
            cost += dti_round_ns(costs, distance, left < radix ? left : radix);
        while ((siblings + (1u << halvings) - 1) >> halvings > radix)
            halvings++;
        if (radix == 2 || cost < least) {
            least = cost;
            best = halvings;
        }
    }
    return best;
}

/* Marks where the parts of the siblings [first, end) start after `halvings` halvings. Each halving is at the
 * split of the tree, so that the parts of a subtree are subtrees. */
static void halve(uint32_t first, uint32_t end, uint32_t halvings, bool *is_start)
{
    is_start[first] = true;
    if (halvings == 0 || end - first < 2)
        return;
    uint32_t middle = (uint32_t)dti_tree_split(first, end);
    halve(first, middle, halvings - 1, is_start);
    halve(middle, end, halvings - 1, is_start);
}

/* Adds cuts between a coarse cut and the next finer one, so that the costs are least. */
static bool add_between(struct dti_rounds *r, const struct dti_machine_shape *shape,
                        const struct dti_costs *costs, const uint32_t *coarse, uint32_t coarse_blocks,
                        const uint32_t *fine, uint32_t fine_blocks)
{
    uint32_t start[DITTO_MAX_REPLICAS + 1], most = 0, child = 0;
    bool is_start[DITTO_MAX_REPLICAS] = { false };
    int farthest = 0;
    /* The coarse block with the most fine blocks decides for all. */
    for (uint32_t b = 0; b < coarse_blocks; b++) {
        uint32_t first = child;
        while (child < fine_blocks && fine[child] < coarse[b + 1])
            child++;
        most = child - first > most ? child - first : most;
        for (uint32_t c = first + 1; c < child; c++)
            farthest = shape->border[fine[c]] > farthest ? shape->border[fine[c]] : farthest;
    }
    uint32_t halvings = best_halvings(costs, (enum dti_distance)farthest, most);
    if (halvings == 0)
        return true;
    child = 0;
    for (uint32_t b = 0; b < coarse_blocks; b++) {
        uint32_t first = child;
        while (child < fine_blocks && fine[child] < coarse[b + 1])
            child++;
        halve(first, child, halvings, is_start);
    }
    uint32_t blocks = 0;
    for (uint32_t c = 0; c < fine_blocks; c++)
        if (is_start[c])
            start[blocks++] = fine[c];
    start[blocks] = shape->n;
    return add_between(r, shape, costs, coarse, coarse_blocks, start, blocks) && add_cut(r, start, blocks);
}

/* Adds the fine cut below the last cut. If costs are given, also adds cuts between the two. Does nothing if
 * both have the same blocks. */
static bool refine(struct dti_rounds *r, const struct dti_machine_shape *shape, const struct dti_costs *costs,
                   const uint32_t *fine, uint32_t fine_blocks)
{
    const uint32_t *coarse = r->start[r->rounds - 1];
    uint32_t coarse_blocks = r->blocks[r->rounds - 1];
    if (fine_blocks == coarse_blocks)
        return true;
    return (costs == NULL || add_between(r, shape, costs, coarse, coarse_blocks, fine, fine_blocks)) &&
           add_cut(r, fine, fine_blocks);
}

/* Adds all cuts, the coarsest first. */
static bool add_levels(struct dti_rounds *r, const struct dti_machine_shape *shape,
                       const struct dti_costs *costs, ditto_implementation implementation, uint32_t near)
{
    uint32_t start[DITTO_MAX_REPLICAS + 1] = { 0, shape->n };
    bool flat = implementation == DITTO_IMPLEMENTATION_FLAT;
    bool good = add_cut(r, start, 1);
    for (int distance = DTI_DISTANCE_BEYOND_PACKAGE; good && !flat && distance > DTI_DISTANCE_CACHE;
         distance--)
        good = refine(r, shape, costs, start, cut_at(shape, distance, near, start));
    return good && refine(r, shape, flat ? NULL : costs, start, cut_at(shape, DTI_DISTANCE_CACHE, 1, start));
}

ditto_status dti_rounds_make(const struct dti_machine_shape *shape, const struct dti_costs *costs,
                             ditto_implementation implementation, uint32_t near, struct dti_rounds *out)
{
    *out = (struct dti_rounds){ .n = shape->n };
    const uint32_t alone[] = { 0, 1 };
    bool good = add_levels(out, shape, costs, implementation,
                           implementation == DITTO_IMPLEMENTATION_HIERARCHICAL ? near : 0);
    if (good && shape->n == 1) /* one round, in which the replica is alone */
        good = add_cut(out, alone, 1);
    if (!good) {
        dti_rounds_free(out);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to plan the meetings of %u replicas", shape->n);
    }
    /* Reverses the order, so that the finest cut is the first. */
    for (uint32_t low = 0, high = out->rounds - 1; low < high; low++, high--) {
        uint32_t *start = out->start[low], blocks = out->blocks[low];
        out->start[low] = out->start[high];
        out->blocks[low] = out->blocks[high];
        out->start[high] = start;
        out->blocks[high] = blocks;
    }
    out->rounds--; /* there is one round less than there are cuts */
    return DITTO_OK;
}

void dti_rounds_free(struct dti_rounds *r)
{
    for (uint32_t c = 0; c <= DTI_MOST_ROUNDS; c++) {
        free(r->start[c]);
        r->start[c] = NULL;
    }
}

/* -- reading -- */

uint32_t dti_rounds_block(const struct dti_rounds *r, uint32_t cut, uint32_t replica)
{
    uint32_t low = 0, high = r->blocks[cut];
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (r->start[cut][middle] <= replica)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct dti_span dti_rounds_siblings(const struct dti_rounds *r, uint32_t round, uint32_t self)
{
    uint32_t parent = dti_rounds_block(r, round + 1, self);
    uint32_t end = r->start[round + 1][parent + 1];
    return (struct dti_span){ dti_rounds_block(r, round, r->start[round + 1][parent]),
                              end == r->n ? r->blocks[round] : dti_rounds_block(r, round, end) };
}

uint32_t dti_rounds_representative(const struct dti_rounds *r, uint32_t round, uint32_t block, uint32_t self)
{
    uint32_t own = dti_rounds_block(r, round, self), first = r->start[round][block];
    if (block == own)
        return self;
    return first + (self - r->start[round][own]) % (r->start[round][block + 1] - first);
}
