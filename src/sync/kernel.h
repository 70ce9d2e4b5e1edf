/* src/sync/kernel.h - the arithmetic of reductions, by table. Pure; runs in the default floating-point environment. */
#ifndef DTI_KERNEL_H
#define DTI_KERNEL_H

#include <ditto/collective.h>

#include "sync/tree.h"

struct dti_kernel {
    dti_combine *combine; /* NULL: the dtype does not have this op */
    /* a op b into two places in one pass; each of them may be a or b itself: the case of two replicas */
    void (*combine_into_two)(void *out0, void *out1, const void *a, const void *b, size_t count);
    void (*divide)(void *values, size_t count, uint32_t divisor); /* for MEAN; NULL: none */
};

/* Never NULL for valid dtype and op; see combine. */
const struct dti_kernel *dti_kernel_of(ditto_dtype dtype, ditto_op op);

#endif
