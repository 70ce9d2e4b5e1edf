/* src/replicas/machine/numa_node.c - see numa_node.h. */
#include "replicas/machine/numa_node.h"
#include "replicas/machine/limits.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

int32_t dti_node_of_caller(void)
{
    unsigned cpu, node;
    return getcpu(&cpu, &node) == 0 ? (int32_t)node : -1;
}

/* libnuma keeps the PUs of each node when it is first asked for them, without a lock. So it is asked here,
 * once, and later calls of several threads only read. */
static void read_all_nodes(void)
{
    struct bitmask *pus = numa_allocate_cpumask();
    for (int node = 0; pus != NULL && node <= numa_max_node(); node++)
        (void)numa_node_to_cpus(node, pus);
    numa_free_cpumask(pus);
}

int32_t dti_node_of_pu(uint32_t pu)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (numa_available() < 0)
        return -1;
    pthread_once(&once, read_all_nodes);
    return numa_node_of_cpu((int)pu);
}

/* Reads text files of the kernel, because they can be read even if the mempolicy calls are refused. */
bool dti_node_has_memory(uint32_t node)
{
    struct dti_mask allowed, with_memory;
    char list[4096];
    if (node >= DTI_MAX_NODES || !dti_limits_mems("", &allowed))
        return node == 0;
    if (dti_read_file("/sys/devices/system/node/has_memory", list, sizeof list) &&
        dti_mask_parse(list, strcspn(list, "\n"), &with_memory) && !dti_mask_has(&with_memory, node))
        return false;
    return dti_mask_has(&allowed, node);
}

int dti_pages_nodes(void **address, int *node, size_t count)
{
    int kept_errno = errno;
    /* Without target nodes, move_pages only reports where the pages are. */
    int error_number = move_pages(0, count, address, NULL, node, 0) == 0 ? 0 : errno;
    errno = kept_errno;
    return error_number;
}
