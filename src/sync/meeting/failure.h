/* src/sync/meeting/failure.h - the errors of waits that fail because of other replicas. */
#ifndef DTI_FAILURE_H
#define DTI_FAILURE_H

#include "sync/meeting/sync_state.h"

/* The capacity of a text that describes one call, and of one that describes the missing replicas. A message
 * has 512 bytes. */
#define DTI_CALL_TEXT_BYTES    200
#define DTI_MISSING_TEXT_BYTES 300

/* -- Descriptions. Any thread. They are diagnostics: the state that they describe may change meanwhile -- */

/* Writes for example 'in ditto_all_reduce "loss" #7' if the replica is in its seventh collective of this run,
 * 'last in ...' if it is behind it, or "in no collective yet". */
void dti_describe_place(const struct dti_sync *sync, uint32_t replica, struct dti_text *text);
/* The same as "replica 3 (in ditto_barrier #7)". */
void dti_describe_replica(const struct dti_sync *sync, uint32_t replica, struct dti_text *text);
/* Describes the replicas for which is_missing(sync, replica, number) returns true. Up to three are described
 * one by one. If there are more, their numbers are listed and the first three are described. Returns how many
 * there are. */
uint32_t dti_describe_missing(const struct dti_sync *sync, dti_is_missing *is_missing, uint64_t number,
                              struct dti_text *text);

/* -- The replica's own thread. Each of these functions stops the run -- */

/* `waits_in` is the description of this replica's call, and `awaited` that of the replicas for which it
 * waits. */

/* Called when a peer for which this replica waits will not arrive. Returns DIVERGED, or the error that
 * stopped the run before. */
ditto_status dti_fail_left(struct dti_replica *self, const char *waits_in, const char *awaited);
/* Called when the deadline has passed. Returns TIMED_OUT. The record of this thread is then that of its own
 * delay, even if a peer's error stopped the run first. */
ditto_status dti_fail_late(struct dti_replica *self, const struct dti_deadline *deadline,
                           const char *waits_in, const char *awaited);

#endif
