/* tests/sync/plans/cost.h - calculates what a plan costs, without threads.
 *
 * This gives numbers for machines that are not available. tests/sync/plans/test_plans.c compares the
 * counters, but not the nanoseconds, with what the algorithms count when they run. */
#ifndef DTI_COST_H
#define DTI_COST_H

#include "sync/meeting/sync_state.h"

/* Returns how many words of other replicas replica `self` waits for in one meeting with these rounds
 * (hops_near and hops_far). The other counters are 0. */
struct dti_counters dti_cost_meeting(const struct dti_rounds *rounds, const struct dti_groups *groups,
                                     uint32_t self);

/* Returns the cost of the critical path of the whole meeting, in nanoseconds. */
double dti_cost_rounds_ns(const struct dti_rounds *rounds, const struct dti_machine_shape *shape,
                          const struct dti_costs *costs);

/* An all-reduce of `count` elements. */
struct dti_all_reduce_size {
    size_t count;
    size_t element_bytes;
    size_t accumulator_bytes;
    size_t block_bytes;
};

/* Return what replica `self` does in such an all-reduce between its two meetings, which are not counted. */
struct dti_counters dti_cost_owners(const struct dti_groups *groups, uint32_t n, uint32_t self,
                                    const struct dti_all_reduce_size *size);
struct dti_counters dti_cost_exchange(const struct dti_groups *groups, const struct dti_tree *tree,
                                      uint32_t self, const struct dti_all_reduce_size *size);

/* The bytes per nanosecond that a core can move, and that the memory of a node and the link of a package can
 * carry. */
struct dti_bandwidths {
    double core;
    double node;
    double link;
};

/* Returns the predicted time in nanoseconds. It is the longest of the times of core, node and link, plus
 * meetings_ns, plus the waits for other groups that may not overlap with work. Each counter in `most` is the
 * maximum over all replicas. Each package has one node. docs/performance.md lists results. */
double dti_cost_ns(const struct dti_counters *most, double meetings_ns, uint32_t replicas_per_package,
                   const struct dti_bandwidths *bandwidths, const struct dti_costs *costs);

#endif
