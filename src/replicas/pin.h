/* src/replicas/pin.h - binding the calling thread to PUs, and undoing it. */
#ifndef DTI_PIN_H
#define DTI_PIN_H

#include "base/base.h"
#include "replicas/mask.h"

/* -- The calling thread; SYSTEM with errno on failure -- */
ditto_status dti_affinity_get(struct dti_mask *mask);
ditto_status dti_pin_to(const struct dti_mask *pus); /* the kernel moves the thread among them */

/* -- The calling thread, where a refusal is no error: these return false and write no error record -- */
bool dti_affinity_try_get(struct dti_mask *mask);
bool dti_pin_try_to(const struct dti_mask *pus);

/* Sets the affinity where failure changes nothing: the old set is gone (the cpuset changed meanwhile), and the kernel
 * keeps the thread on a legal one. */
DTI_COMPANION void dti_affinity_restore(const struct dti_mask *mask);

#endif
