/* src/base/waiting/wait.h - waiting for other threads, first by spinning or yielding, then by sleeping.
 *
 * A wait queue has one waiter for each thread that may wait. A thread that changes a condition, for which
 * others may wait, signals the queue. If no thread sleeps, a signal costs a light fence and one load of a
 * cache line that all threads share. A waiter says which thread it awaits, so a signal wakes only the waiters
 * that it concerns. Each waiter sleeps on its own word. There is no thundering herd, and no system call to
 * wake a thread that is awake.
 *
 * Invariants  I1  parked counts the waiters that are in sleep_until. If it is 0, there is no thread
 *                 to wake.
 *             I2  The state of a waiter is SLEEPING only from its own store S0 until it leaves, or until the
 *                 exchange W2 of a waker, whichever comes first.
 * Edges       S0 -> W1  The waiter stores parked and its state (S0), executes its fence, and reads the
 *                       condition (S1).
 *             W0 -> S1  The signaller stores the condition (W0), executes its fence, and reads parked (W1).
 *                       At least one of the two reads sees the store of the other thread. The fences are
 *                       dti_fence_heavy and dti_fence_light, or two ordinary ones (enum dti_sleeps).
 * Therefore   No wake-up is lost. Either S1 sees the condition, and the waiter does not sleep, or W1 sees
 *             parked > 0, and the waker finds the waiter. If W2 comes before the system call of the waiter,
 *             the futex word differs from the value that the kernel compares, and the waiter does not sleep.
 *             If the waiter stores SLEEPING again after W2, it also reads the condition again before it
 *             sleeps. The condition itself must order the data that it guards, by acquire and release. The
 *             wait queue does not.
 * Model       tests/model/wait.pml (spin) covers four threads in every interleaving. Mutants without S1 or W1
 *             are rejected. */
#ifndef DTI_WAIT_H
#define DTI_WAIT_H

#include "base/waiting/deadline.h"
#include "base/waiting/futex.h"
#include "base/waiting/wait_policy.h"

/* How long a thread yields before it sleeps, if there are more threads than CPUs. Four producers of a queue
 * on two cores take 65 ns per item with it, and 190 ns with 0. */
#define DTI_YIELD_NS 100000u

/* A waiter with this value awaits every thread. A signal with this value concerns every waiter. */
#define DTI_EVERYONE UINT32_MAX

/* Which side of a wait queue pays for the order of store and load. */
enum dti_sleeps {
    /* A sleeper executes membarrier, and a signal is as cheap as it can be. */
    DTI_SLEEPS_RARE,

    /* Both sides execute an ordinary fence, which takes 6 ns. membarrier takes 1 to 12 us if other threads of
     * the process run, interrupts each of them, and is executed by one thread of the process at a time. So it
     * would be most of the time of threads that share PUs and sleep in nearly every wait. */
    DTI_SLEEPS_OFTEN,
};

struct dti_waiter {
    /* The futex word. */
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t state;

    /* The thread that the waiter awaits, or DTI_EVERYONE. */
    _Atomic uint32_t awaits;

    /* When a waker has begun to wake this waiter, or 0. The sleeper measures with it. A waker that was
     * delayed after W2 may store an old time during a later sleep, which is then measured as too long. */
    _Atomic uint64_t woken_at_ns;
};

struct dti_wait_queue {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t parked;

    /* The number of waiters. It is constant, as are the next two members. */
    uint32_t waiters;
    enum dti_sleeps sleeps;
    struct dti_waiter *waiter;
};

/* Allocates the waiters, each on cache lines of its own. Returns false if there is no memory. */
bool dti_wait_queue_init(struct dti_wait_queue *queue, uint32_t waiters, enum dti_sleeps sleeps);
void dti_wait_queue_free(struct dti_wait_queue *queue);

/* A condition that the waiter polls. If the condition guards other data, its loads must be acquire. */
typedef bool dti_condition(void *argument);

/* -- Any thread, after it has stored (with release) a condition that others may await -- */

/* Wakes the waiters that await `from`. This is the slow part of dti_wait_queue_signal, for a queue with
 * parked waiters. */
void dti_wait_queue_wake(struct dti_wait_queue *queue, uint32_t from);

static inline void dti_wait_queue_signal(struct dti_wait_queue *queue, uint32_t from)
{
    /* The caller has stored the condition (W0). The fence pairs with that of a waiter, in
     * sleep_until. */
    if (queue->sleeps == DTI_SLEEPS_OFTEN)
        atomic_thread_fence(memory_order_seq_cst);
    else
        dti_fence_light();
    /* W1. relaxed: the count guards no other data. */
    if (__builtin_expect(atomic_load_explicit(&queue->parked, memory_order_relaxed) != 0, 0))
        dti_wait_queue_wake(queue, from);
}

/* -- The thread to which the waiter belongs. `waiter_index` is the number of the waiter -- */

/* The slow part of dti_wait. */
bool dti_wait_long(struct dti_wait_queue *queue, uint32_t waiter_index, uint32_t awaits,
                   struct dti_wait_policy *wait_policy, struct dti_deadline *deadline,
                   dti_condition *condition, void *argument);

/* The quick part of dti_wait: polls a few times before the clock is read for the first time. */
static inline bool dti_wait_briefly(const struct dti_wait_policy *wait_policy, dti_condition *condition,
                                    void *argument)
{
    if (condition(argument))
        return true;
    for (uint32_t check = 0; wait_policy->spin_ns != 0 && check < 64; check++) {
        dti_pause();
        if (condition(argument))
            return true;
    }
    return false;
}

/* Waits until the condition holds or the deadline passes. It polls once, then spins, yields and sleeps as the
 * policy says. Returns true if the condition holds. */
static inline bool dti_wait(struct dti_wait_queue *queue, uint32_t waiter_index, uint32_t awaits,
                            struct dti_wait_policy *wait_policy, struct dti_deadline *deadline,
                            dti_condition *condition, void *argument)
{
    if (dti_wait_briefly(wait_policy, condition, argument))
        return true;
    return dti_wait_long(queue, waiter_index, awaits, wait_policy, deadline, condition, argument);
}

#endif
