/* bench/harness.h - who is measured, and how samples become a row. */
#ifndef HARNESS_H
#define HARNESS_H

#include "work.h"

/* Somebody who can do the work: ditto, a bound's form, a peer's process. */
struct contender {
    const char *name;
    bool is_bound;
    void *state;
    /* One batch; the time of its slowest replica in seconds, < 0: this contender does not do such work. */
    double (*batch)(void *state, const struct work *work, bool baseline);
    void (*prepare)(void *state, const struct work *work); /* buffers for this work; NULL: nothing */
    void (*finish)(void *state, const struct work *work);
};

struct result {
    double min_ns, median_ns, p95_ns; /* per repetition; median_ns < 0: not measured */
    uint64_t reps;                    /* per batch */
    bool noisy;                       /* the middle half of the samples spreads over more than 15 % */
};

/* Measures all contenders on one work, their batches interleaved, and fills result[contenders]. */
void measure(struct contender *contenders, uint32_t count, struct work work, struct result *result);

/* ditto_contender.c; the strategy is made for `replicas`, or, for a parallel-for, for one replica of as many PUs. */
void ditto_contender_open(struct contender *out, enum bench_kind kind, uint32_t replicas);
void ditto_contender_close(struct contender *contender);
/* bound.c: every form that there is for this work; returns how many were written to out. Threads live until close. */
uint32_t bound_open(struct contender *out, uint32_t replicas);
void bound_close(void);
/* peer.c: a child process that speaks the protocol of peers/openmp.c; false: it is not there. */
bool peer_open(struct contender *out, const char *name, const char *program, uint32_t replicas);
void peer_close(struct contender *contender);

/* life.c: rows without contenders. */
void bench_create(uint32_t replicas, bool csv);
void bench_rest(uint32_t replicas, bool csv);

#define MOST_CONTENDERS 12

#endif
