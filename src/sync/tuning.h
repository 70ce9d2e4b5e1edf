/* src/sync/tuning.h - the numbers by which a collective is chosen: measured, or given. */
#ifndef DTI_TUNING_H
#define DTI_TUNING_H

#include <ditto/tuning.h>

#include "sync/rounds.h"

struct dti_tuning {
    ditto_tuning given; /* every field is set */
    struct dti_costs costs;
};

/* The numbers for a team: the caller's where it gave some, else those of the environment variable DITTO_TUNING, else what has been
 * measured in this process for the same placement, else -1: *measure says that they are to be measured.
 * Errors: INVALID (the variable is no list of name=number), RANGE (a number outside its range). */
ditto_status dti_tuning_read(const ditto_tuning *given, const struct dti_shape *shape, struct dti_tuning *out,
                             bool *measure);
/* Keeps what was measured for further teams of this process. Any thread. */
void dti_tuning_keep(const struct dti_shape *shape, const struct dti_costs *costs, const ditto_tuning *measured);

#endif
