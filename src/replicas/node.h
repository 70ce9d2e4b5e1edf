/* src/replicas/node.h - NUMA nodes as the calling process may use them. */
#ifndef DTI_NODE_H
#define DTI_NODE_H

#include <stdbool.h>
#include <stdint.h>

int32_t dti_node_of_caller(void);    /* of the CPU that the calling thread is on; -1: the kernel does not tell */
int32_t dti_node_of_pu(uint32_t pu); /* operating-system number; -1: the kernel does not tell */
/* May this process have memory there, and is there any? Where the kernel does not tell: node 0 alone. */
bool dti_node_has_memory(uint32_t node);

#endif
