/* src/sync/algorithms/staged.c - collectives of two replicas by way of staging memory.
 *
 * When a replica writes its source again after another one has read it, every line has to be taken back from
 * the cache of the reader. Some processors do this line by line: between two cores of a Zen 4, 128 KiB took
 * 57 us to write again, but only 13 us to read. So no replica reads the source of the other one. Each copies
 * what the other one needs past the caches to staging memory, from where the other one reads it. An
 * all-reduce of 128 KiB took 15 us, and 70 us without staging. An all-reduce in place does not have this
 * problem, because each half is written by the replica that reads it. So it is not staged. From 4 KiB on it
 * took as long as when staged between two cores, and about half as long between two threads of a core. In a
 * scan in place, replica 1 needs the source of replica 0, and replica 0 needs nothing. 1 MiB took 55 us
 * staged, and 264 to 286 us otherwise, between two cores.
 *
 * A message goes through the staging memory in chunks, with one meeting for each. Chunks use the two halves
 * of the memory in turn, as meetings use the two mailboxes. A replica that comes to meeting k has read what
 * was staged for meeting k - 1. So what was staged for meeting k - 2 may be overwritten after meeting k - 1.
 * The claims of tests/model/meeting.pml about payloads hold for chunks. If a meeting has failed, nothing is
 * staged any more (dti_stage). bench/curve.sh measures all of this. */
#include "sync/algorithms/staged.h"
#include "replicas/team/team.h"
#include "sync/algorithms/flow.h"
#include "sync/meeting/access.h"
#include "sync/meeting/meeting.h"

#include <string.h>

/* Longer chunks need fewer meetings. 1 MiB took 97 us in chunks of this length, 118 us in chunks of 32 KiB,
 * and 89 us in one piece. */
#define CHUNK_BYTES ((size_t)128 << 10)
_Static_assert(2 * CHUNK_BYTES == DTI_STAGE_BYTES, "a chunk is one half of the staging memory");

