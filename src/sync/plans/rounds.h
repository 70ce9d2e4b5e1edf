/* src/sync/plans/rounds.h - the plan of a meeting: how many rounds it has, and whose mailboxes a replica
 * reads in each.
 *
 * A *cut* divides the row of replicas into blocks of neighbours. Cuts are nested. Cut 0 has a block for each
 * replica, the last cut has a single block, and round r joins the blocks of cut r to those of cut r + 1. In
 * round r a replica reads the mailbox of one replica of each sibling block. All members of a block have the
 * same knowledge before the round, so any of them can be read. Each member is read by its counterparts only.
 * This is n-way dissemination (Hensgen, Finkel, Manber, IJPP 17(1), 1988), aligned to the machine, so that
 * only the last rounds cross its borders. All functions are pure. */
#ifndef DTI_ROUNDS_H
#define DTI_ROUNDS_H

#include <ditto/strategy.h>

#include "sync/kernels/tree.h"
#include "sync/plans/shape.h"

#define DTI_MOST_ROUNDS 12

/* What the cost of a round consists of. dti_measure_hops measures hop_ns. */
struct dti_costs {
    /* The time from a store on one core until a core that watches the line has seen it. */
    double hop_ns[DTI_DISTANCES];

    /* The number of lines that a core can fetch at the same time. */
    double overlap;

    /* The work of one round, without waiting. */
    double round_ns;
};

struct dti_rounds {
    uint32_t n;
    uint32_t rounds;

    /* Block b of cut c consists of the replicas start[c][b] to start[c][b + 1] - 1. */
    uint32_t *start[DTI_MOST_ROUNDS + 1];

    uint32_t blocks[DTI_MOST_ROUNDS + 1];
};

/* Makes the plan of an implementation. FLAT has one round, in which every replica reads all others. DEFAULT
 * has a cut at the borders of each distance that occurs, and as many cuts between these as cost least.
 * HIERARCHICAL is equal to it if near is 0. Otherwise its cuts at borders also divide the row at every
 * multiple of `near`. Fails with NO_MEMORY. */
ditto_status dti_rounds_make(const struct dti_machine_shape *shape, const struct dti_costs *costs,
                             ditto_implementation implementation, uint32_t near, struct dti_rounds *out);
void dti_rounds_free(struct dti_rounds *rounds);

/* Returns the block of cut `cut` that contains a replica. */
uint32_t dti_rounds_block(const struct dti_rounds *rounds, uint32_t cut, uint32_t replica);

/* Returns the blocks [first, end) of cut `round` that round `round` joins to one block. Replica `self` is in
 * one of them. */
struct dti_span dti_rounds_siblings(const struct dti_rounds *rounds, uint32_t round, uint32_t self);

/* Returns the replica that represents block `block` of cut `round` for replica `self`. For its own block this
 * is `self` itself. */
uint32_t dti_rounds_representative(const struct dti_rounds *rounds, uint32_t round, uint32_t block,
                                   uint32_t self);

/* Returns the cost of one round with `blocks` blocks at a distance, in nanoseconds. */
double dti_round_ns(const struct dti_costs *costs, enum dti_distance distance, uint32_t blocks);

#endif
