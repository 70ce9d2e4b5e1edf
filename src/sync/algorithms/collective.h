/* src/sync/algorithms/collective.h - one collective from call to result. */
#ifndef DTI_COLLECTIVE_H
#define DTI_COLLECTIVE_H

#include "sync/plans/choose_algorithm.h"
#include "sync/meeting/meeting.h"
#include "sync/meeting/call.h"

struct dti_target;

/* Around a collective: for traces and tracepoints, and for messages about this replica. */
static inline void dti_call_begins(struct dti_replica *self, const struct dti_call *call)
{
    DTI_PROBE2(collective_begin, self->id, call->name);
    dti_trace_begin(self, DTI_TRACE_COLLECTIVE, call->name);
}
static inline void dti_call_ends(struct dti_replica *self, const struct dti_call *call)
{
    dti_finish_call(&self->sync->state[self->id]);
    if (__builtin_expect(self->tracer != NULL, 0))
        dti_trace_end(self, dti_call_size_of(call, self->team->n).own);
    DTI_PROBE2(collective_end, self->id, call->name);
}

/* The replica's own thread. Whatever the pattern and the way; `target` of DTI_PATTERN_TARGET alone, else NULL. */
ditto_status dti_collective(struct dti_replica *self, struct dti_call *call, const struct dti_target *target,
                            struct dti_deadline *deadline);

/* A call of the pattern DTI_PATTERN_NOTHING: it meets. */
ditto_status dti_barrier(struct dti_replica *self, const struct dti_call *call,
                         struct dti_deadline *deadline);

/* -- the ways -- */
ditto_status dti_collective_in_mailboxes(struct dti_replica *self, const struct dti_call *call,
                                         const struct dti_call_size *size, struct dti_deadline *deadline);
/* Between two meetings: the first tells addresses, the last that all is written. `work` is done inside (access.h), by
 * every replica; `seq` is the first meeting's number. An error of it ends the run. */
typedef ditto_status dti_access_work(struct dti_replica *self, uint32_t seq, void *context);
ditto_status dti_collective_with_access(struct dti_replica *self, const struct dti_call *call,
                                        dti_access_work *work, void *context, struct dti_deadline *deadline);
/* Ends the run with what the caller's own function returned; `serial` counts the errors before (base/status.h). */
ditto_status dti_fail_function(struct dti_replica *self, const struct dti_call *call, ditto_status status,
                               uint32_t serial);

/* Sums over fixed blocks of a global row: bits that do not depend on the number of replicas. */

struct dti_replica;

/* The replica's own thread: the collective behind ditto_block_sum. call: src, dst, dtype. */
ditto_status dti_block_sum(struct dti_replica *self, const struct dti_call *call, size_t count,
                           struct dti_deadline *deadline);

#endif
