/* src/replicas/machine/numa_node.h - NUMA nodes as the calling process may use them. */
#ifndef DTI_NUMA_NODE_H
#define DTI_NUMA_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

int32_t dti_node_of_caller(void); /* of the CPU that the calling thread is on; -1: the kernel does not tell */
int32_t dti_node_of_pu(uint32_t pu); /* operating-system number; -1: the kernel does not tell */
/* May this process have memory there, and is there any? Where the kernel does not tell: node 0 alone. */
bool dti_node_has_memory(uint32_t node);

/* On which NUMA node pages lie, asked of the kernel. */

/* node[i] = node of the page at address[i], or a negative errno (-ENOENT: not touched yet). Returns 0, or the errno with
 * which the kernel refuses to tell (as in some containers). */
int dti_pages_nodes(void **address, int *node, size_t count);

#endif
