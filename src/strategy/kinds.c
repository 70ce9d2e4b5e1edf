/* src/strategy/kinds.c - the kinds of strategy that can be created, with their options. */
#include "replicas/machine/numa_node.h"
#include "strategy/strategy.h"

/* -- mirrored: variables have a copy on each node -- */

static ditto_status settle_with_replicas(ditto_strategy *strategy, const ditto_strategy_options *o)
{
    (void)strategy;
    (void)o;
    return DITTO_OK;
}

const struct dti_strategy_kind dti_mirrored_strategy = { .kind = DITTO_MIRRORED,
                                                         .name = "mirrored",
                                                         .settle = settle_with_replicas };

/* -- one device: one replica -- */

const struct dti_strategy_kind dti_one_device_strategy = {
    .kind = DITTO_ONE_DEVICE, .name = "one device", .has_one_replica = true, .settle = settle_with_replicas
};

/* -- central storage: variables have one copy, on one node -- */

/* Returns the node of the thread that made the strategy. If there is only one replica, or the node is not
 * known or has no memory, returns the node of replica 0. */
static uint32_t default_node(const ditto_strategy *strategy)
{
    const struct dti_team *team = strategy->base.team;
    bool known = strategy->caller_node >= 0 && dti_node_has_memory((uint32_t)strategy->caller_node);
    return dti_team_num_replicas(team) > 1 && known ? (uint32_t)strategy->caller_node
                                                    : dti_team_replica(team, 0)->pu.memory_node;
}

static ditto_status settle_central(ditto_strategy *strategy, const ditto_strategy_options *o)
{
    strategy->base.central = true;
    strategy->base.parameter_node = o->has_parameter_node ? o->parameter_node : default_node(strategy);
    if (!dti_node_has_memory(strategy->base.parameter_node))
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "parameter_node %u is no NUMA node whose memory this process may use",
                        strategy->base.parameter_node);
    return DITTO_OK;
}

const struct dti_strategy_kind dti_central_strategy = { .kind = DITTO_CENTRAL_STORAGE,
                                                        .name = "central storage",
                                                        .has_parameter_node = true,
                                                        .settle = settle_central };

const struct dti_strategy_kind *dti_strategy_kind_of(ditto_strategy_kind kind)
{
    static const struct dti_strategy_kind *const kinds[] = { &dti_mirrored_strategy, &dti_central_strategy,
                                                             &dti_one_device_strategy };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i]->kind == kind)
            return kinds[i];
    return NULL;
}
