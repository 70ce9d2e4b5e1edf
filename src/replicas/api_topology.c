/* src/replicas/api_topology.c - include/ditto/topology.h: check, then call. */
#include "base/base.h"
#include "replicas/replicas.h"

#include <stdlib.h>

ditto_status ditto_topology_create(const ditto_topology_options *options, ditto_topology **out)
{
    ditto_topology_options known;
    DTI_ENTER();
    if (out == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "out is NULL: it receives the topology");
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_topology_options"));
    return dti_topology_read(&known, dti_context_saved_mask(), out);
}

void ditto_topology_destroy(ditto_topology *topology)
{
    if (topology != NULL)
        free(topology->pus);
    free(topology);
}

ditto_status ditto_topology_count(const ditto_topology *topology, ditto_topology_counts *out)
{
    DTI_ENTER();
    if (topology == NULL || out == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s is NULL", topology == NULL ? "topology" : "out");
    *out = topology->counts;
    return DITTO_OK;
}
