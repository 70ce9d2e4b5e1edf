/* src/coordinator/shared_pass.h - one pass over a dataset, whose batches any number of threads take.
 *
 * A thread that takes a batch *chooses* its rows under the lock `choosing`, which orders the batches. It then
 * *fills* in the values without a lock, so that several threads read and parse at the same time. There are no
 * producers and no queue.
 *
 * A batch can be given back, for example because the thread that took it is lost. Batches that were given
 * back are taken before new ones, and they are part of a saved position.
 *
 * Locks  `choosing` may be held for long, while a function of the program chooses a row. `lock` is held for a
 *        few instructions only, and is the inner one. A thread that gives a batch back needs only `lock`.
 *        A batch leaves `choosing` in the hands of its taker (dti_shared_batch_taken), so that a thread that
 *        has `choosing` finds every batch either with a taker or among those that were given back. */
#ifndef DTI_SHARED_PASS_H
#define DTI_SHARED_PASS_H

#include <ditto/distribute.h>

#include "base/platform.h"
#include "base/waiting/lock.h"
#include "input/dataset.h"
#include "input/distribute/rebatch.h"

#include <pthread.h>

struct dti_team;

/* Chosen rows. */
struct dti_shared_batch {
    struct dti_shared_batch *next; /* of those that were given back */
    struct dti_shared_pass *pass;
    _Atomic uint32_t references;
    uint64_t number; /* in the pass, from 0 */
    uint64_t rows;
    uint64_t words[]; /* [rows * row_words of the dataset] */
};

struct dti_shared_pass {
    /* Constant. */
    ditto_dataset *dataset;                             /* a reference */
    struct dti_cut cut;                                 /* divides a batch among the replicas of a worker */
    uint64_t number;                                    /* of the pass */
    size_t offset[DITTO_MAX_COMPONENTS], payload_bytes; /* of one replica's part of a batch */

    struct dti_lock choosing; /* of the cursor, and of next_number */
    struct dti_cursor *cursor;
    uint64_t next_number;

    pthread_mutex_t lock;              /* of the members from here on */
    struct dti_shared_batch *returned; /* a stack */
    ditto_status end_status;           /* what calls return when `returned` is empty, or DITTO_OK */
    ditto_error error;                 /* if end_status is negative */

    _Atomic uint32_t closing; /* see struct dti_pass */
};

/* Opens a pass. `replicas` is the number of parts of a batch. Functions of the dataset are called in the
 * context of `team`, here and below. Returns INVALID and RANGE for options, CORRUPT and INVALID for a state,
 * NO_MEMORY, and the errors of the dataset. */
ditto_status dti_shared_pass_open(struct dti_team *team, ditto_dataset *dataset, uint32_t replicas,
                                  const ditto_input_options *options, struct dti_shared_pass **out);
void dti_shared_pass_close(struct dti_team *team, struct dti_shared_pass *pass);

/* Lets functions that look for rows end early. Any thread may call it. */
void dti_shared_pass_interrupt(struct dti_shared_pass *pass);

/* Gets a batch that was taken, with a reference. If the status is END_OF_INPUT, the batch is NULL. The caller
 * holds `choosing`. The function may take locks under which no thread waits for `choosing`, and may give the
 * batch back. */
typedef void dti_shared_batch_taken(void *taker, ditto_status status, struct dti_shared_batch *batch);

/* Takes a batch, and calls `taken` unless there is an error. Returns END_OF_INPUT, or the error that ends the
 * pass, again and again, TIMED_OUT if another thread chooses rows for too long, and NO_MEMORY. */
ditto_status dti_shared_pass_take(struct dti_team *team, struct dti_shared_pass *pass,
                                  dti_shared_batch_taken *taken, void *taker);

/* Ends the pass with the thread's error, for example that of a row that cannot be read, unless it has failed
 * before. Batches that were taken stay valid. */
void dti_shared_pass_end(struct dti_shared_pass *pass, ditto_status status);

/* Another thread will take the batch. The caller's reference is used up. */
void dti_shared_batch_give_back(struct dti_shared_batch *batch);
void dti_shared_batch_keep(struct dti_shared_batch *batch);
void dti_shared_batch_drop(struct dti_shared_batch *batch);

/* Reads the rows of one replica's part into `memory`, which has payload_bytes, and describes it. Returns the
 * error of a row that cannot be read, and NO_MEMORY. */
ditto_status dti_shared_batch_fill(struct dti_team *team, const struct dti_shared_batch *batch,
                                   uint32_t replica, struct dti_reader *reader, char *memory,
                                   ditto_batch *out);

/* Writes the position. Waits for a thread that chooses rows. Returns TIMED_OUT if that takes longer than
 * timeout_ms, which may be DITTO_FOREVER. */
ditto_status dti_shared_pass_save(struct dti_team *team, struct dti_shared_pass *pass, uint32_t timeout_ms,
                                  struct dti_bytes *to);

#endif
