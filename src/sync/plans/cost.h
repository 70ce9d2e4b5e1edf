/* src/sync/plans/cost.h - what a plan costs, counted on paper: for machines that are not there, and to be compared with what the engine
 * counts where it runs (tests/sync/plans/test_plans.c). No threads. */
#ifndef DTI_COST_H
#define DTI_COST_H

#include "sync/plans/groups.h"
#include "sync/plans/rounds.h"
#include "sync/sync_state.h"

/* What replica `self` does in one meeting by these rounds. */
struct dti_counters dti_cost_meeting(const struct dti_rounds *rounds, const struct dti_groups *groups,
                                     uint32_t self);

/* An all-reduce of `count` elements between two meetings (not counted here), as replica `self` sees it. */
struct dti_all_reduce_size {
    size_t count, element_bytes, accumulator_bytes, block_bytes;
};
struct dti_counters dti_cost_owners(const struct dti_groups *groups, uint32_t n, uint32_t self,
                                    const struct dti_all_reduce_size *size);
struct dti_counters dti_cost_exchange(const struct dti_groups *groups, uint32_t n, uint32_t self,
                                      const struct dti_all_reduce_size *size);

/* Nanoseconds by the model of docs/performance.md: what a core moves, what a node's memory and a package's link carry, and the
 * meetings. */
struct dti_bandwidths {
    double core, node, link; /* bytes per nanosecond */
};
double dti_cost_ns(const struct dti_counters *most, double meetings_ns, uint32_t replicas_per_node,
                   const struct dti_bandwidths *bandwidths, const struct dti_costs *costs);

#endif
