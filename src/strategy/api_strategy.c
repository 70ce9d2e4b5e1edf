/* src/strategy/api_strategy.c - the functions of include/ditto/strategy.h, and ditto_strategy_diagnose
 * of include/ditto/tuning.h. They check their arguments and context. */
#include "replicas/placement/placement.h"
#include "replicas/team/servers.h"
#include "replicas/team/stopping.h"
#include "replicas/team/turn.h"
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

ditto_status ditto_strategy_interrupt(ditto_strategy *strategy)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(strategy, "strategy"));
    struct dti_team *team = dti_team_of(strategy);
    if (dti_team_forked(team))
        return dti_fail_forked();
    if (strategy->workers != NULL)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "a strategy of kind DITTO_PARAMETER_SERVER executes no runs: "
                                               "use ditto_coordinator_interrupt");
    ditto_error kept = *dti_error_get();
    DTI_FAIL(DITTO_ERR_CANCELLED, "the run was interrupted (ditto_strategy_interrupt)");
    dti_team_interrupt(team);
    dti_error_set(&kept);
    return DITTO_OK;
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

uint32_t ditto_strategy_num_replicas(const ditto_strategy *strategy)
{
    if (strategy != NULL && strategy->workers != NULL)
        return strategy->placement->replicas;
    return strategy != NULL ? dti_team_all_replicas(dti_team_of(strategy)) : 0;
}

ditto_status ditto_strategy_info(const ditto_strategy *strategy, ditto_strategy_properties *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(strategy, "strategy"));
    DTI_TRY(dti_result_check(out, "ditto_strategy_properties"));
    bool has_workers = strategy->workers != NULL;
    ditto_strategy_properties found = {
        .kind = strategy->kind->kind,
        .num_replicas = ditto_strategy_num_replicas(strategy),
        .num_local_replicas = has_workers ? strategy->placement->replicas
                                          : dti_base_of(strategy)->num_replicas,
        .first_local_replica = has_workers ? 0 : dti_team_first_replica(dti_team_of(strategy)),
        .placement = dti_is_default(strategy) ? NULL : strategy->placement,
        .parameter_nodes = strategy->node,
        .num_parameter_nodes = strategy->num_nodes,
        .tuning = has_workers ? NULL : &dti_team_sync(dti_team_of(strategy))->tuning.given,
    };
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

ditto_status ditto_strategy_replica_info(ditto_strategy *strategy, uint32_t replica, uint32_t device,
                                         ditto_replica_info *out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_result_check(out, "ditto_replica_info"));
    ditto_replica_info found = DITTO_REPLICA_INFO_INIT;
    DTI_TRY(dti_strategy_info(strategy, replica, device, &found));
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
