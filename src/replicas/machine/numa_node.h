/* src/replicas/machine/numa_node.h - asks the kernel on which NUMA nodes PUs and pages are, and which nodes
 * have memory.
 *
 * Nodes and PUs have operating-system numbers here. */
#ifndef DTI_NUMA_NODE_H
#define DTI_NUMA_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the node of the CPU on which the calling thread runs, or -1 if the kernel does not report it. */
int32_t dti_node_of_caller(void);

/* Returns the node of a PU, or -1 if the kernel does not report it. */
int32_t dti_node_of_pu(uint32_t pu);

/* Returns true if the node has memory and this process may use it. If the kernel does not report which nodes
 * the process may use, the answer is true for node 0 only. */
bool dti_node_has_memory(uint32_t node);

/* Sets node[i] to the node of the page at address[i], or to a negative errno. -ENOENT means that the page has
 * not been touched yet. Returns 0, or the errno with which the kernel refuses the call, as in some
 * containers. */
int dti_pages_nodes(void **address, int *node, size_t count);

#endif
