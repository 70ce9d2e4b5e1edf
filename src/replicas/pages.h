/* src/replicas/pages.h - on which NUMA node pages lie, asked of the kernel. */
#ifndef DTI_PAGES_H
#define DTI_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* node[i] = node of the page at address[i], or a negative errno (-ENOENT: not touched yet). Returns 0, or the errno with
 * which the kernel refuses to tell (as in some containers). */
int dti_pages_nodes(void **address, int *node, size_t count);

#endif
