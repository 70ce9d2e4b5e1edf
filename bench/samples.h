/* bench/samples.h - what every row needs: samples in order, and giving up on a call that fails. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <ditto/status.h>

#include <stdint.h>

void sort_samples(double *sample, uint32_t count); /* the smallest first */
double median_of(double *sample, uint32_t count);  /* sorts them */

/* Ends the program with the call's message. END_OF_INPUT and other news are no failure. */
void must(ditto_status status);

#endif
