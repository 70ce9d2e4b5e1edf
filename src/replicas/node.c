/* src/replicas/node.c - see node.h. */
#include "replicas/node.h"

#include <limits.h>
#include <numaif.h>
#include <sched.h>

#define MOST_NODES 4096

int32_t dti_node_of_caller(void)
{
    unsigned cpu, node;
    return getcpu(&cpu, &node) == 0 ? (int32_t)node : -1;
}

bool dti_node_has_memory(uint32_t node)
{
    enum { BITS = sizeof(unsigned long) * CHAR_BIT };
    unsigned long allowed[MOST_NODES / BITS] = { 0 };
    if (node >= MOST_NODES)
        return false;
    if (get_mempolicy(NULL, allowed, MOST_NODES, NULL, MPOL_F_MEMS_ALLOWED) != 0)
        return node == 0;
    return (allowed[node / BITS] & 1ul << node % BITS) != 0;
}
