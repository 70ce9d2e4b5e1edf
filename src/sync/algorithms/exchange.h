/* src/sync/algorithms/exchange.h - a large reduction in groups: what crosses between them crosses once.
 *
 * The owners of a lane, one a group (groups.h), go through it in blocks, in the same order. For block b each
 *   A  combines it over its own group, to the largest subtrees that the group's ids form, and says `partial` b
 *   B  waits for its counterparts' partials, combines its piece of the block (one piece a group) over all of them, rounds it,
 *      and says `result` b
 *   C  waits for its counterparts' results and writes the block to the destinations of its group.
 * A of block b + 1 comes before C of block b, so that nobody waits for a counterpart that is just a little behind.
 *
 * Invariants  I1  an area is written by its owner only; partials and results have two places, block b in place b % 2.
 *             I2  A of b + 1 comes after C of b - 1, which has seen everyone's result b - 1: all are done with B of b - 1, so
 *                 nobody reads the partials of b - 1 any more, in whose place those of b + 1 go.
 *             I3  B of b has seen everyone's partial b, and A of b comes after C of b - 2 on each of them: nobody reads the
 *                 results of b - 2 any more, in whose place those of b go.
 *             I4  lanes are gone through in ascending order by all, so the lowest that is not done has all its owners at work.
 * Edges       Q0 -> Q1  partials -> a counterpart that sees the word;  R0 -> R1  results likewise
 * In place    a source is overwritten by C of its block, after everyone's B of it, the last that reads sources.
 * Source      reduce-scatter among counterparts and all-gather: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; one owner a
 *             socket: sync-research of docs/adr/0011.
 * Model       tests/model/exchange.pml */
#ifndef DTI_EXCHANGE_H
#define DTI_EXCHANGE_H

#include "sync/algorithms/flow.h"

/* A lane of one owner. */
struct dti_exchange_buffers {
    /* Both: lower half of the meeting's number << 32 | number of blocks whose partials, or results, are
     * there. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t partial;
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t result;
    alignas(DTI_CACHE_LINE_PAIR) unsigned char
        *partials;          /* [2][most_parts][block_bytes]; constant, as the next */
    unsigned char *results; /* [2][block_bytes] */
};

/* The replica's own thread, when the team is made: its areas in its arena. NO_MEMORY. */
ditto_status dti_exchange_buffers_make(struct dti_replica *self, struct dti_sync *sync);
void dti_exchange_buffers_renew(struct dti_sync *sync, uint32_t replica); /* all replicas are parked */

/* Calls refresh(word, number) for each word of the replica's areas. The replica's own thread. */
void dti_exchange_buffers_refresh(const struct dti_replica *self, uint32_t number,
                                  void (*refresh)(_Atomic uint64_t *word, uint32_t number));

/* Any thread: who combines, and finishes, which elements; see dti_target_owners. */
void dti_exchange_owners(const struct dti_flow *flow, dti_target_owner_fn *range, void *context);

#endif
