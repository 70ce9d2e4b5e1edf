/* tools/measure.h - measures the time of passing a cache line, and the memory bandwidth, between PUs of this
 * machine. */
#ifndef MEASURE_H
#define MEASURE_H

#include "survey.h"

struct measured {
    const char *name;  /* the level that the PUs share, such as "same LLC" */
    uint32_t from, to; /* numbers of PUs */

    /* The time to pass one cache line in one direction. 0 if both PUs are the same. */
    double hand_over_ns;

    /* The bandwidth at which `from` reads memory on the node of `to`. */
    double gigabytes_per_second;
};
#define MOST_PAIRS 6

/* Measures from the first PU to the first PU at each level that exists. Returns the number of pairs. Takes
 * about half a second. */
uint32_t measure(const struct survey *survey, struct measured out[MOST_PAIRS]);

#endif
