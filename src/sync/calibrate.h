/* src/sync/calibrate.h - measuring the numbers by which collectives are chosen. */
#ifndef DTI_CALIBRATE_H
#define DTI_CALIBRATE_H

#include "replicas/replicas.h"

/* Cross context, the collectives work; a few milliseconds. Sets what the caller has not given, keeps it for the process, and plans
 * anew. Does nothing on replicas that share PUs: there the time of a hand-over is the scheduler's. */
ditto_status dti_calibrate(struct dti_team *team);

#endif
