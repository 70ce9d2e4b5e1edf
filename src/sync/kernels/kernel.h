/* src/sync/kernels/kernel.h - the arithmetic of reductions, as tables of functions, and copies that bypass
 * the caches.
 *
 * An element is combined as an *accumulator*. This is the element itself, or, for a dtype that is computed in
 * f32 (f16 and bf16), the f32 to which it is widened. All functions are pure and run in the default
 * floating-point environment. */
#ifndef DTI_KERNEL_H
#define DTI_KERNEL_H

#include <ditto/collective.h>

#include "base/types/types.h"

#include <string.h>

/* Combines accumulators. `out` may be the same buffer as `left` or `right`, but must not overlap them
 * partly. */
typedef void dti_combine(void *out, const void *left, const void *right, size_t count);

struct dti_kernel {
    /* NULL if the dtype does not have this op. */
    dti_combine *combine;

    /* Writes a op b of elements to two buffers, rounded once. Each output may be a or b. It takes one pass,
     * but two for products of complex numbers. */
    void (*combine_into_two)(void *out0, void *out1, const void *a, const void *b, size_t count);

    /* Writes (a op b) op (c op d) in one pass, for elements that are accumulators. `out` is none of the
     * inputs. If this pointer is NULL, three calls of `combine` are needed. */
    void (*combine_four)(void *out, const void *a, const void *b, const void *c, const void *d, size_t count);

    /* Writes the tree of halves over eight inputs in one pass. It is NULL where combine_four is. */
    void (*combine_eight)(void *out, const void *const in[8], size_t count);

    /* The division of MEAN. NULL for other ops. */
    void (*divide)(void *accumulators, size_t count, uint32_t divisor);

    /* Conversions from elements to accumulators and back. Both are NULL if elements are accumulators. */
    void (*widen)(void *accumulators, const void *elements, size_t count);
    void (*narrow)(void *elements, const void *accumulators, size_t count);
};

/* An accumulator is at most this many times as large as its element. Memory for accumulators of messages
 * whose size in elements is limited depends on it. kernel_loops_of_type.h checks it for each type. */
#define DTI_MOST_WIDENING 2

typedef const struct dti_kernel dti_kernel_table[DTI_NUM_DTYPES + 1][DITTO_XOR + 1];

/* Returns the table that `requested` names. Fails with UNSUPPORTED if this processor or this build does not
 * have it, and with RANGE if `requested` is not a value of its enum. */
ditto_status dti_kernels_choose(ditto_kernels requested, dti_kernel_table **out);

/* The table of DITTO_KERNELS_DEFAULT. */
dti_kernel_table *dti_kernels_best(void);

/* The name of that table. Other loops that are compiled for several instruction sets use it. */
ditto_kernels dti_kernels_best_set(void);

/* -- copies that bypass the caches -- */

/* Copies like memcpy. On x86-64, whole lines are written with non-temporal stores, which do not read the
 * lines first and leave the contents of the caches alone. Only dti_stream_end orders these stores before
 * later ones. */
void dti_stream(void *to, const void *from, size_t bytes);

/* Must be called after the last dti_stream, before the store that announces the data. */
void dti_stream_end(void);

#endif
