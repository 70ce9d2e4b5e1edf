/* bench/rounds.h - measures a row in rounds, in which each thing that is compared has one batch, and sorts
 * the batches by the mode of the machine (modes.h).
 *
 * A row is complete when it has `least` rounds, and in each mode that has appeared ROUNDS_ENOUGH batches, or
 * `least` if that is less. For a mode that has fewer, it waits for at most the time of rounds_wait_at_most.
 * It measures nothing meanwhile while the machine is in a mode that has enough.
 *
 *     struct rounds r;
 *     rounds_begin(&r, 2, 31);
 *     while (rounds_next(&r)) {
 *         rounds_put(&r, 0, seconds_of_a_batch());
 *         rounds_put(&r, 1, seconds_of_another());
 *     }
 *     for (uint32_t mode = 0; mode < r.modes.count; mode++)
 *         print(rounds_figures(&r, 0, mode));
 *     rounds_end(&r); */
#ifndef ROUNDS_H
#define ROUNDS_H

#include "modes.h"

enum { ROUNDS_ENOUGH = 15, ROUNDS_WAIT_SECONDS = 60 };

/* Sets for how long later rows wait for a mode. It is ROUNDS_WAIT_SECONDS until the first call. */
void rounds_wait_at_most(double seconds);

/* The machine, which a test replaces. */
struct rounds_machine {
    double (*hand_over_ns)(void);
    uint64_t (*stolen_ticks)(void);
    double (*now_seconds)(void);
    void (*nap)(void); /* waits for some milliseconds */
};

/* The figures of a column in one mode. All are 0 if there are no batches. */
struct figures {
    double min, median, p95;
    uint32_t batches;
};

/* The figure of a batch. */
struct rounds_batch {
    double figure;
    struct conditions conditions;
    bool exists;
};

struct rounds {
    uint32_t columns, least;

    /* The number of rounds that have begun. The first round warms up, and does not count. */
    uint32_t count;

    /* The modes of the row. They are known when rounds_next has returned false. There is at least one. In
     * each, every column that has batches has at least three. */
    struct modes modes;

    /* True if there is no such mode, because batches were disturbed. All batches are then in mode 0, which
     * has no hand-over. */
    bool disturbed;

    struct rounds_batch *batch; /* [count][columns] */
    double began, complete;     /* the times of the first round, and of the `least`-th */
    double hand_over_ns;        /* the last reading */
    uint64_t stolen;
};

/* Begins a row with `columns` figures in each round. */
void rounds_begin(struct rounds *rounds, uint32_t columns, uint32_t least);

/* Returns true if a round has to be measured. It may wait before that. */
bool rounds_next(struct rounds *rounds);

/* Stores the figure of a batch that has ended just now, and measures the machine. The batch began after the
 * last call of this function or of rounds_next. */
void rounds_put(struct rounds *rounds, uint32_t column, double figure);

/* Stores another figure of the last batch, which was that of column `of`. */
void rounds_put_also(struct rounds *rounds, uint32_t column, uint32_t of, double figure);

/* Forgets the batches of a column, which gets no more of them. */
void rounds_drop(struct rounds *rounds, uint32_t column);

/* Returns true if this round's batch of a column was in the mode. */
bool rounds_has(const struct rounds *rounds, uint32_t round, uint32_t column, uint32_t mode);

/* Writes the figures of the batches in a mode to out[rounds->count], in ascending order. Returns their
 * number. */
uint32_t rounds_pick(const struct rounds *rounds, uint32_t column, uint32_t mode, double *out);

struct figures rounds_figures(const struct rounds *rounds, uint32_t column, uint32_t mode);

/* Returns the number of batches in the mode, of the column that has the fewest. Columns without any batch,
 * whose contender cannot do the work, do not count. */
uint32_t rounds_fewest(const struct rounds *rounds, uint32_t mode);

/* Returns true if a column has fewer batches in the mode than a row needs. */
bool rounds_too_few(const struct rounds *rounds, uint32_t mode);

/* Returns the number of batches of a column that were disturbed, or in which the mode changed. */
uint32_t rounds_disturbed(const struct rounds *rounds, uint32_t column);

/* Frees the batches. The modes stay. */
void rounds_end(struct rounds *rounds);

/* NULL stands for the real machine. */
void rounds_use(const struct rounds_machine *machine);

#endif
