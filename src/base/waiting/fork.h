/* src/base/waiting/fork.h - noticing that this process is a fork of the one in which something was made.
 *
 * Every process has a number that differs from the numbers of all processes from which it was forked.
 * An object that holds threads or locks keeps the number of the process that made it, and is dead in a
 * process with another number. The number stands in a page that the kernel clears in a child
 * (MADV_WIPEONFORK, Linux 4.14), so that a fork is noticed however it was made. Where the kernel refuses that
 * (a seccomp filter, an older kernel), a handler of pthread_atfork clears it, and only forks by fork() are
 * noticed. */
#ifndef DTI_FORK_H
#define DTI_FORK_H

#include "base/platform.h"

/* Returns the number of this process, or 0 if there was no memory for the page and for the handler. Any
 * thread. */
DTI_COMPANION uint32_t dti_process_number(void);

/* Whether this process is another one than the one that was given `number`. Any thread. It costs a load and a
 * comparison. */
extern DTI_COMPANION _Atomic uint32_t
    *dti_process_word; /* constant after the first call of dti_process_number */
static inline bool dti_process_differs(uint32_t number)
{
    /* relaxed: within a process the word changes only once, from 0, and before anything keeps a number. */
    return atomic_load_explicit(dti_process_word, memory_order_relaxed) != number;
}

#endif
