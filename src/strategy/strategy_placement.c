/* src/strategy/strategy_placement.c - places the replicas of a strategy on this machine as its options
 * say. */
#include "strategy/strategy.h"

static ditto_status check(const ditto_strategy_options *o)
{
    if (o->placement == NULL)
        return DITTO_OK;
    if (o->replicas != 0 || o->policy != DITTO_SPREAD || o->pus != NULL || o->num_pus != 0 ||
        o->per != DITTO_PER_SHAPE || o->placement_flags != 0)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "placement is set, and one of replicas, policy, pus, num_pus, per, "
                        "placement_flags too: the placement replaces all of them");
    return DITTO_OK;
}

static ditto_status make_placement(const ditto_strategy_options *o, const ditto_topology *machine_topology,
                                   ditto_placement **out)
{
    ditto_placement_options options = { .replicas = o->replicas,
                                        .policy = o->policy,
                                        .per = o->per,
                                        .pus = o->pus,
                                        .num_pus = o->num_pus,
                                        .flags = o->placement_flags };
    if (o->placement != NULL)
        return dti_placement_move(o->placement, machine_topology, out);
    if (o->replicas == 0 && o->num_pus == 0 && o->per == DITTO_PER_SHAPE)
        options.replicas = ditto_topology_default_replicas(machine_topology);
    /* If there are more replicas than PUs, replicas share PUs. */
    if (o->num_pus == 0)
        options.flags |= DITTO_PLACEMENT_SHARE;
    return dti_placement_make(machine_topology, &options, out);
}

ditto_status dti_strategy_make_placement(const ditto_strategy_options *o, ditto_topology_counts *machine,
                                         ditto_placement **out)
{
    ditto_topology *machine_topology;
    ditto_topology_options options = DITTO_TOPOLOGY_OPTIONS_INIT;
    DTI_TRY(check(o));
    DTI_TRY(dti_topology_read(&options, dti_context_saved_mask(), &machine_topology));
    *machine = machine_topology->counts;
    ditto_status status = make_placement(o, machine_topology, out);
    ditto_topology_destroy(machine_topology);
    return status;
}
