/* tests/replicas/machine/machines.h - machines other than the one that runs the test: synthetic ones, and
 * recordings of emulated ones. */
#ifndef MACHINES_H
#define MACHINES_H

#include "support/support.h"

struct machine {
    const char *name;

    /* A description in hwloc's synthetic language, or the name of a recording in the folder machines. */
    const char *text;
};
enum {
    /* PUs are numbered as by Linux. First comes one PU of every core, and then their siblings. The other
     * machines with two PUs in a core are numbered in the same way. */
    MACHINE_SERVER,

    MACHINE_PACKAGES,
    MACHINE_SUB_NUMA,

    /* Each group of cores has a DRAM node and an HBM node. The HBM nodes 1, 3, ... have no PUs. */
    MACHINE_HBM,

    MACHINE_HBM_RECORDED,

    /* Node 1 has no PUs. Node 0 has two packages. */
    MACHINE_CPULESS,

    /* Node 1 has no memory. Its distance is 21 to node 2, and 31 to node 0. Package 1 has nodes 1 and 2. */
    MACHINE_MEMORYLESS,

    MACHINE_AMD,
    MACHINE_ONE_CORE,
    MACHINE_LARGEST,

    /* PUs 0 to 3 are slow, and PUs 4 to 7 are fast. */
    MACHINE_RK3588,
    MACHINES
};
extern const struct machine machines[MACHINES];

/* Create the topology of a machine, or of the part of it that the list of PUs `cpus` names (NULL for the
 * whole). `text` is that of struct machine. The functions fail the test if the topology cannot be created.
 * The caller destroys it. */
ditto_topology *machine_part(const char *text, const char *cpus);
ditto_topology *machine_topology(int machine);

/* Writes the file of a synthetic machine, or of this one if `synthetic` is NULL, whose cores are of several
 * kinds. kinds[0] has the PUs of the slowest kind, kinds[1] those of the next one, and so on, up to NULL. If
 * `ranked` is false, hwloc does not know which kinds are faster. The caller removes the file. */
void write_kinds(char path[SCRATCH_NAME], const char *synthetic, const char *const *kinds, bool ranked);

/* Creates the topology of such a machine. Only the `fastest_kinds` fastest kinds of the PUs `cpus` are in the
 * topology (0 and NULL: all). */
ditto_topology *machine_of_kinds(const char *synthetic, const char *const *kinds, bool ranked,
                                 const char *cpus, uint32_t fastest_kinds);

/* Returns the text of a placement without its title, check and end lines, for example "0: 0-3\n1: 4-7\n". The
 * text is in static storage. */
const char *placement_lines(const ditto_placement *placement);

#endif
