/* src/sync/plans/rounds.h - the plan of a meeting: who looks at whose line, in how many rounds. Pure.
 *
 * A *cut* divides the row of replicas into blocks of neighbours. Cuts are nested: cut 0 has a block for each replica, the last
 * one a single block, and round r joins the blocks of cut r to those of cut r + 1. In round r a replica looks at one replica of
 * each sibling block; as all members of a block know the same by then, any of them will do, and each is looked at by its
 * counterparts alone (n-way dissemination: Hensgen, Finkel, Manber, IJPP 17(1), 1988; aligned to the machine, so that only the
 * last rounds cross its borders). */
#ifndef DTI_ROUNDS_H
#define DTI_ROUNDS_H

#include "sync/plans/shape.h"

#define DTI_MOST_ROUNDS 12

/* What a round costs: dti_calibrate measures it, tests make it up. */
struct dti_costs {
    double hop_ns[DTI_DISTANCES]; /* a store on one core until a core that watches the line has seen it */
    double overlap;               /* lines that a core can fetch at the same time */
    double round_ns;              /* work of one round beside waiting */
};

struct dti_rounds {
    uint32_t n, rounds;
    uint32_t *start[DTI_MOST_ROUNDS + 1]; /* cut c: block b is replicas start[c][b] .. start[c][b + 1] - 1 */
    uint32_t blocks[DTI_MOST_ROUNDS + 1];
};

/* The plans that a strategy keeps. FLAT: one round, everyone looks at everyone. HIERARCHICAL: every border that there is begins
 * a round of its own, and `near` > 0 cuts the row every so many replicas too. AUTO: the borders, and as many rounds between
 * them as cost least. NO_MEMORY. */
ditto_status dti_rounds_make(const struct dti_machine_shape *shape, const struct dti_costs *costs,
                             ditto_implementation implementation, uint32_t near, struct dti_rounds *out);
void dti_rounds_free(struct dti_rounds *rounds);

/* The block of cut `cut` that a replica is in. */
uint32_t dti_rounds_block(const struct dti_rounds *rounds, uint32_t cut, uint32_t replica);
/* What replica `self` has to do with the blocks [first, end) of cut `round`, its own among them: these are what it joins. */
struct dti_span dti_rounds_siblings(const struct dti_rounds *rounds, uint32_t round, uint32_t self);
/* Whose line stands for block `block` of cut `round` to replica `self`; itself for its own. */
uint32_t dti_rounds_representative(const struct dti_rounds *rounds, uint32_t round, uint32_t block,
                                   uint32_t self);

/* One round's cost among `blocks` blocks at a distance. */
double dti_round_ns(const struct dti_costs *costs, enum dti_distance distance, uint32_t blocks);
/* The critical path of the whole meeting. */
double dti_rounds_ns(const struct dti_rounds *rounds, const struct dti_machine_shape *shape,
                     const struct dti_costs *costs);

#endif
