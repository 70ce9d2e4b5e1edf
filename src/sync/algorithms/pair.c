/* src/sync/algorithms/pair.c - see pair.h.
 *
 * owners.c does the same for any pattern and any number of replicas. But what it has to find out about each
 * call takes as long as combining some kilobytes: between two threads of a core, 1 KiB in place took 255 ns
 * with owners.c and takes 197 ns here, of which 110 ns are two meetings. */
#include "sync/algorithms/pair.h"

/* Lengths of chunks from 512 to 2048 bytes are equally fast. */
#define CHUNK_BYTES ((size_t)1024)

void dti_combine_pair(const struct dti_kernel *kernel, size_t element_bytes, char *const to[],
                      uint32_t destinations, const char *const from[2], size_t count, bool fetches)
{
    size_t bytes = count * element_bytes;
    for (size_t at = 0; at < bytes; at += CHUNK_BYTES) {
        size_t length = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        for (uint32_t d = 0; d < destinations && fetches; d++)
            dti_fetch_to_write(to[d] + at, length);
        if (destinations == 1)
            kernel->combine(to[0] + at, from[0] + at, from[1] + at, length / element_bytes);
        else
            kernel->combine_into_two(to[0] + at, to[1] + at, from[0] + at, from[1] + at,
                                     length / element_bytes);
    }
}

/* The most bytes of a message of which each replica computes the whole result. */
#define WHOLE_MOST_BYTES ((size_t)384 << 10)

/* A replica that computes the whole result reads all lines of the other one's source. If each computed one
 * half for both, it would read half of those lines, write as many lines of the other one's result, which
 * have to be fetched first, and get half of its own result back: one and a half times as many transfers,
 * for half of the additions. An all-reduce of 128 KiB took 117 us by halves and 67 us if each computes the
 * whole, on two cores of a Zen 4, and 14.5 and 8.1 us on two threads of one core. At 384 KiB both take the
 * same time on two threads. Conversions of f16 and bf16 cost more than the transfers. Results that are
 * sources must be computed by halves. */
bool dti_each_computes_whole(const struct dti_call *one, const struct dti_call *other,
                             const struct dti_kernel *kernel)
{
    return kernel != NULL && kernel->widen == NULL && one->count * one->element_bytes <= WHOLE_MOST_BYTES &&
           one->dst != one->src && one->dst != other->src && other->dst != one->src &&
           other->dst != other->src;
}

/* Counts one source of each replica, the replica's own destination, and perhaps that of the other one. */
static void count_bytes(struct dti_counters *counters, size_t bytes, bool is_far, bool writes_both)
{
    counters->read_near += bytes;
    counters->written_near += bytes;
    *(is_far ? &counters->read_far : &counters->read_near) += bytes;
    *(is_far ? &counters->written_far : &counters->written_near) += writes_both ? bytes : 0;
}

bool dti_all_reduce_pair(struct dti_replica *self, const struct dti_prepared_call *prepared, uint32_t seq)
{
    const struct dti_sync *sync = self->sync;
    struct dti_replica_state *me = &sync->state[self->index];
    const struct dti_call *mine = prepared->call;
    const struct dti_kernel *kernel = prepared->reduction.kernel;
    if (self->num_replicas != 2 || mine->pattern != DTI_PATTERN_ALL_REDUCE || kernel == NULL ||
        kernel->divide != NULL || prepared->choice.streams ||
        (me->helper_work != NULL && prepared->size.own >= sync->tuning.given.helper_bytes))
        return false;
    const struct dti_call *theirs = dti_call_of(sync, !self->index, seq);
    const struct dti_call *call[2] = { self->index == 0 ? mine : theirs, self->index == 0 ? theirs : mine };
    bool whole = dti_each_computes_whole(mine, theirs, kernel);
    size_t element = mine->element_bytes, first = 0, end = mine->count;
    if (!whole)
        dti_tree_part(mine->count, 2, self->index, DTI_CACHE_LINE / element, &first, &end);
    const char *from[2] = { (const char *)call[0]->src + first * element,
                            (const char *)call[1]->src + first * element };
    char *to[2] = { (char *)mine->dst + first * element, (char *)theirs->dst + first * element };
    dti_combine_pair(kernel, element, to, whole ? 1 : 2, from, end - first,
                     prepared->choice.fetches || (to[0] != from[0] && to[0] != from[1]));
    count_bytes(&me->workspace.counters, (end - first) * element, dti_is_far(sync, 0, 1), !whole);
    return true;
}
