/* tests/input/written_rows.h - datasets of i64 scalars, gone through by one thread, and made at random: what tests of transformations, of
 * distribution and of states compare with. */
#ifndef ROWS_H
#define ROWS_H

#include "support/support.h"

#define MOST_LISTED 40000
struct rows {
    size_t count;
    int64_t row[MOST_LISTED];
};

/* All rows in the order of a pass; the first component of each. */
ditto_status list_rows(ditto_dataset *dataset, uint64_t pass, struct rows *out);
#define assert_rows(dataset, ...)                                                                           \
    assert_rows_((dataset), (const int64_t[]){ __VA_ARGS__ }, sizeof((const int64_t[]){ __VA_ARGS__ }) / 8, \
                 __FILE__, __LINE__)
void assert_rows_(ditto_dataset *dataset, const int64_t *expected, size_t count, const char *file, int line);

ditto_dataset *range(int64_t start, int64_t stop);
/* Gives up the input's handle. */
ditto_dataset *then(ditto_dataset *input,
                    ditto_status (*transform)(ditto_dataset *input, uint64_t count, ditto_dataset **out),
                    uint64_t count);
ditto_status batch_of(ditto_dataset *input, uint64_t count, ditto_dataset **out);
ditto_status whole_batches_of(ditto_dataset *input, uint64_t count, ditto_dataset **out);
ditto_status shuffle_by(ditto_dataset *input, uint64_t buffer,
                        ditto_dataset **out); /* buffer rows, with a seed made of it */
ditto_status keep_residues(ditto_dataset *input, uint64_t modulus,
                           ditto_dataset **out); /* a filter: x mod modulus != 0 */
ditto_status add_noise(ditto_dataset *input, uint64_t seed,
                       ditto_dataset **out); /* a random map: x * 2^20 + random below 2^20 */
ditto_status counted_up_to(uint64_t count, bool can_be_saved,
                           ditto_dataset **out); /* a generator: 0, 1, ... */

/* A map: the row as it is; CORRUPT for the row whose number is `row`, as a pointer. */
ditto_status fail_on_row(const ditto_tensor *in, const ditto_tensor *out, ditto_random *random, void *row);

/* Several transformations drawn at random, upon about `rows` rows. `held`: a generator is among the sources. */
ditto_dataset *random_dataset(uint64_t *random, uint64_t rows, bool held);

/* A function in which one replica leaves after three batches, the others at the end or with an error. */
struct leaving {
    ditto_iterator *iterator;
    uint32_t leaver;
    bool fails;
};
ditto_status one_leaves(ditto_replica *self, void *leaving);

#endif
