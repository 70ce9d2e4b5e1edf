/* tests/input/written_rows.h - makes datasets of i64 scalars, also at random, and lists their rows with
 * one thread. Tests of transformations, of distribution and of states compare with these rows. */
#ifndef WRITTEN_ROWS_H
#define WRITTEN_ROWS_H

#include "support/support.h"

#define MOST_LISTED 40000
struct rows {
    size_t count;
    int64_t row[MOST_LISTED];
};

/* Lists the first component of the rows of a pass, of at most MOST_LISTED rows. */
ditto_status list_rows(ditto_dataset *dataset, uint64_t pass, struct rows *out);

/* Asserts that the rows of pass 0 are exactly these. */
#define assert_rows(dataset, ...)                                                                           \
    assert_rows_((dataset), (const int64_t[]){ __VA_ARGS__ }, sizeof((const int64_t[]){ __VA_ARGS__ }) / 8, \
                 __FILE__, __LINE__)
void assert_rows_(ditto_dataset *dataset, const int64_t *expected, size_t count, const char *file, int line);

/* Makes the dataset of the rows start, start + 1, ... stop - 1. */
ditto_dataset *range(int64_t start, int64_t stop);

/* Applies a transformation and destroys the handle of the input. */
ditto_dataset *then(ditto_dataset *input,
                    ditto_status (*transform)(ditto_dataset *input, uint64_t count, ditto_dataset **out),
                    uint64_t count);

/* Make batches of `count` rows. The second function drops an incomplete batch at the end. */
ditto_status batch_of(ditto_dataset *input, uint64_t count, ditto_dataset **out);
ditto_status whole_batches_of(ditto_dataset *input, uint64_t count, ditto_dataset **out);

/* Shuffles with a buffer of `buffer` rows. 0 means no limit. The seed depends on `buffer`. */
ditto_status shuffle_by(ditto_dataset *input, uint64_t buffer, ditto_dataset **out);

/* A filter that keeps rows x with x mod modulus != 0. */
ditto_status keep_residues(ditto_dataset *input, uint64_t modulus, ditto_dataset **out);

/* A random map that returns x * 2^20 + a random number below 2^20. */
ditto_status add_noise(ditto_dataset *input, uint64_t seed, ditto_dataset **out);

/* A generator of 0, 1, ... count - 1. */
ditto_status counted_up_to(uint64_t count, bool can_be_saved, ditto_dataset **out);

/* The function of a map that copies the row. It returns DITTO_ERR_CORRUPT for the row whose value is `row`,
 * which is a number converted to a pointer. */
ditto_status fail_on_row(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random, void *row);

/* Applies at most four random transformations to a source of about `rows` rows. If `held`, a generator may
 * be among the sources. */
ditto_dataset *random_dataset(uint64_t *random, uint64_t rows, bool held);

/* The argument of one_leaves, for at most eight replicas. */
struct leaving {
    ditto_iterator *iterator;
    uint32_t leaver;
    bool fails;          /* the leaver returns an error */
    ditto_status end[8]; /* the status with which each of the other replicas returned */
};

/* A function for all replicas. The leaver returns after four batches. The others take batches as long as
 * ditto_next returns DITTO_OK, and return its other status. */
ditto_status one_leaves(ditto_replica *self, void *leaving);

/* Asserts that each of the n replicas except the leaver got DITTO_ERR_DIVERGED or DITTO_ERR_PEER_STOPPED. If
 * the leaver failed, they all got DITTO_ERR_PEER_STOPPED. */
void assert_others_stopped(const struct leaving *leaving, uint32_t n);

#endif
