/* src/sync/kernels/kernel.h - the arithmetic of reductions, by table. Pure; runs in the default floating-point environment.
 *
 * An element is combined as an *accumulator*: itself, or, for f16 and bf16, the f32 that it is widened to. */
#ifndef DTI_KERNEL_H
#define DTI_KERNEL_H

#include "base/base.h"

#include <ditto/collective.h>
#include <ditto/strategy.h> /* ditto_kernels */
#include <string.h>

/* Combines accumulators; `out` may be `left` or `right` itself, never overlap them partly. */
typedef void dti_combine(void *out, const void *left, const void *right, size_t count);

struct dti_kernel {
    dti_combine *combine; /* NULL: the dtype does not have this op */
    /* a op b of elements into two places in one pass, rounded once; each of them may be a or b itself */
    void (*combine_into_two)(void *out0, void *out1, const void *a, const void *b, size_t count);
    /* (a op b) op (c op d) of elements that are accumulators, in one pass; `out` is none of them. NULL: in three passes */
    void (*combine_four)(void *out, const void *a, const void *b, const void *c, const void *d, size_t count);
    void (*divide)(void *accumulators, size_t count, uint32_t divisor);     /* for MEAN; NULL: none */
    void (*widen)(void *accumulators, const void *elements, size_t count);  /* NULL: they are the same */
    void (*narrow)(void *elements, const void *accumulators, size_t count); /* back; with widen */
};

typedef const struct dti_kernel dti_kernel_table[DITTO_BOOL + 1][DITTO_XOR + 1];

/* The table for a wish. UNSUPPORTED: this processor, or this build, does not have it. RANGE: no such wish. */
ditto_status dti_kernels_choose(ditto_kernels requested, dti_kernel_table **out);
dti_kernel_table *dti_kernels_best(void); /* what DITTO_KERNELS_DEFAULT gives */
ditto_kernels dti_kernels_best_set(void); /* and its name: for other loops that are compiled so */

/* Copying past the caches. */

/* memcpy with non-temporal stores of whole lines, where the processor has them: they are not read before they are written, and
 * what was cached is left alone. Only dti_stream_end makes them seen in order by others. */
void dti_stream(void *to, const void *from, size_t bytes);
/* After the last of them, before the store that says they are there. */
void dti_stream_end(void);

#endif
