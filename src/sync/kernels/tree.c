/* src/sync/kernels/tree.c - finds subtrees and equal parts. Pure. */
#include "sync/kernels/tree.h"

/* Returns the block that holds a value. */
static size_t block_of(const struct dti_tree *tree, size_t value)
{
    size_t each = tree->n / tree->blocks, larger = tree->n % tree->blocks;
    return value < larger * (each + 1) ? value / (each + 1) : (value - larger) / each;
}

size_t dti_tree_split_blocks(const struct dti_tree *tree, size_t a, size_t b)
{
    size_t first = block_of(tree, a), last = block_of(tree, b - 1), start, end;
    if (first == last)
        return dti_tree_split(a, b);
    dti_tree_part(tree->n, tree->blocks, (uint32_t)dti_tree_split(first, last + 1), 1, &start, &end);
    return start;
}

struct subtree_search {
    const struct dti_tree *tree;
    struct dti_span within, *out;
    uint32_t found;
};

static void descend(struct subtree_search *s, size_t a, size_t b)
{
    if (b <= s->within.first || s->within.end <= a)
        return;
    if (s->within.first <= a && b <= s->within.end) {
        s->out[s->found++] = (struct dti_span){ a, b };
        return;
    }
    size_t m = dti_tree_split_node(s->tree, a, b);
    descend(s, a, m);
    descend(s, m, b);
}

uint32_t dti_tree_subtrees(const struct dti_tree *tree, struct dti_span within, struct dti_span *out)
{
    struct subtree_search s = { tree, within, out, 0 };
    if (within.first < within.end)
        descend(&s, 0, tree->n);
    return s.found;
}

void dti_tree_part(size_t count, uint32_t n, uint32_t i, size_t grain, size_t *first, size_t *end)
{
    size_t grains = count / grain + (count % grain != 0), each = grains / n, more = grains % n;
    size_t from = i * each + (i < more ? i : more), to = from + each + (i < more);
    *first = from * grain < count ? from * grain : count;
    *end = to * grain < count ? to * grain : count;
}
