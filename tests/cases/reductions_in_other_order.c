/* tests/cases/reductions_in_other_order.c - replica 0 reduces a loss and then an accuracy, and replica 1 the
 * accuracy and then the loss. The calls are alike, so each mean is one of a loss and an accuracy. Members
 * of a list can be exchanged in the same way. */
#include "cases.h"

static ditto_status reduce_buffers(ditto_replica *self, void *out)
{
    double value[2] = { 0.5, 90 };
    uint32_t first = ditto_replica_id(self);
    DITTO_TRY(ditto_all_reduce(self, &value[first], &value[first], 1, DITTO_F64, DITTO_MEAN, NULL));
    DITTO_TRY(ditto_all_reduce(self, &value[!first], &value[!first], 1, DITTO_F64, DITTO_MEAN, NULL));
    if (first == 0)
        *(double *)out = value[0];
    return DITTO_OK;
}

static ditto_status reduce_list(ditto_replica *self, void *out)
{
    double value[2] = { 0.5, 90 };
    uint32_t first = ditto_replica_id(self);
    ditto_list_item items[] = { { &value[first], &value[first], 1, DITTO_F64 },
                                { &value[!first], &value[!first], 1, DITTO_F64 } };
    DITTO_TRY(ditto_all_reduce_list(self, items, 2, DITTO_MEAN, NULL));
    if (first == 0)
        *(double *)out = value[0];
    return DITTO_OK;
}

int main(void)
{
    ditto_strategy *strategy = mirrored(2);
    double of_buffer = 0.5, of_list = 0.5;
    told("buffers", ditto_strategy_run(strategy, reduce_buffers, &of_buffer));
    told("list", ditto_strategy_run(strategy, reduce_list, &of_list));
    printf("mean loss %g and %g, and not 0.5\n", of_buffer, of_list);
    MUST(ditto_strategy_destroy(strategy));
    return of_buffer == 0.5 && of_list == 0.5 ? RIGHT : WRONG;
}
