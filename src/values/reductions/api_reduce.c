/* src/values/reductions/api_reduce.c - the functions of include/ditto/reduce.h, which check their arguments
 * and context. */
#include "base/numbers/checksum.h"
#include "base/types/convert.h"
#include "replicas/team/servers.h"
#include "replicas/team/turn.h"
#include "sync/hosts/cross.h"
#include "values/reductions/reductions.h"
#include "values/values.h"

static ditto_status check_call(const ditto_strategy *strategy, const void *out)
{
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_context_check_cross(dti_team_of(strategy)));
    return dti_team_check_usable(dti_team_of(strategy));
}

static ditto_status check(const ditto_strategy *strategy, const ditto_value *value, const void *out,
                          struct dti_gates *held)
{
    DTI_TRY(check_call(strategy, out));
    return dti_value_hold_own(value, strategy, "value", held);
}

/* A call that reads a value. One that is the same for all replicas is read on each host alone. An error is
 * then not that of the others. */
struct reading {
    ditto_strategy *strategy;
    uint64_t begin;
    bool alone;
};

static struct reading begin_reading(ditto_strategy *strategy)
{
    return (struct reading){ strategy, dti_cross_begin(dti_team_of(strategy)), false };
}

static ditto_status check_reading(struct reading *reading, const ditto_value *value, const void *out,
                                  struct dti_gates *held)
{
    DTI_TRY(check(reading->strategy, value, out, held));
    reading->alone = dti_is_read_alone(value);
    return DITTO_OK;
}

static ditto_status end_reading(const struct reading *reading, ditto_status status)
{
    return reading->alone ? status : dti_cross_tell(dti_team_of(reading->strategy), reading->begin, status);
}

static ditto_status reduce(struct reading *reading, ditto_op op, const ditto_value *value,
                           const int32_t *axes, uint32_t num_axes, ditto_value **out)
{
    DTI_LEAVES_GATES(held);
    DTI_TRY(check_reading(reading, value, out, &held));
    if (num_axes != 0)
        DTI_TRY(dti_not_null(axes, "axes"));
    return dti_reduce_value(reading->strategy, op, value, num_axes != 0 ? axes : NULL, num_axes, out);
}

ditto_status ditto_strategy_reduce(ditto_strategy *strategy, ditto_op op, const ditto_value *value,
                                   const int32_t *axes, uint32_t num_axes, ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    struct reading reading = begin_reading(strategy);
    return end_reading(&reading, reduce(&reading, op, value, axes, num_axes, out));
}

static ditto_status reduce_f64(struct reading *reading, ditto_op op, const ditto_value *value, double *out)
{
    ditto_value *reduced;
    DTI_LEAVES_GATES(held);
    DTI_TRY(check_reading(reading, value, out, &held));
    DTI_TRY(dti_reduce_value(reading->strategy, op, value, NULL, 0, &reduced));
    ditto_status status = dti_inspect_number(reduced, out);
    dti_value_drop(reduced);
    return status;
}

ditto_status ditto_strategy_reduce_f64(ditto_strategy *strategy, ditto_op op, const ditto_value *value,
                                       double *out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    struct reading reading = begin_reading(strategy);
    return end_reading(&reading, reduce_f64(&reading, op, value, out));
}

static ditto_status merge_slices(const ditto_strategy *strategy, const ditto_value *slices, ditto_value **out)
{
    DTI_LEAVES_GATES(held);
    DTI_TRY(check(strategy, slices, out, &held));
    if (slices->kind != DITTO_VALUE_SLICES)
        return DTI_FAIL(DITTO_ERR_INVALID, "%s has no slices to merge", dti_value_kind_text(slices->kind));
    return dti_merge_slices(slices, out);
}

ditto_status ditto_strategy_merge_slices(ditto_strategy *strategy, const ditto_value *slices,
                                         ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    uint64_t begin = dti_cross_begin(dti_team_of(strategy));
    return dti_cross_tell(dti_team_of(strategy), begin, merge_slices(strategy, slices, out));
}

static ditto_status check_destinations(const ditto_strategy *strategy, const ditto_destination *destinations,
                                       struct dti_gates *held)
{
    if (destinations->of == NULL) {
        uint32_t n = dti_team_all_replicas(dti_team_of(strategy));
        if (destinations->replica >= n)
            return DTI_FAIL(DITTO_ERR_RANGE, "replica %u as a destination: the strategy has %u",
                            destinations->replica, n);
        return DITTO_OK;
    }
    DTI_TRY(dti_value_hold_own(destinations->of, strategy, "the destination's `of`", held));
    if (destinations->of->kind != DITTO_VALUE_VARIABLE && destinations->of->kind != DITTO_VALUE_PER_REPLICA &&
        destinations->of->kind != DITTO_VALUE_MIRRORED)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the destination's `of` is %s, which has no components: give a per-replica or mirrored value, or "
            "a variable, or leave it NULL and set `replica`",
            dti_value_kind_text(destinations->of->kind));
    return DITTO_OK;
}

