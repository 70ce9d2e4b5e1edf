/* src/sync/api_block_sum.c - the public functions of include/ditto/collective.h that add up in fixed blocks.
 * The bits of their sums do not depend on the number of replicas. */
#include "base/numbers/checksum.h"
#include "sync/algorithms/collective.h"
#include "sync/call_arguments.h"
#include "sync/kernels/local_reduction.h"
#include "sync/sync.h"

static ditto_status begin(struct dti_arguments *a, ditto_replica *self, const char *name,
                          const ditto_reduce_options *options)
{
    return dti_arguments_begin(a, self, name, DTI_PATTERN_BLOCKS, options, 0);
}

static ditto_status check_factor(const void *factor, const char *name, size_t count, ditto_dtype dtype)
{
    size_t bytes;
    DTI_TRY(dti_reduction_check(dtype, DITTO_SUM));
    DTI_TRY(dti_buffer_bytes(count, dtype, &bytes));
    return dti_buffer_check(factor, bytes, dtype, name);
}

static ditto_status sum(struct dti_arguments *a, const struct dti_block_elements *elements, const void *src,
                        void *dst, ditto_dtype dtype)
{
    DTI_TRY(dti_buffer_check(dst, ditto_dtype_bytes(dtype), dtype, "dst"));
    a->call.dtype = (uint8_t)dtype;
    a->call.op = DITTO_SUM;
    a->call.element_bytes = ditto_dtype_bytes(dtype);
    a->call.src = src;
    a->call.dst = dst;
    return dti_block_sum(a->replica, &a->call, elements, &a->deadline);
}

ditto_status ditto_block_sum(ditto_replica *self, const void *src, void *dst, size_t count, ditto_dtype dtype,
                             const ditto_reduce_options *options)
{
    struct dti_arguments a;
    struct dti_block_elements elements = { .count = count };
    DTI_ENTER_QUICKLY();
    DTI_TRY(begin(&a, self, "ditto_block_sum", options));
    DTI_TRY(check_factor(src, "src", count, dtype));
    return sum(&a, &elements, src, dst, dtype);
}

ditto_status ditto_block_sum_with(ditto_replica *self, ditto_elements_fn elements, void *user, void *dst,
                                  size_t count, ditto_dtype dtype, const ditto_reduce_options *options)
{
    struct dti_arguments a;
    struct dti_block_elements of_function = { .function = elements, .user = user, .count = count };
    size_t bytes;
    DTI_ENTER_QUICKLY();
    DTI_TRY(begin(&a, self, "ditto_block_sum_with", options));
    if (elements == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "elements is NULL: give the function that computes the elements");
    DTI_TRY(dti_reduction_check(dtype, DITTO_SUM));
    DTI_TRY(dti_buffer_bytes(count, dtype, &bytes));
    a.call.hash = dti_hash_word(a.call.hash, dti_sync_function(a.replica, (const void *)(uintptr_t)elements));
    return sum(&a, &of_function, NULL, dst, dtype);
}

ditto_status ditto_block_dot(ditto_replica *self, const void *x, const void *y, void *dst, size_t count,
                             ditto_dtype dtype, const ditto_reduce_options *options)
{
    static const char none[16];
    struct dti_arguments a;
    struct dti_block_elements elements = { .factor = y != NULL ? y : none, .count = count };
    DTI_ENTER_QUICKLY();
    DTI_TRY(begin(&a, self, "ditto_block_dot", options));
    DTI_TRY(check_factor(x, "x", count, dtype));
    DTI_TRY(check_factor(y, "y", count, dtype));
    return sum(&a, &elements, x, dst, dtype);
}
