/* bench/peers/protocol.h - the lines that a peer's process reads from its standard input, and its answers.
 *
 *     prepare KIND BYTES DTYPE OP IN_PLACE TURNS GROUPS
 *                                                     1 0 0, or 0 0 0 if the peer cannot do such work. Only
 *                                                     MPI is asked for groups
 *     batch KIND REPS SKEW_NS BASELINE                seconds of the slowest replica, CPU seconds of all,
 *                                                     seconds in operations, and the counts of replica 0,
 *                                                     1, ...
 *     finish                                          1 0 0
 *     functions ROW OPERATIONS                        seconds 0 0, or -1 0 0 if the peer does not have
 *                                                     the row, which is a number of function_work.h or of
 *                                                     language_model.h
 *
 * KIND is a number of bench/work.h. DTYPE and OP are those of ditto. Before the first line the peer prints
 * `hello` and the ids of all its processes. These are stopped while another contender is measured, because
 * their threads spin for milliseconds after their work. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include "../work.h"

#include <stdio.h>
#include <stdlib.h>

enum order_kind { ORDER_PREPARE, ORDER_BATCH, ORDER_FINISH, ORDER_FUNCTIONS, ORDER_END };
struct order {
    enum order_kind what;

    /* `prepare` has kind, bytes, dtype, op, in_place, turns and groups. `batch` has kind, reps and skew_ns.
     * `functions` has reps. All other members are 0. */
    struct work work;
    int baseline;
    int row;
};

static inline struct order read_order(FILE *from)
{
    char line[256];
    int kind = 0, dtype = 0, op = 0, in_place = 0, turns = 0, baseline = 0, row = 0;
    unsigned skew_ns = 0, groups = 0;
    unsigned long reps = 0, bytes = 0;
    struct order order;
    if (fgets(line, sizeof line, from) == NULL)
        order.what = ORDER_END;
    else if (sscanf(line, "prepare %d %lu %d %d %d %d %u", &kind, &bytes, &dtype, &op, &in_place, &turns,
                    &groups) == 7)
        order.what = ORDER_PREPARE;
    else if (sscanf(line, "batch %d %lu %u %d", &kind, &reps, &skew_ns, &baseline) == 4)
        order.what = ORDER_BATCH;
    else if (sscanf(line, "functions %d %lu", &row, &reps) == 2)
        order.what = ORDER_FUNCTIONS;
    else
        order.what = ORDER_FINISH;
    order.work.kind = (enum bench_kind)kind;
    order.work.replicas = 0;
    order.work.groups = groups;
    order.work.alone = false;
    order.work.bytes = bytes;
    order.work.dtype = (ditto_dtype)dtype;
    order.work.op = (ditto_op)op;
    order.work.in_place = in_place != 0;
    order.work.in_processes = false;
    order.work.turns = turns != 0;
    order.work.root = 0;
    order.work.skew_ns = skew_ns;
    order.work.reps = reps;
    order.baseline = baseline;
    order.row = row;
    return order;
}

/* Chooses the events that ditto-bench counts. */
static inline void choose_counters(void)
{
    char why[256];
    const char *list = getenv(COUNTERS_VARIABLE);
    if (list != NULL && !counters_choose(list, why, sizeof why))
        fprintf(stderr, "ditto-bench: %s\n", why);
}

/* The counts are in an array of structs of `stride` bytes, one for each replica. */
static inline void answer(struct timing timing, const struct counts *counts, size_t stride, uint32_t replicas)
{
    printf("%.12g %.12g %.12g", timing.seconds, timing.cpu_seconds, timing.operation_seconds);
    for (uint32_t r = 0; r < replicas && counters_events > 0; r++) {
        const struct counts *c = (const struct counts *)(const void *)((const char *)counts + r * stride);
        for (uint32_t e = 0; e < counters_events; e++)
            printf(" %.12g %.12g %.12g", c->of[e].value, c->of[e].enabled_ns, c->of[e].running_ns);
    }
    printf("\n");
    fflush(stdout);
}

static inline void answer_yes(bool yes)
{
    printf("%d 0 0\n", (int)yes);
    fflush(stdout);
}

#endif
