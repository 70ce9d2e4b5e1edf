/* src/strategy/kinds.c - the kinds of strategy that can be created, with their options. */
#include "strategy/strategy.h"

/* -- mirrored: variables have a copy on each node -- */

static ditto_status check_without_node(ditto_strategy_options *o)
{
    if (o->parameter_node != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "parameter_node says where central storage keeps its variables: this strategy "
                        "keeps them with its replicas");
    return DITTO_OK;
}

static ditto_status settle_with_replicas(ditto_strategy *strategy, const ditto_strategy_options *o)
{
    (void)strategy;
    (void)o;
    return DITTO_OK;
}

const struct dti_strategy_kind dti_mirrored_strategy = { DITTO_MIRRORED, "mirrored", check_without_node,
                                                         settle_with_replicas };

/* -- one device: one replica -- */

static ditto_status check_one(ditto_strategy_options *o)
{
    DTI_TRY(check_without_node(o));
    if (o->replicas > 1 || o->num_pus > 1 || o->per != DITTO_PER_SHAPE ||
        (o->placement != NULL && ditto_placement_replicas(o->placement) != 1))
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "one device has one replica: replicas, pus or the placement ask for more");
    if (o->placement == NULL && o->pus == NULL)
        o->replicas = 1;
    return DITTO_OK;
}

const struct dti_strategy_kind dti_one_device_strategy = { DITTO_ONE_DEVICE, "one device", check_one,
                                                           settle_with_replicas };

/* -- central storage: variables have one copy, on one node -- */

static ditto_status check_any(ditto_strategy_options *o)
{
    (void)o;
    return DITTO_OK;
}

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
    strategy->base.parameter_node = o->parameter_node != NULL ? *o->parameter_node : default_node(strategy);
    if (!dti_node_has_memory(strategy->base.parameter_node))
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "parameter_node %u is no NUMA node whose memory this process may use",
                        strategy->base.parameter_node);
    return DITTO_OK;
}

const struct dti_strategy_kind dti_central_strategy = { DITTO_CENTRAL_STORAGE, "central storage", check_any,
                                                        settle_central };

const struct dti_strategy_kind *dti_strategy_kind_of(ditto_kind kind)
{
    static const struct dti_strategy_kind *const kinds[] = { &dti_mirrored_strategy, &dti_central_strategy,
                                                             &dti_one_device_strategy };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i]->kind == kind)
            return kinds[i];
    return NULL;
}
