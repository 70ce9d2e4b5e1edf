/* tests/support/free_ports.c - lists of hosts on this machine. See free_ports.h. */
#include "support/free_ports.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_PORT = 20000, PORTS = 12000 };

static bool is_free(uint32_t port)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
    struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int on = 1, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_v6 = fd >= 0;
    if (!is_v6)
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int failed = is_v6 ? bind(fd, (struct sockaddr *)(void *)&any, sizeof any)
                       : bind(fd, (struct sockaddr *)(void *)&any4, sizeof any4);
    close(fd);
    return failed == 0;
}

void list_free_ports(uint32_t hosts, char *list, size_t capacity)
{
    static uint32_t next;
    size_t length = 0;
    if (next == 0)
        next = (uint32_t)getpid() * 64 % PORTS;
    for (uint32_t h = 0; h < hosts; h++) {
        do
            next = (next + 1) % PORTS;
        while (!is_free(FIRST_PORT + next));
        length += (size_t)snprintf(list + length, capacity - length, "%s127.0.0.1:%u", h > 0 ? "," : "",
                                   FIRST_PORT + next);
    }
}
