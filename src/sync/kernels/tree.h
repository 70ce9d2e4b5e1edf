/* src/sync/kernels/tree.h - the tree along which a row of values is combined.
 *
 * The tree depends on the number of values and of blocks only, so placement, algorithm and timing cannot
 * change a bit of the result. All functions are pure. */
#ifndef DTI_TREE_H
#define DTI_TREE_H

#include <stddef.h>
#include <stdint.h>

/* The largest number of levels of a tree over the 65536 replicas that a cluster may have, from the root to
 * the single values. A tree of halves has 17. Blocks add one at most, because ceil(log2 B) + ceil(log2(n /
 * B)) is at most ceil(log2 n) + 1. */
#define DTI_TREE_LEVELS 18

/* The largest number of subtrees that a span of such a tree consists of. It is two for each level but the
 * root's. */
#define DTI_TREE_PARTS 34

/* Values [first, end) of a row. */
struct dti_span {
    size_t first;
    size_t end;
};

/* A tree over n values. If there is more than one block, the row is first cut into this number of blocks, as
 * equal as possible, the larger ones first (dti_tree_part). Each block is combined by halves, and so are the
 * results of the blocks. There are at most n blocks. 0 stands for one block. */
struct dti_tree {
    size_t n;
    uint32_t blocks;
};

/* Returns where the span [a, b) of a tree of halves is split. With m as the result, its value is (the tree
 * over [a, m)) op (the tree over [m, b)). b - a must be at least 2. */
static inline size_t dti_tree_split(size_t a, size_t b)
{
    return a + (b - a + 1) / 2;
}

/* The same for a tree with more than one block. [a, b) must be a node of the tree: some of its blocks, or a
 * part of one block. */
size_t dti_tree_split_blocks(const struct dti_tree *tree, size_t a, size_t b);

/* The same for any tree. If it has one block, n is not looked at. */
static inline size_t dti_tree_split_node(const struct dti_tree *tree, size_t a, size_t b)
{
    return tree->blocks > 1 ? dti_tree_split_blocks(tree, a, b) : dti_tree_split(a, b);
}

/* Stores in `out` the largest complete subtrees that lie inside `within`, in ascending order. Returns their
 * number, which is at most two for each level of the tree. A group of neighbours can combine these subtrees
 * without the values of others. */
uint32_t dti_tree_subtrees(const struct dti_tree *tree, struct dti_span within, struct dti_span *out);

/* Stores in *first and *end the elements that part i of n owns, out of `count`. The parts are equal, but are
 * cut at multiples of `grain` elements. */
void dti_tree_part(size_t count, uint32_t n, uint32_t i, size_t grain, size_t *first, size_t *end);

#endif
