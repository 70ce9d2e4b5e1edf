/* src/replicas/api_topology.c - the functions of include/ditto/topology.h and limits.h. */
#include "base/types/types.h"
#include "replicas/machine/limits.h"
#include "replicas/machine/topology.h"
#include "replicas/team/context.h"

#include <ditto/placement.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

ditto_status ditto_topology_create(const ditto_topology_options *options, ditto_topology **out)
{
    ditto_topology_options known;
    DTI_ENTER();
    if (out == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "out is NULL: give a pointer that receives the topology");
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_topology_options"));
    if ((int)known.part < DITTO_SWITCH_DEFAULT || known.part > DITTO_SWITCH_OFF)
        return DTI_FAIL(DITTO_ERR_RANGE, "part = %d is not a value of ditto_switch", (int)known.part);
    int kept_errno = errno; /* hwloc changes it */
    ditto_status status = dti_topology_read(&known, dti_context_saved_mask(), out);
    errno = kept_errno;
    return status;
}

ditto_status ditto_topology_destroy(ditto_topology *topology)
{
    DTI_UNCANCELLED();
    dti_topology_destroy(topology);
    return DITTO_OK;
}

uint32_t dti_topology_limit_replicas(const ditto_topology *topology, uint32_t replicas, uint32_t pus_of_each)
{
    const ditto_topology_counts *counts = &topology->counts;
    double quota = counts->cpu_quota / counts->num_parts; /* this process's share */
    double granted = ceil(quota / pus_of_each);
    if (granted > 0 && granted < replicas)
        replicas = (uint32_t)granted;
    return replicas < DITTO_MAX_REPLICAS ? replicas : DITTO_MAX_REPLICAS;
}

uint32_t dti_topology_default_num_replicas(const ditto_topology *topology)
{
    return dti_topology_limit_replicas(topology, topology->counts.cores, 1);
}

ditto_status ditto_topology_count(const ditto_topology *topology, ditto_topology_counts *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(topology, "topology"));
    DTI_TRY(dti_result_check(out, "ditto_topology_counts"));
    ditto_topology_counts found = topology->counts;
    found.default_num_replicas = dti_topology_default_num_replicas(topology);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

static ditto_status check_index(const ditto_topology *topology, const void *out, uint32_t index,
                                uint32_t count, const char *what)
{
    DTI_TRY(dti_not_null(topology, "topology"));
    DTI_TRY(dti_not_null(out, "out"));
    if (index >= count)
        return DTI_FAIL(DITTO_ERR_RANGE, "%s %u: the topology has %u", what, index, count);
    return DITTO_OK;
}

ditto_status ditto_topology_pu(const ditto_topology *topology, uint32_t index, ditto_pu *out)
{
    DTI_ENTER();
    DTI_TRY(check_index(topology, out, index, topology != NULL ? topology->counts.pus : 0, "PU index"));
    *out = topology->pus[index].is;
    return DITTO_OK;
}

ditto_status ditto_topology_node(const ditto_topology *topology, uint32_t index, ditto_node *out)
{
    DTI_ENTER();
    DTI_TRY(check_index(topology, out, index, topology != NULL ? topology->counts.machine_nodes : 0,
                        "NUMA node index"));
    *out = topology->nodes[index];
    return DITTO_OK;
}

ditto_status ditto_limits_read(ditto_limits *out)
{
    DTI_ENTER();
    ditto_limits found = DITTO_LIMITS_INIT;
    DTI_TRY(dti_result_check(out, "ditto_limits"));
    dti_limits_read("", dti_context_saved_mask(), &found);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}
