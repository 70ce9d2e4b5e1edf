/* src/sync/algorithms/exchange.h - a large reduction in groups. A group reads each partial and each result of
 * another group at most once.
 *
 * The indices are divided into exchange ranges. Each range has one owner in every group (groups.h). The
 * owners of a range go through it in blocks, in the same order. For block b each owner takes three steps.
 *   A  It combines the block over its own group, to the largest subtrees that the group's ids form, and sets
 *      its word `partial` to b.
 *   B  It waits for the partials of its counterparts in the other groups. Each group has one piece of the
 *      block. The owner combines its piece over all groups, rounds it, and sets its word `result` to b.
 *   C  It waits for the results of its counterparts and writes the block to the destinations of its group.
 * Step A of block b + 1 comes before step C of block b, so that no owner waits for a counterpart that is only
 * slightly behind.
 *
 * Invariants  I1  Buffers are written by their owner only. Partials and results have two copies each, and
 *                 block b uses copy b % 2.
 *             I2  A of b + 1 comes after C of b - 1, which has seen the results b - 1 of all counterparts. So
 *                 all have finished B of b - 1, and no owner reads the partials of b - 1, which those of b +
 *                 1 overwrite.
 *             I3  B of b has seen the partials b of all counterparts, and on each of them A of b comes after
 *                 C of b - 2. So no owner reads the results of b - 2, which those of b overwrite.
 *             I4  All replicas go through their ranges in ascending order. So all owners of the lowest
 *                 unfinished range are working on it.
 * Edges       Q0 -> Q1  the partials of an owner -> a counterpart that sees its word `partial`
 *             R0 -> R1  the result of an owner -> a counterpart that sees its word `result`
 * In place    A source is overwritten in step C of its block. This is after step B of the block on all
 *             owners, which is the last step that reads sources.
 * Source      Reduce-scatter among counterparts and all-gather: Thakur, Rabenseifner, Gropp, IJHPCA 19(1),
 *             2005. One owner in each group: docs/adr/0011-plans-and-one-engine.md.
 * Model       tests/model/exchange.pml */
#ifndef DTI_EXCHANGE_H
#define DTI_EXCHANGE_H

#include "sync/algorithms/flow.h"

/* The buffers of one owner for one exchange range. */
struct dti_exchange_buffers {
    /* Both words hold the lower half of the meeting's number << 32 | the number of blocks whose partials, or
     * results, are complete. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t partial;
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t result;

    /* [2][most_parts][block_bytes] This pointer and the next one are constant. */
    alignas(DTI_CACHE_LINE_PAIR) unsigned char *partials;

    unsigned char *results; /* [2][block_bytes] */
};

/* Allocates the replica's buffers in its arena, if there are several groups. Called when the state of the
 * collectives is made (sync.c), which also happens for the first run inside a run. Must be called on the
 * replica's own thread. Fails with NO_MEMORY. */
ditto_status dti_exchange_buffers_make(struct dti_replica *self, struct dti_sync *sync);

/* Frees what dti_exchange_buffers_make has allocated, also if that has failed. Any thread, when the replica
 * does not use it. */
void dti_exchange_buffers_free(struct dti_replica *replica, struct dti_sync *sync);

/* Resets the words of a replica. All replicas are parked. */
void dti_exchange_buffers_renew(struct dti_sync *sync, uint32_t replica);

/* Reports which replica combines and finishes which elements, see dti_target_owners. Any thread. */
void dti_exchange_owners(const struct dti_flow *flow, dti_target_owner_fn *report, void *context);

#endif
