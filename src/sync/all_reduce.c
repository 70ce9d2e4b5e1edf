/* src/sync/all_reduce.c - combining buffers over all replicas.
 *
 * Small messages ride in the lines of one meeting. Larger ones go straight between the callers' buffers: a first meeting
 * tells all addresses; then the owner of each index range combines it from all sources, tile by tile, and writes all
 * destinations; a last meeting tells that everything is written.
 *
 * Nobody touches a buffer after its owner has left:
 * Invariants  N1  a replica touches others' buffers only while its inside word is 1.
 *             N2  a replica whose buffers peers know leaves a stopped meeting only when every inside word is 0.
 * Edges       I0 -> I1  inside = 1, then (dti_fence_light) a look at the stop word | the stop word seen, then
 *             I2 -> I3  (dti_fence_heavy) a look at every inside word: of the two looks at least one sees the other side.
 *                       So either the worker sees the stop and touches nothing, or the leaver sees it inside and waits.
 *             O0 -> O1  inside = 0 (release, after the last touch) -> the leaver's acquire.
 * Model       tests/model/leave.pml */
#include "sync/meeting.h"
#include "sync/sync.h"

#include "sync/kernel.h"

#include <stdlib.h>
#include <string.h>

/* ditto-bench all-reduce --bytes 1K,2K,4K,8K --in-place, 2 replicas: the bound's fastest form turns from `copies` (one meeting
 * with payload) to `flags` (two meetings) between 2 and 4 KiB; out of place it stays `copies` up to 8 KiB. With more
 * replicas everyone reads every payload, so the limit holds for all payloads together. */
#define SMALL_TOTAL_BYTES 4096

/* -- small -- */

static const struct dti_kernel *kernel_of(const struct dti_sync *sync, const struct dti_call *call)
{
    return &(*sync->kernels)[call->dtype][call->op];
}

/* `call` is the caller's own: what it has room for. */
static void combine_lines(struct dti_sync *sync, uint32_t seq, const struct dti_call *call,
                          struct dti_attendee *scratch_of, void *out)
{
    const struct dti_kernel *kernel = kernel_of(sync, call);
    ditto_dtype dtype = (ditto_dtype)call->dtype;
    size_t size = ditto_dtype_bytes(dtype), step = dti_block_count(kernel, dtype);
    for (uint32_t i = 0; i < sync->team->n; i++)
        scratch_of->sources[i] = dti_line_payload(dti_line_of(sync, i, seq), call->count * size);
    for (size_t first = 0; first < call->count; first += step)
        dti_reduce_block(kernel, dtype, scratch_of->sources, sync->team->n, first,
                         call->count - first < step ? call->count - first : step, (char *)out + first * size,
                         scratch_of->scratch);
}

/* Run by the last to arrive at a crowded meeting: once for all. Attendee 0's scratch is free, its owner waits. */
static void combine_once(struct dti_sync *sync, uint32_t seq)
{
    combine_lines(sync, seq, &dti_line_of(sync, 0, seq)->call, &sync->attendee[0], sync->result[seq & 1]);
}

static ditto_status reduce_small(struct dti_replica *self, const struct dti_call *call, size_t bytes,
                                 struct dti_deadline *deadline)
{
    struct dti_sync *sync = self->team->sync;
    uint32_t seq;
    DTI_TRY(dti_meet(self, call, call->src, bytes, bytes != 0 ? combine_once : NULL, deadline, &seq));
    if (bytes == 0)
        return DITTO_OK;
    if (self->team->crowded)
        memcpy(call->dst, sync->result[seq & 1], bytes);
    else
        combine_lines(sync, seq, call, &sync->attendee[self->id],
                      call->dst); /* payloads are copies: dst overlaps none */
    return DITTO_OK;
}

/* -- direct -- */

struct inside_wait {
    const struct dti_sync *sync;
    uint32_t peer;
};
static bool is_outside(void *argument)
{
    const struct inside_wait *w = argument;
    return atomic_load_explicit(&w->sync->attendee[w->peer].inside, memory_order_acquire) == 0; /* O1 */
}

/* Out of a stopped meeting, `status` in hand, once no peer can still be at this replica's buffers (N2). What is waited
 * for is bounded work, so there is no timeout, and no sleep either. */
