/* src/replicas/cgroup.h - how many CPUs' worth of time the process's control groups grant. */
#ifndef DTI_CGROUP_H
#define DTI_CGROUP_H

/* The least quota of the process's groups and all their ancestors, cgroup v1 (cpu.cfs_quota_us) and v2 (cpu.max), in
 * CPUs; 0: no limit, or none that can be read. hwloc and sched_getaffinity do not show it.
 * `root` is put before every path: "" for this machine, a directory with a made-up proc and sys in tests. */
double dti_cgroup_cpu_quota(const char *root);

#endif
