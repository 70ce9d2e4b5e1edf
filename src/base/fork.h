/* src/base/fork.h - noticing that this process is a fork of the one in which something was made.
 *
 * Every process has a number that differs from the numbers of all processes from which it was forked.
 * Whatever holds threads or locks keeps the number of the process that made it, and is dead where the numbers
 * differ. The number stands in a page that the kernel clears in a child (MADV_WIPEONFORK, Linux 4.14), so
 * that a fork is noticed however it was made. Where the kernel refuses that (a seccomp filter, an older
 * kernel), a handler of pthread_atfork clears it, and only forks by fork() are noticed. */
#ifndef DTI_FORK_H
#define DTI_FORK_H

#include "base/atomics.h"
#include "base/companion.h"

/* The number of this process. 0: neither the page nor the handler could be had (no memory). Any thread. */
DTI_COMPANION uint32_t dti_process_number(void);

/* Whether this process is not the one that `number` was given in. Any thread; a load and a comparison. */
extern DTI_COMPANION _Atomic uint32_t *dti_process_word; /* constant after the first call of dti_process_number */
static inline bool dti_process_differs(uint32_t number)
{
    /* relaxed: within a process the word changes only from 0, and before anything is made that
     * keeps a number */
    return atomic_load_explicit(dti_process_word, memory_order_relaxed) != number;
}

#endif
