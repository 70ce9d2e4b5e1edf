/* bench/harness.h - the contenders that are measured, and the results of a measurement. */
#ifndef HARNESS_H
#define HARNESS_H

#include "request.h"
#include "rounds.h"
#include "work.h"

/* An implementation that can do the work: ditto, a form of the bound, or a peer's process. */
struct contender {
    const char *name;
    const char *family; /* of a peer: "OpenMP", "MPI", "gloo" or "shm" */
    bool is_bound;
    void *state;

    /* Allocates buffers for the work. Returns false if the contender cannot do it. Then `batch` and `finish`
     * are not called for this work. */
    bool (*prepare)(void *state, const struct work *work);

    /* Runs one batch. If the seconds are negative, the contender has failed and is not measured any more. */
    struct timing (*batch)(void *state, const struct work *work, bool baseline);
    void (*finish)(void *state, const struct work *work);
    void (*close)(void *state); /* may be NULL */

    /* Returns what a replica counted in the last batch. */
    const struct counts *(*counts)(void *state, uint32_t replica);
};

struct result {
    /* Times per repetition. median_ns < 0 means that nothing was measured. */
    double min_ns, median_ns, p95_ns;

    /* For skew: CPU seconds per second, and CPU seconds per CPU second of the work without the collective. */
    double cpu_share, cpu_ratio;
    double operation_share; /* of a program: the share of its time in collectives */
    uint64_t reps;          /* per batch */
    uint32_t batches;       /* in this mode */

    /* True if the middle half of the samples spreads over more than 15 % of median_ns. */
    bool noisy;

    /* [batches] The times of the batches in this mode per repetition, in ascending order. Valid until the
     * next measurement. */
    const double *sample_ns;

    /* [replicas] The mean of the batches in this mode. NULL if nothing is counted. Valid until the next
     * measurement. */
    struct rates *rates;
};

/* A row in one mode of the machine (modes.h). */
struct measured {
    double hand_over_ns;   /* the median of the mode */
    uint32_t batches;      /* in this mode, of the contender that has the fewest */
    uint32_t disturbed;    /* of the first contender: batches in no mode */
    bool too_few;          /* a contender has fewer than ROUNDS_ENOUGH batches in this mode */
    bool is_disturbed;     /* the row has no mode, because its batches were disturbed */
    struct result *result; /* [contenders] */
};

/* Measures all contenders on one work. Batches of different contenders are interleaved. Writes one row for
 * each mode in which the machine was to row[MODES_MOST], and returns their number, which is at least 1. They
 * are valid until the next measurement. */
uint32_t measure(struct contender *contenders, uint32_t count, struct work work, struct measured *row);

/* ditto_contender.c: makes a strategy of the requested replicas, or, for a parallel-for, of one replica with
 * as many PUs. A second contender has what the first is compared with: for BENCH_LIST and BENCH_ASYNC the
 * plain all-reduce, and for groups a strategy with as many replicas as one group. Returns the number of
 * contenders that were written to out. */
uint32_t ditto_contender_open(struct contender *out, const struct request *request);
/* bound.c: makes a contender of each form of this kind. They are valid until bound_close. Returns their
 * number. */
uint32_t bound_open(struct contender *out, enum bench_kind kind, uint32_t replicas);
void bound_close(void);
/* peer.c: starts the peers' programs, which are in the folder of this program and use the protocol of
 * peers/protocol.h. If `all` is false, only the first is started. Returns the number of contenders that were
 * written to out. */
uint32_t peers_open(struct contender *out, const char *folder, bool all, uint32_t replicas);

/* The same for BENCH_WAIT: each peer with each of its ways to wait. The family is "default" or "other". If
 * `all` is false, only the first peer is started. */
uint32_t waiting_peers_open(struct contender *out, const char *folder, bool all, uint32_t replicas);

/* The peers of BENCH_FUNCTIONS and BENCH_GENERATE. Instead of `batch`, function_peer_seconds measures as many
 * operations of a row of function_work.h or language_model.h. It returns a negative number if the peer does
 * not have the row, or has failed. Before, function_peers_in says in which folder the programs are, whose
 * path is kept. If `all` is false, BENCH_FUNCTIONS has no peers. */
void function_peers_in(const char *folder, bool all);
uint32_t function_peers_open(struct contender *out, enum bench_kind kind, uint32_t workers);
double function_peer_seconds(const struct contender *peer, int row, uint64_t operations);

/* ditto_contender.c: contenders with each way to wait. Each creates its strategy in `prepare`, and
 * destroys it in `finish`. */
uint32_t waiting_dittos_open(struct contender *out);

/* wait.c: measures and prints the rows of BENCH_WAIT. */
void bench_wait(const struct request *request, const char *folder);

/* Rows without contenders: life.c, values.c, neighbours.c, dot.c, variables.c, checkpoint.c, queue.c,
 * input.c, functions.c, generate.c. */
typedef void bench_alone(uint32_t replicas, bool csv);
bench_alone bench_create, bench_rest, bench_run_values, bench_reduce_values, bench_merge_call, bench_exchange,
    bench_dot, bench_trace, bench_assign, bench_apply, bench_checkpoint, bench_queue, bench_input,
    bench_functions, bench_generate;

#define MOST_CONTENDERS 48

#endif
