/* bench/request.h - the command line of ditto-bench. */
#ifndef REQUEST_H
#define REQUEST_H

#include "work.h"

enum { MOST_SIZES = 32, MOST_SKEWS = 8 };

struct request {
    enum bench_kind kind;
    uint32_t replicas; /* of all groups */
    uint32_t groups;   /* 0: none */
    bool alone;        /* only the first group works */
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

/* Returns the number of replicas that work together. */
static inline uint32_t request_members(const struct request *r)
{
    return r->groups > 0 ? r->replicas / r->groups : r->replicas;
}

/* Reads the command line. Ends the program with a usage message if it is wrong. */
struct request request_parse(int count, char **word);

#endif
