/* src/sync/algorithms/collective.h - executes one collective, from call to result. */
#ifndef DTI_COLLECTIVE_H
#define DTI_COLLECTIVE_H

#include "base/observe.h"
#include "replicas/team/recorder.h"
#include "sync/algorithms/choose_algorithm.h"

struct dti_arrival;
struct dti_target;

/* Called before and after a collective, for traces and tracepoints. dti_call_ends also stores that the
 * collective is finished, for messages about this replica. */
static inline void dti_call_begins(struct dti_replica *self, const struct dti_call *call)
{
    DTI_PROBE2(collective_begin, self->id, call->name);
    dti_trace_begin(self, DTI_TRACE_COLLECTIVE, call->name, call->label);
}

static inline void dti_call_ends(struct dti_replica *self, const struct dti_call *call)
{
    dti_finish_call(dti_reported_state(self));
    if (__builtin_expect(self->tracer != NULL, 0))
        dti_trace_end(self, dti_call_size_of(call, self->num_replicas).own);
    DTI_PROBE2(collective_end, self->id, call->name);
}

/* Chooses an algorithm for the call by the tuning of the team, and executes it. Accepts all patterns but
 * NOTHING, SLICES and BLOCKS. `target` is NULL except for DTI_PATTERN_TARGET. Must be called on the replica's
 * own thread. */
ditto_status dti_collective(struct dti_replica *self, const struct dti_call *call,
                            const struct dti_target *target, struct dti_deadline *deadline);

/* The same for a call that has been prepared. */
ditto_status dti_collective_prepared(struct dti_replica *self, const struct dti_prepared_call *prepared,
                                     const struct dti_target *target, struct dti_deadline *deadline);

/* Executes one meeting. The call has the pattern DTI_PATTERN_NOTHING. */
ditto_status dti_barrier(struct dti_replica *self, const struct dti_call *call,
                         struct dti_deadline *deadline);

/* -- the algorithms -- */

/* Executes a small collective in one meeting, with payloads in the mailboxes. */
ditto_status dti_collective_in_mailboxes(struct dti_replica *self, const struct dti_prepared_call *prepared,
                                         struct dti_deadline *deadline);

/* Calls `work` on every replica of this host between two meetings. The first meeting publishes the buffer
 * addresses, and the second one ends when all replicas have written their results. During `work` the replica
 * has access to other replicas' buffers (access.h). `seq` is the number of the first meeting. If `work`
 * returns an error, the run is stopped. */
typedef ditto_status dti_access_work(struct dti_replica *self, uint32_t seq, void *context);
ditto_status dti_collective_with_access(struct dti_replica *self, const struct dti_call *call,
                                        dti_access_work *work, void *context, struct dti_deadline *deadline);

/* The same with payloads. `arrivals` is [2]. The payloads of arrivals[0] can be read in the first mailboxes
 * of meeting `seq` during `work`, which may fill in arrivals[1]. After the call, the payloads of arrivals[1]
 * can be read in the first mailboxes of meeting *last_seq. The members `call` and `goes_on` are set here. */
ditto_status dti_collective_with_results(struct dti_replica *self, const struct dti_call *call,
                                         dti_access_work *work, void *context, struct dti_arrival *arrivals,
                                         struct dti_deadline *deadline, uint32_t *last_seq);

/* Stops the run because a function of the user's has returned `status`, which is not DITTO_OK. Returns the
 * error. `serial` is the value of dti_this_thread()->errors before the function was called. */
ditto_status dti_fail_function(struct dti_replica *self, const struct dti_call *call, ditto_status status,
                               uint32_t serial);

/* -- sums over fixed blocks of a global row, whose bits do not depend on the number of replicas -- */

/* The elements of a sum. If there is no function, they are those of the call's src, multiplied by those of
 * `factor` if that is not NULL. */
struct dti_block_elements {
    const void *factor;
    ditto_elements_fn function;
    void *user;

    /* The number of elements that this replica has. */
    size_t count;
};

/* The collective of ditto_block_sum, ditto_block_sum_with and ditto_block_dot. The call has src, dst, dtype,
 * op and element_bytes. Must be called on the replica's own thread. */
ditto_status dti_block_sum(struct dti_replica *self, const struct dti_call *call,
                           const struct dti_block_elements *elements, struct dti_deadline *deadline);

#endif
