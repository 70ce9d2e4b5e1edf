/* src/input/distribute/progress_of_hosts.h - what hosts tell each other about the progress of their
 * pipelines.
 *
 * If pipelines read different rows, a step may exist because a pipeline of another host has rows for it. A
 * host that has to know asks all others, over the life line, because their main threads may be computing. The
 * host of each pipeline tells all how far the pipeline is, until it has reached the step, and when it ends.
 * So each host hears of the progress of the pipelines of other hosts as if they were here.
 * Answers     A question is stored before the progress is looked at, and progress is stored before the
 *             question is looked at, with a full fence between them on both sides (Dekker). So one of the two
 *             sees the other, and tells. Each thing is told once.
 * Edges       K0 -> K1  the question is stored, and then the progress looked at (the thread of the life
 *                       line); the progress is stored, and then the question looked at (a producer)
 * Beginning   What comes before a host has its iterator is lost. A host that has its iterator says so. The
 *             others then tell and ask again what they have told and asked before.
 * Cost        For each step that is asked for, one message of each host and of each pipeline to all. A host
 *             asks if it has no rows of its own for a step, and with static shapes for every step.
 * Model       tests/model/steps_of_hosts.pml */
#ifndef DTI_PROGRESS_OF_HOSTS_H
#define DTI_PROGRESS_OF_HOSTS_H

#include <ditto/status.h>

#include <stdint.h>

struct ditto_iterator;
struct dti_progress_of_hosts;

/* Begins to tell and to listen. Returns DITTO_ERR_NO_MEMORY. */
ditto_status dti_progress_of_hosts_begin(struct ditto_iterator *iterator);

/* Ends it, when the producers have ended. */
void dti_progress_of_hosts_end(struct ditto_iterator *iterator);

/* Tells the other hosts of a pipeline of this host, if they have to know and do not know it yet. Called after
 * each change of its progress. Any thread. */
void dti_progress_tell(struct dti_progress_of_hosts *hosts, uint32_t pipeline);

/* Asks the other hosts whether a step exists. Any producer. */
void dti_progress_ask(struct dti_progress_of_hosts *hosts, uint64_t step);

#endif
