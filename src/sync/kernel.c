/* src/sync/kernel.c - choosing a table. */
#include "sync/kernel.h"
#include "base/base.h"

#include <stdlib.h>

extern dti_kernel_table dti_kernels_portable;
#if defined(DTI_HAVE_X86_KERNELS)
extern dti_kernel_table dti_kernels_avx2, dti_kernels_avx512;
#endif

/* NULL: this build does not have it, or this processor can't run it. */
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

dti_kernel_table *dti_kernels_best(void)
{
    for (int which = DITTO_KERNELS_AVX512; which > DITTO_KERNELS_PORTABLE; which--)
        if (table_of((ditto_kernels)which) != NULL)
            return table_of((ditto_kernels)which);
    return table_of(DITTO_KERNELS_PORTABLE);
}

ditto_status dti_kernels_choose(ditto_kernels wish, dti_kernel_table **out)
{
    static const char *const names[] = { "", "PORTABLE", "AVX2", "AVX512" };
    if ((int)wish < DITTO_KERNELS_DEFAULT || wish > DITTO_KERNELS_AVX512)
        return DTI_FAIL(DITTO_ERR_RANGE, "kernels = %d is not a value of its enum", (int)wish);
    dti_kernel_table *table = wish == DITTO_KERNELS_DEFAULT ? dti_kernels_best() : table_of(wish);
    if (table == NULL)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "DITTO_KERNELS_%s: this processor, or this build, does not have them; leave it to the default",
                        names[wish]);
    *out = table;
    return DITTO_OK;
}

const char *ditto_op_name(ditto_op op)
{
    static const char *const names[] = { "unknown op", "SUM", "MEAN", "MIN", "MAX", "PROD", "AND", "OR", "XOR" };
    return names[op >= DITTO_SUM && op <= DITTO_XOR ? op : 0];
}
