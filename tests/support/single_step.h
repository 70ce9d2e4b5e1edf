/* tests/support/single_step.h - a thread that is held after a chosen number of its machine instructions, so that every point of a race can be
 * tried, one after the other, and none is left to chance. x86-64 alone: its trap flag gives a signal after each instruction. */
#ifndef SINGLE_STEP_H
#define SINGLE_STEP_H

#include "support/support.h"

/* Sanitizers make thousands of instructions of each. */
#if defined(__x86_64__) && !SANITIZED
#define SINGLE_STEPS 1
#else
#define SINGLE_STEPS 0
#endif

#if SINGLE_STEPS
/* Calls function(argument), and after its first `steps` instructions hold(argument), in a signal handler on the same thread: only
 * what is safe there may be done. False: the function returned before. */
bool call_and_hold(unsigned long steps, void (*function)(void *argument), void (*hold)(void *argument),
                   void *argument);
#endif

#endif
