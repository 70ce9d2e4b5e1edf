/* src/sync/sync.h - the internal header of the module sync, used by vars, values and strategy. */
#ifndef DTI_SYNC_H
#define DTI_SYNC_H

#include <ditto/slices.h>
#include <ditto/tuning.h>

#include "replicas/team/replica.h"
#include "replicas/team/team.h"
#include "sync/algorithms/target.h"
#include "sync/kernels/tree.h"

struct dti_sync;  /* the state of a team's collectives */
struct dti_hosts; /* hosts/hosts.h */

struct dti_sync_options {
    ditto_kernels kernels;
    const ditto_tuning *tuning; /* may be NULL */
    uint32_t order_blocks;      /* of the tree; at most the number of replicas */

    /* The values of bytes_per_pack and implementation for calls that give none. */
    ditto_reduce_options defaults;

    /* The other hosts of the strategy (hosts/hosts.h). NULL if there is one host. */
    struct dti_hosts *hosts;
};

/* -- Cross-replica context, no run is active, the caller is between dti_cross_enter and dti_cross_leave -- */

/* Sets dti_team_sync(team). Fails with NO_MEMORY, with UNSUPPORTED or RANGE because of the kernels, or with
 * INVALID, UNSUPPORTED or RANGE because of the tuning. */
ditto_status dti_sync_create(struct dti_team *team, const struct dti_sync_options *options);

/* -- The thread that posts a run, between dti_cross_enter and dti_cross_leave -- */

/* The rest of dti_sync_run_begins, for a run inside a run. */
ditto_status dti_sync_inner_run_begins(struct dti_team *team);

/* Called before a run. A run inside a run has collectives with their own state, so that the operations that
 * are open in the outer run are not disturbed. They are created here when they are first needed, and kept.
 * Fails with RANGE if DTI_LEVELS runs contain this one, or with NO_MEMORY. */
static inline ditto_status dti_sync_run_begins(struct dti_team *team)
{
    return dti_team_pauses(team) == 0 ? DITTO_OK : dti_sync_inner_run_begins(team);
}

/* Called after a run. If the run was stopped, resets what it has left behind, for the next run on the same
 * level. All replicas are parked, or serve in a pause. */
void dti_sync_run_ended(struct dti_team *team);

/* Runs a job of the library in which the replicas meet. Fails as dti_sync_run_begins and the job do. */
ditto_status dti_sync_run(struct dti_team *team, dti_job job, void *argument);
/* The same between dti_sync_run_begins and dti_sync_run_ended, which the caller calls. */
ditto_status dti_sync_run_job(struct dti_team *team, dti_job job, void *argument);

/* -- Any thread, no run is active -- */
void dti_sync_destroy(struct dti_team *team); /* dti_team_sync(team) may be NULL */

/* -- The replica's own thread -- */

/* Called before and after the replica's function of a run inside a run. They make the replica use the state
 * of the inner run, and that of the outer run again. */
void dti_sync_go_in(struct dti_replica *self);
void dti_sync_go_out(struct dti_replica *self);

/* Called before the function of a run, which may be the user's or the library's. Restarts the numbers of
 * collectives and of started operations at 1. */
void dti_sync_function_begins(struct dti_replica *self);

/* Called after the replica's function has returned `status`. Returns `status` if no started operation is
 * open. Otherwise the run is stopped, and no peer uses this replica's buffers any more when this function
 * returns. It then returns the function's error, or INVALID if the function did not fail. `serial` is the
 * value that dti_this_thread()->errors had before the function was called. */
ditto_status dti_sync_function_returned(struct dti_replica *self, ditto_status status, uint32_t serial);

/* -- The replica's own thread, collective -- */

/* A call that must be equal on all replicas. */
struct dti_matched_call {
    const char *name;   /* the public function */
    const char *object; /* the name of the call's object, or NULL */
    size_t arguments;   /* the number of tensors that are passed */

    /* A hash of everything else that must agree, such as the user's function. */
    uint64_t hash;

    /* True if only the replicas of this host make the call. */
    bool each_host;
};

/* Writes a line for each grouping of the strategy. Cross-replica context. */
void dti_sync_describe_groupings(const struct dti_team *team, struct dti_text *text);

/* Describes the last collective of each replica. Any thread; the text is valid until the next call. */
const char *dti_sync_diagnose(const struct dti_team *team);

/* A barrier that waits until all replicas have made the call, and compares their calls. */
ditto_status dti_sync_meet(struct dti_replica *self, const struct dti_matched_call *same,
                           struct dti_deadline *deadline);

/* An all-gather under a public function's name. Replica i contributes counts[i] elements, or `count` elements
 * if counts is NULL. */
struct dti_gathering {
    const char *name;
    const void *src;
    void *dst;
    size_t count;
    const size_t *counts; /* [n], or NULL */
    ditto_dtype dtype;

    /* True if the elements are the library's own. Messages then leave out their number. */
    bool is_internal;
};

ditto_status dti_all_gather(ditto_replica *self, const struct dti_gathering *gathering,
                            const ditto_reduce_options *options);

/* A reduction of every item over all replicas, into a target. All fields but the items' src are equal on all
 * replicas. */
struct dti_target_reduction {
    /* [items] src, count and dtype are set. dst is not used. */
    const ditto_list_item *item;