static ditto_status reduce_to(ditto_strategy *strategy, ditto_op op, const ditto_value *const *values,
                              const ditto_destination *destinations, uint32_t num_values, ditto_value **out)
{
    DTI_TRY(dti_not_null(values, "values"));
    DTI_TRY(dti_not_null(destinations, "destinations"));
    if (num_values == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "num_values = 0: a batch has at least one value");
    DTI_TRY(check_call(strategy, out));
    DTI_LEAVES_GATES(held);
    for (uint32_t i = 0; i < num_values; i++) {
        DTI_TRY(dti_value_hold_item(values[i], strategy, "values", i, &held));
        DTI_TRY_OF(check_destinations(strategy, &destinations[i], &held), "destinations[%u]", i);
    }
    return dti_reduce_to_destinations(strategy, op, values, destinations, num_values, out);
}

ditto_status ditto_strategy_reduce_to(ditto_strategy *strategy, ditto_op op, const ditto_value *const *values,
                                      const ditto_destination *destinations, uint32_t num_values,
                                      ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    uint64_t begin = dti_cross_begin(dti_team_of(strategy));
    return dti_cross_tell(dti_team_of(strategy), begin,
                          reduce_to(strategy, op, values, destinations, num_values, out));
}

static ditto_status broadcast_to(ditto_strategy *strategy, const ditto_tensor *tensor,
                                 ditto_destination destinations, ditto_value **out)
{
    size_t bytes;
    DTI_TRY(dti_not_null(tensor, "tensor"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_tensor_check(tensor, &bytes));
    DTI_TRY(dti_buffer_check(tensor->data, bytes, tensor->dtype, "data"));
    DTI_LEAVES_GATES(held);
    DTI_TRY(check_destinations(strategy, &destinations, &held));
    uint64_t hash = dti_hash_word(dti_hash_bytes(DTI_HASH_SEED, tensor->data, bytes),
                                  (uint64_t)tensor->dtype << 32 | tensor->rank);
    hash = dti_hash_bytes(hash, tensor->shape, tensor->rank * sizeof tensor->shape[0]);
    DTI_TRY(dti_cross_compare(dti_team_of(strategy), "ditto_strategy_broadcast_to", NULL,
                              dti_hash_word(hash, dti_destination_hash(&destinations))));
    return dti_broadcast_to_destinations(strategy, tensor, &destinations, out);
}

ditto_status ditto_strategy_broadcast_to(ditto_strategy *strategy, const ditto_tensor *tensor,
                                         ditto_destination destinations, ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    uint64_t begin = dti_cross_begin(dti_team_of(strategy));
    return dti_cross_tell(dti_team_of(strategy), begin, broadcast_to(strategy, tensor, destinations, out));
}

static ditto_status gather(struct reading *reading, const ditto_value *value, uint32_t axis,
                           ditto_value **out)
{
    DTI_LEAVES_GATES(held);
    DTI_TRY(check_reading(reading, value, out, &held));
    return dti_gather_value(reading->strategy, value, axis, out);
}

ditto_status ditto_strategy_gather(ditto_strategy *strategy, const ditto_value *value, uint32_t axis,
                                   ditto_value **out)
{
    DTI_ENTER();
    DTI_HOLD_STRATEGY(strategy);
    DTI_TRY(dti_team_check_in_step(dti_team_of(strategy)));
    struct reading reading = begin_reading(strategy);
    return end_reading(&reading, gather(&reading, value, axis, out));
}

static ditto_status check_tensors(ditto_replica *self, const ditto_tensor *src, const ditto_tensor *dst,
                                  struct dti_replica **replica)
{
    size_t bytes;
    DTI_TRY(dti_self(self, replica));
    DTI_TRY(dti_not_null(src, "src"));
    DTI_TRY(dti_not_null(dst, "dst"));
    DTI_TRY(dti_tensor_check(src, &bytes));
    return dti_buffer_check(src->data, bytes, src->dtype, "src");
}

ditto_status ditto_all_gather_tensor(ditto_replica *self, const ditto_tensor *src, uint32_t axis,
                                     ditto_tensor *dst)
{
    struct dti_replica *r;
    DTI_ENTER_QUICKLY();
    DTI_TRY(check_tensors(self, src, dst, &r));
    return dti_all_gather_tensor(self, r, src, axis, dst);
}

ditto_status ditto_all_to_all_tensor(ditto_replica *self, const ditto_tensor *src, uint32_t split_axis,
                                     uint32_t concat_axis, ditto_tensor *dst)
{
    struct dti_replica *r;
    DTI_ENTER_QUICKLY();
    DTI_TRY(check_tensors(self, src, dst, &r));
    return dti_all_to_all_tensor(self, r, src, split_axis, concat_axis, dst);
}
