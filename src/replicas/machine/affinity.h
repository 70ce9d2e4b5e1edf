/* src/replicas/machine/affinity.h - binds the calling thread to PUs, and counts the threads of teams and
 * producers on each PU. */
#ifndef DTI_AFFINITY_H
#define DTI_AFFINITY_H

#include <ditto/status.h>

#include "base/platform.h"
#include "replicas/machine/mask.h"

#include <stdbool.h>
#include <stdint.h>

/* -- For the calling thread. DITTO_ERR_SYSTEM with the errno if the kernel refuses the call -- */

ditto_status dti_affinity_get(struct dti_mask *mask);

/* Binds the thread to a set of PUs. The kernel may move it among them. */
ditto_status dti_pin_to(const struct dti_mask *pus);

/* Binds the thread, and stores its affinity before in *before. If the thread may use none of the PUs any
 * more, because the cpuset was changed or they are offline, it stays where it is, and *bound is false. The
 * kernel moves threads that are bound to such PUs in the same way. */
ditto_status dti_pin_if_allowed(const struct dti_mask *pus, struct dti_mask *before, bool *bound);

/* -- For the calling thread, where a refusal is no error. These return false and write no error record -- */

bool dti_affinity_try_get(struct dti_mask *mask);
bool dti_pin_try_to(const struct dti_mask *pus);

/* Restores an earlier affinity. It can fail if the cpuset has changed meanwhile, so that no PU of the set is
 * left. The kernel then keeps the thread on PUs that it may use. */
DTI_COMPANION void dti_affinity_restore(const struct dti_mask *mask);

/* -- Any thread of this process. `tid` is the kernel's number of the thread, or 0 for the calling one -- */

/* Returns the PU on which the thread ran last, or -1 if the kernel does not report it. */
int32_t dti_thread_pu(int32_t tid);

/* Returns false if the thread may run on other PUs than these, or on fewer. */
bool dti_thread_is_bound_to(int32_t tid, const struct dti_mask *pus);

/* -- Any thread, without locks -- */

/* These functions count the threads with which ditto works in this process, on each PU. The counts decide
 * whether a waiting thread yields instead of spinning. */

/* The PU of a thread that is not bound, such as a producer. */
#define DTI_NO_PU UINT32_MAX

void dti_load_add(uint32_t pu);
void dti_load_remove(uint32_t pu);

/* Returns the number of threads, of all strategies, that are bound to the PU. */
uint32_t dti_load_on(uint32_t pu);

/* Returns a number that changes whenever a count changes. An answer that depends on the counts is valid until
 * then. */
uint32_t dti_load_epoch(void);

/* Returns true if a thread on `pu` should let other threads run while it waits. This is so if
 *   - another thread is bound to the same PU,
 *   - some threads are not bound and there are more threads in all than `pus`, or
 *   - the CPU quota is below the number of threads (0 means that there is no quota). */
bool dti_load_is_oversubscribed(uint32_t pu, uint32_t pus, double cpu_quota);

#endif
