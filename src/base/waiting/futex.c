/* src/base/waiting/futex.c - see futex.h. */
#include "base/waiting/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t dti_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void dti_futex_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    int kept_errno = errno;
    struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
                              .tv_nsec = (long)(deadline_ns % 1000000000u) };
    /* FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, so a signal does not lengthen the wait. */
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
            deadline_ns == UINT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
    errno = kept_errno;
}

void dti_futex_wake(_Atomic uint32_t *word)
{
    int kept_errno = errno;
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
    errno = kept_errno;
}

_Atomic bool dti_fence_is_asymmetric;

static void register_membarrier(void)
{
    int kept_errno = errno;
    long failed = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    atomic_store_explicit(&dti_fence_is_asymmetric, failed == 0, memory_order_relaxed);
    errno = kept_errno;
}

void dti_fence_init(void)
{
    /* pthread_once also orders the store of the flag before every later use. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_membarrier);
}

/* A registration may not survive fork. It is made once more if the first call fails. */
static bool run_membarrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0 ||
           (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

void dti_fence_heavy(void)
{
    int kept_errno = errno;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&dti_fence_is_asymmetric, memory_order_relaxed) && !run_membarrier()) {
        /* The kernel refuses membarrier after it has allowed it (a seccomp filter was installed meanwhile).
         * From now on the light fence is a full fence. The sleep gives wakers that have just executed a light
         * fence time to finish. */
        atomic_store_explicit(&dti_fence_is_asymmetric, false, memory_order_seq_cst);
        _Atomic uint32_t word = 0; /* nobody wakes it: nanosleep would be a cancellation point */
        dti_futex_sleep(&word, 0, dti_now_ns() + 1000000);
    }
    errno = kept_errno;
}