static ditto_status leave(struct dti_replica *self, ditto_status status)
{
    dti_fence_heavy(); /* I2 */
    for (uint32_t i = 0; i < self->team->n; i++) {
        struct inside_wait w = { self->team->sync, i };
        while (!is_outside(&w) &&
               !dti_team_forked(self->team)) /* I3; in a child after fork nobody is there to come out */
            sched_yield();
    }
    return status;
}

static bool go_inside(struct dti_replica *self)
{
    _Atomic uint32_t *inside = &self->team->sync->attendee[self->id].inside;
    atomic_store_explicit(inside, 1, memory_order_relaxed); /* I0; ordered by the fence */
    dti_fence_light();
    if (!dti_stopped(&self->team->stop)) /* I1 */
        return true;
    atomic_store_explicit(inside, 0, memory_order_relaxed); /* nothing was touched */
    return false;
}

static void go_outside(struct dti_replica *self)
{
    atomic_store_explicit(&self->team->sync->attendee[self->id].inside, 0, memory_order_release); /* O0 */
}

/* This replica's own range, tile by tile, from all sources into the sink. */
static void reduce_range(struct dti_replica *self, const struct dti_call *call, const struct dti_sink *sink)
{
    uint32_t n = self->team->n;
    struct dti_attendee *me = &self->team->sync->attendee[self->id];
    ditto_dtype dtype = (ditto_dtype)call->dtype;
    const struct dti_kernel *kernel = call->op != 0 ? kernel_of(self->team->sync, call) : NULL;
    size_t size = ditto_dtype_bytes(dtype), first, end;
    size_t step = kernel != NULL ? dti_block_count(kernel, dtype) : DTI_TILE_BYTES / size;
    char *tile = me->scratch, *below = tile + DTI_TILE_BYTES;
    dti_tree_part(call->count, n, self->id, DTI_LINE / size, &first, &end);
    for (; first < end; first += step) {
        size_t count = end - first < step ? end - first : step;
        const void *result = (const char *)me->sources[0] + first * size; /* without an op: replica 0's */
        if (kernel != NULL) {
            dti_reduce_block(kernel, dtype, me->sources, n, first, count, tile, below);
            result = tile;
        }
        sink->store(sink->context, first, count, result);
    }
}

/* Two replicas, no division: both results in one pass, no tile between. */
static void reduce_pair(struct dti_replica *self, const struct dti_call *call, void *const *dst)
{
    const struct dti_kernel *kernel = kernel_of(self->team->sync, call);
    const struct dti_attendee *me = &self->team->sync->attendee[self->id];
    size_t size = ditto_dtype_bytes((ditto_dtype)call->dtype), first, end;
    dti_tree_part(call->count, 2, self->id, DTI_LINE / size, &first, &end);
    kernel->combine_into_two((char *)dst[0] + first * size, (char *)dst[1] + first * size,
                             (const char *)me->sources[0] + first * size, (const char *)me->sources[1] + first * size,
                             end - first);
}

/* Results into every replica's own buffer. */
struct all_destinations {
    const struct dti_sync *sync;
    uint32_t seq, self;
    size_t size;
};
static void store_to_all(void *context, size_t first, size_t count, const void *reduced)
{
    const struct all_destinations *to = context;
    uint32_t n = to->sync->team->n;
    for (uint32_t step = 0; step < n; step++) { /* starting at its own, so that writers spread over the buffers */
        uint32_t i = (to->self + step) % n;
        memcpy((char *)dti_line_of(to->sync, i, to->seq)->call.dst + first * to->size, reduced, count * to->size);
    }
}

/* The body between the two meetings. */
static void work_inside(struct dti_replica *self, const struct dti_call *call, const struct dti_sink *sink,
                        uint32_t seq)
{
    const struct dti_sync *sync = self->team->sync;
    uint32_t n = self->team->n;
    for (uint32_t i = 0; i < n; i++)
        sync->attendee[self->id].sources[i] = dti_line_of(sync, i, seq)->call.src;
    if (sink != NULL) {
        reduce_range(self, call, sink);
    } else if (n == 2 && call->op != DITTO_MEAN) {
        reduce_pair(self, call, (void *[]){ dti_line_of(sync, 0, seq)->call.dst, dti_line_of(sync, 1, seq)->call.dst });
    } else {
        struct all_destinations to = { sync, seq, self->id, ditto_dtype_bytes((ditto_dtype)call->dtype) };
        reduce_range(self, call, &(struct dti_sink){ store_to_all, &to });
    }
}

