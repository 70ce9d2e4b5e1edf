/* src/sync/api_collective.c - include/ditto/collective.h: check, then call. */
#include "base/base.h"
#include "sync/sync.h"

static ditto_status read_options(const ditto_reduce_options *options, const struct dti_replica *r,
                                 struct dti_deadline *deadline)
{
    *deadline = dti_replica_deadline(r, r->team->options.timeout_ms);
    if (options == NULL)
        return DITTO_OK;
    ditto_reduce_options known;
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_reduce_options"));
    DTI_TRY(dti_flags_check(known.flags, 0, "flags"));
    if (known.timeout_ms != 0)
        *deadline = dti_replica_deadline(r, known.timeout_ms);
    return DITTO_OK;
}

ditto_status ditto_barrier(ditto_replica *self, const ditto_reduce_options *options)
{
    struct dti_deadline deadline;
    DTI_ENTER();
    struct dti_replica *r = dti_self(self);
    if (r == NULL)
        return dti_error_get()->status;
    DTI_TRY(read_options(options, r, &deadline));
    return dti_barrier(r, "ditto_barrier", &deadline);
}

static ditto_status check_overlap(const void *src, const void *dst, size_t bytes)
{
    uintptr_t a = (uintptr_t)src, b = (uintptr_t)dst, distance = a < b ? b - a : a - b;
    if (distance != 0 && distance < bytes)
        return DTI_FAIL(DITTO_ERR_INVALID, "src and dst overlap partly (%zu bytes, %zu apart): use one buffer or two",
                        bytes, (size_t)distance);
    return DITTO_OK;
}

ditto_status ditto_all_reduce(ditto_replica *self, const void *src, void *dst, size_t count, ditto_dtype dtype,
                              ditto_op op, const ditto_reduce_options *options)
{
    struct dti_deadline deadline;
    size_t bytes;
    DTI_ENTER();
    struct dti_replica *r = dti_self(self);
    if (r == NULL)
        return dti_error_get()->status;
    DTI_TRY(dti_reduction_check(dtype, op));
    DTI_TRY(dti_buffer_bytes(count, dtype, &bytes));
    DTI_TRY(dti_buffer_check(src, bytes, dtype, "src"));
    DTI_TRY(dti_buffer_check(dst, bytes, dtype, "dst"));
    DTI_TRY(check_overlap(src, dst, bytes));
    DTI_TRY(read_options(options, r, &deadline));
    return dti_all_reduce(r, src, dst, count, dtype, op, &deadline);
}