    size_t items; /* at least 1 */

    /* 0 means that nothing is reduced and the values of replica 0 are used. */
    ditto_op op;

    const char *name;   /* the public function */
    const char *object; /* the name of the call's object, or NULL */
    uint64_t hash;      /* of everything else that must agree */
    const struct dti_target *target;
};

/* When it returns DITTO_OK, all copies are written and visible to all replicas. Fails as a collective does.
 * The time limit of its meetings is that of the strategy. It begins in this function, so that work of the
 * caller before it, and earlier calls of the same public function, do not count. */
ditto_status dti_target_reduction(struct dti_replica *self, const struct dti_target_reduction *targeted);

/* Fails with CONTEXT if the call comes from a function that the user gave to another collective. `name` is
 * the public function that is called. */
ditto_status dti_check_outside_function(const struct dti_replica *replica, const char *name);

/* The same, started now and waited for later, as the operations of ditto/pending.h are. Until it has been
 * waited for, the items, the buffers of their addresses, the target and its context must stay valid. The
 * target must not call a function of the user's. *number names the operation. Fails as ditto_all_reduce_start
 * does. */
ditto_status dti_target_reduction_start(struct dti_replica *self, const struct dti_target_reduction *targeted,
                                        uint64_t *number);

/* Waits for a started reduction. Does nothing if another start has waited for it already, because it needed
 * the operation's place in the ring. Fails as ditto_wait does, with the strategy's time limit. */
ditto_status dti_target_reduction_wait(struct dti_replica *self, uint64_t number);

/* Count the steps that a function has begun with started reductions, and not ended. A function that returns
 * while there is one fails, even if all its reductions have been waited for. */
void dti_sync_step_begins(struct dti_replica *self);
void dti_sync_step_ends(struct dti_replica *self);

/* Returns the number of the run that the replica is in. */
uint64_t dti_sync_run_number(const struct dti_replica *self);

/* Reports which replica calls `finish` for which elements, if the op is not 0. Each range is reported once,
 * in ascending order. The caller allocates the data that `finish` needs near that replica. With one host
 * alone: over several, each replica may get any element. Any context. */
void dti_target_owners(struct dti_sync *sync, const struct dti_target_reduction *targeted,
                       dti_target_owner_fn *report, void *context);

/* An all-reduce under a public function's name: every replica gets the result in its `dst`. All members but
 * src and dst are equal on all replicas. */
struct dti_shared_result {
    const char *name;   /* the public function */
    const char *object; /* the name of the call's object, or NULL */
    uint64_t hash;      /* of everything else that must agree */
    const void *src;
    void *dst;
    size_t count;
    ditto_dtype dtype;

    /* 0 means that every dst gets the elements that replica 0 has in its dst. Then src is not used. */
    ditto_op op;
};

/* The time limit is as in dti_target_reduction. */
ditto_status dti_share_result(struct dti_replica *self, const struct dti_shared_result *shared);

/* All replicas meet, each calls `work`, and all meet again. In `work` a replica can read the data that the
 * others contributed. If `work` returns anything but DITTO_OK, the run is stopped with an error. */
struct dti_joint_work {
    const char *name;
    const char *object;
    uint64_t hash;           /* of everything that must agree */
    const void *contributed; /* the data of this replica that the others read */

    /* True if `work` calls a function of the user's and does not read `contributed`. The replica then gives
     * up its access to other replicas' buffers (access.h) while `work` runs. */
    bool calls;

    /* True if the work of this host is complete in itself. Otherwise the call fails over several hosts. */
    bool each_host;

    ditto_status (*work)(struct dti_replica *self, const void *const *contributed, void *context);
    void *context;
};

/* Returns what stands for a function of the user's when replicas compare their calls: its address, or over
 * several hosts a hash that is equal in all processes. */
uint64_t dti_sync_function(const struct dti_replica *self, const void *function);

/* The time limit of the meetings is as in dti_target_reduction. */
ditto_status dti_do_joint_work(struct dti_replica *self, const struct dti_joint_work *request);

/* The same over several hosts, where replicas contribute slices: each replica calls `use` with the slices of
 * all n replicas. request->contributed are those of this one, a ditto_slices. Its `work` is not used. */
typedef ditto_status dti_use_slices(void *context, const ditto_slices *const *of, uint32_t n);
ditto_status dti_gather_slices(struct dti_replica *self, const struct dti_joint_work *request,
                               dti_use_slices *use, void *context);

/* Returns the tree along which the team's collectives combine one value of each replica. Any thread. */
const struct dti_tree *dti_team_tree(const struct dti_team *team);

/* -- Cross-replica context: work on memory, shared by all replicas if that is faster -- */

/* Processes items [first, end). The result must not depend on how the items are split over calls. Called in
 * the default floating-point environment. */
typedef ditto_status dti_share_fn(size_t first, size_t end, void *context);

/* Processes items [0, items), each once, and returns the first error. After an error, items may be left out.
 * `bytes` is how much is read or written in all. Items are split at multiples of `grain`. Cross-replica
 * context. */
ditto_status dti_share(struct dti_team *team, size_t bytes, size_t items, size_t grain, dti_share_fn *work,
                       void *context);

#endif
