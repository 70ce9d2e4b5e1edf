/* src/input/distribute/rows_of_hosts.h - finds out whether hosts that choose the same rows have chosen others.
 *
 * If a pipeline serves replicas of several hosts, or pipelines share one order of rows, each of these hosts
 * chooses all of the rows by itself. The result is the same only if files and generators give the same rows
 * on all of them. So each sequencer keeps a digest of the rows that it has chosen up to each step, and the
 * digests of the steps that the replicas have taken are compared when a run ends.
 *
 * Replicas may have taken different numbers of steps when the run ends. Then nothing can be compared, except
 * that the input of a host must not have ended in a step that another host has got. The next end of a run
 * finds a difference too, because a digest covers all steps before it. After a restore, pipelines of a shared
 * order may begin with different steps. Their digests are not compared. */
#ifndef DTI_ROWS_OF_HOSTS_H
#define DTI_ROWS_OF_HOSTS_H

#include "input/bytes.h"

#include <stddef.h>
#include <stdint.h>

struct dti_sequencer;
struct dti_input_step;

/* The digests of a sequencer. */
struct dti_digest_of_rows {
    uint64_t *after; /* [slots + 2] after step t, at t mod (slots + 2). NULL if nothing is compared */
    uint64_t last;   /* after the last step that was cut */
    uint64_t told;   /* the number of steps that were compared last */
    struct dti_bytes row;
};

/* Called by the sequencer, which holds its lock or is not shared yet. Fails with NO_MEMORY. */
ditto_status dti_digest_of_rows_init(struct dti_sequencer *s);
void dti_digest_of_rows_free(struct dti_sequencer *s);
/* Adds the rows of step s->cut. */
void dti_digest_of_rows_add(struct dti_sequencer *s, const struct dti_input_step *step);

#endif
