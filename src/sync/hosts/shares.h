/* src/sync/hosts/shares.h - a step of a started operation, whose shares the driver and the replicas that wait
 * divide among themselves.
 *
 * The driver posts a step. It takes shares itself, and so does each replica that waits for an operation,
 * until none is left. So the step ends without the replicas that compute meanwhile, and no sooner than its
 * last share. A replica has access (access.h) while it takes shares.
 *
 * Invariants  I1  A share is taken once. `open` holds (number of the step, shares that are left), and is
 *                 lowered by compare-and-swap only.
 *             I2  The driver changes what it has posted only when no share is left, and all that were taken
 *                 are done. The number of a step makes sure that a thread that was late takes no share of
 *                 another step by what it has seen of this one.
 * Edges       S0 -> S1  The driver posts the step in `open`. A thread that takes a share sees what it is, and
 *                       what the driver did before.
 *             S2 -> S3  A thread that has done a share counts it in `done`. The driver that has seen all
 *                       sees the
 *                       results.
 * Model       tests/model/shares.pml */
#ifndef DTI_SHARES_H
#define DTI_SHARES_H

#include "replicas/team/replica.h"

struct dti_worker;

/* Does share `share` of a step. It may not fail, and may not wait. */
typedef void dti_step_share_fn(void *argument, const struct dti_worker *worker, uint32_t share);

/* One at a time. Initialized with zeros. */
struct dti_shared_step {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint64_t open;
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t done;

    /* The driver writes these. `open` publishes them. */
    alignas(DTI_CACHE_LINE_PAIR) dti_step_share_fn *share;
    void *argument;
};

/* The driver: does all shares of a step, together with the threads that help. */
void dti_share_step(struct dti_shared_step *step, uint32_t shares, dti_step_share_fn *share, void *argument,
                    const struct dti_worker *worker, struct dti_wait_queue *queue);

/* Any thread that has access: does shares of the step that is posted, if any is left. */
void dti_take_shares(struct dti_shared_step *step, const struct dti_worker *worker);

/* Any thread. Returns true if there may be a share left. */
static inline bool dti_has_shares(const struct dti_shared_step *step)
{
    /* relaxed: only a look, which taking a share repeats. */
    return (uint32_t)atomic_load_explicit(&step->open, memory_order_relaxed) != 0;
}

#endif
