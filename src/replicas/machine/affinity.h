/* src/replicas/machine/affinity.h - binding the calling thread to PUs, and undoing it. */
#ifndef DTI_AFFINITY_H
#define DTI_AFFINITY_H

#include "base/base.h"
#include "replicas/machine/mask.h"

#include <stdbool.h>
#include <stdint.h>

/* -- The calling thread; SYSTEM with errno on failure -- */
ditto_status dti_affinity_get(struct dti_mask *mask);
ditto_status dti_pin_to(const struct dti_mask *pus); /* the kernel moves the thread among them */

/* -- The calling thread, where a refusal is no error: these return false and write no error record -- */
bool dti_affinity_try_get(struct dti_mask *mask);
bool dti_pin_try_to(const struct dti_mask *pus);

/* Sets the affinity where failure changes nothing: the old set is gone (the cpuset changed meanwhile), and the kernel
 * keeps the thread on a legal one. */
DTI_COMPANION void dti_affinity_restore(const struct dti_mask *mask);

/* How many of this process's ditto threads there are per PU: when to yield instead of spinning. */

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
