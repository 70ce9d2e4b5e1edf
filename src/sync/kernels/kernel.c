/* src/sync/kernels/kernel.c - chooses the table of kernels. */
#include "sync/kernels/kernel.h"
#include "base/errors/status.h"

#include <stdlib.h>

extern dti_kernel_table dti_kernels_portable;
#if defined(DTI_HAVE_X86_KERNELS)
extern dti_kernel_table dti_kernels_avx2, dti_kernels_avx512;
#endif

/* Returns NULL if this build does not have the table, or this processor cannot run it. */
static dti_kernel_table *table_of(ditto_kernels which)
{
#if defined(DTI_HAVE_X86_KERNELS)
    struct dti_cpu cpu = dti_cpu_features();
    if (which == DITTO_KERNELS_AVX2 && cpu.avx2)
        return &dti_kernels_avx2;
    if (which == DITTO_KERNELS_AVX512 && cpu.avx512)
        return &dti_kernels_avx512;
#endif
    return which == DITTO_KERNELS_PORTABLE ? &dti_kernels_portable : NULL;
}

static ditto_kernels find_best(void)
{
    int which = DITTO_KERNELS_AVX512;
    while (which > DITTO_KERNELS_PORTABLE && table_of((ditto_kernels)which) == NULL)
        which--;
    return (ditto_kernels)which;
}

ditto_kernels dti_kernels_best_set(void)
{
    /* 0 until the best set is known. All operations are relaxed, because every thread finds the same
     * number. */
    static _Atomic int best;
    int found = atomic_load_explicit(&best, memory_order_relaxed);
    if (found == 0) {
        found = (int)find_best();
        atomic_store_explicit(&best, found, memory_order_relaxed);
    }
    return (ditto_kernels)found;
}

dti_kernel_table *dti_kernels_best(void)
{
    switch (dti_kernels_best_set()) {
#if defined(DTI_HAVE_X86_KERNELS)
    case DITTO_KERNELS_AVX512:
        return &dti_kernels_avx512;
    case DITTO_KERNELS_AVX2:
        return &dti_kernels_avx2;
#endif
    default:
        return &dti_kernels_portable;
    }
}

ditto_status dti_kernels_choose(ditto_kernels requested, dti_kernel_table **out)
{
    static const char *const names[] = { "", "PORTABLE", "AVX2", "AVX512" };
    if ((int)requested < DITTO_KERNELS_DEFAULT || requested > DITTO_KERNELS_AVX512)
        return DTI_FAIL(DITTO_ERR_RANGE, "kernels = %d is not a value of its enum", (int)requested);
    dti_kernel_table *table = requested == DITTO_KERNELS_DEFAULT ? dti_kernels_best() : table_of(requested);
    if (table == NULL)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "DITTO_KERNELS_%s: this processor or this build does not have these kernels, use "
                        "DITTO_KERNELS_DEFAULT",
                        names[requested]);
    *out = table;
    return DITTO_OK;
}

const char *ditto_op_name(ditto_op op)
{
    static const char *const names[] = {
        "unknown op", "SUM", "MEAN", "MIN", "MAX", "PROD", "AND", "OR", "XOR"
    };
    return names[op >= DITTO_SUM && op <= DITTO_XOR ? op : 0];
}
