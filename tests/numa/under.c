/* tests/numa/under.c - runs a program under a condition that the program cannot undo.
 *     under no-mbind PROGRAM...     mbind, set_mempolicy and get_mempolicy are refused, as in containers
 *     under interleave PROGRAM...   the memory policy is that of numactl --interleave=all
 *     under bind-1 PROGRAM...       the memory policy is that of numactl --membind=1 */
#include "support/support.h"

#include <numaif.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set_condition(const char *name)
{
    static const uint32_t calls[] = { SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy };
    unsigned long all_nodes = 0, node_1 = 2;
    if (strcmp(name, "no-mbind") == 0)
        return refuse_system_calls(calls, 3) ? 0 : -1;
    if (strcmp(name, "bind-1") == 0)
        return (int)set_mempolicy(MPOL_BIND, &node_1, 64);
    if (strcmp(name, "interleave") != 0)
        return -1;
    for (int node = 0; node < 64; node++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
        all_nodes |= (unsigned long)(access(path, F_OK) == 0) << node;
    }
    return (int)set_mempolicy(MPOL_INTERLEAVE, &all_nodes, 64);
}

int main(int count, char **word)
{
    if (count < 3 || set_condition(word[1]) != 0) {
        fprintf(stderr, "under: %s is not possible on this machine\n", count > 1 ? word[1] : "nothing");
        return 1;
    }
    execv(word[2], word + 2);
    perror(word[2]);
    return 1;
}
