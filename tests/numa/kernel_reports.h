/* tests/numa/kernel_reports.h - asks the kernel about nodes, CPUs and pages, and knows the condition under
 * which a test runs. The answers come from /proc, sysfs and move_pages(2), and not from ditto. */
#ifndef KERNEL_REPORTS_H
#define KERNEL_REPORTS_H

#include "support/support.h"

/* Returns true if the test runs under this condition: plain, no-mbind, interleave, bind-1 or cpuset. */
bool is_condition(const char *name);

/* Returns the node of the page at an address, or a negative number if the page is not present or the kernel
 * refuses the request. */
int node_of_page(const void *address);

/* Returns the node of a CPU, or -1 if sysfs lists none. */
int node_of_cpu(int cpu);

/* Returns true if `number` is in a list like 0-3,8. */
bool in_list(const char *list, int number);

/* Returns the text after the key at the beginning of a line, and after white space, in a file of /proc or
 * sysfs. The text ends with the line feed, and is valid until the thread's next call. Returns "" if the file
 * or the key is missing. */
const char *value_of(const char *path, const char *key);

/* Returns true if this process may use the memory of a node. */
bool may_use_memory_of(int node);

/* Returns the node that memory for a CPU should come from. It is the CPU's own node if this process may use
 * its memory, and otherwise the nearest node whose memory it may use. */
int memory_node_of_cpu(int cpu);

/* Takes the condition from the arguments of main, if there are any. Prints it, and the number of nodes whose
 * memory this process may use. */
void read_condition(int count, char **word);

#endif
