/* src/base/waiting/futex.h - clock, futex sleep and wake-up, and a fence that costs only the sleeper. */
#ifndef DTI_FUTEX_H
#define DTI_FUTEX_H

#include "base/platform.h"

/* Returns the time of CLOCK_MONOTONIC. */
uint64_t dti_now_ns(void);

/* Sleeps while *word == expected, until a wake-up, a signal or the deadline (in the time of dti_now_ns, or
 * UINT64_MAX for none). May return early. errno does not change. */
void dti_futex_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);

/* Wakes one thread that sleeps on the word. errno does not change. */
void dti_futex_wake(_Atomic uint32_t *word);

/* The two fences of a store-then-load race between a thread that wakes and a thread that sleeps (Dekker's
 * pattern):
 *     waker    store condition;     dti_fence_light(); load "does a thread sleep?"
 *     sleeper  store "I sleep";     dti_fence_heavy(); load condition
 * At least one of the two loads sees the store of the other thread. The waker's fence is on every hot path,
 * while the sleeper is about to make a system call anyway. With membarrier(2) the sleeper pays the whole
 * cost. If the kernel refuses membarrier, the light fence is a full fence too.
 * Source: asymmetric fences, P1202R5; membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED. */

/* Must be called before the fences are used. Any thread may call it, any number of times. */
void dti_fence_init(void);

/* True when membarrier is available. It is constant after dti_fence_init, unless the kernel refuses
 * membarrier later. */
extern _Atomic bool dti_fence_is_asymmetric;

static inline void dti_fence_light(void)
{
    /* relaxed: the flag guards no other data. */
    if (atomic_load_explicit(&dti_fence_is_asymmetric, memory_order_relaxed))
        atomic_signal_fence(memory_order_seq_cst);
    else
        atomic_thread_fence(memory_order_seq_cst);
}
void dti_fence_heavy(void);

#endif
