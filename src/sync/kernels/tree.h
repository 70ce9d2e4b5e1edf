/* src/sync/kernels/tree.h - the one tree by which n values are combined. It depends on n alone, so placement, algorithm and timing
 * cannot change a bit. Pure. */
#ifndef DTI_TREE_H
#define DTI_TREE_H

#include <stddef.h>
#include <stdint.h>

#define DTI_TREE_LEVELS 11 /* of the tree over 1024 values, and one to spare */
#define DTI_TREE_PARTS  20 /* subtrees that any span of such a tree may have: two a level but the topmost */

/* Values [first, end) of a row. */
struct dti_span {
    size_t first, end;
};

/* The span [a, b), b - a >= 2, of a tree is combined as (the tree over [a, m)) op (the tree over [m, b)); gives m. */
static inline size_t dti_tree_split(size_t a, size_t b)
{
    return a + (b - a + 1) / 2;
}

/* The largest complete subtrees of the tree over n values that lie inside `within`, ascending, into out; returns how many:
 * at most two for each level of the tree. What a group of neighbours can combine without knowing the others. */
uint32_t dti_tree_subtrees(size_t n, struct dti_span within, struct dti_span *out);

/* [*first, *end) of `count` elements that part i of n owns: equal parts, cut at multiples of `grain` elements. */
void dti_tree_part(size_t count, uint32_t n, uint32_t i, size_t grain, size_t *first, size_t *end);

#endif
