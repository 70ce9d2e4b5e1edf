/* src/base/waiting/run_delay.h - how long a thread has waited for a PU. */
#ifndef DTI_RUN_DELAY_H
#define DTI_RUN_DELAY_H

#include <stdbool.h>
#include <stdint.h>

/* Adds to *ran_ns and *delayed_ns the time for which a thread of this process has run, and for which it could
 * have run but other threads had its PU. `tid` is the kernel's number of the thread. Returns false, without a
 * change, if the kernel does not say it (no CONFIG_SCHED_INFO, or the thread has ended). */
bool dti_run_delay_add(int32_t tid, uint64_t *ran_ns, uint64_t *delayed_ns);

#endif
