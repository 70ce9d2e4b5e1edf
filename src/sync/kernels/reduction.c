/* src/sync/kernels/reduction.c - combines values along the tree. */
#include "sync/kernels/reduction.h"
#include "base/errors/user_call.h"

#include <string.h>

struct dti_reduction dti_reduction_of(dti_kernel_table *kernels, ditto_dtype dtype, ditto_op op)
{
    const struct dti_kernel *kernel = op != 0 ? &(*kernels)[dtype][op] : NULL;
    size_t bytes = ditto_dtype_bytes(dtype);
    bool wide = kernel != NULL && kernel->widen != NULL;
    return (struct dti_reduction){ .kernel = kernel,
                                   .element_bytes = bytes,
                                   .accumulator_bytes = wide ? sizeof(float) : bytes };
}

static DTI_GUARDED void call_user_function(struct dti_reduction *r, void *out, const void *left,
                                           const void *right, size_t count)
{
    DTI_GUARD("a function that combines (ditto_all_reduce_with, ditto_scan_with)");
    r->failed = r->function(out, left, right, count, r->user);
    DTI_GUARD_END();
}

static void combine(struct dti_reduction *r, void *out, const void *left, const void *right, size_t count)
{
    if (r->kernel != NULL)
        r->kernel->combine(out, left, right, count);
    else if (r->failed == DITTO_OK)
        call_user_function(r, out, left, right, count);
}

static bool widens(const struct dti_reduction *r)
{
    return r->kernel != NULL && r->kernel->widen != NULL;
}

/* True if single values are copied, so that an accumulator is never the memory of a value. */
static bool copies(const struct dti_reduction *r)
{
    return r->function != NULL || widens(r);
}

/* Returns the accumulators of a single value, which are in `out`, or in the memory of the value. */
static const void *load(struct dti_reduction *r, const void *elements, size_t count, void *out)
{
    if (!copies(r))
        return elements;
    if (widens(r))
        r->kernel->widen(out, elements, count);
    else if (r->failed == DITTO_OK)
        memcpy(out, elements, count * r->element_bytes);
    return out;
}

/* Combines four values, one of each of four neighbouring replicas, in one pass. They are the lowest two
 * levels of the tree. Returns false if `span` is not of this form, or the kernel has no such function. */
static bool fold_four(const struct dti_reduction *r, struct dti_span span, const struct dti_tree_value **next,
                      size_t count, void *out)
{
    const struct dti_tree_value *v = *next;
    if (span.end - span.first != 4 || r->kernel == NULL || r->kernel->combine_four == NULL ||
        dti_tree_split_node(&r->tree, span.first, span.end) != span.first + 2 || v[0].end - v[0].first != 1 ||
        v[1].end - v[1].first != 1 || v[2].end - v[2].first != 1)
        return false;
    r->kernel->combine_four(out, v[0].data, v[1].data, v[2].data, v[3].data, count);
    *next = v + 4;
    return true;
}

/* Combines eight values in one pass, if they are combined by halves. Eight sources are then read side by
 * side, which the processor's prefetchers follow better than one source after another. */
static bool fold_eight(const struct dti_reduction *r, struct dti_span span,
                       const struct dti_tree_value **next, size_t count, void *out)
{
    const struct dti_tree_value *v = *next;
    const void *in[8];
    if (span.end - span.first != 8 || r->tree.blocks > 1 || r->kernel == NULL ||
        r->kernel->combine_eight == NULL)
        return false;
    for (int i = 0; i < 8; i++) {
        if (v[i].end - v[i].first != 1)
            return false;
        in[i] = v[i].data;
    }
    r->kernel->combine_eight(out, in, count);
    *next = v + 8;
    return true;
}

const void *dti_fold(struct dti_reduction *r, struct dti_span span, const struct dti_tree_value **next,
                     size_t count, void *out, void *scratch)
{
    const struct dti_tree_value *value = *next;
    if (value->first == span.first && value->end == span.end) {
        *next = value + 1;
        return span.end - span.first > 1 ? value->data : load(r, value->data, count, out);
    }
    if (fold_four(r, span, next, count, out) || fold_eight(r, span, next, count, out))
        return out;
    size_t middle = dti_tree_split_node(&r->tree, span.first, span.end);
    char *below = (char *)scratch + count * r->accumulator_bytes;
    const void *left = dti_fold(r, (struct dti_span){ span.first, middle }, next, count, out, scratch);
    /* The left side has finished with scratch before the right side needs it. */
    const void *right = dti_fold(r, (struct dti_span){ middle, span.end }, next, count, scratch, below);
    combine(r, out, left, right, count);
    return out;
}

void dti_finish(const struct dti_reduction *r, size_t n, const void *accumulators, void *out, size_t count,
                void *dst)
{
    if (r->kernel != NULL && r->kernel->divide != NULL && n > 1) {
        r->kernel->divide(out, count, (uint32_t)n);
        accumulators = out;
    }
    if (widens(r))
        r->kernel->narrow(dst, accumulators, count);
    else if (dst != accumulators)
        memcpy(dst, accumulators, count * r->element_bytes);
}

