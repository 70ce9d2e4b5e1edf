/* src/sync/plans/tuning.h - the numbers by which a collective is chosen: measured, or given. */
#ifndef DTI_TUNING_H
#define DTI_TUNING_H

#include <ditto/tuning.h>

#include "sync/plans/rounds.h"

struct dti_tuning {
    ditto_tuning given; /* every field is set */
    struct dti_costs costs;
};

/* What has been given: the caller's where it says something, else the environment variable DITTO_TUNING's; 0 elsewhere.
 * Errors: INVALID (the variable is no list of name=number), RANGE (a number outside its range). */
ditto_status dti_tuning_read(const ditto_tuning *given, ditto_tuning *out);
/* What this process has measured for teams of this shape; false: nothing yet. Any thread. */
bool dti_tuning_find(const struct dti_machine_shape *shape, struct dti_tuning *out);
void dti_tuning_keep(const struct dti_machine_shape *shape, const struct dti_tuning *measured);
/* Sets the fields of *tuning that are 0. */
void dti_tuning_fill(ditto_tuning *tuning, const ditto_tuning *from);
/* Where nothing is measured: replicas that share PUs, and before. */
extern const struct dti_tuning dti_tuning_usual;

/* Measuring the numbers by which collectives are chosen. All: cross context, between dti_cross_enter and
 * dti_cross_leave; on replicas that share PUs they do nothing, because there the time of a hand-over is the scheduler's. */

struct dti_sync;

/* Hand-overs of a cache line between neighbours at each distance that there is: 1000 each, under a millisecond. */
ditto_status dti_measure_hops(struct dti_team *team, const struct dti_machine_shape *shape,
                              struct dti_costs *costs);

/* Thresholds that are 0 in *measured, by trying both ways with the collectives themselves, on data that has to move; a few
 * milliseconds. Not measured but derived: stream_bytes, three eighths of the last-level caches (results and sources then fill three
 * quarters of them), because filling them takes longer than that. *in_time: the machine was not too busy to measure. NO_MEMORY. */
ditto_status dti_measure_thresholds(struct dti_sync *sync, ditto_tuning *measured, bool *in_time);

#endif
