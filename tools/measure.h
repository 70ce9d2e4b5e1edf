/* tools/measure.h - what a hand-over and a byte cost between the levels of this machine. */
#ifndef MEASURE_H
#define MEASURE_H

#include "survey.h"

struct measured {
    const char *name;            /* the level that the two PUs share: "SMT sibling", "same LLC", ... */
    uint32_t from, to;           /* PUs */
    double hand_over_ns;         /* of one cache line, one way; 0: not to itself */
    double gigabytes_per_second; /* of `from` reading memory on `to`'s node */
};
#define MOST_PAIRS 6

/* From the first PU to the first one at each level that there is. Takes about half a second. */
uint32_t measure(const struct survey *survey, struct measured out[MOST_PAIRS]);

#endif
