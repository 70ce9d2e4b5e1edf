/* src/replicas/team/replica.h - a replica of a team, and what its own thread and its peers ask of it.
 *
 * The code is in team_access.c and stopping.c. */
#ifndef DTI_REPLICA_H
#define DTI_REPLICA_H

#include <ditto/replica.h>
#include <ditto/topology.h>

#include "base/waiting/fork.h"
#include "base/waiting/wait.h"
#include "replicas/machine/mask.h"

#include <pthread.h>

struct dti_replica {
    /* The number of the last run that this replica finished. Only the replica writes this cache line. The
     * poster and the peers that wait for the replica poll it. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t done;

    /* The positive status that its function returned, or DITTO_OK. Plain, because `done` publishes it. */
    ditto_status outcome;

    /* The members from here on are constant while the team runs, unless their comment says otherwise.
     *
     * A replica of a group (src/sync/grouping) is a copy of the team's replica, which has the same thread. It
     * counts the replicas of its group only, in the order of their ranks. */
    alignas(DTI_CACHE_LINE_PAIR) uint32_t index; /* among the replicas of this host, from 0 */
    uint32_t rank;                               /* among those of all hosts, from 0 */
    uint32_t id;                                 /* of the team's replica, which the user sees */
    uint32_t place;                              /* the index of the team's replica */
    uint32_t num_replicas;                       /* of this host */
    uint32_t all_replicas;                       /* of all hosts */
    struct dti_team *team;
    struct dti_replica *of_team; /* itself, if it is no copy */

    /* The state of src/sync for the run that the replica is in. */
    struct dti_sync *sync;

    /* Copies of members of the team, because every meeting reads them. */
    const struct dti_stop *stop;
    struct dti_wait_queue *wait_queue;
    uint32_t timeout_ms;
    uint32_t process;

    /* The time limit of the present run, for replica 0 if it is the thread that called run. DTI_NEVER for all
     * others. */
    const uint64_t *run_deadline_ns;

    /* See recorder.h. NULL unless the replica is being traced. Collectives read the members up to this one,
     * which are in one pair of cache lines. */
    struct dti_tracer *tracer;
    struct dti_arena *arena;
    struct dti_crew *crew;
    uint32_t pus; /* the number of PUs in the replica's set */
    ditto_pu pu;  /* the leader's */

    /* What has been recorded. It stays until dti_trace_forget. */
    struct dti_tracer *traced;

    /* Memory on other nodes, for the devices of the replica there. NULL if there is none. */
    struct dti_remote_memory *remote_memory;

    /* How the replica waits in a run, and for the next run. The two are apart because waits between runs are
     * often much longer. Written by the replica itself when a run starts and the load has changed. */
    struct dti_wait_policy wait_policy;
    struct dti_wait_policy rest_policy;

    /* The epoch of the load for which the policies were computed. */
    uint32_t load_epoch;

    /* The number of pauses around the run that the replica is in. Only its own thread uses it. */
    uint32_t depth;

    /* The number of the run whose job the replica executes, or DTI_GO_NONE. Only its own thread writes it,
     * and not while its helpers run a function of the user's. */
    uint64_t run;

    /* The last go number on which the replica has acted. Only its own thread uses it. */
    uint64_t seen;

    /* `sync`, for other threads (sync.c). */
    _Atomic(struct dti_sync *) shown_sync;

    /* The kernel's number of the thread, or -1 for a caller of run. */
    int32_t tid;
    pthread_t thread;

    /* The parameters that the present function may change in place, a list of src/vars. Used by the replica's
     * own thread, and by the thread of its worker between functions. */
    struct ditto_variable *in_place;

    /* The PUs on which the leader may run: the first PU of the replica, or all its PUs when helpers are
     * off. */
    struct dti_mask mask;
};

/* Returns another replica of the same team, or of the same group. They are in one array. */
static inline const struct dti_replica *dti_replica_peer(const struct dti_replica *replica, uint32_t index)
{
    return replica - replica->index + index;
}

static inline bool dti_replica_is_forked(const struct dti_replica *replica)
{
    return dti_process_differs(replica->process);
}

/* -- The replica's own thread -- */
/* Makes sure that an error which the user's function returned has a record with a message. If the function
 * has written no record for `status` since `errors` of this thread was serial_before, a record with a general
 * message is written. */
void dti_replica_ensure_record(const struct dti_replica *replica, ditto_status status,
                               uint32_t serial_before);
/* Returns the replica's handle for the present run. It is valid in this run only. */
ditto_replica *dti_replica_handle(const struct dti_replica *replica);
ditto_status dti_replica_alloc(struct dti_replica *replica, size_t bytes, size_t alignment, void **out);

/* -- Any thread -- */
/* Returns the deadline of a wait that this replica makes. A caller that works as replica 0 must not wait past
 * the time limit of its own run. */
static inline struct dti_deadline dti_replica_deadline(const struct dti_replica *replica, uint32_t timeout_ms)
{
    struct dti_deadline deadline = { .timeout_ms = timeout_ms };
    uint64_t of_run = *replica->run_deadline_ns;
    if (of_run != DTI_NEVER) {
        uint64_t of_wait = dti_deadline_at(&deadline);
        deadline.at_ns = of_run < of_wait ? of_run : of_wait;
    }
    return deadline;
}
/* Returns true if a deadline is the deadline of the run. Messages then name run_timeout_ms. */
bool dti_deadline_is_of_run(const struct dti_replica *replica, const struct dti_deadline *deadline);
/* Ends the run whose job the replica executes, with the error record of the calling thread. The first error
 * counts. Wakes every sleeper. That run need not be the innermost one: the replica may still be leaving the
 * meeting before a pause, in which replica 0 has posted a run already. Also called by the replica's
 * helpers. */
void dti_replica_stop(const struct dti_replica *replica);
/* Ends the run with the error record of the calling thread, because a wait that this replica makes has
 * reached its deadline. If that is the deadline of the outermost run, it ends all runs. */
void dti_replica_stop_late(const struct dti_replica *replica, const struct dti_deadline *deadline);
/* Returns true if the replica has returned from its function of the innermost run. */
bool dti_replica_returned(const struct dti_replica *replica);

#endif
