/* src/input/distribute/rows_of_hosts.h - finds hosts that have chosen different rows of the same input.
 *
 * If a pipeline serves replicas of several hosts, or pipelines share one order of rows, each of these hosts
 * chooses all of the rows by itself. The result is the same only if files and generators give the same rows
 * on all of them. So each sequencer keeps a digest of the rows that it has chosen up to each step, and the
 * digests of the steps that the replicas have taken are compared when a run ends.
 *
 * What is compared is which rows were chosen, and not their values: the place of a row in its file or array.
 * Rows of generators and of compressed files have no place, and are compared by their values.
 *
 * Replicas may have taken different numbers of steps when the run ends. Then nothing can be compared, except
 * that the input of a host must not have ended in a step that another host has got. A later end of a run
 * finds a difference too, because a digest covers all steps before it. After a restore, pipelines of a shared
 * order may begin with different steps. Their digests are not compared. */
#ifndef DTI_ROWS_OF_HOSTS_H
#define DTI_ROWS_OF_HOSTS_H

#include "base/types/bytes.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct dti_sequencer;
struct dti_input_step;

/* The digests of a sequencer. The lock is held for short times only, because a run ends while producers
 * choose rows, and the functions of a dataset may wait for what the program does after the run. It protects
 * all members but `row` and `last`, which the lock of the sequencer protects. */
struct dti_digest_of_rows {
    pthread_mutex_t lock;
    uint64_t *after; /* [slots + 2] after step t, at t mod (slots + 2). NULL if nothing is compared */
    uint64_t cut;    /* the number of steps whose digests are there, and of those before the first */
    bool has_ended;  /* no step follows */

    /* The input has failed, and its error ends a run sooner or later. Or there was no memory. */
    bool has_failed;

    /* What was found to differ last: twice the number of steps, and 1 if the input had ended. */
    uint64_t reported;
    uint64_t last; /* the digest after the last step that was cut */
    struct dti_bytes row;
};

/* -- The thread that makes or frees the sequencer -- */

/* Called if the rows are compared. Fails with NO_MEMORY. */
ditto_status dti_digest_of_rows_init(struct dti_sequencer *s);
void dti_digest_of_rows_free(struct dti_sequencer *s); /* also if they are not compared */
/* Sets the first step, after a restore. */
void dti_digest_of_rows_begin(struct dti_sequencer *s);

/* -- The thread that holds the sequencer's lock, if the rows are compared -- */

/* Adds the rows of step s->cut. */
void dti_digest_of_rows_add(struct dti_sequencer *s, const struct dti_input_step *step);
/* Called when end_status has changed. */
void dti_digest_of_rows_end(struct dti_sequencer *s);

#endif
