/* bench/harness.h - who is measured, and how samples become a row. */
#ifndef HARNESS_H
#define HARNESS_H

#include "work.h"

/* Somebody who can do the work: ditto, a bound's form, a peer's process. */
struct contender {
    const char *name;
    const char *family; /* of peers: "OpenMP", "MPI", "gloo" */
    bool is_bound;
    void *state;
    /* Buffers for this work; false: this contender does not do such work, and nothing else is called. */
    bool (*prepare)(void *state, const struct work *work);
    /* One batch; seconds < 0: it is lost for this work, and measured no more. */
    struct timing (*batch)(void *state, const struct work *work, bool baseline);
    void (*finish)(void *state, const struct work *work);
    void (*close)(void *state); /* NULL: nothing to close */
};

struct result {
    double min_ns, median_ns, p95_ns; /* per repetition; median_ns < 0: not measured */
    double cpu_share, cpu_ratio; /* CPU seconds per second, and per CPU second of the work alone; of skew */
    uint64_t reps;               /* per batch */
    bool noisy;                  /* the middle half of the samples spreads over more than 15 % */
};

/* Measures all contenders on one work, their batches interleaved, and fills result[contenders]. */
void measure(struct contender *contenders, uint32_t count, struct work work, struct result *result);

/* ditto_contender.c; the strategy is made for `replicas`, or, for a parallel-for, for one replica of as many PUs. Of an
 * all-reduce of another sort there is a second one, which does the plain one. Returns how many were written to out. */
uint32_t ditto_contender_open(struct contender *out, enum bench_kind kind, uint32_t replicas);
/* bound.c: the forms that there are for this kind; returns how many were written to out. Until bound_close. */
uint32_t bound_open(struct contender *out, enum bench_kind kind, uint32_t replicas);
void bound_close(void);
/* peer.c: processes that speak the protocol of peers/protocol.h, from the folder of this program; `all`: not only
 * the first. Returns how many were written to out. */
uint32_t peers_open(struct contender *out, const char *folder, bool all, uint32_t replicas);

/* Rows without contenders: life.c, values.c, variables.c, queue.c, input.c. */
typedef void bench_alone(uint32_t replicas, bool csv);
bench_alone bench_create, bench_rest, bench_run_values, bench_reduce_values, bench_merge_call, bench_trace,
    bench_assign, bench_apply, bench_checkpoint, bench_queue, bench_input;

#define MOST_CONTENDERS 32

#endif
