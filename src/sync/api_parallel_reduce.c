/* src/sync/api_parallel_reduce.c - ditto_parallel_reduce: a loop on the devices of a replica, whose parts are
 * combined in a fixed order. */
#include "base/errors/status.h"
#include "base/numbers/fenv.h"
#include "replicas/helpers/crew.h"
#include "replicas/helpers/remote_memory.h"
#include "replicas/team/context.h"
#include "replicas/team/replica.h"
#include "sync/kernels/local_reduction.h"
#include "sync/sync.h"

#include <string.h>

/* The most parts. More would make no better use of the devices, and combining them takes time. */
#define MOST_PARTS 256

/* The contributions that lie on the leader's stack: one line for each part. */
#define STACK_BYTES ((size_t)MOST_PARTS * DTI_CACHE_LINE)

struct reducing {
    ditto_partial_fn function;
    void *user;
    struct dti_loop_range range; /* its grain is the size of a part */
    size_t parts;                /* at least 1 */
    char *partials;
    const struct dti_stop *stop;
    size_t stride; /* bytes from one contribution to the next, a multiple of a cache line */
};

static ditto_status compute_parts(size_t first, size_t end, uint32_t device, void *argument)
{
    const struct reducing *r = argument;
    for (size_t part = first; part < end && !dti_stopped(r->stop); part++) {
        ditto_status status = r->function(dti_loop_range_start(&r->range, part),
                                          dti_loop_range_start(&r->range, part + 1), device,
                                          r->partials + part * r->stride, r->user);
        if (status < 0)
            return status;
    }
    return DITTO_OK;
}

static ditto_status check(ditto_partial_fn function, const struct dti_loop_range *range, ditto_dtype dtype,
                          ditto_op op, size_t count, const void *result, size_t *bytes)
{
    if (function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "function is NULL: give the function that computes the contribution of a part");
    if (range->end < range->begin)
        return DTI_FAIL(DITTO_ERR_RANGE, "the loop ends at %zu, before it begins at %zu", range->end,
                        range->begin);
    DTI_TRY(dti_reduction_check(dtype, op));
    if (op == DITTO_MEAN)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "MEAN of the parts of a loop, which differ in size: use SUM, and divide the result");
    if (count == 0)
        return DTI_FAIL(DITTO_ERR_RANGE, "count is 0: a contribution has at least one element");
    DTI_TRY(dti_buffer_bytes(count, dtype, bytes));
    return dti_buffer_check(result, *bytes, dtype, "result");
}

ditto_status ditto_parallel_reduce(ditto_replica *self, ditto_partial_fn function, void *user, size_t begin,
                                   size_t end, size_t grain, ditto_dtype dtype, ditto_op op, size_t count,
                                   void *result)
{
    alignas(DTI_CACHE_LINE) char on_stack[STACK_BYTES];
    struct reducing r = { .function = function,
                          .user = user,
                          .range = { begin, end, grain != 0 ? grain : 1 } };
    size_t bytes, all;
    void *memory = on_stack;
    DTI_ENTER_QUICKLY();
    struct dti_replica *replica;
    DTI_TRY(dti_self(self, &replica));
    DTI_TRY(check(function, &r.range, dtype, op, count, result, &bytes));
    /* Sets the size and number of the parts. They must not depend on the number of devices. */
    size_t grains = dti_loop_range_pieces(&r.range);
    if (grains > MOST_PARTS)
        r.range.grain *= (grains - 1) / MOST_PARTS + 1;
    r.parts = dti_loop_range_pieces(&r.range);
    r.parts += r.parts == 0; /* the function is called for the empty loop */
    r.stop = replica->stop;
    r.stride = (bytes + DTI_CACHE_LINE - 1) / DTI_CACHE_LINE * DTI_CACHE_LINE;
    if (__builtin_mul_overflow(r.parts, r.stride, &all))
        return DTI_FAIL(DITTO_ERR_RANGE, "%zu contributions of %zu bytes are too large", r.parts, bytes);
    if (all > sizeof on_stack)
        DTI_TRY(dti_replica_alloc(replica, all, DTI_CACHE_LINE, &memory));
    r.partials = memory;
    ditto_status status = dti_crew_loop(replica, &(struct dti_loop){ .function = compute_parts,
                                                                     .argument = &r,
                                                                     .range = { 0, r.parts, 1 },
                                                                     .caller = dti_this_thread()->function });
    if (status == DITTO_OK) {
        /* Combines all contributions in the memory of the first one, in the order of dti_fold_rows. */
        struct dti_fenv saved = dti_fenv_enter();
        for (size_t half, parts = r.parts; parts > 1; parts = half) {
            half = (parts + 1) / 2;
            for (size_t i = 0; i + half < parts; i++)
                dti_combine_two(dtype, op, r.partials + i * r.stride, r.partials + i * r.stride,
                                r.partials + (i + half) * r.stride, count);
        }
        dti_fenv_leave(saved);
        memcpy(result, memory, bytes);
    }
    if (memory != on_stack)
        dti_replica_free(replica, memory);
    return status;
}
