/* src/sync/hosts/started.h - started operations over several hosts.
 *
 * A replica announces an operation as on one host (pending/pending.h). When all replicas of this host have
 * announced it, the driver carries it out: it exchanges headers, and moves the data, for all of them. If the
 * caller of the run only waits, it is the driver, and works while the replicas compute. Otherwise the driver
 * is the first replica of the host, and works when it waits in a call of ditto.
 *
 * The work on data of this host is divided into shares. Replicas that wait take shares too (shares.h), and
 * the driver does those that are left. So nothing waits for a replica that computes.
 *
 * The driver carries out operations in the order in which they were started. All that were started before
 * another collective come before it. So all hosts exchange the same headers in the same order.
 *
 * Edges       C0 -> C1  The driver stores the number of an operation in `carried` after its results. A
 *                       replica that sees it may return from its wait.
 *             L0 -> L1  A replica whose limit has passed stores what it waited for, and then the number of
 *                       the operation in `given_up`. The driver ends its wait for other hosts, and reads the
 *                       rest.
 *             Several replicas may give up, and one may be late: `given_up` only grows, so that no later
 *             operation is forgotten.
 * Stopping    The driver has access (access.h) from before it looks whether an operation is ready until after
 *             C0. So no replica leaves a stopped run while its buffers are used, and the first one, in whose
 *             name the caller works, is in its run until C0. The driver polls the stop word while it waits
 *             for other hosts. */
#ifndef DTI_STARTED_H
#define DTI_STARTED_H

#include <ditto/pending.h>

#include "sync/hosts/shares.h"
#include "sync/meeting/sync_state.h"

struct dti_hosts_call;
struct dti_hosts;
struct dti_limits;

/* What a level of runs needs for the operations that its replicas start. */
struct dti_started {
    /* The last operation that the driver has carried out, and the one that it carries out now, or 0. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t carried;
    _Atomic uint64_t running;

    /* The last operation for which a replica does not wait any longer, or 0. The replica, and its limit that
     * has passed, are in the next three. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t given_up;
    _Atomic uint64_t given_up_at_ns;
    _Atomic uint32_t given_up_ms;
    _Atomic uint32_t given_up_by;

    /* How many replicas have announced the operation that uses this entry. The last one makes it 0 again. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t announced[DITTO_MAX_PENDING];

    struct dti_shared_step step;

    /* Of a caller that only waits. */
    struct dti_workspace workspace;
};

/* A thread that works on a started operation of this host. */
struct dti_worker {
    struct dti_replica *self; /* in whose name it works */
    struct dti_sync *sync;
    struct dti_workspace *workspace;
    uint32_t slot; /* as that of a dti_hosts_call */
};

/* -- The thread that makes the strategy -- */
/* Makes sync->started, if there are several hosts. Errors: NO_MEMORY. */
ditto_status dti_started_make(struct dti_sync *sync);
void dti_started_free(struct dti_sync *sync);
/* While all replicas are parked: forgets all operations, after their entries have been cleared.
 * sync->started may be NULL. */
void dti_started_renew(struct dti_sync *sync);

/* -- The driver -- */
/* The caller of a run that only waits calls it whenever it looks whether the run has ended. */
void dti_started_carry_out_ready(struct dti_hosts *hosts);

/* In a started operation: does the shares of a step. There is one for each replica of this host. */
void dti_started_share(const struct dti_hosts_call *c, dti_step_share_fn *share, void *argument);

/* Sets the limits of a wait for other hosts in a started operation. */
void dti_started_set_limits(const struct dti_hosts_call *c, struct dti_limits *limits);

/* Returns the replica that has given up the operation, and sets *deadline to its limit. If none has,
 * returns the replica in whose name the driver works. */
struct dti_replica *dti_started_waiter(const struct dti_hosts_call *c, struct dti_deadline *deadline);

#endif
