/* src/base/waiting/wait.h - waiting for one another: spin or yield for a while, then sleep on a futex of one's own.
 *
 * A waiting room has one seat per thread that may wait. Whoever changes something that others may be waiting for signals
 * the room; when nobody sleeps, that is one load of a line that all share. A sleeper says whom it awaits, so that a
 * signal wakes those alone whom it concerns, and each on its own word: no herd, no wake-up system call for the awake.
 *
 * Invariants  I1  parked counts the seats between "took a seat" and "left it"; 0 means that nobody needs a wake-up.
 *             I2  a seat's state is SLEEPING only between the sleeper's store S0 and the first of: its own leaving, a
 *                 waker's exchange W2.
 * Edges       S0 -> W1  sleeper's (parked, state), dti_fence_heavy | signaller's condition, dti_fence_light: of the
 *             W0 -> S1  sleeper's look at the condition (S1) and the signaller's at parked (W1), one sees the other side.
 * Therefore   no wake-up is lost: either S1 sees the condition and nobody sleeps, or W1 sees parked > 0 and the waker
 *             finds the seat. If it finds it already re-armed, the futex word differs from what the kernel compares.
 *             What the condition guards is ordered by the condition's own acquire and release, not by this room.
 * Model       tests/model/wait.pml (spin): four threads, every interleaving; mutants without S1 or W1 are rejected. */
#ifndef DTI_WAIT_H
#define DTI_WAIT_H

#include "base/waiting/futex.h"

#define DTI_EVERYONE UINT32_MAX /* awaiting, or signalled by, anyone */

struct dti_waiter {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t state; /* the futex word */
    _Atomic uint32_t awaits;
};

struct dti_wait_queue {
    alignas(DTI_CACHE_LINE_PAIR) _Atomic uint32_t parked;
    uint32_t waiters; /* constant */
    struct dti_waiter *waiter;
};

/* How long to look before sleeping. Plain, the waiting thread's own. */
struct dti_wait_policy {
    uint64_t spin_ns;  /* look again and again, with pause */
    uint64_t yield_ns; /* let other threads of this CPU run between two looks */
    /* Waits in a row that took longer than spin_ns: spinning was for nothing. The next ones sleep after DTI_SPIN_LEAST_NS; every
     * DTI_SPIN_EVERY-th spins again, because one that sleeps can't tell a long wait from a short one and a slow wake-up.
     * (ditto-bench skew: peers that are 200 us late; broadcast of 1 MiB, whose root is late by about spin_ns: 104 us, now 75.) */
    uint32_t long_waits;
};
#define DTI_SPIN_LEAST_NS 3000u
#define DTI_SPIN_EVERY    16u

/* `seats` aligned seats in one allocation; false: no memory. */
bool dti_wait_queue_init(struct dti_wait_queue *queue, uint32_t waiters);
void dti_wait_queue_free(struct dti_wait_queue *queue);

typedef bool dti_condition(
    void *argument); /* polled by the waiter; its loads are acquire where data hangs on them */

/* Any thread, after it stored what others may await (release). `from` is what their seats await. W0, W1. */
void dti_wait_queue_wake(struct dti_wait_queue *queue, uint32_t from); /* the slow half: somebody is parked */
static inline void dti_wait_queue_signal(struct dti_wait_queue *queue, uint32_t from)
{
    dti_fence_light(); /* pairs with dti_fence_heavy of a sleeper */
    /* relaxed: a count that is looked at, nothing is read through it */
    if (__builtin_expect(atomic_load_explicit(&queue->parked, memory_order_relaxed) != 0, 0)) /* W1 */
        dti_wait_queue_wake(queue, from);
}

/* The seat's own thread: sleeps until condition(argument) or the deadline. True when the condition holds. */
bool dti_wait_queue_sleep(struct dti_wait_queue *queue, uint32_t waiter, uint32_t awaits,
                          struct dti_deadline *deadline, dti_condition *condition, void *argument);

/* The whole of waiting: look, spin, yield, sleep. True when the condition holds, false when the deadline came first. */
bool dti_wait_long(struct dti_wait_queue *queue, uint32_t waiter, uint32_t awaits,
                   struct dti_wait_policy *wait_policy, struct dti_deadline *deadline,
                   dti_condition *condition, void *argument); /* the slow half */
static inline bool dti_wait(struct dti_wait_queue *queue, uint32_t waiter, uint32_t awaits,
                            struct dti_wait_policy *wait_policy, struct dti_deadline *deadline,
                            dti_condition *condition, void *argument)
{
    if (condition(argument))
        return true;
    for (uint32_t look = 0; wait_policy->spin_ns != 0 && look < 64;
         look++) { /* before the clock is looked at at all */
        dti_pause();
        if (condition(argument))
            return true;
    }
    return dti_wait_long(queue, waiter, awaits, wait_policy, deadline, condition, argument);
}

#endif
