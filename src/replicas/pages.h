/* src/replicas/pages.h - on which NUMA node pages lie, asked of the kernel. */
#ifndef DTI_PAGES_H
#define DTI_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* node[i] = node of the page at address[i], or a negative errno (-ENOENT: not touched yet). False: the kernel does not
 * tell (move_pages refused, as in some containers). */
_Bool dti_pages_nodes(void **address, int *node, size_t count);

#endif
