/* src/sync/kernels/tree.c - finds subtrees and equal parts. Pure. */
#include "sync/kernels/tree.h"

struct subtree_search {
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
    size_t m = dti_tree_split(a, b);
    descend(s, a, m);
    descend(s, m, b);
}

uint32_t dti_tree_subtrees(size_t n, struct dti_span within, struct dti_span *out)
{
    struct subtree_search s = { within, out, 0 };
    if (within.first < within.end)
        descend(&s, 0, n);
    return s.found;
}

void dti_tree_part(size_t count, uint32_t n, uint32_t i, size_t grain, size_t *first, size_t *end)
{
    size_t grains = count / grain + (count % grain != 0), each = grains / n, more = grains % n;
    size_t from = i * each + (i < more ? i : more), to = from + each + (i < more);
    *first = from * grain < count ? from * grain : count;
    *end = to * grain < count ? to * grain : count;
}
