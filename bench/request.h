/* bench/request.h - the command line of ditto-bench. */
#ifndef REQUEST_H
#define REQUEST_H

#include "work.h"

enum { MOST_SIZES = 32, MOST_SKEWS = 8 };

struct request {
    enum bench_kind kind;
    uint32_t replicas;
    size_t bytes[MOST_SIZES];
    uint32_t sizes;
    uint32_t skew_us[MOST_SKEWS];
    uint32_t skews;
    uint32_t load; /* of wait: busy processes on each PU */
    ditto_dtype dtype;
    ditto_op op;
    bool in_place, turns, csv, peers, forms, samples, machine;
    const char *counters; /* the list of events, which may be empty, or NULL */
};

/* Reads the command line. Ends the program with a usage message if it is wrong. */
struct request request_parse(int count, char **word);

#endif
