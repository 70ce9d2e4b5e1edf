/* src/sync/meeting/circle.h - waits of replicas for each other, and circles of such waits.
 *
 * Without groups, all replicas wait in the same meeting, and a replica that makes another call, or none, is
 * found there. With groups, one replica may wait in its row while another one, for which it waits, waits in
 * its column or in a call of the whole team. Then none of them would ever go on. So a replica whose wait
 * lasts long publishes what it waits for, and looks whether it waits for itself, by way of replicas that wait
 * too.
 *
 * A replica *is missing* in a wait if the wait lasts until this replica has come (dti_is_missing): to the
 * meeting, or to the start of the operation. Every wait here is for all members of a group or of the team. So
 * if each replica of a circle is missing in the wait of the one before it, no wait of the circle ends.
 *
 * Invariants  I1  While a replica's version is odd, it is in the meeting, or waits for the operation, that
 *                 its standstill describes. It comes to no other meeting and starts no operation meanwhile,
 *                 so where it is missing, it stays missing.
 *             I2  While a replica is missing in it, no meeting is finished, and no operation consumed,
 *                 except that the run ends. Each wait of a replica is for one meeting or one operation.
 * Edges       E0 -> E1  A replica stores its standstill and then its version (release). A replica that reads
 *                       the version (acquire) sees the standstill, and everything that the other one did
 *                       before, such as its arrivals.
 *             F0 -> F1  A replica publishes, executes a fence, and then looks at the others. Of the replicas
 *                       of a circle, the one whose fence is the last sees all others.
 * Therefore   Every circle is found: when it has closed, its last replica sees it. And what is found is a
 *             circle. Its last replica waits for the one that searches, which comes to no other wait, so it
 *             waits for ever (I2). It was found to be waiting before it was found to be missing in the wait
 *             of the one before it. So it stays missing there, and that one waits for ever too, and so on.
 * Model       tests/model/circle.pml */
#ifndef DTI_CIRCLE_H
#define DTI_CIRCLE_H

#include "sync/meeting/sync_state.h"

/* The part of dti_await for strategies with groups. */
bool dti_await_with_groups(struct dti_replica *self, uint32_t awaits, struct dti_deadline *deadline,
                           dti_condition *condition, void *argument, dti_is_missing *is_missing,
                           uint64_t number);

/* Waits until the condition holds or the deadline passes, and returns true if it holds (dti_wait). The wait
 * lasts until no replica of self->sync is missing. If it can't end, because replicas wait for each other in
 * different groups, the run is stopped with DIVERGED, and the condition must hold then. */
static inline bool dti_await(struct dti_replica *self, uint32_t awaits, struct dti_deadline *deadline,
                             dti_condition *condition, void *argument, dti_is_missing *is_missing,
                             uint64_t number)
{
    if (dti_wait_briefly(&self->wait_policy, condition, argument))
        return true;
    if (__builtin_expect(self->sync->groupings->count != 0, 0))
        return dti_await_with_groups(self, awaits, deadline, condition, argument, is_missing, number);
    return dti_wait_long(self->wait_queue, self->place, awaits, &self->wait_policy, deadline, condition,
                         argument);
}

#endif