void dti_reduce_block(struct dti_reduction *r, const void *const *source, uint32_t n, size_t first,
                      size_t count, void *dst, void *scratch)
{
    size_t offset = first * r->element_bytes;
    /* The walk over the tree is skipped here, because this case is the most time-critical. */
    if (n == 2 && r->kernel != NULL && !widens(r)) {
        r->kernel->combine(dst, (const char *)source[0] + offset, (const char *)source[1] + offset, count);
        dti_finish(r, n, dst, dst, count, dst);
        return;
    }
    struct dti_tree_value value[DITTO_MAX_REPLICAS];
    dti_reduce_values(r, source, n, first, count, dst, scratch, value);
}

void dti_reduce_values(struct dti_reduction *r, const void *const *source, uint32_t n, size_t first,
                       size_t count, void *dst, void *scratch, struct dti_tree_value *value)
{
    size_t offset = first * r->element_bytes;
    const struct dti_tree_value *next = value;
    uint32_t i = 0;
    do
        value[i] = (struct dti_tree_value){ i, i + 1, (const char *)source[i] + offset };
    while (++i < n);
    void *out = copies(r) ? scratch : dst, *below = copies(r) ? (char *)scratch + DTI_TILE_BYTES : scratch;
    const void *result = dti_fold(r, (struct dti_span){ 0, n }, &next, count, out, below);
    if (r->failed == DITTO_OK)
        dti_finish(r, n, result, out, count, dst);
}

/* -- scans -- */

/* A scan visits the values in their order. The largest complete subtrees that lie before a value are the left
 * siblings of the nodes on its path from the root. Combined with them, from the last one to the first, the
 * value becomes the prefix that ends with it. On the way it becomes the largest subtree that ends with it,
 * which later values need. So a scan of n values takes about n / 2 * log2(n) combinations, and memory for one
 * subtree at each level of the tree. */
struct scanning {
    struct dti_reduction *r;
    const struct dti_scan *scan;
    size_t first, count;

    /* The values of the subtrees before the present value. Number i has its memory in tile i. A row of
     * DITTO_MAX_REPLICAS values has at most 11 of them, and there is scratch memory for more tiles. */
    const void *before[DTI_TREE_LEVELS];

    /* The accumulators of the next value, if its elements have been overwritten in place. Otherwise NULL. */
    const void *loaded;

    char *scratch;
};

static char *tile(const struct scanning *s, uint32_t i)
{
    return s->scratch + i * s->count * s->r->accumulator_bytes;
}

/* Copies a value whose own memory is about to be overwritten. */
static const void *save(struct dti_reduction *r, const void *elements, size_t count, void *out)
{
    return copies(r) ? load(r, elements, count, out) : memcpy(out, elements, count * r->element_bytes);
}

/* Visits value k. There are `level` subtrees before it. The largest subtree that ends with it consists of the
 * value and of those of them from `keep` on. */
static void scan_value(struct scanning *s, uint32_t k, uint32_t level, uint32_t keep)
{
    struct dti_reduction *r = s->r;
    const struct dti_scan *scan = s->scan;
    uint32_t receiver = k + scan->exclusive;
    size_t offset = s->first * r->element_bytes;
    bool is_last = k + 1 == scan->values;
    const void *value = s->loaded != NULL
                            ? s->loaded
                            : load(r, (const char *)scan->source[k] + offset, s->count, tile(s, level));
    s->loaded = NULL;
    if (is_last)
        keep = level; /* no other value needs the subtree */
    for (; level > keep; value = tile(s, --level))
        combine(r, tile(s, level - 1), s->before[level - 1], value, s->count);
    s->before[keep] = value;
    if (scan->destination[receiver] == NULL)
        return;
    char *dst = (char *)scan->destination[receiver] + offset;
    if (!is_last && scan->destination[receiver] == scan->source[receiver]) {
        if (scan->exclusive)
            s->loaded = save(r, dst, s->count, tile(s, keep + 1));
        else if (value == dst && level > 0) /* the first value is its own prefix */
            s->before[keep] = save(r, dst, s->count, tile(s, keep));
    }
    for (; level > 0; level--) {
        void *out = level == 1 && !copies(r) ? dst : tile(s, keep + 2);
        combine(r, out, s->before[level - 1], value, s->count);
        value = out;
    }
    if (r->failed == DITTO_OK)
        dti_finish(r, 1, value, NULL, s->count, dst);
}

/* Visits the values of a node of the tree. See scan_value. */
static void scan_node(struct scanning *s, struct dti_span span, uint32_t level, uint32_t keep)
{
    if (span.end - span.first == 1) {
        scan_value(s, (uint32_t)span.first, level, keep);
        return;
    }
    size_t middle = dti_tree_split_node(&s->r->tree, span.first, span.end);
    scan_node(s, (struct dti_span){ span.first, middle }, level, level);
    if (middle < s->scan->values)
        scan_node(s, (struct dti_span){ middle, span.end }, level + 1, keep);
}

void dti_scan_block(struct dti_reduction *r, const struct dti_scan *scan, size_t first, size_t count,
                    void *scratch)
{
    struct scanning s = { .r = r, .scan = scan, .first = first, .count = count, .scratch = scratch };
    if (scan->values > 0)
        scan_node(&s, (struct dti_span){ 0, scan->n }, 0, 0);
}
