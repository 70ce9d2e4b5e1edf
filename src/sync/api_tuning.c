/* src/sync/api_tuning.c - the functions of include/ditto/tuning.h, and what
 * ditto_strategy_diagnose says about collectives. */
#include "replicas/team/team.h"
#include "sync/meeting/failure.h"
#include "sync/meeting/meeting.h"
#include "sync/plans/choose_algorithm.h"
#include "sync/sync.h"

#include <string.h>

ditto_status ditto_strategy_tuning(const ditto_strategy *strategy, ditto_tuning *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(strategy, "strategy"));
    DTI_TRY(dti_result_check(out, "ditto_tuning"));
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    dti_result_store(out, &dti_team_sync(dti_team_of(strategy))->tuning.given, sizeof *out);
    return DITTO_OK;
}

static const enum dti_pattern pattern_of[] = {
    [DITTO_OPERATION_BARRIER] = DTI_PATTERN_NOTHING,
    [DITTO_OPERATION_ALL_REDUCE] = DTI_PATTERN_ALL_REDUCE,
    [DITTO_OPERATION_REDUCE] = DTI_PATTERN_REDUCE,
    [DITTO_OPERATION_BROADCAST] = DTI_PATTERN_BROADCAST,
    [DITTO_OPERATION_REDUCE_SCATTER] = DTI_PATTERN_REDUCE_SCATTER,
    [DITTO_OPERATION_ALL_GATHER] = DTI_PATTERN_ALL_GATHER,
};

ditto_status ditto_strategy_choice(const ditto_strategy *strategy, ditto_operation operation, size_t bytes,
                                   ditto_implementation implementation, ditto_choice *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(strategy, "strategy"));
    DTI_TRY(dti_result_check(out, "ditto_choice"));
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    if (operation < DITTO_OPERATION_BARRIER || operation > DITTO_OPERATION_ALL_GATHER ||
        (unsigned)implementation > DITTO_IMPLEMENTATION_HIERARCHICAL)
        return DTI_FAIL(DITTO_ERR_RANGE,
                        "operation is %d and implementation is %d: one of them is not a value of its enum",
                        (int)operation, (int)implementation);
    const struct dti_team *team = dti_team_of(strategy);
    const struct dti_sync *sync = dti_team_sync(team);
    struct dti_call call = {
        .pattern = (uint8_t)pattern_of[operation],
        .implementation = (uint8_t)(implementation != 0 ? implementation : sync->defaults.implementation),
        .dtype = DITTO_U8,
        .count = operation == DITTO_OPERATION_REDUCE_SCATTER ? bytes / dti_team_num_replicas(team) : bytes,
        .element_bytes = 1
    };
    struct dti_call_size size = dti_call_size_of(&call, dti_team_num_replicas(team));
    struct dti_algorithm_choice choice = dti_choose_algorithm(sync, &sync->tuning.given, &call, &size);
    const struct dti_rounds *rounds = &sync->rounds[call.implementation];
    bool counted = dti_meets_by_counter(sync, &call),
         in_mailboxes = operation == DITTO_OPERATION_BARRIER || choice.algorithm == DTI_ALGORITHM_MAILBOXES;
    ditto_choice found = { 0 };
    found.algorithm = in_mailboxes ? (counted ? "counter" : dti_algorithm_names[DTI_ALGORITHM_MAILBOXES])
                                   : dti_algorithm_names[choice.algorithm];
    found.num_meetings = in_mailboxes ? 1 : 2;
    found.num_rounds = counted ? 1 : rounds->rounds;
    found.num_groups = !in_mailboxes && choice.algorithm == DTI_ALGORITHM_GROUPS ? sync->groups.groups : 1;
    found.streaming = !in_mailboxes && choice.streams;
    found.predicted_ns = found.num_meetings *
                         (counted
                              ? sync->tuning.costs.hop_ns[DTI_DISTANCE_CACHE] * dti_team_num_replicas(team)
                              : dti_rounds_ns(rounds, &sync->shape, &sync->tuning.costs));
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}

const char *dti_sync_diagnose(const struct dti_team *team)
{
    struct dti_text text = { dti_team_sync(team)->diagnosis, dti_diagnosis_bytes(dti_team_num_replicas(team)),
                             0 };
    dti_text_add(&text, "%u replicas, run %llu%s\n", dti_team_num_replicas(team),
                 (unsigned long long)dti_team_run_number(team), dti_team_is_stopped(team) ? ", stopped" : "");
    for (uint32_t i = 0; i < dti_team_num_replicas(team); i++) {
        const struct dti_replica_state *state = &dti_team_replica(team, i)->sync->state[i];
        /* All loads are relaxed, because the values may change meanwhile. The text is only a snapshot. */
        const char *name = atomic_load_explicit(&state->name, memory_order_relaxed);
        uint32_t number = atomic_load_explicit(&state->number, memory_order_relaxed);
        bool is_inside = atomic_load_explicit(&state->finished, memory_order_relaxed) != number;
        dti_text_add(&text, "replica %u: %s", i,
                     dti_replica_returned(dti_team_replica(team, i)) ? "returned from its function; " : "");
        if (name == NULL || !dti_is_in_last_run(dti_team_replica(team, i)->sync, i))
            dti_text_add(&text, "in no collective yet\n");
        else
            dti_text_add(&text, "%s %s #%u\n", is_inside ? "in" : "last in", name, number);
    }
    return dti_team_sync(team)->diagnosis;
}
