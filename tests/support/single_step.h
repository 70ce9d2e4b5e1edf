/* tests/support/single_step.h - holds a thread after a chosen number of its machine instructions. With it
 * a test can try every point of a race in turn. It works only on x86-64, where the trap flag raises a signal
 * after each instruction. */
#ifndef SINGLE_STEP_H
#define SINGLE_STEP_H

#include "support/support.h"

/* It is 0 with a sanitizer, which makes the number of steps to try too large. */
#if defined(__x86_64__) && !SANITIZED
#define SINGLE_STEPS 1
#else
#define SINGLE_STEPS 0
#endif

#if SINGLE_STEPS
/* Calls hold(argument) on this thread, `steps` instructions from here, unless dont_hold is called before.
 * `hold` runs in a signal handler, so it may only do what is safe there. */
void hold_after(unsigned long steps, void (*hold)(void *argument), void *argument);

/* Returns whether hold was called. It is not called after this. */
bool dont_hold(void);

/* Calls function(argument), and calls hold(argument) after the first `steps` instructions of it. `hold` runs
 * in a signal handler on the same thread, so it may only do what is safe there. Returns false if the function
 * returned before `hold` was called. */
bool call_and_hold(unsigned long steps, void (*function)(void *argument), void (*hold)(void *argument),
                   void *argument);
#endif

#endif
