/* src/sync/plans/tuning.h - the numbers by which algorithms are chosen. They are measured or given. */
#ifndef DTI_TUNING_H
#define DTI_TUNING_H

#include <ditto/tuning.h>

#include "sync/plans/rounds.h"

#include <stdbool.h>

struct dti_text;

struct dti_tuning {
    /* The numbers that are used, whether given, measured or usual. Every field but near_replicas is set. */
    ditto_tuning given;

    struct dti_costs costs;
};

/* Reads the numbers that are given. A field has the caller's value, or that of the environment variable
 * DITTO_TUNING, or 0 if neither sets it. block_bytes is rounded down to whole pairs of cache lines. Fails
 * with INVALID if the variable is not a list of name=number, and with RANGE if a number is outside its range.
 * It also returns the errors of dti_options_copy. */
ditto_status dti_tuning_read(const ditto_tuning *given, ditto_tuning *out);

/* Finds what this process has measured for teams of this shape. Returns false if nothing was measured yet.
 * Any thread. */
bool dti_tuning_find(const struct dti_machine_shape *shape, struct dti_tuning *out);

/* Keeps what was measured for teams of this shape. Any thread. */
void dti_tuning_keep(const struct dti_machine_shape *shape, const struct dti_tuning *measured);

/* Adds a line with the numbers that are not 0, in the form of DITTO_TUNING. */
void dti_tuning_describe(const ditto_tuning *tuning, struct dti_text *text);

/* Sets the fields of *tuning that are 0 to those of *from. */
void dti_tuning_fill(ditto_tuning *tuning, const ditto_tuning *from);

/* The numbers that are used where nothing is measured, for example if replicas share PUs. */
extern const struct dti_tuning dti_tuning_usual;

#endif
