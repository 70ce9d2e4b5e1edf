/* src/replicas/machine/limits.h - the one place where limits of the process are asked for. */
#ifndef DTI_LIMITS_H
#define DTI_LIMITS_H

#include <ditto/limits.h>

#include "replicas/machine/mask.h"

/* `root` is put before every path: "" for this machine, a directory with a made-up proc and sys in tests. */

/* The nodes that the cpuset allows memory from; false: the kernel does not tell. */
bool dti_limits_mems(const char *root, struct dti_mask *mems);

/* All limits of the calling thread. `affinity`: the one to report in place of the present one; NULL: the present one. */
void dti_limits_read(const char *root, const struct dti_mask *affinity, ditto_limits *out);

/* Gives the calling thread the default policy, where it has inherited another: its stack and what it touches first are on
 * its own node then. Refused in some containers: nothing changes. */
void dti_policy_drop(void);

/* How many CPUs' worth of time the process's control groups grant. */

/* The least quota of the process's groups and all their ancestors, cgroup v1 (cpu.cfs_quota_us) and v2 (cpu.max), in
 * CPUs; 0: no limit, or none that can be read. hwloc and sched_getaffinity do not show it.
 * `root` is put before every path: "" for this machine, a directory with a made-up proc and sys in tests. */
double dti_cgroup_cpu_quota(const char *root);

#endif
