/* src/sync/algorithms/staged.c - an all-reduce of two replicas by way of staging memory.
 *
 * When a replica writes its source again after another one has read it, every line has to be taken back from
 * the cache of the reader. Some processors do this line by line: between two cores of a Zen 4, 128 KiB took
 * 57 us to write again, but only 13 us to read. So nobody reads the source. Each replica copies it past the
 * caches to staging memory, from where the other one reads it. Such an all-reduce took 15 us, and 70 us
 * without staging. A call in place does not have this problem if its halves have an owner each, because the
 * owner writes them. Up to STAGED_IN_PLACE_BYTES staging is faster nevertheless, because it takes one meeting
 * instead of two.
 *
 * A message goes through the staging memory in chunks, with one meeting for each. Chunks use the two halves
 * of the memory in turn, as meetings use the two mailboxes. A replica that comes to meeting k has combined
 * what was staged for meeting k - 1. So what was staged for meeting k - 2 may be overwritten after meeting
 * k - 1. */
#include "sync/algorithms/staged.h"
#include "replicas/team/team.h"
#include "sync/meeting/meeting.h"

/* Longer chunks need fewer meetings. 1 MiB took 97 us in chunks of this length, 118 us in chunks of 32 KiB,
 * and 89 us in one piece. */
#define CHUNK_BYTES ((size_t)128 << 10)
_Static_assert(2 * CHUNK_BYTES == DTI_STAGE_BYTES, "a chunk is one half of the staging memory");

/* Between two cores of a Zen 4, 32 KiB in place took 4.1 us staged and 5.4 us otherwise, 64 KiB 7.9 and
 * 6.2 us. */
#define STAGED_IN_PLACE_BYTES ((size_t)32 << 10)

bool dti_is_staged(const struct dti_call *call)
{
    return call->dst != call->src || call->count * call->element_bytes <= STAGED_IN_PLACE_BYTES;
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

void dti_stage(struct dti_replica *self, const struct dti_call *call, uint32_t seq, size_t first)
{
    dti_stream(stage_of(self, self->index, seq), (const char *)call->src + first * call->element_bytes,
               chunk_count(call, first) * call->element_bytes);
    dti_stream_end();
}

static bool overlap(const void *a, const void *b, size_t bytes)
{
    return (uintptr_t)a < (uintptr_t)b + bytes && (uintptr_t)b < (uintptr_t)a + bytes;
}

/* Combines the elements from `first` on that were staged for meeting `seq`. `own` is where this replica reads
 * its own. */
static void combine(struct dti_replica *self, struct dti_reduction *r, const struct dti_call *call,
                    uint32_t seq, const void *own, size_t first)
{
    struct dti_workspace *workspace = &self->sync->state[self->index].workspace;
    char *dst = (char *)call->dst + first * call->element_bytes, *tile = workspace->scratch;
    size_t count = chunk_count(call, first), most = dti_tile_count(r);
    workspace->source[self->index] = own;
    workspace->source[!self->index] = stage_of(self, !self->index, seq);
    if (r->kernel->widen == NULL && r->kernel->divide == NULL) {
        r->kernel->combine(dst, workspace->source[0], workspace->source[1], count);
    } else {
        for (size_t at = 0; at < count; at += most) {
            size_t length = count - at < most ? count - at : most;
            dti_reduce_block(r, workspace->source, 2, at, length, tile, tile + DTI_TILE_BYTES);
            memcpy(dst + at * call->element_bytes, tile, length * call->element_bytes);
        }
    }
    workspace->counters.written_near += count * call->element_bytes;
    workspace->counters.read_near += count * call->element_bytes;
    if (dti_is_far(self->sync, self->index, !self->index))
        workspace->counters.read_far += count * call->element_bytes;
    else
        workspace->counters.read_near += count * call->element_bytes;
}

ditto_status dti_combine_staged(struct dti_replica *self, const struct dti_prepared_call *prepared,
                                uint32_t seq, struct dti_deadline *deadline)
{
    const struct dti_call *call = prepared->call, *other = dti_call_of(self->sync, !self->index, seq);
    struct dti_reduction reduction = prepared->reduction;
    struct dti_arrival arrival = { .call = call, .goes_on = true };
    size_t bytes = call->count * call->element_bytes;
    /* A peer that shares the source, or has its result there, may write it when it has returned. */
    bool is_written = overlap(call->src, other->src, bytes) || overlap(call->src, other->dst, bytes);
    for (size_t first = 0; first < call->count;) {
        const void *own = is_written ? (const void *)stage_of(self, self->index, seq)
                                     : (const char *)call->src + first * call->element_bytes;
        combine(self, &reduction, call, seq, own, first);
        first += chunk_count(call, first);
        if (first == call->count)
            break;
        dti_stage(self, call, seq + 1, first);
        *deadline = dti_replica_deadline(self, deadline->timeout_ms);
        DTI_TRY(dti_meet(self, &arrival, deadline, &seq));
    }
    return DITTO_OK;
}
