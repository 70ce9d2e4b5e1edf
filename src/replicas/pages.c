/* src/replicas/pages.c - reading back where pages are. */
#include "replicas/pages.h"

#include <errno.h>
#include <numaif.h>

_Bool dti_pages_nodes(void **address, int *node, size_t count)
{
    int kept_errno = errno;
    long failed = move_pages(0, count, address, NULL, node, 0); /* no target nodes: only asks */
    errno = kept_errno;
    return failed == 0;
}
