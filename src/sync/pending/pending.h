/* src/sync/pending/pending.h - pending operations: collectives that are started now and waited for later.
 *
 * Each replica owns a ring of entries. Operation k of the team is the k-th operation that every replica
 * starts. A replica announces it in entry k % length of its ring. When all replicas have announced k, the
 * operation is ready. Each replica combines a small operation for itself, from its own source and the
 * payloads of the others. The indices of a larger operation are divided into one share for each replica, and
 * each share into pieces. A replica that waits claims pieces, first of its own share and then of the others,
 * so that a replica that computes meanwhile delays no other replica. A replica *consumes* operations in
 * order: it consumes k when its own result is complete.
 *
 * Invariants  I1  An entry, except `claim` and `done`, is written by its owner only. For operation k the
 *                 owner writes it only after every replica has consumed k - length.
 *             I2  A piece is claimed once. `claim` holds (k, next piece). After k is announced, it is
 *                 changed by compare-and-swap only. Only a replica that has access (access.h) claims
 *                 pieces, and it has not consumed k at that time. Therefore k in the claim is only a
 *                 check. The other invariants do not depend on it.
 *             I3  A replica consumes k only when all pieces are done. So when a buffer is returned to its
 *                 user, no replica accesses it.
 * Edges       P0 -> P1  A replica announces an operation, after everything it did before. Every replica that
 *                       sees the word of the entry sees all this.
 *             W0 -> W1  A replica computes a piece and adds it to `done`. Every replica that sees it counted
 *                       sees the results.
 *             U0 -> U1  A replica looks at the entries of k for the last time, and then stores that it has
 *                       consumed k. The owners of the entries see this before they write the entries again.
 * Hosts       Over several hosts the driver carries out operations instead (hosts/started.h). The
 *             announcements and I1 are the same. A replica consumes what the driver has carried out.
 * Stopping    A replica that works on pieces has access (access.h). A replica that leaves while operations
 *             are open stops the run and waits for the replicas that have access.
 * Model       tests/model/pending.pml */
#ifndef DTI_PENDING_H
#define DTI_PENDING_H

#include <ditto/pending.h>

#include "sync/meeting/failure.h"
#include "sync/meeting/pending_ring.h"

/* Returns the number of a started operation in messages, in which numbers begin at 1 in each run. */
static inline uint64_t dti_number_in_run(const struct dti_replica *self, uint64_t number)
{
    return number - dti_replica_state_of(self)->started_before;
}

static inline bool dti_has_started(const struct dti_sync *sync, uint32_t replica, uint64_t number)
{
    const struct dti_pending_operation *operation = dti_pending_operation_of(sync, replica, number);
    uint64_t word = atomic_load_explicit(&operation->word, memory_order_acquire); /* P1 */
    return word >> 32 == (uint32_t)number;
}
/* The opposite of dti_has_started, as a dti_is_missing (failure.h). */
bool dti_has_not_started(const struct dti_sync *sync, uint32_t replica, uint64_t number);
/* Returns true if `replica` has announced the same operation as this replica. Both must have announced
 * one. */
bool dti_pending_is_same(const struct dti_replica *self, uint32_t replica, uint64_t number);

/* -- The replica's own thread -- */
/* Allocates the replica's ring. Called when the state of the collectives is made (sync.c). Errors:
 * NO_MEMORY. */
ditto_status dti_pending_make(struct dti_replica *self, struct dti_sync *sync);
/* Announces an operation. `target` is NULL except for DTI_PATTERN_TARGET, and must stay valid until the
 * operation has been waited for. *out is its number. Returns RANGE if the operation that would share the
 * entry, DITTO_MAX_PENDING before, has not been waited for. Other errors: those of dti_meet. */
ditto_status dti_pending_start(struct dti_replica *self, const struct dti_call *call,
                               const struct dti_target *target, struct dti_deadline *deadline, uint64_t *out);
/* Waits until the operation is consumed, and works on operations meanwhile. If deadline is NULL it does not
 * wait, and returns DITTO_PENDING if the operation is not finished. */
ditto_status dti_pending_wait(struct dti_replica *self, uint64_t number, struct dti_deadline *deadline);
/* Waits until all operations that this replica has started are consumed. Every other collective over several
 * hosts begins with it. Each operation has the time of the deadline for itself, and so has what follows: the
 * deadline begins anew. Fails as dti_pending_wait does. */
ditto_status dti_pending_finish_all(struct dti_replica *self, struct dti_deadline *deadline);
/* Called by a copy of a replica in a group when it has started an operation, on which the replica must work
 * while it waits elsewhere. */
void dti_pending_keep_started(struct dti_replica *self);
/* Returns the number of operations that a replica of the team has started and not waited for, in all its
 * groups. *name, which may be NULL, gets the name of one, the oldest in its group, and *wait that of the
 * function that waits for it. Both are set only if there is one. */
uint32_t dti_pending_open(const struct dti_replica *self, char name[DTI_CALL_TEXT_BYTES], const char **wait);
/* Writes for example 'ditto_all_reduce_start "loss" #3', for an operation that has not been waited for. */
void dti_pending_name(const struct dti_replica *self, uint64_t number, char name[DTI_CALL_TEXT_BYTES]);

/* Returns the public function with which the program waits for an operation that it has started. */
static inline const char *dti_pending_wait_function(const struct dti_replica *self, uint64_t number)
{
    bool is_step = dti_pending_operation_of(self->sync, self->index, number)->target != NULL;
    return is_step ? "ditto_apply_finish" : "ditto_wait";
}

/* Returns true if `other` has arrived at the meeting that is this replica's next one. If `other` has not
 * started the operation for which this replica waits, it never will, because it waits for this replica in
 * that meeting. */
bool dti_is_ahead_in_meeting(const struct dti_replica *self, uint32_t other);
/* Called when none of the open operations of a replica of the team will be waited for. Stops the run with the
 * error record of the thread, waits until no replica accesses the buffers of this replica, and returns
 * `status`. */
ditto_status dti_pending_abandon(struct dti_replica *self, ditto_status status);

/* -- While all replicas are parked -- */
void dti_pending_renew(struct dti_replica_state *state);

#endif
