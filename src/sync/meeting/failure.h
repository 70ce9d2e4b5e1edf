/* src/sync/meeting/failure.h - the ways an operation fails because of others, with their messages. For every waiting point. */
#ifndef DTI_FAILURE_H
#define DTI_FAILURE_H

#include "replicas/replicas.h"
#include "sync/sync_state.h"

#define DTI_CALL_WORDS    200 /* room for the words of one call */
#define DTI_MISSING_WORDS 300 /* and for those who are missing: a message has 512 */

/* -- words; any thread: what they tell may change meanwhile, this is a diagnosis -- */

/* Whether the replica has begun its function of the newest run that any replica has begun. If not, its last
 * call belongs to an earlier run. */
bool dti_is_in_last_run(const struct dti_sync *sync, uint32_t replica);
/* "replica 3 (last in ditto_barrier #7)" */
void dti_describe_replica(const struct dti_sync *sync, uint32_t replica, struct dti_text *text);
/* The replicas for which `is_missing` says so: few are described one by one; of many the numbers, and the first ones' words.
 * How many there are. */
typedef bool dti_is_missing(const struct dti_sync *sync, uint32_t replica, uint64_t what);
uint32_t dti_describe_missing(const struct dti_sync *sync, dti_is_missing *is_missing, uint64_t what,
                              struct dti_text *text);

/* -- the replica's own thread; each stops the run -- */

/* A peer that this replica waits for will not come. DIVERGED, or what stopped the run before. */
ditto_status dti_fail_left(struct dti_replica *self, const char *waits_in, const char *who);
/* `who` did not come in time. TIMED_OUT: its own, even if a peer's came first. */
ditto_status dti_fail_late(struct dti_replica *self, const struct dti_deadline *deadline,
                           const char *waits_in, const char *who);

#endif
