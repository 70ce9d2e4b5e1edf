/* bench/alone.h - rows of benches that have no contenders: their counts, and their lines of CSV. */
#ifndef ALONE_H
#define ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sums of what threads counted in the batches of a row. It begins as zero. */
struct alone_counts {
    struct alone_thread *thread;
    uint32_t threads;
    uint64_t operations;
};

/* A line of CSV. All times are nanoseconds of one operation. What is 0 or NULL is empty or 0 in the line. */
struct alone_row {
    const char *bench, *algorithm;
    uint32_t replicas;
    const char *dtype, *op;
    uint64_t bytes, reps;
    double min_ns, median_ns, p95_ns, bound_ns;

    /* The peer's time divided by the median, and its name. */
    double peer_ratio;
    const char *peer;
    struct alone_counts *counts;
};

/* Stand around a measured batch. `operations` is the number of operations that the row's time is divided by.
 * The threads of the batch exist when it starts. If `counts` is NULL, they do nothing. */
void alone_start(const struct alone_counts *counts);
void alone_stop(struct alone_counts *counts, uint64_t operations);

/* Drops all counts. */
void alone_forget(struct alone_counts *counts);

/* Prints the line of CSV. It forgets the counts. */
void alone_csv(const struct alone_row *row);

/* Prints the counts below a row of a table, and forgets them. */
void alone_table(struct alone_counts *counts);

#endif
