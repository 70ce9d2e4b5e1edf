/* src/base/waiting/lock.h - a lock that a thread takes with a limit of time, because functions of the
 * program, which may never return, run under it.
 *
 * pthread_mutex_timedlock has a limit on CLOCK_REALTIME, which jumps when the time of the machine is set, and
 * pthread_mutex_clocklock is unknown to the thread sanitizer of gcc 12. Neither leaves out the time in which
 * the process was stopped (deadline.h).
 *
 * Invariants  I1  The word is FREE, HELD, or AWAITED: held, and threads may sleep.
 *             I2  A thread that sleeps has stored AWAITED after it has seen the lock held. The holder that
 *                 finds AWAITED wakes one, and that one stores AWAITED when it takes the lock, for it does
 *                 not know whether others sleep. So none is forgotten, also if a waiter has given up.
 * Edges       K0 -> K1  The holder stores FREE with release, and the next one reads it with acquire.
 * Source      U. Drepper, "Futexes Are Tricky", 2011, mutex2.
 * Model       tests/model/lock.pml */
#ifndef DTI_LOCK_H
#define DTI_LOCK_H

#include "base/platform.h"

enum { DTI_LOCK_FREE, DTI_LOCK_HELD, DTI_LOCK_AWAITED };

/* Zero is a free lock. There is nothing to destroy. */
struct dti_lock {
    _Atomic uint32_t word;
    _Atomic uint32_t holders; /* how often it was taken. Only the holder writes it */
};

/* The slow parts of the functions below. */
bool dti_lock_await(struct dti_lock *lock, uint32_t timeout_ms);
void dti_lock_wake(struct dti_lock *lock);

/* Takes the lock. Returns false if one other thread has held it until the limit has passed. UINT32_MAX
 * (DITTO_FOREVER) means no limit. */
static inline bool dti_lock_take(struct dti_lock *lock, uint32_t timeout_ms)
{
    uint32_t free = DTI_LOCK_FREE;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &free, DTI_LOCK_HELD, memory_order_acquire,
                                                 memory_order_relaxed) && /* K1 */
        !dti_lock_await(lock, timeout_ms))
        return false;
    /* relaxed: a waiter only looks whether it changes. */
    atomic_store_explicit(&lock->holders, atomic_load_explicit(&lock->holders, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return true;
}

static inline void dti_lock_release(struct dti_lock *lock)
{
    if (atomic_exchange_explicit(&lock->word, DTI_LOCK_FREE, memory_order_release) ==
        DTI_LOCK_AWAITED) /* K0 */
        dti_lock_wake(lock);
}

#endif
