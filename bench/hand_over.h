/* bench/hand_over.h - measures the machine between two batches: the hand-over of a cache line, and steal
 * time. */
#ifndef HAND_OVER_H
#define HAND_OVER_H

#include <stdint.h>

/* Starts the second thread, if the process may use two PUs. It is called once, before any thread is bound. */
void hand_over_open(void);

/* Returns the nanoseconds in which a store of the process's first PU becomes visible on its second PU.
 * This is half of a round trip, in the fastest of five tries, because an interrupt makes a try longer.
 * Takes about 0.1 ms. Returns 0 if there is no second thread. Called by one thread. */
double hand_over_ns(void);

/* Returns the time, in clock ticks of all PUs, in which the host executed something else. It is 0 where the
 * kernel does not say it. */
uint64_t stolen_ticks(void);

/* Ends the second thread. */
void hand_over_close(void);

#endif
