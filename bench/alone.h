/* bench/alone.h - rows of benches that have no contenders: their counts, and their lines of CSV. */
#ifndef ALONE_H
#define ALONE_H

#include "rounds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What threads counted in the batches of a row. It begins as zero. */
struct alone_counts {
    struct alone_thread *thread;
    uint32_t threads;
    uint64_t *operations; /* [batches] */
    uint32_t batches;
};

/* A line of CSV. All times are nanoseconds of one operation. What is 0 or NULL is empty or 0 in the line. */
struct alone_row {
    const char *bench, *algorithm;
    uint32_t replicas;
    const char *dtype, *op;
    uint64_t bytes, reps;

    /* The figures are those of `column` in `mode`. less_ns is subtracted from each. */
    const struct rounds *rounds;
    uint32_t column, mode;
    double less_ns;

    /* Instead of rounds: the only figure. */
    double only_ns;
    double bound_ns;

    /* The peer's time divided by the median, and its name. */
    double peer_ratio;
    const char *peer;

    /* Batch i was in round i. NULL if nothing was counted. */
    const struct alone_counts *counts;
};

/* Stand around a measured batch. `operations` is the number of operations that the row's time is divided by.
 * The threads of the batch exist when it starts. If `counts` is NULL, they do nothing. Each batch of a row is
 * counted, also that of the first round. */
void alone_start(const struct alone_counts *counts);
void alone_stop(struct alone_counts *counts, uint64_t operations);

/* Drops all counts. */
void alone_forget(struct alone_counts *counts);

/* Prints the line of CSV. */
void alone_csv(const struct alone_row *row);

/* Ends a row of a table: prints the mode, if there are rounds, and the counts in lines below. */
void alone_end_row(const struct rounds *rounds, uint32_t column, uint32_t mode,
                   const struct alone_counts *counts);

#endif
