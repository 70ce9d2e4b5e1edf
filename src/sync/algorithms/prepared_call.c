/* src/sync/algorithms/prepared_call.c - see prepared_call.h. */
#include "sync/algorithms/prepared_call.h"
#include "replicas/team/team.h"
#include "sync/algorithms/flow.h"

/* Returns the bytes that a reduction into a target writes. */
static size_t written_bytes(const struct dti_call *call, const struct dti_target *target)
{
    size_t bytes = 0;
    if (!dti_call_has_items(call))
        return call->count * call->element_bytes * target->copy_set[0].copies;
    for (size_t i = 0; i < call->count; i++)
        bytes += call->list[i].count * ditto_dtype_bytes(call->list[i].dtype) * target->copy_set[i].copies;
    return bytes;
}

struct dti_prepared_call dti_prepare_call(const struct dti_sync *sync, const ditto_tuning *tuning,
                                          const struct dti_call *call, const struct dti_target *target)
{
    struct dti_prepared_call prepared = { .call = call,
                                          .size = dti_call_size_of(call, dti_team_all_replicas(sync->team)) };
    if (target != NULL)
        prepared.size.all = written_bytes(call, target);
    prepared.choice = dti_choose_algorithm(sync, tuning, call, &prepared.size);
    prepared.reduction = dti_flow_reduction(sync, call);
    return prepared;
}
