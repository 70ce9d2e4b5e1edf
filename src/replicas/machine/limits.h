/* src/replicas/machine/limits.h - reads the memory nodes, memory policy, kernel settings and CPU quota of the
 * process, and gives a thread the default memory policy.
 *
 * `root` is put before every path that is read. It is "" for this machine. Tests give a directory with their
 * own proc and sys. */
#ifndef DTI_LIMITS_H
#define DTI_LIMITS_H

#include <ditto/limits.h>

#include "replicas/machine/mask.h"

/* Reads the NUMA nodes from which the cpuset allows memory. Returns false if the kernel does not report
 * them. */
bool dti_limits_mems(const char *root, struct dti_mask *mems);

/* Fills in *out for the calling thread. `affinity` is reported instead of the present affinity, unless it is
 * NULL. */
void dti_limits_read(const char *root, const struct dti_mask *affinity, ditto_limits *out);

/* Gives the calling thread the default memory policy if it has inherited another one. Its stack, and the
 * pages that it touches first, are then on its own node. Some containers refuse this. Nothing changes
 * then. */
void dti_policy_drop(void);

/* Returns the CPU time that the control groups of the process grant, in CPUs. It is the least quota of the
 * process's groups and of those of their ancestors that are visible, of cgroup v1 (cpu.cfs_quota_us) and v2
 * (cpu.max). 0 means that there is no limit, or none that can be read. hwloc and sched_getaffinity do not
 * show this limit. */
double dti_cgroup_cpu_quota(const char *root);

#endif
