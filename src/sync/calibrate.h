/* src/sync/calibrate.h - measuring the numbers by which collectives are chosen. All: cross context, between dti_cross_enter and
 * dti_cross_leave; on replicas that share PUs they do nothing, because there the time of a hand-over is the scheduler's. */
#ifndef DTI_CALIBRATE_H
#define DTI_CALIBRATE_H

#include "sync/tuning.h"

struct dti_sync;

/* Hand-overs of a cache line between neighbours at each distance that there is: 1000 each, under a millisecond. */
ditto_status dti_measure_hops(struct dti_team *team, const struct dti_shape *shape, struct dti_costs *costs);

/* Thresholds that are 0 in *measured, by trying both ways with the collectives themselves, on data that has to move; a few
 * milliseconds. Not measured but derived: stream_bytes, three eighths of the last-level caches (results and sources then fill three
 * quarters of them), because filling them takes longer than that. *in_time: the machine was not too busy to measure. NO_MEMORY. */
ditto_status dti_measure_thresholds(struct dti_sync *sync, ditto_tuning *measured, bool *in_time);

#endif
