/* src/sync/tree.h - the one tree by which n values are combined. It depends on n alone, so placement, algorithm and timing
 * cannot change a bit. Pure. */
#ifndef DTI_TREE_H
#define DTI_TREE_H

#include <stddef.h>
#include <stdint.h>

#define DTI_TREE_LEVELS 11 /* of the tree over 1024 values, and one to spare */

/* The range [a, b) of ids, b - a >= 2, is combined as (the tree over [a, m)) op (the tree over [m, b)); gives m. */
static inline uint32_t dti_tree_split(uint32_t a, uint32_t b)
{
    return a + (b - a + 1) / 2;
}

/* Makes accumulators of elements, where they differ (f16, bf16). */
typedef void dti_widen(void *out, const void *elements, size_t count);

/* Combines elements; `out` may be `left` or `right` itself, never overlap them partly. */
typedef void dti_combine(void *out, const void *left, const void *right, size_t count);

/* out[0..count) = the tree over count elements at source[0..n) + offset_bytes, each widened first unless widen is NULL. n >= 1.
 * `out` overlaps no source; `scratch` has room for DTI_TREE_LEVELS results of `bytes` = count accumulators each. */
void dti_tree_reduce(dti_combine *combine, dti_widen *widen, const void *const *source, uint32_t n, size_t offset_bytes,
                     size_t count, size_t bytes, void *out, void *scratch);

/* [*first, *end) of `count` elements that part i of n owns: equal parts, cut at multiples of `grain` elements. */
void dti_tree_part(size_t count, uint32_t n, uint32_t i, size_t grain, size_t *first, size_t *end);

#endif
