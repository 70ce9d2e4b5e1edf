/* tests/support/free_ports.h - lists of hosts on this machine, for clusters over TCP. */
#ifndef SUPPORT_FREE_PORTS_H
#define SUPPORT_FREE_PORTS_H

#include <stddef.h>
#include <stdint.h>

/* Writes a list like "127.0.0.1:20480,127.0.0.1:20481" of ports on which nothing listens. They are below
 * those that the system gives to connections, and different in each call of a process. */
void list_free_ports(uint32_t hosts, char *list, size_t capacity);

#endif
