/* tests/input/distribute/distribution.h - distributes a dataset over the replicas of a strategy, and records
 * which batches each replica gets. Tests compare them with the steps that the rules require. */
#ifndef DISTRIBUTION_H
#define DISTRIBUTION_H

#include "input/written_rows.h"
#include "input/distribute/step_model.h"
#include "support/as_hosts.h"

enum { MOST_STEPS = 4000, MOST_TAKEN = 10000 };

/* The batches of one replica: their sizes, and their rows one after another. */
struct taken {
    uint64_t steps, rows;
    uint64_t size[MOST_STEPS];
    int64_t row[MOST_TAKEN];
};

struct distribution {
    struct report report;
    ditto_iterator *iterator;
    uint64_t stop_after; /* steps, or 0 for the end of the input */
    struct taken *taken; /* [n], by global ids */

    /* The replicas of this host, which alone are recorded here. */
    uint32_t first, end;
    uint64_t all_rows; /* of rows_of_all */
};

/* A function for all replicas. Takes batches for `stop_after` steps, or until the input ends or fails, and
 * records them in the distribution that is its argument. */
ditto_status consume(ditto_replica *self, void *argument);

/* Initializes the distribution, and allocates the records of the strategy's replicas, which take their
 * batches from `iterator`. */
void begin(struct distribution *d, ditto_strategy *strategy, ditto_iterator *iterator);

/* Returns the rows that all replicas have taken, on all hosts. */
uint64_t rows_of_all(struct distribution *d, ditto_strategy *strategy);

/* Frees the records and destroys the iterator. */
void end(struct distribution *d);

/* Creates an iterator, and lets all replicas take their batches from it and record them. */
void distribute(struct distribution *d, ditto_strategy *s, ditto_dataset *dataset,
                const ditto_input_options *options);

/* Checks the batches of every replica, step after step, against the rules. list[w] has the rows of
 * pipeline w. If pipelines share rows, only list[0] is read. */
void check_steps(struct steps *s, const struct distribution *d, const int64_t *const *list);

/* The user pointer of make_dataset. */
struct making {
    uint32_t calls; /* so far */

    /* The first pipeline of this host, for which the first call comes. */
    uint32_t first;

    /* The expected number of pipelines. */
    uint32_t pipelines;
    uint64_t rows; /* of each pipeline */

    /* The rows of a batch. 0 means the part of one replica if 12 rows are a global batch. */
    uint64_t batch;

    /* The dataset of pipeline 1 has two components, or the call for pipeline 1 fails. */
    bool differ, fail;

    /* The call returns DITTO_OK and no dataset. */
    bool none;
};

/* Makes the dataset of a pipeline as `making` requests. The rows of pipeline w are 1000 w + i. Fails if
 * the pipelines do not come in ascending order. */
ditto_status make_dataset(const ditto_input_context *context, void *user, ditto_dataset **out);

#endif
