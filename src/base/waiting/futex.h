/* src/base/waiting/futex.h - the system calls under waiting: time, sleep, wake, and a fence that only the sleeper pays. */
#ifndef DTI_FUTEX_H
#define DTI_FUTEX_H

#include "base/platform.h"

#define DTI_NEVER UINT64_MAX /* a deadline that does not come */

uint64_t dti_now_ns(void); /* CLOCK_MONOTONIC */
/* A limit on waiting whose clock is read only once somebody really waits: a look at the clock costs as much as a tenth of
 * a barrier. */
struct dti_deadline {
    uint32_t timeout_ms; /* UINT32_MAX (DITTO_FOREVER): none */
    uint64_t at_ns;      /* 0: not asked yet */
};
uint64_t dti_deadline_at(struct dti_deadline *deadline); /* DTI_NEVER where there is none */

/* Sleeps while *word == expected, until woken, a signal, or the deadline (dti_now_ns's clock). May return early. */
void dti_futex_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);
void dti_futex_wake(_Atomic uint32_t *word);

/* The two sides of a store-then-load race between one that sleeps and one that wakes (Dekker's pattern):
 *     waker    store condition; dti_fence_light(); load "does anyone sleep?"
 *     sleeper  store "I sleep";  dti_fence_heavy(); load condition
 * At least one of the two loads sees the other's store. The waker's side is on every hot path, the sleeper's is about to
 * make a system call anyway: membarrier(2) puts the whole price on the sleeper. Where the kernel refuses it, the light
 * side is a full fence too. Source: asymmetric fences, P1202R5; membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED. */
void dti_fence_init(void); /* once before the first use; any thread, any number of times */
extern _Atomic bool dti_fence_is_asymmetric;
static inline void dti_fence_light(void)
{
    if (atomic_load_explicit(&dti_fence_is_asymmetric,
                             memory_order_relaxed)) /* constant after dti_fence_init */
        atomic_signal_fence(memory_order_seq_cst);
    else
        atomic_thread_fence(memory_order_seq_cst);
}
void dti_fence_heavy(void);

#endif
