/* src/replicas/pages.c - reading back where pages are. */
#include "replicas/pages.h"

#include <errno.h>
#include <numaif.h>

int dti_pages_nodes(void **address, int *node, size_t count)
{
    int kept_errno = errno;
    /* no target nodes: only asks */
    int refused = move_pages(0, count, address, NULL, node, 0) == 0 ? 0 : errno;
    errno = kept_errno;
    return refused;
}
