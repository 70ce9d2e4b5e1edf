/* src/base/waiting/fork.h - detects that this process is a fork of the one in which an object was made.
 *
 * Every process has a number that differs from the numbers of all processes from which it was forked. An
 * object that holds threads or locks keeps the number of the process that made it. In a process with another
 * number it cannot be used. The number is in a page that the kernel clears in a child process
 * (MADV_WIPEONFORK, Linux 4.14), so every fork is detected, however it was made. If the kernel refuses such a
 * page (an older kernel, a seccomp filter), a handler of pthread_atfork clears the number, and only forks by
 * fork() are detected. */
#ifndef DTI_FORK_H
#define DTI_FORK_H

#include "base/platform.h"

/* Returns the number of this process, or 0 if forks cannot be detected, because there was neither a page nor
 * memory for the handler. Any thread may call it. */
DTI_COMPANION uint32_t dti_process_number(void);

/* The address of the number of this process. It is constant after the first call of dti_process_number. */
extern _Atomic uint32_t *dti_process_word;

/* Returns true if this process is not the one whose number is `number`. It costs a load and a comparison. Any
 * thread may call it. */
static inline bool dti_process_differs(uint32_t number)
{
    /* relaxed: within a process the word changes only once, from 0, before any object keeps the number. */
    return atomic_load_explicit(dti_process_word, memory_order_relaxed) != number;
}

#endif
