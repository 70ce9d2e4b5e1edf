/* include/ditto/limits.h - what the operating system allows this process. */
#ifndef DITTO_LIMITS_H
#define DITTO_LIMITS_H

#include <ditto/status.h>

DITTO_BEGIN

/** @defgroup ditto_limits_of_process Limits of the process
 *
 *  The limits decide where replicas and their memory can be. ditto_topology_counts has the number of PUs and
 *  the CPU quota.
 *  @{ */

/** When large mappings get pages of 2 MiB, from /sys/kernel/mm/transparent_hugepage/enabled. */
typedef enum ditto_huge_pages {
    DITTO_HUGE_PAGES_UNKNOWN = 0, /**< could not be read */
    DITTO_HUGE_PAGES_NEVER = 1,   /**< never */
    DITTO_HUGE_PAGES_MADVISE = 2, /**< after madvise */
    DITTO_HUGE_PAGES_ALWAYS = 3,  /**< always */
} ditto_huge_pages;

/** The memory policy of a thread, which it may have inherited, for example from numactl. See
 *  set_mempolicy(2). */
typedef enum ditto_numa_policy {
    DITTO_NUMA_POLICY_UNKNOWN = 0, /**< get_mempolicy is refused, as in default containers */

    /** No policy. Pages are on the node of the thread that touches them first. */
    DITTO_NUMA_POLICY_DEFAULT = 1,

    DITTO_NUMA_POLICY_PREFERRED = 2,  /**< MPOL_PREFERRED or MPOL_PREFERRED_MANY */
    DITTO_NUMA_POLICY_BIND = 3,       /**< MPOL_BIND */
    DITTO_NUMA_POLICY_INTERLEAVE = 4, /**< MPOL_INTERLEAVE */
    DITTO_NUMA_POLICY_LOCAL = 5,      /**< MPOL_LOCAL: like the default, but set */
    DITTO_NUMA_POLICY_OTHER = 6,      /**< a policy of a newer kernel */
} ditto_numa_policy;

/** The limits of the process. A list that does not fit ends in ",...". */
typedef struct ditto_limits {
    size_t struct_size; /**< set by DITTO_LIMITS_INIT */

    /** The PUs that the calling thread may use, for example "0-3,8", or "" if unknown. If a scope or another
     *  call of ditto has pinned the thread, the PUs before that. */
    char affinity[256];

    /** The NUMA nodes that the cpuset allows (Mems_allowed), or "" if unknown. */
    char memory_nodes[256];

    /** 0 if memory can be bound to nodes, else the errno of mbind (EPERM in containers, ENOSYS). */
    int32_t mbind_errno;

    /** 0 if the node of a page can be read, else the errno of move_pages. */
    int32_t move_pages_errno;

    /** The memory policy of the calling thread. The arenas of replicas do not follow it, unless mbind is
     *  refused and the thread works as replica 0. */
    ditto_numa_policy memory_policy;

    char policy_nodes[256]; /**< the nodes of the policy, for example "0-1"; "" if it has none */

    /** The number in /proc/sys/kernel/numa_balancing. 0 means off, and -1 unknown. */
    int32_t numa_balancing;

    ditto_huge_pages huge_pages; /**< when large mappings get huge pages */
} ditto_limits;

/** Initial value of ditto_limits. */
#define DITTO_LIMITS_INIT DITTO_OPTIONS_INIT(ditto_limits)

/** Reads the limits. A limit that cannot be read is reported as unknown.
 *
 *  @param out  [out] the limits. Start from DITTO_LIMITS_INIT
 *  @retval DITTO_OK           out is set
 *  @retval DITTO_ERR_INVALID  out is NULL, or its struct_size is not set
 *  @par Thread safety
 *  Any thread may call it.
 *  @par Cost
 *  The call makes about 20 system calls. */
DITTO_API DITTO_NODISCARD ditto_status ditto_limits_read(ditto_limits *out);

/** @} */

DITTO_END
#endif
