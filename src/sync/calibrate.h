/* src/sync/calibrate.h - short measurements that are made when a strategy is created. Cross-replica context,
 * between dti_cross_enter and dti_cross_leave. */
#ifndef DTI_CALIBRATE_H
#define DTI_CALIBRATE_H

#include "sync/plans/tuning.h"

struct dti_sync;
struct dti_team;

/* Measures hops of a cache line between neighbours, at each distance that occurs. For each distance it makes
 * 200 hops there and back, or as many as half a millisecond allows. Does nothing if there is one replica, or
 * if replicas share PUs, because the time of a hop then depends on the scheduler. Fails with NO_MEMORY. */
ditto_status dti_measure_hops(struct dti_team *team, const struct dti_machine_shape *shape,
                              struct dti_costs *costs);

/* Sets the thresholds in *tuning that it can find out. If there are several replicas that do not share PUs,
 * it executes collectives in both forms for small_bytes, stream_bytes, fetch_bytes, if there are several
 * groups for hierarchical_bytes, and if there are two replicas for stage_bytes and stage_one_way_bytes, on
 * data that has to move. This takes a few milliseconds. If results past the caches are not faster in general,
 * stream_bytes is a third of the last-level caches, because filling them takes too long to measure. On two
 * threads of a Zen 4 core with a cache of 32 MiB, an all-reduce of 4 MiB past the caches took 1.02 to 1.03 of
 * the time, 6 MiB 0.99, and 8 MiB 0.98. On two cores they took 0.69, 0.78 and 0.81.
 * Sets *in_time to false if the machine was too busy to measure. Fails with NO_MEMORY. */
ditto_status dti_measure_thresholds(struct dti_sync *sync, ditto_tuning *tuning, bool *in_time);

#endif
