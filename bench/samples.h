/* bench/samples.h - functions that all benches use: medians of samples, and ending the program after a failed
 * call. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <ditto/status.h>

#include <stdint.h>

void sort_samples(double *sample, uint32_t count); /* in ascending order */
double median_of(double *sample, uint32_t count);  /* sorts the samples */

/* Ends the program with the message of the call if its status is negative. */
void must(ditto_status status);

#endif
