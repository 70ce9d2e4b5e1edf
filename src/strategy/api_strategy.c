/* src/strategy/api_strategy.c - the functions of include/ditto/strategy.h, which check their arguments and
 * context, and ditto_strategy_diagnose. */
#include "replicas/placement/placement.h"
#include "strategy/strategy.h"
#include "sync/hosts/hosts.h"
#include "sync/sync.h"
#include "vars/vars.h"

#include <errno.h>

ditto_status ditto_strategy_create(ditto_strategy_kind kind, const ditto_strategy_options *options,
                                   ditto_strategy **out)
{
    ditto_strategy_options known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_strategy_options"));
    const struct dti_strategy_kind *which = dti_strategy_kind_of(kind);
    if (which == NULL)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "%d is not a kind of strategy that can be created: use DITTO_MIRRORED, "
                        "DITTO_CENTRAL_STORAGE, DITTO_ONE_DEVICE or DITTO_PARAMETER_SERVER",
                        (int)kind);
    /* hwloc changes errno, and so does opening files that do not exist. */
    int kept_errno = errno;
    ditto_status status = dti_strategy_create(which, &known, out);
    errno = kept_errno;
    return status;
}

ditto_status ditto_strategy_destroy(ditto_strategy *strategy)
{
    DTI_ENTER();
    if (strategy == NULL)
        return DITTO_OK;
    if (dti_is_default(strategy))
        return DTI_FAIL(DITTO_ERR_CONTEXT, "the default strategy is the library's own: it is not destroyed");
    return dti_strategy_destroy(strategy);
}

ditto_status ditto_strategy_run(ditto_strategy *strategy, ditto_replica_fn function, void *user)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    if (function == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "function is NULL: give the function that every replica calls");
    return dti_strategy_run(strategy, function, user);
}

ditto_status ditto_strategy_scope_enter(ditto_strategy *strategy)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    return dti_scope_enter(strategy, false);
}

ditto_status ditto_strategy_scope_leave(ditto_strategy *strategy)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    return dti_scope_leave(strategy);
}

ditto_strategy_kind ditto_strategy_kind_of(const ditto_strategy *strategy)
{
    return strategy != NULL ? strategy->kind->kind : (ditto_strategy_kind)0;
}

uint32_t ditto_strategy_num_replicas(const ditto_strategy *strategy)
{
    if (strategy != NULL && strategy->workers != NULL)
        return strategy->hosts != NULL ? dti_ranges_replicas(&strategy->hosts->ranges)
                                       : strategy->placement->replicas;
    return strategy != NULL ? dti_team_all_replicas(dti_team_of(strategy)) : 0;
}

uint32_t ditto_strategy_num_local_replicas(const ditto_strategy *strategy)
{
    if (strategy != NULL && strategy->workers != NULL)
        return strategy->placement->replicas;
    return strategy != NULL ? dti_base_of(strategy)->num_replicas : 0;
}

uint32_t ditto_strategy_first_local_replica(const ditto_strategy *strategy)
{
    if (strategy != NULL && strategy->workers != NULL)
        return strategy->hosts != NULL ? strategy->hosts->first : 0;
    return strategy != NULL ? dti_team_first_replica(dti_team_of(strategy)) : 0;
}

static ditto_status check_devices(const ditto_strategy *strategy)
{
    DTI_TRY(dti_not_null(strategy, "strategy"));
    if (dti_is_default(strategy))
        return DTI_FAIL(
            DITTO_ERR_CONTEXT,
            "the default strategy has no devices, because its functions run on the calling thread");
    return DITTO_OK;
}

const ditto_placement *ditto_strategy_placement(const ditto_strategy *strategy)
{
    DTI_ENTER();
    return strategy != NULL && check_devices(strategy) == DITTO_OK ? strategy->placement : NULL;
}

/* Stores the nodes whose memory the replicas use, each once, in the order of their first replicas. Returns
 * their number. */
static uint32_t nodes_of_replicas(const ditto_strategy *strategy, uint32_t nodes[DITTO_MAX_REPLICAS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < dti_base_of(strategy)->num_replicas; i++) {
        uint32_t node = dti_placement_leader(strategy->placement, i)->is.memory_node, k = 0;
        while (k < count && nodes[k] != node)
            k++;
        if (k == count)
            nodes[count++] = node;
    }
    return count;
}

ditto_status ditto_strategy_parameter_devices(const ditto_strategy *strategy, uint32_t *nodes,
                                              uint32_t capacity, uint32_t *num_nodes)
{
    uint32_t found[DITTO_MAX_REPLICAS];
    DTI_ENTER();
    DTI_TRY(check_devices(strategy));
    DTI_TRY(dti_not_null(num_nodes, "num_nodes"));
    if (capacity > 0)
        DTI_TRY(dti_not_null(nodes, "nodes"));
    const struct dti_storage *storage = dti_vars_storage(strategy->base.team);
    found[0] = storage->node;
    *num_nodes = storage->parameters ? storage->num_nodes
                 : storage->central  ? 1
                                     : nodes_of_replicas(strategy, found);
    for (uint32_t k = 0; k < *num_nodes && k < capacity; k++)
        nodes[k] = storage->parameters ? storage->nodes[k] : found[k];
    return DITTO_OK;
}

ditto_status ditto_strategy_device_info(ditto_strategy *strategy, uint32_t replica, uint32_t device,
                                        ditto_device_info *out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_result_check(out, "ditto_device_info"));
    ditto_device_info found = DITTO_DEVICE_INFO_INIT;
    DTI_TRY(dti_strategy_device_info(strategy, replica, device, &found));
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_strategy_replica_info(ditto_strategy *strategy, uint32_t replica, ditto_replica_info *out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_result_check(out, "ditto_replica_info"));
    ditto_replica_info found = DITTO_REPLICA_INFO_INIT;
    DTI_TRY(dti_strategy_info(strategy, replica, &found));
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_strategy_describe(ditto_strategy *strategy, char *buffer, size_t capacity, size_t *length)
{
    struct dti_text text = { buffer, capacity, 0 };
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    if (capacity > 0)
        DTI_TRY(dti_not_null(buffer, "buffer"));
    DTI_TRY(dti_strategy_describe(strategy, &text));
    if (length != NULL)
        *length = text.length;
    return DITTO_OK;
}

const char *ditto_strategy_diagnose(ditto_strategy *strategy)
{
    if (strategy == NULL)
        return "no strategy";
    return strategy->workers != NULL ? dti_workers_diagnose(strategy->workers)
                                     : dti_sync_diagnose(dti_team_of(strategy));
}
