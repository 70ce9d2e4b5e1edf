/* src/sync/hosts/shares.c - posts steps and takes their shares. See shares.h. */
#include "sync/hosts/shares.h"
#include "base/waiting/wait.h"

#include <sched.h>

/* Returns true with the number of a share that no other thread takes. */
static bool take(struct dti_shared_step *step, uint32_t *share)
{
    uint64_t open = atomic_load_explicit(&step->open, memory_order_relaxed);
    while ((uint32_t)open != 0)
        if (atomic_compare_exchange_weak_explicit(&step->open, &open, open - 1, memory_order_acquire, /* S1 */
                                                  memory_order_relaxed)) {
            *share = (uint32_t)open - 1;
            return true;
        }
    return false;
}

void dti_take_shares(struct dti_shared_step *step, const struct dti_worker *worker)
{
    uint32_t share;
    while (take(step, &share)) {
        step->share(step->argument, worker, share);
        atomic_fetch_add_explicit(&step->done, 1, memory_order_release); /* S2 */
    }
}

void dti_share_step(struct dti_shared_step *step, uint32_t shares, dti_step_share_fn *share, void *argument,
                    const struct dti_worker *worker, struct dti_wait_queue *queue)
{
    uint64_t number = (atomic_load_explicit(&step->open, memory_order_relaxed) >> 32) + 1;
    step->share = share;
    step->argument = argument;
    /* relaxed: `open` publishes it. */
    atomic_store_explicit(&step->done, 0, memory_order_relaxed);
    atomic_store_explicit(&step->open, number << 32 | shares, memory_order_release); /* S0 */
    if (shares > 1)
        dti_wait_queue_signal(queue, DTI_EVERYONE);
    dti_take_shares(step, worker);
    /* A thread that has taken a share neither waits nor calls the user's functions. */
    for (uint32_t look = 0; atomic_load_explicit(&step->done, memory_order_acquire) != shares;
         look++) /* S3 */
        if (look < 1000)
            dti_pause();
        else
            sched_yield();
}
