/* src/sync/target_reduction.c - reductions whose results go to a target instead of the callers' buffers. */
#include "base/numbers/checksum.h"
#include "sync/algorithms/collective.h"
#include "sync/algorithms/exchange.h"
#include "sync/pending/pending.h"
#include "sync/sync.h"

static struct dti_call call_of(const struct dti_target_reduction *targeted)
{
    struct dti_call call = { .name = targeted->name,
                             .object = targeted->object,
                             .hash = targeted->hash,
                             .root = targeted->op != 0 ? DTI_NO_ROOT : 0,
                             .pattern = DTI_PATTERN_TARGET,
                             .op = (uint8_t)targeted->op };
    if (targeted->items == 1) {
        call.count = targeted->item->count;
        call.element_bytes = ditto_dtype_bytes(targeted->item->dtype);
        call.dtype = (uint8_t)targeted->item->dtype;
        call.src = targeted->item->src;
        return call;
    }
    call.list = targeted->item;
    call.count = call.whole = targeted->items;
    for (size_t i = 0; i < targeted->items; i++)
        call.hash = dti_hash_word(call.hash, targeted->item[i].count << 8 | (size_t)targeted->item[i].dtype);
    return call;
}

ditto_status dti_target_reduction(struct dti_replica *self, const struct dti_target_reduction *targeted)
{
    struct dti_call call = call_of(targeted);
    struct dti_deadline deadline = dti_replica_deadline(self, self->timeout_ms);
    DTI_TRY(dti_check_outside_function(self, targeted->name));
    const char **calling = &dti_reported_state(self)->calling;
    *calling = targeted->target->calls ? targeted->name : NULL;
    ditto_status status = dti_collective(self, &call, targeted->target, &deadline);
    *calling = NULL;
    return status;
}

ditto_status dti_target_reduction_start(struct dti_replica *self, const struct dti_target_reduction *targeted,
                                        uint64_t *number)
{
    struct dti_call call = call_of(targeted);
    struct dti_deadline deadline = dti_replica_deadline(self, self->timeout_ms);
    DTI_TRY(dti_check_outside_function(self, targeted->name));
    return dti_pending_start(self, &call, targeted->target, &deadline, number);
}

ditto_status dti_target_reduction_wait(struct dti_replica *self, uint64_t number)
{
    struct dti_deadline deadline = dti_replica_deadline(self, self->timeout_ms);
    if (dti_replica_state_of(self)->pending->open[number % DITTO_MAX_PENDING] != number)
        return DITTO_OK;
    return dti_pending_wait(self, number, &deadline);
}

/* -- which replica finishes which elements -- */

/* Reports `replica` for the grains [from, to) of the row of all items. */
static void report_grains(struct dti_flow *flow, size_t from, size_t to, uint32_t replica,
                          dti_target_owner_fn *report, void *context)
{
    struct dti_segment segment;
    size_t base = 0;
    for (bool more = dti_flow_begin(flow, &segment); more && base < to;
         more = dti_flow_next(flow, &segment)) {
        size_t first, count;
        if (dti_flow_cut(flow, &segment, base, from, to, &first, &count))
            report(context, segment.index, first, count, replica);
        base += dti_flow_grains(flow, &segment);
    }
}

void dti_target_owners(struct dti_sync *sync, const struct dti_target_reduction *targeted,
                       dti_target_owner_fn *report, void *context)
{
    struct dti_call call = call_of(targeted);
    struct dti_call_size size = dti_call_size_of(&call, sync->num_replicas);
    struct dti_flow flow = {
        .self = &sync->replica[0], .sync = sync, .call = &call, .reduction = dti_flow_reduction(sync, &call)
    };
    if (dti_choose_algorithm(sync, &sync->tuning.given, &call, &size).algorithm == DTI_ALGORITHM_GROUPS &&
        dti_flow_is_combined(&call)) {
        dti_exchange_owners(&flow, report, context);
        return;
    }
    size_t grains = dti_flow_all_grains(&flow), from, to;
    for (uint32_t i = 0; i < sync->num_replicas; i++) {
        dti_tree_part(grains, sync->num_replicas, i, 1, &from, &to);
        report_grains(&flow, from, to, i, report, context);
    }
}
