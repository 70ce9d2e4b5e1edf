/* tests/replicas/machine/machines.h - machines that are not here: synthetic ones, and recordings of emulated ones. */
#ifndef MACHINES_H
#define MACHINES_H

#include "support/support.h"

struct machine {
    const char *name;
    const char *
        text; /* hwloc's synthetic language, or the name of a recording in tests/replicas/machine/machines/ */
};
enum {
    MACHINE_SERVER, /* PUs numbered as Linux does: first those of all cores, then their siblings */
    MACHINE_PACKAGES,
    MACHINE_SUB_NUMA,
    MACHINE_HBM, /* each node has DRAM and HBM beside it: nodes 1, 3, ... have no PUs of their own */
    MACHINE_HBM_RECORDED,
    MACHINE_CPULESS, /* node 1 has no PUs; node 0 has two packages */
    MACHINE_MEMORYLESS, /* node 1 has no memory, is as near to node 0 as to node 2; package 1 has nodes 1 and 2 */
    MACHINE_AMD,
    MACHINE_ONE_CORE,
    MACHINE_LARGEST,
    MACHINES
};
extern const struct machine machines[MACHINES];

/* The machine, or the part of it that `cpus` names; fails the test if it can't be made. The caller's to destroy. */
ditto_topology *machine_part(const char *text, const char *cpus);
ditto_topology *machine_topology(int machine);

/* Text of a placement without its title, check and end lines: "0: 0-3\n1: 4-7\n". Static storage. */
const char *placement_lines(const ditto_placement *placement);

#endif
