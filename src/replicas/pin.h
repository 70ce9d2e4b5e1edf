/* src/replicas/pin.h - binding the calling thread to PUs, and undoing it. */
#ifndef DTI_PIN_H
#define DTI_PIN_H

#include <ditto/status.h>

#include <stdbool.h>

#define DTI_MAX_PUS 8192 /* operating-system numbers below this */

/* A set of PUs; by value, so that pinning around a run allocates nothing. */
struct dti_mask {
    unsigned long bits[DTI_MAX_PUS / (8 * sizeof(unsigned long))];
};
void dti_mask_clear(struct dti_mask *mask);
void dti_mask_add(struct dti_mask *mask, uint32_t pu); /* pu < DTI_MAX_PUS */
bool dti_mask_has(const struct dti_mask *mask, uint32_t pu);

/* -- The calling thread; SYSTEM with errno on failure -- */
ditto_status dti_affinity_get(struct dti_mask *mask);
ditto_status dti_pin_to(uint32_t pu);
/* Sets the affinity where failure changes nothing: the old set is gone (the cpuset changed meanwhile), and the kernel
 * keeps the thread on a legal one. */
void dti_affinity_restore(const struct dti_mask *mask);

#endif