/* sink NULL: into every replica's own dst. */
static ditto_status reduce_direct(struct dti_replica *self, const struct dti_call *call, const struct dti_sink *sink,
                                  struct dti_deadline *deadline)
{
    uint32_t seq, last;
    ditto_status status = dti_meet(self, call, NULL, 0, NULL, deadline, &seq);
    if (status == DITTO_OK)
        status = dti_meeting_compare(self, seq);
    if (status != DITTO_OK)
        return leave(self, status);
    if (!go_inside(self))
        return leave(self, dti_team_stop_status(self->team));
    work_inside(self, call, sink, seq);
    go_outside(self);
    *deadline = dti_replica_deadline(self, deadline->timeout_ms); /* a new wait: the work between took its own time */
    status = dti_meet(self, call, NULL, 0, NULL, deadline, &last);
    return status == DITTO_OK ? status : leave(self, status);
}

/* -- the three doors -- */

ditto_status dti_barrier(struct dti_replica *self, const char *name, struct dti_deadline *deadline)
{
    struct dti_call call = { .name = name };
    uint32_t seq;
    return dti_meet(self, &call, NULL, 0, NULL, deadline, &seq);
}

ditto_status dti_all_reduce(struct dti_replica *self, const void *src, void *dst, size_t count, ditto_dtype dtype,
                            ditto_op op, struct dti_deadline *deadline)
{
    struct dti_call call = {
        .name = "ditto_all_reduce", .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .src = src, .dst = dst
    };
    size_t bytes = count * ditto_dtype_bytes(dtype); /* the caller has checked the product */
    size_t readings =
        self->team->crowded || self->team->n == 1 ? 1 : self->team->n - 1; /* of payloads, by each replica */
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = bytes <= SMALL_TOTAL_BYTES && bytes * readings <= SMALL_TOTAL_BYTES
                              ? reduce_small(self, &call, bytes, deadline)
                              : reduce_direct(self, &call, NULL, deadline);
    dti_fenv_leave(saved);
    return status;
}

ditto_status dti_reduce_into(struct dti_replica *self, const void *src, size_t count, ditto_dtype dtype, ditto_op op,
                             const char *name, const char *object, const struct dti_sink *sink,
                             struct dti_deadline *deadline)
{
    struct dti_call call = {
        .name = name, .object = object, .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .src = src
    };
    struct dti_fenv saved = dti_fenv_enter();
    ditto_status status = reduce_direct(self, &call, sink, deadline);
    dti_fenv_leave(saved);
    return status;
}

void dti_combine_two(ditto_dtype dtype, ditto_op op, void *out, const void *left, const void *right, size_t count)
{
    (*dti_kernels_best())[dtype][op].combine_into_two(out, out, left, right, count);
}

ditto_status dti_reduce_here(ditto_dtype dtype, ditto_op op, const void *const *source, uint32_t n, size_t count,
                             void *dst)
{
    const struct dti_kernel *kernel = &(*dti_kernels_best())[dtype][op];
    size_t size = ditto_dtype_bytes(dtype), step = dti_block_count(kernel, dtype);
    char *scratch = malloc(DTI_SCRATCH_BYTES);
    if (scratch == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a reduction");
    for (size_t first = 0; first < count; first += step)
        dti_reduce_block(kernel, dtype, source, n, first, count - first < step ? count - first : step,
                         (char *)dst + first * size, scratch);
    free(scratch);
    return DITTO_OK;
}

ditto_status dti_reduction_check(ditto_dtype dtype, ditto_op op)
{
    if (!dti_dtype_valid(dtype))
        return DTI_FAIL(DITTO_ERR_INVALID, "%d is not a dtype: use one of DITTO_DTYPE_LIST", (int)dtype);
    if (op < DITTO_SUM || op > DITTO_XOR)
        return DTI_FAIL(DITTO_ERR_RANGE, "%d is not an op: SUM, MEAN, MIN, MAX, PROD, AND, OR or XOR", (int)op);
    if (op == DITTO_MEAN && !dti_dtype_is_float(dtype))
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "MEAN of %s: its result is no integer; SUM it and divide, or use a "
                        "floating dtype",
                        ditto_dtype_name(dtype));
    if ((*dti_kernels_best())[dtype][op].combine == NULL)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "%s of %s: the dtype has no such operation (complex numbers have no order, floats no bits, and bool "
            "has AND, OR, XOR)",
            ditto_op_name(op), ditto_dtype_name(dtype));
    return DITTO_OK;
}
