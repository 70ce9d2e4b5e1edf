/* src/sync/kernels/tree.h - the tree along which n values are combined.
 *
 * The tree depends on n only, so placement, algorithm and timing cannot change a bit of the result. All
 * functions are pure. */
#ifndef DTI_TREE_H
#define DTI_TREE_H

#include <stddef.h>
#include <stdint.h>

/* The number of levels of the tree over 1024 values, from the root to the single values. */
#define DTI_TREE_LEVELS 11

/* The largest number of subtrees that a span of such a tree consists of. It is two for each level but the
 * root's. */
#define DTI_TREE_PARTS 20

/* Values [first, end) of a row. */
struct dti_span {
    size_t first;
    size_t end;
};

/* Returns where the span [a, b) of a tree is split. With m as the result, its value is (the tree over [a, m))
 * op (the tree over [m, b)). b - a must be at least 2. */
static inline size_t dti_tree_split(size_t a, size_t b)
{
    return a + (b - a + 1) / 2;
}

/* Stores in `out` the largest complete subtrees, of the tree over n values, that lie inside `within`, in
 * ascending order. Returns their number, which is at most two for each level of the tree. A group of
 * neighbours can combine these subtrees without the values of others. */
uint32_t dti_tree_subtrees(size_t n, struct dti_span within, struct dti_span *out);

/* Stores in *first and *end the elements that part i of n owns, out of `count`. The parts are equal, but are
 * cut at multiples of `grain` elements. */
void dti_tree_part(size_t count, uint32_t n, uint32_t i, size_t grain, size_t *first, size_t *end);

#endif
