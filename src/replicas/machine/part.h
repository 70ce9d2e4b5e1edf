/* src/replicas/machine/part.h - the part of this machine's PUs that this process takes, if a launcher of MPI
 * programs has started several processes on the machine.
 *
 * Launchers bind processes to different PUs, or let all of them use all PUs (MPICH by default, Open MPI with
 * --bind-to none). In the second case, strategies of different processes would put their replicas on the same
 * PUs, because none knows of the others. */
#ifndef DTI_PART_H
#define DTI_PART_H

#include "replicas/machine/topology.h"

/* Part `index` of `parts`. There is one part if no variable says anything else. */
struct dti_part {
    uint32_t index;
    uint32_t parts;

    /* The name of the environment variable that has the index, or NULL if there is one part. */
    const char *source;

    /* True if the user has set it (DITTO_PART=1/4), and not a launcher. */
    bool asked;
};

/* Reads DITTO_PART, or else the variables of launchers: those of Open MPI, those of MPICH and Intel MPI, and
 * those of Slurm. Variables of launchers that contradict themselves are ignored. Fails with INVALID if
 * DITTO_PART is not valid. */
ditto_status dti_part_read(struct dti_part *out);

/* Chooses the PUs of a part of all PUs of the topology. As long as there are enough cores, a part has whole
 * cores. If there are only enough PUs, it has whole PUs. In both cases the parts are as equal as possible,
 * and neighbours in the mesh. If there are more parts than PUs, a part has one PU, which other parts have
 * too, and true is returned. If a machine of one NUMA node has several kinds of cores, they are dealt out one
 * by one: the parts then have nearly equal shares of each kind, and are not neighbours. Pure. */
bool dti_part_choose(const ditto_topology *topology, const struct dti_part *part, struct dti_mask *pus);

#endif