bool dti_stages(const struct dti_call *call)
{
    return call->pattern != DTI_PATTERN_ALL_REDUCE || call->dst != call->src;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

bool dti_both_stage(const struct dti_replica *self, uint32_t seq)
{
    const struct dti_call *mine = dti_call_of(self->sync, self->index, seq),
                          *theirs = dti_call_of(self->sync, !self->index, seq);
    size_t bytes = mine->count * mine->element_bytes,
           src_bytes = dti_flow_shape(mine)->cuts_src ? 2 * bytes : bytes,
           dst_bytes = dti_flow_shape(mine)->cuts_dst ? 2 * bytes : bytes;
    return dti_stages(mine) && dti_stages(theirs) && !overlap(mine->src, src_bytes, theirs->src, src_bytes) &&
           !overlap(mine->src, src_bytes, theirs->dst, dst_bytes) &&
           !overlap(mine->dst, dst_bytes, theirs->src, src_bytes);
}

static unsigned char *stage_of(const struct dti_replica *self, uint32_t replica, uint32_t seq)
{
    return self->sync->state[replica].stage + (seq & 1) * CHUNK_BYTES;
}

static size_t chunk_count(const struct dti_call *call, size_t first)
{
    size_t most = CHUNK_BYTES / call->element_bytes;
    return call->count - first < most ? call->count - first : most;
}

/* Returns the first of the elements that the other replica needs, or NULL if it needs none. */
static const char *needed(const struct dti_replica *self, const struct dti_call *call)
{
    bool is_root = self->index == call->root;
    const struct dti_flow_shape *shape = dti_flow_shape(call);
    size_t before = shape->cuts_src ? !self->index * call->count : 0;
    if ((is_root ? shape->to : shape->from) == DTI_END_ROOT || (dti_call_scans(call) && self->index == 1))
        return NULL;
    return (const char *)call->src + before * call->element_bytes;
}

void dti_stage(struct dti_replica *self, const struct dti_call *call, uint32_t seq, size_t first)
{
    const char *from = needed(self, call);
    /* The source may belong to the other replica, too, which may free it when its call has failed. And after
     * a meeting that has failed, the other replica may still read what was staged before. In both cases the
     * run is stopped, and the meeting that follows returns the error. */
    if (from == NULL || !dti_access_begin(self))
        return;
    dti_stream(stage_of(self, self->index, seq), from + first * call->element_bytes,
               chunk_count(call, first) * call->element_bytes);
    dti_stream_end();
    dti_access_end(self);
}

/* Combines own elements with as many from the other replica's stage. */
static void combine(struct dti_replica *self, struct dti_reduction *r, const void *own, const void *stage,
                    size_t count, char *dst)
{
    struct dti_workspace *workspace = &self->sync->state[self->index].workspace;
    char *tile = workspace->scratch;
    size_t most = dti_tile_count(r);
    workspace->source[self->index] = own;
    workspace->source[!self->index] = stage;
    if (r->kernel->widen == NULL && r->kernel->divide == NULL) {
        r->kernel->combine(dst, workspace->source[0], workspace->source[1], count);
        return;
    }
    for (size_t at = 0; at < count; at += most) {
        size_t length = count - at < most ? count - at : most;
        dti_reduce_block(r, workspace->source, 2, at, length, tile, tile + DTI_TILE_BYTES);
        memcpy(dst + at * r->element_bytes, tile, length * r->element_bytes);
    }
}

/* Makes `bytes` bytes of the result of a scan. Replica 0 receives nothing. */
static void use_scan_chunk(struct dti_replica *self, struct dti_reduction *r, const struct dti_call *call,
                           const char *own, const void *stage, size_t bytes, char *dst)
{
    bool is_exclusive = call->pattern == DTI_PATTERN_SCAN_EXCLUSIVE;
    if (self->index == 1 && !is_exclusive)
        combine(self, r, own, stage, bytes / call->element_bytes, dst);
    else if (self->index == 1)
        memcpy(dst, stage, bytes);
    else if (!is_exclusive && dst != own)
        memcpy(dst, own, bytes);
}

/* Makes the result's elements from `first` on, as far as they were staged for meeting `seq`. */
static void use_chunk(struct dti_replica *self, struct dti_reduction *r, const struct dti_call *call,
                      uint32_t seq, size_t first)
{
    uint32_t other = !self->index;
    const unsigned char *stage = stage_of(self, other, seq);
    size_t size = call->element_bytes, bytes = chunk_count(call, first) * size, part = call->count * size;
    const struct dti_flow_shape *shape = dti_flow_shape(call);
    bool is_root = self->index == call->root;
    if (!is_root && shape->to == DTI_END_ROOT)
        return;
    char *dst = (char *)call->dst + first * size;
    if (!is_root && shape->from == DTI_END_ROOT) {
        memcpy(dst, stage, bytes);
        return;
    }
    const char *own = (const char *)call->src + first * size + (shape->cuts_src ? self->index * part : 0);
    if (dti_call_scans(call)) {
        use_scan_chunk(self, r, call, own, stage, bytes, dst);
        return;
    }
    if (dti_flow_is_combined(call)) {
        combine(self, r, own, stage, bytes / size, dst);
        return;
    }
    char *own_dst = dst + (shape->cuts_dst ? self->index * part : 0);
    if (own_dst != own) /* they are equal in a broadcast, and in place */
        memcpy(own_dst, own, bytes);
    if (shape->cuts_dst) /* the root of a broadcast or a scatter receives nothing */
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a replica that receives has one */
        memcpy(dst + other * part, stage, bytes);
}

ditto_status dti_use_staged(struct dti_replica *self, const struct dti_prepared_call *prepared, uint32_t seq,
                            struct dti_deadline *deadline)
{
    const struct dti_call *call = prepared->call;
    struct dti_reduction reduction = prepared->reduction;
    struct dti_arrival arrival = { .call = call, .goes_on = true };
    for (size_t first = 0; first < call->count;) {
        use_chunk(self, &reduction, call, seq, first);
        first += chunk_count(call, first);
        if (first == call->count)
            break;
        dti_stage(self, call, seq + 1, first);
        *deadline = dti_replica_deadline(self, deadline->timeout_ms);
        DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    }
    return DITTO_OK;
}
