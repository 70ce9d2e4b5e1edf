/* src/sync/tree.c - combining along the tree. Pure. */
#include "sync/tree.h"

#include <string.h>

struct walk {
    dti_combine *combine;
    dti_widen *widen;
    const void *const *source;
    size_t offset_bytes, count, bytes;
};

/* The result over [a, b): a single source that needs no widening is used where it lies, anything else comes into `out`. */
static const void *reduce_range(const struct walk *w, uint32_t a, uint32_t b, void *out, void *scratch)
{
    if (b - a == 1) {
        const char *leaf = (const char *)w->source[a] + w->offset_bytes;
        if (w->widen == NULL)
            return leaf;
        w->widen(out, leaf, w->count);
        return out;
    }
    uint32_t m = dti_tree_split(a, b);
    const void *left = reduce_range(w, a, m, out, scratch); /* done with scratch before the right side needs it */
    const void *right = reduce_range(w, m, b, scratch, (char *)scratch + w->bytes);
    w->combine(out, left, right, w->count);
    return out;
}

void dti_tree_reduce(dti_combine *combine, dti_widen *widen, const void *const *source, uint32_t n, size_t offset_bytes,
                     size_t count, size_t bytes, void *out, void *scratch)
{
    if (n == 2 && widen == NULL) { /* the case that must be quick: no walk */
        combine(out, (const char *)source[0] + offset_bytes, (const char *)source[1] + offset_bytes, count);
        return;
    }
    struct walk w = { combine, widen, source, offset_bytes, count, bytes };
    const void *result = reduce_range(&w, 0, n, out, scratch);
    if (result != out)
        memcpy(out, result, bytes);
}

void dti_tree_part(size_t count, uint32_t n, uint32_t i, size_t grain, size_t *first, size_t *end)
{
    size_t grains = count / grain + (count % grain != 0), each = grains / n, more = grains % n;
    size_t from = i * each + (i < more ? i : more), to = from + each + (i < more);
    *first = from * grain < count ? from * grain : count;
    *end = to * grain < count ? to * grain : count;
}
