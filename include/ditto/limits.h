/* include/ditto/limits.h - what the operating system lets this process do, as far as it decides where replicas and their
 * memory are and how fast they wait. The number of PUs and the CPU quota stand in ditto_topology_counts. */
#ifndef DITTO_LIMITS_H
#define DITTO_LIMITS_H

#include <ditto/status.h>

DITTO_BEGIN

/** When large mappings get 2 MiB pages: /sys/kernel/mm/transparent_hugepage/enabled. */
typedef enum ditto_huge_pages {
    DITTO_HUGE_PAGES_UNKNOWN = 0,
    DITTO_HUGE_PAGES_NEVER = 1,
    DITTO_HUGE_PAGES_MADVISE = 2,
    DITTO_HUGE_PAGES_ALWAYS = 3,
} ditto_huge_pages;

/** The memory policy that the thread has, for instance from numactl: set_mempolicy(2). */
typedef enum ditto_memory_policy {
    DITTO_POLICY_UNKNOWN = 0, /**< get_mempolicy is refused, as in default containers */
    DITTO_POLICY_DEFAULT = 1, /**< none: pages come from the node of the thread that touches them first */
    DITTO_POLICY_PREFERRED = 2,
    DITTO_POLICY_BIND = 3,
    DITTO_POLICY_INTERLEAVE = 4,
    DITTO_POLICY_LOCAL = 5, /**< as default, asked for */
    DITTO_POLICY_OTHER = 6, /**< a newer kind */
} ditto_memory_policy;

/** Lists that do not fit end in ",...". */
typedef struct ditto_limits {
    char affinity[256];     /**< PUs of the calling thread (in a scope: before it was entered), "0-3,8" */
    char memory_nodes[256]; /**< NUMA nodes that the cpuset allows (Mems_allowed); "": not known */
    int32_t mbind_errno; /**< 0: memory can be bound to nodes; else why not (EPERM in containers, ENOSYS) */
    int32_t move_pages_errno;          /**< 0: the node of a page can be asked for; else why not */
    ditto_memory_policy memory_policy; /**< inherited; ditto's own memory does not follow it */
    char policy_nodes[256];            /**< its nodes, "0-1"; "" */
    int32_t numa_balancing;            /**< /proc/sys/kernel/numa_balancing; 0: off; -1: not known */
    ditto_huge_pages huge_pages;
} ditto_limits;

/** Any thread. Whatever can't be read is reported as unknown.
 *  @retval DITTO_ERR_INVALID  out is NULL
 *  Cost  a dozen system calls. */
DITTO_API ditto_status ditto_limits_read(ditto_limits *out);

DITTO_END
#endif
