/* src/replicas/load.h - how many of this process's ditto threads there are per PU: when to yield instead of spinning. */
#ifndef DTI_LOAD_H
#define DTI_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define DTI_NO_PU UINT32_MAX /* a thread that floats: a producer, or one that is not pinned */

/* -- Any thread; lock-free -- */
void dti_load_add(uint32_t pu);
void dti_load_remove(uint32_t pu);
uint32_t dti_load_on(uint32_t pu); /* threads of all strategies that are bound to it */
/* Changes whenever a count changes, so that an answer can be kept until then. */
uint32_t dti_load_epoch(void);
/* True when a thread on `pu` should let others run while it waits: it shares its PU, threads float and there are more of
 * them all than `pus`, or the CPU quota (0: none) is below their number. */
bool dti_load_crowded(uint32_t pu, uint32_t pus, double cpu_quota);

#endif
